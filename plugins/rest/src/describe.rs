//! The shape: from the settings, from what the list answers now, or from an OpenAPI document.

use std::collections::BTreeMap;

use weir_plugin_sdk::serde_json::{self, Map, Value as Json, value::RawValue};
use weir_plugin_sdk::shape::{Operation, Param};
use weir_plugin_sdk::value::{Datetime, INTEGER_MAX, Zone, is_date};
use weir_plugin_sdk::{Error, Field, Shape, Type, matches};

use crate::answer;
use crate::answer::record::{RecordMembers, not_a_record, record_members, value_fault};
use crate::pages::ListPages;
use crate::request::request;
use crate::settings::{FieldSettings, FullField, ListPagination, NEXT, OpenApi, RestSettings};

pub(crate) fn describe(settings: &RestSettings) -> Result<Shape, Error> {
    let name = settings.list.as_ref().map_or("record", |list| {
        list.path
            .rsplit('/')
            .find(|part| !part.is_empty())
            .unwrap_or("record")
    });
    let mut shape = Shape::new(name);
    shape.fields = match (&settings.fields, &settings.openapi) {
        (Some(fields), _) => written(fields)?,
        (None, Some(openapi)) => documented(settings, openapi)?,
        (None, None) if settings.sample => sampled(settings, &mut shape.notes)?,
        (None, None) => Vec::new(),
    };
    shape.key = key(settings, &shape)?;
    for field in &mut shape.fields {
        if shape.key.contains(&field.key) {
            field.nullable = false;
        }
    }
    let capabilities = &mut shape.capabilities;
    capabilities.open_world = true;
    capabilities.read = settings.list.is_some() || settings.get.is_some();
    let keyed = !shape.key.is_empty();
    for (verb, given) in [
        ("create", settings.create.is_some()),
        ("update", settings.update.is_some() && keyed),
        ("delete", settings.delete.is_some() && keyed),
    ] {
        if given {
            capabilities.write.push(verb.to_owned());
        }
    }
    if capabilities.write.is_empty() {
        capabilities.read_only = Some(
            "The settings name no `create`, `update` or `delete` of the web service.".to_owned(),
        );
    }
    for field in &shape.fields {
        let all = matches::comparisons(field.kind)
            .iter()
            .map(|comparison| comparison.name().to_owned());
        let names: Vec<_> = match settings.list {
            Some(_) => all.collect(),
            // Without a list only a whole key finds a record.
            None => all
                .filter(|name| name == "equals" && shape.key.contains(&field.key))
                .collect(),
        };
        capabilities.matches.insert(field.key.clone(), names);
    }
    if settings.list.is_some() {
        let ordered =
            |field: &&Field| !matches!(field.kind, Type::Json | Type::Record | Type::List);
        capabilities.order = shape
            .fields
            .iter()
            .filter(ordered)
            .map(|field| field.key.clone())
            .collect();
    }
    capabilities.operations = operations(settings)?;
    Ok(shape)
}

fn key(settings: &RestSettings, shape: &Shape) -> Result<Vec<String>, Error> {
    if settings.key.is_empty() {
        return Ok(shape
            .field("id")
            .map(|field| field.key.clone())
            .into_iter()
            .collect());
    }
    match settings.key.iter().find(|name| shape.field(name).is_none()) {
        Some(name) => Err(Error::invalid(format!(
            "The key {name:?} is not a field of the record."
        ))
        .field("settings")),
        None => Ok(settings.key.clone()),
    }
}

impl RestSettings {
    /// Returns the place of a field in the record, if it is not under its own name.
    pub(crate) fn place(&self, field: &str) -> Option<String> {
        let given: FullField =
            serde_json::from_value(self.fields.as_ref()?.get(field)?.clone()).ok()?;
        given.at
    }
}

impl crate::settings::RestOperation {
    /// Returns the place of a result's column in the answer, if it is not under its own name; `""` is all of it.
    pub(crate) fn place(&self, column: &str) -> Option<String> {
        let given: FullField = serde_json::from_value(self.returns.get(column)?.clone()).ok()?;
        given.at
    }
}

