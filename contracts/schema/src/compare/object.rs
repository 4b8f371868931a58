//! Members of objects and items of lists.

use std::{cmp::Ordering, collections::BTreeSet, sync::LazyLock};

use serde_json::{Map, Value, json};

use super::{
    ChangeEffect, PathStep, SchemaComparison, SchemaRule,
    normal::{canonical, is_false},
    number, part,
    value::types,
    weight,
};
use crate::name;

/// New properties among which the new name of a removed one is searched.
const NAMES_MAX: usize = 100;

impl<'s> SchemaComparison<'s> {
    pub(super) fn objects(&mut self, old: &'s Value, new: &'s Value) {
        self.least_members(old, new);
        self.most(old, new, "maxProperties", most_members);
        // No rule for the names of members affects an object without members.
        let is_bare = has_no_members(old) || has_no_members(new);
        if !is_bare {
            let names = (part(old, "propertyNames"), part(new, "propertyNames"));
            self.inside((old, new), PathStep::Name, &["propertyNames"], names);
            self.patterns(old, new);
        }
        let sides = ObjectKeywords::from_schema(old).zip(ObjectKeywords::from_schema(new));
        let Some((was, is)) = sides else {
            ["properties", "required", "additionalProperties"]
                .iter()
                .for_each(|key| self.undecided(key, old, new));
            return;
        };
        let has_patterns = !is_bare
            && (old.get("patternProperties").is_some() || new.get("patternProperties").is_some());
        let same_names = was
            .properties
            .keys()
            .all(|name| is.properties.contains_key(name))
            && was.properties.len() == is.properties.len();
        if has_patterns && (!same_names || canonical(was.further) != canonical(is.further)) {
            // A name that a pattern matches does not count as an additional one.
            let reason =
                "no rule covers how patternProperties affect a change of the names next to them"
                    .to_owned();
            return self.find_at(
                SchemaRule::UndecidedKeyword,
                (old, new),
                "patternProperties",
                reason,
            );
        }
        self.properties(&was, &is);
        self.further(&was, &is);
    }

    /// Compares the members whose names meet a pattern. Both sides need the same patterns, or nothing is known.
    fn patterns(&mut self, old: &'s Value, new: &'s Value) {
        let key = "patternProperties";
        let (Some(Value::Object(was)), Some(Value::Object(is))) = (old.get(key), new.get(key))
        else {
            return self.undecided(key, old, new);
        };
        if was.len() != is.len() || !was.keys().all(|pattern| is.contains_key(pattern)) {
            return self.undecided(key, old, new);
        }
        for (pattern, schema) in was {
            self.inside(
                (old, new),
                PathStep::Further,
                &[key, pattern],
                (schema, &is[pattern]),
            );
        }
    }

