//! The fields of a struct or a variant as code.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Fields, FieldsNamed, Type, ext::IdentExt, spanned::Spanned};

use crate::{
    arg::ArgKeys,
    case::RenameRule,
    mistakes::MacroErrors,
    rules::{ParameterSlot, render_type, slot},
    serde, types,
};

/// The item around the fields that are read.
pub(crate) struct DeriveContext<'a> {
    /// Whether the item has `#[data]`: then an `Option` is left out of an answer instead of being null.
    pub(crate) data: bool,
    /// The item's own type parameters.
    pub(crate) generics: Vec<Ident>,
    pub(crate) mistakes: &'a mut MacroErrors,
    /// Numbers the constants of all fields.
    pub(crate) count: usize,
    pub(crate) items: TokenStream,
}

/// The content of a struct or a variant.
pub(crate) enum PayloadKind {
    Unit,
    /// One value without a name.
    Newtype(ParameterSlot),
    Tuple(Vec<ParameterSlot>),
    Named(NamedFields),
}

pub(crate) struct NamedFields {
    fields: Vec<NamedField>,
    closed: bool,
}

struct NamedField {
    name: Ident,
    slot: ParameterSlot,
    /// Whether the field has `#[serde(skip)]`, so that it is neither read nor printed.
    skip: bool,
    /// A function that decides by a reference whether the value is left out of an answer.
    skip_if: Option<TokenStream>,
}

