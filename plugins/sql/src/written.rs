//! Checks a statement of the operator's own that writes.

use weir_plugin_sdk::{Error, Type};
use weir_statements::{StatementToken, TokenKind, tokens};

use crate::dialect::SqlDialect;
use crate::parameters::{DeclaredParameters, SqlTemplate, refused};

/// The operation that a collection with a statement has.
pub(crate) const OPERATION: &str = "run";
/// The members of an answer that is not one record.
pub(crate) const ROWS: &str = "rows";
pub(crate) const RECORDS: &str = "records";

const VERBS: [&str; 4] = ["insert", "update", "delete", "merge"];
/// What MySQL and MariaDB take between a verb and its table. IGNORE stores a value that does not fit as another one, and the
/// others are for engines that have no transactions.
const MODIFIERS: [&str; 5] = [
    "low_priority",
    "high_priority",
    "delayed",
    "quick",
    "ignore",
];

#[derive(Clone, Debug)]
pub(crate) struct WrittenStatement {
    pub(crate) template: SqlTemplate,
    /// Whether it answers rows, by RETURNING.
    pub(crate) returns: bool,
    /// The table that it writes, if its name is plain.
    pub(crate) table: Option<WrittenTable>,
}

#[derive(Clone, Debug)]
pub(crate) struct WrittenTable {
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
}

impl WrittenStatement {
    pub(crate) fn parse(
        text: &str,
        declared: &DeclaredParameters,
        dialect: SqlDialect,
    ) -> Result<Self, Error> {
        if text.contains('\0') {
            return Err(refused(&"it has a null character"));
        }
        let all = tokens(text, dialect.syntax()).map_err(|unclosed| refused(&unclosed))?;
        let code: Vec<&StatementToken<'_>> = all.iter().filter(|token| token.is_code()).collect();
        // A connection takes no comment in front, and a statement in another one no end.
        let last = code.iter().rposition(|token| !token.is_symbol(";"));
        let code = &code[..last.map_or(0, |last| last + 1)];
        let (Some(first), Some(last)) = (code.first(), code.last()) else {
            return Err(refused(&"it is empty"));
        };
        let main = check_words(code)?;
        if dialect == SqlDialect::Mysql {
            check_mysql(&code[main..])?;
        }
        let text = &text[first.at..last.at + last.text.len()];
        Ok(Self {
            template: SqlTemplate::parse(text, declared, dialect)?,
            returns: outside(code).any(|(_, token)| token.is_word("returning")),
            table: table(&code[main..]),
        })
    }
}

/// Returns the tokens that are in no parentheses, with their places.
fn outside<'c, 'a>(
    code: &'c [&'a StatementToken<'a>],
) -> impl Iterator<Item = (usize, &'a StatementToken<'a>)> + 'c {
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
fn check_words(code: &[&StatementToken<'_>]) -> Result<usize, Error> {
    if code.iter().any(|token| token.is_symbol(";")) {
        return Err(refused(&"it is more than one statement"));
    }
    let is_verb = |token: &StatementToken<'_>| VERBS.iter().any(|verb| token.is_word(verb));
    let others = ["select", "values", "table", "replace", "call", "do"];
    let is_main = |token: &StatementToken<'_>| {
        is_verb(token) || others.iter().any(|word| token.is_word(word))
    };
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

/// Checks that a statement for MySQL or MariaDB, from its verb on, writes rows of one table that the server counts one by one.
fn check_mysql(code: &[&StatementToken<'_>]) -> Result<(), Error> {
    let is_one_of =
        |token: &StatementToken<'_>, words: &[&str]| words.iter().any(|word| token.is_word(word));
    let outside: Vec<&StatementToken<'_>> = outside(code).map(|(_, token)| token).collect();
    let (verb, next) = (code[0], code.get(1));
    if verb.is_word("merge") {
        return Err(refused(&"MySQL and MariaDB have no MERGE"));
    }
    if let Some(modifier) = next.filter(|next| is_one_of(next, &MODIFIERS)) {
        return Err(refused(&format!(
            "{} is not taken: IGNORE stores other values than it was given, and the other words are for tables without transactions",
            modifier.text.to_uppercase()
        )));
    }
    if outside.iter().any(|token| token.is_word("returning")) {
        return Err(refused(
            &"on MySQL and MariaDB it answers how many rows it changed; leave RETURNING out",
        ));
    }
    if outside
        .windows(2)
        .any(|pair| pair[0].is_word("on") && pair[1].is_word("duplicate"))
    {
        return Err(refused(
            &"a row that ON DUPLICATE KEY UPDATE changes is counted twice; write an UPDATE",
        ));
    }
    let ends: &[&str] = match verb.is_word("update") {
        true => &["set"],
        false => &["where", "order", "limit"],
    };
    let is_several = |token: &StatementToken<'_>| {
        token.is_symbol(",") || is_one_of(token, &["join", "straight_join", "using"])
    };
    let mut tables = outside.iter().take_while(|token| !is_one_of(token, ends));
    let is_single = match verb.is_word("insert") {
        true => true,
        false => {
            (verb.is_word("update") || next.is_some_and(|next| next.is_word("from")))
                && !tables.any(|token| is_several(token))
        }
    };
    match is_single && table(code).is_some() {
        true => Ok(()),
        false => Err(refused(
            &"on MySQL and MariaDB it names one table: UPDATE table SET …, DELETE FROM table … or INSERT INTO table …",
        )),
    }
}

/// Returns the table behind the verb.
fn table(code: &[&StatementToken<'_>]) -> Option<WrittenTable> {
    let skipped = [
        "or", "abort", "fail", "ignore", "rollback", "into", "from", "only",
    ];
    let mut rest = code[1..]
        .iter()
        .skip_while(|token| skipped.iter().any(|word| token.is_word(word)));
    let first = rest.next()?;
    let (schema, name) = match rest.next() {
        Some(dot) if dot.is_symbol(".") => (Some(plain_name(first)?), rest.next()?),
        _ => (None, first),
    };
    Some(WrittenTable {
        schema,
        name: plain_name(name)?,
    })
}

/// Returns a name without its quotes.
fn plain_name(token: &StatementToken<'_>) -> Option<String> {
    match token.kind {
        TokenKind::Word => Some(token.text.to_owned()),
        TokenKind::Quoted => {
            let inner = token.text.get(1..token.text.len() - 1)?;
            let quote = &token.text[..1];
            Some(inner.replace(&quote.repeat(2), quote))
        }
        _ => None,
    }
}

/// Returns the types that an answer without columns of its own has.
pub(crate) fn count_field() -> weir_plugin_sdk::Field {
    weir_plugin_sdk::Field::new(ROWS, Type::Integer)
}
