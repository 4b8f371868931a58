//! Drafts compile unchanged, whatever the source looks like.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, compile,
    contract::ContractTool,
    draft::{ContractDraft, DraftInput, contract_name, draft},
    form,
};

fn drafted(
    name: &str,
    shape: &CollectionShape,
    choices: &BTreeMap<String, Vec<String>>,
) -> ContractDraft {
    tried(name, shape, choices).expect("a draft")
}

fn tried(
    name: &str,
    shape: &CollectionShape,
    choices: &BTreeMap<String, Vec<String>>,
) -> Result<ContractDraft, Vec<String>> {
    let settings = json!({ "connection": "data", "path": "a \"b\": #c.csv" });
    draft(&DraftInput {
        name: &contract_name(name),
        title: name,
        adapter: "sheet",
        settings: &settings,
        shape,
        choices,
        samples: &BTreeMap::new(),
    })
}

/// Checks that the draft has a line.
#[track_caller]
fn check_line(draft: &ContractDraft, line: &str) {
    let contract = &draft.contract;
    assert!(
        contract.lines().any(|known| known == line),
        "{line}: {contract}"
    );
}

#[track_caller]
fn check_compiles(
    draft: &ContractDraft,
    shape: &CollectionShape,
) -> weir_contracts::CompiledContract {
    let source = form::read("draft", &draft.contract)
        .unwrap_or_else(|problems| panic!("{}\n{problems:?}", draft.contract));
    let shapes = source
        .collections
        .iter()
        .map(|collection| (collection.name.clone(), shape.clone()))
        .collect();
    compile(&source, &shapes).unwrap_or_else(|problems| panic!("{}\n{problems:?}", draft.contract))
}

/// Words for an empty cell and notes of the description are in the draft.
#[test]
fn words_for_an_empty_cell_are_drafted() {
    let shape = CollectionShape::read(
        &json!({
            "name": "orders", "key": ["id"],
            "fields": [
                { "key": "id", "type": "integer" },
                { "key": "amount", "type": "string",
                  "readings": [{ "type": "number", "format": {}, "null_words": ["n/a", "-"] }] },
            ],
            "notes": ["The last row looks like a total."],
        })
        .to_string(),
    )
    .expect("a shape");
    let draft = drafted("orders", &shape, &BTreeMap::new());
    assert_eq!(draft.notes, ["The last row looks like a total."]);
    for line in [
        "      amount: { type: number }",
        "    null_words: [n/a, \"-\"]",
    ] {
        check_line(&draft, line);
    }
    let contract = check_compiles(&draft, &shape);
    assert_eq!(contract.collections[0].shape.null_words, ["n/a", "-"]);
    assert!(contract.collections[0].shape.notes.is_empty());
}

#[test]
fn a_good_draft() {
    let shape = CollectionShape::read(
        &json!({
            "name": "order items",
            "fields": [
                { "key": "id", "type": "integer", "generated": true },
                { "key": "customer", "type": "string", "description": "Who bought it: \"name\"." },
                { "key": "status", "type": "string", "nullable": true },
                { "key": "price", "type": "decimal" },
                { "key": "gift", "type": "boolean", "nullable": true },
                { "key": "ordered", "type": "date" },
                { "key": "api_token", "type": "string" },
                { "key": "two words", "type": "string", "nullable": true },
                { "key": "extra", "type": "json", "nullable": true },
            ],
            "key": ["id"],
        })
        .to_string(),
    )
    .expect("a shape");
    let choices = BTreeMap::from([(
        "status".to_owned(),
        vec!["open".to_owned(), "no".to_owned(), "a: b".to_owned()],
    )]);
    let draft = drafted("Order Items (2024)", &shape, &choices);
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/draft.yaml");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(golden, &draft.contract).expect("writes the golden");
    }
    assert_eq!(
        draft.contract,
        std::fs::read_to_string(golden).unwrap_or_default()
    );
    assert!(
        draft.notes.iter().any(|note| note.contains("api_token")),
        "{:?}",
        draft.notes
    );
    let contract = check_compiles(&draft, &shape);
    let names: Vec<&str> = contract
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "get_order_item",
            "list_order_items",
            "summarize_order_items",
            "create_order_item"
        ]
    );
    assert!(
        !contract.collections[0]
            .published
            .contains(&"api_token".to_owned())
    );
}

