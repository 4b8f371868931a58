//! Unions: the alternatives of one side find theirs on the other.

use serde_json::Value;

use super::{
    PathStep, SchemaComparison, SchemaRule, digest,
    normal::{TEXTS, canonical},
    value::types,
    weight,
};
use crate::walk;

/// Alternatives that are paired; a larger union is compared as a whole.
const ARMS_MAX: usize = 64;
/// Equally similar alternatives that are compared to find the partner of one.
const CLEAREST_MAX: usize = 4;

/// An alternative and its place. A schema without a union is its own only alternative.
#[derive(Clone, Copy)]
struct UnionArm<'s> {
    schema: &'s Value,
    place: Option<(&'static str, usize)>,
}

impl<'s> SchemaComparison<'s> {
    /// Compares two sides as unions; false if neither side is one, or if one has further keywords next to its union.
    pub(super) fn unions(&mut self, old: &'s Value, new: &'s Value) -> bool {
        let is_union =
            |schema: &Value| schema.get("anyOf").is_some() || schema.get("oneOf").is_some();
        if !is_union(old) && !is_union(new) {
            return false;
        }
        // Each alternative differs from each by its constants.
        let constants = constants_within(old) + constants_within(new);
        if !self.spend(constants.saturating_mul(constants) / 8) {
            return true;
        }
        match (is_union(old), is_union(new)) {
            // If one of them has keywords next to its union, each is judged on its own.
            (true, false) if !is_alone(old) => return self.beside(old, new),
            (false, true) if !is_alone(new) => return self.beside(old, new),
            _ => {}
        }
        if is_union(old) && is_union(new) && !(is_alone(old) && is_alone(new)) {
            return self.beside(old, new);
        }
        let (Some(was), Some(is)) = (arms(old), arms(new)) else {
            self.undecided("oneOf", old, new);
            self.undecided("anyOf", old, new);
            return true;
        };
        self.arms((old, new), &was, &is);
        true
    }

    /// Handles unions next to other keywords; the caller continues with those keywords.
    fn beside(&mut self, old: &'s Value, new: &'s Value) -> bool {
        for key in ["anyOf", "oneOf"] {
            match (old.get(key), new.get(key)) {
                (None, Some(arms)) => {
                    if self.is_in_an_arm(key, arms, |this, arm| !this.effect(old, arm).narrows) {
                        continue;
                    }
                    self.find_at(
                        SchemaRule::UnionAdded,
                        (old, new),
                        key,
                        format!("{key} must be met as well"),
                    );
                }
                (Some(arms), None) => {
                    if self.is_in_an_arm(key, arms, |this, arm| !this.effect(arm, new).widens) {
                        continue;
                    }
                    self.find_at(
                        SchemaRule::UnionRemoved,
                        (old, new),
                        key,
                        format!("{key} need not be met any more"),
                    );
                }
                (Some(was), Some(is)) if was != is => match (arms_of(key, was), arms_of(key, is)) {
                    (Some(was), Some(is)) => self.arms((old, new), &was, &is),
                    _ => self.undecided(key, old, new),
                },
                _ => {}
            }
        }
        false
    }

