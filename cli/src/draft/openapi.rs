//! `weir draft --openapi` and `--toolbox`: the document of an HTTP API, or the configuration of another gateway, as a contract.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use weir_contracts::{
    form::FILE_BYTES_MAX,
    import::{ImportOptions, ImportRemark, ImportedContract, openapi, toolbox},
    problem::FileProblem,
};

use crate::{
    Done, block_on, compile, hosts,
    offered::{indented, safe},
};

/// Exit code of a contract that lacks part of the document. 1 is a failure: there is no contract then.
const LEFT_OUT: u8 = 3;
const PATIENCE: Duration = Duration::from_secs(60);
/// Examples shown of each reason.
const EXAMPLES: usize = 3;

/// Exit code 0 where every requested operation has a tool, 3 where some have none, 1 where there is no contract.
#[derive(Args)]
#[command(next_help_heading = "Of an HTTP API")]
pub(super) struct DraftOpenapiArgs {
    /// A document of OpenAPI 3.0 or 3.1, JSON or YAML: a file, `-` for stdin, or a URL. Exit code 3: some operations have no
    /// tool
    #[arg(long = "openapi", value_name = "DOCUMENT", group = "foreign", conflicts_with_all = ["file", "connection", "table", "url"])]
    document: Option<String>,
    /// A configuration of MCP Toolbox for Databases (tools.yaml). Exit code 3: some tools are left out
    #[arg(long, value_name = "FILE", group = "foreign", conflicts_with_all = ["file", "connection", "table", "url"])]
    toolbox: Option<PathBuf>,
    /// Take only these operations: a tool's name, an operation's id, a path, `METHOD /path` or a tag; `*` for anything
    #[arg(long, value_name = "PATTERN", num_args = 1.., requires = "document", conflicts_with_all = ["file", "connection", "url"])]
    only: Vec<String>,
    /// A header for a URL, such as 'Authorization: Bearer ${env:TOKEN}'
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "document", conflicts_with_all = ["file", "connection", "url"])]
    headers: Vec<String>,
    /// What is printed on stdout
    #[arg(long, value_enum, default_value_t = DraftOutput::Contract, requires = "foreign")]
    print: DraftOutput,
    /// Report everything that was changed or left out, instead of a few examples. For a database, draft every table and
    /// view as one contract
    #[arg(long, conflicts_with = "url")]
    pub(super) all: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DraftOutput {
    Contract,
    /// The `[connections.NAME]` of weir.toml
    Connection,
}

impl DraftOpenapiArgs {
    /// Drafts a contract if a document is named.
    pub(super) fn run(&self, name: Option<&str>) -> Option<Done> {
        if let Some(file) = &self.toolbox {
            return Some(self.translate(file, name));
        }
        self.document
            .as_deref()
            .map(|document| self.draft(document, name))
    }

    fn translate(&self, file: &Path, name: Option<&str>) -> Done {
        let text = compile::read(file)?;
        self.print(toolbox(&file.display().to_string(), &text, name), "parts")
    }

    fn draft(&self, document: &str, name: Option<&str>) -> Done {
        let is_url = document.starts_with("http://") || document.starts_with("https://");
        let text = match is_url {
            true => block_on(self.fetched(document))??,
            false => compile::read(Path::new(document))?,
        };
        let url = is_url.then_some(document);
        let wanted = ImportOptions {
            name,
            only: &self.only,
            url,
        };
        self.print(openapi(document, &text, &wanted), "operations")
    }

    /// Prints the requested output, and a report on the parts that are called `what`.
    fn print(&self, imported: Result<ImportedContract, Vec<FileProblem>>, what: &str) -> Done {
        let imported =
            imported.map_err(|problems| problems.into_iter().map(printable).collect::<Vec<_>>())?;
        match self.print {
            DraftOutput::Contract => {
                print!("{}", imported.contract);
                eprintln!("For weir.toml:\n\n{}", imported.connection);
            }
            DraftOutput::Connection => print!("{}", imported.connection),
        }
        self.report(&imported, what);
        let whole = imported.remarks.iter().all(|remark| !remark.left_out);
        Ok(if whole {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(LEFT_OUT)
        })
    }

