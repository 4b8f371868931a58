//! Types that are known to have no honest schema, by their names: each with what to write instead.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    GenericArgument, Ident, PathArguments, ReturnType, Type, TypePath, parse_quote,
    spanned::Spanned,
};

use crate::{mistakes::MacroErrors, rules::render_type};

/// Looks at a type of a parameter or a field, and at those inside it.
pub(crate) fn check(of: &Type, mistakes: &mut MacroErrors) {
    match of {
        Type::Paren(inner) => check(&inner.elem, mistakes),
        Type::Group(inner) => check(&inner.elem, mistakes),
        Type::Array(array) => check(&array.elem, mistakes),
        Type::Tuple(tuple) if tuple.elems.len() > 8 => {
            mistakes.add(
                tuple,
                "a tuple has eight items at most: write a struct with `#[data]` above it",
            );
        }
        Type::Tuple(tuple) => tuple
            .elems
            .iter()
            .for_each(|element| check(element, mistakes)),
        Type::Reference(reference) => {
            let owned = match &*reference.elem {
                Type::Slice(slice) => format!("Vec<{}>", render_type(&slice.elem)),
                Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
                elem => render_type(elem),
            };
            mistakes.add(
                reference,
                format!("a tool owns what it is given: write `{owned}`"),
            );
        }
        Type::ImplTrait(_) | Type::TraitObject(_) => {
            mistakes.add(
                of,
                format!(
                    "`{}` may be many types, and a schema is of one: name the type",
                    render_type(of)
                ),
            );
        }
        Type::Infer(_) => mistakes.add(of, "a tool's types are its schema: name the type"),
        Type::Path(path) => named(path, mistakes),
        _ => mistakes.add(
            of,
            format!(
                "`{}` has no schema: take a type of the table in docs/tools-from-code.md",
                render_type(of)
            ),
        ),
    }
}

/// Checks what a function returns: of a `Result`, only the value.
pub(crate) fn check_return(output: &ReturnType, mistakes: &mut MacroErrors) {
    let ReturnType::Type(_, of) = output else {
        return;
    };
    match &**of {
        Type::Reference(reference) if is_static_text(reference) => {}
        Type::Tuple(tuple) if tuple.elems.is_empty() => {}
        Type::Path(path) => match inner(path) {
            Some((name, arguments)) if name == "Result" || name == "Answer" => {
                if let Some(value) = arguments.first().filter(|value| !is_unit(value)) {
                    let output: ReturnType = parse_quote!(-> #value);
                    check_return(&output, mistakes);
                }
            }
            _ => check(of, mistakes),
        },
        _ => check(of, mistakes),
    }
}

fn is_unit(of: &Type) -> bool {
    matches!(of, Type::Tuple(tuple) if tuple.elems.is_empty())
}

fn is_static_text(reference: &syn::TypeReference) -> bool {
    let is_static = reference
        .lifetime
        .as_ref()
        .is_some_and(|lifetime| lifetime.ident == "static");
    is_static && matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str"))
}

fn named(path: &TypePath, mistakes: &mut MacroErrors) {
    let Some(last) = path.path.segments.last() else {
        return;
    };
    let name = last.ident.to_string();
    let arguments = inner(path)
        .map(|(_, arguments)| arguments)
        .unwrap_or_default();
    let first = arguments.first().copied();
    match name.as_str() {
        "usize" | "isize" => {
            let (small, large) = if name == "usize" {
                ("u32", "u64")
            } else {
                ("i32", "i64")
            };
            mistakes.add(
                path,
                format!("`{name}` has 32 bits in a component and 64 elsewhere: write `{small}` or `{large}`"),
            );
        }
        "i128" | "u128" => {
            let less = if name == "i128" { "i64" } else { "u64" };
            mistakes.add(
                path,
                format!(
                    "JSON numbers do not carry 128 bits: write `{less}`, or `String` for its digits"
                ),
            );
        }
        "Duration" | "SignedDuration" | "Span" if arguments.is_empty() => {
            let message = format!(
                "`{name}` has no one form in JSON: write a number and name its unit, as `wait_ms: u32`"
            );
            mistakes.add(path, message);
        }
        "SystemTime" | "Instant" | "DateTime" | "NaiveDateTime" => {
            mistakes.add(
                path,
                format!(
                    "`{name}` has no schema: write `jiff::Timestamp`, or `u64` and name its unit"
                ),
            );
        }
        "str" => mistakes.add(path, "write `String`"),
        "OsString" | "CString" => mistakes.add(
            path,
            format!("`{name}` is not a text: write `String` or `PathBuf`"),
        ),
        "Vec" | "VecDeque" | "HashSet" | "BTreeSet" if first.is_some_and(is_byte) => {
            mistakes.add(
                path,
                format!(
                    "`{}` is a list of numbers in JSON: write `Bytes`, which is base64",
                    render_type(&Type::Path(path.clone()))
                ),
            );
        }
        "Option" if first.is_some_and(is_option) => {
            mistakes.add(
                path,
                "an `Option` in an `Option` has one null for two meanings: write one `Option`",
            );
        }
        "HashMap" | "BTreeMap" => {
            if let Some(key) = first.filter(|key| is_number(key)) {
                mistakes.add(
                    key,
                    format!(
                        "`{}` cannot be the key of a map, since JSON names members by texts: write `String` or an enum without fields",
                        render_type(key)
                    ),
                );
            }
            arguments.iter().skip(1).for_each(|of| check(of, mistakes));
        }
        // A `Cow<str>` owns its text here; a bare `str` is refused above.
        "Cow" => {}
        _ => arguments.iter().for_each(|of| check(of, mistakes)),
    }
}

/// Returns the last name of a path, and the types in its angle brackets.
fn inner(path: &TypePath) -> Option<(&Ident, Vec<&Type>)> {
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return Some((&last.ident, Vec::new()));
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    });
    Some((&last.ident, types.collect()))
}

