//! Queries with parameters: the same answers from both databases, and values that are bound whatever they are.

use weir_plugin_sdk::summary::{SummaryFunction, SummaryGroup, SummaryMeasure};
use weir_plugin_sdk::{
    Adapter, Comparison, Condition, Error, Order, Query, SummaryQuery, Type, serde_json::Value,
    serde_json::json,
};
use weir_sql::SqlAdapter;

use crate::both::{Both, describe, object, outline, show};

const SQLITE: &str = "
    CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT, total DECIMAL(10,2), weight REAL, paid BOOLEAN,
        placed DATE, at DATETIME, note TEXT);";
const POSTGRESQL: &str = "
    CREATE TABLE orders (id int PRIMARY KEY, city text, total numeric(10,2), weight float8, paid boolean,
        placed date, at timestamptz, note text);";
const ROWS: &str = "
    INSERT INTO orders VALUES
    (1, 'Wien', 10.50, 1.5, TRUE, '2026-10-01', '2026-10-01 08:00:00+00', 'a:min'),
    (2, 'Graz', 99.99, 2.5, FALSE, '2026-10-02', '2026-10-02 08:00:00+00', 'it''s'),
    (3, 'Wien', 200, 0.5, TRUE, '2026-10-03', '2026-10-03 08:00:00+00', '\"x\\\\y\"'),
    (4, 'Linz', 5, 7, NULL, NULL, NULL, NULL),
    (5, NULL, 50, 3, TRUE, '2026-11-01', '2026-11-01 08:00:00+00', '{a,b}');";

fn both() -> Both {
    Both::filled(&format!("{SQLITE}{ROWS}"), &format!("{POSTGRESQL}{ROWS}"))
}

fn settings(query: &str, parameters: Value) -> String {
    json!({ "connection": "db", "query": query, "parameters": parameters }).to_string()
}

fn opened(settings: &str) -> Result<SqlAdapter, Error> {
    let mut shape = describe(settings)?;
    shape.key = vec!["id".to_owned()];
    shape.fields[0].nullable = false;
    SqlAdapter::open(settings, &shape)
}

fn read(settings: &str, params: Value, query: Query) -> Result<(String, Option<String>), Error> {
    let query = Query {
        options: object(json!({ "params": params })),
        limit: if query.limit == 0 { 100 } else { query.limit },
        ..query
    };
    opened(settings)?.read(&query).map(show)
}

/// Returns the ids that a query with one condition answers.
fn ids(both: &Both, condition: &str, parameters: Value, params: Value) -> Vec<i64> {
    let query = format!("SELECT id FROM orders WHERE {condition}");
    let settings = settings(&query, parameters);
    let answer = both.same(|| read(&settings, params.clone(), Query::default()));
    let records: Vec<Value> =
        weir_plugin_sdk::serde_json::from_str(&answer.expect(condition).0).expect("records");
    let ids = records.iter().map(|record| record["id"].as_i64());
    ids.collect::<Option<_>>().expect("ids")
}

#[test]
fn values_of_every_type_are_compared_as_such() {
    let both = both();
    let check = |condition: &str, kind: Value, value: Value, expected: &[i64]| {
        let found = ids(
            &both,
            condition,
            json!({ "x": kind }),
            json!({ "x": value }),
        );
        assert_eq!(found, expected, "{condition} {value}");
    };
    check("total > :x", json!("decimal"), json!("50.00"), &[2, 3]);
    check("total > :x", json!("decimal"), json!(99.98), &[2, 3]);
    check("total > :x", json!("integer"), json!(50), &[2, 3]);
    check("weight < :x", json!("number"), json!(1.75), &[1, 3]);
    check("city = :x", json!("string"), json!("Wien"), &[1, 3]);
    check("paid = :x", json!("boolean"), json!(false), &[2]);
    check("placed >= :x", json!("date"), json!("2026-10-03"), &[3, 5]);
    check("note = :x", json!("string"), json!("a:min"), &[1]);
    check("note = :x", json!("string"), json!("it's"), &[2]);
    let list = |of: &str| json!({ "type": "list", "of": of });
    check(
        "city IN (:x)",
        list("string"),
        json!(["Wien", "Linz"]),
        &[1, 3, 4],
    );
    check(
        "city NOT IN ( :x )",
        list("string"),
        json!(["Wien"]),
        &[2, 4],
    );
    check("city IN (:x)", list("string"), json!([]), &[]);
    check(
        "total IN (:x)",
        list("decimal"),
        json!(["5.0", "200"]),
        &[3, 4],
    );
    check("id IN (:x)", list("integer"), json!([1, 5, 99]), &[1, 5]);
    check("placed IN (:x)", list("date"), json!(["2026-10-02"]), &[2]);
    let nasty = ["it's", "\"x\\\\y\"", "{a,b}", "NULL", ""];
    check("note IN (:x)", list("string"), json!(nasty), &[2, 3, 5]);
    // A value that is given twice is bound once.
    check(
        "city = :x OR note = :x",
        json!("string"),
        json!("Graz"),
        &[2],
    );
    // The types need not follow from the text around a parameter.
    check(
        "sum_of > :x".replace("sum_of", "(total + 0)").as_str(),
        json!("decimal"),
        json!("99"),
        &[2, 3],
    );
}