    fn report(&self, imported: &ImportedContract, what: &str) {
        let (left_out, noted): (Vec<&ImportRemark>, Vec<&ImportRemark>) =
            imported.remarks.iter().partition(|one| one.left_out);
        eprintln!(
            "{} tools; {} {what} left out, {} notes",
            imported.tools,
            left_out.len(),
            noted.len()
        );
        for (what, remarks) in [("left out", left_out), ("note", noted)] {
            let mut by_reason: BTreeMap<&str, Vec<&ImportRemark>> = BTreeMap::new();
            remarks
                .into_iter()
                .for_each(|remark| by_reason.entry(remark.reason).or_default().push(remark));
            for (reason, remarks) in by_reason {
                eprintln!("{what}, {reason}: {}", remarks.len());
                let shown = if self.all { remarks.len() } else { EXAMPLES };
                for remark in remarks.iter().take(shown) {
                    eprintln!("{}", in_words(remark));
                }
                if remarks.len() > shown {
                    eprintln!("    … {} more; --all shows them", remarks.len() - shown);
                }
            }
        }
    }

    /// Fetches the document as `weir extract` reaches a URL: no redirect is followed, proxies from the environment are
    /// ignored, and every answer is bounded.
    async fn fetched(&self, url: &str) -> anyhow::Result<String> {
        weir_connections::http::install_tls();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(PATIENCE)
            .build()?;
        let mut request = client.get(url).header(
            "accept",
            "application/json, application/yaml, text/yaml, */*;q=0.1",
        );
        for header in &self.headers {
            let (name, value) = header
                .split_once(':')
                .with_context(|| format!("a header is `NAME: VALUE`, not `{header}`"))?;
            request = request.header(name.trim(), hosts::expanded(value.trim())?);
        }
        let mut response = request
            .send()
            .await
            .with_context(|| format!("{url} cannot be reached"))?;
        let status = response.status();
        ensure!(
            !status.is_redirection(),
            "{url} leads elsewhere, which is not followed: name the address that it leads to"
        );
        ensure!(status.is_success(), "{url} answered {status}");
        let mut body = Vec::new();
        while let Some(part) = response
            .chunk()
            .await
            .with_context(|| format!("{url} ended early"))?
        {
            ensure!(
                body.len() + part.len() <= FILE_BYTES_MAX,
                "{url} has more than {} MiB",
                FILE_BYTES_MAX >> 20
            );
            body.extend_from_slice(&part);
        }
        String::from_utf8(body).with_context(|| format!("{url} is not UTF-8"))
    }
}

/// Writes a remark as lines of the report. Its words are the document's, and a terminal may print all of them.
fn in_words(remark: &ImportRemark) -> String {
    let ImportRemark {
        place,
        operation,
        message,
        ..
    } = remark;
    let colon = if operation.is_empty() { "" } else { ": " };
    format!(
        "    {}{colon}{}\n        at {}",
        indented(operation, "        "),
        indented(message, "        "),
        indented(place, "        ")
    )
}

/// Returns a problem whose words a terminal may print.
fn printable(problem: FileProblem) -> FileProblem {
    FileProblem {
        place: safe(&problem.place),
        message: safe(&problem.message),
        ..problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path, a media type and a reference of a document are shown in the report.
    #[test]
    fn no_word_of_a_document_moves_the_cursor() {
        let document = r##"{"openapi": "3.1.0", "info": {"title": "t"}, "servers": [{"url": "https://a.example"}], "paths": {
            "/ok": {"get": {"responses": {"204": {}}}},
            "/\u001b[2J\nleft out": {"get": {"responses": {"200": {"content": {"image/\u001b[1A": {}}}}}},
            "/b": {"get": {"parameters": [{"$ref": "#/\u001b[8m"}]}}}}"##;
        let imported =
            openapi("document", document, &ImportOptions::default()).expect("a contract");
        let report: Vec<String> = imported.remarks.iter().map(in_words).collect();
        assert_eq!(
            report,
            [
                "    GET /\\u{1b}[2J\n        left out: the answer is image/\\u{1b}[1A, and only JSON is read\n        \
                 at /paths/~1\\u{1b}[2J\n        left out/get/responses",
                "    GET /b: the reference #/\\u{1b}[8m leads nowhere\n        at /paths/~1b/get/parameters/0",
            ]
        );
        let problems = openapi(
            "document",
            &document.replace("/ok", "ok"),
            &ImportOptions::default(),
        )
        .expect_err("no operation");
        let lines: Vec<String> = problems
            .into_iter()
            .map(|problem| printable(problem).to_string())
            .collect();
        assert!(
            lines.len() > 2 && !lines.concat().contains('\u{1b}'),
            "{lines:?}"
        );
    }
}
