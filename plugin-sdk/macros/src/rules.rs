//! Writes one parameter or field as code: its part of a schema, how it is read, and the checks of its type.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Type, spanned::Spanned};

use crate::{
    arg::{ArgKeys, KeyedValue},
    literal::{JsonLiteral, LiteralKind, json_text},
    types::known,
};

/// The code of one parameter or field.
pub(crate) struct ParameterSlot {
    /// The name in JSON.
    pub(crate) name: String,
    /// The `Parameter` of its type: a constant's name, or an expression where the type is generic.
    pub(crate) parameter: TokenStream,
    /// Constants, checks and the function that makes a default.
    pub(crate) items: TokenStream,
    /// A `Property`, built in a constant.
    pub(crate) property: TokenStream,
    /// A `fn() -> T` where the value is left out, if it is not the type's own.
    pub(crate) make: Option<TokenStream>,
    /// A JSON literal where the value is left out.
    pub(crate) json: Option<String>,
}

/// Makes a slot. `generic` means that the type names a parameter of the item around it, so that nothing about it can
/// stand in a constant.
pub(crate) fn slot(
    at: usize,
    name: String,
    of: &Type,
    arg: &ArgKeys,
    generic: bool,
) -> ParameterSlot {
    let mut items = TokenStream::new();
    let parameter = if generic {
        quote!((::weir_plugin_sdk::schema::Parameter::<#of>::of()))
    } else {
        let constant = format_ident!("__WEIR_{at}");
        items.extend(known(of));
        items.extend(quote! {
            const #constant: ::weir_plugin_sdk::schema::Parameter<#of> = {
                #[allow(unused_imports)]
                use ::weir_plugin_sdk::schema::Unknown as _;
                <::weir_plugin_sdk::schema::Parameter<#of>>::OF
            };
        });
        constant.to_token_stream()
    };
    if !generic {
        items.extend(checks(&parameter, of, arg));
    }
    let rules = rules(arg);
    let mut property = quote!(#parameter.property(#name));
    if !rules.is_empty() {
        property.extend(quote!(.rules(&[#(#rules),*])));
    }
    if arg.required.is_some() {
        property.extend(quote!(.required()));
    }
    let (mut make, mut json) = (None, None);
    if let Some(KeyedValue { value, .. }) = &arg.default {
        match value.as_ref().and_then(JsonLiteral::from_expression) {
            Some(literal) => {
                let text = literal.json;
                property.extend(quote!(.default(::weir_plugin_sdk::schema::Default::Json(#text))));
                json = Some(text);
            }
            None => {
                let expression = match value {
                    Some(expression) => quote!(#expression),
                    None => {
                        quote_spanned!(of.span()=> <#of as ::core::default::Default>::default())
                    }
                };
                let function = if generic {
                    quote!((|| -> #of { #expression }))
                } else {
                    let function = format_ident!("__weir_default_{at}");
                    items.extend(quote!(fn #function() -> #of { #expression }));
                    function.to_token_stream()
                };
                property.extend(quote! {
                    .default(::weir_plugin_sdk::schema::Default::Made(|| {
                        let mut out = ::std::string::String::new();
                        (#parameter.print)(&#function(), &mut out);
                        out
                    }))
                });
                make = Some(function);
            }
        }
    }
    ParameterSlot {
        name,
        parameter,
        items,
        property,
        make,
        json,
    }
}

impl ParameterSlot {
    /// Returns an expression that takes the value out of `fields`; its `?` leaves the function around it.
    pub(crate) fn take(&self, fields: &TokenStream) -> TokenStream {
        let (name, parameter) = (&self.name, &self.parameter);
        match (&self.json, &self.make) {
            (Some(json), _) => quote!(#fields.take_json(#name, &#parameter, #json)?),
            (None, Some(make)) => quote!(#fields.take_or(#name, &#parameter, #make)?),
            (None, None) => quote!(#fields.take(#name, &#parameter)?),
        }
    }
}

fn rules(arg: &ArgKeys) -> Vec<TokenStream> {
    let mut rules = Vec::new();
    let mut add = |variant: &str, value: TokenStream| {
        let variant = Ident::new(variant, Span::call_site());
        rules.push(quote!(::weir_plugin_sdk::schema::Rule::#variant(#value)));
    };
    for (variant, length) in [("MinLen", &arg.min_len), ("MaxLen", &arg.max_len)] {
        if let Some(length) = length {
            add(variant, length.value.to_token_stream());
        }
    }
    for (variant, bound) in [
        ("Gt", &arg.gt),
        ("Lt", &arg.lt),
        ("Ge", &arg.ge),
        ("Le", &arg.le),
    ] {
        if let Some(bound) = bound {
            add(variant, bound.value.json.to_token_stream());
        }
    }
    for (variant, text) in [
        ("Pattern", &arg.pattern),
        ("Format", &arg.format),
        ("Title", &arg.title),
    ] {
        if let Some(text) = text {
            add(variant, text.value.to_token_stream());
        }
    }
    if let Some(description) = &arg.description {
        add("Description", description.to_token_stream());
    }
    if let Some(examples) = &arg.examples {
        add("Examples", examples.json.to_token_stream());
    }
    rules
}

/// Constants that fail to compile where a constraint does not fit the type.
fn checks(parameter: &TokenStream, of: &Type, arg: &ArgKeys) -> TokenStream {
    let mut checks = TokenStream::new();
    let kind = quote!(#parameter.kind);
    let mut check = |span: Span, holds: TokenStream, message: String| {
        checks.extend(quote_spanned!(span=> const _: () = ::core::assert!(#holds, #message);));
    };
    for length in [&arg.min_len, &arg.max_len].into_iter().flatten() {
        let key = &length.key;
        let message = format!(
            "`{key}` bounds the length of a text, a list, a set or a map; write `ge`, `gt`, `le` or `lt` for a number"
        );
        check(key.span(), quote!(#kind.has_length()), message);
    }
    for bound in [&arg.gt, &arg.lt, &arg.ge, &arg.le].into_iter().flatten() {
        let (key, json) = (&bound.key, &bound.value.json);
        let message = format!(
            "`{key}` bounds a number; write `min_len` or `max_len` for a text, a list, a set or a map"
        );
        check(key.span(), quote!(#kind.has_order()), message);
        match bound.value.sort {
            LiteralKind::Integer(number) => {
                let message = format!(
                    "`{key} = {json}` is outside the range of `{}`",
                    render_type(of)
                );
                let kind = &kind;
                check(bound.value.span(), quote!(#kind.holds(#number)), message);
            }
            _ => {
                let message = format!(
                    "`{key} = {json}` has a fraction, and a `{}` has none: write a whole number",
                    render_type(of)
                );
                check(bound.value.span(), quote!(#kind.takes_fraction()), message);
            }
        }
    }
    for text in [&arg.pattern, &arg.format].into_iter().flatten() {
        let key = &text.key;
        let message = format!(
            "`{key}` is for a text; a list has it on the type of its items, by `#[data]` on a newtype"
        );
        check(key.span(), quote!(#kind.is_text()), message);
    }
    if let Some(required) = &arg.required {
        let message =
            "`required` is for an `Option`; this one is required already: leave the word out";
        check(
            required.span(),
            quote!(#parameter.is_optional()),
            message.to_owned(),
        );
    }
    if let Some(KeyedValue {
        value: Some(expression),
        ..
    }) = &arg.default
        && let Some(literal) = JsonLiteral::from_expression(expression)
    {
        let (holds, what) = match literal.sort {
            LiteralKind::Text => (quote!(#kind.takes_text()), "a text"),
            LiteralKind::Integer(number) => {
                let message = format!(
                    "the default {} is outside the range of `{}`",
                    literal.json,
                    render_type(of)
                );
                check(literal.span(), quote!(#kind.holds(#number)), message);
                (quote!(#kind.takes_integer()), "a whole number")
            }
            LiteralKind::Number => (quote!(#kind.takes_number()), "a number with a fraction"),
            LiteralKind::Boolean => (quote!(#kind.takes_boolean()), "true or false"),
            LiteralKind::List => (quote!(#kind.takes_list()), "a list"),
        };
        let message = format!(
            "the default {} is {what}, and the type is `{}`: write a default of that type",
            literal.json,
            render_type(of)
        );
        check(literal.span(), holds, message);
    }
    checks
}

/// Returns a type as its author wrote it, without the spaces of tokens.
pub(crate) fn render_type(of: &Type) -> String {
    let text = of.to_token_stream().to_string();
    let mut out = String::new();
    for part in text.split(' ') {
        let glued = out.is_empty()
            || out.ends_with(['<', ':', '&', '(', '['])
            || part.starts_with(['<', '>', ',', ':', ')', ']', ';'])
            || out.ends_with('\'');
        if !glued {
            out.push(' ');
        }
        out.push_str(part);
    }
    out
}

/// Returns the `Some` or `None` of an optional text, for constants.
pub(crate) fn optional(text: Option<&str>) -> TokenStream {
    match text {
        Some(text) => quote!(::core::option::Option::Some(#text)),
        None => quote!(::core::option::Option::None),
    }
}

/// Returns a text as JSON, for the constants of tagged enums.
pub(crate) fn quoted(text: &str) -> String {
    json_text(text)
}
