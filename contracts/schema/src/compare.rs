//! Compares two schemas keyword by keyword: what changed, and whether values may have been lost or gained by it.
//!
//! A schema is a conjunction of its keywords. Where each of them allows the same or more, the whole does; so every
//! change is judged by itself, and what looks at other keywords (`properties` and `additionalProperties`) as one.
//!
//! Recursive schemas are compared once as each pair that they come to; inside, that pair is taken as compared. Values are
//! finite, so a difference is seen at the outermost place that has it.

mod contradiction;
mod finite;
pub mod normal;
pub mod number;
mod object;
mod rule;
mod union;
mod value;
mod witness;

use std::{collections::HashSet, sync::LazyLock};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use self::normal::{NormalSchema, canonical};
pub use self::{
    contradiction::{ContradictionSearch, SchemaContradiction},
    finite::is_never,
    rule::{ChangeSeverity, SCHEMA_ROWS, SchemaRow, SchemaRule, SchemaSide},
    witness::{WitnessProver, weight},
};

/// The steps of one comparison; what takes more is left undecided. A step is what one value takes that is looked at.
const STEPS_MAX: usize = 2_000_000;
/// The steps of comparing one pair of schemas on its own.
const PAIR_STEPS: usize = 100;
/// The schemas around a recursion that is followed.
const DEPTH_MAX: usize = 64;

/// The meaning of a schema keyword that is absent.
static ANYTHING: LazyLock<Value> = LazyLock::new(|| json!({}));

/// One change at one place.
#[derive(Clone, Debug)]
pub struct SchemaChange<'s> {
    pub rule: SchemaRule,
    /// JSON Pointer into the schema.
    pub path: String,
    pub old: Value,
    pub new: Value,
    pub reason: String,
    /// The schemas around the place, outermost first, and the pair that differs.
    pub frames: Vec<SchemaFrame<'s>>,
    pub pair: (&'s Value, &'s Value),
}

impl SchemaChange<'_> {
    /// Returns the number of values that are read to show a change inside a recursion: those of each schema around the place that
    /// contains a recursion, its own included, and `added` with each of them.
    pub fn recursive_values(&self, added: usize) -> usize {
        let around = self.frames.iter().map(|frame| (frame.old, frame.new));
        let has_any = |pair: &(&Value, &Value)| {
            normal::has_reference(pair.0) || normal::has_reference(pair.1)
        };
        let recursive = around.chain([self.pair]).filter(has_any);
        recursive
            .map(|(old, new)| weight(old) + weight(new) + added)
            .sum()
    }
}

/// A schema that contains the next one, and where.
#[derive(Clone, Copy, Debug)]
pub struct SchemaFrame<'s> {
    pub old: &'s Value,
    pub new: &'s Value,
    pub step: PathStep<'s>,
}

/// A step from a value to one inside it.
#[derive(Clone, Copy, Debug)]
pub enum PathStep<'s> {
    Property(&'s str),
    /// A member that no property names.
    Further,
    /// A member's name.
    Name,
    Item(usize),
    /// The same value, seen by an alternative.
    Same,
}

/// Returns all changes between two schemas in their one spelling. It draws on the steps that all comparisons of a diff share;
/// once they are used up, the rest is undecided.
pub fn compare<'s>(
    old: &'s NormalSchema,
    new: &'s NormalSchema,
    steps_left: &mut usize,
) -> Vec<SchemaChange<'s>> {
    let steps = STEPS_MAX.min(*steps_left);
    let mut comparison = SchemaComparison::new((old, new), steps);
    let (old, new) = (&old.root, &new.root);
    comparison.schema(old, new);
    *steps_left -= steps - comparison.left;
    if comparison.is_cut {
        let reason = "the schemas are too large to be compared".to_owned();
        comparison.find(
            SchemaRule::UndecidedSchema,
            (old, new),
            "",
            Value::Null,
            Value::Null,
            reason,
        );
    }
    comparison.findings
}

struct SchemaComparison<'s> {
    wholes: (&'s NormalSchema, &'s NormalSchema),
    findings: Vec<SchemaChange<'s>>,
    frames: Vec<SchemaFrame<'s>>,
    path: String,
    /// The pairs behind recursions that are compared here or around this comparison.
    followed: HashSet<(*const Value, *const Value)>,
    /// The schemas around the pair, in the comparisons around this one too.
    depth: usize,
    /// The steps that are left.
    left: usize,
    /// Whether they were too few for something.
    is_cut: bool,
    /// Whether this is about the effect as a whole.
    is_trial: bool,
}

/// The effect of a change as a whole on the set of valid values.
#[derive(Clone, Copy, Debug, Default)]
struct ChangeEffect {
    narrows: bool,
    widens: bool,
}

