//! The lengths of names and listed values, which OpenAI bounds in strict mode.

use serde_json::{Map, Value};

use crate::{keyword::DEFS, walk::each_inside};

/// A list of more values than this is long.
const LONG_LIST: usize = 250;

/// Lengths in characters.
#[derive(Default)]
pub(super) struct TextLengths {
    /// The names of properties and definitions and the listed values of a whole schema.
    pub(super) all: usize,
    /// The characters of the values in one long list; of several, the most.
    pub(super) longest_list: usize,
}

impl TextLengths {
    /// Adds the texts of a schema and of the schemas inside it.
    pub(super) fn add(&mut self, schema: &Value) {
        let Value::Object(members) = schema else {
            return;
        };
        self.add_values(members);
        for named in ["properties", DEFS]
            .iter()
            .filter_map(|key| members.get(*key))
        {
            let names = named.as_object().into_iter().flat_map(Map::keys);
            self.all += names.map(|name| name.chars().count()).sum::<usize>();
        }
        each_inside(members, &mut |schema| self.add(schema));
    }

    fn add_values(&mut self, members: &Map<String, Value>) {
        let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        if let Some(Value::Array(values)) = members.get("enum") {
            let list = values.iter().map(length).sum();
            self.all += list;
            if values.len() > LONG_LIST {
                self.longest_list = self.longest_list.max(list);
            }
        }
        self.all += members.get("const").map_or(0, length);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ClientProfile, lower};
    use super::*;

    #[test]
    fn strict_functions_with_long_names_or_values_are_refused() {
        let object = |properties: Value| json!({ "type": "object", "properties": properties, "additionalProperties": false });
        let listed = |count: usize, length: usize| {
            let values = (0..count).map(|n| format!("{n:0length$}"));
            let list = json!({ "type": "string", "enum": values.collect::<Vec<_>>() });
            object(json!({ "a": list }))
        };
        let named = |count: usize| {
            let names = (0..count).map(|n| (format!("{n:0100}"), json!({ "type": "string" })));
            object(Value::Object(names.collect()))
        };
        for (input, is_refused) in [
            (listed(250, 100), false),
            (listed(251, 60), true),
            (listed(251, 59), false),
            (listed(200, 700), true),
            (named(1_200), false),
            (named(1_201), true),
        ] {
            let lowered = lower("tool", &input, ClientProfile::OpenaiStrict);
            assert_eq!(lowered.is_refused(), is_refused, "{:?}", lowered.remarks);
            assert!(!lower("tool", &input, ClientProfile::Openai).is_refused());
        }
    }
}
