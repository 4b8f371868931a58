//! Parameters of a query or a statement of the operator's own: `:name` in its text becomes a placeholder, and the value
//! is bound.

use std::borrow::Cow;

use serde::Deserialize;
use weir_plugin_sdk::serde_json::{self, Map, Value as Json, json};
use weir_plugin_sdk::shape::Param;
use weir_plugin_sdk::{Error, Field, Type, Value, Zone};
use weir_statements::{StatementToken, TokenKind, tokens};

use crate::dialect::{SqlDialect, mysql_parts, postgresql_type};
use crate::native;
use crate::statement::StatementBuilder;

const PARAMETERS_MAX: usize = 100;
const LIST_MAX: usize = 1_000;
const NAME_MAX: usize = 63;

/// The parameters as a contract declares them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "an object of parameters, or the word `guess`")]
pub(crate) enum DeclaredParameters {
    Each(Map<String, Json>),
    Guess(GuessWord),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GuessWord {
    Guess,
}

impl Default for DeclaredParameters {
    fn default() -> Self {
        Self::Each(Map::new())
    }
}

#[derive(Clone, Debug)]
struct QueryParameter {
    name: String,
    /// The type of the value, or of each value of a list.
    kind: Type,
    is_list: bool,
    required: bool,
    description: Option<String>,
    /// The value that it has while the columns are looked at.
    example: Json,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredParameter {
    r#type: Type,
    of: Option<Type>,
    #[serde(default)]
    required: bool,
    description: Option<String>,
    #[serde(default)]
    example: Json,
}

/// A text whose parameters have become placeholders.
#[derive(Clone, Debug)]
pub(crate) struct SqlTemplate {
    pub(crate) text: String,
    dialect: SqlDialect,
    /// In the order of their numbers.
    parameters: Vec<QueryParameter>,
}

impl SqlTemplate {
    pub(crate) fn parse(
        text: &str,
        declared: &DeclaredParameters,
        dialect: SqlDialect,
    ) -> Result<Self, Error> {
        let declared = declared.parameters()?;
        let all = tokens(text, dialect.syntax()).map_err(|unclosed| refused(&unclosed))?;
        let mut template = Self {
            text: String::with_capacity(text.len() + 64),
            dialect,
            parameters: Vec::new(),
        };
        let code: Vec<&StatementToken<'_>> = all.iter().filter(|token| token.is_code()).collect();
        let mut place = 0;
        for token in &all {
            match token.kind {
                TokenKind::Parameter => {
                    let is_each = stands_for_each(&code, place, dialect);
                    let expression = template.parameter(&token.text[1..], is_each, &declared)?;
                    template.text.push_str(&expression);
                }
                TokenKind::Placeholder => {
                    let what = format!("it has {}; write `:name` and declare the name", token.text);
                    return Err(refused(&what));
                }
                // A connection takes no comment in front.
                _ if template.text.is_empty() && !token.is_code() => {}
                _ => template.text.push_str(token.text),
            }
            place += usize::from(token.is_code());
        }
        let is_used = |wanted: &QueryParameter| {
            let mut used = template.parameters.iter();
            used.any(|parameter| parameter.name == wanted.name)
        };
        match declared.iter().find(|parameter| !is_used(parameter)) {
            Some(unused) => {
                let what = format!(
                    "`parameters` declares {:?}, which is nowhere in it as `:{}`",
                    unused.name, unused.name
                );
                Err(refused(&what).field("parameters"))
            }
            None => Ok(template),
        }
    }

    /// Returns the expression for one parameter in the text.
    fn parameter(
        &mut self,
        name: &str,
        is_each: bool,
        declared: &[QueryParameter],
    ) -> Result<String, Error> {
        let mut known = self.parameters.iter();
        let place = match known.position(|parameter| parameter.name == name) {
            Some(place) => place,
            None => {
                let mut declared_ones = declared.iter();
                let Some(found) = declared_ones.find(|parameter| parameter.name == name) else {
                    return Err(undeclared(name, declared));
                };
                self.parameters.push(found.clone());
                self.parameters.len() - 1
            }
        };
        let parameter = &self.parameters[place];
        Ok(match parameter.is_list && is_each {
            true => self.dialect.values_of_list(place + 1, parameter.kind),
            false => self
                .dialect
                .parameter(place + 1, parameter.kind, parameter.is_list),
        })
    }

    /// Returns the parameters as the shape has them.
    pub(crate) fn params(&self) -> Vec<Param> {
        let param = |parameter: &QueryParameter| Param {
            name: parameter.name.clone(),
            kind: match parameter.is_list {
                true => Type::List,
                false => parameter.kind,
            },
            required: parameter.required,
            description: parameter.description.clone(),
            items: parameter
                .is_list
                .then(|| Box::new(Field::new("", parameter.kind))),
        };
        self.parameters.iter().map(param).collect()
    }