impl<'s> SchemaComparison<'s> {
    fn new(wholes: (&'s NormalSchema, &'s NormalSchema), left: usize) -> Self {
        Self {
            wholes,
            findings: Vec::new(),
            frames: Vec::new(),
            path: String::new(),
            followed: HashSet::new(),
            depth: 0,
            left,
            is_cut: false,
            is_trial: false,
        }
    }

    /// Takes steps, unless they are more than are left: then nothing further is compared.
    fn spend(&mut self, steps: usize) -> bool {
        match self.left.checked_sub(steps) {
            Some(left) => self.left = left,
            None => (self.left, self.is_cut) = (0, true),
        }
        !self.is_cut
    }

    fn schema(&mut self, old: &'s Value, new: &'s Value) {
        if old == new {
            return;
        }
        if !self.spend(PAIR_STEPS) {
            return;
        }
        if normal::is_reference(old) || normal::is_reference(new) {
            return self.references(old, new);
        }
        self.annotations(old, new);
        match (is_never(old), is_never(new)) {
            (true, true) => return,
            (true, false) => {
                let reason = "values are allowed where none was".to_owned();
                return self.find(
                    SchemaRule::TypeWidened,
                    (old, new),
                    "",
                    json!(false),
                    new.clone(),
                    reason,
                );
            }
            (false, true) => {
                let reason = "no value is allowed any more".to_owned();
                return self.find(
                    SchemaRule::TypeNarrowed,
                    (old, new),
                    "",
                    old.clone(),
                    json!(false),
                    reason,
                );
            }
            (false, false) => {}
        }
        let known = self.findings.len();
        if !self.enumerations(old, new) && !self.unions(old, new) {
            self.keywords(old, new);
        }
        self.forget_spelling(known, old, new);
    }

    /// Compares a pair of which one is a reference at least.
    fn references(&mut self, old: &'s Value, new: &'s Value) {
        if normal::is_reference(old) && normal::is_reference(new) {
            self.annotations(old, new);
            if canonical(old) == canonical(new) {
                return;
            }
        }
        let targets = (self.wholes.0.follow(old), self.wholes.1.follow(new));
        let (Some(was), Some(is)) = targets else {
            let reason = "a recursive or remote reference cannot be followed".to_owned();
            return self.unfollowed(old, new, reason);
        };
        let pair = (std::ptr::from_ref(was), std::ptr::from_ref(is));
        if self.followed.contains(&pair) {
            return;
        }
        // The schemas around may be as large, and most of them differ early.
        let frames = 1 + self.frames.len() / 8;
        if !self.spend((weight(was) + weight(is)).saturating_mul(frames)) {
            return;
        }
        let mut around = self.frames.iter();
        if around.any(|frame| frame.old == was && frame.new == is) {
            return;
        }
        if self.depth >= DEPTH_MAX {
            let reason = "a recursion is too deep to be followed".to_owned();
            return self.unfollowed(old, new, reason);
        }
        self.followed.insert(pair);
        self.depth += 1;
        self.schema(was, is);
        self.depth -= 1;
    }

    fn unfollowed(&mut self, old: &'s Value, new: &'s Value, reason: String) {
        let rule = SchemaRule::UndecidedReference;
        self.find(rule, (old, new), "", old.clone(), new.clone(), reason);
    }

    /// Compares everything that is neither a list of values nor a union of schemas.
    fn keywords(&mut self, old: &'s Value, new: &'s Value) {
        // These keywords look at all adjacent keywords, including those inside a union.
        let unseen = ["unevaluatedProperties", "unevaluatedItems"];
        if let Some(key) = unseen
            .iter()
            .find(|key| old.get(**key).is_some() || new.get(**key).is_some())
            && canonical(old) != canonical(new)
        {
            let reason = format!("no rule covers how {key} affects a change next to it");
            return self.find_at(SchemaRule::UndecidedKeyword, (old, new), key, reason);
        }
        let Some(both) = self.types(old, new) else {
            return;
        };
        if both & (value::INTEGER | value::FRACTION) != 0 {
            self.numbers(old, new, both & value::FRACTION == 0);
        }
        if both & value::STRING != 0 {
            self.texts(old, new);
        }
        if both & value::ARRAY != 0 {
            self.lists(old, new);
        }
        if both & value::OBJECT != 0 {
            self.objects(old, new);
        }
        self.others(old, new);
    }

