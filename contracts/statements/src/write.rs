//! Checks statements that change rows: the database has to count every row that such a statement changes.

use std::{borrow::Cow, collections::HashSet, fmt};

use crate::{SqlSyntax, StatementToken, TokenKind};

const VERBS: [&str; 4] = ["insert", "update", "delete", "merge"];
/// Other words that a statement, or its part after a WITH, begins with.
const OTHER_VERBS: [&str; 6] = ["select", "values", "table", "replace", "call", "do"];
/// What MySQL and MariaDB take between a verb and its table. IGNORE stores a value that does not fit as another one, and the
/// others are for engines that have no transactions.
const MYSQL_MODIFIERS: [&str; 5] = [
    "low_priority",
    "high_priority",
    "delayed",
    "quick",
    "ignore",
];

/// A statement that changes rows and whose changes the database counts completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedWrite {
    /// Whether it answers rows, by RETURNING.
    pub returns: bool,
    /// The table that it writes, if its name is plain.
    pub table: Option<WrittenTable>,
}

/// The name of a table that a statement writes, without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTable {
    pub schema: Option<String>,
    pub name: String,
}

/// The reason why a statement is not taken as one that changes rows: the end of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedWrite(Cow<'static, str>);

impl fmt::Display for RefusedWrite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for RefusedWrite {}

/// Checks that code, without spaces and comments, is one statement that changes rows, every one of which the database counts.
pub fn check_write(
    code: &[&StatementToken<'_>],
    syntax: SqlSyntax,
) -> Result<CountedWrite, RefusedWrite> {
    if code.is_empty() {
        return refuse("it is empty; write one INSERT, UPDATE, DELETE or MERGE");
    }
    if code.iter().any(|token| token.is_symbol(";")) {
        return refuse("it is more than one statement; give each a collection of its own");
    }
    let Some(verb) = write_verb(code) else {
        return refuse("it is no INSERT, UPDATE, DELETE or MERGE; what reads is a `query`");
    };
    check_inside(code)?;
    let written = CountedWrite {
        returns: outside(code).any(|(_, token)| token.is_word("returning")),
        table: table(&code[verb..]),
    };
    if syntax == SqlSyntax::Mysql {
        check_mysql(&code[verb..], &written)?;
    }
    Ok(written)
}

/// Returns the place of the verb of a statement that changes rows, also after a WITH; `None` for any other statement.
pub fn write_verb(code: &[&StatementToken<'_>]) -> Option<usize> {
    let first = code.first()?;
    let starts = is_verb(first) || first.is_word("with");
    let is_main = |token: &StatementToken<'_>| is_verb(token) || is_one_of(token, &OTHER_VERBS);
    let (place, verb) = outside(code).find(|(_, token)| is_main(token))?;
    (starts && is_verb(verb)).then_some(place)
}

/// Returns the tokens that are in no parentheses, with their places.
pub fn outside<'c, 'a>(
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

fn is_verb(token: &StatementToken<'_>) -> bool {
    is_one_of(token, &VERBS)
}

fn is_one_of(token: &StatementToken<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| token.is_word(word))
}

fn refuse<T>(why: impl Into<Cow<'static, str>>) -> Result<T, RefusedWrite> {
    Err(RefusedWrite(why.into()))
}

/// Checks that no part of a statement changes rows that the database does not count.
fn check_inside(code: &[&StatementToken<'_>]) -> Result<(), RefusedWrite> {
    let outside: HashSet<usize> = outside(code).map(|(place, _)| place).collect();
    for (place, token) in code.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| code[before]);
        let is_after = |words: &[&str]| before.is_some_and(|before| is_one_of(before, words));
        if token.is_word("replace") && is_after(&["or"]) {
            return refuse(
                "rows that OR REPLACE deletes are not counted; write ON CONFLICT … DO UPDATE",
            );
        }
        let is_name = before.is_some_and(|before| before.is_symbol("."))
            || code.get(place + 1).is_some_and(|next| next.is_symbol("("));
        let locks = token.is_word("update") && is_after(&["for", "key"]);
        if is_verb(token) && !outside.contains(&place) && !is_name && !locks {
            return refuse(format!(
                "the rows of a {} inside another statement are not counted; put a name that is meant into quotes",
                token.text.to_uppercase()
            ));
        }
    }
    Ok(())
}

/// Checks that a statement for MySQL or MariaDB, from its verb on, writes rows of one table that the server counts one by one.
fn check_mysql(code: &[&StatementToken<'_>], written: &CountedWrite) -> Result<(), RefusedWrite> {
    let outside: Vec<&StatementToken<'_>> = outside(code).map(|(_, token)| token).collect();
    let (verb, next) = (code[0], code.get(1));
    if verb.is_word("merge") {
        return refuse("MySQL and MariaDB have no MERGE; write an INSERT or an UPDATE");
    }
    if let Some(modifier) = next.filter(|next| is_one_of(next, &MYSQL_MODIFIERS)) {
        return refuse(format!(
            "{} is not taken: IGNORE stores other values than it was given, and the other words are for tables without transactions; leave it out",
            modifier.text.to_uppercase()
        ));
    }
    if written.returns {
        return refuse(
            "on MySQL and MariaDB it answers how many rows it changed; leave RETURNING out",
        );
    }
    let mut pairs = outside.windows(2);
    if pairs.any(|pair| pair[0].is_word("on") && pair[1].is_word("duplicate")) {
        return refuse(
            "a row that ON DUPLICATE KEY UPDATE changes is counted twice; write an UPDATE",
        );
    }
    let ends: &[&str] = match verb.is_word("update") {
        true => &["set"],
        false => &["where", "order", "limit"],
    };
    let is_several = |token: &StatementToken<'_>| {
        token.is_symbol(",") || is_one_of(token, &["join", "straight_join", "using"])
    };
    let mut tables = outside.iter().take_while(|token| !is_one_of(token, ends));
    let is_single = verb.is_word("insert")
        || ((verb.is_word("update") || next.is_some_and(|next| next.is_word("from")))
            && !tables.any(|token| is_several(token)));
    match is_single && written.table.is_some() {
        true => Ok(()),
        false => refuse(
            "on MySQL and MariaDB it names one table: UPDATE table SET …, DELETE FROM table … or INSERT INTO table …",
        ),
    }
}

/// Returns the table after the verb.
fn table(code: &[&StatementToken<'_>]) -> Option<WrittenTable> {
    let skipped = [
        "or", "abort", "fail", "ignore", "rollback", "into", "from", "only",
    ];
    let mut rest = code[1..]
        .iter()
        .skip_while(|token| is_one_of(token, &skipped));
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