/// A list that is null, or left out, has no values in every database.
#[test]
fn a_list_that_is_null_is_empty() {
    let mysql = POSTGRESQL
        .replace("float8", "double")
        .replace("timestamptz", "datetime")
        .replace("text", "varchar(20)");
    let both = both().with_mysql(&format!("{mysql}{}", ROWS.replace("+00", "")));
    let list = json!({ "x": { "type": "list", "of": "string" } });
    for params in [json!({}), json!({ "x": null }), json!({ "x": [] })] {
        let found = ids(&both, "city IN (:x)", list.clone(), params.clone());
        assert_eq!(found, [0_i64; 0], "{params}");
        let found = ids(
            &both,
            "city IN (:x) OR id = 4",
            list.clone(),
            params.clone(),
        );
        assert_eq!(found, [4], "{params}");
        let found = ids(&both, "city NOT IN (:x)", list.clone(), params.clone());
        assert_eq!(found, [1, 2, 3, 4, 5], "{params}");
    }
}

#[test]
fn times_are_compared_by_moment() {
    let both = both();
    for (kind, sqlite, postgresql) in [("datetime", "weir_datetime(at, 'UTC')", "at")] {
        for (which, at) in [
            (crate::both::Which::Sqlite, sqlite),
            (crate::both::Which::Postgresql, postgresql),
        ] {
            for (condition, value) in [
                (format!("{at} >= :x"), json!("2026-10-02T10:00:00+02:00")),
                (
                    format!("{at} IN (:x)"),
                    json!([
                        "2026-10-02T10:00:00+02:00",
                        "2026-10-03T08:00:00Z",
                        "2026-11-01T08:00:00Z"
                    ]),
                ),
            ] {
                let kind = match value.is_array() {
                    true => json!({ "type": "list", "of": kind }),
                    false => json!(kind),
                };
                let settings = settings(
                    &format!("SELECT id FROM orders WHERE {condition}"),
                    json!({ "x": kind }),
                );
                let answer = both.on(which, || {
                    read(&settings, json!({ "x": value }), Query::default())
                });
                assert_eq!(
                    answer.expect("read").0,
                    r#"[{"id":2},{"id":3},{"id":5}]"#,
                    "{condition}"
                );
            }
        }
    }
}

#[test]
fn an_absent_parameter_is_null() {
    let both = both();
    let condition = "(:city IS NULL OR city = :city) AND (:least IS NULL OR total >= :least) AND (:ids IS NULL OR id IN (:ids))";
    let parameters =
        json!({ "city": "string", "least": "decimal", "ids": { "type": "list", "of": "integer" } });
    for (params, expected) in [
        (json!({}), [1, 2, 3, 4, 5].as_slice()),
        (json!({ "city": null, "least": "50" }), &[2, 3, 5]),
        (json!({ "city": "Wien" }), &[1, 3]),
        (json!({ "ids": [2, 3], "city": "Wien" }), &[3]),
        (json!({ "ids": [] }), &[]),
    ] {
        assert_eq!(
            ids(&both, condition, parameters.clone(), params.clone()),
            expected,
            "{params}"
        );
    }
}