    /// Compares the keywords without a rule for values.
    fn annotations(&mut self, old: &'s Value, new: &'s Value) {
        for key in names(old, new) {
            let (was, is) = (old.get(key), new.get(key));
            if was == is {
                continue;
            }
            let (rule, reason) = match key {
                key if normal::TEXTS.contains(&key) => {
                    (SchemaRule::TextChanged, format!("the {key} changed"))
                }
                "default" => (SchemaRule::DefaultChanged, default_reason(was, is)),
                "readOnly" | "writeOnly" | "contentEncoding" | "contentMediaType"
                | "contentSchema" => (SchemaRule::AnnotationChanged, format!("{key} changed")),
                key if key.starts_with("x-") => {
                    (SchemaRule::AnnotationChanged, format!("{key} changed"))
                }
                _ => continue,
            };
            self.find_at(rule, (old, new), key, reason);
        }
    }

    /// Compares the keywords that no rule can decide: they are the same, or they are not.
    fn others(&mut self, old: &'s Value, new: &'s Value) {
        for key in names(old, new) {
            if !DECIDED.contains(&key) && !normal::TEXTS.contains(&key) && !key.starts_with("x-") {
                self.undecided(key, old, new);
            }
        }
    }

    fn undecided(&mut self, key: &str, old: &'s Value, new: &'s Value) {
        if !normal::same_rules(key, old, new) {
            let reason = format!("no rule covers a change of {key}");
            self.find_at(SchemaRule::UndecidedKeyword, (old, new), key, reason);
        } else if old.get(key) != new.get(key) {
            self.find_at(
                SchemaRule::TextChanged,
                (old, new),
                key,
                format!("texts or order inside {key} changed"),
            );
        }
    }

    fn find_at(
        &mut self,
        rule: SchemaRule,
        pair: (&'s Value, &'s Value),
        key: &str,
        reason: String,
    ) {
        let of = |schema: &Value| schema.get(key).cloned().unwrap_or_default();
        self.find(rule, pair, key, of(pair.0), of(pair.1), reason);
    }

    /// Records a finding. `key` is the keyword at the place, empty for the place itself.
    fn find(
        &mut self,
        rule: SchemaRule,
        pair: (&'s Value, &'s Value),
        key: &str,
        old: Value,
        new: Value,
        reason: String,
    ) {
        let mut path = self.path.clone();
        if !key.is_empty() {
            crate::json::push_pointer(&mut path, key);
        }
        self.findings.push(SchemaChange {
            rule,
            path,
            old,
            new,
            reason,
            frames: self.frames.clone(),
            pair,
        });
    }

    /// Compares a pair one step further in.
    fn inside(
        &mut self,
        around: (&'s Value, &'s Value),
        step: PathStep<'s>,
        keys: &[&str],
        pair: (&'s Value, &'s Value),
    ) {
        let length = self.path.len();
        keys.iter()
            .for_each(|key| crate::json::push_pointer(&mut self.path, key));
        self.frames.push(SchemaFrame {
            old: around.0,
            new: around.1,
            step,
        });
        self.depth += 1;
        self.schema(pair.0, pair.1);
        self.depth -= 1;
        self.frames.pop();
        self.path.truncate(length);
    }

    /// Returns what a change would do, without recording it.
    fn effect(&mut self, old: &'s Value, new: &'s Value) -> ChangeEffect {
        self.spend(self.followed.len());
        let mut trial = Self {
            followed: self.followed.clone(),
            depth: self.depth + 1,
            is_trial: true,
            ..Self::new(self.wholes, self.left)
        };
        trial.schema(old, new);
        self.left = trial.left;
        self.is_cut |= trial.is_cut;
        let any = |is_so: fn(SchemaRule) -> bool| {
            trial.is_cut || trial.findings.iter().any(|finding| is_so(finding.rule))
        };
        ChangeEffect {
            narrows: any(SchemaRule::narrows),
            widens: any(SchemaRule::widens),
        }
    }
}

/// Keywords that have their own rules.
const DECIDED: &[&str] = &[
    "type",
    "enum",
    "const",
    "default",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "anyOf",
    "oneOf",
];

/// Returns the keywords of both schemas, the old ones first.
fn names<'s>(old: &'s Value, new: &'s Value) -> Vec<&'s str> {
    let keys = |schema: &'s Value| {
        schema
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys().map(String::as_str))
    };
    let mut names: Vec<&str> = keys(old).collect();
    names.extend(keys(new).filter(|key| old.get(key).is_none()));
    names
}

fn part<'s>(schema: &'s Value, key: &str) -> &'s Value {
    schema.get(key).unwrap_or(&ANYTHING)
}

fn default_reason(old: Option<&Value>, new: Option<&Value>) -> String {
    match (old, new) {
        (None, _) => "a default was added".to_owned(),
        (_, None) => "the default was removed".to_owned(),
        _ => "the default changed".to_owned(),
    }
}

/// Returns the SHA-256 of a value in hexadecimal, whatever the order of its keys.
pub fn digest(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let digest = Sha256::digest(sorted.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
