//! The gate in front of a source: arguments against the published schema, with errors an agent can repair from.
//!
//! Valid arguments are read once and answered quickly. Only refused arguments are examined closely: the errors are applied as
//! a mechanical client would apply them, and the errors that remain are reported as well.

mod absent;
mod bounded;
mod budget;
mod checker;
mod clear;
mod digits;
mod example;
mod failure;
mod fault;
mod lengths;
mod looking;
mod pattern;
mod repair;
mod schema;
mod scope;
mod text;
mod union;
mod violations;

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value, json};
use weir_text::shorten;

pub use self::digits::with_text_form;
pub use self::lengths::PatternLengths;
pub use self::pattern::{takes_every_text, takes_no_text};
pub use self::violations::{RenderedValue, SchemaViolation};
use self::{
    budget::StepBudget,
    example::{ExampleSource, SchemaExamples},
    failure::FailureContext,
    violations::ViolationCache,
};
pub use self::{checker::SchemaChecker, looking::looking_patterns};
use crate::{
    cost::SchemaCost,
    json::{self, JsonError, JsonFault},
};

/// The bound on reported errors; a call with more is not a near miss.
const ERRORS_MAX: usize = 32;
/// Bytes of the errors that are found at once. Each may have a name that the caller made up, or a long list of the schema.
const ERRORS_BYTES_MAX: usize = 256 << 10;
/// Largest schema that is compiled, in bytes of its text.
const SCHEMA_BYTES_MAX: usize = 2 << 20;
/// Bytes that the compiled form of one pattern may take, and those that it may take for its states.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Checks arguments against one input schema. Built once per snapshot.
pub struct ArgumentValidator {
    checker: SchemaChecker,
    /// The schema, in a box since examples are found by the address of a part of it.
    schema: Box<Value>,
    examples: SchemaExamples,
    known: ViolationCache,
    /// The argument that names the fields to empty.
    clear: Option<String>,
    /// Whether the digits of numbers stay as they are, for a server or a service that knows which it accepts.
    is_wide: bool,
    /// Numbers may be given as texts of digits.
    has_digits: bool,
}

/// The rules for arguments that no schema has.
#[derive(Clone, Debug)]
pub struct ValidationRules {
    pub judge: ValidationAuthority,
    /// The argument that names the fields to empty.
    pub clear: Option<String>,
    /// Whether the digits of numbers stay as they are, for a server or a service that knows which it accepts.
    pub is_wide: bool,
    /// Numbers may be given as texts of digits, where the schema has that form.
    pub has_digits: bool,
}

/// The faults of the arguments; `errors` is never empty.
#[derive(Clone, Debug)]
pub struct InvalidArguments {
    pub errors: Vec<ArgumentError>,
}

/// The members that an agent reads of a failed call, in this order.
#[derive(Clone, Debug, Default)]
pub struct ErrorContent<'a> {
    pub code: &'a str,
    /// The id of a call at a gateway.
    pub call_id: Option<&'a str>,
    pub message: Cow<'a, str>,
    pub field: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub errors: &'a [ArgumentError],
    pub retry_after_ms: Option<u32>,
    pub outcome: Option<&'a str>,
}

/// One problem, with enough to repair it mechanically. It never contains the value that was sent.
#[derive(Clone, Debug)]
pub struct ArgumentError {
    violation: Arc<SchemaViolation>,
    /// The nearest known name or allowed value.
    pub suggestion: Option<String>,
}

