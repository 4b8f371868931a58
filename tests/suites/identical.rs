//! Tests one contract over six kinds of source, and a sheet read through indexes: the answers must be the same bytes.
//!
//! Only the adapter and its settings differ. Call ids and cursors are opaque and differ; both are replaced before
//! comparing, everything else is compared as received.

mod nasty;
mod questions;

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use weir_tests::{Gateway, House, MariadbServer, Modern, Postgres, client, upstream::JsonServer};

use self::{
    nasty::COLUMNS,
    questions::{list_choices, reads, summaries, totals, writes},
};
use crate::large_sheet;

/// A source and the gateway over it.
struct Source {
    name: String,
    writable: bool,
    client: Modern,
    gateway: Gateway,
    _house: House,
    _postgres: Option<Postgres>,
    _server: Option<JsonServer>,
}

/// The way in which the adapter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    Component,
    Child,
}

#[tokio::test]
async fn six_sources_answer_the_same_bytes() {
    let runs = Runs::Component;
    let sources = [
        csv(runs),
        indexed(runs),
        xlsx(runs),
        sqlite(runs),
        postgres(),
        mariadb(),
        rest(runs),
    ];
    all_the_same(sources.into()).await;
}

/// The same adapters run as components and as children of the gateway.
#[tokio::test]
async fn native_adapters_answer_the_same_bytes() {
    let runs = Runs::Child;
    let sources = [
        csv(Runs::Component),
        csv(runs),
        indexed(runs),
        xlsx(runs),
        sqlite(runs),
        rest(runs),
    ];
    all_the_same(sources.into()).await;
}

async fn all_the_same(sources: Vec<Source>) {
    same_schemas(&sources).await;

    let all: Vec<&Source> = sources.iter().collect();
    for source in sources
        .iter()
        .filter(|source| source.name.contains("index"))
    {
        for (tool, arguments) in reads() {
            answer(source, tool, &arguments).await;
        }
    }
    for source in sources
        .iter()
        .filter(|source| source.name.contains("index"))
    {
        large_sheet::wait_for_indexes(&source._house).await;
    }
    let mut count = 0;
    for (tool, arguments) in reads() {
        compare(&all, tool, &arguments).await;
        count += 1;
    }
    count += same_counts(&all).await;
    count += same_choices(&all).await;
    for limit in [1, 7, 100] {
        let arguments = json!({ "limit": limit });
        let walks = walk(&all, "list_items", arguments, async |_| ()).await;
        assert_eq!(
            walks.len(),
            nasty::rows().len(),
            "a walk at limit {limit} meets each record once"
        );
        count += walks.len().div_ceil(limit);
    }

    let writable: Vec<&Source> = sources.iter().filter(|source| source.writable).collect();
    for (tool, arguments) in writes() {
        compare(&writable, tool, &arguments).await;
        count += 1;
    }
    for limit in [7, 100] {
        walk_while_inserting(&writable, limit).await;
    }
    assert!(count >= 60, "only {count} calls were compared");
    for source in &sources {
        let log = source.gateway.log();
        assert!(!log.contains("panicked"), "{}: {log}", source.name);
    }
}

