//! Related records of a lookup: what a contract declares, what agents see of it, and what is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, FileProblem, compile,
    contract::ArtifactFormat,
    diff::{ChangeSeverity, diff},
    form,
};

const DESK: &str = "contract: desk
collections:
  orders:
    adapter: sql
    settings: { connection: shop, table: orders }
    relations:
      customer: { collection: customers, columns: [customer_id] }
  customers: { adapter: sql, settings: { connection: shop, table: customers } }
tools:
  - tool: get_order
    verb: lookup
    collection: orders
    include: [customer]
    fields:
      - { name: id, type: number, required: true }
";

fn shapes() -> BTreeMap<String, CollectionShape> {
    let read = |shape: Value| CollectionShape::read(&shape.to_string()).expect("a shape");
    let orders = json!({ "name": "orders", "key": ["id"], "fields": [
        { "key": "id", "type": "integer" },
        { "key": "customer_id", "type": "integer", "nullable": true },
        { "key": "note", "type": "string" },
    ] });
    let customers = json!({ "name": "customers", "key": ["id"], "fields": [
        { "key": "id", "type": "integer" },
        { "key": "name", "type": "string", "description": "Who buys." },
        { "key": "password", "type": "string" },
    ] });
    [("orders", read(orders)), ("customers", read(customers))]
        .map(|(name, shape)| (name.to_owned(), shape))
        .into()
}

fn compiled(text: &str) -> Result<CompiledContract, Vec<FileProblem>> {
    compile(&form::read("desk.yaml", text)?, &shapes())
}

/// Compiles the contract with one text in another's place, which must be there.
fn changed(from: &str, to: &str) -> Result<CompiledContract, Vec<FileProblem>> {
    assert!(DESK.contains(from), "{from}");
    compiled(&DESK.replacen(from, to, 1))
}

#[test]
fn a_lookup_offers_the_records_that_its_own_names() {
    let text = DESK.replace(
        "table: customers } }",
        "table: customers }, hide: [password] }",
    );
    let contract = compiled(&text).expect("compiles");
    assert_eq!(contract.format, ArtifactFormat::RELATIONS);
    let tool = &contract.tools[0];
    let input = tool.input_schema.value();
    assert_eq!(
        input["properties"]["include"]["items"],
        json!({ "type": "string", "enum": ["customer"] })
    );
    assert_eq!(input["required"], json!(["id"]));
    let output = tool.output_schema.as_ref().expect("a result").value();
    assert_eq!(
        output["properties"]["customer"],
        json!({
            "type": ["object", "null"],
            "properties": {
                "id": { "type": "integer" },
                "name": { "type": "string", "description": "Who buys." },
            },
            "required": ["id", "name"],
            "description": "The record of customers that belongs to it, if `include` asked for it; null if there is none.",
        })
    );
    assert_eq!(
        output["anyOf"][0]["required"],
        json!(["id", "customer_id", "note"])
    );
    let stored = serde_json::to_string(&contract).expect("an artifact");
    let read: CompiledContract = serde_json::from_str(&stored).expect("it is read again");
    assert_eq!(read, contract);
}

#[test]
fn a_contract_without_relations_keeps_its_format() {
    let contract = changed("    include: [customer]\n", "").expect("compiles");
    assert_eq!(contract.format, ArtifactFormat::FIRST);
    let stored = serde_json::to_string(&contract).expect("an artifact");
    assert!(
        !stored.contains("include") && !stored.contains("relations"),
        "{stored}"
    );
}