/// Every reason, its meaning, and its repair.
pub const REASONS: &[(&str, &str)] = &[
    (
        "missing_required",
        "the argument must be there: send `example` or a value that meets `constraint`",
    ),
    (
        "unknown_argument",
        "no such argument: rename it to `suggestion` where given, else leave it out",
    ),
    (
        "wrong_type",
        "the type of the value differs from `constraint`",
    ),
    (
        "not_in_enum",
        "the value is not one of the allowed ones in `constraint`",
    ),
    (
        "out_of_range",
        "the number is below, above or too large to be exact",
    ),
    (
        "bad_format",
        "the text is not of the format in `constraint`",
    ),
    ("too_long", "the text has more characters than allowed"),
    ("too_short", "the text has fewer characters than asked for"),
    ("pattern_mismatch", "the text does not match the pattern"),
    ("too_many_items", "the list has more items than allowed"),
    ("too_few_items", "the list has fewer items than asked for"),
    (
        "missing_item",
        "the list lacks an item that `constraint` asks for",
    ),
    ("not_unique", "the list has an item twice"),
    (
        "not_multiple",
        "the number is not a multiple of the one in `constraint`",
    ),
    (
        "too_few_properties",
        "the object has fewer members than asked for (on an update: nothing to change); `path` names one that may be added",
    ),
    (
        "too_many_properties",
        "the object has more members than allowed",
    ),
    (
        "no_match",
        "the value fits none of the alternatives in `constraint`",
    ),
    (
        "ambiguous_match",
        "the value fits several alternatives where only one may fit",
    ),
    (
        "set_and_cleared",
        "`clear` names a field that has a value in the same call: give it a value or name it, not both",
    ),
    ("not_allowed", "the value is excluded"),
    ("duplicate_key", "the member is there twice"),
    (
        "invalid_json",
        "the arguments are not JSON, or not JSON that every reader reads alike",
    ),
    ("too_deep", "the arguments are nested deeper than 64 levels"),
    (
        "too_costly",
        "checking the arguments takes more steps than one call may have: send fewer items, or nest them less deeply",
    ),
    (
        "bad_cursor",
        "the cursor is not one of this tool's, or too old: start again without it",
    ),
];

impl ArgumentValidator {
    /// Compiles a schema, which may be any JSON Schema 2020-12. Formats are asserted, regexes run in linear time, and
    /// nothing is fetched.
    pub fn new(schema: &Value) -> Result<Self, String> {
        Ok(Self::with(
            SchemaChecker::new(schema, ValidationAuthority::Own)?,
            schema,
        ))
    }

    fn with(checker: SchemaChecker, schema: &Value) -> Self {
        let schema = Box::new(schema.clone());
        Self {
            checker,
            schema,
            examples: SchemaExamples::default(),
            known: ViolationCache::default(),
            clear: None,
            is_wide: false,
            has_digits: false,
        }
    }

    /// Compiles a schema together with the rules that no schema has.
    pub fn with_rules(schema: &Value, rules: ValidationRules) -> Result<Self, String> {
        Ok(Self {
            has_digits: rules.has_digits && digits::are_in(schema),
            is_wide: rules.is_wide,
            clear: rules.clear,
            ..Self::with(SchemaChecker::new(schema, rules.judge)?, schema)
        })
    }

    /// Returns `true` if these arguments may take long to check: not on a thread that others wait for.
    pub fn is_heavy(&self, raw: &str) -> bool {
        self.checker.is_heavy(raw)
    }

    /// Checks arguments. `raw` is the text of the `arguments` member; absent arguments are `{}`. An optional member
    /// that is null and may not be null counts as absent: it is neither refused nor part of what comes back.
    pub fn validate(&self, raw: &str) -> Result<Map<String, Value>, InvalidArguments> {
        let _budget = StepBudget::start(self.checker.budget(raw));
        let read = match self.is_wide {
            true => json::read_wide(raw),
            false => json::read(raw),
        };
        match read {
            Ok(mut value @ Value::Object(_)) => {
                let meets = |value: &Value| self.checker.is_valid_text(value, raw);
                let mut is_valid =
                    meets(&value) || absent::leave_out(&self.schema, &mut value) && meets(&value);
                let mut faults = Vec::new();
                if is_valid && self.has_digits {
                    let texts = digits::to_numbers(&self.schema, &mut value);
                    is_valid = texts.out_of_range.is_empty();
                    is_valid &= !texts.are_found || meets(&value);
                    is_valid &= !budget::is_spent();
                    faults.extend(texts.out_of_range.into_iter().map(out_of_range));
                }
                match (is_valid, value) {
                    (true, Value::Object(map)) => self.settled(map),
                    (_, value) => Err(self.explain(Some(value), faults)),
                }
            }
            // A schema that takes other things than objects is not one for arguments.
            Ok(_) => Err(self.not_an_object()),
            Err(_) => {
                let (mut value, faults) = match self.is_wide {
                    true => json::read_all_wide(raw),
                    false => json::read_all(raw),
                };
                value
                    .iter_mut()
                    .for_each(|value| _ = absent::leave_out(&self.schema, value));
                Err(self.explain(value, faults))
            }
        }
    }

