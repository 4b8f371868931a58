//! The settings of a collection.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_plugin_sdk::adapter::parse_settings;
use weir_plugin_sdk::serde_json::{Map, Value};
use weir_plugin_sdk::shape::Effect;
use weir_plugin_sdk::{Error, Type};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestSettings {
    pub(crate) connection: String,
    pub(crate) fields: Option<Map<String, Value>>,
    #[serde(default)]
    pub(crate) sample: bool,
    pub(crate) openapi: Option<OpenApi>,
    #[serde(default)]
    pub(crate) key: Vec<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Whether agents read why the service refuses a request.
    #[serde(default)]
    pub(crate) errors: ServiceErrors,
    pub(crate) list: Option<ListEndpoint>,
    pub(crate) get: Option<RecordEndpoint>,
    pub(crate) create: Option<RecordEndpoint>,
    pub(crate) update: Option<RecordEndpoint>,
    pub(crate) delete: Option<RecordEndpoint>,
    #[serde(default)]
    pub(crate) operations: BTreeMap<String, RestOperation>,
}

/// What agents read of a refusal of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServiceErrors {
    /// The words of the service, in addition to what the status means.
    #[default]
    Shown,
    Hidden,
}

/// A field as `fields` and `returns` write it: a type, or an object with more.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum FieldSettings {
    Type(Type),
    Full(FullField),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FullField {
    pub(crate) r#type: Type,
    #[serde(default)]
    pub(crate) nullable: bool,
    pub(crate) description: Option<String>,
    /// JSON Pointer within the record; the field's own name without it.
    pub(crate) at: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenApi {
    pub(crate) path: String,
    pub(crate) schema: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListEndpoint {
    pub(crate) path: String,
    /// JSON Pointer to the array in the answer.
    #[serde(default)]
    pub(crate) records: String,
    /// Sent with every request.
    #[serde(default)]
    pub(crate) query: BTreeMap<String, String>,
    /// Column → comparison → query parameter: narrows the request. Every record is judged again here.
    #[serde(default)]
    pub(crate) filters: BTreeMap<String, BTreeMap<String, String>>,
    /// The order the service answers in, if it keeps one: then a list in this order reads no further than it must.
    #[serde(default)]
    pub(crate) sorted_by: Vec<String>,
    #[serde(default)]
    pub(crate) pagination: ListPagination,
    /// Records looked at in one call at most.
    #[serde(default = "scan_max")]
    pub(crate) scan_max: usize,
}

fn scan_max() -> usize {
    10_000
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "style", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum ListPagination {
    /// The answer is the whole list.
    #[default]
    None,
    Page {
        page: String,
        size: Option<String>,
        #[serde(default = "page_size")]
        per_page: u32,
        #[serde(default = "one")]
        first: u64,
        #[serde(default)]
        ends: LastPage,
    },
    Offset {
        offset: String,
        limit: String,
        #[serde(default = "page_size")]
        per_page: u32,
        #[serde(default)]
        ends: LastPage,
    },
    Cursor {
        cursor: String,
        /// JSON Pointer to the next cursor in the answer; null, absent or "" ends the list.
        next: String,
        size: Option<String>,
        #[serde(default = "page_size")]
        per_page: u32,
    },
    /// `Link: <…>; rel="next"`.
    Link {
        size: Option<String>,
        #[serde(default = "page_size")]
        per_page: u32,
    },
}

/// The page that is the last one of a numbered list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LastPage {
    /// The one before a page that is empty, is not there, or repeats it or the first: services cap the size of a page, and
    /// some filter a page after it is cut.
    #[default]
    Empty,
    /// The first with fewer records than were asked for.
    Short,
}

impl ListPagination {
    pub(crate) fn is_numbered(&self) -> bool {
        matches!(self, Self::Page { .. } | Self::Offset { .. })
    }

    /// Returns how many records a page has at most.
    pub(crate) fn per_page(&self) -> usize {
        match self {
            Self::None => usize::MAX,
            Self::Page { per_page, .. }
            | Self::Offset { per_page, .. }
            | Self::Cursor { per_page, .. }
            | Self::Link { per_page, .. } => *per_page as usize,
        }
    }

    /// Returns the parameters that the pagination names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::None => [None, None],
            Self::Page { page, size, .. } => [Some(page), size.as_ref()],
            Self::Offset { offset, limit, .. } => [Some(offset), Some(limit)],
            Self::Cursor { cursor, size, .. } => [Some(cursor), size.as_ref()],
            Self::Link { size, .. } => [size.as_ref(), None],
        };
        names.into_iter().flatten().map(String::as_str)
    }
}

fn page_size() -> u32 {
    100
}