impl DeriveContext<'_> {
    /// Reads the fields of a struct or a variant. `rename_all` is the rule for the names of fields.
    pub(crate) fn payload(
        &mut self,
        fields: &Fields,
        rename_all: Option<RenameRule>,
        closed: bool,
        default: Option<&TokenStream>,
    ) -> PayloadKind {
        match fields {
            Fields::Unit => PayloadKind::Unit,
            Fields::Unnamed(fields) => {
                let mut slots: Vec<ParameterSlot> = fields
                    .unnamed
                    .iter()
                    .map(|field| self.unnamed(field))
                    .collect();
                match slots.len() {
                    1 => PayloadKind::Newtype(slots.remove(0)),
                    0 => PayloadKind::Tuple(Vec::new()),
                    count => {
                        if count > 8 {
                            self.mistakes.add(
                                fields,
                                "a tuple has eight items at most: write fields with names",
                            );
                        }
                        PayloadKind::Tuple(slots)
                    }
                }
            }
            Fields::Named(fields) => {
                PayloadKind::Named(self.named(fields, rename_all, closed, default))
            }
        }
    }

    /// Reads a struct that is its one field: `#[serde(transparent)]`.
    pub(crate) fn transparent(&mut self, field: &syn::Field) -> ParameterSlot {
        self.unnamed(field)
    }

    /// Refuses a variant whose value is not an object: the tag of its enum is a member of that object.
    pub(crate) fn has_place_for(
        &mut self,
        tag: &str,
        variant: &syn::Variant,
        payload: &mut PayloadKind,
    ) {
        let instead = "write fields with names, or `content` next to `tag`";
        match payload {
            PayloadKind::Unit | PayloadKind::Named(_) => {}
            PayloadKind::Tuple(_) => {
                self.mistakes.add(
                    &variant.ident,
                    format!("a tuple has no place for the tag `{tag}`: {instead}"),
                );
            }
            PayloadKind::Newtype(slot) => {
                let of = &variant
                    .fields
                    .iter()
                    .next()
                    .expect("a newtype has one field")
                    .ty;
                if names_any(of, &self.generics) {
                    slot.property.extend(quote!(.object()));
                    return;
                }
                let (parameter, of_span) = (&slot.parameter, of.span());
                let message = format!(
                    "`{}` has no place for the tag `{tag}`: {instead}",
                    render_type(of)
                );
                let by_hand = format!(
                    "{message}; where its schema is written by hand and each value is an object, write `const KIND: Kind = \
                     Kind::Object` there"
                );
                self.items.extend(quote_spanned! {of_span=>
                    const _: () = if !#parameter.is_object() {
                        if #parameter.is_any() { ::core::panic!(#by_hand) } else { ::core::panic!(#message) }
                    };
                });
            }
        }
    }

    fn unnamed(&mut self, field: &syn::Field) -> ParameterSlot {
        let read = serde::FieldKeys::read(&field.attrs, self.mistakes);
        if read.skip || read.skip_if.is_some() || read.default.is_some() || read.rename.is_some() {
            self.mistakes.add(
                field,
                "a field without a name is always there and has no name: leave `#[serde(…)]` out",
            );
        }
        let arg = ArgKeys::read(&field.attrs, self.mistakes);
        arg.no_command_line(self.mistakes);
        let mut slot = self.slot(String::new(), &field.ty, &arg);
        slot.property.extend(quote!(.nulls()));
        slot
    }

    fn named(
        &mut self,
        fields: &FieldsNamed,
        rename_all: Option<RenameRule>,
        closed: bool,
        default: Option<&TokenStream>,
    ) -> NamedFields {
        let mut read = Vec::new();
        for field in &fields.named {
            let ident = field.ident.clone().expect("a named field has a name");
            let attributes = serde::FieldKeys::read(&field.attrs, self.mistakes);
            let bare = ident.unraw().to_string();
            let name = attributes
                .rename
                .unwrap_or_else(|| rename_all.map_or(bare.clone(), |case| case.field(&bare)));
            if attributes.skip {
                let made = attributes
                    .default
                    .unwrap_or_else(|| quote!(::core::default::Default::default));
                let slot = ParameterSlot::skipped(made);
                read.push(NamedField {
                    name: ident,
                    slot,
                    skip: true,
                    skip_if: None,
                });
                continue;
            }
            let arg = ArgKeys::read(&field.attrs, self.mistakes);
            arg.no_command_line(self.mistakes);
            let mut slot = self.slot(name, &field.ty, &arg);
            let made = attributes.default.or_else(|| {
                default.map(|default| quote!((|| { let made: Self = #default(); made.#ident })))
            });
            if let (Some(made), None) = (made, &arg.default) {
                slot.property
                    .extend(quote!(.default(::weir_plugin_sdk::schema::Default::Silent)));
                slot.make = Some(made);
            }
            let parameter = &slot.parameter;
            let skip_if = match attributes.skip_if {
                Some(path) => {
                    slot.property.extend(quote!(.may_be_left_out()));
                    Some(path)
                }
                None if self.data => {
                    // A caller must send it, and an answer leaves it out if it is `None`.
                    slot.property
                        .extend(arg.required.is_some().then(|| quote!(.may_be_left_out())));
                    Some(quote!((#parameter.is_absent)))
                }
                None => {
                    slot.property.extend(quote!(.nulls_in_output()));
                    None
                }
            };
            read.push(NamedField {
                name: ident,
                slot,
                skip: false,
                skip_if,
            });
        }
        NamedFields {
            fields: read,
            closed,
        }
    }

    fn slot(&mut self, name: String, of: &Type, arg: &ArgKeys) -> ParameterSlot {
        types::check(of, self.mistakes);
        let generic = names_any(of, &self.generics);
        let slot = slot(self.count, name, of, arg, generic);
        self.count += 1;
        self.items.extend(slot.items.clone());
        slot
    }
}

/// Returns `true` if the type names one of the type parameters.
fn names_any(of: &Type, generics: &[Ident]) -> bool {
    fn any(tokens: TokenStream, generics: &[Ident]) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => generics.contains(&ident),
            proc_macro2::TokenTree::Group(group) => any(group.stream(), generics),
            _ => false,
        })
    }
    !generics.is_empty() && any(quote!(#of), generics)
}

impl ParameterSlot {
    /// Returns a field that is neither read nor printed.
    fn skipped(make: TokenStream) -> Self {
        let (parameter, items, property) = Default::default();
        Self {
            name: String::new(),
            parameter,
            items,
            property,
            make: Some(make),
            json: None,
        }
    }
}

impl PayloadKind {
    /// Returns a constant expression that is `true` if each value is an object.
    pub(crate) fn is_object(&self) -> TokenStream {
        match self {
            Self::Unit | Self::Tuple(_) => quote!(false),
            Self::Newtype(slot) => {
                let parameter = &slot.parameter;
                quote!(#parameter.is_object())
            }
            Self::Named(_) => quote!(true),
        }
    }

    /// Returns statements that write the keywords on `schema`.
    pub(crate) fn write(&self) -> TokenStream {
        match self {
            Self::Unit => quote!(schema.set("type", "\"null\"");),
            Self::Newtype(slot) => {
                let property = &slot.property;
                quote!((const { #property }).write(schema);)
            }
            Self::Tuple(slots) => {
                let properties = slots.iter().map(|slot| &slot.property);
                quote!(::weir_plugin_sdk::schema::write_tuple(&const { [#(#properties),*] }, schema);)
            }
            Self::Named(named) => {
                let properties = named
                    .fields
                    .iter()
                    .filter(|field| !field.skip)
                    .map(|field| &field.slot.property);
                let closed = named.closed;
                quote!(::weir_plugin_sdk::schema::write_object(&const { [#(#properties),*] }, #closed, schema);)
            }
        }
    }

    /// Returns an expression that reads `value` and makes `constructor` of it.
    pub(crate) fn read(&self, constructor: &TokenStream) -> TokenStream {
        match self {
            Self::Unit => quote!({
                let _ = value;
                #constructor
            }),
            Self::Newtype(slot) => {
                let parameter = &slot.parameter;
                quote!(#constructor((#parameter.read)(value)?))
            }
            Self::Tuple(slots) => {
                let count = slots.len();
                let reads = slots.iter().enumerate().map(|(at, slot)| {
                    let (parameter, at) = (&slot.parameter, at.to_string());
                    quote!((#parameter.read)(values.next().unwrap_or_default())
                        .map_err(|mismatch| mismatch.inside(#at))?)
                });
                quote!({
                    #[allow(unused_mut, unused_variables)]
                    let mut values = ::weir_plugin_sdk::schema::tuple_elements(value, #count)?.into_iter();
                    #constructor(#(#reads),*)
                })
            }
            Self::Named(named) => {
                let fields = quote!(fields);
                let reads = named.fields.iter().map(|field| {
                    let name = &field.name;
                    if field.skip {
                        let make = &field.slot.make;
                        return quote!(#name: #make());
                    }
                    let take = field.slot.take(&fields);
                    quote!(#name: #take)
                });
                let end = named.closed.then(|| quote!(fields.end()?;));
                quote!({
                    #[allow(unused_mut, unused_variables)]
                    let mut fields = ::weir_plugin_sdk::schema::Fields::of(value)?;
                    let read = #constructor { #(#reads),* };
                    #end
                    read
                })
            }
        }
    }

    /// Returns the pattern that binds references to the values: `(a, b)`, `{ a: a, … }`.
    pub(crate) fn pattern(&self) -> TokenStream {
        match self {
            Self::Unit => TokenStream::new(),
            Self::Newtype(_) => quote!((value_0)),
            Self::Tuple(slots) => {
                let names = (0..slots.len()).map(|at| format_ident!("value_{at}"));
                quote!((#(#names),*))
            }
            Self::Named(named) => {
                let bindings = named.fields.iter().enumerate().map(|(at, field)| {
                    let (name, value) = (&field.name, format_ident!("value_{at}"));
                    if field.skip {
                        quote!(#name: _)
                    } else {
                        quote!(#name: #value)
                    }
                });
                quote!({ #(#bindings),* })
            }
        }
    }

    /// Returns statements that append to `out` what [`Self::pattern`] holds.
    pub(crate) fn print(&self) -> TokenStream {
        match self {
            Self::Unit => quote!(out.push_str("null");),
            Self::Newtype(slot) => {
                let parameter = &slot.parameter;
                quote!((#parameter.print)(value_0, out);)
            }
            Self::Tuple(slots) => {
                let prints = slots.iter().enumerate().map(|(at, slot)| {
                    let (parameter, value) = (&slot.parameter, format_ident!("value_{at}"));
                    let comma = (at > 0).then(|| quote!(out.push(',');));
                    quote!(#comma (#parameter.print)(#value, out);)
                });
                quote!(out.push('['); #(#prints)* out.push(']');)
            }
            Self::Named(named) => {
                let prints = named.fields.iter().enumerate().filter(|(_, field)| !field.skip).map(|(at, field)| {
                    let (slot, value) = (&field.slot, format_ident!("value_{at}"));
                    let (name, parameter) = (&slot.name, &slot.parameter);
                    let print = quote!(::weir_plugin_sdk::schema::print_field(#name, #value, #parameter.print, out););
                    match &field.skip_if {
                        Some(skip_if) => quote!(if !#skip_if(#value) { #print }),
                        None => print,
                    }
                });
                quote!(out.push('{'); #(#prints)* out.push('}');)
            }
        }
    }
}
