//! The commands that the pages of the documentation show: the program takes each of them, and those that this machine can run are run.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use weir_tests::{Admin, House, place, read_output};

use crate::{approvals, sample};

/// A block of `sh` in a page.
struct ShellBlock {
    page: String,
    /// Its place among the blocks of the page, from 1.
    number: usize,
    text: String,
}

/// A block that is run here as it is, except for what a reader has to fill in.
struct RunBlock {
    page: &'static str,
    number: usize,
    /// What is run before it.
    before: &'static str,
    /// What the page shows, and what replaces it here.
    filled: &'static [(&'static str, &'static str)],
}

/// Holds a change of `support` that breaks its callers as a draft.
const DRAFT: &str = "
held=$(weir contracts submit shorter.yaml --json)
draft=$(field draft <<< \"$held\") fingerprint=$(field fingerprint <<< \"$held\")
";
const CHANGE_FILLED: &[(&str, &str)] = &[
    ("publish d_4f1c…", "publish $draft"),
    ("show d_4f1c…", "show $draft"),
    ("9a0e…", "$fingerprint"),
    // Another draft is discarded than the one that is published.
    (
        "discard d_4f1c…",
        "discard $(weir contracts submit support.yaml --hold --json | field draft)",
    ),
    ("--to 1.3.0", "--to 1.0.0"),
];
const VERSIONS_FILLED: &[(&str, &str)] = &[
    ("d_4f1c…", "$draft"),
    ("9a0e…", "$fingerprint"),
    // These days will have passed some time.
    ("2027-03-31", "$(date --date '+100 days' +%F)"),
    ("2027-06-30", "$(date --date '+200 days' +%F)"),
];

const RUN: &[RunBlock] = &[
    run(
        "docs/admin.md",
        1,
        "",
        &[
            ("weiradm_…", "$(cat state/admin.token)"),
            (
                "revoke ID",
                "revoke $(weir admins list | awk '/bea/ { print $1 }')",
            ),
        ],
    ),
    run(
        "docs/agent-keys.md",
        1,
        "",
        &[(
            "3f2a90b1c4d5",
            "$(weir keys list | awk '/probe/ { print $1 }')",
        )],
    ),
    run(
        "docs/approvals.md",
        1,
        "
for id in 1 2; do command weir call --url $gateway/mcp delete_item --id $id || true; done
plan() { weir approvals list --json | grep --only-matching 'p_[0-9a-f]*' | sed --quiet \"$1 p\"; }
first=$(plan 1) second=$(plan 2)
",
        &[
            ("reject p_5b1f09c2a77d3e10", "reject $second"),
            ("p_5b1f09c2a77d3e10", "$first"),
            (
                "9a0e…",
                "$(weir approvals show $first --json | field fingerprint)",
            ),
        ],
    ),
    run(
        "docs/audit.md",
        1,
        "weir keys create --agent ann\ncd state/audit/*/\n",
        &[],
    ),
    run("docs/change-a-contract.md", 1, "", &[]),
    run("docs/change-a-contract.md", 2, DRAFT, CHANGE_FILLED),
    run("docs/console.md", 1, "", &[]),
    run(
        "docs/contract-format.md",
        1,
        "mkdir .vscode
export WEIR_ADMIN_KEY=$(cat state/admin.token) WEIR_ADMIN_URL=$(cat state/admin.url)
",
        &[("curl -H", "curl --silent --fail -H")],
    ),
    run("docs/extract.md", 2, "", &[]),
    run(
        "docs/import.md",
        1,
        "",
        &[("https://api.example.org/openapi.json", "petstore.yaml")],
    ),
    run(
        "docs/plugin-host.md",
        1,
        "mkdir apart\ncp \"$adapters/sheet.wasm\" apart/deploys.wasm\ncd apart\nunset WEIR_CONFIG\n",
        &[("plugins/deploys.wasm", "deploys.wasm")],
    ),
    run(
        "docs/protocol.md",
        1,
        "",
        &[("curl -s", "curl --silent --fail --show-error")],
    ),
    run(
        "docs/prove.md",
        1,
        "weir keys create --agent ann\n",
        &[("tail --follow", "tail")],
    ),
    run(
        "docs/rest.md",
        1,
        "",
        &[("curl -s", "curl --silent --fail --show-error")],
    ),
    run("docs/versions.md", 1, DRAFT, VERSIONS_FILLED),
    run("docs/views.md", 1, "", &[]),
    run("docs/views.md", 2, "", &[]),
    run("docs/views.md", 3, "", &[]),
    run("docs/views.md", 4, "", &[("FILE", "airports.yaml")]),
];

/// Blocks that suites run with more around them: each with the test that does it.
const ELSEWHERE: &[(&str, &[usize], &str)] = &[
    (
        "README.md",
        &[1, 2],
        "packages::a_newcomer_follows_the_readme_with_the_npm_package",
    ),
    (
        "docs/run.md",
        &[2],
        "databases::a_database_file_is_served_at_once_and_says_what_it_is",
    ),
    (
        "docs/run.md",
        &[3],
        "packages::the_npm_package_is_installed_called_and_served",
    ),
    (
        "docs/writing-a-plugin.md",
        &[1, 2, 3],
        "author::the_guide_says_what_works",
    ),
];

/// Blocks whose commands are only parsed, with the reason.
const READ: &[(&str, &[usize], &str)] = &[
    ("README.md", &[3], "it is this run"),
    ("docs/clients.md", &[1], "it installs 1.8 GB"),
    ("docs/contracts-from-code.md", &[1], "it needs two builds"),
    ("docs/deploy.md", &[1, 2], "it needs Kubernetes"),
    ("docs/deploy.md", &[3], "it needs Docker"),
    (
        "docs/extract.md",
        &[1, 3],
        "it fetches other people's servers",
    ),
    (
        "docs/overlays.md",
        &[1],
        "it fetches other people's servers",
    ),
    (
        "docs/run.md",
        &[1, 4, 5, 7],
        "it installs for the whole machine",
    ),
    ("docs/run.md", &[6], "it needs Docker"),
    (
        "docs/upstreams.md",
        &[1, 2, 3, 4],
        "it needs other people's servers",
    ),
];

/// The words before the name of the program where it runs somewhere else.
const ELSEWHERE_PREFIXES: [&str; 3] = [
    "sudo -u weir ",
    "docker exec weir ",
    "docker compose exec node1 ",
];

/// Ends a script at the first command that fails. `weir` ends with 3 where a person has to agree.
const STRICT: &str = r#"
set -euo pipefail
weir() {
    local code=0
    command weir "$@" || code=$?
    case $code in 0 | 3) ;; *) echo "weir $* ended with $code" >&2; return 1 ;; esac
}
field() { grep --only-matching "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }
"#;

/// Asks for help instead of running, which refuses a word or a flag that the command does not have. `weir call` is left out:
/// its flags come from a server.
const READING: &str = r#"
weir() {
    [ "$1" = call ] && return
    local words=() word
    for word in "$@"; do [ "$word" = -- ] && break; words+=("$word"); done
    command weir "${words[@]}" --help > /dev/null
}
"#;

const SUPPORT: &str = r#"
contract: support
collections:
  tickets:
    adapter: sheet
    settings: { connection: data, path: tickets.csv }
    columns: [id, subject]
    key: [id]
tools:
  - tool: lookup_ticket
    description: Returns the ticket with a number.
    verb: lookup
    collection: tickets
    fields:
      - { name: id, type: text, required: true, help: "Number of the ticket, such as T1." }
"#;

const ORDERS: &str = r#"
openapi: 3.1.0
info: { title: Orders, version: 1.0.0 }
servers: [{ url: "https://api.example.org" }]
paths:
  /orders:
    get:
      operationId: listOrders
      summary: Lists orders.
      responses:
        "200":
          description: The orders.
          content: { application/json: { schema: { type: array, items: { type: object, properties: { id: { type: integer } } } } } }
"#;

const fn run(
    page: &'static str,
    number: usize,
    before: &'static str,
    filled: &'static [(&'static str, &'static str)],
) -> RunBlock {
    RunBlock {
        page,
        number,
        before,
        filled,
    }
}

#[test]
fn every_command_of_the_pages_is_one_that_the_program_takes() {
    let desk = PageDesk::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("contracts")).expect("a folder in the temporary folder");
    let mut read = 0;
    let mut problems = Vec::new();
    for block in shell_blocks() {
        for line in block.text.replace("\\\n", " ").lines() {
            let command = ELSEWHERE_PREFIXES
                .iter()
                .find_map(|prefix| line.strip_prefix(prefix))
                .unwrap_or(line);
            if !command.starts_with("weir ") {
                continue;
            }
            read += 1;
            let script = format!("{READING}{}", command.replace("NUMBER", "1"));
            let (code, _, err) = desk.run(&script, folder.path());
            if code != 0 {
                problems.push(format!("{}: {command}\n{err}", block.page));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(read > 80, "{read} commands were found");
}

#[test]
fn every_block_of_the_pages_is_run_or_has_a_reason() {
    let shown: BTreeSet<(String, usize)> = shell_blocks()
        .into_iter()
        .map(|block| (block.page, block.number))
        .collect();
    let run = RUN.iter().map(|block| (block.page, block.number));
    let rest = ELSEWHERE.iter().chain(READ);
    let rest = rest.flat_map(|(page, numbers, _)| numbers.iter().map(|number| (*page, *number)));
    let listed: Vec<(String, usize)> = run
        .chain(rest)
        .map(|(page, number)| (page.to_owned(), number))
        .collect();
    let known: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(known.len(), listed.len(), "a block is listed once");
    assert_eq!(shown, known);
    for (page, _, case) in ELSEWHERE {
        let (suite, name) = case.split_once("::").expect("a suite and its test");
        let suite = place::repository().join(format!("tests/suites/{suite}.rs"));
        let source = fs::read_to_string(suite).expect("the suite");
        assert!(source.contains(&format!("fn {name}()")), "{page}: {case}");
    }
}

#[test]
fn the_pages_of_keys_and_records_run() {
    run_pages(&[
        "admin",
        "agent-keys",
        "approvals",
        "audit",
        "console",
        "prove",
    ]);
}

#[test]
fn the_pages_of_contracts_run() {
    run_pages(&["change-a-contract", "contract-format", "import", "versions"]);
}

#[test]
fn the_pages_of_callers_run() {
    run_pages(&["extract", "plugin-host", "protocol", "rest", "views"]);
}

fn run_pages(pages: &[&str]) {
    let shown = shell_blocks();
    for page in pages {
        let page = format!("docs/{page}.md");
        let blocks = RUN.iter().filter(|block| block.page == page);
        let mut ran = 0;
        for block in blocks {
            let text = shown
                .iter()
                .find(|other| other.page == page && other.number == block.number);
            run_block(block, &text.expect("the page shows it").text);
            ran += 1;
        }
        assert!(ran > 0, "{page} has a block that is run");
    }
}

/// Runs a block in its own folder, where a gateway serves three contracts.
fn run_block(block: &RunBlock, text: &str) {
    let desk = PageDesk::new();
    let gateway = desk.house.serve();
    for contract in ["airports", "support", "items"] {
        let file = format!("{contract}.yaml");
        desk.house.succeed(&["contracts", "submit", &file]);
    }
    let mut text = text.to_owned();
    for (shown, here) in block.filled {
        assert!(text.contains(shown), "{}: {shown}", block.page);
        text = text.replace(shown, here);
    }
    let text = text
        .replace("http://127.0.0.1:8484", &gateway.base)
        .replace("http://127.0.0.1:8485", &Admin::of(&desk.house).url);
    let script = format!(
        "{STRICT}gateway={} adapters={}\n{}\n{text}",
        gateway.base,
        place::plugins().display(),
        block.before
    );
    let (code, out, err) = desk.run(&script, desk.house.path());
    assert_eq!(code, 0, "{} {}: {out}\n{err}", block.page, block.number);
}

/// A folder with contracts that are not yet served, and a shell that finds `weir`.
struct PageDesk {
    house: House,
    /// The folder of the program.
    programs: PathBuf,
}

impl PageDesk {
    fn new() -> Self {
        let shorter = SUPPORT.replace("required: true,", "required: true, max_length: 30,");
        let house = House::new()
            .sheets()
            .config(
                "[views.reading]\ncontracts = [\"airports\"]\n[admin]\nlisten = \"127.0.0.1:0\"",
            )
            .file("airports.yaml", sample::CONTRACT)
            .file("data/airports.csv", sample::DATA)
            .file("support.yaml", SUPPORT)
            .file("shorter.yaml", shorter)
            .file("old.yaml", SUPPORT)
            .file(
                "new.yaml",
                SUPPORT.replace("Returns the ticket", "Returns one ticket"),
            )
            .file("data/tickets.csv", "id,subject\nT1,Printer\nT2,Network\n")
            .file(
                "items.yaml",
                approvals::shop_contract("sheet", approvals::SHEET),
            )
            .file("data/items.csv", approvals::ITEMS)
            .file("petstore.yaml", ORDERS);
        let program = place::binary("weir");
        let programs = program.parent().expect("it lies in a folder").to_owned();
        Self { house, programs }
    }

    /// Runs a script of bash, as a user with this folder as home would.
    fn run(&self, script: &str, folder: &Path) -> (i32, String, String) {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WEIR_")) {
            shell.env_remove(name);
        }
        shell
            .args(["-c", script])
            .current_dir(folder)
            .env("PATH", format!("{}:{path}", self.programs.display()))
            .env("HOME", self.house.path())
            .env("XDG_CACHE_HOME", place::cache().join("alone"));
        let config = self.house.path().join("weir.toml");
        if config.exists() {
            shell.env("WEIR_CONFIG", config);
        }
        read_output(shell.output().expect("bash starts"))
    }
}

/// Returns the blocks of `sh` of the README and of the pages in `docs/`.
fn shell_blocks() -> Vec<ShellBlock> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/adapters"] {
        let files = fs::read_dir(place::repository().join(folder)).expect("the documentation");
        let names = files.map(|file| file.expect("a file").file_name());
        let names = names.map(|name| format!("{folder}/{}", name.to_string_lossy()));
        pages.extend(names.filter(|name| name.ends_with(".md")));
    }
    assert!(pages.len() > 30, "{pages:?}");
    pages.sort();
    pages.into_iter().flat_map(blocks_of).collect()
}

fn blocks_of(page: String) -> Vec<ShellBlock> {
    let text = fs::read_to_string(place::repository().join(&page)).expect("a page");
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let block: Vec<&str> = lines
            .by_ref()
            .take_while(|line| !line.trim_start().starts_with("```"))
            .collect();
        if language == "sh" {
            blocks.push(ShellBlock {
                page: page.clone(),
                number: blocks.len() + 1,
                text: block.join("\n"),
            });
        }
    }
    blocks
}
