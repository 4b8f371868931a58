//! A source that no longer matches its published contract: what its callers would get from it, and what to edit.

use std::sync::Arc;

use crate::{
    compile,
    contract::{CompiledContract, ContractCollection},
    diff::{ContractDiff, diff},
    form,
    shape::{CollectionShape, ShapeField},
};

/// Compares the results of one collection's tools with those that they would have from the source as it is now, by the rules
/// for results of two versions.
pub fn difference(
    contract: &CompiledContract,
    collection: &str,
    live: &CollectionShape,
) -> ContractDiff {
    diff(contract, &as_served(contract, collection, live))
}

fn as_served(
    contract: &CompiledContract,
    collection: &str,
    live: &CollectionShape,
) -> CompiledContract {
    let mut served = contract.clone();
    let Some(known) = contract.collection(collection) else {
        return served;
    };
    let live = as_read(known, live);
    let as_now = |name: &str| match name == collection {
        true => Some((&live, &known.published)),
        false => {
            let other = contract.collection(name)?;
            Some((&other.shape, &other.published))
        }
    };
    for tool in &mut served.tools {
        let Some(target) = tool.collection() else {
            continue;
        };
        let binding = &target.binding;
        let includes = || {
            binding
                .include
                .iter()
                .any(|one| one.collection == collection)
        };
        if binding.collection != collection && !includes() {
            continue;
        }
        let Some((shape, _)) = as_now(&binding.collection) else {
            continue;
        };
        let operations = &shape.capabilities.operations;
        let fields = match &binding.operation {
            None => &shape.fields,
            Some(name) => match operations.iter().find(|known| known.name == *name) {
                Some(operation) => &operation.returns,
                None => continue,
            },
        };
        let mut schema = compile::output_schema(target.verb, fields, binding, shape);
        let related = |name: &str| {
            let (shape, published) = as_now(name)?;
            Some((&shape.fields[..], &published[..]))
        };
        compile::add_related(&binding.include, related, &mut schema);
        Arc::make_mut(tool).output_schema = Some(schema.into());
    }
    served
}

/// Returns the source's shape after the contract's overrides, with the descriptions that the contract was published
/// with.
fn as_read(known: &ContractCollection, live: &CollectionShape) -> CollectionShape {
    let mut live = live.clone();
    live.apply(&known.overrides);
    live.key.clone_from(&known.shape.key);
    live.apply_misfits(known.shape.misfits, &known.shape.null_words);
    for field in &mut live.fields {
        field.nullable &= !known.shape.key.contains(&field.key);
        field.description = known
            .shape
            .field(&field.key)
            .and_then(|known| known.description.clone());
    }
    live
}

/// Returns a column that is gone and the one new column that is like it, which seems to be its new name. If there are
/// two candidates, none is returned.
pub fn renamed(known: &ContractCollection, live: &CollectionShape) -> Option<(String, String)> {
    let now = as_read(known, live).fields;
    let mut gone = known
        .shape
        .fields
        .iter()
        .filter(|field| !now.iter().any(|other| other.key == field.key));
    let new: Vec<&ShapeField> = now
        .iter()
        .filter(|field| known.shape.field(&field.key).is_none())
        .collect();
    let (Some(gone), None) = (gone.next(), gone.next()) else {
        return None;
    };
    match new[..] {
        [new] if new.kind == gone.kind => Some((gone.key.clone(), new.key.clone())),
        _ => None,
    }
}

