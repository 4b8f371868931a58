//! `#[tool]`: a function becomes a tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, FnArg, Ident, ItemFn, LitBool, LitStr, Pat, ReturnType, Safety, Token, Type,
    meta::ParseNestedMeta,
    parse::{Parse, Parser},
    parse_quote,
};

use crate::{
    arg::{ArgKeys, aliases},
    docs,
    mistakes::{MacroErrors, new_key},
    rules::{ParameterSlot, optional, slot},
    types,
};

const KEYS: [&str; 9] = [
    "name",
    "title",
    "description",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "task",
    "requests",
];
const HINTS: [(&str, &str); 4] = [
    ("read_only", "readOnlyHint"),
    ("destructive", "destructiveHint"),
    ("idempotent", "idempotentHint"),
    ("open_world", "openWorldHint"),
];

/// The keys of `#[tool(…)]`.
#[derive(Default)]
struct ToolKeys {
    name: Option<LitStr>,
    title: Option<String>,
    description: Option<String>,
    hints: Vec<(Ident, &'static str, bool)>,
    requests: Vec<LitStr>,
    task: Option<&'static str>,
}

/// One parameter of the function.
#[expect(
    clippy::large_enum_variant,
    reason = "a function has few of them, and nearly all are arguments"
)]
enum FunctionParameter {
    /// `&Context`.
    Context,
    /// `Option<&Context>`.
    OptionalContext,
    /// An argument of the tool, with its slot and its owned type; true where the function borrows a text.
    Argument {
        slot: ParameterSlot,
        of: Type,
        lent: bool,
    },
}

pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let mut mistakes = MacroErrors::default();
            let keyword = item
                .clone()
                .into_iter()
                .find(|token| matches!(token, proc_macro2::TokenTree::Ident(_)));
            let word = keyword
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            if matches!(
                word.as_str(),
                "fn" | "async" | "const" | "unsafe" | "extern"
            ) {
                // A function that does not parse: rustc explains it better.
                return item;
            }
            mistakes.add(
                keyword,
                "`#[tool]` is for a function; write `#[data]` above a struct or an enum",
            );
            let mistakes = mistakes.into_tokens();
            return quote!(#mistakes #item);
        }
    };
    let mut mistakes = MacroErrors::default();
    let keys = ToolKeys::read(attributes, &mut mistakes);
    signature(&function, &mut mistakes);
    let parameters = if mistakes.is_empty() {
        parameters(&function, &mut mistakes)
    } else {
        Vec::new()
    };
    types::check_return(&function.sig.output, &mut mistakes);
    if !mistakes.is_empty() {
        return stand_in(&function, mistakes);
    }
    tool(&function, &keys, &parameters)
}

impl ToolKeys {
    fn read(attributes: TokenStream, mistakes: &mut MacroErrors) -> Self {
        let mut keys = Self::default();
        let mut seen: Vec<String> = Vec::new();
        let parser = syn::meta::parser(|meta| {
            let key = new_key(&meta, "#[tool(…)]", &KEYS, &mut seen)?;
            match key.to_string().as_str() {
                "name" => {
                    let name: LitStr = meta.value()?.parse()?;
                    tool_name(&name.value())
                        .map_err(|message| syn::Error::new(name.span(), message))?;
                    keys.name = Some(name);
                }
                "title" => keys.title = Some(meta.value()?.parse::<LitStr>()?.value()),
                "description" => keys.description = Some(meta.value()?.parse::<LitStr>()?.value()),
                "requests" => keys.requests = requests(&meta)?,
                "task" => keys.task = Some(task(&meta)?),
                other => {
                    let hint = HINTS
                        .iter()
                        .find(|(key, _)| *key == other)
                        .map_or("", |(_, hint)| *hint);
                    let is = if meta.input.peek(Token![=]) {
                        meta.value()?.parse::<LitBool>()?.value()
                    } else {
                        true
                    };
                    keys.hints.push((key, hint, is));
                }
            }
            Ok(())
        });
        if let Err(error) = parser.parse2(attributes) {
            mistakes.push(error);
        }
        let is = |hint: &str| keys.hints.iter().find(|(key, _, is)| key == hint && *is);
        if let (Some(_), Some((destructive, ..))) = (is("read_only"), is("destructive")) {
            mistakes.add(
                destructive,
                "a tool that only reads destroys nothing: write `read_only` or `destructive`",
            );
        }
        keys
    }
}

