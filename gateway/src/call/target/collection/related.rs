//! Related records that a lookup answers in addition to its own: each is read by its key, after the record that refers to it.

use serde_json::{Map, Value};
use weir_plugin_host::{AdapterCondition, AdapterPage, AdapterQuery, CallContext, PluginHost};

use super::{
    shape::{check_page, check_related, mismatch},
    summary::names,
};
use crate::{
    call::CallError,
    catalogue::{CollectionTool, RelatedCollection},
    codes::FailureCode,
};

/// The answer for one relation of a lookup.
pub(in crate::call) struct RelatedPage {
    /// The place of the relation among those of the tool.
    relation: usize,
    /// `None`: the record refers to no other.
    page: Option<AdapterPage>,
}

/// Returns the places of the relations that a call asks for, in the order of the tool.
pub(super) fn asked_relations(
    target: &CollectionTool,
    arguments: &Map<String, Value>,
) -> Vec<usize> {
    if target.related.is_empty() {
        return Vec::new();
    }
    let wanted = names(arguments, "include");
    let relations = target.related.iter().enumerate();
    relations
        .filter(|(_, related)| wanted.contains(&related.name.as_str()))
        .map(|(relation, _)| relation)
        .collect()
}

/// Reads the related records of a page's only record. A page that is not a valid answer of a lookup has none: its fault is
/// reported when it is shaped.
pub(super) async fn read_related(
    host: &PluginHost,
    context: &CallContext,
    target: &CollectionTool,
    relations: &[usize],
    page: &AdapterPage,
) -> Result<Vec<RelatedPage>, CallError> {
    if relations.is_empty() {
        return Ok(Vec::new());
    }
    let Ok(checked) = check_page(target, &page.records) else {
        return Ok(Vec::new());
    };
    let [record] = &checked.records[..] else {
        return Ok(Vec::new());
    };
    let record: Map<String, Value> = serde_json::from_str(record).unwrap_or_default();
    let mut pages = Vec::with_capacity(relations.len());
    for &relation in relations {
        let related = &target.related[relation];
        let page = match key_query(related, &record) {
            Some(query) => Some(host.read(context, &related.source, &query.into()).await?),
            None => None,
        };
        pages.push(RelatedPage { relation, page });
    }
    Ok(pages)
}

/// Asks for the record whose key a record holds; `None` if a part of that key is null.
fn key_query(related: &RelatedCollection, record: &Map<String, Value>) -> Option<AdapterQuery> {
    let condition = |(column, key): (&String, &String)| {
        let value = record.get(column).filter(|value| !value.is_null())?;
        Some(AdapterCondition {
            column: key.clone(),
            comparison: "equals".to_owned(),
            value: value.to_string(),
        })
    };
    let conditions = related.by.iter().zip(&*related.key).map(condition);
    Some(AdapterQuery {
        conditions: conditions.collect::<Option<_>>()?,
        order: related.key.clone(),
        columns: related.columns.clone(),
        limit: 2,
        ..AdapterQuery::default()
    })
}

/// Adds the related records to the record that refers to them, each checked against the shape of its own collection.
pub(super) fn add_related(
    target: &CollectionTool,
    mut record: String,
    pages: &[RelatedPage],
) -> Result<String, CallError> {
    for RelatedPage { relation, page } in pages {
        let related = &target.related[*relation];
        let mut found = match page {
            Some(page) => {
                check_related(related, &page.records)
                    .map_err(|found| mismatch(found, None))?
                    .records
            }
            None => Vec::new(),
        };
        if found.len() > 1 {
            return Err(CallError::new(
                FailureCode::Ambiguous,
                format!(
                    "More than one record is the `{0}` of this one; leave `{0}` out of `include`.",
                    related.name
                ),
            ));
        }
        let other = found.pop().unwrap_or_else(|| "null".to_owned());
        let name = Value::from(related.name.as_str());
        record.pop(); // the end of the object
        let comma = if record.ends_with('{') { "" } else { "," };
        record.push_str(&format!("{comma}{name}:{other}}}"));
    }
    Ok(record)
}