fn written(fields: &Map<String, Json>) -> Result<Vec<Field>, Error> {
    let one = |(name, given): (&String, &Json)| {
        let given: FieldSettings = serde_json::from_value(given.clone()).map_err(|_| {
            Error::invalid(format!("The type of the field {name:?} is not one.")).field("settings")
        })?;
        Ok(match given {
            FieldSettings::Type(kind) => Field::new(name, kind).nullable(true),
            FieldSettings::Full(full) => Field {
                description: full.description,
                ..Field::new(name, full.r#type).nullable(full.nullable)
            },
        })
    };
    fields.iter().map(one).collect()
}

/// Returns the types that fit all records of the first page. A sample cannot prove that a field is always present,
/// so all but the key are nullable. Members that cannot become a column are noted.
fn sampled(settings: &RestSettings, notes: &mut Vec<String>) -> Result<Vec<Field>, Error> {
    let list = settings.list.as_ref().ok_or_else(|| {
        Error::invalid("A sample needs a `list` to take it from.").field("settings")
    })?;
    let page = ListPages::new(settings, list, &settings.key, Vec::new(), None).next();
    let page = page.map_err(answer::with_lists)?;
    let records = page.map(|page| page.records).unwrap_or_default();
    let mut names = Vec::new();
    let mut values: BTreeMap<String, Vec<&RawValue>> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        let refused = |fault: String| not_a_record(at, &fault);
        let members = record_members(record).map_err(refused)?;
        let once = RecordMembers::new(members.clone());
        for (name, value) in members {
            once.member(&name).map_err(refused)?;
            if let Some(fault) = value_fault(&name, value) {
                return Err(refused(fault));
            }
            // The order of a map is lost in a BTreeMap, so names are taken in the order they first come in.
            if !values.contains_key(&name) {
                names.push(name.clone());
            }
            values.entry(name).or_default().push(value);
        }
    }
    if names.iter().any(String::is_empty) {
        names.retain(|name| !name.is_empty());
        notes.push(
            "The records have a member whose name is empty, which no column can have. It is left out; give `fields` with one \
             `at: /` for it."
                .to_owned(),
        );
    }
    if names.is_empty() {
        return Err(Error::not_found(
            "The list is empty, so it shows no record; give `fields` instead.",
        )
        .field("settings"));
    }
    let field = |name: String| {
        let (kind, native) = kind(&values[&name]);
        Field {
            native: Some(native.to_owned()),
            ..Field::new(&name, kind).nullable(true)
        }
    };
    Ok(names.into_iter().map(field).collect())
}

/// Returns the narrowest type that all values have, and how JSON spells it.
fn kind(values: &[&RawValue]) -> (Type, &'static str) {
    let values: Vec<_> = values
        .iter()
        .map(|raw| raw.get())
        .filter(|text| *text != "null")
        .collect();
    let all =
        |test: &dyn Fn(&str) -> bool| !values.is_empty() && values.iter().all(|text| test(text));
    let text = |json: &str| serde_json::from_str::<String>(json).ok();
    let whole = |json: &str| {
        json.trim_start_matches('-')
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    };
    let safe = |json: &str| {
        json.parse::<i128>()
            .is_ok_and(|value| value.abs() <= INTEGER_MAX)
    };
    if all(&|json| json.starts_with('"')) {
        if all(&|json| text(json).is_some_and(|text| is_date(&text))) {
            return (Type::Date, "string");
        }
        if all(&|json| {
            text(json).is_some_and(|text| Datetime::parse(&text, &Zone::utc()).is_some())
        }) {
            return (Type::Datetime, "string");
        }
        return (Type::String, "string");
    }
    if all(&|json| json.starts_with(['t', 'f'])) {
        return (Type::Boolean, "boolean");
    }
    if all(&|json| json.starts_with(|first: char| first == '-' || first.is_ascii_digit())) {
        return match () {
            () if all(&|json| whole(json) && safe(json)) => (Type::Integer, "number"),
            () if all(&whole) => (Type::Decimal, "number"),
            () => (Type::Number, "number"),
        };
    }
    if values.is_empty() {
        (Type::String, "string")
    } else {
        (Type::Json, "json")
    }
}

