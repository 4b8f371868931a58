//! The adapter against a small service, faked in memory: it answers as `json-server` does.

use std::cell::RefCell;
use std::rc::Rc;

use weir_plugin_sdk::http::Request;
use weir_plugin_sdk::serde_json::{Map, Value, json};
use weir_plugin_sdk::testing::{self, http};
use weir_plugin_sdk::{
    Adapter, Change, Comparison, Condition, Error, Order, Query, Shape, Type, Verb,
};

use crate::RestAdapter;

const POSTS: &str = r#"{"connection":"blog","sample":true,"list":{"path":"/posts"},"get":{"path":"/posts/{id}"},
    "create":{"path":"/posts"},"update":{"path":"/posts/{id}"},"delete":{"path":"/posts/{id}"}}"#;

pub(crate) type Store = Rc<RefCell<Vec<Map<String, Value>>>>;

/// Serves `/posts`, whole or in pages of `_page` and `_limit`, with Link headers.
pub(crate) fn service(records: Value) -> Store {
    testing::reset();
    let store: Store = Rc::new(RefCell::new(
        records
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record.as_object().unwrap().clone())
            .collect(),
    ));
    let inside = store.clone();
    http::answer(move |request| Ok(answer(&inside, request)));
    store
}

fn answer(store: &Store, request: &Request) -> weir_plugin_sdk::http::Response {
    let mut store = store.borrow_mut();
    let body = || -> Map<String, Value> {
        weir_plugin_sdk::serde_json::from_slice(request.body.as_deref().unwrap()).unwrap()
    };
    let id = request.path.strip_prefix("/posts/").map(str::to_owned);
    let found = id.as_ref().and_then(|id| {
        store
            .iter()
            .position(|record| record["id"].to_string().trim_matches('"') == id)
    });
    match (request.method.as_str(), id, found) {
        ("GET", None, _) => {
            let get = |name: &str| {
                request
                    .query
                    .iter()
                    .find(|(given, _)| given == name)
                    .and_then(|(_, value)| value.parse::<usize>().ok())
            };
            let (page, limit) = (
                get("_page").unwrap_or(1),
                get("_limit").unwrap_or(usize::MAX / 2),
            );
            let records: Vec<_> = store
                .iter()
                .skip((page - 1) * limit)
                .take(limit)
                .cloned()
                .collect();
            let mut response = http::json(200, &json!(records).to_string());
            if page * limit < store.len() {
                let address = format!(
                    "http://elsewhere/posts?fields=id,title&_page={}&_limit={limit}",
                    page + 1
                );
                let next = format!("<{address}>; rel=\"next\"");
                response.headers.push((
                    "Link".into(),
                    format!("<http://elsewhere/posts?_page=1>; rel=\"first\", {next}"),
                ));
            }
            response
        }
        ("GET", Some(_), Some(at)) => http::json(200, &json!(store[at]).to_string()),
        ("POST", None, _) => {
            store.push(body());
            http::json(201, &json!(store.last()).to_string())
        }
        ("PATCH", Some(_), Some(at)) => {
            store[at].extend(body());
            http::json(200, &json!(store[at]).to_string())
        }
        ("DELETE", Some(_), Some(at)) => {
            store.remove(at);
            http::json(200, "{}")
        }
        _ => http::json(404, "{}"),
    }
}

pub(crate) fn posts(count: u32) -> Value {
    (1..=count)
        .map(|id| json!({"id": id, "title": format!("t{}", id % 3), "at": "2024-05-06T07:08:09Z"}))
        .collect()
}

pub(crate) fn open(settings: &str) -> RestAdapter {
    RestAdapter::open(settings, &RestAdapter::describe(settings).unwrap()).unwrap()
}

/// Returns a query for so many records of a list.
pub(crate) fn limited(limit: u32) -> Query {
    Query {
        limit,
        ..Query::default()
    }
}

pub(crate) fn walk(rest: &RestAdapter, query: Query, between: impl FnMut()) -> Vec<Value> {
    try_walk(rest, query, between).unwrap()
}

