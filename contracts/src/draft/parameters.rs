//! The parameters of a query in a draft: how its settings declare them, and the fields that go to them.

use std::{collections::HashSet, fmt::Write as _};

use serde_json::{Map, Value, json};
use weir_statements::SqlSyntax;

use super::{
    DraftInput, render_help, words,
    yaml::{flow, scalar},
};
use crate::{
    name,
    shape::{CollectionShape, OperationParam, ValueType},
};

/// Writes the settings of the collection. A query keeps its lines, and has its parameters declared as the shape has them.
pub(super) fn settings(input: &DraftInput<'_>) -> String {
    let query = input.settings.get("query").and_then(Value::as_str);
    let (Some(query), Some(members)) = (query, input.settings.as_object()) else {
        return format!("    settings: {}\n", flow(input.settings));
    };
    let mut text = "    settings:\n".to_owned();
    for (key, value) in members {
        let _ = match key.as_str() {
            "query" => write!(text, "      query: {}", block(query)),
            "parameters" => write!(text, "{}", declared(&input.shape.capabilities.params)),
            _ => writeln!(text, "      {}: {}", scalar(key), flow(value)),
        };
    }
    text
}

/// Notes that a query's own order is not that of the answers, if it has one.
pub(super) fn note_order(input: &DraftInput<'_>) -> Option<String> {
    let query = input.settings.get("query").and_then(Value::as_str)?;
    let tokens = weir_statements::tokens(query, SqlSyntax::Sqlite).ok()?;
    let code: Vec<_> = tokens.iter().filter(|token| token.is_code()).collect();
    let mut depth = 0_usize;
    let is_ordered = code.windows(2).any(|pair| {
        depth += usize::from(pair[0].is_symbol("("));
        depth = depth.saturating_sub(usize::from(pair[0].is_symbol(")")));
        depth == 0 && pair[0].is_word("ORDER") && pair[1].is_word("BY")
    });
    is_ordered.then(|| {
        "The ORDER BY of the query decides which records its LIMIT takes, and not their order in an answer: say that as `order:` of the list, \
         such as `order: [-total]`."
            .to_owned()
    })
}

/// Writes a text of several lines as YAML, with the lines that it has where YAML reads it back as it is.
pub(crate) fn block(query: &str) -> String {
    let is_plain =
        |next: char| next == '\n' || (' '..='~').contains(&next) || next.is_alphanumeric();
    let fits = query.chars().all(is_plain)
        && query.lines().all(|line| line == line.trim_end())
        && query.starts_with(|first: char| !first.is_whitespace())
        && query.trim_end() == query;
    if !fits {
        return format!("{}\n", scalar(query));
    }
    let lines = query.lines().map(|line| match line.is_empty() {
        true => "\n".to_owned(),
        false => format!("        {line}\n"),
    });
    format!("|-\n{}", lines.collect::<String>())
}

/// Writes the key `parameters` of a collection.
pub(crate) fn declared(params: &[OperationParam]) -> String {
    if params.is_empty() {
        return "      parameters: {}\n".to_owned();
    }
    let mut text = "      parameters:\n".to_owned();
    for param in params {
        let mut written = Map::from_iter([("type".to_owned(), json!(param.kind.word()))]);
        if let Some(items) = &param.items {
            written.insert("of".to_owned(), json!(items.kind.word()));
        }
        if param.required {
            written.insert("required".to_owned(), json!(true));
        }
        let written = flow(&Value::Object(written));
        let _ = writeln!(text, "        {}: {written}", scalar(&param.name));
    }
    text
}

/// Returns a field for each parameter. Its name is taken before those of columns.
pub(super) fn fields(shape: &CollectionShape, taken: &mut HashSet<String>) -> Vec<String> {
    let field = |param: &OperationParam| {
        let stem = name::plain_field(&words::field(&param.name));
        let numbered = (2..).map(|number| format!("{stem}_{number}"));
        let named = std::iter::once(stem.clone())
            .chain(numbered)
            .find(|name| taken.insert(name.clone()))?;
        let typed = match &param.items {
            Some(items) => format!("type: list, of: {{ {} }}", type_of(items.kind)),
            None => type_of(param.kind).to_owned(),
        };
        let required = if param.required {
            ", required: true"
        } else {
            ""
        };
        let help = param
            .description
            .as_deref()
            .map(render_help)
            .unwrap_or_default();
        Some(format!(
            "{{ name: {}, {typed}, param: {}{required}{help} }}",
            scalar(&named),
            scalar(&param.name)
        ))
    };
    shape.capabilities.params.iter().filter_map(field).collect()
}

fn type_of(kind: ValueType) -> &'static str {
    match kind {
        ValueType::Integer | ValueType::Number | ValueType::Decimal => "type: number",
        ValueType::Boolean => "type: checkbox",
        ValueType::Date => "type: date",
        ValueType::Datetime => "type: datetime",
        ValueType::Json | ValueType::Record | ValueType::List => "type: json, schema: {}",
        ValueType::String => "type: text",
    }
}