    /// Returns valid arguments if they empty no field that they also set. An empty list of fields to empty is dropped,
    /// so that it does not count as a change.
    fn settled(
        &self,
        mut arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, InvalidArguments> {
        let Some(clear) = &self.clear else {
            return Ok(arguments);
        };
        if arguments
            .get(clear)
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            arguments.shift_remove(clear);
            let value = Value::Object(arguments);
            return match (self.checker.is_valid(&value), value) {
                (true, Value::Object(arguments)) => Ok(arguments),
                (_, value) => Err(self.explain(Some(value), Vec::new())),
            };
        }
        match clear::set_and_cleared(&self.schema, clear, &arguments) {
            Some(error) => Err(InvalidArguments {
                errors: vec![error],
            }),
            None => Ok(arguments),
        }
    }

    /// Returns every reason why the arguments were refused, in the order of the schema. `faults` is what the reader
    /// found.
    #[cold]
    fn explain(&self, value: Option<Value>, faults: Vec<JsonError>) -> InvalidArguments {
        if budget::is_spent() {
            let violation = SchemaViolation::at(String::new(), "too_costly");
            return InvalidArguments {
                errors: vec![violation.into()],
            };
        }
        let is_large = |fault: &JsonError| fault.fault == JsonFault::NumberOutOfRange;
        let refused = match &value {
            Some(arguments @ Value::Object(_)) if faults.iter().any(is_large) => {
                repair::failures(&self.checker, self.failure_context(), arguments)
            }
            _ => Vec::new(),
        };
        let mut errors: Vec<ArgumentError> = faults
            .into_iter()
            .filter(|fault| !refused.iter().any(|error| says_more(error, fault)))
            .map(|fault| self.unreadable(fault))
            .collect();
        repair::cut(&mut errors, ERRORS_MAX);
        match value {
            None => {}
            Some(Value::Object(arguments)) => {
                let clear = self
                    .clear
                    .as_ref()
                    .and_then(|clear| clear::set_and_cleared(&self.schema, clear, &arguments));
                repair::complete(
                    &self.checker,
                    self.failure_context(),
                    Value::Object(arguments),
                    &mut errors,
                );
                errors.truncate(ERRORS_MAX - usize::from(clear.is_some()));
                errors.extend(clear);
            }
            Some(_) => return self.not_an_object(),
        }
        errors.truncate(ERRORS_MAX);
        if errors.is_empty() {
            errors.push(SchemaViolation::at(String::new(), "no_match").into());
        }
        InvalidArguments { errors }
    }

    fn failure_context(&self) -> FailureContext<'_> {
        FailureContext {
            schema: self.exemplified(),
            known: &self.known,
        }
    }

    fn exemplified(&self) -> ExampleSource<'_> {
        ExampleSource {
            root: &self.schema,
            examples: &self.examples,
        }
    }

    fn not_an_object(&self) -> InvalidArguments {
        let mut violation = SchemaViolation::at(String::new(), "wrong_type");
        violation.constraint = Some(json!({ "type": "object" }).into());
        violation.example = self.whole_example();
        InvalidArguments {
            errors: vec![violation.into()],
        }
    }

    fn unreadable(&self, fault: JsonError) -> ArgumentError {
        let reason = match fault.fault {
            JsonFault::Syntax => "invalid_json",
            JsonFault::DuplicateKey => "duplicate_key",
            JsonFault::TooDeep => "too_deep",
            JsonFault::NumberOutOfRange => "out_of_range",
        };
        let mut violation = SchemaViolation::at(fault.path, reason);
        match fault.fault {
            JsonFault::Syntax | JsonFault::TooDeep => {
                violation.path = String::new();
                violation.field = String::new();
                violation.example = self.whole_example();
            }
            JsonFault::DuplicateKey => {}
            JsonFault::NumberOutOfRange => {
                let bounds = match self.is_wide {
                    true => json!({ "minimum": i64::MIN, "maximum": u64::MAX }),
                    false => json!({ "minimum": -json::INTEGER_MAX, "maximum": json::INTEGER_MAX }),
                };
                violation.constraint = Some(bounds.into());
            }
        }
        if violation.example.is_none()
            && let Some(found) = schema::at_instance(&self.schema, &violation.path)
        {
            violation.example = self.exemplified().example(found);
        }
        violation.into()
    }

    fn whole_example(&self) -> Option<RenderedValue> {
        self.exemplified()
            .example(&self.schema)
            .filter(|example| self.checker.is_valid(example))
    }
}