pub(crate) fn try_walk(
    rest: &RestAdapter,
    mut query: Query,
    mut between: impl FnMut(),
) -> Result<Vec<Value>, Error> {
    let mut walked = Vec::new();
    loop {
        let page = rest.read(&query)?;
        walked.extend(weir_plugin_sdk::serde_json::from_str::<Vec<Value>>(&page.records).unwrap());
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(walked),
        }
        between();
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn write(rest: &RestAdapter, verb: Verb, key: Value, record: Value) -> Result<Value, Error> {
    let change = Change {
        key: object(key),
        record: object(record),
        ..Change::new(verb)
    };
    rest.write(&change)
        .map(|json| weir_plugin_sdk::serde_json::from_str(&json).unwrap())
}

/// The service is not even asked.
#[test]
fn changes_cannot_be_held_to_conditions() {
    service(json!([{"id": 1, "name": "a"}]));
    assert!(
        !RestAdapter::describe(POSTS)
            .unwrap()
            .capabilities
            .guarded_write
    );
    let conditions = vec![Condition::new("name", Comparison::Equals, "a")];
    for verb in [Verb::Update, Verb::Delete] {
        let change = Change {
            key: object(json!({"id": 1})),
            conditions: conditions.clone(),
            ..Change::new(verb)
        };
        assert!(open(POSTS).write(&change).unwrap_err().is("unsupported"));
    }
}

/// What is no record is named with its place, when a sample is taken and when records are read.
#[test]
fn what_is_no_record_is_named() {
    let served = |body: &str| {
        testing::reset();
        let body = body.to_owned();
        http::answer(move |_| Ok(http::json(200, &body)));
    };
    for (body, fault) in [
        (r#"[{"id":1,"v":1},null]"#, "record 2 of its page is null"),
        (
            r#"[{"id":1,"v":1},{"id":2,"v":1,"v":2}]"#,
            "record 2 of its page has the member \"v\" twice",
        ),
        (
            r#"[{"id":1,"v":1,"\ud800":2}]"#,
            "record 1 of its page has half a character",
        ),
    ] {
        served(r#"[{"id":1,"v":1}]"#);
        let rest = open(POSTS);
        served(body);
        for error in [
            rest.read(&limited(5)).unwrap_err(),
            RestAdapter::describe(POSTS).unwrap_err(),
        ] {
            assert!(error.message.contains(fault), "{body}: {error}");
        }
    }
    served(r#"[{"id":1,"v":{"n":[1E400]}}]"#);
    let error = RestAdapter::describe(POSTS).unwrap_err();
    let fault = "record 1 of its page holds a number that is out of range in its member \"v\"";
    assert!(error.message.contains(fault), "{error}");
    served(r#"[{"id":1},{"id":2,"v":"a\ud800"}]"#);
    let error = RestAdapter::describe(POSTS).unwrap_err();
    let fault =
        "record 2 of its page holds half a character (a lone surrogate) in its member \"v\"";
    assert!(error.message.contains(fault), "{error}");
}

/// A member that is read at another place than its own is held to the same rule.
#[test]
fn a_member_that_comes_twice_on_the_way_to_a_field_is_named() {
    testing::reset();
    let body = r#"[{"id":1,"author":{"name":"a","name":"b"}}]"#;
    http::answer(move |_| Ok(http::json(200, body)));
    let settings = r#"{"connection":"blog","list":{"path":"/posts"},
        "fields":{"id":"integer","by":{"type":"string","at":"/author/name"}}}"#;
    let error = open(settings).read(&Query::default()).unwrap_err();
    let fault = "record 1 of its page has the member \"name\" twice";
    assert!(error.message.contains(fault), "{error}");
}

/// A number that no double holds is null where it is read, and a member without a name is no column.
#[test]
fn a_sample_goes_on_over_odd_members() {
    testing::reset();
    let body = r#"[{"id":1,"":"x","v":1E400},{"id":2,"":"y","v":1.5}]"#;
    http::answer(move |_| Ok(http::json(200, body)));
    let shape = RestAdapter::describe(POSTS).unwrap();
    let keys: Vec<_> = shape.fields.iter().map(|field| &*field.key).collect();
    assert_eq!(keys, ["id", "v"]);
    assert!(
        shape.notes[0].contains("name is empty"),
        "{:?}",
        shape.notes
    );
    let page = open(POSTS).read(&limited(5));
    assert_eq!(
        page.unwrap().records,
        r#"[{"id":1,"v":null},{"id":2,"v":1.5}]"#
    );
}

#[test]
fn a_sample_becomes_a_shape() {
    service(json!([
        {"id": 1, "name": "a", "price": 1, "big": 9007199254740993_i64, "on": true, "day": "2024-01-02", "at": "2024-01-02T03:04:05Z", "tags": [1]},
        {"id": 2, "name": null, "price": 1.5, "big": 1, "on": false, "day": "2024-01-03", "at": "2024-01-02T03:04:05.5+01:00", "extra": "x"}
    ]));
    let shape = RestAdapter::describe(POSTS).unwrap();
    let described: Vec<_> = shape
        .fields
        .iter()
        .map(|field| (field.key.as_str(), field.kind, field.nullable))
        .collect();
    assert_eq!(
        described,
        [
            ("id", Type::Integer, false),
            ("name", Type::String, true),
            ("price", Type::Number, true),
            ("big", Type::Decimal, true),
            ("on", Type::Boolean, true),
            ("day", Type::Date, true),
            ("at", Type::Datetime, true),
            ("tags", Type::Json, true),
            ("extra", Type::String, true),
        ]
    );
    assert_eq!(
        (shape.key, shape.capabilities.write),
        (
            vec!["id".to_owned()],
            vec!["create".to_owned(), "update".into(), "delete".into()]
        )
    );
    let page = open(POSTS)
        .read(&Query {
            limit: 1,
            columns: vec!["big".into(), "extra".into()],
            ..Query::default()
        })
        .unwrap();
    assert_eq!(page.records, r#"[{"big":"9007199254740993","extra":null}]"#);
}

/// Records of equal order values are counted where no key tells them apart.
#[test]
fn a_list_without_a_key_is_walked_to_its_end() {
    let records: Value = (0..11)
        .map(|n| json!({"n": n, "status": format!("s{}", n / 4)}))
        .collect();
    let paginations = [
        r#"{"style":"none"}"#,
        r#"{"style":"page","page":"_page","size":"_limit","per_page":3}"#,
        r#"{"style":"link","size":"_limit","per_page":3}"#,
    ];
    for pagination in paginations {
        for sorted in ["[]", r#"["status"]"#] {
            let settings = format!(
                r#"{{"connection":"blog","fields":{{"n":"integer","status":"string"}},
                    "list":{{"path":"/posts","sorted_by":{sorted},"pagination":{pagination}}}}}"#
            );
            service(records.clone());
            let rest = open(&settings);
            assert!(rest.shape.key.is_empty());
            for limit in [1, 2, 3, 4, 5, 10, 11, 12] {
                let ns = |order: &[&str], but: &str| {
                    let order = order.iter().map(|by| Order::parse(by)).collect();
                    let conditions = vec![Condition::new("status", Comparison::NotEquals, but)];
                    let walked = walk(
                        &rest,
                        Query {
                            limit,
                            order,
                            conditions,
                            ..Query::default()
                        },
                        || {},
                    );
                    walked
                        .iter()
                        .map(|record| record["n"].as_i64().unwrap())
                        .collect::<Vec<_>>()
                };
                let described = format!("{pagination} {sorted} {limit}");
                assert_eq!(ns(&[], "none"), (0..11).collect::<Vec<_>>(), "{described}");
                assert_eq!(
                    ns(&["status"], "none"),
                    (0..11).collect::<Vec<_>>(),
                    "{described}"
                );
                assert_eq!(
                    ns(&["-status"], "none"),
                    [8, 9, 10, 4, 5, 6, 7, 0, 1, 2, 3],
                    "{described}"
                );
                assert_eq!(ns(&["status"], "s1"), [0, 1, 2, 3, 8, 9, 10], "{described}");
            }
            for cursor in [r#"["","[]"]"#, r#"["","[-1]"]"#, r#"["","[null]"]"#] {
                let query = Query {
                    limit: 1,
                    cursor: Some(cursor.into()),
                    ..Query::default()
                };
                assert_eq!(
                    rest.read(&query).unwrap_err().field.as_deref(),
                    Some("cursor"),
                    "{cursor}"
                );
            }
        }
    }
}

/// A PUT replaces the record, so what is not to change is sent as the service has it.
#[test]
fn a_replacement_changes_its_fields_and_not_a_digit_beside_them() {
    const HELD: &str = r#"{"id":1,"total":12345678901234567.89,"author":{"name":"A","email":"e"},"lines":[{"n":1.10},{"n":2}],"none":null}"#;
    let settings = r#"{"connection":"blog","fields":{"id":"integer","total":"decimal",
        "author":{"type":"string","at":"/author/name"},"second":{"type":"integer","at":"/lines/1/n"},
        "third":{"type":"integer","at":"/lines/2/n"},"deep":{"type":"string","at":"/none/deep/er"}},
        "get":{"path":"/posts/{id}"},"update":{"path":"/posts/{id}","method":"PUT"}}"#;
    testing::reset();
    let mut shape = RestAdapter::describe(settings).unwrap();
    shape.fields[1].native = Some("number".to_owned());
    let rest = RestAdapter::open(settings, &shape).unwrap();
    for (change, old, new) in [
        (json!({"author": "B"}), r#""A""#, r#""B""#),
        (json!({"total": "12345678901234567.91"}), "567.89", "567.91"),
        (json!({"second": 3}), r#"{"n":2}"#, r#"{"n":3}"#),
        (json!({"deep": "x"}), "null", r#"{"deep":{"er":"x"}}"#),
    ] {
        http::answer(|_| Ok(http::json(200, HELD)));
        write(&rest, Verb::Update, json!({"id": 1}), change).unwrap();
        let sent = http::sent().pop().unwrap();
        assert_eq!(sent.method, "PUT");
        assert_eq!(
            String::from_utf8(sent.body.unwrap()).unwrap(),
            HELD.replacen(old, new, 1)
        );
    }
    let refused = write(&rest, Verb::Update, json!({"id": 1}), json!({"third": 3})).unwrap_err();
    assert_eq!(
        (refused.code.as_str(), refused.field.as_deref()),
        ("invalid", Some("third"))
    );
    assert_eq!(http::sent().pop().unwrap().method, "GET", "nothing is sent");
}

/// Between the reading and the replacing another client may change the record.
#[test]
fn a_replacement_does_not_undo_a_change_of_somebody_else() {
    let settings = |update: &str| {
        format!(
            r#"{{"connection":"blog","fields":{{"id":"integer","title":"string"}},
            "get":{{"path":"/posts/{{id}}"}},"update":{{"path":"{update}","method":"PUT"}}}}"#
        )
    };
    let serve = |weakness: &'static str, is_changed_meanwhile: bool| {
        let versions = Rc::new(RefCell::new(1));
        testing::reset();
        http::answer(move |request| {
            let mut version = versions.borrow_mut();
            let matches = request
                .headers
                .iter()
                .find(|(name, _)| name == "if-match")
                .map(|(_, tag)| tag.clone());
            let tag = format!("{weakness}\"v{version}\"");
            if matches.is_some_and(|wanted| wanted != tag) {
                return Ok(http::json(412, "{}"));
            }
            let mut response = http::json(200, r#"{"id":1,"title":"a","note":"theirs"}"#);
            response.headers.push(("ETag".into(), tag));
            *version += i32::from(is_changed_meanwhile || request.method == "PUT");
            Ok(response)
        });
    };
    let change = |settings: &str| {
        write(
            &open(settings),
            Verb::Update,
            json!({"id": 1}),
            json!({"title": "b"}),
        )
    };
    let tag_sent = || {
        let put = http::sent()
            .into_iter()
            .find(|request| request.method == "PUT")
            .unwrap();
        put.headers
            .into_iter()
            .find(|(name, _)| name == "if-match")
            .map(|(_, tag)| tag)
    };
    let same = settings("/posts/{id}");
    serve("", false);
    change(&same).unwrap();
    assert_eq!(tag_sent().as_deref(), Some("\"v1\""));
    serve("", true);
    assert!(change(&same).unwrap_err().is("conflict"));
    // A weak tag does not tell versions apart, and the tag of another address says nothing of this one.
    serve("W/", true);
    change(&same).unwrap();
    assert_eq!(tag_sent(), None);
    serve("", true);
    change(&settings("/replace/{id}")).unwrap();
    assert_eq!(tag_sent(), None);
}

#[test]
fn records_are_written() {
    service(posts(3));
    let rest = open(POSTS);
    let full = json!({"id": 9, "title": "new", "at": "2020-01-01T00:00:00Z"});
    assert_eq!(
        write(&rest, Verb::Create, json!({}), full.clone()).unwrap(),
        full
    );
    let taken = write(&rest, Verb::Create, json!({}), full).unwrap_err();
    assert_eq!(
        (taken.code.as_str(), taken.field.as_deref()),
        ("conflict", Some("id"))
    );
    let updated = write(
        &rest,
        Verb::Update,
        json!({"id": 9}),
        json!({"title": null}),
    )
    .unwrap();
    assert_eq!(
        updated,
        json!({"id": 9, "title": null, "at": "2020-01-01T00:00:00Z"})
    );
    assert_eq!(
        write(&rest, Verb::Delete, json!({"id": 9}), json!({})).unwrap(),
        updated
    );
    for verb in [Verb::Update, Verb::Delete] {
        let error = write(&rest, verb, json!({"id": 9}), json!({"title": "x"})).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("not_found", "There is no record with this key.")
        );
    }
}

#[test]
fn parameters_stay_in_their_place() {
    service(json!([{"id": "a/b", "title": "x"}]));
    let rest = open(POSTS);
    for (id, path) in [
        ("a/b", Some("/posts/a%2Fb")),
        ("50%", Some("/posts/50%25")),
        ("a..b", Some("/posts/a..b")),
        ("../admin", None),
        ("a/..;x/b", None),
        ("%2e%2e", None),
        ("a?b#c", Some("/posts/a%3Fb%23c")),
        ("a\r\nb", None),
        ("é", Some("/posts/%C3%A9")),
        ("..", None),
        (".", None),
        ("", None),
    ] {
        let before = http::sent().len();
        let query = Query {
            conditions: vec![Condition::new("id", Comparison::Equals, id)],
            limit: 2,
            ..Query::default()
        };
        assert_eq!(rest.read(&query).unwrap().records, "[]", "{id}");
        assert_eq!(
            http::sent()
                .get(before)
                .map(|request| request.path.clone())
                .as_deref(),
            path
        );
        if path.is_none() {
            assert!(
                write(&rest, Verb::Delete, json!({"id": id}), json!({}))
                    .unwrap_err()
                    .is("not_found")
            );
        }
    }
}

#[test]
fn answers_become_codes() {
    let settings = r#"{"connection":"blog","fields":{"id":"integer"},"list":{"path":"/posts"},"get":{"path":"/posts/{id}"},"create":{"path":"/posts"}}"#;
    service(posts(1));
    let rest = open(settings);
    for (status, body, headers, code, wait) in [
        (200, "<html>Sign in</html>", vec![], "upstream_error", None),
        (200, "[{\"id\": 1", vec![], "upstream_error", None),
        (200, "{}", vec![], "upstream_error", None),
        (200, "[1]", vec![], "upstream_error", None),
        (204, "", vec![], "upstream_error", None),
        (401, "secret", vec![], "upstream_error", None),
        (403, "", vec![], "upstream_error", None),
        (404, "", vec![], "upstream_error", None),
        (418, "", vec![], "upstream_error", None),
        (
            429,
            "",
            vec![("Retry-After", "7")],
            "rate_limited",
            Some(7000),
        ),
        (
            429,
            "",
            vec![("retry-after", "Tue, 14 Nov 2023 22:13:30 GMT")],
            "rate_limited",
            Some(10_000),
        ),
        (500, "stack trace", vec![], "upstream_error", None),
        (
            503,
            "",
            vec![("Retry-After", "1")],
            "unavailable",
            Some(1000),
        ),
        (504, "", vec![], "timeout", None),
    ] {
        http::answer(move |_| {
            let mut response = http::json(status, body);
            response.headers.extend(
                headers
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.to_string())),
            );
            Ok(response)
        });
        let error = rest.read(&limited(1)).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.retry_after_ms),
            (code, wait),
            "{status} {body}"
        );
        assert!(!error.message.contains("secret") && !error.message.contains("stack"));
    }
    for (status, code) in [
        (409, "conflict"),
        (422, "invalid"),
        (400, "invalid"),
        (500, "upstream_error"),
    ] {
        http::answer(move |request| {
            Ok(http::json(
                if request.method == "GET" { 404 } else { status },
                "{}",
            ))
        });
        assert!(
            write(&rest, Verb::Create, json!({}), json!({"id": 1}))
                .unwrap_err()
                .is(code),
            "{status}"
        );
    }
    http::answer(|_| Err(Error::unavailable("down")));
    assert!(rest.read(&limited(1)).unwrap_err().is("unavailable"));
}

