//! Enums: a choice of texts or numbers, or variants with values, which are distinguished as serde does it.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DataEnum, ext::IdentExt};

use crate::{
    data::{ImplBodies, tagging},
    fields::{DeriveContext, PayloadKind},
    rules::quoted,
    serde::{ContainerKeys, ContainerKind},
};

pub(crate) enum EnumTagging {
    /// `{"Circle": {…}}`.
    Outside,
    /// `{"kind": "circle", …}`.
    Inside(String),
    /// `{"kind": "circle", "value": {…}}`.
    Beside { tag: String, content: String },
    /// Only the value.
    None,
}

pub(crate) struct TaggedEnum {
    variants: Vec<EnumVariant>,
    /// Variants of `#[serde(skip)]`.
    skipped: Vec<Ident>,
    tagging: EnumTagging,
    /// The numbers are what JSON holds.
    numbers: bool,
}

struct EnumVariant {
    ident: Ident,
    name: String,
    payload: PayloadKind,
}

impl TaggedEnum {
    pub(crate) fn read(
        item: &DataEnum,
        name: &Ident,
        container: &ContainerKeys,
        numbers: bool,
        around: &mut DeriveContext<'_>,
    ) -> Option<Self> {
        let (mut variants, mut skipped) = (Vec::new(), Vec::new());
        let tagging = tagging(container, name, around.mistakes);
        for variant in &item.variants {
            let own = ContainerKeys::read(&variant.attrs, ContainerKind::Variant, around.mistakes);
            if own.skip {
                skipped.push(variant.ident.clone());
                continue;
            }
            let bare = variant.ident.unraw().to_string();
            let name = own.rename.unwrap_or_else(|| {
                container
                    .rename_all
                    .map_or(bare.clone(), |case| case.variant(&bare))
            });
            let fields = own.rename_all.or(container.rename_all_fields);
            let mut payload = around.payload(
                &variant.fields,
                fields,
                container.closed || own.closed,
                None,
            );
            if let EnumTagging::Inside(tag) = &tagging {
                around.has_place_for(tag, variant, &mut payload);
            }
            variants.push(EnumVariant {
                ident: variant.ident.clone(),
                name,
                payload,
            });
        }
        if variants.is_empty() {
            around
                .mistakes
                .add(name, "an enum without variants has no value: write one");
            return None;
        }
        Some(Self {
            variants,
            skipped,
            tagging,
            numbers,
        })
    }

    pub(crate) fn parts(&self) -> ImplBodies {
        let plain = self
            .variants
            .iter()
            .all(|variant| matches!(variant.payload, PayloadKind::Unit));
        match &self.tagging {
            EnumTagging::Outside if plain && self.numbers => self.numbers(),
            EnumTagging::Outside if plain => self.texts(),
            EnumTagging::Outside => self.outside(),
            EnumTagging::Inside(tag) => self.inside(tag),
            EnumTagging::Beside { tag, content } => self.beside(tag, content),
            EnumTagging::None => self.untagged(),
        }
    }

