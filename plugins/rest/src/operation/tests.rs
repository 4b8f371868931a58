//! What an operation sends and answers where its values are odd.

use weir_plugin_sdk::serde_json::{Value, json};
use weir_plugin_sdk::testing::http;

use crate::tests::{gone, gone_text};

/// An operation whose parameters have styles of a query, and one of a header.
fn styled() -> Value {
    json!({"method": "GET", "path": "/x", "effect": "read", "params": {
        "spaced": {"type": "json", "in": "query", "style": "spaceDelimited"},
        "piped": {"type": "json", "in": "query", "style": "pipeDelimited", "explode": false},
        "each": {"type": "json", "in": "query", "style": "pipeDelimited", "explode": true},
        "head": {"type": "json", "in": "header", "as": "x-list", "style": "simple"}}})
}

#[test]
fn nulls_of_lists_are_not_sent_as_texts() {
    let params =
        json!({"spaced": ["a", null, "b"], "piped": {"x": 1, "y": null}, "head": [1, null]});
    gone(styled(), params, "{}", "").expect("it is sent");
    let sent = &http::sent()[0];
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(sent.query, [pair("piped", "x|1"), pair("spaced", "a b")]);
    assert!(sent.headers.contains(&pair("x-list", "1")));
    for empty in [
        json!({"head": []}),
        json!({"head": [null], "piped": [null]}),
    ] {
        gone(styled(), empty, "{}", "").expect("it is sent");
        let sent = &http::sent()[0];
        assert!(sent.query.is_empty());
        assert!(sent.headers.iter().all(|(name, _)| name != "x-list"));
    }
}

/// HTTP takes blanks around the value of a header, and around commas in it, as nothing.
#[test]
fn a_blank_that_a_header_would_lose_is_refused() {
    let operation = json!({"method": "GET", "path": "/x", "effect": "read", "params": {
        "plain": {"type": "string", "in": "header", "as": "x-plain"},
        "list": {"type": "json", "in": "header", "as": "x-list", "style": "simple"},
        "query": {"type": "string", "in": "query"}}});
    for (params, name) in [
        (json!({"plain": " a"}), "plain"),
        (json!({"plain": "a "}), "plain"),
        (json!({"plain": " "}), "plain"),
        (json!({"list": ["a", "b ", "c"]}), "list"),
        (json!({"list": {"a": " b"}}), "list"),
    ] {
        let refused = gone(operation.clone(), params, "{}", "").expect_err("a blank is lost");
        assert_eq!(refused.code, "invalid");
        assert_eq!(refused.field.as_deref(), Some(name));
        assert!(refused.message.contains("blank"), "{}", refused.message);
    }
    let kept = json!({"plain": "a b", "list": ["a b", "c"], "query": " a "});
    gone(operation, kept, "{}", "").expect("it is sent");
    let sent = &http::sent()[0];
    assert_eq!(sent.query, [("query".to_owned(), " a ".to_owned())]);
    let plain = ("x-plain".to_owned(), "a b".to_owned());
    assert!(sent.headers.contains(&plain));
}

/// An agent repairs the argument that the error names.
#[test]
fn a_value_that_no_path_can_hold_is_refused_by_its_argument() {
    let operation = json!({"path": "/x/{id}/{part-no}", "params": {
        "id": {"type": "string", "required": true, "in": "path"},
        "part": {"type": "string", "required": true, "in": "path", "as": "part-no"}}});
    for (part, said) in [
        ("", "empty"),
        ("..", "step"),
        ("a/../b", "step"),
        ("a\nb", "line"),
    ] {
        let params = json!({"id": "1", "part": part});
        let refused = gone(operation.clone(), params, "{}", "").expect_err("no path");
        assert_eq!(
            (refused.code.as_str(), refused.field.as_deref()),
            ("invalid", Some("part"))
        );
        assert!(refused.message.contains(said), "{}", refused.message);
    }
    gone(operation, json!({"id": "1", "part": "a/b"}), "{}", "").expect("it is sent");
    assert_eq!(http::sent()[0].path, "/x/1/a%2Fb");
}

