//! The property of a value that determines which of several schemas it meets.
//!
//! JSON Schema has no such concept: without the property a value may fit several alternatives, and `oneOf` then refuses
//! it. So each alternative is given the value of the property that chooses it.

use serde_json::{Map, Value, json};
use weir_schema::reference;

use super::document::ImportDocument;

const DEPTH_MAX: usize = 8;
/// Schemas that are looked through for one property.
const PARTS_MAX: usize = 200;

/// The discriminator of a schema.
pub(super) struct SchemaDiscriminator<'d> {
    document: &'d ImportDocument,
    pub(super) property: &'d str,
    /// The value of the property, and where the schema that it chooses is in the document.
    mapping: Vec<(&'d str, String)>,
}

/// One of the schemas that the property chooses.
pub(super) struct ChosenSchema {
    /// Where it is in the document.
    pub(super) reference: String,
    /// The rule for the property, in addition to the schema.
    pub(super) rule: Option<Value>,
}

impl<'d> SchemaDiscriminator<'d> {
    pub(super) fn read(
        document: &'d ImportDocument,
        members: &'d Map<String, Value>,
    ) -> Option<Self> {
        let stated = members.get("discriminator")?;
        let mapping = stated.get("mapping").and_then(Value::as_object);
        let mapping = mapping.into_iter().flatten();
        let mapping = mapping.filter_map(|(value, target)| {
            let target = target.as_str()?;
            let is_name = !target.contains(['/', '#']) && !target.ends_with(".json");
            let reference = match is_name {
                true => format!("#/components/schemas/{target}"),
                false => target.to_owned(),
            };
            document.target(&reference).ok()?;
            Some((value.as_str(), reference))
        });
        Some(Self {
            document,
            property: stated.get("propertyName")?.as_str()?,
            mapping: mapping.collect(),
        })
    }

    /// Returns `true` if the property chooses schemas that are not named next to it.
    pub(super) fn has_subtypes(&self) -> bool {
        !self.mapping.is_empty()
    }

    /// Returns the schemas that the property chooses: the alternatives, and those that only the mapping names. `None` if an
    /// alternative has no name by which it could be chosen.
    pub(super) fn choices(&self, alternatives: &'d [Value]) -> Option<Vec<ChosenSchema>> {
        let stated = alternatives.iter().map(reference::stated);
        let mut references: Vec<&str> = stated.collect::<Option<_>>()?;
        for (_, reference) in &self.mapping {
            if !references.contains(&reference.as_str()) {
                references.push(reference);
            }
        }
        let is_required = references
            .iter()
            .all(|reference| self.property_of(reference).is_required);
        let choose = |reference: &str| ChosenSchema {
            reference: reference.to_owned(),
            rule: self.rule(reference, is_required),
        };
        Some(references.into_iter().map(choose).collect())
    }

    /// Returns what the property must be for this schema. A schema that takes none of its values expresses it differently.
    fn rule(&self, reference: &str, is_required: bool) -> Option<Value> {
        let mapped = self.mapping.iter();
        let mapped = mapped.filter(|(_, target)| target == reference);
        let mut values: Vec<&str> = mapped.map(|(value, _)| *value).collect();
        if values.is_empty() {
            values.extend(reference.rsplit('/').next());
        }
        let own = self.property_of(reference).values;
        if let Some(own) = own {
            values.retain(|value| own.iter().any(|one| one == value));
        }
        let value = match values.as_slice() {
            [] => return None,
            [only] => json!({ "const": only }),
            several => json!({ "enum": several }),
        };
        let mut rule = json!({ "type": "object", "properties": { self.property: value } });
        if is_required {
            rule["required"] = json!([self.property]);
        }
        Some(rule)
    }

    /// Returns the schema's own statement about the property.
    fn property_of(&self, reference: &str) -> StatedProperty {
        let mut stated = StatedProperty::default();
        if let Ok(schema) = self.document.target(reference) {
            self.look(schema, 0, &mut PARTS_MAX.clone(), &mut stated);
        }
        stated
    }

    fn look(&self, schema: &Value, depth: usize, left: &mut usize, stated: &mut StatedProperty) {
        let Ok(schema) = self.document.resolved(schema) else {
            return;
        };
        if depth > DEPTH_MAX || *left == 0 {
            return;
        }
        *left -= 1;
        let required = schema.get("required").and_then(Value::as_array);
        stated.is_required |=
            required.is_some_and(|names| names.iter().any(|name| name == self.property));
        let property = schema
            .get("properties")
            .and_then(|properties| properties.get(self.property))
            .and_then(|property| self.document.resolved(property).ok());
        let values = property.and_then(|property| match property.get("const") {
            Some(value) => Some(vec![value.clone()]),
            None => property.get("enum")?.as_array().cloned(),
        });
        if let Some(values) = values {
            match &mut stated.values {
                Some(known) => known.retain(|value| values.contains(value)),
                None => stated.values = Some(values),
            }
        }
        let parts = schema.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.look(part, depth + 1, left, stated);
        }
    }
}

#[derive(Default)]
struct StatedProperty {
    is_required: bool,
    /// The values that it may have, if they are listed.
    values: Option<Vec<Value>>,
}
