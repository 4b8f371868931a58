//! Decides whether a source still has what a contract version was published with.

use super::{CollectionShape, ShapeField, ValueType};
use crate::name;

impl CollectionShape {
    /// Checks that a live shape satisfies the recorded one (`self`): every recorded field is there with the same or a narrower
    /// type, and everything else that tools ask for can be asked as before. Further fields do not matter. The error has one
    /// reason for each fault.
    pub fn satisfied_by(&self, live: &CollectionShape) -> Result<(), Vec<String>> {
        let mut reasons = Vec::new();
        for field in &self.fields {
            // The contract decides whether a key can be null: records whose key is null are refused when they are read.
            let is_key = self.key.contains(&field.key);
            match live.field(&field.key) {
                Some(found) => compare(field, found, is_key, &field.key, &mut reasons),
                None => reasons.push(format!("column {} is gone", name::quoted(&field.key))),
            }
        }
        if self.capabilities.guarded_write && !live.capabilities.guarded_write {
            reasons.push(
                "updates and deletes no longer accept conditions in addition to the key".to_owned(),
            );
        }
        if self.capabilities.summaries > live.capabilities.summaries {
            reasons.push("records can no longer be counted or summarized".to_owned());
        }
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(reasons),
        }
    }
}

fn compare(
    recorded: &ShapeField,
    live: &ShapeField,
    nullable_agreed: bool,
    path: &str,
    reasons: &mut Vec<String>,
) {
    if !narrower(live.kind, recorded.kind) {
        let (was, now) = (recorded.kind.word(), live.kind.word());
        reasons.push(format!(
            "column {} was {was} and is now {now}",
            name::quoted(path)
        ));
        return;
    }
    if recorded.kind == ValueType::Json {
        return;
    }
    if live.nullable && !recorded.nullable && !nullable_agreed {
        reasons.push(format!("column {} may now be null", name::quoted(path)));
    }
    for field in &recorded.fields {
        let path = format!("{path}.{}", field.key);
        match live.fields.iter().find(|other| other.key == field.key) {
            Some(found) => compare(field, found, false, &path, reasons),
            None => reasons.push(format!("column {} is gone", name::quoted(&path))),
        }
    }
    if let Some(items) = &recorded.items {
        match &live.items {
            Some(found) => compare(items, found, false, &format!("{path}[]"), reasons),
            None => reasons.push(format!(
                "the items of column {} are no longer typed",
                name::quoted(path)
            )),
        }
    }
}

/// Returns `true` if every JSON value of the first type is one of the second.
fn narrower(live: ValueType, recorded: ValueType) -> bool {
    live == recorded
        || match recorded {
            ValueType::Json => true,
            ValueType::Number => live == ValueType::Integer,
            ValueType::String => matches!(
                live,
                ValueType::Decimal | ValueType::Date | ValueType::Datetime
            ),
            _ => false,
        }
}