/// Asks for lists with the question's own order and columns, and follows some to their last page.
async fn same_choices(all: &[&Source]) -> usize {
    let (mut count, mut refused) = (0, 0);
    for arguments in list_choices() {
        compare(all, "choose_items", &arguments).await;
        let (content, _) = answer(all[0], "choose_items", &arguments).await;
        refused += usize::from(!content.starts_with("error=false"));
        count += 1;
    }
    assert_eq!(refused, 9, "of the questions that cannot be asked");
    for arguments in [
        json!({"order_by": ["-amount"], "limit": 7}),
        json!({"order_by": ["status", "-ratio"], "columns": ["name"], "limit": 7}),
        json!({"order_by": ["-at"], "limit": 7}),
    ] {
        let walks = walk(all, "choose_items", arguments, async |_| ()).await;
        assert_eq!(walks.len(), nasty::rows().len());
        count += walks.len().div_ceil(7);
    }
    let page = json!({"columns": ["status"], "order_by": ["-count", "id"], "limit": 1});
    let (content, next) = answer(all[0], "choose_items", &page).await;
    let expected = r#"error=false {"records":[{"id":"big","status":"open"}],"next":"NEXT"}"#;
    assert_eq!(content, expected);
    // A cursor belongs to its order, but accepts other columns.
    let mut others = page.clone();
    others["cursor"] = json!(next.expect("a cursor"));
    others["columns"] = json!(["name"]);
    let (content, _) = answer(all[0], "choose_items", &others).await;
    assert!(content.starts_with("error=false"), "{content}");
    others["order_by"] = json!(["count", "id"]);
    let (content, _) = answer(all[0], "choose_items", &others).await;
    assert!(content.contains(r#""reason":"bad_cursor""#), "{content}");
    assert!(
        content.contains("of this tool and these arguments"),
        "{content}"
    );
    count
}

/// Counts what every list of `reads` finds. A source returns as many records as it counts.
async fn same_counts(all: &[&Source]) -> usize {
    let counting: Vec<&Source> = all
        .iter()
        .copied()
        .filter(|source| !source.name.contains("json-server"))
        .collect();
    let lists = reads()
        .into_iter()
        .filter(|(tool, _)| *tool == "list_items");
    let mut count = 0;
    for (_, mut arguments) in lists {
        let paging = arguments.as_object_mut().expect("arguments");
        paging.retain(|name, _| name != "limit" && name != "cursor");
        compare(&counting, "count_items", &arguments).await;
        count += 1;
    }
    for arguments in totals() {
        compare(&counting, "total_items", &arguments).await;
        count += 1;
    }
    let rows = nasty::rows().len();
    let walks = json!({"with_total": true, "order_by": ["-at"], "limit": 70});
    let walks = walk(&counting, "total_items", walks, async |_| ()).await;
    assert_eq!(walks.len(), rows);
    let (content, _) = answer(
        all[0],
        "total_items",
        &json!({"with_total": true, "limit": 1}),
    )
    .await;
    let expected = format!(r#","next":"NEXT","total":{rows}}}"#);
    assert!(content.ends_with(&expected), "{content}");
    let mut refused = Vec::new();
    for arguments in summaries() {
        compare(&counting, "summarize_items", &arguments).await;
        let (content, _) = answer(all[0], "summarize_items", &arguments).await;
        if !content.starts_with("error=false") {
            refused.push(format!("{arguments} {content}"));
        }
        count += 1;
    }
    // Six order by neither a group nor a measure of the question, one has too many, and one compares a date with a
    // number; in one group the integers add up to more than 2^53.
    assert_eq!(refused.len(), 9, "{refused:#?}");
    let open = json!({"group_by": ["status"], "measures": ["count", "sum(amount)", "avg(count)"], "name_starts": "Plain", "limit": 1});
    let (content, _) = answer(all[0], "summarize_items", &open).await;
    let expected = r#"error=false {"records":[{"status":"closed","count":43,"sum(amount)":"2805.75","avg(count)":65}],"more":true}"#;
    assert_eq!(content, expected);
    let (everything, _) = answer(all[0], "count_items", &json!({})).await;
    let expected = format!("error=false {{\"count\":{}}}", nasty::rows().len());
    assert_eq!(everything, expected);
    count
}

/// Returns the contract, which is the same for all sources except for `adapter`, `settings` and, if a source is
/// read-only, the writes.
fn contract(adapter: &str, settings: &str, writable: bool) -> String {
    let columns: Vec<&str> = COLUMNS.iter().map(|(name, _, _)| *name).collect();
    let shape: Vec<String> = COLUMNS
        .iter()
        .map(|(name, kind, nullable)| format!("{name}: {{ type: {kind}, nullable: {nullable} }}"))
        .collect();
    let mut text = format!(
        "contract: items
collections:
  items:
    adapter: {adapter}
    settings: {settings}
    columns: [{columns}]
    key: [id]
    write: {writable}
    shape: {{ {shape} }}
tools:
{READING}",
        columns = columns.join(", "),
        shape = shape.join(", "),
    );
    let fields = READING
        .split_once("limits: { rows_max: 100 }")
        .expect("a list")
        .1;
    let fields = fields.split_once("  - tool:").expect("another tool").0;
    // A web service cannot be asked how many records there are.
    let tools = match adapter {
        "rest" => &[CHOOSING][..],
        _ => &[CHOOSING, COUNTING, SUMMARIZING, TOTALLING][..],
    };
    for tool in tools {
        text.push_str(tool);
        text.push_str(fields);
    }
    if writable {
        text.push_str(WRITING);
    }
    text
}

/// The count without its fields, which are those of the list.
const COUNTING: &str = "
  - tool: count_items
    description: How many items there are.
    verb: count
    collection: items";

const SUMMARIZING: &str = "
  - tool: summarize_items
    description: What items come to.
    verb: summarize
    collection: items
    group_by: [status, code, amount, ratio, flag, day, at]
    measures: [count, sum(count), avg(count), min(count), max(count), sum(amount), avg(amount), min(amount), max(amount),
      distinct(amount), sum(ratio), avg(ratio), min(ratio), max(ratio), sum(big), avg(big), min(day), max(day), min(at), max(at),
      distinct(status), distinct(flag), distinct(day), distinct(at), distinct(name)]
    limits: { rows_max: 500 }";

/// A list with its total.
const TOTALLING: &str = "
  - tool: total_items
    description: Items, and how many there are.
    verb: list
    collection: items
    order_by: [id, at]
    with_total: true
    limits: { rows_max: 100 }";

/// A list whose order and columns are chosen.
const CHOOSING: &str = "
  - tool: choose_items
    description: Items in an order and with columns of choice.
    verb: list
    collection: items
    order_by: [id, status, code, name, amount, big, count, ratio, day, at, flag]
    columns: [id, status, code, name, amount, big, count, ratio, day, at, flag]
    limits: { rows_max: 100 }";

const READING: &str = r#"
  - tool: get_item
    description: One item by its id.
    verb: lookup
    collection: items
    fields:
      - { name: id, type: text, required: true, max_length: 200 }
  - tool: find_item
    description: The one item of a name.
    verb: lookup
    collection: items
    fields:
      - { name: name, type: text, required: true }
  - tool: list_items
    description: Items by everything.
    verb: list
    collection: items
    limits: { rows_max: 100 }
    fields:
      - { name: status, type: text }
      - { name: code, type: text }
      - { name: amount, type: text }
      - { name: big, type: text }
      - { name: count, type: number }
      - { name: ratio, type: number }
      - { name: day, type: date }
      - { name: at, type: datetime }
      - { name: flag, type: checkbox }
      - { name: status_not, type: text, column: status, match: not-equals }
      - { name: ids, type: list, of: { type: text }, column: id, match: one-of }
      - { name: min_count, type: number, column: count, match: at-least }
      - { name: max_count, type: number, column: count, match: at-most }
      - { name: min_amount, type: text, column: amount, match: at-least }
      - { name: max_amount, type: text, column: amount, match: at-most }
      - { name: from, type: date, column: day, match: at-least }
      - { name: to, type: date, column: day, match: at-most }
      - { name: since, type: datetime, column: at, match: at-least }
      - { name: name_contains, type: text, column: name, match: contains }
      - { name: name_starts, type: text, column: name, match: starts-with }
      - { name: no_status, type: checkbox, column: status, match: is-empty }
  - tool: list_by_amount
    description: Items, dearest first.
    verb: list
    collection: items
    order: [-amount, id]
    returns: [id, amount]
    limits: { rows_max: 100 }
    fields: []
"#;

const WRITING: &str = r#"
  - tool: create_item
    description: Adds an item.
    verb: create
    collection: items
    fields:
      - { name: id, type: text, required: true, min_length: 1 }
      - { name: status, type: text }
      - { name: code, type: text, required: true }
      - { name: name, type: text, required: true }
      - { name: amount, type: text }
      - { name: big, type: text }
      - { name: count, type: number }
      - { name: ratio, type: number }
      - { name: day, type: date }
      - { name: at, type: datetime }
      - { name: flag, type: checkbox }
  - tool: update_item
    description: Changes an item.
    verb: update
    collection: items
    fields:
      - { name: id, type: text, required: true }
      - { name: status, type: text, nullable: true }
      - { name: name, type: text }
      - { name: amount, type: text, nullable: true }
      - { name: count, type: number }
      - { name: flag, type: checkbox }
  - tool: delete_item
    description: Removes an item.
    verb: delete
    collection: items
    fields:
      - { name: id, type: text, required: true }
"#;

/// The settings of a collection in any database.
const TABLE: &str = "{ connection: db, table: items }";

fn csv(runs: Runs) -> Source {
    let house = House::new().sheets();
    nasty::csv(&house.path().join("data/items.csv"));
    let settings = "{ connection: data, path: items.csv }";
    source("csv", runs, house, "sheet", settings, true)
}

/// Returns a source that is read through indexes however small it is.
fn indexed(runs: Runs) -> Source {
    let house = House::new().sheets();
    nasty::csv(&house.path().join("data/items.csv"));
    let settings = "{ connection: data, path: items.csv, index: always }";
    source("csv by index", runs, house, "sheet", settings, true)
}

fn xlsx(runs: Runs) -> Source {
    let house = House::new().sheets();
    nasty::xlsx(&house.path().join("data/items.xlsx"));
    let settings = "{ connection: data, path: items.xlsx }";
    source("xlsx", runs, house, "sheet", settings, false)
}

fn sqlite(runs: Runs) -> Source {
    let house = House::new().config(
        "[connections.db]\nkind = \"sqlite\"\npath = \"data/items.sqlite\"\nwrite = true\n[plugins.sql.grants]\ndb = \"write\"",
    );
    nasty::sqlite(&house.path().join("data/items.sqlite"));
    source("sqlite", runs, house, "sql", TABLE, true)
}

fn postgres() -> Source {
    let cluster = Postgres::start();
    nasty::postgres(&cluster);
    let house = House::new().config(&format!(
        "[connections.db]\nkind = \"postgresql\"\nurl = \"{}\"\nwrite = true\n[plugins.sql.grants]\ndb = \"write\"",
        cluster.url()
    ));
    let mut source = source("postgresql", Runs::Component, house, "sql", TABLE, true);
    source._postgres = Some(cluster);
    source
}

fn mariadb() -> Source {
    let server = MariadbServer::shared();
    let url = server.database();
    nasty::mariadb(server, &url);
    let house = House::new().config(&format!(
        "[connections.db]\nkind = \"mysql\"\nurl = \"{url}\"\nwrite = true\n[plugins.sql.grants]\ndb = \"write\""
    ));
    source("mariadb", Runs::Component, house, "sql", TABLE, true)
}

fn rest(runs: Runs) -> Source {
    let server = JsonServer::start(&nasty::json(), "id");
    let house = House::new().config(&format!(
        "[connections.api]\nkind = \"http\"\nbase_url = \"{}\"\nwrite = true\n[plugins.rest.grants]\napi = \"write\"",
        server.base
    ));
    let fields: Vec<String> = COLUMNS
        .iter()
        .map(|(name, kind, nullable)| format!("{name}: {{ type: {kind}, nullable: {nullable} }}"))
        .collect();
    let settings = format!(
        "{{ connection: api, key: [id], fields: {{ {} }}, list: {{ path: /items }}, get: {{ path: \"/items/{{id}}\" }}, \
         create: {{ path: /items }}, update: {{ path: \"/items/{{id}}\" }}, delete: {{ path: \"/items/{{id}}\" }} }}",
        fields.join(", ")
    );
    let mut source = source("json-server", runs, house, "rest", &settings, true);
    source._server = Some(server);
    source
}

fn source(
    name: &str,
    runs: Runs,
    house: House,
    adapter: &str,
    settings: &str,
    writable: bool,
) -> Source {
    let name = format!("{name} ({runs:?})");
    let house = match runs {
        Runs::Component => house,
        Runs::Child => house.native(adapter, adapter),
    };
    let house = house.file(
        "contracts/items.yaml",
        contract(adapter, settings, writable),
    );
    let (gateway, client) = house.serve_client();
    Source {
        name,
        writable,
        client,
        gateway,
        _house: house,
        _postgres: None,
        _server: None,
    }
}

/// Checks the input and output schemas, byte for byte, of every tool that two sources share.
async fn same_schemas(sources: &[Source]) {
    let mut first: Option<(&str, Vec<Value>)> = None;
    for source in sources {
        let (tools, _) = source.client.list().await;
        let Some((name, expected)) = &first else {
            first = Some((&source.name, tools));
            continue;
        };
        for tool in &tools {
            let same = expected
                .iter()
                .find(|other| other["name"] == tool["name"])
                .expect("the same tools");
            for member in ["inputSchema", "outputSchema"] {
                let (left, right) = (same[member].to_string(), tool[member].to_string());
                assert_eq!(
                    left, right,
                    "{member} of {} differs between {name} and {}",
                    tool["name"], source.name
                );
            }
        }
    }
}

/// Returns the answer of one source, as text: `isError` and the structured content, with opaque values replaced.
async fn answer(source: &Source, tool: &str, arguments: &Value) -> (String, Option<String>) {
    #[derive(Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        result: CallResult<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CallResult<'a> {
        #[serde(borrow)]
        structured_content: &'a RawValue,
        #[serde(default)]
        is_error: bool,
    }
    let params = json!({"name": tool, "arguments": arguments});
    let reply = client::send(source.client.request("tools/call", params)).await;
    let parsed: Reply<'_> = serde_json::from_str(&reply.text)
        .unwrap_or_else(|error| panic!("{} {error}: {}", source.name, reply.text));
    let structured = parsed.result.structured_content.get();
    let value: Value = serde_json::from_str(structured).expect("raw JSON is JSON");
    let next = value["next"].as_str().map(str::to_owned);
    let mut text = structured.to_owned();
    for (opaque, shown) in [
        (value["call_id"].as_str(), "CALL"),
        (next.as_deref(), "NEXT"),
    ] {
        if let Some(opaque) = opaque {
            text = text.replace(opaque, shown);
        }
    }
    (format!("error={} {text}", parsed.result.is_error), next)
}

async fn compare(sources: &[&Source], tool: &str, arguments: &Value) {
    let (expected, _) = answer(sources[0], tool, arguments).await;
    for source in &sources[1..] {
        let (found, _) = answer(source, tool, arguments).await;
        assert_eq!(
            expected,
            found,
            "{tool} {arguments} differs between {} and {}\n{}",
            sources[0].name,
            source.name,
            source.gateway.log()
        );
    }
}

/// Walks every source to its end in step; returns the records of the walk, which are the same for all.
async fn walk(
    sources: &[&Source],
    tool: &str,
    arguments: Value,
    mut between: impl AsyncFnMut(usize),
) -> Vec<Value> {
    let mut cursors: Vec<Option<String>> = vec![None; sources.len()];
    let mut records = Vec::new();
    for page in 0.. {
        let mut expected: Option<String> = None;
        for (source, cursor) in sources.iter().zip(&mut cursors) {
            let mut arguments = arguments.clone();
            if let Some(cursor) = cursor.take() {
                arguments["cursor"] = json!(cursor);
            }
            let (found, next) = answer(source, tool, &arguments).await;
            *cursor = next;
            let first = expected.get_or_insert_with(|| found.clone());
            assert_eq!(
                *first, found,
                "page {page} differs between {} and {}",
                sources[0].name, source.name
            );
        }
        let text = expected.expect("there is a source");
        let value: Value = serde_json::from_str(text.trim_start_matches("error=false "))
            .expect("a page, not an error");
        records.extend(
            value["records"]
                .as_array()
                .expect("a page has records")
                .iter()
                .cloned(),
        );
        if cursors.iter().all(Option::is_none) {
            return records;
        }
        between(page).await;
    }
    unreachable!("pages are counted without end")
}

/// Adds a record between pages before the place the walk has reached, and one behind it: the first is never met, the
/// second once, and no other record is met twice or lost.
async fn walk_while_inserting(sources: &[&Source], limit: usize) {
    let before: Vec<Value> = walk(sources, "list_items", json!({"limit": 100}), async |_| ()).await;
    let walked = walk(
        sources,
        "list_items",
        json!({ "limit": limit }),
        async |page| {
            for (place, id) in [
                ("before", format!("!{limit}-{page}")),
                ("behind", format!("\u{10ffff}{limit}-{page}")),
            ] {
                compare(
                    sources,
                    "create_item",
                    &json!({"id": id, "code": "walk", "name": place}),
                )
                .await;
            }
        },
    )
    .await;
    let ids: Vec<&Value> = walked.iter().map(|record| &record["id"]).collect();
    let distinct: std::collections::HashSet<String> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(ids.len(), distinct.len(), "a record was met twice");
    for record in &before {
        assert!(ids.contains(&&record["id"]), "{} was lost", record["id"]);
    }
    assert!(!ids.iter().any(|id| {
        id.as_str()
            .is_some_and(|id| id.starts_with(&format!("!{limit}-")))
    }));
}
