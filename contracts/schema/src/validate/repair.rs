//! Completes the errors of a call, so that a client without any other information can repair it in one go.
//!
//! For that the errors are tried out: they are applied to the arguments as such a client would, and a fault that
//! remains becomes a further error, until none is left or the whole is replaced by an example.

use serde_json::{Map, Value};

use super::{
    ArgumentError, ERRORS_BYTES_MAX, ERRORS_MAX, SchemaChecker, SchemaViolation, budget,
    failure::FailureContext, schema,
};
use crate::{json, json::push_pointer, name, reference};

/// Failures looked at in one round.
const FAILURES_MAX: usize = 64;
const ROUNDS_MAX: usize = 4;

/// Adds to `errors` (what the reader found) everything that the schema finds.
pub(super) fn complete(
    checker: &SchemaChecker,
    context: FailureContext<'_>,
    sent: Value,
    errors: &mut Vec<ArgumentError>,
) {
    let schema = context.schema;
    let mut tried = sent;
    let large = !checker.collects(&tried);
    if !errors.is_empty() {
        errors.iter().for_each(|error| apply(&mut tried, error));
        // Saying yes is much quicker than saying why not.
        if checker.is_valid(&tried) {
            return;
        }
    }
    for _ in 0..ROUNDS_MAX {
        let mut found = failures(checker, context, &tried);
        if found.is_empty() {
            return;
        }
        let renamed: Vec<RenamedArgument> = (0..found.len())
            .filter_map(|at| RenamedArgument::new(schema.root, &mut tried, &mut found, at))
            .collect();
        // An example is about to take the place of some; the others fit if everything does.
        let (hidden, renamed): (Vec<_>, Vec<_>) = renamed
            .into_iter()
            .partition(|renamed| found.iter().any(|error| error.path == renamed.path));
        if !large {
            hidden
                .iter()
                .for_each(|renamed| renamed.check(checker, &mut tried, &mut found));
        }
        found.iter().for_each(|error| apply(&mut tried, error));
        let repaired = checker.is_valid(&tried);
        if !repaired && !large {
            renamed
                .iter()
                .for_each(|renamed| renamed.check(checker, &mut tried, &mut found));
        }
        // An error that was reported before, with an example that did not help, gets the new example.
        for error in found {
            match errors
                .iter_mut()
                .find(|other| other.path == error.path && other.reason == error.reason)
            {
                Some(other) => *other = error,
                None => errors.push(error),
            }
        }
        if repaired || budget::is_spent() {
            return;
        }
        if errors.len() >= ERRORS_MAX || bytes(errors) >= ERRORS_BYTES_MAX {
            break;
        }
    }
    if errors.len() < ERRORS_MAX && checker.is_valid(&tried) {
        return;
    }
    // Too much is wrong, or it depends on too much: the last word is one whole example.
    if let Some(whole) = schema
        .example(schema.root)
        .filter(|whole| checker.is_valid(whole))
    {
        cut(errors, ERRORS_MAX - 1);
        let mut violation = SchemaViolation::at(String::new(), "no_match");
        violation.example = Some(whole);
        errors.push(violation.into());
    }
}

/// Repairs the arguments like a client that follows an error to the letter. Unknown arguments are for [`RenamedArgument`].
pub(super) fn apply(arguments: &mut Value, error: &ArgumentError) {
    let mut tokens = json::pointer_tokens(&error.path);
    let Some(last) = tokens.pop() else {
        if let Some(example) = &error.example {
            *arguments = Value::clone(example);
        }
        return;
    };
    let mut place = arguments;
    for token in &tokens {
        let next = match place {
            Value::Object(map) => map.get_mut(&**token),
            Value::Array(items) => token
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get_mut(index)),
            _ => None,
        };
        match next {
            Some(next) => place = next,
            None => return,
        }
    }
    match place {
        Value::Object(map) => {
            let Some(example) = &error.example else {
                return;
            };
            match map.get_mut(&*last) {
                Some(value) => *value = Value::clone(example),
                None => drop(map.insert(last.into_owned(), Value::clone(example))),
            }
        }
        Value::Array(items) => {
            if let (Some(example), Some(item)) = (
                &error.example,
                last.parse::<usize>()
                    .ok()
                    .and_then(|index| items.get_mut(index)),
            ) {
                *item = Value::clone(example);
            }
        }
        _ => {}
    }
}

/// Returns everything the validator finds, in the order of the schema, one error per place and reason; for costly
/// arguments it returns the first failure.
pub(super) fn failures(
    checker: &SchemaChecker,
    context: FailureContext<'_>,
    arguments: &Value,
) -> Vec<ArgumentError> {
    let mut found: Vec<ArgumentError> = Vec::new();
    let (mut left, mut left_bytes) = (FAILURES_MAX, ERRORS_BYTES_MAX);
    checker.failures(arguments, &mut |failure| {
        let before = found.len();
        context.errors(&failure, &mut found);
        left -= 1;
        left_bytes = left_bytes.saturating_sub(bytes(&found[before..]));
        left > 0 && left_bytes > 0 && found.len() < FAILURES_MAX
    });
    let mut at = 0;
    while at < found.len() {
        let error = &found[at];
        let others = |others: &[ArgumentError], reason| {
            others
                .iter()
                .any(|other| other.reason == reason && other.path == error.path)
        };
        let twice = others(&found[..at], error.reason);
        // A value of the wrong type violates everything else too; only the type is worth telling.
        let mistyped = error.reason != "wrong_type" && others(&found, "wrong_type");
        match twice || mistyped {
            true => drop(found.remove(at)),
            false => at += 1,
        }
    }
    found.sort_by(|one, other| one.rank.cmp(&other.rank));
    cut(&mut found, ERRORS_MAX);
    found
}

