//! A statement of the operator's own that writes: what it may be, and how a call runs it.

use weir_plugin_sdk::records::{Records, record};
use weir_plugin_sdk::serde_json::json;
use weir_plugin_sdk::{Change, Error, Type, Value, sql};
use weir_statements::{SqlToken, TokenKind, tokens};

use crate::Sql;
use crate::column::Column;
use crate::dialect::Dialect;
use crate::parameters::{Declared, Template, refused};
use crate::statement::{Builder, cell, rows};

/// The operation that a collection with a statement has.
pub(crate) const OPERATION: &str = "run";
/// The members of an answer that is not one record.
pub(crate) const ROWS: &str = "rows";
pub(crate) const RECORDS: &str = "records";

const VERBS: [&str; 4] = ["insert", "update", "delete", "merge"];

#[derive(Clone, Debug)]
pub(crate) struct WrittenStatement {
    pub(crate) template: Template,
    /// Whether it answers rows, by RETURNING.
    pub(crate) returns: bool,
    /// The table that it writes, if its name is plain.
    pub(crate) table: Option<String>,
}

impl WrittenStatement {
    pub(crate) fn parse(text: &str, declared: &Declared, dialect: Dialect) -> Result<Self, Error> {
        let all = tokens(text, dialect.syntax()).map_err(|unclosed| refused(&unclosed))?;
        let code: Vec<&SqlToken<'_>> = all.iter().filter(|token| token.is_code()).collect();
        // A connection takes no comment in front, and a statement in another one no end.
        let last = code.iter().rposition(|token| !token.is_symbol(";"));
        let code = &code[..last.map_or(0, |last| last + 1)];
        let (Some(first), Some(last)) = (code.first(), code.last()) else {
            return Err(refused(&"it is empty"));
        };
        let main = check_words(code)?;
        let text = &text[first.at..last.at + last.text.len()];
        Ok(Self {
            template: Template::parse(text, declared, dialect)?,
            returns: outside(code).any(|(_, token)| token.is_word("returning")),
            table: table(&code[main..]),
        })
    }

    /// Returns the text that is run. PostgreSQL writes the columns as the adapter reads them.
    fn text(&self, dialect: Dialect, columns: &[Column<'_>]) -> String {
        let text = &self.template.text;
        if dialect == Dialect::Sqlite || !self.returns {
            return text.clone();
        }
        let list = columns.iter().map(Column::read).enumerate();
        let list: Vec<_> = list.map(|(at, read)| format!("{read} AS c{at}")).collect();
        format!(
            "WITH weir_statement AS (\n{text}\n) SELECT {} FROM weir_statement",
            list.join(", ")
        )
    }
}

/// Runs the statement of a collection. What it answers is what the recorded operation says.
pub(crate) fn run(collection: &Sql, dialect: Dialect, change: &Change) -> Result<String, Error> {
    let operations = &collection.shape.capabilities.operations;
    let asked = change
        .options
        .get("operation")
        .and_then(|name| name.as_str());
    let Some(operation) = operations
        .iter()
        .find(|operation| asked == Some(operation.name.as_str()))
    else {
        return Err(Error::unsupported("The collection has no such operation."));
    };
    let Some(statement) = collection.statement(dialect)? else {
        return Err(Error::unsupported("The collection has no statement."));
    };
    let settings = &collection.settings;
    let most = settings.rows_max();
    let records = operation.returns.iter().find(|field| field.key == RECORDS);
    let items = records.and_then(|field| field.items.as_ref());
    let fields = match (statement.returns, items) {
        (false, _) => &[][..],
        (true, Some(items)) if most > 1 => &items.fields[..],
        (true, _) => &operation.returns[..],
    };
    let columns: Vec<_> = fields
        .iter()
        .map(|field| Column::new(&collection.shape, dialect, field))
        .collect();
    let mut builder = Builder::new(dialect);
    statement
        .template
        .bind(&change.options, &collection.zone, &mut builder)?;
    builder.text = statement.text(dialect, &columns);
    let options = json!({ "write": true, "statement": true, "rows_max": most }).to_string();
    let given = builder.finish(&settings.connection, most, Some(&options));
    if !statement.returns {
        let changed = sql::execute(&given)?;
        return Ok(json!({ ROWS: changed }).to_string());
    }
    let answer = sql::query(&given)?;
    let rows = rows(&answer.records)?;
    let mut records = Records::new();
    let mut last = None;
    for row in &rows {
        let members = columns.iter().enumerate().map(|(at, column)| {
            let value = column.value(cell(row, at)?, &collection.zone);
            Ok((column.field.key.as_str(), value))
        });
        let members = members.collect::<Result<Vec<_>, Error>>()?;
        match most {
            1 => last = Some(record(members)),
            _ => records.push(members),
        }
    }
    if most > 1 {
        let records = Value::Json(records.finish().into());
        let count = Value::Integer(rows.len() as i128);
        return Ok(record([(ROWS, count), (RECORDS, records)]));
    }
    last.ok_or_else(|| Error::not_found("The statement met no record, and nothing was changed."))
}

/// Returns the tokens that are in no parentheses, with their places.
fn outside<'c, 'a>(
    code: &'c [&'a SqlToken<'a>],
) -> impl Iterator<Item = (usize, &'a SqlToken<'a>)> + 'c {
    let mut depth = 0_usize;
    code.iter().enumerate().filter_map(move |(place, token)| {
        if token.is_symbol("(") {
            depth += 1;
        }
        let is_outside = depth == 0;
        if token.is_symbol(")") {
            depth = depth.saturating_sub(1);
        }
        is_outside.then_some((place, *token))
    })
}

