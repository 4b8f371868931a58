//! Checks a statement of the operator's own that writes.

use weir_plugin_sdk::{Error, Type};
use weir_statements::{SqlToken, TokenKind, tokens};

use crate::dialect::Dialect;
use crate::parameters::{Declared, Template, refused};

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
                "the rows of a {} inside another statement are not counted; put a name that is meant into quotes",
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