/// Media types have no case, and `text/json` is JSON.
#[test]
fn a_body_is_of_its_media_type_in_any_spelling() {
    for (media, body) in [
        ("text/json", r#"{"a":"x y"}"#),
        ("Application/JSON; charset=utf-8", r#"{"a":"x y"}"#),
        ("Application/X-WWW-Form-Urlencoded", "a=x%20y"),
    ] {
        let params = json!({"a": {"type": "string"}});
        let operation = json!({"path": "/x", "content_type": media, "params": params});
        gone(operation, json!({"a": "x y"}), "{}", "").expect("it is sent");
        let sent = &http::sent()[0];
        assert_eq!(sent.body.as_deref(), Some(body.as_bytes()));
        let header = ("content-type".to_owned(), media.to_owned());
        assert!(sent.headers.contains(&header));
    }
}

/// OpenAPI may describe a parameter by the content of JSON, in which a text has its quotes.
#[test]
fn a_parameter_of_json_is_json() {
    let written = |place: &str| json!({"type": "json", "in": place, "style": "json"});
    let operation = json!({"path": "/x/{p}", "content_type": "application/x-www-form-urlencoded", "params": {
        "p": written("path"), "q": written("query"), "x-h": written("header"), "b": written("body")}});
    for (value, plain, encoded) in [
        (json!("a b"), "\"a b\"", "%22a%20b%22"),
        (json!(["a", 1]), "[\"a\",1]", "%5B%22a%22%2C1%5D"),
        (json!(7), "7", "7"),
    ] {
        let params = json!({"p": value, "q": value, "x-h": value, "b": value});
        gone(operation.clone(), params, "{}", "").expect("it is sent");
        let sent = &http::sent()[0];
        let pair = |name: &str| (name.to_owned(), plain.to_owned());
        assert_eq!(sent.path, format!("/x/{encoded}"));
        assert_eq!(sent.query, [pair("q")]);
        assert!(sent.headers.contains(&pair("x-h")), "{:?}", sent.headers);
        assert_eq!(sent.body, Some(format!("b={encoded}").into_bytes()));
    }
}

/// A service would read two values where there is one.
#[test]
fn a_value_that_holds_the_separator_is_refused() {
    for (params, name) in [
        (json!({"spaced": ["New York", "Rome"]}), "spaced"),
        (json!({"piped": ["a|b"]}), "piped"),
        (json!({"piped": {"a|b": 1}}), "piped"),
        (json!({"head": ["a,b", "c"]}), "head"),
    ] {
        let refused = gone(styled(), params, "{}", "").expect_err("two values");
        assert_eq!(refused.code, "invalid");
        assert!(refused.message.contains(name), "{}", refused.message);
    }
    let held = json!({"spaced": ["a|b"], "piped": ["a b,c"], "each": ["a|b"], "head": ["a b|c"]});
    gone(styled(), held, "{}", "").expect("it is sent");
    assert_eq!(http::sent()[0].query.len(), 3);
}

/// What is odd about an answer goes to the gateway, which passes on the rest and says what it does not.
#[test]
fn an_odd_answer_is_passed_to_the_gateway() {
    let settings = json!({"path": "/x", "returns": {"deep": {"type": "json", "nullable": true}, "id": "integer", "name": "string"}});
    for (body, expected) in [
        (r#"[{"id":1}]"#, r#"[{"id":1}]"#),
        (r#""done""#, r#""done""#),
        (r#"{"x":[1.50]}"#, r#"{"x":[1.50]}"#),
        ("{}", r#"{"deep":null,"id":null,"name":null}"#),
        ("null", r#"{"deep":null,"id":null,"name":null}"#),
        ("", r#"{"deep":null,"id":null,"name":null}"#),
        (
            r#"{"id":1,"name":"a","id":2}"#,
            r#"{"deep":null,"id":1,"name":"a","id":1}"#,
        ),
        (
            r#"{"id":1,"\ud800":2,"name":"a"}"#,
            r#"{"deep":null,"id":1,"name":"a"}"#,
        ),
        (
            r#"{"id":NaN,"name":"NaN","deep":[-Infinity]}"#,
            r#"{"deep":[-1e400],"id":-1e400,"name":"NaN"}"#,
        ),
    ] {
        let done = gone_text(settings.clone(), json!({}), body, "").expect("an answer");
        assert_eq!(done, expected);
    }
    let whole = json!({"path": "/x", "returns": {"all": {"type": "json", "at": ""}}});
    assert_eq!(
        gone(whole, json!({}), "[1]", "").expect("an answer"),
        json!({"all": [1]})
    );
    gone(settings, json!({}), "<html>", "").expect_err("no JSON");
}

/// An operation with pages, whose positions have the types that documents give them.
fn paged(pagination: &Value) -> Value {
    json!({"method": "GET", "path": "/x", "effect": "read", "pagination": pagination, "records": "/items",
        "params": {
            "page": {"type": "string", "in": "query"},
            "number": {"type": "integer", "in": "query"},
            "cursor": {"type": "string", "in": "query"},
            "tags": {"type": "json", "in": "query", "as": "tag", "style": "form"},
            "ids": {"type": "json", "in": "query", "style": "form"}}})
}

fn next_arguments(pagination: &Value, params: Value, body: &'static str) -> Value {
    gone(paged(pagination), params, body, "").expect("an answer")["next_arguments"].clone()
}

/// An answer is read as far as it goes, and so is what it says of the next page.
#[test]
fn an_odd_answer_leads_to_the_next_page() {
    let by_cursor = json!({"style": "cursor", "cursor": "cursor", "next": "/next"});
    let by_page = json!({"style": "page", "page": "number"});
    let odd = r#"{"items":[{"price":NaN}],"next":"abc"}"#;
    assert_eq!(
        next_arguments(&by_cursor, json!({}), odd),
        json!({"cursor": "abc"})
    );
    assert_eq!(
        next_arguments(&by_page, json!({}), odd),
        json!({"number": 2})
    );
}

/// What leads to the next page is an argument of the type that the parameter has.
#[test]
fn a_position_that_is_a_text_leads_to_the_next_page() {
    let by_page = json!({"style": "page", "page": "page"});
    let by_cursor = json!({"style": "cursor", "cursor": "cursor", "next": "/next"});
    let page = r#"{"items":[1],"next":9007199254740993}"#;
    for (pagination, params, expected) in [
        (&by_page, json!({}), json!({"page": "2"})),
        (&by_page, json!({"page": "2"}), json!({"page": "3"})),
        (&by_cursor, json!({}), json!({"cursor": "9007199254740993"})),
    ] {
        assert_eq!(next_arguments(pagination, params, page), expected);
    }
}

/// A link repeats what was asked for: a list is all of its values.
#[test]
fn a_list_in_a_link_is_a_list() {
    let linked = |params: Value, link: &'static str| {
        let paged = paged(&json!({"style": "link"}));
        gone(paged, params, "[]", link).expect("an answer")["next_arguments"].clone()
    };
    let next = "</x?tag=a&tag=2&ids=1&number=2>; rel=next";
    for (params, expected) in [
        (
            json!({"tags": ["a", "2"], "ids": [1]}),
            json!({"number": 2}),
        ),
        (
            json!({"tags": ["2"], "ids": [7, 8]}),
            json!({"tags": ["a", "2"], "ids": [1], "number": 2}),
        ),
        (json!({"ids": [1]}), json!({"tags": ["a", 2], "number": 2})),
    ] {
        assert_eq!(linked(params, next), expected);
    }
}