/// Returns the fault of a text of digits whose number does not fit in 64 bits.
fn out_of_range(path: String) -> JsonError {
    JsonError {
        path,
        message: "an integer that 64 bits do not hold".to_owned(),
        fault: JsonFault::NumberOutOfRange,
    }
}

/// Returns `true` if the schema reports more about a number out of range than the reader does: its own bound, or another type.
fn says_more(error: &ArgumentError, fault: &JsonError) -> bool {
    if fault.fault != JsonFault::NumberOutOfRange || error.path != fault.path {
        return false;
    }
    let is_number = |word: &Value| word == "integer" || word == "number";
    let types = error
        .constraint
        .as_ref()
        .and_then(|constraint| constraint.get("type"));
    match (error.reason, types) {
        ("out_of_range", _) => true,
        ("wrong_type", Some(Value::Array(words))) => !words.iter().any(is_number),
        ("wrong_type", Some(word)) => !is_number(word),
        _ => false,
    }
}

impl InvalidArguments {
    /// Returns the refusal of a foreign, altered or stale cursor.
    pub fn bad_cursor() -> Self {
        Self {
            errors: vec![SchemaViolation::at("/cursor".to_owned(), "bad_cursor").into()],
        }
    }

    /// Returns the refusal of a text at `path` that is not among `allowed`. If `allowed` is empty, no value is allowed there.
    pub fn not_among(path: String, allowed: &[&str]) -> Self {
        if allowed.is_empty() {
            return Self {
                errors: vec![SchemaViolation::at(path, "not_allowed").into()],
            };
        }
        let mut violation = SchemaViolation::at(path, "not_in_enum");
        violation.constraint = Some(RenderedValue::from(serde_json::json!({ "enum": allowed })));
        violation.example = allowed
            .first()
            .map(|first| RenderedValue::from(Value::from(*first)));
        Self {
            errors: vec![violation.into()],
        }
    }

    /// Returns what the caller gets; the gateway adds its call id.
    pub fn structured_content(&self) -> ErrorContent<'_> {
        let first = self.errors.first();
        ErrorContent {
            code: "invalid_arguments",
            message: self.message().into(),
            field: first.map(|error| error.field.as_str()),
            reason: first.map(|error| error.reason),
            errors: &self.errors,
            ..ErrorContent::default()
        }
    }
}

impl ErrorContent<'_> {
    /// Returns the JSON. It is written by hand: most of it exists as text, which serde would rewrite, member by
    /// member.
    pub fn to_json(&self) -> String {
        let errors: usize = self
            .errors
            .iter()
            .map(|error| error.violation.json().len() + 100)
            .sum();
        let mut json = Vec::with_capacity(512 + self.message.len() + errors);
        json.push(b'{');
        push_member(&mut json, "code", Some(self.code));
        push_member(&mut json, "call_id", self.call_id);
        push_member(&mut json, "message", Some(&self.message));
        push_member(&mut json, "field", self.field);
        push_member(&mut json, "reason", self.reason);
        for (number, error) in self.errors.iter().enumerate() {
            json.extend_from_slice(if number == 0 { b",\"errors\":[" } else { b"," });
            error.push_json(&mut json);
        }
        if !self.errors.is_empty() {
            json.push(b']');
        }
        if let Some(wait) = self.retry_after_ms {
            json.extend_from_slice(format!(",\"retry_after_ms\":{wait}").as_bytes());
        }
        push_member(&mut json, "outcome", self.outcome);
        json.push(b'}');
        String::from_utf8(json).expect("made of texts")
    }
}

impl ArgumentError {
    fn push_json(&self, json: &mut Vec<u8>) {
        json.extend_from_slice(self.violation.json().as_bytes());
        if self.suggestion.is_some() {
            json.pop();
            push_member(json, "suggestion", self.suggestion.as_deref());
            json.push(b'}');
        }
    }
}

impl SchemaViolation {
    fn json(&self) -> &str {
        self.json
            .get_or_init(|| serde_json::to_string(self).expect("an error is plain data"))
    }
}

