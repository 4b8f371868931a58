//! The members of one object, each as it was written.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Members of one object; more make no sense in anything that a list holds.
const MEMBERS_MAX: usize = 1000;

/// An object's members in their order. Where a name is given twice, the last one counts, as for most readers.
pub(super) struct RawMembers<'t> {
    members: Vec<(String, &'t RawValue)>,
}

impl<'t> RawMembers<'t> {
    pub(super) fn read(text: &'t str) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_str(text);
        let members = json.deserialize_any(RawMembersVisitor).map_err(|error| {
            // An item of a list has no line numbers that a person could look up.
            let message = error.to_string();
            message
                .split(" at line ")
                .next()
                .unwrap_or(&message)
                .to_owned()
        })?;
        json.end()
            .map_err(|_| "something follows the object".to_owned())?;
        Ok(Self { members })
    }

    pub(super) fn raw(&self, name: &str) -> Option<&'t RawValue> {
        self.members
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| *value)
    }

    pub(super) fn object(&self, name: &str) -> Option<&'t RawValue> {
        self.raw(name).filter(|value| value.get().starts_with('{'))
    }

    pub(super) fn array(&self, name: &str) -> Option<&'t RawValue> {
        self.raw(name).filter(|value| value.get().starts_with('['))
    }

    pub(super) fn number(&self, name: &str) -> Option<&'t RawValue> {
        self.raw(name).filter(|value| {
            value
                .get()
                .starts_with(|first: char| first == '-' || first.is_ascii_digit())
        })
    }

    pub(super) fn boolean(&self, name: &str) -> Option<bool> {
        match self.raw(name)?.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// Returns the first name that is given twice.
    pub(super) fn repeated(&self) -> Option<&str> {
        let names = self.members.iter().enumerate();
        let mut again = names
            .filter(|(at, (name, _))| self.members[..*at].iter().any(|(before, _)| before == name));
        again.next().map(|(_, (name, _))| name.as_str())
    }
}

struct RawMembersVisitor;

impl<'t> Visitor<'t> for RawMembersVisitor {
    type Value = Vec<(String, &'t RawValue)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            if members.len() == MEMBERS_MAX {
                return Err(serde::de::Error::custom(format!(
                    "an object has more than {MEMBERS_MAX} members"
                )));
            }
            members.push(member);
        }
        Ok(members)
    }
}