    /// Returns `true` if the rest of a schema is in one of its alternatives, so that the union is no rule.
    fn is_in_an_arm(
        &mut self,
        key: &str,
        union: &'s Value,
        is_in: impl Fn(&mut Self, &'s Value) -> bool,
    ) -> bool {
        let arms = arms_of(key, union).unwrap_or_default();
        arms.iter().any(|arm| is_in(self, arm.schema))
    }

    fn arms(&mut self, around: (&'s Value, &'s Value), was: &[UnionArm<'s>], is: &[UnionArm<'s>]) {
        let weights = was.iter().chain(is).map(|arm| weight(arm.schema));
        if !self.spend(weights.sum::<usize>() + was.len() * is.len()) {
            return;
        }
        let partner = self.pair_arms(was, is);
        let taken: Vec<bool> = (0..is.len())
            .map(|other| partner.contains(&Some(other)))
            .collect();
        for (index, arm) in was.iter().enumerate() {
            match partner[index] {
                Some(other) => {
                    let place = arm
                        .place
                        .or(is[other].place)
                        .map(|(key, index)| [key.to_owned(), index.to_string()]);
                    let keys: Vec<&str> = place.iter().flatten().map(String::as_str).collect();
                    self.inside(
                        (arm.schema, is[other].schema),
                        PathStep::Same,
                        &keys,
                        (arm.schema, is[other].schema),
                    );
                }
                None if is
                    .iter()
                    .any(|other| !self.effect(arm.schema, other.schema).narrows) => {}
                None => {
                    let reason = "values of this alternative are no longer allowed".to_owned();
                    self.arm(
                        SchemaRule::ArmRemoved,
                        around,
                        *arm,
                        arm.schema.clone(),
                        Value::Null,
                        reason,
                    );
                }
            }
        }
        for (index, arm) in is.iter().enumerate().filter(|(index, _)| !taken[*index]) {
            debug_assert!(!taken[index]);
            if was
                .iter()
                .any(|other| !self.effect(other.schema, arm.schema).widens)
            {
                continue;
            }
            let reason = "values of a further alternative are allowed".to_owned();
            self.arm(
                SchemaRule::ArmAdded,
                around,
                *arm,
                Value::Null,
                arm.schema.clone(),
                reason,
            );
        }
    }

    /// Returns the new alternative that each old one is compared with.
    fn pair_arms(&mut self, was: &[UnionArm<'s>], is: &[UnionArm<'s>]) -> Vec<Option<usize>> {
        let rules = |arms: &[UnionArm<'s>]| -> Vec<String> {
            arms.iter()
                .map(|arm| digest(&canonical(arm.schema)))
                .collect()
        };
        let (rules_before, rules_now) = (rules(was), rules(is));
        let mut partner: Vec<Option<usize>> = vec![None; was.len()];
        let mut taken = vec![false; is.len()];
        // Equal alternatives are paired first, so that an inserted one is paired with none.
        for (index, rules) in rules_before.iter().enumerate() {
            let mut free = (0..is.len()).filter(|other| !taken[*other]);
            if let Some(other) = free.find(|other| rules_now[*other] == *rules) {
                partner[index] = Some(other);
                taken[other] = true;
            }
        }
        // Then the side with fewer of them chooses the most similar ones of the other.
        let chooses_old = is.len() < was.len();
        for chooser in 0..was.len().min(is.len()) {
            let pairs: Vec<(usize, usize)> = match chooses_old {
                true => (0..was.len()).map(|index| (index, chooser)).collect(),
                false => (0..is.len()).map(|other| (chooser, other)).collect(),
            };
            let free = pairs
                .into_iter()
                .filter(|(index, other)| partner[*index].is_none() && !taken[*other]);
            let scored: Vec<(u32, (usize, usize))> = free
                .map(|pair| (likeness(was[pair.0].schema, is[pair.1].schema), pair))
                .filter(|(score, _)| *score > 0)
                .collect();
            if let Some((index, other)) = self.clearest(&scored, was, is) {
                partner[index] = Some(other);
                taken[other] = true;
            }
        }
        partner
    }

    /// Returns the pair with the highest score. Among several, that is one whose change is wider or narrower alone, or else the
    /// first.
    fn clearest(
        &mut self,
        scored: &[(u32, (usize, usize))],
        was: &[UnionArm<'s>],
        is: &[UnionArm<'s>],
    ) -> Option<(usize, usize)> {
        let best = scored.iter().map(|(score, _)| *score).max()?;
        let alike = scored.iter().filter(|(score, _)| *score == best);
        let alike: Vec<(usize, usize)> = alike.map(|(_, pair)| *pair).collect();
        if self.is_trial || alike.len() > CLEAREST_MAX || alike.len() == 1 {
            return alike.first().copied();
        }
        alike.into_iter().min_by_key(|pair| {
            let effect = self.effect(was[pair.0].schema, is[pair.1].schema);
            u8::from(effect.narrows) + u8::from(effect.widens)
        })
    }

    fn arm(
        &mut self,
        rule: SchemaRule,
        pair: (&'s Value, &'s Value),
        arm: UnionArm<'s>,
        old: Value,
        new: Value,
        reason: String,
    ) {
        let length = self.path.len();
        if let Some((key, index)) = arm.place {
            self.path.push_str(&format!("/{key}/{index}"));
        }
        self.find(rule, pair, "", old, new, reason);
        self.path.truncate(length);
    }
}

/// Returns `true` if the schema is a union with nothing but texts and a default next to it.
fn is_alone(schema: &Value) -> bool {
    let beside =
        |key: &String| TEXTS.contains(&key.as_str()) || key == "default" || key.starts_with("x-");
    let unions = ["anyOf", "oneOf"]
        .into_iter()
        .filter(|key| schema.get(key).is_some())
        .count();
    unions == 1
        && schema.as_object().is_some_and(|map| {
            map.keys()
                .all(|key| key == "anyOf" || key == "oneOf" || beside(key))
        })
}

/// Returns the alternatives of a schema, or `None` if they cannot be distinguished one by one.
fn arms(schema: &Value) -> Option<Vec<UnionArm<'_>>> {
    for key in ["anyOf", "oneOf"] {
        if let Some(union) = schema.get(key) {
            return arms_of(key, union);
        }
    }
    Some(vec![UnionArm {
        schema,
        place: None,
    }])
}

fn arms_of<'s>(key: &str, union: &'s Value) -> Option<Vec<UnionArm<'s>>> {
    let key = if key == "anyOf" { "anyOf" } else { "oneOf" };
    let schemas = union
        .as_array()
        .filter(|schemas| schemas.len() <= ARMS_MAX)?;
    // oneOf refuses a value that fits two alternatives, so widening one of them may narrow the union.
    if key == "oneOf" {
        let pairs = schemas
            .iter()
            .enumerate()
            .flat_map(|(index, one)| schemas[..index].iter().map(move |two| (one, two)));
        if !pairs.into_iter().all(|(one, two)| are_apart(one, two)) {
            return None;
        }
    }
    Some(
        schemas
            .iter()
            .enumerate()
            .map(|(index, schema)| UnionArm {
                schema,
                place: Some((key, index)),
            })
            .collect(),
    )
}

