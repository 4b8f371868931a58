//! Drafts of many tables: one contract, whose tools have names of their own and whose lookups relate them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, compile,
    draft::{
        ColumnSample, ColumnSamples, ContractDraft, DatabaseDraft, DatabaseInput, DraftInput,
        TableReference, draft, draft_database,
    },
    form,
};

fn shape(key: &[&str], columns: &[(&str, &str)]) -> CollectionShape {
    let fields: Vec<Value> = columns
        .iter()
        .map(|(key, kind)| json!({ "key": key, "type": kind }))
        .collect();
    let shape = json!({ "name": "table", "key": key, "fields": fields });
    CollectionShape::read(&shape.to_string()).expect("a shape")
}

fn reference(
    table: &str,
    columns: &[&str],
    other: &str,
    others: Option<&[&str]>,
) -> TableReference {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    TableReference {
        table: table.to_owned(),
        columns: owned(columns),
        other_table: other.to_owned(),
        other_columns: others.map(owned),
    }
}

/// Drafts the tables, and compiles the contract unchanged.
fn drafted(
    tables: &[(&str, CollectionShape)],
    references: &[TableReference],
    changes: bool,
    tools_max: usize,
) -> (DatabaseDraft, CompiledContract) {
    let settings: Vec<Value> = tables
        .iter()
        .map(|(title, _)| json!({ "connection": "shop", "table": title }))
        .collect();
    let (choices, samples) = (BTreeMap::new(), ColumnSamples::new());
    let inputs: Vec<DraftInput<'_>> = tables
        .iter()
        .zip(&settings)
        .map(|((title, shape), settings)| DraftInput {
            name: "table",
            title,
            adapter: "sql",
            settings,
            shape,
            choices: &choices,
            samples: &samples,
        })
        .collect();
    let drafted = draft_database(&DatabaseInput {
        name: "shop",
        title: "shop",
        tables: &inputs,
        references,
        changes,
        tools_max,
    });
    let drafted = drafted.unwrap_or_else(|_| panic!("no table has a tool"));
    let shapes = drafted.tables.iter().map(|table| {
        let of = tables.iter().find(|(title, _)| *title == table.table);
        (table.collection.clone(), of.expect("a table").1.clone())
    });
    let source = form::read("shop.yaml", &drafted.contract)
        .unwrap_or_else(|problems| panic!("{}\n{problems:?}", drafted.contract));
    let contract = compile(&source, &shapes.collect())
        .unwrap_or_else(|problems| panic!("{}\n{problems:?}", drafted.contract));
    (drafted, contract)
}

fn has_line(text: &str, line: &str) {
    assert!(text.lines().any(|known| known == line), "{line}\n{text}");
}

