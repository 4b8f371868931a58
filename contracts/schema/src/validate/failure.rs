//! Turns one failure of the validator into one error of ours, or into several for a failed alternative.

use std::sync::Arc;

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::{Map, Value, json};

use super::{
    ArgumentError, ERRORS_BYTES_MAX, ERRORS_MAX, RenderedValue, SchemaViolation,
    checker::KeywordFailure,
    example::ExampleSource,
    schema, union,
    violations::{ViolationCache, ViolationRank},
};
use crate::{
    json::{self, push_pointer},
    reference,
    schema::beside_null,
};

/// The surroundings that one error depends on.
#[derive(Clone, Copy)]
pub(super) struct FailureContext<'s> {
    pub schema: ExampleSource<'s>,
    pub known: &'s ViolationCache,
}

/// Keywords that constrain a value, in the order in which they are reported.
const CONSTRAINTS: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

impl<'s> FailureContext<'s> {
    pub(super) fn errors(self, failure: &KeywordFailure<'_>, found: &mut Vec<ArgumentError>) {
        let mut path = failure.error.instance_path().as_str().to_owned();
        match failure.error.kind() {
            _ if failure.is_union => self.union(failure, path, found),
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                push_pointer(&mut path, name);
                found.push(ArgumentError::from(self.once(failure, path, |path| {
                    let owner = self.owner(failure);
                    let property = owner
                        .and_then(|owner| owner.get("properties"))
                        .and_then(|all| all.get(name));
                    let property =
                        property.or_else(|| schema::at_instance(self.schema.root, &path));
                    let mut violation = SchemaViolation::at(path, "missing_required");
                    violation.constraint =
                        property.and_then(|property| self.constraint(property, CONSTRAINTS));
                    violation.example = match property {
                        Some(property) => self.schema.example(property),
                        None => self.schema.example(&Value::Bool(true)),
                    };
                    violation
                })));
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                for name in unexpected.iter().take(errors_at(&path)) {
                    let mut path = path.clone();
                    push_pointer(&mut path, name);
                    found.push(
                        self.ranked(SchemaViolation::at(path, "unknown_argument"))
                            .into(),
                    );
                }
            }
            Kind::PropertyNames { error } => {
                let name = error.instance().as_str().unwrap_or_default();
                push_pointer(&mut path, name);
                found.push(
                    self.ranked(SchemaViolation::at(path, "unknown_argument"))
                        .into(),
                );
            }
            kind if takes_nothing(kind) => {
                let in_object = json::pointer_tokens(&path)
                    .last()
                    .is_some_and(|token| token.parse::<usize>().is_err());
                let reason = if in_object {
                    "unknown_argument"
                } else {
                    "not_allowed"
                };
                found.push(self.ranked(SchemaViolation::at(path, reason)).into());
            }
            Kind::MinProperties { limit } => self.too_few(failure, path, *limit, found),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.alternatives(failure, path, context, found);
            }
            kind => {
                let violation = self.once(failure, path, |path| {
                    let owner = self.owner(failure);
                    let (reason, keys) = simple(kind);
                    let mut violation = SchemaViolation::at(path, reason);
                    violation.constraint = owner.and_then(|owner| self.constraint(owner, keys));
                    violation.example = self.example_for(&violation.path, owner);
                    violation
                });
                let mut error = ArgumentError::from(violation);
                if let Kind::Enum { options } = kind {
                    error.suggestion = nearest_value(failure.error.instance(), options);
                }
                found.push(error);
            }
        }
    }

    /// Reports a failure using the parts that depend only on the schema, which are made when this keyword first
    /// fails at this place.
    fn once(
        self,
        failure: &KeywordFailure<'_>,
        path: String,
        make: impl FnOnce(String) -> SchemaViolation,
    ) -> Arc<SchemaViolation> {
        let keyword = &*failure.keyword;
        if let Some(violation) = self.known.get(keyword, &path) {
            return violation;
        }
        let violation = Arc::new(self.ranked(make(path)));
        // Items and unknown names are as many as a caller likes.
        if schema::names_properties(self.schema.root, &violation.path) {
            self.known.keep(keyword, &violation);
        }
        violation
    }

    fn ranked(self, violation: SchemaViolation) -> SchemaViolation {
        SchemaViolation {
            rank: rank(self.schema.root, &violation.path),
            ..violation
        }
    }

    /// Reports too few members by naming members that could be added. An example for the whole would replace the right ones,
    /// such as the key of the record to change.
    fn too_few(
        self,
        failure: &KeywordFailure<'_>,
        path: String,
        least: u64,
        found: &mut Vec<ArgumentError>,
    ) {
        let owner = self.owner(failure);
        let constraint = Some(RenderedValue::from(json!({ "minProperties": least })));
        let present = failure.error.instance().as_object();
        let has = |name: &str| present.is_some_and(|present| present.contains_key(name));
        let properties = owner
            .and_then(|owner| owner.get("properties"))
            .and_then(Value::as_object);
        let required = owner
            .and_then(|owner| owner.get("required"))
            .and_then(Value::as_array);
        let required: Vec<&str> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        // Missing required members are reported on their own.
        let coming = required.iter().filter(|name| !has(name)).count();
        let missing = (least as usize).saturating_sub(present.map_or(0, Map::len) + coming);
        let absent = properties
            .into_iter()
            .flatten()
            .filter(|(name, _)| !required.contains(&name.as_str()) && !has(name));
        let additions =
            absent.filter_map(|(name, property)| Some((name, self.schema.example(property)?)));
        let additions: Vec<_> = additions.take(missing.min(errors_at(&path))).collect();
        if additions.len() < missing {
            let mut violation = SchemaViolation::at(path, "too_few_properties");
            violation.constraint = constraint;
            violation.example = self.example_for(&violation.path, owner);
            found.push(self.ranked(violation).into());
            return;
        }
        for (name, example) in additions {
            let mut path = path.clone();
            push_pointer(&mut path, name);
            let mut violation = SchemaViolation::at(path, "too_few_properties");
            violation.constraint = constraint.clone();
            violation.example = Some(example);
            found.push(self.ranked(violation).into());
        }
    }

    /// Returns the schema object whose keyword failed.
    fn owner(self, failure: &KeywordFailure<'_>) -> Option<&'s Value> {
        let pointer = &*failure.keyword;
        let owner = pointer.rsplit_once('/').map_or("", |(owner, _)| owner);
        self.schema.root.pointer(owner)
    }

    /// Returns an example that fits everything known about the place, or at least the part that failed.
    fn example_for(self, path: &str, owner: Option<&'s Value>) -> Option<RenderedValue> {
        let whole = schema::at_instance(self.schema.root, path);
        whole
            .and_then(|part| self.schema.example(part))
            .or_else(|| self.schema.example(owner?))
    }

    /// Returns the violated rule. A value that may be null has one rule, with `null` among its types and its values.
    fn constraint(self, schema: &Value, keys: &[&str]) -> Option<RenderedValue> {
        let inner = beside_null(schema);
        let mut constraint = Map::new();
        for part in reference::parts(self.schema.root, inner.unwrap_or(schema)) {
            for key in keys {
                if let Some(value) = part.get(*key)
                    && !constraint.contains_key(*key)
                {
                    constraint.insert((*key).to_owned(), value.clone());
                }
            }
        }
        if inner.is_some() {
            if let Some(word) = constraint.get_mut("type").filter(|word| word.is_string()) {
                *word = json!([word, "null"]);
            }
            if let Some(Value::Array(values)) = constraint.get_mut("enum") {
                values.push(Value::Null);
            }
        }
        (!constraint.is_empty()).then(|| Value::Object(constraint).into())
    }

    /// Reports a value that fits no alternative by the alternative that it most likely was meant to be.
    fn alternatives(
        self,
        failure: &KeywordFailure<'_>,
        path: String,
        branches: &[Vec<ValidationError<'static>>],
        found: &mut Vec<ArgumentError>,
    ) {
        let owner = self.owner(failure);
        let is_type_error = |error: &ValidationError<'_>| {
            matches!(error.kind(), Kind::Type { .. }) && error.instance_path().as_str() == path
        };
        let fitting: Vec<&Vec<ValidationError<'static>>> = branches
            .iter()
            .filter(|branch| !branch.iter().any(is_type_error))
            .collect();
        let value = failure.error.instance();
        match fitting[..] {
            [] if !branches.is_empty() => {
                let types = self.types_of(owner, failure);
                let mut violation = SchemaViolation::at(path, "wrong_type");
                violation.constraint = match owner.filter(|owner| beside_null(owner).is_some()) {
                    Some(owner) => self.constraint(owner, CONSTRAINTS),
                    None => Some(json!({ "type": types }).into()),
                };
                violation.example = self.example_for(&violation.path, owner);
                found.push(self.ranked(violation).into());
            }
            [only] => self.all_errors(only, found),
            [_, ..] if value.is_object() || value.is_array() => {
                if let Some(error) = self.key_error(&fitting, value, &path) {
                    found.push(error);
                } else if let Some(nearest) = union::nearest(&fitting, &path) {
                    self.all_errors(nearest, found);
                }
            }
            _ => self.union(failure, path, found),
        }
    }

    fn all_errors(self, errors: &[ValidationError<'_>], found: &mut Vec<ArgumentError>) {
        for error in errors {
            self.errors(&KeywordFailure::from(error), found);
        }
    }

    /// Reports the property that should choose an alternative, if it does not choose any.
    fn key_error(
        self,
        branches: &[&Vec<ValidationError<'static>>],
        value: &Value,
        path: &str,
    ) -> Option<ArgumentError> {
        let key = union::key(branches, path)?;
        let mut place = path.to_owned();
        push_pointer(&mut place, &key.name);
        let (reason, sent) = match value.get(&key.name) {
            Some(sent) => ("not_in_enum", sent),
            None => ("missing_required", &Value::Null),
        };
        let mut violation = SchemaViolation::at(place, reason);
        violation.example = key.values.first().cloned().map(RenderedValue::from);
        let values = Value::Array(key.values);
        let suggestion = nearest_value(sent, &values);
        violation.constraint = Some(json!({ "enum": values }).into());
        Some(ArgumentError {
            suggestion,
            ..self.ranked(violation).into()
        })
    }

    /// Reports a value that fits no alternative, with what each of them allows.
    fn union(self, failure: &KeywordFailure<'_>, path: String, found: &mut Vec<ArgumentError>) {
        let owner = self.owner(failure);
        let (keyword, schemas) = arms(owner, failure);
        let mut violation = SchemaViolation::at(path, "no_match");
        let alternatives: Vec<Value> = schemas
            .iter()
            .map(|schema| {
                self.constraint(schema, CONSTRAINTS)
                    .map_or_else(|| json!({}), |violation| Value::clone(&violation))
            })
            .collect();
        violation.constraint = Some(json!({ keyword: alternatives }).into());
        violation.example = self.example_for(&violation.path, owner);
        found.push(self.ranked(violation).into());
    }

    /// Returns the types that the alternatives name.
    fn types_of(self, owner: Option<&'s Value>, failure: &KeywordFailure<'_>) -> Vec<Value> {
        let mut types: Vec<Value> = Vec::new();
        for stated in arms(owner, failure).1 {
            let stated =
                reference::resolve(self.schema.root, stated).and_then(|schema| schema.get("type"));
            match stated {
                Some(Value::Array(words)) => types.extend(words.iter().cloned()),
                Some(word) => types.push(word.clone()),
                None => {}
            }
        }
        types.dedup();
        types
    }
}

/// Returns the number of errors inside a place at most. Each has a copy of the place.
fn errors_at(path: &str) -> usize {
    (ERRORS_BYTES_MAX / (1 + path.len())).clamp(1, ERRORS_MAX)
}

/// Returns the keyword of the alternatives, and their schemas.
fn arms<'s, 'f>(
    owner: Option<&'s Value>,
    failure: &'f KeywordFailure<'_>,
) -> (&'f str, &'s [Value]) {
    let keyword = failure.keyword.rsplit('/').next().unwrap_or_default();
    let schemas = owner
        .and_then(|owner| owner.get(keyword))
        .and_then(Value::as_array);
    (keyword, schemas.map_or(&[], Vec::as_slice))
}

/// Returns the position of a place in the schema.
fn rank(root: &Value, path: &str) -> ViolationRank {
    let tokens = json::pointer_tokens(path);
    let mut positions = Vec::with_capacity(tokens.len() + 1);
    let mut here = schema::of_container(root, root);
    for token in &tokens {
        let properties = here
            .and_then(|schema| schema.get("properties"))
            .and_then(Value::as_object);
        positions.push(
            match (
                properties.and_then(|all| all.keys().position(|name| name == token)),
                token.parse(),
            ) {
                (Some(position), _) => position,
                (None, Ok(index)) => index,
                (None, Err(_)) => usize::MAX,
            },
        );
        here = here.and_then(|schema| {
            let inner = match properties.and_then(|all| all.get(&**token)) {
                Some(property) => property,
                None => schema.get("items")?,
            };
            schema::of_container(root, inner)
        });
    }
    positions.push(usize::MAX);
    ViolationRank {
        is_whole: tokens.is_empty(),
        positions,
    }
}

/// Returns `true` for a schema that no value meets, in the two ways to write it.
fn takes_nothing(kind: &Kind) -> bool {
    match kind {
        Kind::FalseSchema => true,
        Kind::Not { schema } => *schema == json!({}) || *schema == Value::Bool(true),
        _ => false,
    }
}

/// Returns the reason and the keywords to show, for failures of one value at one keyword.
fn simple(kind: &Kind) -> (&'static str, &'static [&'static str]) {
    const RANGE: &[&str] = &["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"];
    match kind {
        // All rules for a value of the right type are reported in the same error.
        Kind::Type { .. } => ("wrong_type", CONSTRAINTS),
        Kind::Enum { .. } => ("not_in_enum", &["enum"]),
        Kind::Constant { .. } => ("not_in_enum", &["const"]),
        Kind::Minimum { .. }
        | Kind::Maximum { .. }
        | Kind::ExclusiveMinimum { .. }
        | Kind::ExclusiveMaximum { .. } => ("out_of_range", RANGE),
        Kind::MultipleOf { .. } => ("not_multiple", &["multipleOf"]),
        Kind::MinLength { .. } => ("too_short", &["minLength", "maxLength"]),
        Kind::MaxLength { .. } => ("too_long", &["minLength", "maxLength"]),
        // Our own keyword for patterns that look around.
        Kind::Pattern { .. }
        | Kind::Custom { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. } => ("pattern_mismatch", &["pattern"]),
        Kind::Format { .. } => ("bad_format", &["format"]),
        Kind::ContentEncoding { .. } | Kind::ContentMediaType { .. } | Kind::FromUtf8 { .. } => {
            ("bad_format", &["contentEncoding", "contentMediaType"])
        }
        Kind::MinItems { .. } => ("too_few_items", &["minItems", "maxItems"]),
        Kind::MaxItems { .. } | Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. } => {
            ("too_many_items", &["minItems", "maxItems"])
        }
        Kind::UniqueItems => ("not_unique", &["uniqueItems"]),
        Kind::Contains => ("missing_item", &["contains", "minContains", "maxContains"]),
        Kind::MinProperties { .. } => ("too_few_properties", &["minProperties"]),
        Kind::MaxProperties { .. } => ("too_many_properties", &["maxProperties"]),
        Kind::OneOfMultipleValid { .. } => ("ambiguous_match", &[]),
        Kind::Not { .. } => ("not_allowed", &["not"]),
        _ => ("no_match", &[]),
    }
}

/// Returns the allowed value that is most like the one sent.
fn nearest_value(sent: &Value, allowed: &Value) -> Option<String> {
    let sent = sent.as_str()?;
    let allowed = allowed.as_array()?.iter().filter_map(Value::as_str);
    crate::name::nearest(sent, allowed).map(str::to_owned)
}