    /// Binds the values that a call has for the parameters. They are the first ones of the statement, in the order of
    /// their numbers.
    pub(crate) fn bind(
        &self,
        options: &Map<String, Json>,
        zone: &Zone,
        builder: &mut StatementBuilder,
    ) -> Result<(), Error> {
        let given = options.get("params").and_then(Json::as_object);
        for parameter in &self.parameters {
            let value = given.and_then(|given| given.get(&parameter.name));
            let value = parameter.bound(value.unwrap_or(&Json::Null), self.dialect, zone)?;
            builder.bind(value);
        }
        Ok(())
    }

    /// Returns the text to describe, and the values under which the columns are looked at.
    pub(crate) fn described(&self) -> Result<(String, Vec<Json>), Error> {
        let examples = self.examples()?;
        Ok(match self.dialect {
            SqlDialect::Mysql => mysql_parts(&self.text, &examples),
            _ => (self.text.clone(), examples),
        })
    }

    /// Returns the values under which the columns are looked at.
    pub(crate) fn examples(&self) -> Result<Vec<Json>, Error> {
        let zone = Zone::parse("UTC")?;
        let bound =
            |parameter: &QueryParameter| parameter.bound(&parameter.example, self.dialect, &zone);
        self.parameters.iter().map(bound).collect()
    }
}

impl DeclaredParameters {
    pub(crate) fn is_guess(&self) -> bool {
        matches!(self, Self::Guess(_))
    }

    /// Returns the declaration of the parameters that a shape has.
    pub(crate) fn from_params(params: &[Param]) -> Self {
        let declared = params.iter().map(|param| {
            let mut written = json!({ "type": param.kind, "required": param.required });
            if let Some(items) = &param.items {
                written["of"] = json!(items.kind);
            }
            (param.name.clone(), written)
        });
        Self::Each(declared.collect())
    }

    fn parameters(&self) -> Result<Vec<QueryParameter>, Error> {
        let Self::Each(declared) = self else {
            return Err(refused(&"its parameters are not declared"));
        };
        if declared.len() > PARAMETERS_MAX {
            let message = format!("`parameters` has more than {PARAMETERS_MAX}");
            return Err(refused(&message).field("parameters"));
        }
        let each = declared.iter();
        each.map(|(name, written)| QueryParameter::read(name, written))
            .collect()
    }
}

impl QueryParameter {
    fn read(name: &str, written: &Json) -> Result<Self, Error> {
        let wrong =
            |why: &str| refused(&format!("the parameter {name:?} {why}")).field("parameters");
        let is_name = name.len() <= NAME_MAX
            && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .chars()
                .all(|next| next.is_ascii_alphanumeric() || next == '_');
        if !is_name {
            return Err(wrong("has an invalid name: use letters, digits and `_`"));
        }
        let written = match written {
            Json::String(_) => json!({ "type": written }),
            _ => written.clone(),
        };
        let written: DeclaredParameter = serde_json::from_value(written)
            .map_err(|error| wrong(&format!("is wrong: {error}")))?;
        let is_list = written.r#type == Type::List;
        let kind = match (is_list, written.of) {
            (false, None) => written.r#type,
            (true, Some(kind)) if kind != Type::Json => kind,
            (true, _) => {
                return Err(wrong(
                    "is a list: say of what with `of`, such as `of: string`",
                ));
            }
            (false, Some(_)) => return Err(wrong("is no list, so it has no `of`")),
        };
        if matches!(kind, Type::Record | Type::List) {
            return Err(wrong("has a type that cannot be bound"));
        }
        let parameter = Self {
            name: name.to_owned(),
            kind,
            is_list,
            required: written.required,
            description: written.description,
            example: written.example,
        };
        Ok(parameter)
    }

    /// Returns the value as it is bound. Null is bound for an absent one.
    fn bound(&self, value: &Json, dialect: SqlDialect, zone: &Zone) -> Result<Json, Error> {
        if value.is_null() {
            return Ok(Json::Null);
        }
        if !self.is_list {
            return self.scalar(value, dialect, zone);
        }
        let values = value.as_array().ok_or_else(|| self.unfit())?;
        if values.len() > LIST_MAX {
            let message = format!("{:?} takes at most {LIST_MAX} values.", self.name);
            return Err(Error::invalid(message).field(&self.name));
        }
        let values = values
            .iter()
            .map(|value| self.scalar(value, dialect, zone))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(match dialect {
            SqlDialect::Sqlite => Json::Array(values).to_string().into(),
            SqlDialect::Postgresql => array(&values).into(),
            SqlDialect::Mysql => Json::Array(values),
        })
    }