#[test]
fn operations_are_declared_and_called() {
    let settings = r#"{"connection":"mail","operations":{"send_email":{"path":"/messages/{box}","effect":"create",
        "params":{"to":{"type":"string","required":true},"box":{"type":"string","required":true,"in":"path"},
        "trace":{"type":"string","in":"header","as":"x-trace"},"dry":{"type":"boolean","in":"query"}},
        "returns":{"id":"string","queued":"boolean"},"record":"/message"}}}"#;
    testing::reset();
    http::answer(|_| {
        Ok(http::json(
            202,
            r#"{"message":{"id":"m1","queued":true,"more":1}}"#,
        ))
    });
    let shape = Shape::parse(&RestAdapter::describe(settings).unwrap().to_json()).unwrap();
    assert_eq!(shape.capabilities.operations[0].params.len(), 4);
    let rest = RestAdapter::open(settings, &shape).unwrap();
    let call = |params: Value| {
        let options = object(json!({"operation": "send_email", "params": params}));
        rest.write(&Change {
            options,
            ..Change::new(Verb::Call)
        })
    };
    let done = call(json!({"to": "a@b.c", "box": "x/y", "trace": "t", "dry": true})).unwrap();
    assert_eq!(done, r#"{"id":"m1","queued":true}"#);
    let sent = http::sent().pop().unwrap();
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/messages/x%2Fy")
    );
    assert_eq!(sent.body.as_deref(), Some(br#"{"to":"a@b.c"}"#.as_slice()));
    assert_eq!(sent.query, [("dry".to_owned(), "true".to_owned())]);
    assert!(
        sent.headers
            .contains(&("x-trace".to_owned(), "t".to_owned()))
    );
    for (params, field) in [
        (json!({"box": "x"}), "to"),
        (json!({"to": "a", "box": ".."}), "box"),
        (
            json!({"to": "a", "box": "x", "trace": "a\r\nHost: evil"}),
            "trace",
        ),
        (json!({"to": "a", "box": "x", "cc": "y"}), "cc"),
    ] {
        assert_eq!(call(params).unwrap_err().field.as_deref(), Some(field));
    }
}

/// Calls an operation named `go` with these `settings`; the service answers with this JSON, and with a `Link` header if
/// one is given.
pub(crate) fn gone(
    settings: Value,
    params: Value,
    body: &'static str,
    link: &'static str,
) -> Result<Value, Error> {
    let done = gone_text(settings, params, body, link)?;
    Ok(weir_plugin_sdk::serde_json::from_str(&done).unwrap())
}

/// Does as [`gone`], and returns the answer as it is written.
pub(crate) fn gone_text(
    settings: Value,
    params: Value,
    body: &'static str,
    link: &'static str,
) -> Result<String, Error> {
    testing::reset();
    http::answer(move |_| {
        let mut response = http::json(200, body);
        if !link.is_empty() {
            response.headers.push(("link".to_owned(), link.to_owned()));
        }
        Ok(response)
    });
    let settings = json!({"connection": "mail", "operations": {"go": settings}}).to_string();
    let shape = RestAdapter::describe(&settings)?;
    let rest = RestAdapter::open(&settings, &shape)?;
    let options = object(json!({"operation": "go", "params": params}));
    rest.write(&Change {
        options,
        ..Change::new(Verb::Call)
    })
}

#[test]
fn operations_send_what_a_document_asks_for() {
    let whole = json!({"path": "/x", "params": {"all": {"type": "json", "in": "whole-body"}}, "returns": {"items": {"type": "json", "at": ""}}});
    let answered = gone(whole.clone(), json!({"all": [1, {"a": null}]}), "[7]", "").unwrap();
    assert_eq!(
        (answered, http::sent()[0].body.as_deref()),
        (json!({"items": [7]}), Some(br#"[1,{"a":null}]"#.as_slice()))
    );
    gone(whole, json!({}), "[]", "").unwrap();
    assert_eq!(
        http::sent()[0].body,
        None,
        "an operation without its body sends none"
    );

    let mut delete = json!({"method": "DELETE", "path": "/x", "params": {"a": {"type": "string"}}});
    gone(delete.clone(), json!({}), "{}", "").unwrap();
    assert_eq!(
        http::sent()[0].body,
        None,
        "a DELETE with nothing in its body sends none"
    );
    delete["body_required"] = json!(true);
    gone(delete, json!({}), "{}", "").unwrap();
    assert_eq!(http::sent()[0].body.as_deref(), Some(b"{}".as_slice()));

    let patch = json!({"method": "PATCH", "path": "/x", "params": {"a": {"type": "string"}, "b": {"type": "string", "required": true}}});
    gone(patch, json!({"a": null, "b": null}), "{}", "").unwrap();
    assert_eq!(
        http::sent()[0].body.as_deref(),
        Some(br#"{"a":null,"b":null}"#.as_slice()),
        "a null that arrives here is meant"
    );

    let select = json!({"method": "PUT", "path": "/sel ect/{days}", "params": {
        "days": {"type": "json", "in": "path", "required": true, "style": "simple"},
        "ids": {"type": "json", "in": "query", "style": "form", "explode": false},
        "q": {"type": "string", "in": "query"}}});
    let days = json!({"days": ["a,b", "c"], "ids": ["x,y", 7], "q": "1,2"});
    gone(select, days, "\u{feff}{}", "").unwrap();
    let sent = &http::sent()[0];
    assert_eq!(sent.path, "/sel%20ect/a%2Cb,c");
    assert_eq!(sent.query, [("q".to_owned(), "1,2".to_owned())]);
    assert_eq!(sent.options.as_deref(), Some(r#"{"query":"ids=x%2Cy,7"}"#));

    let form = json!({"path": "/x", "content_type": "application/x-www-form-urlencoded", "params": {"a": {"type": "string"}, "b": {"type": "json"}}});
    gone(form, json!({"a": "x y&z", "b": [1, "2"]}), "", "").unwrap();
    let sent = &http::sent()[0];
    assert_eq!(
        sent.body.as_deref(),
        Some(b"a=x%20y%26z&b=1&b=2".as_slice())
    );
    assert!(sent.headers.contains(&(
        "content-type".to_owned(),
        "application/x-www-form-urlencoded".to_owned()
    )));

    let bare = json!({"method": "POST", "path": "/x", "accept": "application/vnd.x+json"});
    gone(bare, json!({}), "{}", "").unwrap();
    let sent = &http::sent()[0];
    assert_eq!(
        (&sent.body, &sent.headers),
        (
            &None,
            &vec![("accept".to_owned(), "application/vnd.x+json".to_owned())]
        )
    );

    for (settings, why) in [
        (
            json!({"path": "/x", "content_type": "text/plain"}),
            "neither JSON nor a form",
        ),
        (
            json!({"path": "/x", "params": {"a": {"type": "json", "in": "whole-body"}, "b": {"type": "string"}}}),
            "something else in it",
        ),
        (
            json!({"path": "/x", "pagination": {"style": "page", "page": "p"}}),
            "names no parameter",
        ),
    ] {
        let refused = gone(settings, json!({}), "{}", "").unwrap_err();
        assert!(refused.message.contains(why), "{}", refused.message);
    }
}

/// The next arguments are checked in every style.
#[test]
fn operations_lead_to_their_next_page() {
    let paged = |pagination: Value| {
        json!({"method": "GET", "path": "/x", "effect": "read", "pagination": pagination, "records": "/items",
            "params": {"page": {"type": "integer", "in": "query"}, "size": {"type": "integer", "in": "query"},
                "cursor": {"type": "string", "in": "query", "as": "after"}}})
    };
    let next = |pagination: Value, params: Value, body: &'static str, link: &'static str| {
        gone(paged(pagination), params, body, link).unwrap()["next_arguments"].clone()
    };
    let by_page = json!({"style": "page", "page": "page", "size": "size", "per_page": 2});
    assert_eq!(
        next(by_page.clone(), json!({}), r#"{"items":[1,2]}"#, ""),
        json!({"page": 2})
    );
    // The service may give fewer than the agent, or the settings, ask for.
    assert_eq!(
        next(
            by_page.clone(),
            json!({"page": 5, "size": 9}),
            r#"{"items":[1]}"#,
            ""
        ),
        json!({"page": 6})
    );
    assert_eq!(
        next(by_page.clone(), json!({}), r#"{"items":[1]}"#, ""),
        json!({"page": 2})
    );
    assert_eq!(
        next(by_page, json!({"page": 5}), r#"{"items":[]}"#, ""),
        Value::Null
    );
    let short = json!({"style": "page", "page": "page", "size": "size", "ends": "short"});
    assert_eq!(
        next(
            short.clone(),
            json!({"page": 5, "size": 2}),
            r#"{"items":[1,2]}"#,
            ""
        ),
        json!({"page": 6})
    );
    assert_eq!(
        next(
            short.clone(),
            json!({"page": 5, "size": 2}),
            r#"{"items":[1]}"#,
            ""
        ),
        Value::Null
    );
    // The service's own page size is unknown.
    assert_eq!(
        next(short, json!({"page": 5}), r#"{"items":[1]}"#, ""),
        json!({"page": 6})
    );
    let short = json!({"style": "offset", "offset": "page", "limit": "size", "ends": "short"});
    assert_eq!(
        next(short, json!({"page": 4, "size": 2}), r#"{"items":[1]}"#, ""),
        Value::Null
    );
    let by_offset = json!({"style": "offset", "offset": "page", "limit": "size"});
    assert_eq!(
        next(
            by_offset.clone(),
            json!({"page": 4}),
            r#"{"items":[1,2,3]}"#,
            ""
        ),
        json!({"page": 7})
    );
    assert_eq!(
        next(by_offset, json!({}), r#"{"items":[]}"#, ""),
        Value::Null
    );
    let by_cursor = json!({"style": "cursor", "cursor": "cursor", "next": "/next"});
    assert_eq!(
        next(by_cursor.clone(), json!({}), r#"{"next":"abc"}"#, ""),
        json!({"cursor": "abc"})
    );
    for end in [
        r#"{"next":null}"#,
        r#"{"next":false}"#,
        r#"{"next":""}"#,
        "{}",
    ] {
        assert_eq!(
            next(by_cursor.clone(), json!({}), end, ""),
            Value::Null,
            "{end}"
        );
    }
    let by_link = json!({"style": "link", "size": "size"});
    let link = "<https://elsewhere.example/x?size=2&after=a%20b&page=3&other=1>; rel=\"next\", <…>; rel=\"last\"";
    assert_eq!(
        next(by_link.clone(), json!({"size": 2}), "[]", link),
        json!({"cursor": "a b", "page": 3})
    );
    assert_eq!(next(by_link.clone(), json!({}), "[]", ""), Value::Null);
    for lost in ["</x/page/2>; rel=next", "</x?token=unknown>; rel=next"] {
        // What came is answered for all that.
        assert_eq!(
            next(by_link.clone(), json!({}), "[]", lost),
            Value::Null,
            "{lost}"
        );
    }
}

/// An agent that follows `next_arguments` behind the last page learns that it was the last.
#[test]
fn the_refusal_of_a_page_says_that_the_pages_have_ended() {
    let settings = |pagination: Value| {
        json!({"connection": "mail", "operations": {"go": {"method": "GET", "path": "/x", "effect": "read", "pagination": pagination,
            "params": {"at": {"type": "integer", "in": "query"}, "size": {"type": "integer", "in": "query"}}}}})
        .to_string()
    };
    let by_page = settings(json!({"style": "page", "page": "at", "first": 1}));
    let by_offset = settings(json!({"style": "offset", "offset": "at", "limit": "size"}));
    for (settings, at, status, code, is_said) in [
        (&by_page, 2, 404, "not_found", true),
        (&by_page, 2, 400, "invalid", true),
        (&by_page, 1, 404, "not_found", false),
        (&by_page, 2, 500, "upstream_error", false),
        (&by_offset, 20, 404, "not_found", true),
        (&by_offset, 0, 404, "not_found", false),
    ] {
        testing::reset();
        http::answer(move |_| Ok(http::json(status, "{}")));
        let options = object(json!({"operation": "go", "params": {"at": at}}));
        let refused = open(settings)
            .write(&Change {
                options,
                ..Change::new(Verb::Call)
            })
            .unwrap_err();
        assert_eq!(
            (refused.code.as_str(), refused.message.contains("the last")),
            (code, is_said),
            "{at} {status}: {refused}"
        );
    }
}

#[test]
fn an_openapi_schema_becomes_a_shape() {
    testing::reset();
    http::answer(|_| {
        Ok(http::json(
            200,
            r##"{"components":{"schemas":{"Day":{"type":"string","format":"date"},"Post":{"type":"object","required":["id","title"],
            "properties":{"id":{"type":"integer","readOnly":true},"title":{"type":"string","description":"Headline"},
            "big":{"type":"integer","format":"int64"},"day":{"$ref":"#/components/schemas/Day"},"note":{"type":["string","null"]},
            "tags":{"type":"array","items":{"type":"string"}}}}}}}"##,
        ))
    });
    let settings = r#"{"connection":"blog","openapi":{"path":"/openapi.json","schema":"Post"},"list":{"path":"/posts"}}"#;
    let shape = RestAdapter::describe(settings).unwrap();
    let described: Vec<_> = shape
        .fields
        .iter()
        .map(|field| (field.key.as_str(), field.kind, field.nullable))
        .collect();
    let expected = [
        ("id", Type::Integer, false),
        ("title", Type::String, false),
        ("big", Type::Decimal, true),
        ("day", Type::Date, true),
        ("note", Type::String, true),
        ("tags", Type::List, true),
    ];
    assert_eq!(described, expected);
    assert_eq!(shape.fields[1].description.as_deref(), Some("Headline"));
}