/// Returns what to change in the form when a column has a new name, one sentence for each place.
pub fn edits(source: &form::ContractSource, collection: &str, old: &str, new: &str) -> Vec<String> {
    let mut edits = Vec::new();
    let mut write = |place: String| edits.push(format!("{place}: write `{new}` for `{old}`"));
    let is_old = |entry: &String| entry == old || entry.strip_prefix('-') == Some(old);
    let lists = |place: &str, key: &str, list: &[String]| -> Vec<String> {
        let found = list.iter().enumerate().filter(|(_, entry)| is_old(entry));
        found
            .map(|(index, _)| format!("{place}/{key}/{index}"))
            .collect()
    };
    for entry in source
        .collections
        .iter()
        .filter(|entry| entry.name == collection)
    {
        lists(
            &entry.place,
            "columns",
            entry.columns.as_deref().unwrap_or_default(),
        )
        .into_iter()
        .for_each(&mut write);
        for relation in &entry.relations {
            lists(&relation.place, "columns", &relation.columns)
                .into_iter()
                .for_each(&mut write);
        }
        lists(&entry.place, "hide", &entry.hide)
            .into_iter()
            .for_each(&mut write);
        lists(
            &entry.place,
            "key",
            entry.key.as_deref().unwrap_or_default(),
        )
        .into_iter()
        .for_each(&mut write);
        let is_overridden = entry.overrides.iter().any(|column| column.column == old);
        is_overridden.then(|| write(format!("{}/shape", entry.place)));
    }
    let mut added = Vec::new();
    for tool in source
        .tools
        .iter()
        .filter(|tool| tool.collection.as_deref() == Some(collection))
    {
        let fields = tool
            .fields
            .iter()
            .map(|field| (&field.place, &field.name, &field.column, &field.param));
        let bound = tool
            .bound
            .iter()
            .map(|field| (&field.place, &field.name, &field.column, &field.param));
        for (place, name, column, param) in fields.chain(bound) {
            match column {
                Some(column) if column == old => write(format!("{place}/column")),
                None if name == old && param.is_none() => {
                    added.push(format!("{place}: add `column: {new}`"))
                }
                _ => {}
            }
        }
        for (key, list) in [
            ("order", &tool.order),
            ("order_by", &tool.order_by),
            ("columns", &tool.columns),
            ("returns", &tool.returns),
            ("group_by", &tool.group_by),
        ] {
            lists(&tool.place, key, list.as_deref().unwrap_or_default())
                .into_iter()
                .for_each(&mut write);
        }
        for (index, measure) in tool.measures.iter().flatten().enumerate() {
            let function = measure.strip_suffix(&format!("({old})"));
            added.extend(function.map(|function| {
                let place = format!("{}/measures/{index}", tool.place);
                format!("{place}: write `{function}({new})` for `{measure}`")
            }));
        }
        let is_mentioned = tool
            .say
            .as_ref()
            .is_some_and(|say| say.contains(&format!("{{{old}}}")));
        is_mentioned.then(|| write(format!("{}/say", tool.place)));
    }
    edits.extend(added);
    edits
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::diff::{ChangeSeverity, SchemaSide};

    const FORM: &str = r#"
contract: parts
collections:
  parts: { adapter: sheet, settings: {}, columns: [id, stock, name], key: [id] }
tools:
  - tool: list_parts
    description: Lists parts.
    verb: list
    collection: parts
    order: [-stock]
    order_by: [name, stock]
    say: "Part {name} with {stock}"
    fields:
      - { name: stock, type: number }
      - { name: least, type: number, column: stock, match: at-least }
  - tool: summarize_parts
    description: Parts by stock.
    verb: summarize
    collection: parts
    group_by: [stock]
    measures: [count, sum(stock)]
    fields: []
  - tool: choose_parts
    description: Parts with columns of choice.
    verb: list
    collection: parts
    columns: [stock]
    fields: []
"#;

    fn shape(fields: &str) -> CollectionShape {
        CollectionShape::read(&format!(
            r#"{{"name": "parts", "key": ["id"], "fields": [{fields}]}}"#
        ))
        .expect("a shape")
    }

    fn published() -> (form::ContractSource, CompiledContract) {
        let source = form::read("parts.yaml", FORM).expect("a form");
        let shapes = BTreeMap::from([("parts".to_owned(), shape(ID_NAME_STOCK))]);
        let contract = compile::compile(&source, &shapes).expect("it compiles");
        (source, contract)
    }

    const ID_NAME_STOCK: &str = r#"{"key": "id", "type": "integer"}, {"key": "name", "type": "string"}, {"key": "stock", "type": "integer"}"#;

    #[test]
    fn what_the_source_became_is_a_difference_of_results() {
        let (_, contract) = published();
        let change = |to: &str| difference(&contract, "parts", &shape(to));
        assert_eq!(change(ID_NAME_STOCK).class, ChangeSeverity::Identical);
        let further = format!("{ID_NAME_STOCK}, {{\"key\": \"note\", \"type\": \"string\"}}");
        assert_eq!(
            change(&further).class,
            ChangeSeverity::Identical,
            "a further column reaches no caller"
        );
        for other in [
            ID_NAME_STOCK.replace("\"stock\"", "\"amount\""),
            ID_NAME_STOCK.replacen("integer", "string", 2),
        ] {
            let change = change(&other);
            assert_eq!(
                (change.class, change.items[0].side),
                (ChangeSeverity::Breaking, Some(SchemaSide::Output)),
                "{change:?}"
            );
            assert_eq!(change.fingerprint.len(), 64);
        }
    }

    const STATEMENT: &str = r#"
contract: parts
collections:
  sold: { adapter: sql, settings: { connection: shop, statement: "UPDATE …" }, write: true }
tools:
  - tool: sell_part
    description: Sells a part.
    verb: call
    collection: sold
    operation: run
    fields:
      - { name: id, type: number, param: id, required: true }
"#;

    #[test]
    fn what_a_statement_answers_is_compared_too() {
        let shape = |returns: &str| {
            let text = format!(
                r#"{{"name": "statement", "fields": [], "capabilities": {{"operations": [{{"name": "run", "effect": "destructive",
                "params": [{{"name": "id", "type": "integer", "required": true}}], "returns": [{returns}]}}]}}}}"#
            );
            CollectionShape::read(&text).expect("a shape")
        };
        let source = form::read("parts.yaml", STATEMENT).expect("a form");
        let shapes = BTreeMap::from([("sold".to_owned(), shape(ID_NAME_STOCK))]);
        let contract = compile::compile(&source, &shapes).expect("it compiles");
        let change = |to: &str| difference(&contract, "sold", &shape(to));
        assert_eq!(change(ID_NAME_STOCK).class, ChangeSeverity::Identical);
        let other = change(&ID_NAME_STOCK.replace("\"stock\"", "\"amount\""));
        assert_eq!(other.class, ChangeSeverity::Breaking, "{other:?}");
        assert_eq!(other.items[0].side, Some(SchemaSide::Output));
    }

    #[test]
    fn a_renamed_column_is_told_with_every_edit() {
        let (source, contract) = published();
        let known = &contract.collections[0];
        let live = shape(&ID_NAME_STOCK.replace("stock", "amount"));
        let (old, new) = renamed(known, &live).expect("one is gone, and one like it is new");
        assert_eq!((old.as_str(), new.as_str()), ("stock", "amount"));
        let two = format!(
            "{}, {{\"key\": \"price\", \"type\": \"integer\"}}",
            ID_NAME_STOCK.replace("stock", "amount")
        );
        assert_eq!(renamed(known, &shape(&two)), None, "it could be either");
        assert_eq!(
            renamed(
                known,
                &shape(&ID_NAME_STOCK.replacen("integer", "string", 2))
            ),
            None
        );
        let expected = [
            "/collections/parts/columns/1: write `amount` for `stock`",
            "/tools/0/fields/1/column: write `amount` for `stock`",
            "/tools/0/order/0: write `amount` for `stock`",
            "/tools/0/order_by/1: write `amount` for `stock`",
            "/tools/0/say: write `amount` for `stock`",
            "/tools/1/group_by/0: write `amount` for `stock`",
            "/tools/2/columns/0: write `amount` for `stock`",
            "/tools/0/fields/0: add `column: amount`",
            "/tools/1/measures/1: write `sum(amount)` for `sum(stock)`",
        ];
        assert_eq!(edits(&source, "parts", &old, &new), expected);
    }
}