/// Questions about many records follow the columns and the source's abilities.
#[test]
fn a_draft_asks_about_many_records() {
    let wide: Vec<Value> = (0..20)
        .map(|n| json!({ "key": format!("c{n}"), "type": "string", "nullable": true }))
        .collect();
    let tall = json!([
        { "key": "id", "type": "integer" }, { "key": "city", "type": "string" }, { "key": "customer", "type": "string" },
        { "key": "placed", "type": "date" }, { "key": "total", "type": "decimal" }, { "key": "customer_id", "type": "integer" },
        { "key": "group_by", "type": "string" },
    ]);
    let drafted = |fields: &Value, summaries: &str| {
        let shape = json!({
            "name": "orders", "key": [fields[0]["key"]], "fields": fields,
            "capabilities": { "read": true, "matches": { "*": ["equals", "at-least", "at-most", "contains"] }, "order": ["*"], "summaries": summaries },
        });
        let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
        let choices = BTreeMap::from([(
            "city".to_owned(),
            vec!["Oslo".to_owned(), "Rome".to_owned()],
        )]);
        let draft = drafted("orders", &shape, &choices);
        let contract = check_compiles(&draft, &shape);
        let tools: Vec<String> = contract
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        let lint = weir_contracts::lint::lint_contract(&contract);
        assert!(lint.is_empty(), "{lint:?}");
        (draft, tools)
    };
    let (draft, tools) = drafted(&tall, "all");
    assert_eq!(tools, ["get_order", "list_orders", "summarize_orders"]);
    for line in [
        "    order_by: [id, placed, total, customer_id]",
        "    group_by: [city, placed, customer, group_by]",
        "    measures: [count, sum(total), avg(total), min(total), max(total)]",
        "      - { name: group_by_value, type: text, column: group_by, match: contains, help: \"Group by contains this, in the same case.\" }",
    ] {
        check_line(&draft, line);
    }
    assert!(
        !draft.contract.contains("    columns:"),
        "{}",
        draft.contract
    );
    assert_eq!(
        drafted(&tall, "count").1,
        ["get_order", "list_orders", "count_orders"]
    );
    assert_eq!(drafted(&tall, "none").1, ["get_order", "list_orders"]);
    // What is called like a measure is no group, and a measure of a long name would be no name.
    let named = json!([
        { "key": "id", "type": "integer" }, { "key": "count", "type": "string" }, { "key": "city", "type": "string" },
        { "key": "n".repeat(198), "type": "integer" },
    ]);
    let (draft, _) = drafted(&named, "all");
    assert!(
        draft.contract.contains("    group_by: [city]\n"),
        "{}",
        draft.contract
    );
    // A wide table answers what fits into a page that a model reads, and the rest where it is asked for.
    let (draft, _) = drafted(&json!(wide), "none");
    for line in [
        "    returns: [c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11]",
        "    columns: [c12, c13, c14, c15, c16, c17, c18, c19]",
    ] {
        check_line(&draft, line);
    }
    assert!(
        draft.notes.contains(
            &"The list answers 12 of 20 columns; agents ask for the others by `columns`."
                .to_owned()
        ),
        "{:?}",
        draft.notes
    );
}