/// Returns `true` if no value can meet both: their types differ, or a required member is another constant.
fn are_apart(one: &Value, two: &Value) -> bool {
    let (Some(types_one), Some(types_two)) = (types(one), types(two)) else {
        return false;
    };
    if types_one & types_two == 0 {
        return true;
    }
    if types_one != super::value::OBJECT || types_two != super::value::OBJECT {
        return false;
    }
    required_constants(one).any(|(name, constants)| {
        required_constants(two).any(|(other, others)| {
            name == other
                && constants
                    .iter()
                    .all(|constant| others.iter().all(|other| is_other_text(constant, other)))
        })
    })
}

/// Returns `true` for two texts that differ. Numbers do not count, since equal ones may have other digits.
fn is_other_text(one: &Value, two: &Value) -> bool {
    one.is_string() && two.is_string() && one != two
}

fn required_constants(schema: &Value) -> impl Iterator<Item = (&str, Vec<&Value>)> {
    let required = walk::elements(schema.get("required"))
        .iter()
        .filter_map(Value::as_str);
    required.filter_map(|name| {
        let property = schema.get("properties")?.get(name)?;
        match (
            property.get("const"),
            property.get("enum").and_then(Value::as_array),
        ) {
            (Some(constant), _) => Some((name, vec![constant])),
            (None, Some(constants)) => Some((name, constants.iter().collect())),
            (None, None) => None,
        }
    })
}

/// Returns the number of constants by which the alternatives of a schema may differ, or of the schema itself.
fn constants_within(schema: &Value) -> usize {
    let arms = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|key| schema.get(key)?.as_array())
        .flatten();
    arms.chain([schema])
        .flat_map(required_constants)
        .map(|(_, constants)| 1 + constants.len())
        .sum()
}

/// Returns how similar two alternatives are that are not the same; 0 means that no value of one is like a value of the other.
fn likeness(one: &Value, two: &Value) -> u32 {
    let (Some(types_one), Some(types_two)) = (types(one), types(two)) else {
        return 0;
    };
    if types_one & types_two == 0 || are_apart(one, two) {
        return 0;
    }
    let constants =
        required_constants(one).any(|found| required_constants(two).any(|other| found == other));
    let titles = one.get("title").is_some() && one.get("title") == two.get("title");
    1 + u32::from(types_one == types_two) + 4 * u32::from(constants) + 2 * u32::from(titles)
}
