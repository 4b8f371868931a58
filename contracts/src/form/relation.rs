//! Reads the relations of a collection: its columns that are the key of another collection's records.

use super::{
    keys,
    table::{FileProblems, FormTable},
};
use crate::json;

/// A record of another collection, whose key is in columns of this one.
#[derive(Clone, Debug)]
pub struct FormRelation {
    pub name: String,
    /// The other collection.
    pub collection: String,
    /// The columns with the key of the other record, in the order of that key.
    pub columns: Vec<String>,
    pub(crate) place: String,
}

/// Reads `relations: { customer: { collection: customers, columns: [customer_id] } }`.
pub(super) fn read(table: &FormTable<'_>, problems: &mut FileProblems) -> Vec<FormRelation> {
    let Some(entries) = table.object("relations", problems) else {
        return Vec::new();
    };
    let parent = table.at("relations");
    let mut relations = Vec::new();
    for (name, value) in entries {
        let mut place = parent.clone();
        json::push_pointer(&mut place, name);
        let Some(entry) = FormTable::new(value, place.clone(), problems) else {
            continue;
        };
        entry.check_known(keys::RELATION, problems);
        let collection = entry.required_text("collection", problems);
        let columns = entry.names("columns", problems);
        if !entry.has("columns") {
            let hint = "name the columns that hold the key of the other record";
            problems.add_hint(place.clone(), "'columns' is missing", hint);
        }
        let (Some(collection), Some(columns)) = (collection, columns) else {
            continue;
        };
        relations.push(FormRelation {
            name: name.clone(),
            collection,
            columns,
            place,
        });
    }
    relations
}