/// A filter by one spelling would miss the others, so that one choice stands for all of them.
#[test]
fn choices_that_differ_in_case_or_blanks_alone_are_one() {
    let shape = |matches: &[&str]| {
        let shape = json!({ "name": "orders", "key": ["id"], "fields": [
            { "key": "id", "type": "integer" }, { "key": "status", "type": "string" } ],
            "capabilities": { "read": true, "matches": { "*": matches }, "order": ["*"] } });
        CollectionShape::read(&shape.to_string()).expect("a shape")
    };
    for (matches, values, line, note) in [
        (
            &["equals", "one-of"][..],
            &["PAID", "Paid", "open", "paid "][..],
            "type: dropdown, choices: [{ value: Paid, also: [PAID, \"paid \"] }, open] }",
            Some(
                "The column 'status' has values that differ only in case or blanks, and a filter by one of these finds all: 'PAID', 'Paid', 'paid '.",
            ),
        ),
        (
            &["equals"][..],
            &["Paid", "open", "paid "][..],
            "type: dropdown, choices: [Paid, open, \"paid \"] }",
            Some(
                "The column 'status' has values that differ only in case or blanks, and each is a separate choice: 'Paid', 'paid '.",
            ),
        ),
        (
            &["equals", "one-of"][..],
            &["open", "paid"][..],
            "type: dropdown, choices: [open, paid] }",
            None,
        ),
    ] {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let choices = BTreeMap::from([("status".to_owned(), values)]);
        let draft = drafted("orders", &shape(matches), &choices);
        assert!(draft.contract.contains(line), "{line}\n{}", draft.contract);
        assert_eq!(
            draft.notes.iter().map(String::as_str).next(),
            note,
            "{:?}",
            draft.notes
        );
    }
}

/// Headers as people write them: every column gets its fields, and no two are called alike.
#[test]
fn headers_with_spaces() {
    let shape = CollectionShape::read(
        &json!({
            "name": "parts",
            "fields": [
                { "key": "Part No", "type": "string" },
                { "key": "Part_No", "type": "string", "nullable": true },
                { "key": "In\tStock", "type": "integer" },
                { "key": "In  Stock", "type": "boolean" },
                { "key": "商品 名", "type": "string" },
                { "key": "Added\u{2028}on", "type": "date" },
                { "key": "ü ".repeat(80), "type": "decimal" },
            ],
            "key": ["Part No"],
        })
        .to_string(),
    )
    .expect("a shape");
    let draft = drafted("parts", &shape, &BTreeMap::new());
    assert!(draft.notes.is_empty(), "{:?}", draft.notes);
    let contract = check_compiles(&draft, &shape);
    assert_eq!(contract.tools[0].description, "Finds one part by Part No.");
    let inputs = |tool: usize| {
        let binding = &contract.tools[tool].collection().expect("bound").binding;
        binding
            .inputs
            .iter()
            .map(|input| input.field.as_str())
            .collect::<Vec<_>>()
    };
    let long = ["u"; 25].join("_");
    let (least, most) = (format!("min_{long}"), format!("max_{long}"));
    assert_eq!(inputs(0), ["part_no"]);
    assert_eq!(
        inputs(1),
        [
            "part_no",
            "part_no_2",
            "min_in_stock",
            "max_in_stock",
            "in_stock_2",
            "shang_pin_ming",
            "added_on_from",
            "added_on_to",
            &least,
            &most
        ]
    );
    assert_eq!(
        inputs(3),
        [
            "part_no",
            "part_no_2",
            "in_stock",
            "in_stock_2",
            "shang_pin_ming",
            "added_on",
            &long
        ]
    );
    let title =
        |name: &str| contract.tools[1].input_schema.value()["properties"][name]["title"].clone();
    assert_eq!(title("part_no"), "Part No");
    assert_eq!(title("min_in_stock"), "In Stock, at least");
    assert_eq!(title("added_on_to"), "Added on, to");
    assert_eq!(title("shang_pin_ming"), "商品 名");
}

/// Checks names, since some models' interfaces refuse a whole request for one property of another name.
fn check_names(contract: &weir_contracts::CompiledContract) {
    for tool in &contract.tools {
        for name in tool.input_schema.value()["properties"]
            .as_object()
            .expect("an object")
            .keys()
        {
            let plain = |next: char| next.is_ascii_alphanumeric() || "_.-".contains(next);
            assert!(
                (1..=64).contains(&name.len()) && name.chars().all(plain),
                "{name}"
            );
        }
    }
}