fn documented(settings: &RestSettings, openapi: &OpenApi) -> Result<Vec<Field>, Error> {
    let response = answer::send(&request(settings, "GET", openapi.path.clone()))?;
    let document: Json = serde_json::from_slice(answer::checked(&response)?)
        .map_err(|_| Error::upstream_error("The OpenAPI document is not JSON."))?;
    let schema = document
        .pointer(&format!(
            "/components/schemas/{}",
            openapi.schema.replace('~', "~0").replace('/', "~1")
        ))
        .or_else(|| document.pointer(&format!("/definitions/{}", openapi.schema)))
        .ok_or_else(|| {
            Error::not_found("The OpenAPI document has no such schema.").field("settings")
        })?;
    let mut members = DocumentedMembers::default();
    members.collect(schema, &document, 0);
    if members.properties.is_empty() {
        return Err(
            Error::invalid("The OpenAPI schema is not an object with properties.")
                .field("settings"),
        );
    }
    let field = |(name, property): &(&String, &Json)| {
        let mut field = documented_field(name, property, &document, 0);
        field.nullable |= !members.required.contains(&name.as_str());
        field
    };
    Ok(members.properties.iter().map(field).collect())
}

/// The members of a schema, those of the parts of its `allOf` included.
#[derive(Default)]
struct DocumentedMembers<'d> {
    properties: Vec<(&'d String, &'d Json)>,
    required: Vec<&'d str>,
    /// The parts that were looked at: they may refer to each other in a circle.
    parts: usize,
}

impl<'d> DocumentedMembers<'d> {
    fn collect(&mut self, schema: &'d Json, document: &'d Json, depth: usize) {
        self.parts += 1;
        if depth == DEPTH_MAX || self.parts > PARTS_MAX {
            return;
        }
        let schema = referred(schema, document).unwrap_or(schema);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if self.properties.iter().all(|(known, _)| *known != name) {
                self.properties.push((name, property));
            }
        }
        let required = schema["required"].as_array().into_iter().flatten();
        self.required.extend(required.filter_map(Json::as_str));
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.collect(part, document, depth + 1);
        }
    }
}

/// The steps from a schema to its parts, and the number of parts of one schema that are examined.
const DEPTH_MAX: usize = 8;
const PARTS_MAX: usize = 1_000;

/// Returns the schema that a reference leads to.
fn referred<'d>(schema: &'d Json, document: &'d Json) -> Option<&'d Json> {
    let reference = schema["$ref"].as_str()?;
    document.pointer(reference.strip_prefix('#')?)
}

/// Returns the schema that gives the type of a property, behind references and unions with null, and whether null is a value
/// of it.
fn typed<'d>(property: &'d Json, document: &'d Json) -> (&'d Json, bool) {
    let is_null = |schema: &Json| schema["type"] == "null";
    let (mut schema, mut nullable) = (property, false);
    for _ in 0..DEPTH_MAX {
        nullable |= schema["nullable"] == Json::Bool(true);
        let arms = ["allOf", "anyOf", "oneOf"];
        let arms = arms.iter().find_map(|keyword| schema[*keyword].as_array());
        let mut others = arms.into_iter().flatten().filter(|arm| !is_null(arm));
        let only = others.next().filter(|_| others.next().is_none());
        let Some(inner) = referred(schema, document).or(only) else {
            break;
        };
        nullable |= arms.is_some_and(|arms| arms.iter().any(is_null));
        schema = inner;
    }
    (schema, nullable)
}