    fn properties(&mut self, was: &ObjectKeywords<'s>, is: &ObjectKeywords<'s>) {
        let mut renamed = BTreeSet::new();
        let new_names = is
            .properties
            .iter()
            .filter(|(name, _)| !was.properties.contains_key(*name));
        let names_max = new_names.clone().count().min(NAMES_MAX);
        let heaviest = new_names.map(|(_, schema)| weight(schema)).max();
        let heaviest = heaviest.unwrap_or_default();
        for (name, schema) in was.properties {
            match is.properties.get(name) {
                Some(now) => {
                    self.inside(
                        (was.schema, is.schema),
                        PathStep::Property(name),
                        &["properties", name],
                        (schema, now),
                    );
                    self.required(name, was, is);
                }
                // Where no further member is allowed, one that is never allowed need not be named.
                None if is_false(schema)
                    && is_false(is.further)
                    && !was.required.contains(name.as_str()) =>
                {
                    self.required(name, was, is);
                }
                None if !self.spend(is.properties.len() / 4 + names_max * heaviest) => return,
                None => match new_name(name, schema, was, is, &renamed) {
                    Some(new_name) => {
                        renamed.insert(new_name);
                        self.renamed(name, new_name, was, is);
                    }
                    None => self.removed(name, schema, was, is),
                },
            }
        }
        for (name, schema) in is
            .properties
            .iter()
            .filter(|(name, _)| !was.properties.contains_key(*name))
        {
            if is_false(schema) && is_false(was.further) {
                self.required(name, was, is);
            } else if !renamed.contains(name.as_str()) {
                self.added(name, schema, was, is);
            }
        }
        let unnamed = |name: &&'s str| {
            !was.properties.contains_key(*name) && !is.properties.contains_key(*name)
        };
        let demanded: BTreeSet<&str> = was
            .required
            .iter()
            .chain(&is.required)
            .copied()
            .filter(unnamed)
            .collect();
        demanded
            .into_iter()
            .for_each(|name| self.required(name, was, is));
    }

    fn required(&mut self, name: &str, was: &ObjectKeywords<'s>, is: &ObjectKeywords<'s>) {
        let (rule, reason) = match (was.required.contains(name), is.required.contains(name)) {
            (false, true) => (
                SchemaRule::BecameRequired,
                format!("{} must be there", name::quoted(name)),
            ),
            (true, false) => (
                SchemaRule::BecameOptional,
                format!("{} may be left out", name::quoted(name)),
            ),
            _ => return,
        };
        let demanded = |members: &ObjectKeywords<'s>| Value::Bool(members.required.contains(name));
        self.member(rule, name, (was, is), (demanded(was), demanded(is)), reason);
    }

    fn renamed(
        &mut self,
        name: &'s str,
        new_name: &'s str,
        was: &ObjectKeywords<'s>,
        is: &ObjectKeywords<'s>,
    ) {
        let reason = format!(
            "{} was removed, {} looks like its new name",
            name::quoted(name),
            name::quoted(new_name)
        );
        self.member(
            SchemaRule::PropertyRenamed,
            name,
            (was, is),
            (name.into(), new_name.into()),
            reason,
        );
    }

    fn added(
        &mut self,
        name: &'s str,
        schema: &'s Value,
        was: &ObjectKeywords<'s>,
        is: &ObjectKeywords<'s>,
    ) {
        let effect = match is_false(was.further) {
            true => ChangeEffect {
                narrows: false,
                widens: true,
            },
            false => self.effect(was.further, schema),
        };
        let shown = name::quoted(name);
        let is_demanded = is.required.contains(name) && !was.required.contains(name);
        let (rule, reason) = match (is_demanded, is_false(was.further), effect) {
            (true, true, _) => (
                SchemaRule::RequiredAdded,
                format!("{shown} was not allowed and must be there"),
            ),
            (true, false, ChangeEffect { widens: false, .. }) => (
                SchemaRule::RequiredAddedOpen,
                format!("{shown} must be there"),
            ),
            (true, false, _) => (
                SchemaRule::RequiredAdded,
                format!("{shown} must be there, with other values than before"),
            ),
            (false, true, _) => (SchemaRule::PropertyAdded, format!("{shown} may be there")),
            (
                false,
                false,
                ChangeEffect {
                    narrows: false,
                    widens: false,
                },
            ) => (
                SchemaRule::PropertyNamed,
                format!("{shown} is now described"),
            ),
            (
                false,
                false,
                ChangeEffect {
                    narrows: true,
                    widens: false,
                },
            ) => (
                SchemaRule::PropertyTyped,
                format!("{shown} could have any value before"),
            ),
            (
                false,
                false,
                ChangeEffect {
                    narrows: false,
                    widens: true,
                },
            ) => (
                SchemaRule::PropertyAdded,
                format!("{shown} may have values it could not have before"),
            ),
            (false, false, _) => (
                SchemaRule::TypeChanged,
                format!("{shown} has other values than further members had"),
            ),
        };
        self.member(rule, name, (was, is), (Value::Null, schema.clone()), reason);
        if !is_demanded {
            self.required(name, was, is);
        }
    }

    fn removed(
        &mut self,
        name: &'s str,
        schema: &'s Value,
        was: &ObjectKeywords<'s>,
        is: &ObjectKeywords<'s>,
    ) {
        let shown = name::quoted(name);
        let is_closed = is_false(is.further);
        let narrows = is_closed || self.effect(schema, is.further).narrows;
        let (rule, reason) = match (
            was.required.contains(name) && !is.required.contains(name),
            narrows,
        ) {
            (true, true) => (
                SchemaRule::RequiredRemoved,
                format!("{shown} was removed and is not allowed any more"),
            ),
            (true, false) => (
                SchemaRule::RequiredDropped,
                format!("{shown} was removed; it may still be there, unread"),
            ),
            (false, true) if is_closed => (
                SchemaRule::PropertyRemoved,
                format!("{shown} was removed and is not allowed any more"),
            ),
            (false, true) => (
                SchemaRule::TypeChanged,
                format!("{shown} was removed; further members have other values"),
            ),
            (false, false) => (
                SchemaRule::PropertyDropped,
                format!("{shown} was removed; it may still be there, unread"),
            ),
        };
        self.member(rule, name, (was, is), (schema.clone(), Value::Null), reason);
        if !was.required.contains(name) {
            self.required(name, was, is);
        }
    }

    /// Compares the rules for members that are not named.
    fn further(&mut self, was: &ObjectKeywords<'s>, is: &ObjectKeywords<'s>) {
        let pair = (was.schema, is.schema);
        let key = "additionalProperties";
        match (is_false(was.further), is_false(is.further)) {
            (true, true) => {}
            (true, false) => {
                self.find_at(
                    SchemaRule::ObjectOpened,
                    pair,
                    key,
                    "further members are allowed".to_owned(),
                );
            }
            (false, true) => {
                self.find_at(
                    SchemaRule::ObjectClosed,
                    pair,
                    key,
                    "further members are no longer allowed".to_owned(),
                );
            }
            (false, false) => {
                self.inside(pair, PathStep::Further, &[key], (was.further, is.further))
            }
        }
    }

    /// Records the change of one member at the object that holds it.
    fn member(
        &mut self,
        rule: SchemaRule,
        name: &str,
        (was, is): (&ObjectKeywords<'s>, &ObjectKeywords<'s>),
        (old, new): (Value, Value),
        reason: String,
    ) {
        let length = self.path.len();
        self.path.push_str("/properties");
        self.find(rule, (was.schema, is.schema), name, old, new, reason);
        self.path.truncate(length);
    }

    /// Compares `minProperties`, which has no effect where that many members are required anyway.
    fn least_members(&mut self, old: &'s Value, new: &'s Value) {
        let key = "minProperties";
        let stated = [old, new].map(|schema| schema.get(key).map_or(Some(0), number::count));
        let required = required_count(old).max(required_count(new));
        if stated
            .iter()
            .any(|least| least.is_none_or(|least| least > required))
        {
            self.count(old, new, key, true);
        }
    }

    pub(super) fn lists(&mut self, old: &'s Value, new: &'s Value) {
        self.count(old, new, "minItems", true);
        self.most(old, new, "maxItems", most_items);
        self.uniqueness(old, new);
        let prefix = |schema: &'s Value| {
            schema
                .get("prefixItems")
                .map_or(Some(&[][..]), |items| Some(items.as_array()?.as_slice()))
        };
        let (Some(was), Some(is)) = (prefix(old), prefix(new)) else {
            return self.undecided("prefixItems", old, new);
        };
        let items = (part(old, "items"), part(new, "items"));
        if !items.0.is_object() || !items.1.is_object() {
            self.undecided("prefixItems", old, new);
            return self.undecided("items", old, new);
        }
        let reach = (most_items(old), most_items(new));
        let stated = |schema| read_count(schema, "maxItems");
        let stated = stated(old).min(stated(new));
        // If only lists of one side have an item there, that is already a change of `maxItems`.
        let has_item =
            |index: usize| (index as u64) < stated && (index as u64) < reach.0.max(reach.1);
        let length = was.len().max(is.len());
        for index in (0..length).take_while(|index| has_item(*index)) {
            let pair = (
                was.get(index).unwrap_or(items.0),
                is.get(index).unwrap_or(items.1),
            );
            self.inside(
                (old, new),
                PathStep::Item(index),
                &["prefixItems", &index.to_string()],
                pair,
            );
        }
        if has_item(length) {
            self.inside((old, new), PathStep::Item(length), &["items"], items);
        }
    }

    /// Compares `uniqueItems`, which has no effect on lists of at most one item.
    fn uniqueness(&mut self, old: &'s Value, new: &'s Value) {
        let is_short = |schema: &Value| most_items(schema) <= 1;
        let is_unique = |schema: &Value| schema.get("uniqueItems") == Some(&Value::Bool(true));
        if is_short(old) || is_short(new) {
            return;
        }
        let order = is_unique(old).cmp(&is_unique(new));
        let change = match order {
            Ordering::Less => "no item twice",
            _ => "dropped",
        };
        self.bound(old, new, "uniqueItems", order, change);
    }
}

