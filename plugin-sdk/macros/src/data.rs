//! `#[data]` and `#[derive(ToolSchema)]`: a struct or an enum becomes data that tools take and answer.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Fields, GenericParam, ext::IdentExt, parse_quote};

use crate::{
    fields::{DeriveContext, PayloadKind},
    mistakes::MacroErrors,
    serde::{ContainerKeys, ContainerKind},
    variants::{EnumTagging, TaggedEnum},
};

/// Expands `#[data]` into the derive, with a marker for the derive.
pub(crate) fn attribute(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let mut mistakes = MacroErrors::default();
    if !attributes.is_empty() {
        mistakes.add(
            attributes,
            "`#[data]` takes no keys: write `#[serde(…)]` or `#[arg(…)]` below it",
        );
    }
    match syn::parse2::<DeriveInput>(item.clone()) {
        Ok(input) if !matches!(input.data, Data::Union(_)) => {}
        _ => {
            let first = item
                .clone()
                .into_iter()
                .find(|token| matches!(token, proc_macro2::TokenTree::Ident(_)));
            mistakes.add(
                first,
                "`#[data]` is for a struct or an enum; write `#[tool]` above a function",
            );
        }
    }
    if !mistakes.is_empty() {
        let mistakes = mistakes.into_tokens();
        return quote!(#mistakes #item);
    }
    quote! {
        #[derive(::weir_plugin_sdk::ToolSchema)]
        #[weir_data]
        #item
    }
}

pub(crate) fn derive(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut mistakes = MacroErrors::default();
    let expanded = implementation(&input, &mut mistakes);
    if !mistakes.is_empty() {
        let (name, mistakes) = (&input.ident, mistakes.into_tokens());
        let (before, types, bounds) = input.generics.split_for_impl();
        // An implementation that never runs, so that a tool that takes the type is not reported as another mistake.
        return quote! {
            #mistakes
            impl #before ::weir_plugin_sdk::schema::ToolSchema for #name #types #bounds {
                fn write(_: &mut ::weir_plugin_sdk::schema::Writer) {}
                fn read(
                    _: ::weir_plugin_sdk::serde_json::Value,
                ) -> ::core::result::Result<Self, ::weir_plugin_sdk::schema::Mismatch> {
                    ::core::unreachable!()
                }
                fn print(&self, _: &mut ::std::string::String) {}
            }
        };
    }
    expanded
}