/// Reads `task`, or `task = "required"`.
fn task(meta: &ParseNestedMeta<'_>) -> syn::Result<&'static str> {
    if !meta.input.peek(Token![=]) {
        return Ok("optional");
    }
    let support: LitStr = meta.value()?.parse()?;
    match support.value().as_str() {
        "optional" => Ok("optional"),
        "required" => Ok("required"),
        _ => Err(syn::Error::new(
            support.span(),
            "write `task`, or `task = \"required\"`",
        )),
    }
}

/// Reads `requests("sql", "http")`.
fn requests(meta: &ParseNestedMeta<'_>) -> syn::Result<Vec<LitStr>> {
    const IMPORTS: [&str; 3] = ["sql", "http", "files"];
    let content;
    syn::parenthesized!(content in meta.input);
    let texts = content.parse_terminated(<LitStr as Parse>::parse, Token![,])?;
    match texts
        .iter()
        .find(|text| !IMPORTS.contains(&text.value().as_str()))
    {
        Some(text) => Err(syn::Error::new(
            text.span(),
            "write \"sql\", \"http\" or \"files\"",
        )),
        None => Ok(texts.into_iter().collect()),
    }
}

fn tool_name(name: &str) -> Result<(), String> {
    let good = (1..=64).contains(&name.len())
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
    if good {
        return Ok(());
    }
    Err("a tool's name has 1 to 64 of A-Z, a-z, 0-9, `_` and `-`; some clients drop the whole list for another one"
        .to_owned())
}

/// Refuses what no function that is a tool may have.
fn signature(function: &ItemFn, mistakes: &mut MacroErrors) {
    let signature = &function.sig;
    if !signature.generics.params.is_empty() {
        let message = "a tool's types are its schema, so it has no generics: name the types";
        mistakes.add(&signature.generics, message);
    }
    if let Safety::Unsafe(keyword) = &signature.safety {
        mistakes.add(
            keyword,
            "a tool is called by agents, which promise nothing: leave `unsafe` out",
        );
    }
    if let Some(abi) = &signature.abi {
        mistakes.add(abi, "a tool is called by the gateway: leave `extern` out");
    }
    if let Some(receiver) = signature.receiver() {
        mistakes.add(
            receiver,
            "a tool is a function and has no `self`: write a parameter, or keep what it needs in a `thread_local!`",
        );
    }
    if signature.receiver().is_none()
        && let Err(message) = tool_name(&bare(&signature.ident))
    {
        mistakes.add(
            &signature.ident,
            format!("{message}: write `#[tool(name = \"…\")]`"),
        );
    }
}

fn parameters(function: &ItemFn, mistakes: &mut MacroErrors) -> Vec<FunctionParameter> {
    let mut parameters = Vec::new();
    let mut has_context = false;
    let mut flags: Vec<String> = Vec::new();
    for (at, input) in function.sig.inputs.iter().enumerate() {
        let FnArg::Typed(typed) = input else { continue };
        let Pat::Ident(pattern) = &*typed.pat else {
            mistakes.add(
                &typed.pat,
                "a parameter's name is its name for the agent: write one name, and take it apart inside",
            );
            continue;
        };
        if pattern.by_ref.is_some() || pattern.subpat.is_some() {
            mistakes.add(
                pattern,
                "a parameter's name is its name for the agent: write only the name",
            );
            continue;
        }
        let name = bare(&pattern.ident);
        if let Some(optional) = context(&typed.ty) {
            if has_context {
                mistakes.add(&typed.ty, "a tool has one context: leave this one out");
            }
            has_context = true;
            if let Some(arg) = typed
                .attrs
                .iter()
                .find(|attribute| attribute.path().is_ident("arg"))
            {
                mistakes.add(
                    arg,
                    "the context is not an argument of the tool: leave `#[arg(…)]` out",
                );
            }
            parameters.push(if optional {
                FunctionParameter::OptionalContext
            } else {
                FunctionParameter::Context
            });
            continue;
        }
        if names_context(&typed.ty) {
            mistakes.add(&typed.ty, "the context is lent to a tool: write `&Context`");
            continue;
        }
        if name == "ctx" {
            mistakes.add(
                &typed.ty,
                "`ctx` is the name of the context: write `ctx: &Context`, or name the parameter otherwise",
            );
            continue;
        }
        let (of, lent) = types::owned(&typed.ty);
        if !lent {
            types::check(&of, mistakes);
        }
        let arg = ArgKeys::read(&typed.attrs, mistakes);
        for (flag, span) in aliases(&arg) {
            if flags.contains(&flag) {
                let message =
                    format!("`{flag}` is the alias of another parameter already: write another");
                mistakes.push(syn::Error::new(span, message));
            }
            flags.push(flag);
        }
        let mut slot = slot(at, name, &of, &arg, false);
        slot.property.extend(quote!(.parameter()));
        slot.property.extend(command_line(&arg));
        parameters.push(FunctionParameter::Argument { slot, of, lent });
    }
    parameters
}

fn command_line(arg: &ArgKeys) -> Option<TokenStream> {
    let positional = arg.positional.is_some();
    if !positional && arg.option.is_none() {
        return None;
    }
    let option = arg.option.as_ref().map(|option| &option.value);
    let aliases = option
        .map(|option| option.aliases.as_slice())
        .unwrap_or_default();
    let metavar = optional(
        option
            .and_then(|option| option.metavar.as_ref())
            .map(LitStr::value)
            .as_deref(),
    );
    Some(quote! {
        .cli(::weir_plugin_sdk::schema::Cli { positional: #positional, aliases: &[#(#aliases),*], metavar: #metavar })
    })
}

/// Recognizes `&Context` (false) and `Option<&Context>` (true).
fn context(of: &Type) -> Option<bool> {
    let is_context = |of: &Type| matches!(of, Type::Reference(reference) if reference.mutability.is_none() && is_named(&reference.elem, "Context"));
    if is_context(of) {
        return Some(false);
    }
    let Type::Path(path) = of else { return None };
    let last = path
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Option")?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(syn::GenericArgument::Type(of)) if is_context(of) => Some(true),
        _ => None,
    }
}

fn names_context(of: &Type) -> bool {
    match of {
        Type::Reference(reference) => names_context(&reference.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            last.ident == "Context"
                || matches!(&last.arguments, syn::PathArguments::AngleBracketed(arguments) if last.ident == "Option"
                    && matches!(arguments.args.first(), Some(syn::GenericArgument::Type(of)) if names_context(of)))
        }),
        _ => false,
    }
}

fn is_named(of: &Type, name: &str) -> bool {
    matches!(of, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

fn bare(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

fn tool(function: &ItemFn, keys: &ToolKeys, parameters: &[FunctionParameter]) -> TokenStream {
    let (name, visibility) = (&function.sig.ident, &function.vis);
    let conditions: Vec<&Attribute> = function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .collect();
    let plain = plain(function);
    let items = parameters.iter().filter_map(|parameter| match parameter {
        FunctionParameter::Argument { slot, .. } => Some(&slot.items),
        _ => None,
    });
    let definition = definition(function, keys, parameters);
    let (returned, call) = (returned(&function.sig.output), call(function, parameters));
    quote! {
        #plain

        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility enum #name {}

        #(#conditions)*
        const _: () = {
            #(#items)*
            #returned

            impl ::weir_plugin_sdk::tools::Tool for #name {
                const DEFINITION: ::weir_plugin_sdk::tools::Definition = #definition;

                #call
            }
        };
    }
}

/// Returns the function without the attributes that only the macro reads.
fn plain(function: &ItemFn) -> ItemFn {
    let mut plain = function.clone();
    for input in &mut plain.sig.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.retain(|attribute| {
                !attribute.path().is_ident("arg") && !attribute.path().is_ident("doc")
            });
        }
    }
    plain
}

fn definition(function: &ItemFn, keys: &ToolKeys, parameters: &[FunctionParameter]) -> TokenStream {
    let name = keys
        .name
        .as_ref()
        .map_or_else(|| bare(&function.sig.ident), LitStr::value);
    let (title, description) =
        match docs::text(&function.attrs).map(|text| docs::title_and_description(&text)) {
            Some((title, description)) => (title, Some(description)),
            None => (None, None),
        };
    let title = optional(keys.title.clone().or(title).as_deref());
    let description = optional(keys.description.clone().or(description).as_deref());
    let hints = keys.hints.iter().map(|(_, hint, is)| quote!((#hint, #is)));
    let requests = &keys.requests;
    let task = optional(keys.task);
    let properties = parameters.iter().filter_map(|parameter| match parameter {
        FunctionParameter::Argument { slot, .. } => Some(&slot.property),
        _ => None,
    });
    quote! {
        ::weir_plugin_sdk::tools::Definition {
            name: #name,
            title: #title,
            description: #description,
            annotations: &[#(#hints),*],
            requests: &[#(#requests),*],
            task: #task,
            input: ::core::option::Option::None,
            meta: ::core::option::Option::None,
            parameters: &const { [#(#properties),*] },
            output: __WEIR_RETURNED.output,
        }
    }
}

fn returned(output: &ReturnType) -> TokenStream {
    let of: Type = match output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, of) => types::owned_return(of),
    };
    let known = types::known_return(&of);
    quote! {
        #known
        const __WEIR_RETURNED: ::weir_plugin_sdk::tools::Returned<#of> = {
            #[allow(unused_imports)]
            use ::weir_plugin_sdk::schema::Unknown as _;
            <::weir_plugin_sdk::tools::Returned<#of>>::OF
        };
    }
}

fn call(function: &ItemFn, parameters: &[FunctionParameter]) -> TokenStream {
    let name = &function.sig.ident;
    let fields = quote!(__weir_arguments);
    let (mut reads, mut given) = (Vec::new(), Vec::new());
    for (at, parameter) in parameters.iter().enumerate() {
        let value = format_ident!("__weir_{at}");
        given.push(match parameter {
            FunctionParameter::Context => quote!(__weir_context),
            FunctionParameter::OptionalContext => {
                quote!(::core::option::Option::Some(__weir_context))
            }
            FunctionParameter::Argument { lent: true, .. } => quote!(&#value),
            FunctionParameter::Argument { .. } => quote!(#value),
        });
        if let FunctionParameter::Argument { slot, of, .. } = parameter {
            let take = slot.take(&fields);
            reads.push(quote!(let #value: #of = #take;));
        }
    }
    let called = quote!(#name(#(#given),*));
    let answer = if function.sig.asyncness.is_some() {
        quote!(::weir_plugin_sdk::tools::poll_in_place(#called)?)
    } else {
        called
    };
    let fields = if reads.is_empty() {
        quote!(_)
    } else {
        quote!(mut #fields)
    };
    quote! {
        #[allow(unused_variables, clippy::unit_arg, clippy::let_unit_value)]
        fn call(
            #fields: ::weir_plugin_sdk::schema::Fields,
            __weir_context: &::weir_plugin_sdk::Context,
        ) -> ::weir_plugin_sdk::error::Result<::weir_plugin_sdk::tools::Reply> {
            #(#reads)*
            (__WEIR_RETURNED.reply)(#answer)
        }
    }
}

/// Returns the mistakes, and enough of the tool that `export!` does not complain about it too.
fn stand_in(function: &ItemFn, mistakes: MacroErrors) -> TokenStream {
    let (name, visibility, mistakes) = (&function.sig.ident, &function.vis, mistakes.into_tokens());
    let text = bare(name);
    // The plain function keeps imports used and callers working. With a `self` it would be no function at all.
    let plain = function.sig.receiver().is_none().then(|| plain(function));
    let plain = plain.map(|plain| quote!(#[allow(dead_code)] #plain));
    quote! {
        #mistakes
        #plain

        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #visibility enum #name {}

        impl ::weir_plugin_sdk::tools::Tool for #name {
            const DEFINITION: ::weir_plugin_sdk::tools::Definition = ::weir_plugin_sdk::tools::Definition {
                name: #text,
                title: ::core::option::Option::None,
                description: ::core::option::Option::None,
                annotations: &[],
                requests: &[],
                task: ::core::option::Option::None,
                input: ::core::option::Option::None,
                meta: ::core::option::Option::None,
                parameters: &[],
                output: ::core::option::Option::None,
            };

            fn call(
                _: ::weir_plugin_sdk::schema::Fields,
                _: &::weir_plugin_sdk::Context,
            ) -> ::weir_plugin_sdk::error::Result<::weir_plugin_sdk::tools::Reply> {
                ::core::unreachable!()
            }
        }
    }
}
