//! The tools of `export!`: a list of entries.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Path, Token, parse::Parser, punctuated::Punctuated, spanned::Spanned};

use crate::mistakes::Mistakes;

pub(crate) fn expand(list: TokenStream) -> TokenStream {
    let paths = match Punctuated::<Path, Token![,]>::parse_terminated.parse2(list) {
        Ok(paths) => paths,
        Err(error) => return error.to_compile_error(),
    };
    let mut mistakes = Mistakes::default();
    let mut seen: Vec<String> = Vec::new();
    let mut entries = Vec::new();
    for path in &paths {
        let name = path.to_token_stream().to_string();
        if seen.contains(&name) {
            mistakes.add(path, format!("`{}` stands there twice: name each tool once", name.replace(' ', "")));
            continue;
        }
        seen.push(name);
        // `#[tool]` made a type of the function's name. Where there is none, the import brings the function alone, and
        // the name of the type is that of the empty enum around it: the error is then the SDK's own.
        entries.push(quote_spanned! {path.span()=> {
            #[allow(non_camel_case_types, dead_code)]
            enum __weir_function {}
            {
                #[allow(unused_imports)]
                use #path as __weir_function;
                ::weir_plugin_sdk::tools::Entry::of::<__weir_function>()
            }
        }});
    }
    if !mistakes.is_empty() {
        let errors = mistakes.into_tokens();
        return quote!({ #errors ::std::vec::Vec::new() });
    }
    quote!(::std::vec![#(#entries),*])
}