fn is_byte(of: &Type) -> bool {
    matches!(of, Type::Path(path) if path.path.is_ident("u8"))
}

fn is_option(of: &Type) -> bool {
    matches!(of, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

fn is_number(of: &Type) -> bool {
    const NUMBERS: [&str; 15] = [
        "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize",
        "f32", "f64", "bool",
    ];
    matches!(of, Type::Path(path) if path.path.get_ident().is_some_and(|name| NUMBERS.contains(&name.to_string().as_str())))
}

/// Returns the type that is read for a parameter: a `&str` is borrowed from a `String`, a `Cow` owns its text.
pub(crate) fn owned(of: &Type) -> (Type, bool) {
    if let Type::Reference(reference) = of
        && reference.mutability.is_none()
        && matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str"))
    {
        return (parse_quote!(::std::string::String), true);
    }
    let mut of = of.clone();
    own_cows(&mut of);
    (of, false)
}

fn own_cows(of: &mut Type) {
    match of {
        Type::Paren(inner) => own_cows(&mut inner.elem),
        Type::Group(inner) => own_cows(&mut inner.elem),
        Type::Array(array) => own_cows(&mut array.elem),
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(own_cows),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last_mut() else {
                return;
            };
            let is_cow = last.ident == "Cow";
            let PathArguments::AngleBracketed(arguments) = &mut last.arguments else {
                return;
            };
            if is_cow {
                let types = arguments
                    .args
                    .iter()
                    .filter(|argument| !matches!(argument, GenericArgument::Lifetime(_)));
                let types: Vec<_> = types.map(ToTokens::to_token_stream).collect();
                *arguments = parse_quote!(<'static, #(#types),*>);
                return;
            }
            for argument in &mut arguments.args {
                if let GenericArgument::Type(of) = argument {
                    own_cows(of);
                }
            }
        }
        _ => {}
    }
}

/// Returns the type that a function returns, for a constant.
pub(crate) fn owned_return(of: &Type) -> Type {
    let mut of = of.clone();
    own_cows(&mut of);
    of
}

/// Constants that fail to compile where a type has no schema: one error, at the innermost type that has none.
pub(crate) fn known(of: &Type) -> TokenStream {
    let mut checks = TokenStream::new();
    schema_known(of, &mut checks);
    checks
}

/// Returns the checks for the type that a function returns.
pub(crate) fn known_return(of: &Type) -> TokenStream {
    let mut checks = TokenStream::new();
    output_known(of, &mut checks);
    checks
}

/// Adds the checks of a type and of the types inside it; returns an expression that is true if all checks hold.
fn schema_known(of: &Type, checks: &mut TokenStream) -> TokenStream {
    let mut inside = Vec::new();
    match of {
        Type::Paren(inner) => inside.push(schema_known(&inner.elem, checks)),
        Type::Group(inner) => inside.push(schema_known(&inner.elem, checks)),
        Type::Array(array) => inside.push(schema_known(&array.elem, checks)),
        Type::Tuple(tuple) => inside.extend(
            tuple
                .elems
                .iter()
                .map(|element| schema_known(element, checks)),
        ),
        Type::Path(path) => {
            let (name, arguments) = inner(path)
                .map(|(name, arguments)| (name.to_string(), arguments))
                .unwrap_or_default();
            match (name.as_str(), arguments.as_slice()) {
                ("Cow" | "Map", _) => {}
                ("HashMap" | "BTreeMap", [key, value, ..]) => {
                    let message = format!(
                        "`{}` cannot be the key of a map: write `String`, or an enum without fields that has `#[data]` above it",
                        render_type(key)
                    );
                    inside.push(assert_known(
                        key,
                        quote!(::weir_plugin_sdk::schema::Key<#key>),
                        &[],
                        &message,
                        checks,
                    ));
                    inside.push(schema_known(value, checks));
                }
                ("HashSet", [value, ..]) => inside.push(schema_known(value, checks)),
                (_, arguments) => inside.extend(
                    arguments
                        .iter()
                        .map(|argument| schema_known(argument, checks)),
                ),
            }
        }
        _ => {}
    }
    let message = format!(
        "`{}` has no schema: write `#[data]` above a struct or an enum of your own, or take a type of the table in docs/tools-from-code.md",
        render_type(of)
    );
    assert_known(
        of,
        quote!(::weir_plugin_sdk::schema::Parameter<#of>),
        &inside,
        &message,
        checks,
    )
}

fn output_known(of: &Type, checks: &mut TokenStream) -> TokenStream {
    let mut inside = Vec::new();
    if let Type::Path(path) = of
        && let Some((name, arguments)) = inner(path)
    {
        match (name.to_string().as_str(), arguments.as_slice()) {
            ("Result", [value, rest @ ..]) => {
                inside.push(output_known(value, checks));
                if let [error, ..] = rest {
                    let message = format!(
                        "a tool cannot fail with `{}`: return `Result<_, ToolError>`, or write `impl From<{}> for ToolError`",
                        render_type(error),
                        render_type(error)
                    );
                    let probe = quote!(::weir_plugin_sdk::tools::Failing<#error>);
                    inside.push(assert_known(error, probe, &[], &message, checks));
                }
            }
            ("Answer", arguments) => inside.extend(
                arguments
                    .iter()
                    .map(|argument| output_known(argument, checks)),
            ),
            // An author may have defined a type with one of these names, which may be returned if it has a schema.
            (
                "Option" | "Vec" | "HashMap" | "BTreeMap" | "HashSet" | "BTreeSet" | "VecDeque",
                [_, ..],
            ) => {
                return schema_known(of, checks);
            }
            _ => {}
        }
    }
    let message = format!(
        "a tool cannot return `{}`, which has no schema: write `#[data]` above a struct or an enum of your own, or return a type of the table in docs/tools-from-code.md",
        render_type(of)
    );
    assert_known(
        of,
        quote!(::weir_plugin_sdk::tools::Returned<#of>),
        &inside,
        &message,
        checks,
    )
}

/// Adds one check. It reports nothing if something inside is unknown, since that is reported already.
fn assert_known(
    at: &Type,
    probe: TokenStream,
    inside: &[TokenStream],
    message: &str,
    checks: &mut TokenStream,
) -> TokenStream {
    let known = quote!(<#probe>::KNOWN);
    let silent = (!inside.is_empty()).then(|| quote!(|| !(#(#inside)&&*)));
    let span = at.span();
    checks.extend(quote_spanned! {span=>
        const _: () = {
            #[allow(unused_imports)]
            use ::weir_plugin_sdk::schema::Unknown as _;
            ::core::assert!(#known #silent, #message);
        };
    });
    quote!((#known #(&& #inside)*))
}