#[test]
fn filters_order_pages_and_summaries_go_over_a_query_with_parameters() {
    let both = both();
    let settings = settings(
        "SELECT id, city, total, paid FROM orders WHERE total >= :least -- :not_one\n;",
        json!({ "least": { "type": "decimal", "required": true, "example": "1" } }),
    );
    let described = both.same(|| {
        let shape = describe(&settings)?;
        let param = &shape.capabilities.params[0];
        assert!(param.name == "least" && param.required && param.kind == Type::Decimal);
        Ok(outline(&shape))
    });
    assert_eq!(
        described.expect("described"),
        "id:Integer city:String total:Decimal paid:Boolean key= write= read_only=Some(\"A query is read-only.\")"
    );
    let page = |cursor: Option<String>| {
        let query = Query {
            conditions: vec![Condition::new("city", Comparison::NotEquals, "Graz")],
            order: vec![Order::parse("-total")],
            columns: vec!["id".to_owned()],
            limit: 1,
            cursor,
            ..Query::default()
        };
        both.same(|| read(&settings, json!({ "least": "10" }), query.clone()))
            .expect("a page")
    };
    let (first, next) = page(None);
    assert_eq!(first, r#"[{"id":3}]"#);
    let (second, next) = page(next);
    assert_eq!((second.as_str(), next), (r#"[{"id":1}]"#, None));
    let summary = both.same(|| {
        let query = SummaryQuery {
            measures: ["count", "sum(total)"]
                .map(|name| SummaryMeasure {
                    name: name.to_owned(),
                    function: match name {
                        "count" => SummaryFunction::Count,
                        _ => SummaryFunction::Sum,
                    },
                    column: (name != "count").then(|| "total".to_owned()),
                })
                .into(),
            conditions: vec![Condition::new("paid", Comparison::Equals, true)],
            limit: 10,
            options: object(json!({ "params": { "least": 10 } })),
            ..SummaryQuery::default()
        };
        let shape = describe(&settings)?;
        SqlAdapter::open(&settings, &shape)?
            .summarize(&query)
            .map(|page| page.records)
    });
    assert_eq!(
        summary.expect("a summary"),
        r#"[{"count":3,"sum(total)":"260.5"}]"#
    );
}

#[test]
fn texts_names_and_comments_are_no_code() {
    let both = both();
    let query = "SELECT id, ':x' AS \"a:x\", '::' || 'it''s :x' AS b, CAST(id AS text) AS c /* :x ' */ \
                 FROM orders -- ':x\n WHERE city = :x";
    let settings = settings(query, json!({ "x": "string" }));
    let answer = both.same(|| read(&settings, json!({ "x": "Graz" }), Query::default()));
    assert_eq!(
        answer.expect("read").0,
        r#"[{"id":2,"a:x":":x","b":"::it's :x","c":"2"}]"#
    );
    let postgresql = "SELECT id::int4, E'it\\':x' AS a, $$:x '$$ AS b, $t$ $$ :x $t$ AS c, /* /* :x */ ' :x */ \
                      (ARRAY['p','q'])[1:id] AS d, U&'\\0041:x' AS e FROM orders WHERE city = :x::varchar";
    let settings = self::settings(
        &postgresql.replace("[1:id]", "[1: id]"),
        json!({ "x": "string" }),
    );
    let answer = both.on(crate::both::Which::Postgresql, || {
        read(&settings, json!({ "x": "Graz" }), Query::default())
    });
    assert_eq!(
        answer.expect("read").0,
        r#"[{"id":2,"a":"it':x","b":":x '","c":" $$ :x ","d":["p","q"],"e":"A:x"}]"#
    );
    let sqlite = "SELECT id, [city] AS [a:x], `city` AS `b:x` FROM orders WHERE city = :x";
    let settings = self::settings(sqlite, json!({ "x": "string" }));
    let answer = both.on(crate::both::Which::Sqlite, || {
        read(&settings, json!({ "x": "Graz" }), Query::default())
    });
    assert_eq!(
        answer.expect("read").0,
        r#"[{"id":2,"a:x":"Graz","b:x":"Graz"}]"#
    );
}

#[test]
fn what_cannot_be_bound_is_refused_when_it_is_described() {
    let both = both();
    let list = json!({ "type": "list" });
    for (query, parameters, why) in [
        (
            "SELECT id FROM orders WHERE id = :other",
            json!({ "x": "integer" }),
            "`:other`, which `parameters` does not declare: there are x",
        ),
        (
            "SELECT id FROM orders",
            json!({ "x": "integer" }),
            "declares \"x\", which is nowhere",
        ),
        (
            "SELECT id FROM orders WHERE id = :x",
            json!({ "x": "int" }),
            "parameter \"x\" is wrong",
        ),
        (
            "SELECT id FROM orders WHERE id = :x",
            json!({ "x": { "type": "integer", "from": 1 } }),
            "unknown field `from`",
        ),
        (
            "SELECT id FROM orders WHERE id IN (:x)",
            json!({ "x": list }),
            "say of what with `of`",
        ),
        (
            "SELECT id FROM orders WHERE id = :x",
            json!({ "x": { "type": "integer", "of": "string" } }),
            "is no list",
        ),
        (
            "SELECT id FROM orders WHERE id = :x",
            json!({ "x": "record" }),
            "cannot be bound",
        ),
        (
            "SELECT id FROM orders WHERE id = :x",
            json!({ "x-y": "integer" }),
            "has an invalid name",
        ),
        (
            "SELECT id FROM orders\n WHERE note = 'open",
            json!({}),
            "the text in quotes that begins in line 2 does not end",
        ),
        (
            "SELECT id FROM orders /* open",
            json!({}),
            "the comment that begins in line 1 does not end",
        ),
        (
            "DELETE FROM orders WHERE id = :x",
            json!({ "x": "integer" }),
            "cannot be prepared",
        ),
        (
            "SELECT id FROM orders WHERE id = :x) AS a; DELETE FROM orders; --",
            json!({ "x": "integer" }),
            "cannot be prepared",
        ),
        (
            "SELECT nothing FROM orders WHERE id = :x",
            json!({ "x": "integer" }),
            "cannot be prepared",
        ),
        (
            "SELECT id FROM orders ORDER BY :x :x",
            json!({ "x": "integer" }),
            "cannot be prepared",
        ),
    ] {
        let settings = settings(query, parameters);
        let error = both
            .same(|| describe(&settings).map(|_| ()))
            .expect_err(query);
        assert!(error.message.contains(why), "{query}: {error}");
        // It names the setting at fault, which the contract has.
        let given: Value = weir_plugin_sdk::serde_json::from_str(&settings).expect("JSON");
        let named = error.field.as_deref().unwrap_or_default();
        assert!(given.get(named).is_some(), "{query}: {error:?}");
    }
    for (which, placeholder) in [
        (crate::both::Which::Sqlite, "?"),
        (crate::both::Which::Sqlite, "?1"),
        (crate::both::Which::Sqlite, "@x"),
        (crate::both::Which::Sqlite, "$x"),
        (crate::both::Which::Sqlite, ":1"),
        (crate::both::Which::Postgresql, "$1"),
    ] {
        let query = format!("SELECT id FROM orders WHERE id = {placeholder} OR id = :x");
        let settings = settings(&query, json!({ "x": "integer" }));
        let error = both
            .on(which, || describe(&settings))
            .expect_err(placeholder);
        assert!(
            error.message.contains("write `:name` and declare the name"),
            "{error}"
        );
    }
    let alone = json!({ "connection": "db", "table": "orders", "parameters": {} }).to_string();
    let error = both
        .same(|| describe(&alone).map(|_| ()))
        .expect_err("a table");
    assert!(
        error.message.contains("`parameters` goes with `query`"),
        "{error}"
    );
}

#[test]
fn values_that_do_not_fit_are_refused_by_name() {
    let both = both();
    let list = |of: &str| json!({ "type": "list", "of": of });
    let many: Vec<i64> = (0..1_001).collect();
    for (kind, value, why) in [
        (
            json!("integer"),
            json!("1; DROP TABLE orders"),
            "\"x\" takes a integer value.",
        ),
        (json!("integer"), json!(1.5), "takes a integer value"),
        (json!("date"), json!("2026-02-30"), "takes a date value"),
        (json!("boolean"), json!("true"), "takes a boolean value"),
        (json!("string"), json!(["a"]), "takes a string value"),
        (list("integer"), json!(1), "takes a list of integer values"),
        (
            list("integer"),
            json!([1, null]),
            "takes a list of integer values",
        ),
        (list("integer"), json!(many), "takes at most 1000 values"),
    ] {
        let condition = if value.is_array() || kind["of"].is_string() {
            "id IN (:x)"
        } else {
            "id = :x"
        };
        let condition = match kind.as_str() {
            Some("date") => "placed = :x",
            Some("boolean") => "paid = :x",
            Some("string") => "city = :x",
            _ => condition,
        };
        let settings = settings(
            &format!("SELECT id FROM orders WHERE {condition}"),
            json!({ "x": kind }),
        );
        let error = both.same(|| read(&settings, json!({ "x": value }), Query::default()));
        let error = error.expect_err(why);
        assert!(
            error.message.contains(why) && error.field.as_deref() == Some("x"),
            "{error}"
        );
    }
}

/// A value that looks like code stays a value, wherever it is sent.
#[test]
fn no_value_becomes_code() {
    let both = both();
    let corpus = include_str!("../../../../tests/fixtures/injections.txt");
    let texts: Vec<&str> = corpus
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert!(texts.len() > 40);
    let settings = settings(
        "SELECT id, city FROM orders WHERE city = :one OR city IN (:many) OR :one = city || ''",
        json!({ "one": "string", "many": { "type": "list", "of": "string" } }),
    );
    let answered = both.same(|| {
        let table = opened(&settings)?;
        let read = |params: Value, query: Query| {
            let query = Query {
                options: object(json!({ "params": params })),
                limit: 100,
                ..query
            };
            table.read(&query).map(|page| page.records)
        };
        let mut answered = Vec::new();
        for text in &texts {
            answered.push(read(
                json!({ "one": text, "many": [text, "Graz"] }),
                Query::default(),
            ));
            let condition = Condition::new(text, Comparison::Equals, "x");
            for query in [
                Query {
                    order: vec![Order::parse(text)],
                    ..Query::default()
                },
                Query {
                    columns: vec![text.to_string()],
                    ..Query::default()
                },
                Query {
                    conditions: vec![condition.clone()],
                    ..Query::default()
                },
            ] {
                answered.push(read(json!({}), query));
            }
            let summary = SummaryQuery {
                groups: vec![SummaryGroup {
                    name: text.to_string(),
                    column: text.to_string(),
                    step: None,
                }],
                measures: vec![SummaryMeasure {
                    name: text.to_string(),
                    function: SummaryFunction::Count,
                    column: None,
                }],
                limit: 10,
                ..SummaryQuery::default()
            };
            answered.push(table.summarize(&summary).map(|page| page.records));
        }
        Ok(answered)
    });
    for (text, answers) in texts.iter().zip(answered.expect("answers").chunks(5)) {
        let [bound, names @ ..] = answers else {
            panic!("five answers");
        };
        let bound = bound.as_deref().expect(text);
        assert_eq!(bound, r#"[{"id":2,"city":"Graz"}]"#, "{text}");
        for name in names {
            let error = name.as_ref().expect_err(text);
            assert_eq!(error.code, "invalid", "{text} {error}");
        }
    }
    let left = ids(
        &both,
        ":x = :x",
        json!({ "x": "integer" }),
        json!({ "x": 1 }),
    );
    assert_eq!(left, [1, 2, 3, 4, 5]);
}

#[test]
fn parameters_are_guessed_from_what_they_are_compared_with() {
    let both = both();
    let query = "SELECT id, city FROM orders AS o WHERE o.total BETWEEN :low AND :high AND city IN (:cities) AND :day <= o.placed \
                 AND (:paid IS NULL OR paid = :paid) AND id <> :id AND note LIKE :like AND weight >= :weight AND :other || 'x' = ':no' \
                 LIMIT :most";
    let settings = json!({ "connection": "db", "query": query, "parameters": "guess" }).to_string();
    let described = both.same(|| {
        let shape = describe(&settings)?;
        let params = shape.capabilities.params.iter().map(|param| {
            let items = param.items.as_ref().map(|items| items.kind);
            (param.name.clone(), param.kind, items, param.required)
        });
        Ok((params.collect::<Vec<_>>(), shape.notes.clone()))
    });
    let (params, notes) = described.expect("described");
    let expected = [
        ("low", Type::Decimal, None, true),
        ("high", Type::Decimal, None, true),
        ("cities", Type::List, Some(Type::String), true),
        ("day", Type::Date, None, true),
        ("paid", Type::Boolean, None, false),
        ("id", Type::Integer, None, true),
        ("like", Type::String, None, true),
        ("weight", Type::Number, None, true),
        ("other", Type::String, None, true),
        ("most", Type::Integer, None, true),
    ];
    let expected =
        expected.map(|(name, kind, items, required)| (name.to_owned(), kind, items, required));
    assert_eq!(params, expected);
    let [note] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert!(note.contains("parameter \"other\" is not known"), "{note}");
    let params = json!({ "low": 1, "high": "100", "cities": ["Wien", "Graz"], "day": "2026-01-01", "id": 7, "like": "%", "weight": 0,
        "other": ":no", "most": 9 });
    let answer = both.same(|| read(&settings, params.clone(), Query::default()));
    assert_eq!(answer.expect("read").0, "[]");
}