#[test]
fn foreign_keys_become_relations() {
    let tables = [
        (
            "customers",
            shape(&["id"], &[("id", "integer"), ("name", "string")]),
        ),
        (
            "line_items",
            shape(
                &["order_no", "line"],
                &[
                    ("order_no", "integer"),
                    ("line", "integer"),
                    ("sku", "string"),
                ],
            ),
        ),
        (
            "orders",
            shape(
                &["no"],
                &[
                    ("no", "integer"),
                    ("customer_id", "integer"),
                    ("customer", "string"),
                    ("parent_no", "integer"),
                    ("note_id", "string"),
                ],
            ),
        ),
        (
            "returns",
            shape(
                &["id"],
                &[
                    ("id", "integer"),
                    ("item_line", "integer"),
                    ("item_order", "integer"),
                    ("secret_token", "integer"),
                ],
            ),
        ),
    ];
    let references = [
        reference("line_items", &["order_no"], "orders", None),
        // A name that a column has is not taken, and one of a key of another type is none.
        reference("orders", &["customer_id"], "Customers", Some(&["id"])),
        reference("orders", &["parent_no"], "orders", Some(&["no"])),
        reference("orders", &["note_id"], "customers", Some(&["id"])),
        reference("orders", &["parent_no"], "elsewhere", None),
        // The columns come in the order of the key there.
        reference(
            "returns",
            &["item_line", "item_order"],
            "line_items",
            Some(&["line", "order_no"]),
        ),
        reference("returns", &["secret_token"], "customers", None),
    ];
    let (draft, contract) = drafted(&tables, &references, false, 100);
    for line in [
        "      order: { collection: orders, columns: [order_no] }",
        "      parent: { collection: orders, columns: [parent_no] }",
        "      line_item: { collection: line_items, columns: [item_order, item_line] }",
        "    include: [order]",
        // How many orders there are of each is a question too; the key of two columns alone names nothing.
        "    group_by: [parent_no, customer, note_id]",
        "      - { name: customer_id, type: number, help: Customer id is this. }",
    ] {
        has_line(&draft.contract, line);
    }
    let lookup = |name: &str| {
        let tool = contract.tools.iter().find(|tool| tool.name == name);
        let target = tool.expect("a lookup").collection().expect("bound").clone();
        let names = target.binding.include.iter().map(|one| one.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(lookup("get_order"), ["parent"], "{}", draft.contract);
    assert_eq!(lookup("get_return"), ["line_item"]);
    assert!(lookup("get_customer").is_empty());
}

/// A key that is answered as text is written as text where another table refers to it: a number of JSON has too few digits.
#[test]
fn a_reference_is_written_as_the_key_is_answered() {
    let tables = [
        (
            "customers",
            shape(&["id"], &[("id", "decimal"), ("name", "string")]),
        ),
        (
            "orders",
            shape(
                &["no"],
                &[
                    ("no", "integer"),
                    ("customer_id", "decimal"),
                    ("total", "decimal"),
                ],
            ),
        ),
    ];
    let references = [reference("orders", &["customer_id"], "customers", None)];
    let (draft, _) = drafted(&tables, &references, true, 100);
    for line in [
        "      - { name: customer_id, type: text, required: true }",
        "      - { name: customer_id, type: text }",
        "      - { name: total, type: number, required: true }",
    ] {
        has_line(&draft.contract, line);
    }
    assert!(
        !draft.contract.contains("customer_id, type: number"),
        "{}",
        draft.contract
    );
}

#[test]
fn tables_of_like_names_have_tools_of_their_own() {
    let columns = [("id", "integer"), ("name", "string")];
    let names = [
        "Order",
        "archive.orders",
        "order",
        "orders",
        "orders_2023",
        "orders_2024",
        "Счета",
        "счета",
    ];
    let tables: Vec<(&str, CollectionShape)> = names
        .iter()
        .map(|name| (*name, shape(&["id"], &columns)))
        .collect();
    let (draft, contract) = drafted(&tables, &[], true, 100);
    let of = |table: &str| {
        let table = draft.tables.iter().find(|known| known.table == table);
        table.expect("a table").collection.clone()
    };
    assert_eq!(of("orders"), "orders", "it is called so");
    assert_eq!(of("archive.orders"), "archive_orders");
    let mut names: Vec<&str> = contract
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
    assert!(draft.writes && all == 8 * 6, "{all}");
}

#[test]
fn a_table_without_room_is_left_out_by_name() {
    let columns = [("id", "integer"), ("name", "string")];
    let names = ["apples", "pears", "plums"];
    let tables: Vec<(&str, CollectionShape)> = names
        .iter()
        .map(|name| (*name, shape(&["id"], &columns)))
        .collect();
    let (draft, contract) = drafted(
        &tables,
        &[reference("apples", &["id"], "plums", None)],
        false,
        8,
    );
    assert_eq!(contract.tools.len(), 8);
    assert_eq!(draft.left_out.len(), 1);
    assert_eq!(draft.left_out[0].table, "plums");
    assert!(!draft.contract.contains("relations"), "{}", draft.contract);
}

/// Drafts a dump of a CRM: each column takes as many tokens as it says.
fn wide(tokens: usize) -> (ContractDraft, CompiledContract) {
    let mut columns: Vec<(String, &str)> = Vec::new();
    for name in [
        "fax",
        "photo_url",
        "id",
        "first_name",
        "company",
        "street_2",
    ] {
        columns.push((
            name.to_owned(),
            if name == "id" { "integer" } else { "string" },
        ));
    }
    for at in 0..30 {
        columns.push((format!("note{at}"), "string"));
    }
    columns.push(("stage".to_owned(), "string"));
    columns.push(("closed".to_owned(), "date"));
    let pairs: Vec<(&str, &str)> = columns
        .iter()
        .map(|(key, kind)| (key.as_str(), *kind))
        .collect();
    let shape = shape(&["id"], &pairs);
    let choices = BTreeMap::from([(
        "stage".to_owned(),
        vec!["lost".to_owned(), "won".to_owned()],
    )]);
    let sample = |(key, _): &(String, &str)| {
        let sample = ColumnSample {
            tokens,
            is_filled: key != "street_2",
        };
        (key.clone(), sample)
    };
    let drafted = draft(&DraftInput {
        name: "contacts",
        title: "contacts",
        adapter: "sheet",
        settings: &json!({ "connection": "data", "path": "contacts.csv" }),
        shape: &shape,
        choices: &choices,
        samples: &columns.iter().map(sample).collect(),
    });
    let drafted = drafted.expect("a draft");
    let source = form::read("contacts.yaml", &drafted.contract).expect("a form");
    let shapes = BTreeMap::from([("contacts".to_owned(), shape)]);
    let contract = compile(&source, &shapes).unwrap_or_else(|problems| panic!("{problems:?}"));
    (drafted, contract)
}

#[test]
fn a_wide_table_asks_and_answers_what_is_useful() {
    let (draft, contract) = wide(20);
    let list = contract
        .tools
        .iter()
        .find(|tool| tool.name == "list_contacts");
    let list = list.expect("a list");
    let properties = list.input_schema.value()["properties"].clone();
    for argument in [
        "id",
        "first_name",
        "company",
        "stage",
        "closed_from",
        "closed_to",
        "note0",
    ] {
        assert!(
            properties[argument].is_object(),
            "{argument}: {}",
            draft.contract
        );
    }
    for argument in ["fax", "photo_url", "street_2"] {
        assert!(
            properties[argument].is_null(),
            "{argument}: {}",
            draft.contract
        );
    }
    let answered = &list.collection().expect("bound").binding.columns;
    assert_eq!(
        answered[..3],
        ["id", "first_name", "company"],
        "{answered:?}"
    );
    assert_eq!(answered.len(), 12);
    assert!(
        properties["columns"]["items"]["enum"]
            .to_string()
            .contains("fax")
    );
    // 12 columns of 20 tokens: 8 records are 1,920.
    assert_eq!(properties["limit"]["default"], 8, "{}", draft.contract);
    assert_eq!(
        properties["first_name"]["description"],
        "First name contains this."
    );
    assert_eq!(
        properties["closed_from"]["description"],
        "Closed from this day."
    );
}

#[test]
fn the_default_follows_what_records_take() {
    for (tokens, rows) in [(2, 50), (4, 40), (9, 15), (55, 3)] {
        let (draft, contract) = wide(tokens);
        let list = contract
            .tools
            .iter()
            .find(|tool| tool.name == "list_contacts");
        let binding = &list.expect("a list").collection().expect("bound").binding;
        assert_eq!(binding.limit_default, rows, "{tokens}: {}", draft.contract);
        assert_eq!(binding.limit_max, 100);
    }
}
