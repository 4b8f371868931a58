//! Words that a statement may not contain. The transaction's mode protects the data; this protects the files of the server,
//! the session, which calls share, and other sessions.
//!
//! Sessions have `NO_BACKSLASH_ESCAPES`, so that a text ends at its next quote, doubled ones aside.

use super::super::{StatementAccess, refused};
use crate::ConnectionError;

/// Functions that read files, or take locks that outlive a transaction.
const FUNCTIONS: [&str; 2] = ["LOAD_FILE", "GET_LOCK"];

/// Allows one statement that looks at or changes rows. Comments that a server runs, variables and `INTO` in a read are
/// refused, too.
pub(super) fn check(text: &str, access: StatementAccess) -> Result<(), ConnectionError> {
    let verbs: &[&str] = match access {
        StatementAccess::Read => &["SELECT", "WITH", "VALUES", "TABLE"],
        StatementAccess::Write => &["INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"],
    };
    let mut tokens = SqlTokens { rest: text };
    let mut last = String::new();
    let mut is_first = true;
    while let Some(token) = tokens.next()? {
        let word = token.word();
        let is_refused = match &token {
            _ if is_first => token.is_quoted() || !verbs.contains(&word.as_str()),
            MysqlToken::Sign('@') => true,
            MysqlToken::Sign('=') => last == ":",
            MysqlToken::Sign('(') => FUNCTIONS.contains(&last.as_str()),
            MysqlToken::Name(_) if access == StatementAccess::Read => is_into(&word),
            MysqlToken::Name(_) => is_into(&last) && (word == "OUTFILE" || word == "DUMPFILE"),
            _ => false,
        };
        if is_refused {
            return Err(refused::denied());
        }
        is_first = false;
        last = word;
    }
    match is_first {
        true => Err(refused::denied()),
        false => Ok(()),
    }
}

/// Returns `true` for `INTO`, also directly after a number: a server reads `1.5INTO` as two words.
fn is_into(word: &str) -> bool {
    word.strip_suffix("INTO").is_some_and(|number| {
        number.is_empty() || number.ends_with(|end: char| end.is_ascii_digit())
    })
}

enum MysqlToken<'a> {
    Name(&'a str),
    /// A name in quotes, without them.
    QuotedName(&'a str),
    Text,
    Sign(char),
}

impl MysqlToken<'_> {
    fn word(&self) -> String {
        match self {
            Self::Name(name) | Self::QuotedName(name) => name.to_ascii_uppercase(),
            Self::Text => String::new(),
            Self::Sign(sign) => sign.to_string(),
        }
    }

    fn is_quoted(&self) -> bool {
        matches!(self, Self::QuotedName(_))
    }
}

struct SqlTokens<'a> {
    rest: &'a str,
}

impl<'a> SqlTokens<'a> {
    fn next(&mut self) -> Result<Option<MysqlToken<'a>>, ConnectionError> {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(comment) = self.rest.strip_prefix("/*") {
                // The server runs the text of such a comment, or takes it for a setting.
                if ["!", "+", "M!"].iter().any(|run| comment.starts_with(run)) {
                    return Err(refused::denied());
                }
                self.rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else if self.rest.starts_with('#') || is_dashed(self.rest) {
                self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
            } else {
                break;
            }
        }
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        let token = match first {
            '\'' => self.quoted(first).map(|_| MysqlToken::Text)?,
            '"' | '`' => self.quoted(first).map(MysqlToken::QuotedName)?,
            _ if is_of_name(first) => {
                let end = self.rest.find(|char| !is_of_name(char));
                let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                MysqlToken::Name(name)
            }
            _ => {
                self.rest = &self.rest[first.len_utf8()..];
                MysqlToken::Sign(first)
            }
        };
        Ok(Some(token))
    }

    /// Skips a quoted text, and returns it up to the first quote.
    fn quoted(&mut self, quote: char) -> Result<&'a str, ConnectionError> {
        let inside = &self.rest[quote.len_utf8()..];
        let mut chars = inside.char_indices().peekable();
        let mut end = None;
        while let Some((at, char)) = chars.next() {
            if char != quote {
                continue;
            }
            match chars.peek() {
                Some((_, next)) if *next == quote => {
                    chars.next();
                }
                _ => {
                    end = Some(at);
                    break;
                }
            }
        }
        let end = end.ok_or_else(refused::statement)?;
        self.rest = &inside[end + quote.len_utf8()..];
        Ok(&inside[..end])
    }
}

/// Two dashes begin a comment where a blank or a control character follows.
fn is_dashed(text: &str) -> bool {
    text.strip_prefix("--").is_some_and(|rest| {
        rest.chars()
            .next()
            .is_none_or(|next| next.is_ascii_whitespace() || next.is_ascii_control())
    })
}

fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '$') || !char.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_reach_beyond_rows_are_refused() {
        for text in [
            "SELECT id FROM t",
            "select 'INTO OUTFILE', \"into\", `@a`, 'it''s' -- @a := 1\n FROM t # GET_LOCK(",
            "WITH a AS (SELECT 1) SELECT * FROM a /* INTO @b */",
            "SELECT load_file FROM t /*Mine*/",
            "SELECT 1 -1 AS a",
            "TABLE t",
        ] {
            assert!(check(text, StatementAccess::Read).is_ok(), "{text}");
        }
        for text in [
            "",
            "-- only a comment",
            "(SELECT 1)",
            "SET autocommit = 0",
            "SELECT * FROM t INTO OUTFILE '/tmp/x'",
            "SELECT * INTO/**/DUMPFILE '/tmp/x' FROM t",
            "SELECT 1.5INTO OUTFILE '/tmp/x'",
            "SELECT 1e1INTO OUTFILE '/tmp/x'",
            "SELECT .5into dumpfile '/tmp/x'",
            "SELECT 1 INTO @a",
            "SELECT @a := 1",
            "SELECT @@version",
            "SELECT LOAD_FILE('/etc/passwd')",
            "SELECT load_file /* */ ('/etc/passwd')",
            "SELECT `load_file`('/etc/passwd')",
            "SELECT \"GET_LOCK\" ('a', 1)",
            "SELECT /*! 1 INTO OUTFILE '/tmp/x' */ FROM t",
            "SELECT /*M!100000 1 */",
            "SELECT /*+ SET_VAR(max_execution_time = 0) */ 1",
            "SELECT 'a\\' INTO OUTFILE '/tmp/x' -- '",
            "SELECT 'never closed",
            "DELETE FROM t",
            "`SELECT` 1",
        ] {
            assert!(check(text, StatementAccess::Read).is_err(), "{text}");
        }
        for text in [
            "INSERT INTO t VALUES (1)",
            "REPLACE INTO t VALUES (1)",
            "UPDATE t SET a = 'INTO OUTFILE'",
            "INSERT INTO \"outfile\" VALUES (1)",
        ] {
            assert!(check(text, StatementAccess::Write).is_ok(), "{text}");
        }
        for text in [
            "SELECT 1",
            "DROP TABLE t",
            "COMMIT",
            "LOAD DATA INFILE '/x' INTO TABLE t",
            "CALL x()",
            "INSERT INTO t SELECT LOAD_FILE('/x')",
            "INSERT INTO t SELECT * FROM u INTO OUTFILE '/x'",
            "WITH a AS (SELECT 1) SELECT 1.5INTO OUTFILE '/x'",
            "UPDATE t SET a = @a := 1",
        ] {
            assert!(check(text, StatementAccess::Write).is_err(), "{text}");
        }
    }
}