/// Checks that a text is one statement that changes rows, of which the database counts every one. Returns the place of its
/// verb.
fn check_words(code: &[&SqlToken<'_>]) -> Result<usize, Error> {
    if code.iter().any(|token| token.is_symbol(";")) {
        return Err(refused(&"it is more than one statement"));
    }
    let is_verb = |token: &SqlToken<'_>| VERBS.iter().any(|verb| token.is_word(verb));
    let others = ["select", "values", "table", "replace", "call", "do"];
    let is_main =
        |token: &SqlToken<'_>| is_verb(token) || others.iter().any(|word| token.is_word(word));
    let starts = is_verb(code[0]) || code[0].is_word("with");
    let main = outside(code).find(|(_, token)| is_main(token));
    let Some((main, _)) = main.filter(|(_, token)| starts && is_verb(token)) else {
        return Err(refused(
            &"it is no INSERT, UPDATE, DELETE or MERGE; what reads is a `query`",
        ));
    };
    let inside: std::collections::HashSet<usize> = outside(code).map(|(place, _)| place).collect();
    for (place, token) in code.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| code[before]);
        let is_after = |words: &[&str]| {
            before.is_some_and(|before| words.iter().any(|word| before.is_word(word)))
        };
        if token.is_word("replace") && is_after(&["or"]) {
            return Err(refused(
                &"rows that OR REPLACE deletes are not counted; write ON CONFLICT … DO UPDATE",
            ));
        }
        let is_name = before.is_some_and(|before| before.is_symbol("."))
            || code.get(place + 1).is_some_and(|next| next.is_symbol("("));
        let locks = token.is_word("update") && is_after(&["for", "key"]);
        if is_verb(token) && !inside.contains(&place) && !is_name && !locks {
            return Err(refused(&format!(
                "the rows of a {} inside another statement are not counted; a name that is meant stands in quotes",
                token.text.to_uppercase()
            )));
        }
    }
    Ok(main)
}

/// Returns the name of the table behind the verb.
fn table(code: &[&SqlToken<'_>]) -> Option<String> {
    let skipped = [
        "or", "abort", "fail", "ignore", "rollback", "into", "from", "only",
    ];
    let mut rest = code[1..]
        .iter()
        .skip_while(|token| skipped.iter().any(|word| token.is_word(word)));
    let name = rest.next()?;
    let name = match rest.next() {
        Some(dot) if dot.is_symbol(".") => rest.next()?,
        _ => name,
    };
    match name.kind {
        TokenKind::Word => Some(name.text.to_owned()),
        TokenKind::Quoted => {
            let inner = name.text.get(1..name.text.len() - 1)?;
            Some(inner.replace("\"\"", "\""))
        }
        _ => None,
    }
}

/// Returns the types that an answer without columns of its own has.
pub(crate) fn count_field() -> weir_plugin_sdk::Field {
    weir_plugin_sdk::Field::new(ROWS, Type::Integer)
}