fn documented_field(name: &str, property: &Json, document: &Json, depth: usize) -> Field {
    let stated = property;
    let (property, nullable) = typed(stated, document);
    let types: Vec<&str> = match &property["type"] {
        Json::Array(types) => types.iter().filter_map(Json::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    let format = property["format"].as_str().unwrap_or_default();
    let kind = match types.iter().find(|kind| **kind != "null").copied() {
        Some("string") if format == "date" => Type::Date,
        Some("string") if format == "date-time" => Type::Datetime,
        Some("string") if format == "decimal" => Type::Decimal,
        Some("string") => Type::String,
        Some("integer") if matches!(format, "int64" | "uint64") => Type::Decimal,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        Some("array") if depth < 4 => Type::List,
        _ => Type::Json,
    };
    let native = if types.contains(&"integer") || types.contains(&"number") {
        "number"
    } else {
        ""
    };
    let mut field = Field::new(name, kind).nullable(nullable || types.contains(&"null"));
    let description = stated.get("description").or(property.get("description"));
    field.description = description.and_then(Json::as_str).map(str::to_owned);
    field.native = Some(native.to_owned()).filter(|native| !native.is_empty());
    let says_so = |schema: &Json| schema["readOnly"] == Json::Bool(true);
    field.generated = says_so(stated) || says_so(property);
    if kind == Type::List {
        field.items = Some(Box::new(documented_field(
            "",
            &property["items"],
            document,
            depth + 1,
        )));
    }
    field
}

fn operations(settings: &RestSettings) -> Result<Vec<Operation>, Error> {
    let one = |(name, given): (&String, &crate::settings::RestOperation)| {
        let params = given.params.iter().map(|(name, param)| Param {
            name: name.clone(),
            kind: param.r#type,
            required: param.required,
            description: param.description.clone(),
            items: None,
        });
        let mut returns = written(&given.returns)?;
        if given.pagination != ListPagination::None {
            returns.push(Field {
                description: Some(
                    "The arguments to call again with for the next page; null on the last one."
                        .to_owned(),
                ),
                ..Field::new(NEXT, Type::Json).nullable(true)
            });
        }
        Ok(Operation {
            name: name.clone(),
            effect: given.effect,
            params: params.collect(),
            returns,
        })
    };
    settings.operations.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use weir_plugin_sdk::serde_json::json;
    use weir_plugin_sdk::testing;

    use super::*;

    /// Documents allow null next to a type, and compose a schema from others.
    #[test]
    fn a_documented_record_is_made_of_all_its_parts() {
        testing::reset();
        testing::http::answer(|_| {
            let document = json!({"components": {"schemas": {
                "Day": {"type": "string", "format": "date", "description": "A day."},
                "Base": {"type": "object", "required": ["id"], "properties": {
                    "id": {"type": "integer", "readOnly": true}, "size": {"type": "integer", "format": "uint64"}}},
                "Post": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"type": "object", "required": ["note", "day"],
                    "properties": {
                        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Note"},
                        "day": {"allOf": [{"$ref": "#/components/schemas/Day"}], "nullable": true, "description": "The first."},
                        "end": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Day"}]},
                        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}]}}}});
            Ok(testing::http::json(200, &document.to_string()))
        });
        let settings = r#"{"connection":"blog","openapi":{"path":"/openapi.json","schema":"Post"},"list":{"path":"/posts"}}"#;
        let settings = RestSettings::parse(settings).expect("settings");
        let shape = describe(&settings).expect("a shape");
        let described: Vec<_> = shape
            .fields
            .iter()
            .map(|field| (field.key.as_str(), field.kind, field.nullable))
            .collect();
        let expected = [
            ("id", Type::Integer, false),
            ("size", Type::Decimal, true),
            ("note", Type::String, true),
            ("day", Type::Date, true),
            ("end", Type::Date, true),
            ("either", Type::Json, true),
        ];
        assert_eq!(described, expected);
        let texts = shape
            .fields
            .iter()
            .map(|field| field.description.as_deref());
        assert_eq!(
            texts.collect::<Vec<_>>(),
            [None, None, None, Some("The first."), Some("A day."), None]
        );
        assert!(shape.fields[0].generated);
    }
}