/// Returns a maximum count, or the largest there is if the schema has none.
fn read_count(schema: &Value, key: &str) -> u64 {
    let count = schema.get(key).and_then(number::count);
    count.unwrap_or(u64::MAX)
}

/// Returns the most items that a list may have: `false` for an item ends it.
pub(super) fn most_items(schema: &Value) -> u64 {
    let prefix = schema.get("prefixItems").and_then(Value::as_array);
    let prefix = prefix.map_or(&[][..], Vec::as_slice);
    let last = match prefix.iter().position(is_false) {
        None if is_false(part(schema, "items")) => prefix.len() as u64,
        None => u64::MAX,
        Some(index) => index as u64,
    };
    last.min(read_count(schema, "maxItems"))
}

/// Returns the most members that an object may have: a closed one has at most its named members.
pub(super) fn most_members(schema: &Value) -> u64 {
    let stated = read_count(schema, "maxProperties");
    if !is_false(part(schema, "additionalProperties")) || schema.get("patternProperties").is_some()
    {
        return stated;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.into_iter().flatten();
    stated.min(named.filter(|(_, schema)| !is_false(schema)).count() as u64)
}

/// Returns `true` if the bound on its own leaves an object without members.
fn has_no_members(schema: &Value) -> bool {
    read_count(schema, "maxProperties") == 0
}

/// Returns the number of members that a schema requires.
fn required_count(schema: &Value) -> u64 {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.collect::<BTreeSet<&str>>().len() as u64
}

/// The keywords of an object that look at each other.
struct ObjectKeywords<'s> {
    schema: &'s Value,
    properties: &'s Map<String, Value>,
    required: BTreeSet<&'s str>,
    /// The rule for members that no property names.
    further: &'s Value,
}