    fn scalar(&self, value: &Json, dialect: SqlDialect, zone: &Zone) -> Result<Json, Error> {
        let field = Field::new(&self.name, self.kind);
        let value = match (self.kind, value) {
            (Type::String, Json::String(_)) => Value::from_argument(value, &field, zone),
            (Type::String, _) | (_, Json::Null) => return Err(self.unfit()),
            _ => Value::from_argument(value, &field, zone),
        };
        let bound = match dialect {
            SqlDialect::Sqlite => sqlite_value(&value),
            SqlDialect::Mysql => mysql_value(&value),
            SqlDialect::Postgresql => {
                native::text(&value, postgresql_type(self.kind), None).map(Json::from)
            }
        };
        bound.ok_or_else(|| self.unfit())
    }

    fn unfit(&self) -> Error {
        let kind = match self.is_list {
            true => format!("a list of {} values", word(self.kind)),
            false => format!("a {} value", word(self.kind)),
        };
        Error::invalid(format!("{:?} takes {kind}.", self.name)).field(&self.name)
    }
}

/// Returns a value as SQLite has it; `None` for one that it does not have.
fn sqlite_value(value: &Value<'_>) -> Option<Json> {
    Some(match value {
        Value::Null | Value::Unfit(_) => return None,
        Value::Boolean(value) => i64::from(*value).into(),
        Value::Integer(value) => i64::try_from(*value).ok()?.into(),
        Value::Number(value) => (*value).into(),
        // SQLite compares numbers with numbers: a text would be greater than any number.
        Value::Decimal(value) => match value.to_integer().map(i64::try_from) {
            Some(Ok(value)) => value.into(),
            _ => value.as_str().parse::<f64>().ok()?.into(),
        },
        Value::Datetime(value) => value.to_string().into(),
        Value::Text(value) | Value::Date(value) | Value::Json(value) => value.as_ref().into(),
    })
}

/// Returns a value as MySQL has it; `None` for one that it does not have.
fn mysql_value(value: &Value<'_>) -> Option<Json> {
    Some(match value {
        Value::Null | Value::Unfit(_) => return None,
        Value::Boolean(value) => i64::from(*value).into(),
        Value::Integer(value) => i64::try_from(*value).ok()?.into(),
        Value::Number(value) => (*value).into(),
        Value::Decimal(value) => value.as_str().into(),
        // A session's times are UTC's.
        Value::Datetime(value) => value
            .to_string()
            .trim_end_matches('Z')
            .replace('T', " ")
            .into(),
        Value::Text(value) | Value::Date(value) | Value::Json(value) => value.as_ref().into(),
    })
}

/// Writes texts as an array in PostgreSQL's spelling.
fn array(values: &[Json]) -> String {
    let quoted = |value: &Json| {
        let text = value.as_str().unwrap_or_default();
        let escaped: Cow<'_, str> = match text.contains(['"', '\\']) {
            true => text.replace('\\', "\\\\").replace('"', "\\\"").into(),
            false => text.into(),
        };
        format!("\"{escaped}\"")
    };
    let values: Vec<String> = values.iter().map(quoted).collect();
    format!("{{{}}}", values.join(","))
}

/// Returns `true` if a parameter is alone in the parentheses of `IN (…)`, `ANY (…)` and similar operators, which take a SELECT.
fn stands_for_each(code: &[&StatementToken<'_>], place: usize, dialect: SqlDialect) -> bool {
    // MySQL takes a list of values only after IN.
    let words: &[&str] = match dialect {
        SqlDialect::Mysql => &["in"],
        _ => &["in", "any", "some", "all"],
    };
    let is_word = |token: &StatementToken<'_>| words.iter().any(|word| token.is_word(word));
    place >= 2
        && code[place - 1].is_symbol("(")
        && is_word(code[place - 2])
        && code.get(place + 1).is_some_and(|next| next.is_symbol(")"))
}

fn undeclared(name: &str, declared: &[QueryParameter]) -> Error {
    let names: Vec<&str> = declared.iter().map(|one| one.name.as_str()).collect();
    let known = match names.is_empty() {
        true => "there are none".to_owned(),
        false => format!("there are {}", names.join(", ")),
    };
    refused(&format!(
        "it has `:{name}`, which `parameters` does not declare: {known}. If a colon is not a parameter, put a blank after it"
    ))
}

/// Returns the error for settings whose text cannot be taken.
pub(crate) fn refused(why: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!(
        "The text of the query or statement is wrong: {why}."
    ))
    .field("settings")
}

fn word(kind: Type) -> String {
    format!("{kind:?}").to_lowercase()
}