/// Columns of text that can be read in one way are read so, and a note asks where there are several.
#[test]
fn a_draft_says_how_numbers_and_dates_are_written() {
    let shape = CollectionShape::read(
        &json!({
            "name": "invoices",
            "fields": [
                { "key": "No.", "type": "string" },
                { "key": "Amount (EUR)", "type": "string",
                  "readings": [{ "type": "number", "format": { "decimal": ",", "grouping": "." } }] },
                { "key": "Paid?", "type": "string", "nullable": true },
                { "key": "Due", "type": "string", "readings": [{ "type": "date", "format": { "date": "%-d/%-m/%Y" } }] },
                { "key": "Sent", "type": "string", "readings": [
                    { "type": "date", "format": { "date": "%d/%m/%Y" } }, { "type": "date", "format": { "date": "%m/%d/%Y" } }] },
                { "key": "Weight", "type": "string",
                  "readings": [{ "type": "number", "format": { "decimal": ",", "grouping": "\u{a0}" } }] },
            ],
            "key": ["No."],
        })
        .to_string(),
    )
    .expect("a shape");
    let draft = drafted("invoices 2026", &shape, &BTreeMap::new());
    for line in [
        "contract: invoices-2026",
        "title: Invoices 2026",
        "description: Records of invoices.",
        "      Amount (EUR): { type: number, decimal: \",\", grouping: \".\" }",
        "      Due: { type: date, date: \"%-d/%-m/%Y\" }",
        "      Weight: { type: number, decimal: \",\", grouping: \"\\u00A0\" }",
        "    description: Finds one invoice by No.",
        "      - { name: \"no\", type: text, column: No., title: No., required: true, help: \"The invoice's No.\" }",
        "      - { name: due_from, type: date, column: Due, match: at-least, title: \"Due, from\", help: Due from this day. }",
    ] {
        check_line(&draft, line);
    }
    let [note] = draft.notes.as_slice() else {
        panic!("{:?}", draft.notes)
    };
    assert_eq!(
        note,
        "The column 'Sent' stays as it is, since all of it can be read as dates such as 31/12/2026 (day, month, year), \
         `{ type: date, date: \"%d/%m/%Y\" }`, or as dates such as 12/31/2026 (month, day, year), \
         `{ type: date, date: \"%m/%d/%Y\" }`. Say the right one under `shape:`, as `Sent: …`."
    );
    let contract = check_compiles(&draft, &shape);
    check_names(&contract);
    let column = |key: &str| {
        contract.collections[0]
            .shape
            .field(key)
            .expect("a column")
            .clone()
    };
    assert_eq!(column("Amount (EUR)").kind.word(), "number");
    assert_eq!(
        column("Due").format.expect("a format").date.as_deref(),
        Some("%-d/%-m/%Y")
    );
    assert!(
        contract.collections[0]
            .shape
            .fields
            .iter()
            .all(|field| field.readings.is_empty())
    );
    assert_eq!(
        contract.tools[1].input_schema.value()["properties"]["min_amount_eur"]["type"],
        "number"
    );
}

