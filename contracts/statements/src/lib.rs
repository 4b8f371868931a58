//! Cuts the text of a statement into tokens, so that a parameter is found in code and not in a text, a name or a comment.
//! Each byte is read a bounded number of times. The meaning of a token is left to the database. Statements that change rows are
//! checked in [`write`], only by their words.

pub mod write;

use std::fmt;

/// The rules of a database for texts, names, comments and placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlSyntax {
    Sqlite,
    Postgresql,
    /// MySQL and MariaDB in the modes `ANSI_QUOTES` and `NO_BACKSLASH_ESCAPES`, which a connection sets.
    Mysql,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Blanks and line ends.
    Space,
    Comment,
    /// A text or a name in quotes, or a text between dollar signs.
    Quoted,
    /// A key word or a name.
    Word,
    Number,
    /// `:name`; its text has the colon.
    Parameter,
    /// A native placeholder of the database: `?`, `?1`, `$1`, `@name`.
    Placeholder,
    /// One character of anything else, or `::`.
    Symbol,
}

/// A part of a statement. The tokens of a statement together are its whole text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementToken<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    /// The place of its first byte in the statement.
    pub at: usize,
}

impl StatementToken<'_> {
    /// Returns `true` for a token that the database takes for a key word or a name.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Returns `true` for this symbol, one character or `::`.
    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }

    /// Returns `false` for spaces and comments.
    pub fn is_code(&self) -> bool {
        !matches!(self.kind, TokenKind::Space | TokenKind::Comment)
    }
}

/// A text, a name or a comment that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnclosedText {
    pub line: usize,
    what: &'static str,
}

impl fmt::Display for UnclosedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the {} that begins in line {} does not end",
            self.what, self.line
        )
    }
}

impl std::error::Error for UnclosedText {}

/// Cuts a statement into tokens.
pub fn tokens(statement: &str, syntax: SqlSyntax) -> Result<Vec<StatementToken<'_>>, UnclosedText> {
    let lexer = StatementLexer {
        text: statement,
        bytes: statement.as_bytes(),
        syntax,
    };
    let mut tokens: Vec<StatementToken<'_>> = Vec::new();
    let mut at = 0;
    while at < statement.len() {
        let escapes = tokens
            .last()
            .is_some_and(|last| syntax == SqlSyntax::Postgresql && last.is_word("e"));
        let (kind, end) = lexer.token(at, escapes).map_err(|what| UnclosedText {
            line: 1 + statement[..at].matches('\n').count(),
            what,
        })?;
        tokens.push(StatementToken {
            kind,
            text: &statement[at..end],
            at,
        });
        at = end;
    }
    Ok(tokens)
}

struct StatementLexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    syntax: SqlSyntax,
}

