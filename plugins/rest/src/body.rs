//! The body of a write: what the service already has, with values put into it. Everything else is kept as received.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use weir_plugin_sdk::serde_json::{self, value::RawValue};

/// JSON that values are put into. Only what is on the way to one is taken apart, since a number that is read as a
/// double may lose digits.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum RestBody {
    Object(#[serde(serialize_with = "in_order")] Vec<(String, RestBody)>),
    List(Vec<RestBody>),
    Json(Box<RawValue>),
}

impl RestBody {
    pub(crate) fn new() -> Self {
        Self::Object(Vec::new())
    }

    /// Reads an object; `None` if the JSON is something else.
    pub(crate) fn object(json: &RawValue) -> Option<Self> {
        let RestMembers(members) = serde_json::from_str(json.get()).ok()?;
        Some(Self::Object(members))
    }

    fn list(json: &RawValue) -> Option<Self> {
        let items: Vec<Box<RawValue>> = serde_json::from_str(json.get()).ok()?;
        Some(Self::List(items.into_iter().map(Self::Json).collect()))
    }

    /// Puts a value where the steps lead, creating missing objects on the way. Returns `false` if they
    /// lead to an item that a list does not have.
    pub(crate) fn put(&mut self, steps: &[String], value: Box<RawValue>) -> bool {
        let Some((step, steps)) = steps.split_first() else {
            *self = Self::Json(value);
            return true;
        };
        if let Self::Json(json) = self {
            *self = Self::object(json)
                .or_else(|| Self::list(json))
                .unwrap_or_else(Self::new);
        }
        let inside = match self {
            Self::Object(members) => {
                // Of two members of one name, readers take the last one.
                let at = members
                    .iter()
                    .rposition(|(name, _)| name == step)
                    .unwrap_or_else(|| {
                        members.push((step.clone(), Self::new()));
                        members.len() - 1
                    });
                members.get_mut(at).map(|(_, member)| member)
            }
            Self::List(items) => step.parse::<usize>().ok().and_then(|at| items.get_mut(at)),
            Self::Json(_) => None,
        };
        inside.is_some_and(|inside| inside.put(steps, value))
    }
}

fn in_order<S: Serializer>(
    members: &[(String, RestBody)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(name, member)| (name, member)))
}

/// The members of an object, in their order.
struct RestMembers(Vec<(String, RestBody)>);

impl<'de> Deserialize<'de> for RestMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RestMembersVisitor)
    }
}

struct RestMembersVisitor;

impl<'de> Visitor<'de> for RestMembersVisitor {
    type Value = RestMembers;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RestMembers, A::Error> {
        let mut members = Vec::new();
        while let Some((name, json)) = map.next_entry()? {
            members.push((name, RestBody::Json(json)));
        }
        Ok(RestMembers(members))
    }
}
