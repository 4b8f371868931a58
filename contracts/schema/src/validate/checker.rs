//! A compiled schema that estimates the cost of its check: cheap values are checked directly, others in counted steps.

use std::{borrow::Cow, sync::OnceLock};

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::{
    ValidationAuthority,
    bounded::BoundedValidator,
    budget::{self, StepBudget},
    fault,
};
use crate::{
    cost::{SchemaCost, ValueSteps},
    json,
    schema::RawSchema,
};

/// Steps that a check may take at most to run as the validator does it, uncounted.
const UNCOUNTED_STEPS: u64 = 1_000_000;
/// Up to this many steps, all faults of a value are collected. Each fault takes a few hundred bytes.
const COLLECTED_STEPS: u64 = 300_000;
/// Values of which every fault is collected.
const COLLECTED_VALUES: u64 = 10_000;
/// Bytes for which a fault counts once. Each has a copy of its place, in which names are as long as the caller likes, and some have
/// one of their rule.
const FAULT_BYTES: usize = 256;
/// Bytes of a text that count as one value. A longer one is a long text.
pub(super) const TEXT_BYTES: usize = 64;

/// Steps for one call in total: for a call that is checked on the thread of its request, and for any other call.
pub(super) const CALL_STEPS: u64 = 2_000_000;
const HEAVY_CALL_STEPS: u64 = 20_000_000;

/// A compiled JSON Schema whose checks are bounded.
pub struct SchemaChecker {
    plain: Validator,
    cost: SchemaCost,
    judge: ValidationAuthority,
    schema: RawSchema,
    bounded: OnceLock<Option<Box<BoundedValidator>>>,
}

/// One failure of the validator.
pub struct KeywordFailure<'e> {
    pub error: &'e ValidationError<'e>,
    /// JSON Pointer to the keyword in the schema.
    pub keyword: Cow<'e, str>,
    /// Whether it is about alternatives whose faults were not collected.
    pub is_union: bool,
}

/// The size of a value.
#[derive(Clone, Copy, Default)]
struct ValueSize {
    values: u64,
    depth: usize,
    /// Bytes of all texts.
    text_bytes: usize,
    /// Bytes of long texts.
    long_bytes: usize,
    /// Bytes of the longest place.
    place_bytes: usize,
}

impl SchemaChecker {
    /// Compiles a schema. The error explains why it cannot be used.
    pub fn new(schema: &Value, judge: ValidationAuthority) -> Result<Self, String> {
        let (plain, cost) = super::built(schema, judge)?;
        Ok(Self {
            plain,
            cost,
            judge,
            schema: RawSchema::from(schema.clone()),
            bounded: OnceLock::new(),
        })
    }

    /// Returns `true` if the value of a JSON text may take long to check.
    pub fn is_heavy(&self, text: &str) -> bool {
        let values = (text.len() / 2 + 1) as u64;
        let of_texts = self.cost.for_texts(text.len());
        let takes_long = |cost: ValueSteps| {
            cost.check.saturating_mul(values).saturating_add(of_texts) > UNCOUNTED_STEPS
        };
        takes_long(self.cost.at_any_depth()) && takes_long(self.cost.at_depth(json::depth(text)))
    }

    /// Returns the steps for one call.
    pub fn budget(&self, text: &str) -> u64 {
        match self.is_heavy(text) {
            true => HEAVY_CALL_STEPS,
            false => CALL_STEPS,
        }
    }

    /// Checks the value of a JSON text. Where the budget is spent the answer is `false`.
    pub fn is_valid_text(&self, value: &Value, text: &str) -> bool {
        match self.is_heavy(text) {
            true => self.is_valid(value),
            false => self.plain.is_valid(value),
        }
    }

    /// Checks a value. Where the budget is spent the answer is `false`.
    pub fn is_valid(&self, value: &Value) -> bool {
        let size = ValueSize::measure(value);
        let steps = self.steps(size, size.text_bytes, |cost| cost.check);
        if steps <= UNCOUNTED_STEPS {
            return budget::take(steps) && self.plain.is_valid(value);
        }
        match self.bounded() {
            Some(bounded) => bounded.validator.is_valid(value) && !budget::is_spent(),
            None => budget::take(u64::MAX),
        }
    }

    /// Returns `true` if all failures of a value are collected, not only the first.
    pub fn collects(&self, value: &Value) -> bool {
        let size = ValueSize::measure(value);
        size.values <= COLLECTED_VALUES
            && self.report_steps(size) <= COLLECTED_STEPS
            && self.cost.for_texts(size.text_bytes) <= UNCOUNTED_STEPS
    }

    /// Returns the maximum steps for a value whose texts have this many bytes.
    fn steps(
        &self,
        size: ValueSize,
        text_bytes: usize,
        of_each: impl Fn(ValueSteps) -> u64,
    ) -> u64 {
        let steps = of_each(self.cost.at_depth(size.depth)).saturating_mul(size.values);
        steps.saturating_add(self.cost.for_texts(text_bytes))
    }