fn implementation(input: &DeriveInput, mistakes: &mut MacroErrors) -> TokenStream {
    let place = if matches!(input.data, Data::Enum(_)) {
        ContainerKind::Enum
    } else {
        ContainerKind::Struct
    };
    let container = ContainerKeys::read(&input.attrs, place, mistakes);
    if let Some(lifetime) = input.generics.lifetimes().next() {
        mistakes.add(
            lifetime,
            "data of a tool owns its texts: write `String` and leave the lifetime out",
        );
        return TokenStream::new();
    }
    let data = input
        .attrs
        .iter()
        .any(|attribute| attribute.path().is_ident("weir_data"));
    let generics = input
        .generics
        .type_params()
        .map(|parameter| parameter.ident.clone())
        .collect();
    let mut around = DeriveContext {
        data,
        generics,
        mistakes,
        count: 0,
        items: TokenStream::new(),
    };
    let parts = match &input.data {
        Data::Struct(item) => of_struct(&item.fields, &input.ident, &container, &mut around),
        Data::Enum(item) => {
            let numbers = data && has_number_repr(&input.attrs);
            TaggedEnum::read(item, &input.ident, &container, numbers, &mut around)
                .map(|item| item.parts())
        }
        Data::Union(item) => {
            around
                .mistakes
                .add(item.union_token, "a union has no schema: write an enum");
            None
        }
    };
    let Some(ImplBodies {
        kind,
        write,
        read,
        print,
        beside,
    }) = parts
    else {
        return TokenStream::new();
    };
    let name = &input.ident;
    let items = around.items;
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter
                .bounds
                .push(parse_quote!(::weir_plugin_sdk::schema::ToolSchema));
        }
    }
    let (before, types, bounds) = generics.split_for_impl();
    let text = container.rename.unwrap_or_else(|| name.unraw().to_string());
    let beside =
        beside.map(|body| quote!(impl #before ::weir_plugin_sdk::schema::MapKey for #name #types #bounds { #body }));
    quote! {
        const _: () = {
            #items

            #[allow(unused_variables, clippy::redundant_closure_call)]
            impl #before ::weir_plugin_sdk::schema::ToolSchema for #name #types #bounds {
                const KIND: ::weir_plugin_sdk::schema::Kind = #kind;

                fn write(schema: &mut ::weir_plugin_sdk::schema::Writer) {
                    schema.named(::core::any::type_name::<Self>(), #text, |schema| { #write });
                }

                fn read(
                    value: ::weir_plugin_sdk::serde_json::Value,
                ) -> ::core::result::Result<Self, ::weir_plugin_sdk::schema::Mismatch> {
                    #read
                }

                fn print(&self, out: &mut ::std::string::String) {
                    #print
                }
            }

            #beside
        };
    }
}

/// The bodies of an implementation.
pub(crate) struct ImplBodies {
    pub(crate) kind: TokenStream,
    /// Statements on `schema`.
    pub(crate) write: TokenStream,
    /// A block that reads `value`.
    pub(crate) read: TokenStream,
    /// Statements on `self` and `out`.
    pub(crate) print: TokenStream,
    /// The body of `MapKey`.
    pub(crate) beside: Option<TokenStream>,
}

fn of_struct(
    fields: &Fields,
    name: &Ident,
    container: &ContainerKeys,
    around: &mut DeriveContext<'_>,
) -> Option<ImplBodies> {
    if container.default.is_some() && (container.transparent || !matches!(fields, Fields::Named(_)))
    {
        around.mistakes.add(
            name,
            "`default` makes the fields with names that are left out: here there are none",
        );
        return None;
    }
    if container.transparent {
        let Some(field) = fields.iter().next().filter(|_| fields.len() == 1) else {
            around.mistakes.add(
                name,
                "a transparent struct has one field, which is all of it",
            );
            return None;
        };
        let slot = around.transparent(field);
        let member = match &field.ident {
            Some(ident) => quote!(#ident),
            None => quote!(0),
        };
        let (parameter, property) = (&slot.parameter, &slot.property);
        return Some(ImplBodies {
            kind: quote!(#parameter.kind),
            write: quote!((const { #property }).write(schema);),
            read: quote!(Ok(Self { #member: (#parameter.read)(value)? })),
            print: quote!((#parameter.print)(&self.#member, out);),
            beside: None,
        });
    }
    let payload = around.payload(
        fields,
        container.rename_all,
        container.closed,
        container.default.as_ref(),
    );
    let kind = match &payload {
        PayloadKind::Unit => {
            around.mistakes.add(
                name,
                "a struct without fields is null in JSON: write `struct … {}`, which is an object",
            );
            return None;
        }
        PayloadKind::Newtype(slot) => {
            let parameter = &slot.parameter;
            quote!(#parameter.kind)
        }
        PayloadKind::Tuple(slots) if slots.is_empty() => {
            around
                .mistakes
                .add(name, "a struct without fields has no form in JSON: write `struct … {}`, which is an object");
            return None;
        }
        PayloadKind::Tuple(_) => quote!(::weir_plugin_sdk::schema::Kind::FixedList),
        PayloadKind::Named(_) => quote!(::weir_plugin_sdk::schema::Kind::Object),
    };
    let (write, read, pattern, print) = (
        payload.write(),
        payload.read(&quote!(Self)),
        payload.pattern(),
        payload.print(),
    );
    Some(ImplBodies {
        kind,
        write,
        read: quote!(Ok(#read)),
        print: quote!(let Self #pattern = self; #print),
        beside: None,
    })
}

/// Returns `true` for `#[repr(i32)]` and its kin.
fn has_number_repr(attributes: &[Attribute]) -> bool {
    const NUMBERS: [&str; 8] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];
    let mut found = false;
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("repr"))
    {
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta
                .path
                .get_ident()
                .is_some_and(|name| NUMBERS.contains(&name.to_string().as_str()));
            Ok(())
        });
    }
    found
}

/// Returns how serde marks the variants of an enum in JSON.
pub(crate) fn tagging(
    container: &ContainerKeys,
    name: &Ident,
    mistakes: &mut MacroErrors,
) -> EnumTagging {
    match (container.untagged, &container.tag, &container.content) {
        (true, None, None) => EnumTagging::None,
        (true, ..) => {
            mistakes.add(
                name,
                "an enum that is `untagged` has no `tag` and no `content`: leave one of them out",
            );
            EnumTagging::None
        }
        (false, Some(tag), Some(content)) => EnumTagging::Beside {
            tag: tag.clone(),
            content: content.clone(),
        },
        (false, Some(tag), None) => EnumTagging::Inside(tag.clone()),
        (false, None, Some(_)) => {
            mistakes.add(
                name,
                "`content` needs a tag: write `tag` too, or leave it out",
            );
            EnumTagging::Outside
        }
        (false, None, None) => EnumTagging::Outside,
    }
}
