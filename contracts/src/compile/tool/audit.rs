//! The arguments that the audit keeps in clear.

use serde_json::Value;
use weir_schema::walk::{self, each_inside};

use crate::{compile::FileProblems, form, name, secret};

/// Checks that everything the audit keeps in clear is an argument of this tool and no secret.
pub(super) fn check_audit(form: &form::FormTool, problems: &mut FileProblems) {
    for (index, wanted) in form.audit_clear.iter().enumerate() {
        let place = format!("{}/audit/clear/{index}", form.place);
        let Some(field) = form.fields.iter().find(|field| field.name == *wanted) else {
            let names = || form.fields.iter().map(|field| field.name.as_str());
            let hint = match name::nearest(wanted, names()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!(
                    "fields that agents set: {}",
                    names().collect::<Vec<_>>().join(", ")
                ),
            };
            problems.add_hint(
                place,
                format!("there is no argument {}", name::quoted(wanted)),
                hint,
            );
            continue;
        };
        if let Some(secret) = secret_in(field) {
            let message = format!(
                "{} is named like a secret, which no audit keeps in clear",
                name::quoted(secret)
            );
            problems.add_hint(
                place,
                message,
                "drop it from the list: its digest is recorded all the same",
            );
        }
    }
}

/// Returns the first name of a field, or inside it, that looks like a secret's.
fn secret_in(field: &form::FormField) -> Option<&str> {
    let own = [
        Some(&field.name),
        field.column.as_ref(),
        field.param.as_ref(),
    ];
    let own = own
        .into_iter()
        .flatten()
        .map(String::as_str)
        .find(|name| secret::is_named_like_one(name));
    own.or_else(|| match &field.kind {
        form::FieldType::Record { fields } => fields.iter().find_map(secret_in),
        form::FieldType::List { of, .. } => secret_in(of),
        form::FieldType::Json { schema } => secret_inside(schema),
        _ => None,
    })
}

/// Returns the first such name among the members that a schema names at any depth.
fn secret_inside(schema: &Value) -> Option<&str> {
    let Value::Object(schema) = schema else {
        return None;
    };
    let members = walk::members(schema.get("properties"));
    let own = members
        .map(|(name, _)| name.as_str())
        .find(|name| secret::is_named_like_one(name));
    own.or_else(|| {
        let mut found = None;
        each_inside(schema, &mut |inner| {
            found = found.or_else(|| secret_inside(inner))
        });
        found
    })
}