impl StatementLexer<'_> {
    /// Returns the kind and the end of the token at a place. `escapes` means that a text in quotes has backslashes in
    /// front of its special characters.
    fn token(&self, at: usize, escapes: bool) -> Result<(TokenKind, usize), &'static str> {
        use SqlSyntax::{Mysql, Postgresql, Sqlite};
        let syntax = self.syntax;
        let byte = self.bytes[at];
        let next = self.byte(at + 1);
        match byte {
            _ if byte.is_ascii_whitespace() => {
                let end = self.end_of(at, |byte| byte.is_ascii_whitespace());
                Ok((TokenKind::Space, end))
            }
            b'-' if next == b'-' && (syntax != Mysql || self.byte(at + 2) <= b' ') => {
                Ok((TokenKind::Comment, self.end_of_line(at)))
            }
            b'#' if syntax == Mysql => Ok((TokenKind::Comment, self.end_of_line(at))),
            b'/' if next == b'*' => Ok((TokenKind::Comment, self.end_of_comment(at)?)),
            b'\'' => {
                let end = self.end_of_quoted(at, escapes);
                Ok((TokenKind::Quoted, end.ok_or("text in quotes")?))
            }
            b'"' => {
                let end = self.end_of_quoted(at, false);
                Ok((TokenKind::Quoted, end.ok_or("name in quotes")?))
            }
            b'`' if syntax != Postgresql => {
                let end = self.end_of_quoted(at, false);
                Ok((TokenKind::Quoted, end.ok_or("name in quotes")?))
            }
            b'[' if syntax == Sqlite => {
                let end = self.text[at..].find(']').map(|length| at + length + 1);
                Ok((TokenKind::Quoted, end.ok_or("name in brackets")?))
            }
            b'$' if syntax == Postgresql => self.dollar(at),
            b'?' if syntax != Postgresql => {
                let end = self.end_of(at + 1, |byte| byte.is_ascii_digit());
                Ok((TokenKind::Placeholder, end))
            }
            b'$' | b'@' if syntax == Sqlite && is_of_word(next) => {
                let end = self.end_of(at + 1, is_of_word);
                Ok((TokenKind::Placeholder, end))
            }
            b':' if next == b':' => Ok((TokenKind::Symbol, at + 2)),
            b':' if is_of_word(next) && !next.is_ascii_digit() => {
                Ok((TokenKind::Parameter, self.end_of(at + 1, is_of_word)))
            }
            b':' if syntax == Sqlite && next.is_ascii_digit() => {
                Ok((TokenKind::Placeholder, self.end_of(at + 1, is_of_word)))
            }
            _ if byte.is_ascii_digit() => {
                let end = self.end_of(at, |byte| is_of_word(byte) || byte == b'.');
                Ok((TokenKind::Number, end))
            }
            _ if is_of_word(byte) => {
                let end = self.end_of(at, |byte| is_of_word(byte) || byte == b'$');
                Ok((TokenKind::Word, end))
            }
            _ => Ok((TokenKind::Symbol, at + 1)),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or_default()
    }

    /// Returns the place of the first byte from `at` on that is not meant.
    fn end_of(&self, at: usize, is_meant: impl Fn(u8) -> bool) -> usize {
        let length = self.bytes[at..].iter().take_while(|byte| is_meant(**byte));
        at + length.count()
    }

    fn end_of_line(&self, at: usize) -> usize {
        self.end_of(at, |byte| byte != b'\n')
    }

    fn end_of_comment(&self, at: usize) -> Result<usize, &'static str> {
        let mut depth = 0;
        let mut at = at;
        while at < self.bytes.len() {
            match (self.bytes[at], self.byte(at + 1)) {
                (b'/', b'*') if depth == 0 || self.syntax == SqlSyntax::Postgresql => {
                    depth += 1;
                    at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        return Ok(at);
                    }
                }
                _ => at += 1,
            }
        }
        Err("comment")
    }

    /// Returns the end of what begins with a quote; a doubled quote means one inside.
    fn end_of_quoted(&self, start: usize, escapes: bool) -> Option<usize> {
        let quote = self.bytes[start];
        let mut at = start + 1;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'\\' if escapes => at += 2,
                byte if byte == quote && self.byte(at + 1) == quote => at += 2,
                byte if byte == quote => return Some(at + 1),
                _ => at += 1,
            }
        }
        None
    }

    /// Reads `$1`, or a text between two times `$tag$`.
    fn dollar(&self, at: usize) -> Result<(TokenKind, usize), &'static str> {
        if self.byte(at + 1).is_ascii_digit() {
            let end = self.end_of(at + 1, |byte| byte.is_ascii_digit());
            return Ok((TokenKind::Placeholder, end));
        }
        let tag = self.end_of(at + 1, is_of_word);
        if self.byte(tag) != b'$' {
            return Ok((TokenKind::Symbol, at + 1));
        }
        let (mark, rest) = (&self.text[at..=tag], &self.text[tag + 1..]);
        let length = rest.find(mark).ok_or("text between dollar signs")?;
        Ok((TokenKind::Quoted, tag + 1 + length + mark.len()))
    }
}

/// Returns `true` for bytes of names: every one beyond ASCII is.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