fn one() -> u64 {
    1
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordEndpoint {
    pub(crate) path: String,
    pub(crate) method: Option<String>,
    /// JSON Pointer to the record in the answer.
    #[serde(default)]
    pub(crate) record: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestOperation {
    #[serde(default = "post")]
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) effect: Effect,
    #[serde(default)]
    pub(crate) params: BTreeMap<String, RestParam>,
    #[serde(default)]
    pub(crate) returns: Map<String, Value>,
    #[serde(default)]
    pub(crate) record: String,
    /// The media type of the body: JSON of any kind, or `application/x-www-form-urlencoded`.
    #[serde(default = "json")]
    pub(crate) content_type: String,
    /// Whether a body is sent even if it is empty: `GET` and `DELETE` then have none by default.
    #[serde(default)]
    pub(crate) body_required: bool,
    /// The media type that the answer is asked for as.
    pub(crate) accept: Option<String>,
    /// The place in the answer of the list that [`Self::pagination`] counts.
    #[serde(default)]
    pub(crate) records: String,
    /// The way to ask for the next page; its names are those of parameters. The result has it in [`NEXT`].
    #[serde(default)]
    pub(crate) pagination: ListPagination,
}

/// The column of a result with the arguments that lead to the next page; null on the last one.
pub(crate) const NEXT: &str = "next_arguments";
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

fn json() -> String {
    "application/json".to_owned()
}

fn post() -> String {
    "POST".to_owned()
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestParam {
    pub(crate) r#type: Type,
    #[serde(default)]
    pub(crate) required: bool,
    pub(crate) description: Option<String>,
    #[serde(default, rename = "in")]
    pub(crate) place: RestParamLocation,
    /// The parameter's name in the request; by default its own.
    #[serde(rename = "as")]
    pub(crate) name: Option<String>,
    /// The style of lists and objects outside a body of JSON; by default they are JSON, and a list in a form repeats its name.
    pub(crate) style: Option<RestParamStyle>,
    /// Whether values are exploded, as in OpenAPI: by default only for `form`.
    pub(crate) explode: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RestParamLocation {
    /// A member of it.
    #[default]
    Body,
    /// The whole body.
    WholeBody,
    Query,
    Path,
    Header,
}

/// A style, in OpenAPI's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RestParamStyle {
    Simple,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
    /// Of a parameter that OpenAPI describes by a `content` of JSON: texts have their quotes too.
    Json,
}

impl RestSettings {
    pub(crate) fn parse(settings: &str) -> Result<Self, Error> {
        let settings: Self = parse_settings(settings)?;
        let sources = [
            settings.fields.is_some(),
            settings.sample,
            settings.openapi.is_some(),
        ];
        let wrong = |what: &str| {
            Error::invalid(format!("The settings are wrong: {what}.")).field("settings")
        };
        if sources.iter().filter(|given| **given).count() != 1 {
            let only_calls = settings.list.is_none()
                && settings.get.is_none()
                && !settings.operations.is_empty();
            if !only_calls {
                return Err(wrong(
                    "say what a record is with exactly one of `fields`, `sample: true` and `openapi`",
                ));
            }
        }
        for (operation, given) in &settings.operations {
            let media = given
                .content_type
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase();
            let is_json = matches!(media.as_str(), "application/json" | "text/json")
                || media.ends_with("+json");
            if media != FORM && !is_json {
                return Err(wrong(&format!(
                    "`{operation}` sends {media}, which is neither JSON nor a form"
                )));
            }
            let mut bodies = given
                .params
                .values()
                .filter(|param| param.place == RestParamLocation::Body);
            let whole = given
                .params
                .values()
                .filter(|param| param.place == RestParamLocation::WholeBody)
                .count();
            if whole > 1 || (whole == 1 && (media == FORM || bodies.next().is_some())) {
                return Err(wrong(&format!(
                    "`{operation}` has a whole JSON body and something else in it"
                )));
            }
            if given.pagination != ListPagination::None && given.returns.contains_key(NEXT) {
                return Err(wrong(&format!("`{operation}` returns its own `{NEXT}`")));
            }
            if let Some(lacking) = given
                .pagination
                .names()
                .find(|name| !given.params.contains_key(*name))
            {
                return Err(wrong(&format!(
                    "the pagination of `{operation}` names no parameter: `{lacking}`"
                )));
            }
            let sent = |name: &String, param: &RestParam| {
                param.name.clone().unwrap_or_else(|| name.clone())
            };
            let in_path = |param: &RestParam| param.place == RestParamLocation::Path;
            let filled: Vec<String> = given
                .params
                .iter()
                .filter(|(_, param)| in_path(param))
                .map(|(name, param)| sent(name, param))
                .collect();
            for (name, param) in &given.params {
                let place = sent(name, param);
                let is_placed = given.path.contains(&format!("{{{place}}}"));
                // A body may have a member that is called like a place of the path, which another parameter fills.
                if is_placed != in_path(param) && !(is_placed && filled.contains(&place)) {
                    return Err(wrong(&format!(
                        "`{name}` of `{operation}` and the path do not agree; say `in: path`"
                    )));
                }
            }
        }
        if let Some(list) = &settings.list {
            let comparisons = list.filters.values().flat_map(BTreeMap::keys);
            for comparison in comparisons {
                weir_plugin_sdk::Comparison::parse(comparison)?;
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service may take a member in its body that is called like a place of its path.
    #[test]
    fn each_place_of_a_path_is_filled_by_a_parameter_of_the_path() {
        let settings = |params: &str| {
            let operation = format!(
                r#"{{"method": "PATCH", "path": "/variables/{{name}}", "params": {{{params}}}}}"#
            );
            RestSettings::parse(&format!(
                r#"{{"connection": "api", "operations": {{"rename": {operation}}}}}"#
            ))
        };
        let place = r#""name": {"type": "string", "required": true, "in": "path"}"#;
        let member = r#""new_name": {"type": "string", "as": "name"}"#;
        assert!(settings(&format!("{place}, {member}")).is_ok());
        for params in [
            member,
            r#""other": {"type": "string", "in": "path"}"#,
            r#""name": {"type": "string"}"#,
        ] {
            assert!(settings(params).is_err(), "{params}");
        }
    }
}