static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
static NOTHING: LazyLock<Value> = LazyLock::new(|| json!({ "not": {} }));

impl<'s> ObjectKeywords<'s> {
    fn from_schema(schema: &'s Value) -> Option<Self> {
        let is_bare = has_no_members(schema);
        let properties = match schema.get("properties") {
            Some(properties) if !is_bare => properties.as_object()?,
            _ => &*NONE,
        };
        let required = match schema.get("required") {
            None => BTreeSet::new(),
            Some(names) => names
                .as_array()?
                .iter()
                .map(Value::as_str)
                .collect::<Option<_>>()?,
        };
        let further = match is_bare {
            true => &*NOTHING,
            false => part(schema, "additionalProperties"),
        };
        further.is_object().then_some(Self {
            schema,
            properties,
            required,
            further,
        })
    }
}

/// Returns the property that looks like the new name of one that is gone.
fn new_name<'s>(
    name: &str,
    schema: &Value,
    was: &ObjectKeywords<'s>,
    is: &ObjectKeywords<'s>,
    taken: &BTreeSet<&str>,
) -> Option<&'s str> {
    let of_its_type = |now: &Value| {
        types(schema)
            .zip(types(now))
            .is_some_and(|(was, is)| was & is != 0)
    };
    let came: Vec<(&'s str, &Value)> = is
        .properties
        .iter()
        .map(|(name, schema)| (name.as_str(), schema))
        .filter(|(name, now)| {
            !was.properties.contains_key(*name) && !taken.contains(name) && of_its_type(now)
        })
        .take(NAMES_MAX)
        .collect();
    // A bare type is too little to identify a property by.
    let rules = canonical(schema);
    let is_telling = rules.as_object().is_some_and(|rules| rules.len() > 1)
        || schema.get("description").is_some();
    let is_same = |now: &Value| {
        canonical(now) == rules && now.get("description") == schema.get("description")
    };
    let same: Vec<&str> = came
        .iter()
        .filter(|(_, now)| is_same(now))
        .map(|(name, _)| *name)
        .collect();
    match (&same[..], is_telling) {
        ([only], true) => Some(only),
        _ => name::nearest(name, same.iter().copied())
            .or_else(|| name::nearest(name, came.iter().map(|(name, _)| *name))),
    }
}
