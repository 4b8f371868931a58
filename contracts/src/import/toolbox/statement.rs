//! One statement of Toolbox: its placeholders become `:name`, and its parameters fields.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};
use weir_statements::{
    SqlSyntax, StatementToken, TokenKind, tokens,
    write::{self, RefusedWrite},
};

use super::{OWN, note};
use crate::{
    import::{ImportRemark, text::field_name},
    name,
    shape::{OperationParam, ShapeField, ValueType},
};

/// A statement as a contract has it.
pub(super) struct TranslatedStatement {
    pub(super) text: String,
    pub(super) writes: bool,
    pub(super) params: Vec<OperationParam>,
    /// The fields of the form, in flow style.
    pub(super) fields: Vec<Value>,
}

type Refusal = (&'static str, String);

/// The end of a sentence about a parameter of another type.
const BINDABLE: &str =
    "has a type that cannot be bound: string, integer, float, boolean and array can";

pub(super) fn translate(
    tool: &Value,
    syntax: SqlSyntax,
    place: &str,
    tool_name: &str,
    remarks: &mut Vec<ImportRemark>,
) -> Result<TranslatedStatement, Refusal> {
    let text = tool.get("statement").and_then(Value::as_str);
    let text = text.ok_or_else(|| ("statement", "it has no statement".to_owned()))?;
    let given = tool.get("parameters").and_then(Value::as_array);
    let given = given.map(Vec::as_slice).unwrap_or_default();
    let params = given.iter().map(param).collect::<Result<Vec<_>, _>>()?;
    let names = unlike_names(&params);
    let all = tokens(text, syntax).map_err(|unclosed| ("statement", unclosed.to_string()))?;
    let code: Vec<&StatementToken<'_>> = all.iter().filter(|token| token.is_code()).collect();
    let writes = writes(&code, syntax)?;
    if syntax == SqlSyntax::Mysql {
        check_mysql_quotes(&code)?;
    }
    let (mut text, used) = with_names(&all, &names)?;
    if code.first().is_some_and(|first| first.is_symbol("(")) {
        // A connection takes what begins with the word SELECT.
        text = format!("SELECT * FROM (\n{text}\n) AS answers");
    }
    if !writes && write::outside(&code).any(|(_, token)| token.is_word("order")) {
        let message = "records come in the order of their columns and not of the statement's ORDER BY: say `order:`";
        remarks.push(note(place, tool_name, "order", message));
    }
    if writes {
        let message = "it changes one row or none: say how many it may change by `rows_max`";
        remarks.push(note(place, tool_name, "rows", message));
    }
    let mut translated = TranslatedStatement {
        text,
        writes,
        params: Vec::new(),
        fields: Vec::new(),
    };
    // A parameter that keeps its name goes before one that gets another.
    let keeps = |name: &&String| !needs_another(name, writes);
    let mut taken: BTreeSet<String> = names.iter().filter(keeps).cloned().collect();
    for ((param, name), given) in params.into_iter().zip(names).zip(given) {
        if !used.contains(&name) {
            let message = format!(
                "the parameter {} is not in the statement",
                name::quoted(&name)
            );
            remarks.push(note(place, tool_name, "parameter", &message));
            continue;
        }
        let named = argument(&name, writes, &mut taken);
        translated.fields.push(field(given, &param, &name, named));
        translated.params.push(OperationParam { name, ..param });
    }
    Ok(translated)
}

/// Refuses what means something else, or does not run, in a session of a connection to MySQL.
fn check_mysql_quotes(code: &[&StatementToken<'_>]) -> Result<(), Refusal> {
    let mut quoted = code.iter().filter(|token| token.kind == TokenKind::Quoted);
    let differs =
        |token: &&&StatementToken<'_>| token.text.starts_with('"') || token.text.contains('\\');
    let Some(token) = quoted.find(differs) else {
        return Ok(());
    };
    let why = format!(
        "a connection takes double quotes for names, and a backslash for itself: write {} otherwise",
        name::quoted(token.text)
    );
    Err(("statement", why))
}

/// Returns `true` for a statement that changes rows, and as the adapter takes it: one tool that is refused there would spoil the
/// whole contract. Statements that neither read nor change rows are refused.
fn writes(code: &[&StatementToken<'_>], syntax: SqlSyntax) -> Result<bool, Refusal> {
    let last = code.iter().rposition(|token| !token.is_symbol(";"));
    let code = &code[..last.map_or(0, |last| last + 1)];
    if write::write_verb(code).is_some() {
        let refused = |why: RefusedWrite| ("statement", why.to_string());
        return write::check_write(code, syntax)
            .map(|_| true)
            .map_err(refused);
    }
    let reads = ["select", "with", "values"];
    // A query of several ones may have each in parentheses.
    let first = code.iter().find(|token| !token.is_symbol("("));
    match first.is_some_and(|first| reads.iter().any(|word| first.is_word(word))) {
        true => Ok(false),
        false => Err((
            "statement",
            "it neither reads nor changes rows: SELECT, INSERT, UPDATE, DELETE and MERGE are taken"
                .to_owned(),
        )),
    }
}

/// Puts names in the place of placeholders, and leaves out a semicolon and comments at the ends.
fn with_names(
    all: &[StatementToken<'_>],
    names: &[String],
) -> Result<(String, HashSet<String>), Refusal> {
    let is_part = |token: &StatementToken<'_>| token.is_code() && !token.is_symbol(";");
    let first = all.iter().position(is_part).unwrap_or(0);
    let last = all.iter().rposition(is_part).unwrap_or(0);
    let mut text = String::new();
    let mut used = HashSet::new();
    let mut next = 0;
    for token in &all[first..=last.min(all.len().saturating_sub(1))] {
        match token.kind {
            TokenKind::Placeholder => {
                let number: usize = match token.text {
                    "?" => {
                        next += 1;
                        next
                    }
                    other => other[1..].parse().unwrap_or(0),
                };
                let name = number.checked_sub(1).and_then(|at| names.get(at));
                let name = name.ok_or_else(|| {
                    let message = format!(
                        "{} has no parameter; list it under `parameters`",
                        token.text
                    );
                    ("parameter", message)
                })?;
                text.push(':');
                text.push_str(name);
                used.insert(name.clone());
            }
            TokenKind::Parameter => {
                let message = format!(
                    "{} is not a parameter of Toolbox at this place; put a blank behind the colon",
                    token.text
                );
                return Err(("statement", message));
            }
            TokenKind::Symbol if token.text == ";" => {
                let message = "it is more than one statement; give each a tool of its own";
                return Err(("statement", message.to_owned()));
            }
            _ => text.push_str(token.text),
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Ok((lines.join("\n"), used))
}

/// Reads a parameter; its name is made into one of a statement later.
fn param(given: &Value) -> Result<OperationParam, Refusal> {
    let word = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
    let refused = |why: &str| {
        let message = format!("the parameter {} {why}", name::quoted(word("name")));
        ("parameter", message)
    };
    if given.get("authServices").is_some() || given.get("authSources").is_some() {
        return Err(refused(
            "is taken from a token; bind it with `from: agent` by hand",
        ));
    }
    let scalar = |kind: &str| match kind {
        "string" => Some(ValueType::String),
        "integer" => Some(ValueType::Integer),
        "float" => Some(ValueType::Number),
        "boolean" => Some(ValueType::Boolean),
        _ => None,
    };
    let items = given.get("items").and_then(|items| items.get("type"));
    let items = items.and_then(Value::as_str).and_then(scalar);
    let kind = match word("type") {
        "array" => ValueType::List,
        other => scalar(other).ok_or_else(|| refused(BINDABLE))?,
    };
    if kind == ValueType::List && items.is_none() {
        return Err(refused(
            "is an array of values that cannot be bound; say them by `items: { type: string }`, or integer, float or boolean",
        ));
    }
    let is_optional =
        given.get("required") == Some(&Value::Bool(false)) || given.get("default").is_some();
    Ok(OperationParam {
        name: word("name").to_owned(),
        kind,
        required: !is_optional,
        description: None,
        items: items
            .filter(|_| kind == ValueType::List)
            .map(|kind| Box::new(ShapeField::new("", kind))),
    })
}

/// Returns names that a statement can have, no two alike.
fn unlike_names(params: &[OperationParam]) -> Vec<String> {
    let mut taken = HashSet::new();
    let named = |param: &OperationParam| {
        let mut stem: String = param
            .name
            .chars()
            .map(|next| {
                if next.is_ascii_alphanumeric() {
                    next
                } else {
                    '_'
                }
            })
            .take(50)
            .collect();
        if !stem.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            stem.insert_str(0, "p_");
        }
        let numbered = (2..).map(|number| format!("{stem}_{number}"));
        let mut names = std::iter::once(stem.clone()).chain(numbered);
        names
            .find(|name| taken.insert(name.clone()))
            .expect("numbers do not end")
    };
    params.iter().map(named).collect()
}

/// Returns `true` for a parameter whose name no argument may have: a list has its own arguments, and an argument in Python
/// cannot be named like a keyword.
fn needs_another(name: &str, writes: bool) -> bool {
    OWN.contains(&name) && !writes || !name::is_python_name(name)
}

/// Returns the name of the argument for a parameter, and takes it.
fn argument(name: &str, writes: bool, taken: &mut BTreeSet<String>) -> String {
    if !needs_another(name, writes) {
        return name.to_owned();
    }
    let named = field_name(&format!("{name}_value"), taken);
    taken.insert(named.clone());
    named
}

/// Returns the field for a parameter.
fn field(given: &Value, param: &OperationParam, name: &str, named: String) -> Value {
    let mut field = Map::new();
    field.insert("name".to_owned(), named.into());
    match &param.items {
        Some(items) => {
            field.insert("type".to_owned(), "list".into());
            field.insert("of".to_owned(), json!({ "type": type_of(items.kind) }));
        }
        None => {
            field.insert("type".to_owned(), type_of(param.kind).into());
        }
    }
    field.insert("param".to_owned(), name.into());
    if param.required {
        field.insert("required".to_owned(), true.into());
    }
    if let Some(default) = given.get("default").filter(|default| !default.is_null()) {
        field.insert("default".to_owned(), default.clone());
    }
    if let Some(help) = given.get("description").and_then(Value::as_str) {
        field.insert("help".to_owned(), help.trim().into());
    }
    Value::Object(field)
}

fn type_of(kind: ValueType) -> &'static str {
    match kind {
        ValueType::Integer | ValueType::Number => "number",
        ValueType::Boolean => "checkbox",
        _ => "text",
    }
}
