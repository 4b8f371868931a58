//! The table of error codes, and the page of the docs that is made from it.
//!
//! The table is defined with the connections, the lowest crate that names a code.

pub use weir_connections::code::{FailureCode, TABLE};

/// Writes `docs/errors.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Errors\n\nGenerated from `gateway/connections/src/code.rs`; `WEIR_BLESS=1 cargo test` writes it anew.\n\n\
         A tool that ran or was refused answers a normal result with `isError: true` and `structuredContent`\n\
         `{code, call_id, message?, field?, reason?, errors?, retry_after_ms?, outcome?}`. `outcome` stands on failed writes:\n\
         `none` (nothing was written) or `unknown` (it may have been; look before you repeat). An unknown tool and a malformed\n\
         request are JSON-RPC errors instead.\n\nWhere a tool is called by plain HTTP (`/rest/…`), the answer has the status of its code.\n\n| code | status | meaning | what to do |\n|---|---|---|---|\n",
    );
    for row in &TABLE {
        page.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            row.label, row.status, row.meaning, row.advice
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(path, page()).expect("written");
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            page(),
            "run the tests with WEIR_BLESS=1"
        );
    }
}