/// PostgreSQL's bigint is answered as text, since a number may not hold its digits.
#[test]
fn a_key_is_asked_for_as_it_is_answered() {
    let fields = json!([{ "key": "id", "type": "decimal" }, { "key": "paid", "type": "decimal" }]);
    let shape = json!({ "name": "orders", "fields": fields, "key": ["id"], "capabilities": {
        "read": true, "write": ["create"], "matches": { "*": ["equals", "at-least", "at-most"] }, "order": ["*"] } });
    let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
    let contract = check_compiles(&drafted("orders", &shape, &BTreeMap::new()), &shape);
    let [lookup, list, create] = contract.tools.as_slice() else {
        panic!("{:?}", contract.tools)
    };
    let answered = lookup
        .output_schema
        .as_ref()
        .expect("a schema")
        .value()
        .to_string();
    assert!(answered.contains(r#""id":{"type":"string""#), "{answered}");
    let asked = |tool: &ContractTool, field: &str| {
        tool.input_schema.value()["properties"][field]["type"].clone()
    };
    let taken = lookup
        .argument_validator()
        .expect("a validator")
        .validate(r#"{"id": "9223372036854775807"}"#);
    assert!(taken.is_ok(), "{taken:?}");
    for tool in [lookup, list, create] {
        assert_eq!(asked(tool, "id"), "string", "{}", tool.name);
    }
    assert_eq!(asked(list, "min_paid"), "number");
}

/// An empty text is no choice, since Gemini refuses a request with one. Where it may be written, the field is a text.
#[test]
fn an_empty_text_is_no_choice() {
    let shape = json!({ "name": "orders", "fields": [{ "key": "state", "type": "string" }, { "key": "none", "type": "string" }], "key": [],
        "capabilities": { "read": true, "write": ["create"], "matches": { "*": ["equals"] }, "order": ["*"] } });
    let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
    let known = |values: &[&str]| {
        values
            .iter()
            .map(|value| (*value).to_owned())
            .collect::<Vec<_>>()
    };
    let choices = BTreeMap::from([
        ("state".to_owned(), known(&["", "open"])),
        ("none".to_owned(), known(&[""])),
    ]);
    let draft = drafted("orders", &shape, &choices);
    check_compiles(&draft, &shape);
    let lines: Vec<&str> = draft
        .contract
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- { "))
        .collect();
    assert_eq!(
        lines,
        [
            "name: state, type: dropdown, choices: [open] }",
            "name: none, type: text }",
            "name: state, type: text, required: true }",
            "name: none, type: text, required: true }",
        ]
    );
}

/// A column that a create needs is hidden: a create without it would fail every time.
#[test]
fn no_create_that_cannot_work() {
    let shape = CollectionShape::read(
        &json!({
            "name": "users",
            "fields": [
                { "key": "id", "type": "integer", "generated": true },
                { "key": "name", "type": "string" },
                { "key": "password_hash", "type": "integer" },
            ],
            "key": ["id"],
        })
        .to_string(),
    )
    .expect("a shape");
    let draft = drafted("users", &shape, &BTreeMap::new());
    assert!(
        draft
            .notes
            .iter()
            .any(|note| note.contains("create") && note.contains("password_hash"))
    );
    let contract = check_compiles(&draft, &shape);
    assert_eq!(contract.tools.len(), 3);
}

/// Columns that the database computes cannot be written: a create with them would always fail.
#[test]
fn a_computed_column_is_read_and_not_created() {
    let shape = json!({ "name": "lines", "key": ["id"], "fields": [
        { "key": "id", "type": "integer", "native": "INTEGER", "generated": true },
        { "key": "qty", "type": "integer", "native": "INT" },
        { "key": "sum", "type": "integer", "native": "INT", "generated": true, "read_only": true } ] });
    let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
    let draft = drafted("lines", &shape, &BTreeMap::new());
    let contract = check_compiles(&draft, &shape);
    let inputs = |tool: usize| {
        let binding = &contract.tools[tool].collection().expect("bound").binding;
        binding
            .inputs
            .iter()
            .map(|input| input.field.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        inputs(1),
        ["id", "min_qty", "max_qty", "min_sum", "max_sum"]
    );
    assert_eq!(inputs(3), ["qty"]);
    assert!(
        contract.collections[0]
            .published
            .contains(&"sum".to_owned())
    );
}

/// A form has a bound on its fields, and a sheet has none: what is too wide to write is read all the same.
#[test]
fn a_wide_sheet_is_read() {
    let shape = |columns: usize| {
        let fields: Vec<Value> = (0..columns)
            .map(|at| json!({ "key": format!("c{at}"), "type": "integer" }))
            .collect();
        CollectionShape::read(&json!({ "name": "big", "fields": fields }).to_string())
            .expect("a shape")
    };
    for (columns, writes) in [(300, true), (301, false), (1501, false)] {
        let shape = shape(columns);
        let draft = drafted("big", &shape, &BTreeMap::new());
        let contract = check_compiles(&draft, &shape);
        assert_eq!(
            (contract.tools.len(), draft.writes),
            (2 + usize::from(writes), writes),
            "{columns}"
        );
        let note = format!("{columns} fields");
        assert_eq!(
            draft.notes.iter().any(|answer| answer.contains(&note)),
            !writes,
            "{:?}",
            draft.notes
        );
    }
}

/// Columns of bytes are named as left out; where nothing else is left there is no draft.
#[test]
fn columns_of_bytes_are_noted() {
    let shape = |fields: Value| {
        CollectionShape::read(
            &json!({ "name": "scans", "fields": fields, "left_out": ["pdf"] }).to_string(),
        )
        .expect("a shape")
    };
    let with_name = shape(json!([{ "key": "name", "type": "string" }]));
    let draft = drafted("scans", &with_name, &BTreeMap::new());
    assert!(
        draft
            .notes
            .iter()
            .any(|note| note.contains("bytes: 'pdf'.")),
        "{:?}",
        draft.notes
    );
    assert!(
        check_compiles(&draft, &with_name).collections[0]
            .shape
            .left_out
            .is_empty()
    );
    let reasons = tried("scans", &shape(json!([])), &BTreeMap::new())
        .err()
        .expect("nothing to draft")
        .join(" ");
    assert!(
        reasons.contains("bytes: 'pdf'. No column is left."),
        "{reasons}"
    );
}

#[test]
fn names_become_contract_names() {
    for (name, expected) in [
        ("airports", "airports"),
        ("Größe 2024.csv", "grosse-2024-csv"),
        ("2024", "t-2024"),
        ("名前", "ming-qian"),
        ("Счета", "scheta"),
        ("%", "records"),
        ("", "records"),
        ("--a__b--", "a-b"),
    ] {
        assert_eq!(contract_name(name), expected);
    }
}

fn shapes() -> impl Strategy<Value = CollectionShape> {
    let kinds = prop_oneof![
        Just("string"),
        Just("integer"),
        Just("decimal"),
        Just("number"),
        Just("boolean"),
        Just("date"),
        Just("datetime"),
        Just("json"),
        Just("list"),
    ];
    let names = prop_oneof![4 => "[a-z_]{1,12}", 1 => "\\PC{1,20}", 1 => "(limit|cursor|min_a|a|id|password|no|null|true|1|-x)"];
    let columns =
        proptest::collection::btree_map(names, (kinds, any::<bool>(), any::<bool>()), 1..12);
    (columns, any::<u8>()).prop_map(|(columns, flags)| {
        let fields: Vec<Value> = columns
            .iter()
            .map(|(key, (kind, nullable, generated))| json!({ "key": key, "type": kind, "nullable": nullable, "generated": generated }))
            .collect();
        let key: Vec<&String> = columns.iter().filter(|(_, (kind, ..))| !matches!(*kind, "json" | "list")).map(|(key, _)| key).take(usize::from(flags & 3)).collect();
        let comparisons: &[&str] = match flags & 12 {
            0 => &["equals"],
            4 => &["equals", "contains", "at-least"],
            8 => &["contains-ci", "at-most"],
            _ => &["equals", "not-equals", "one-of", "at-least", "at-most", "contains", "contains-ci", "starts-with", "is-empty"],
        };
        let write: &[&str] = if flags & 16 == 0 { &[] } else { &["create", "update", "delete"] };
        let shape = json!({
            "name": "x", "fields": fields, "key": key,
            "capabilities": { "read": true, "write": write, "matches": { "*": comparisons }, "order": ["*"] }
        });
        CollectionShape::read(&shape.to_string()).expect("a shape")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn any_draft_compiles(shape in shapes(), name in "\\PC{0,40}", choices in proptest::collection::vec("\\PC{0,12}", 1..4)) {
        let unique: std::collections::BTreeSet<String> = choices.into_iter().collect();
        let choices: BTreeMap<String, Vec<String>> =
            shape.fields.iter().map(|field| (field.key.clone(), unique.iter().cloned().collect())).collect();
        let draft = tried(&name, &shape, &choices);
        prop_assume!(draft.is_ok());
        let draft = draft.expect("a draft");
        prop_assert_eq!(draft.writes, draft.contract.contains("verb: create"));
        check_names(&check_compiles(&draft, &shape));
    }
}