/// Appends a member to an object.
fn push_member(json: &mut Vec<u8>, key: &'static str, value: Option<&str>) {
    let Some(value) = value else { return };
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
    json.push(b'"');
    json.extend_from_slice(key.as_bytes());
    json.extend_from_slice(b"\":");
    serde_json::to_writer(json, value).expect("a text has a JSON form");
}

/// The party that decides whether a value is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationAuthority {
    /// The gateway: formats are asserted, and every pattern runs in linear time.
    Own,
    /// An upstream server: only it knows what it accepts as an address or a date. Its patterns may look around; if that
    /// takes too long, the server judges.
    Foreign,
}

/// Compiles a schema. All schemas here are compiled like this: 2020-12, formats asserted, linear-time patterns, nothing
/// fetched.
pub fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    Ok(built(schema, ValidationAuthority::Own)?.0)
}

/// Compiles a schema of an upstream server.
pub fn foreign_validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    Ok(built(schema, ValidationAuthority::Foreign)?.0)
}

/// Compiles a schema that is one pattern.
fn linear(pattern: &str) -> Result<jsonschema::Validator, String> {
    options_for(ValidationAuthority::Own)
        .build(&json!({ "pattern": pattern }))
        .map_err(|error| error.masked().to_string())
}

/// Returns `true` for a pattern of JSON Schema's own dialect, which is that of JavaScript. Our engine also supports other
/// syntax, such as `(?i)`, `\A` and `\<`: clients refuse it or read it differently. Older clients refuse `(?i:…)` too. Classes
/// and intersections of other dialects, `[[:alpha:]]` or `[a-z&&[^b]]`, match other characters in JavaScript.
pub fn is_pattern(text: &str) -> bool {
    static REGEX: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| validator(&json!({ "format": "regex" })).expect("a schema"));
    !is_of_our_engine(text) && REGEX.is_valid(&text.into())
}

/// Returns `true` if a group of the pattern sets flags, if `\<` or `\>` is in it, an end of a word to our engine, and a plain
/// character or a fault to others, or if a class has a class inside.
fn is_of_our_engine(pattern: &str) -> bool {
    let (mut characters, mut in_class) = (pattern.char_indices(), false);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                if let Some((_, '<' | '>')) = characters.next() {
                    return true;
                }
            }
            '[' if in_class && is_named_class(&pattern[at..]) => return true,
            '&' if in_class && pattern[at..].starts_with("&&[") => return true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => match pattern[at + 1..].strip_prefix('?') {
                Some(group) if !group.starts_with([':', '=', '!', '<']) => return true,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

/// Returns `true` if the text begins with the name of a class, such as `[:alpha:]`.
fn is_named_class(text: &str) -> bool {
    let name = text
        .strip_prefix("[:")
        .and_then(|rest| rest.split_once(":]"));
    name.is_some_and(|(name, _)| {
        let name = name.strip_prefix('^').unwrap_or(name);
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

fn options_for(judge: ValidationAuthority) -> jsonschema::ValidationOptions<'static> {
    let patterns = jsonschema::PatternOptions::regex()
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX);
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(judge == ValidationAuthority::Own)
        .with_pattern_options(patterns)
        .with_keyword(looking::KEYWORD, looking::keyword)
        .offline()
}

fn built(
    schema: &Value,
    judge: ValidationAuthority,
) -> Result<(jsonschema::Validator, SchemaCost), String> {
    let cost = schema::check(schema)?;
    let options = options_for(judge);
    let built = match judge == ValidationAuthority::Foreign && !looking_patterns(schema).is_empty()
    {
        true => {
            let mut schema = schema.clone();
            looking::replace(&mut schema);
            options.build(&schema)
        }
        false => options.build(schema),
    };
    let validator = built.map_err(|error| {
        let place = error.instance_path().to_string();
        let message = error.masked().to_string();
        let message = shorten(&message, 300);
        match place.is_empty() {
            true => message.into_owned(),
            false => format!("{message} at {place}"),
        }
    })?;
    Ok((validator, cost))
}

/// Returns a valid value, built only from the schema; `None` if none can be made.
pub fn example(schema: &Value) -> Option<Value> {
    let _budget = StepBudget::start(checker::CALL_STEPS);
    example::build(schema, schema)
}