    /// Returns the steps for collecting the faults of a value. Of each short text most patterns see nothing, so that its bytes
    /// do not count.
    fn report_steps(&self, size: ValueSize) -> u64 {
        let fault_bytes = size.place_bytes + self.cost.copied_bytes();
        let steps = self.steps(size, size.long_bytes, |cost| cost.report);
        steps.saturating_mul(1 + (fault_bytes / FAULT_BYTES) as u64)
    }

    /// Calls `visit` with every failure, until it returns `false`; of a value that is costly, with the first one.
    pub fn failures(&self, value: &Value, visit: &mut dyn FnMut(KeywordFailure<'_>) -> bool) {
        if self.collects(value) {
            if !budget::take(self.report_steps(ValueSize::measure(value))) {
                return;
            }
            _ = self
                .plain
                .iter_errors(value)
                .all(|error| visit(KeywordFailure::from(&error)));
            return;
        }
        let Some(bounded) = self.bounded().filter(|bounded| bounded.explains) else {
            return;
        };
        if let Err(error) = bounded.validator.validate(value)
            && !budget::is_spent()
            && let Some(keyword) = bounded.keyword_place(error.schema_path().as_str())
        {
            let is_union = matches!(
                error.kind(),
                jsonschema::error::ValidationErrorKind::Not { .. }
            ) && !keyword.ends_with("/not");
            visit(KeywordFailure {
                error: &error,
                keyword,
                is_union,
            });
        }
    }

    /// Returns the place of the first fault of a value, and why it is one. The value itself is not part of it.
    pub fn first_fault(&self, value: &Value, text: &str) -> Option<(String, String)> {
        let _budget = StepBudget::start(self.budget(text));
        if self.is_valid_text(value, text) {
            return None;
        }
        let mut found = None;
        let mut note = |failure: KeywordFailure<'_>| {
            found = Some(match failure.is_union {
                true => (
                    failure.error.instance_path().to_string(),
                    "it fits none of the alternatives".to_owned(),
                ),
                false => fault::describe(fault::nearest(failure.error)),
            });
            false
        };
        match self.collects(value) {
            true => {
                _ = self
                    .plain
                    .validate(value)
                    .map_err(|error| note(KeywordFailure::from(&error)))
            }
            false => self.failures(value, &mut note),
        }
        let without_place = match budget::is_spent() {
            true => "checking it takes more steps than one call may have",
            false => "it does not meet its schema",
        };
        found.or_else(|| Some((String::new(), without_place.to_owned())))
    }

    fn bounded(&self) -> Option<&BoundedValidator> {
        self.bounded
            .get_or_init(|| BoundedValidator::new(&self.schema.value(), self.judge).map(Box::new))
            .as_deref()
    }
}

impl<'e> From<&'e ValidationError<'_>> for KeywordFailure<'e> {
    fn from(error: &'e ValidationError<'_>) -> Self {
        Self {
            error,
            keyword: error.schema_path().as_str().into(),
            is_union: false,
        }
    }
}

impl ValueSize {
    fn measure(value: &Value) -> Self {
        let mut size = Self::default();
        size.add(value, 0, 0);
        size
    }

    /// Adds a value at a place of this many bytes.
    fn add(&mut self, value: &Value, depth: usize, place: usize) {
        self.values += 1;
        self.depth = self.depth.max(depth);
        self.place_bytes = self.place_bytes.max(place);
        match value {
            Value::String(value) => self.add_text(value),
            Value::Array(items) => {
                for item in items {
                    self.add(item, depth + 1, place + 1);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.add_text(name);
                    self.add(member, depth + 1, place + 1 + name.len());
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        self.values += (text.len() / TEXT_BYTES) as u64;
        self.text_bytes += text.len();
        if text.len() >= TEXT_BYTES {
            self.long_bytes += text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_with_large_copies_are_not_all_collected() {
        let checker_of = |items: Value| {
            let list = json!({ "type": "array", "items": items });
            let schema = json!({ "type": "object", "additionalProperties": list });
            SchemaChecker::new(&schema, ValidationAuthority::Own).expect("a schema")
        };
        let long = "n".repeat(20_000);
        for (items, place) in [
            (json!({ "type": "string" }), &*long),
            (json!({ "not": { "title": long } }), "a"),
            (json!({ "required": [long] }), "a"),
        ] {
            let checker = checker_of(items);
            let value = |count| json!({ place: vec![1; count] });
            assert!(checker.collects(&value(5)));
            assert!(!checker.collects(&value(9_000)));
        }
    }

    #[test]
    fn the_depth_of_a_text_is_that_of_its_value() {
        for (text, expected) in [
            ("1", 0),
            ("{\"a\":[1,{}],\"b\":[[]]}", 3),
            ("[\"]\",\"\\\"]\",[[1]]]", 3),
        ] {
            let value: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(json::depth(text), expected, "{text}");
            let inside = usize::from(!text.starts_with('1'));
            assert!(
                ValueSize::measure(&value).depth + inside >= expected,
                "{text}"
            );
        }
    }
}
