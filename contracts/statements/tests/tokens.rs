//! Checks the places where statements are cut, and that no text is lost.

use proptest::prelude::*;
use weir_statements::{SqlSyntax, TokenKind, tokens};

const ALL: [SqlSyntax; 3] = [SqlSyntax::Sqlite, SqlSyntax::Postgresql, SqlSyntax::Mysql];

/// Returns the parameters and placeholders of a statement.
fn places(text: &str, syntax: SqlSyntax) -> Vec<&str> {
    let found = tokens(text, syntax).unwrap_or_else(|error| panic!("{text}: {error}"));
    let meant = |kind| matches!(kind, TokenKind::Parameter | TokenKind::Placeholder);
    let places = found.iter().filter(|token| meant(token.kind));
    places.map(|token| token.text).collect()
}

#[test]
fn parameters_are_found_in_code_alone() {
    for (text, expected) in [
        ("a = :x AND b=:y", &[":x", ":y"][..]),
        ("a::text = :x::int", &[":x"]),
        ("':x' || \":x\" -- :x\n|| :y", &[":y"]),
        ("'it''s :x' || :y", &[":y"]),
        ("/* :x */ :y /* ' */", &[":y"]),
        ("a := 1, b :x", &[":x"]),
        ("(:x)", &[":x"]),
        (":größe", &[":größe"]),
        ("a:::x", &[":x"]),
        ("x-:y", &[":y"]),
        ("1:x", &[":x"]),
        (": x", &[]),
        (":", &[]),
        ("", &[]),
    ] {
        for syntax in ALL {
            assert_eq!(places(text, syntax), expected, "{text} {syntax:?}");
        }
    }
}

#[test]
fn each_database_has_quotes_comments_and_placeholders_of_its_own() {
    use SqlSyntax::{Mysql, Postgresql, Sqlite};
    for (text, syntax, expected) in [
        ("E'\\':x' :y", Postgresql, &[":y"][..]),
        ("e'\\\\' :y", Postgresql, &[":y"]),
        ("'\\' :y", Postgresql, &[":y"]),
        ("'\\' :y", Sqlite, &[":y"]),
        ("'\\' :y", Mysql, &[":y"]),
        ("\"\\\" :y", Mysql, &[":y"]),
        ("type E '\\' :y", Postgresql, &[":y"]),
        ("$$ :x ' $$ :y", Postgresql, &[":y"]),
        ("$a$ $$ :x $b$ $a$ :y", Postgresql, &[":y"]),
        ("a$$b :y", Postgresql, &[":y"]),
        ("/* /* */ :x */ :y", Postgresql, &[":y"]),
        ("/* /* */ :x", Sqlite, &[":x"]),
        ("[a :x] :y", Sqlite, &[":y"]),
        ("a[1 :x]", Postgresql, &[":x"]),
        ("`:x` :y", Sqlite, &[":y"]),
        ("`:x` :y", Mysql, &[":y"]),
        ("# :x\n :y", Mysql, &[":y"]),
        ("a #- :y", Postgresql, &[":y"]),
        ("1--:x", Mysql, &[":x"]),
        ("1-- :x", Mysql, &[]),
        ("? ?2 $3 @a :1", Sqlite, &["?", "?2", "$3", "@a", ":1"]),
        ("a ? 'b' $1 @> $2", Postgresql, &["$1", "$2"]),
        ("? ? @a", Mysql, &["?", "?"]),
    ] {
        assert_eq!(places(text, syntax), expected, "{text} {syntax:?}");
    }
}

#[test]
fn what_does_not_end_is_named_with_its_line() {
    for (text, syntax, expected) in [
        (
            "a\n 'b",
            SqlSyntax::Sqlite,
            "the text in quotes that begins in line 2 does not end",
        ),
        (
            "\"b",
            SqlSyntax::Sqlite,
            "the name in quotes that begins in line 1 does not end",
        ),
        (
            "[b",
            SqlSyntax::Sqlite,
            "the name in brackets that begins in line 1 does not end",
        ),
        (
            "/* /* */",
            SqlSyntax::Postgresql,
            "the comment that begins in line 1 does not end",
        ),
        (
            "$a$ $b$",
            SqlSyntax::Postgresql,
            "the text between dollar signs that begins in line 1 does not end",
        ),
        (
            "E'\\'",
            SqlSyntax::Postgresql,
            "the text in quotes that begins in line 1 does not end",
        ),
    ] {
        let error = tokens(text, syntax).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #[test]
    fn the_tokens_are_the_text(text in r#"([a-zé:$'"/*\-\\\[\]?@#`. \n0-9]|::|\$\$|/\*|\*/|--|E'|:x){0,60}"#) {
        for syntax in ALL {
            if let Ok(found) = tokens(&text, syntax) {
                let joined: String = found.iter().map(|token| token.text).collect();
                prop_assert_eq!(&joined, &text);
                prop_assert!(found.iter().all(|token| !token.text.is_empty()));
            }
        }
    }

    #[test]
    fn quoted_text_is_one_token(inside in r"[^'\\]{0,40}") {
        for syntax in ALL {
            let text = format!("a '{inside}' :x");
            let found = tokens(&text, syntax).expect("it ends");
            prop_assert_eq!(found[2].kind, TokenKind::Quoted);
            prop_assert_eq!(found.last().map(|token| token.text), Some(":x"));
        }
    }
}