    /// Writes an enum that is one of several texts.
    fn texts(&self) -> ImplBodies {
        let names: Vec<&String> = self.variants.iter().map(|variant| &variant.name).collect();
        let idents: Vec<&Ident> = self.variants.iter().map(|variant| &variant.ident).collect();
        let skipped = self.skipped(quote!(""));
        let message = format!(
            "must be one of {}",
            names
                .iter()
                .map(|name| quoted(name))
                .collect::<Vec<_>>()
                .join(", ")
        );
        ImplBodies {
            kind: quote!(::weir_plugin_sdk::schema::Kind::Choice),
            write: quote!(::weir_plugin_sdk::schema::write_choice(&[#(#names),*], schema);),
            read: quote!(match value.as_str() {
                ::core::option::Option::Some(name) => {
                    <Self as ::weir_plugin_sdk::schema::MapKey>::read_name(::std::string::String::from(name))
                }
                ::core::option::Option::None => {
                    ::core::result::Result::Err(::weir_plugin_sdk::schema::Mismatch::new(#message))
                }
            }),
            print: quote! {
                let name = <Self as ::weir_plugin_sdk::schema::MapKey>::name(self);
                ::weir_plugin_sdk::value::write_string(name, out);
            },
            beside: Some(quote! {
                fn write_names(schema: &mut ::weir_plugin_sdk::schema::Writer) {
                    ::weir_plugin_sdk::schema::write_choice(&[#(#names),*], schema);
                }

                fn read_name(
                    name: ::std::string::String,
                ) -> ::core::result::Result<Self, ::weir_plugin_sdk::schema::Mismatch> {
                    match name.as_str() {
                        #(#names => ::core::result::Result::Ok(Self::#idents),)*
                        _ => ::core::result::Result::Err(::weir_plugin_sdk::schema::Mismatch::new(#message)),
                    }
                }

                fn name(&self) -> &str {
                    match self {
                        #(Self::#idents => #names,)*
                        #skipped
                    }
                }
            }),
        }
    }

    /// Writes an enum that is one of several numbers.
    fn numbers(&self) -> ImplBodies {
        let idents: Vec<&Ident> = self.variants.iter().map(|variant| &variant.ident).collect();
        let skipped = self.skipped(quote!(0));
        ImplBodies {
            kind: quote!(::weir_plugin_sdk::schema::Kind::Any),
            write: quote!(::weir_plugin_sdk::schema::write_numbers(&[#(Self::#idents as i64),*], schema);),
            read: quote! {
                match <i64 as ::weir_plugin_sdk::schema::ToolSchema>::read(value)? {
                    #(number if number == Self::#idents as i64 => ::core::result::Result::Ok(Self::#idents),)*
                    _ => ::core::result::Result::Err(
                        ::weir_plugin_sdk::schema::Mismatch::new("must be one of the numbers of the schema"),
                    ),
                }
            },
            print: quote! {
                let number: i64 = match self {
                    #(Self::#idents => Self::#idents as i64,)*
                    #skipped
                };
                out.push_str(&::std::string::ToString::to_string(&number));
            },
            beside: None,
        }
    }

    fn outside(&self) -> ImplBodies {
        let writes = self.writers();
        let reads = self.variants.iter().map(|EnumVariant { ident, name, payload }| {
            let read = payload.read(&quote!(Self::#ident));
            match payload {
                PayloadKind::Unit => {
                    quote!((#name, ::core::option::Option::None) => ::core::result::Result::Ok(Self::#ident))
                }
                _ => quote!((#name, ::core::option::Option::Some(value)) => ::core::result::Result::Ok(#read)),
            }
        });
        let unknown = unknown();
        let prints = self.variants.iter().map(|EnumVariant { ident, name, payload }| {
            let (pattern, print) = (payload.pattern(), payload.print());
            let name = quoted(name);
            match payload {
                PayloadKind::Unit => quote!(Self::#ident => out.push_str(#name)),
                _ => {
                    let open = format!("{{{name}:");
                    quote!(Self::#ident #pattern => { out.push_str(#open); #print out.push('}'); })
                }
            }
        });
        let skipped = self.skipped(quote!(out.push_str("null")));
        let are_objects = self
            .variants
            .iter()
            .map(|variant| !matches!(variant.payload, PayloadKind::Unit));
        self.whole(
            quote!(::weir_plugin_sdk::schema::Kind::of_enum(&[#(#are_objects),*])),
            quote!(::weir_plugin_sdk::schema::write_outside(&[#(#writes),*], schema);),
            quote! {
                let (name, payload) = ::weir_plugin_sdk::schema::variant(value)?;
                match (name.as_str(), payload) { #(#reads,)* _ => #unknown }
            },
            quote!(match self { #(#prints,)* #skipped }),
        )
    }

    fn inside(&self, tag: &str) -> ImplBodies {
        let writes = self.writers();
        let reads = self.variants.iter().map(
            |EnumVariant {
                 ident,
                 name,
                 payload,
             }| {
                let read = payload.read(&quote!(Self::#ident));
                quote!(#name => {
                    let value = fields.rest();
                    ::core::result::Result::Ok(#read)
                })
            },
        );
        let unknown = unknown();
        let prints = self.variants.iter().map(
            |EnumVariant {
                 ident,
                 name,
                 payload,
             }| {
                let (pattern, print) = (payload.pattern(), payload.print());
                let print = if matches!(payload, PayloadKind::Unit) {
                    quote!(out.push_str("{}");)
                } else {
                    print
                };
                quote!(Self::#ident #pattern => {
                    let mut object = ::std::string::String::new();
                    { let out = &mut object; #print }
                    ::weir_plugin_sdk::schema::splice_tag(#tag, #name, &object, out);
                })
            },
        );
        let skipped = self.skipped(quote!(out.push_str("null")));
        self.whole(
            quote!(::weir_plugin_sdk::schema::Kind::Object),
            quote!(::weir_plugin_sdk::schema::write_inside(#tag, &[#(#writes),*], schema);),
            quote! {
                let mut fields = ::weir_plugin_sdk::schema::Fields::of(value)?;
                let tag = fields.tag(#tag)?;
                match tag.as_str() { #(#reads,)* _ => #unknown }
            },
            quote!(match self { #(#prints,)* #skipped }),
        )
    }

    fn beside(&self, tag: &str, content: &str) -> ImplBodies {
        let writes = self.writers();
        let reads = self.variants.iter().map(
            |EnumVariant {
                 ident,
                 name,
                 payload,
             }| {
                let read = payload.read(&quote!(Self::#ident));
                quote!(#name => {
                    let value = fields.remove(#content).unwrap_or_default();
                    ::core::result::Result::Ok(#read)
                })
            },
        );
        let unknown = unknown();
        let prints = self.variants.iter().map(|EnumVariant { ident, name, payload }| {
            let (pattern, print) = (payload.pattern(), payload.print());
            let open = format!("{{{}:{}", quoted(tag), quoted(name));
            match payload {
                PayloadKind::Unit => {
                    let whole = format!("{open}}}");
                    quote!(Self::#ident => out.push_str(#whole))
                }
                _ => {
                    let open = format!("{open},{}:", quoted(content));
                    quote!(Self::#ident #pattern => { out.push_str(#open); #print out.push('}'); })
                }
            }
        });
        let skipped = self.skipped(quote!(out.push_str("null")));
        self.whole(
            quote!(::weir_plugin_sdk::schema::Kind::Object),
            quote!(::weir_plugin_sdk::schema::write_beside(#tag, #content, &[#(#writes),*], schema);),
            quote! {
                let mut fields = ::weir_plugin_sdk::schema::Fields::of(value)?;
                let tag = fields.tag(#tag)?;
                match tag.as_str() { #(#reads,)* _ => #unknown }
            },
            quote!(match self { #(#prints,)* #skipped }),
        )
    }

    fn untagged(&self) -> ImplBodies {
        let writes = self.variants.iter().map(|variant| {
            let write = variant.payload.write();
            quote!(|schema| { #write })
        });
        let reads = self.variants.iter().map(|EnumVariant { ident, payload, .. }| {
            let read = match payload {
                // Only null is the unit: any other value is read further.
                PayloadKind::Unit => quote! {
                    if !value.is_null() {
                        return ::core::result::Result::Err(::weir_plugin_sdk::schema::Mismatch::new("must be null"));
                    }
                    ::core::result::Result::Ok(Self::#ident)
                },
                _ => {
                    let read = payload.read(&quote!(Self::#ident));
                    quote!(::core::result::Result::Ok(#read))
                }
            };
            quote! {
                let attempt = (|value: ::weir_plugin_sdk::serde_json::Value|
                    -> ::core::result::Result<Self, ::weir_plugin_sdk::schema::Mismatch> { #read })(value.clone());
                if attempt.is_ok() {
                    return attempt;
                }
            }
        });
        let unknown = unknown();
        let prints = self
            .variants
            .iter()
            .map(|EnumVariant { ident, payload, .. }| {
                let (pattern, print) = (payload.pattern(), payload.print());
                quote!(Self::#ident #pattern => { #print })
            });
        let skipped = self.skipped(quote!(out.push_str("null")));
        let are_objects = self
            .variants
            .iter()
            .map(|variant| variant.payload.is_object());
        self.whole(
            quote!(::weir_plugin_sdk::schema::Kind::of_enum(&[#(#are_objects),*])),
            quote!(::weir_plugin_sdk::schema::write_untagged(&[#(#writes),*], schema);),
            quote!(#(#reads)* #unknown),
            quote!(match self { #(#prints,)* #skipped }),
        )
    }

    /// Returns `("name", Some(writer of the payload))` of each variant.
    fn writers(&self) -> Vec<TokenStream> {
        let writer = |EnumVariant { name, payload, .. }: &EnumVariant| match payload {
            PayloadKind::Unit => quote!((#name, ::core::option::Option::None)),
            _ => {
                let write = payload.write();
                quote!((#name, ::core::option::Option::Some(|schema| { #write })))
            }
        };
        self.variants.iter().map(writer).collect()
    }

    fn skipped(&self, does: TokenStream) -> TokenStream {
        let idents = &self.skipped;
        if idents.is_empty() {
            TokenStream::new()
        } else {
            quote!(#(Self::#idents { .. })|* => #does,)
        }
    }

    fn whole(
        &self,
        kind: TokenStream,
        write: TokenStream,
        read: TokenStream,
        print: TokenStream,
    ) -> ImplBodies {
        ImplBodies {
            kind,
            write,
            read,
            print,
            beside: None,
        }
    }
}

fn unknown() -> TokenStream {
    quote!(::core::result::Result::Err(
        ::weir_plugin_sdk::schema::Mismatch::new("is not among the values that the schema lists")
    ))
}