#[test]
fn what_cannot_be_related_is_refused_with_its_place() {
    for (from, to, place, message) in [
        (
            "include: [customer]",
            "include: [custmer]",
            "/tools/0/include/0",
            "there is no relation 'custmer'",
        ),
        (
            "include: [customer]",
            "include: []",
            "/tools/0/include",
            "names no relation",
        ),
        (
            "verb: lookup",
            "verb: list",
            "/tools/0/include",
            "only a lookup has it",
        ),
        (
            "collection: customers, columns",
            "collection: people, columns",
            "/collections/orders/relations/customer/collection",
            "there is no collection 'people'",
        ),
        (
            "[customer_id]",
            "[customer_no]",
            "/collections/orders/relations/customer/columns/0",
            "there is no column 'customer_no'",
        ),
        (
            "[customer_id]",
            "[note]",
            "/collections/orders/relations/customer/columns/0",
            "column 'note' is string, and 'id' of 'customers' is integer",
        ),
        (
            "[customer_id]",
            "[id, customer_id]",
            "/collections/orders/relations/customer/columns",
            "2 columns cannot hold the key of 'customers', which has 1",
        ),
        (
            ", columns: [customer_id]",
            "",
            "/collections/orders/relations/customer",
            "'columns' is missing",
        ),
        (
            "{ connection: shop, table: customers }",
            "{ connection: crm, table: customers }",
            "/collections/orders/relations/customer/collection",
            "collection 'customers' is reached by another connection or adapter",
        ),
        (
            "      customer: {",
            "      note: {",
            "/tools/0/include/0",
            "there is no relation 'customer'",
        ),
        (
            "    include: [customer]\n",
            "    include: [customer]\n    returns: [id, note]\n",
            "/tools/0/include/0",
            "the lookup does not answer 'customer_id', by which the record is found",
        ),
        (
            "- { name: id, type",
            "- { name: include, column: id, type",
            "/tools/0/fields/0/name",
            "this lookup has its own 'include'",
        ),
    ] {
        let problems = changed(from, to).expect_err(to);
        let found = problems
            .iter()
            .find(|problem| problem.place == place && problem.message == message);
        assert!(
            found.is_some_and(|found| found.hint.is_some()),
            "{to}: {problems:?}"
        );
    }
    let named_like_a_column = DESK
        .replace("customer: {", "note: {")
        .replace("[customer]", "[note]");
    let problems = compiled(&named_like_a_column).expect_err("a column has the name");
    assert_eq!(
        problems[0].message,
        "'note' is a member of the answer already"
    );
}

/// Records that another tool keeps from a caller do not leave beside others.
#[test]
fn a_collection_with_bound_fields_is_not_related() {
    let text = format!(
        "{DESK}  - tool: get_customer\n    verb: lookup\n    collection: customers\n    fields:\n      - {{ name: id, type: number, required: true }}\n      - {{ name: owner, column: name, from: tenant }}\n"
    );
    let problems = compiled(&text).expect_err("rows of others would leave");
    assert_eq!(problems[0].place, "/tools/0/include/0");
    assert!(
        problems[0]
            .message
            .contains("'get_customer' reaches 'customers' with bound fields"),
        "{problems:?}"
    );
}

#[test]
fn changes_of_relations_are_judged() {
    let with = compiled(DESK).expect("compiles");
    let without = changed("    include: [customer]\n", "").expect("compiles");
    let other = changed("columns: [customer_id]", "columns: [id]").expect("compiles");
    for (old, new, class, rule) in [
        (&without, &with, ChangeSeverity::Review, "include-added"),
        (&with, &other, ChangeSeverity::Review, "include-changed"),
        (&with, &without, ChangeSeverity::Breaking, "include-removed"),
    ] {
        let found = diff(old, new);
        assert_eq!(found.class, class, "{rule}: {found:?}");
        let text = serde_json::to_string(&found).expect("JSON");
        assert!(text.contains(rule), "{text}");
    }
    assert_eq!(diff(&with, &with).class, ChangeSeverity::Identical);
}

/// A related record is read by its key alone, so nothing fills in a parameter.
#[test]
fn a_query_that_needs_parameters_is_not_related() {
    for (required, is_refused) in [(true, true), (false, false)] {
        let mut shapes = shapes();
        let customers = json!({ "name": "query", "key": ["id"], "fields": [{ "key": "id", "type": "integer" }],
            "capabilities": { "read": true, "matches": { "*": ["equals"] }, "order": ["*"],
                "params": [{ "name": "country", "type": "string", "required": required }] } });
        let customers = CollectionShape::read(&customers.to_string()).expect("a shape");
        shapes.insert("customers".to_owned(), customers);
        let source = form::read("desk.yaml", DESK).expect("a form");
        match compile(&source, &shapes) {
            Err(problems) => {
                assert!(is_refused, "{problems:?}");
                assert_eq!(
                    problems[0].place,
                    "/collections/orders/relations/customer/collection"
                );
                assert_eq!(
                    problems[0].message,
                    "collection 'customers' needs the parameter 'country'"
                );
            }
            Ok(_) => assert!(!is_refused),
        }
    }
}
