//! The tools of `export!`: a list of entries.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Path, Token, parse::Parser, punctuated::Punctuated, spanned::Spanned};

use crate::mistakes::MacroErrors;

pub(crate) fn expand(list: TokenStream) -> TokenStream {
    let paths = match Punctuated::<Path, Token![,]>::parse_terminated.parse2(list) {
        Ok(paths) => paths,
        Err(error) => return error.to_compile_error(),
    };
    let mut mistakes = MacroErrors::default();
    let mut seen: Vec<String> = Vec::new();
    let mut entries = Vec::new();
    for path in &paths {
        let name = name_of(path);
        if seen.contains(&name) {
            mistakes.add(
                path,
                format!("`{}` is listed twice: name each tool once", name),
            );
            continue;
        }
        seen.push(name);
        // `#[tool]` made a type with the function's name. Without it, the import brings only the function, and the
        // type's name resolves to the empty enum around it, which is not a tool.
        let shown = name_of(path);
        let message = format!("`{shown}` is not a tool: write `#[tool]` above the function");
        entries.push(quote_spanned! {path.span()=> {
            #[allow(non_camel_case_types, dead_code)]
            enum __weir_function {}
            {
                #[allow(unused_imports)]
                use #path as __weir_function;
                #[allow(unused_imports)]
                use ::weir_plugin_sdk::tools::NoTool as _;
                const _: () = ::core::assert!(<::weir_plugin_sdk::tools::Function<__weir_function>>::KNOWN, #message);
                <::weir_plugin_sdk::tools::Function<__weir_function>>::ENTRY
            }
        }});
    }
    if !mistakes.is_empty() {
        let errors = mistakes.into_tokens();
        return quote!({ #errors ::std::vec::Vec::new() });
    }
    quote!(::std::vec![#(#entries),*])
}

fn name_of(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}