/// Keeps the first errors, as many and as many bytes as fit in one refusal; the first one is always kept.
pub(super) fn cut(errors: &mut Vec<ArgumentError>, most: usize) {
    let fits = |count: &usize| *count <= 1 || bytes(&errors[..*count]) <= ERRORS_BYTES_MAX;
    let count = (0..=errors.len().min(most)).take_while(fits).last();
    errors.truncate(count.unwrap_or(0));
}

fn bytes(errors: &[ArgumentError]) -> usize {
    errors.iter().map(|error| error.bytes()).sum()
}

/// An unknown argument under the nearest known name.
struct RenamedArgument {
    /// Among the errors that were found.
    at: usize,
    parent: String,
    name: String,
    path: String,
}

impl RenamedArgument {
    /// Takes an unknown argument out, and puts it back under the nearest name that is free.
    fn new(
        root: &Value,
        arguments: &mut Value,
        found: &mut [ArgumentError],
        at: usize,
    ) -> Option<Self> {
        let error = found
            .get_mut(at)
            .filter(|error| error.reason == "unknown_argument")?;
        let (parent, _) = error.path.rsplit_once('/')?;
        let siblings = arguments.pointer_mut(parent)?.as_object_mut()?;
        let tokens = json::pointer_tokens(&error.path);
        let value = siblings.shift_remove(&**tokens.last()?)?;
        let schema = schema::of_container(root, schema::at_instance(root, parent)?)?;
        let named = reference::parts(root, schema)
            .into_iter()
            .filter_map(|part| part.get("properties")?.as_object());
        let free = named
            .flat_map(Map::keys)
            .map(String::as_str)
            .filter(|name| !siblings.contains_key(*name));
        let name = name::nearest(tokens.last()?, free)?.to_owned();
        siblings.insert(name.clone(), value);
        let parent = parent.to_owned();
        let mut path = parent.clone();
        push_pointer(&mut path, &name);
        error.suggestion = Some(name.clone());
        Some(Self {
            at,
            parent,
            name,
            path,
        })
    }

    /// Leaves the argument out when its value does not fit the name.
    fn check(&self, checker: &SchemaChecker, arguments: &mut Value, found: &mut [ArgumentError]) {
        let is_there = |path: &str| {
            path.strip_prefix(&*self.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let (mut fits, mut left) = (true, FAILURES_MAX);
        checker.failures(arguments, &mut |failure| {
            fits = !is_there(failure.error.instance_path().as_str());
            left -= 1;
            fits && left > 0
        });
        if !fits {
            found[self.at].suggestion = None;
            if let Some(Value::Object(siblings)) = arguments.pointer_mut(&self.parent) {
                siblings.shift_remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validate::ArgumentValidator;

    fn refusal(schema: &Value, arguments: &Value) -> String {
        let validator = ArgumentValidator::new(schema).expect("a schema");
        let refused = validator.validate(&arguments.to_string());
        refused.expect_err("a fault").structured_content().to_json()
    }

    /// Each fault has a copy of its place, and states the rule that was broken.
    #[test]
    fn a_refusal_is_bounded_in_bytes() {
        let free = |inner: Value| json!({ "type": "object", "additionalProperties": inner });
        let arm = |names: [&str; 4]| json!({ "type": "object", "required": names });
        let (one, other) = (arm(["a", "b", "c", "d"]), arm(["e", "f", "g", "h"]));
        let arms = json!({ "anyOf": [one, other, { "type": "string" }] });
        let items = free(json!({ "type": "array", "items": arms }));
        let wrong_items = json!({ ("n".repeat(30_000)): vec![json!({}); 2_000] });

        let closed = free(json!({ "type": "object", "additionalProperties": false }));
        let unknown: Map<String, Value> = (0..40).map(|at| (format!("p{at}"), json!(1))).collect();
        let unknown = json!({ ("n".repeat(100_000)): unknown });

        let listed: Vec<String> = (0..4_000).map(|at| format!("v{at}")).collect();
        let field = |at| (format!("f{at}"), json!({ "enum": listed }));
        let fields: Map<String, Value> = (0..40).map(field).collect();
        let choices = json!({ "type": "object", "properties": fields });
        let none: Map<String, Value> = (0..40).map(|at| (format!("f{at}"), json!(1))).collect();

        for (schema, arguments, reason) in [
            (items, wrong_items, "no_match"),
            (closed, unknown, "unknown_argument"),
            (choices, Value::Object(none), "not_in_enum"),
        ] {
            let refusal = refusal(&schema, &arguments);
            let bytes = refusal.len();
            let content: Value = serde_json::from_str(&refusal).expect("JSON");
            assert_eq!(content["errors"][0]["reason"], reason);
            assert!(bytes < 600_000, "{reason}: {bytes} bytes");
        }
    }
}
