//! Counts and summaries of values that a column's type does not have, in both databases.

use weir_plugin_sdk::{
    Adapter, Error, Shape, SummaryQuery, Type,
    summary::{DateStep, SummaryFunction, SummaryGroup, SummaryMeasure},
    testing,
};
use weir_sql::SqlAdapter;

use crate::both::{Both, Which, describe};

const SETTINGS: &str = r#"{"connection":"db","table":"odd"}"#;

fn group(column: &str, step: Option<DateStep>) -> SummaryQuery {
    let group = SummaryGroup {
        name: "g".to_owned(),
        column: column.to_owned(),
        step,
    };
    let mut query = measure(SummaryFunction::Count, None);
    query.groups.push(group);
    query
}

fn measure(function: SummaryFunction, column: Option<&str>) -> SummaryQuery {
    let measure = SummaryMeasure {
        name: "m".to_owned(),
        function,
        column: column.map(str::to_owned),
    };
    SummaryQuery {
        measures: vec![measure],
        limit: 100,
        ..SummaryQuery::default()
    }
}

/// Asks with another type for a column than its database says.
fn ask(
    both: &Both,
    which: Which,
    types: &[(&str, Type)],
    query: &SummaryQuery,
) -> Result<String, Error> {
    both.on(which, || {
        let mut shape: Shape = describe(SETTINGS)?;
        for (key, kind) in types {
            let field = shape.fields.iter_mut().find(|field| field.key == *key);
            field.expect("a column").kind = *kind;
        }
        Ok(SqlAdapter::open(SETTINGS, &shape)?
            .summarize(query)?
            .records)
    })
}

#[test]
fn a_sum_of_integers_with_fractions_is_refused() {
    let both = Both::filled(
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, n DECIMAL(9,2)); INSERT INTO odd VALUES (1, 1.5), (2, 1.5)",
        "CREATE TABLE odd (id int PRIMARY KEY, n numeric); INSERT INTO odd VALUES (1, 1.5), (2, 1.5)",
    );
    for which in [Which::Sqlite, Which::Postgresql] {
        for function in [SummaryFunction::Sum, SummaryFunction::Average] {
            let query = measure(function, Some("n"));
            let error = ask(&both, which, &[("n", Type::Integer)], &query).expect_err("refused");
            assert!(error.is("source_changed"), "{error:?}");
        }
    }
}

#[test]
fn numbers_in_texts_are_compared_as_numbers() {
    let both = Both::filled(
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, n TEXT); INSERT INTO odd VALUES (1, '9'), (2, '10'), (3, '-2')",
        "",
    );
    for kind in [Type::Integer, Type::Number] {
        for (function, expected) in [
            (SummaryFunction::Minimum, "-2"),
            (SummaryFunction::Maximum, "10"),
        ] {
            let query = measure(function, Some("n"));
            let found = ask(&both, Which::Sqlite, &[("n", kind)], &query).expect("an answer");
            assert_eq!(
                found.replace(".0}", "}"),
                format!(r#"[{{"m":{expected}}}]"#)
            );
        }
    }
}

#[test]
fn a_moment_is_counted_on_its_own_day() {
    let both = Both::filled(
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, at DATETIME); INSERT INTO odd VALUES (1, '2026-10-04T23:59:59.9999Z')",
        "CREATE TABLE odd (id int PRIMARY KEY, at timestamptz); INSERT INTO odd VALUES (1, '2026-10-04T23:59:59.9999Z')",
    );
    for (step, label) in [
        (DateStep::Day, "2026-10-04"),
        (DateStep::Week, "2026-W40"),
        (DateStep::Quarter, "2026-Q4"),
    ] {
        for which in [Which::Sqlite, Which::Postgresql] {
            let found = ask(&both, which, &[], &group("at", Some(step))).expect("an answer");
            assert_eq!(found, format!(r#"[{{"g":"{label}","m":1}}]"#));
        }
    }
}

/// The week of 0000-01-01, a Saturday, begins before the first day of the value table, and MySQL computes no day of that year.
#[test]
fn a_week_at_either_end_of_the_calendar_is_that_of_its_days() {
    let rows = |first: [&str; 4]| {
        let [a, b, c, d] = first;
        format!(
            "INSERT INTO odd VALUES (1, '{a}'), (2, '{b}'), (3, '{c}'), (4, '{d}'), (5, '9999-12-31')"
        )
    };
    let first = ["0000-01-01", "0000-01-02", "0000-01-03", "0000-03-01"];
    let before = [
        "0001-01-01 BC",
        "0001-01-02 BC",
        "0001-01-03 BC",
        "0001-03-01 BC",
    ];
    let table = "CREATE TABLE odd (id INTEGER PRIMARY KEY, at DATE);";
    let both = Both::filled(
        &format!("{table} {}", rows(first)),
        &format!("{table} {}", rows(before)),
    )
    .with_mysql(&format!("{table} {}", rows(first)));
    for which in [Which::Sqlite, Which::Postgresql, Which::Mysql] {
        let query = group("at", Some(DateStep::Week));
        let found = ask(&both, which, &[], &query).expect("an answer");
        assert_eq!(
            found,
            r#"[{"g":"-0001-W52","m":2},{"g":"0000-W01","m":1},{"g":"0000-W09","m":1},{"g":"9999-W52","m":1}]"#
        );
    }
}

#[test]
fn texts_that_are_no_dates_make_no_group() {
    for (odd, is_moment) in [
        ("n/a", false),
        ("", false),
        ("12:00", false),
        ("now", false),
        ("28/2/2026", false),
        ("2026-02-30", false),
        ("2026-02-28 10:00:00", false),
        ("n/a", true),
        ("", true),
        ("12:00", true),
        ("now", true),
    ] {
        let (native, kind) = match is_moment {
            true => ("DATETIME", Type::Datetime),
            false => ("DATE", Type::Date),
        };
        let both = format!(
            "CREATE TABLE odd (id INTEGER PRIMARY KEY, at {native});
             INSERT INTO odd VALUES (1, '2026-02-28'), (2, NULL), (3, '{odd}')"
        );
        let database = Both::filled(&both, "");
        for step in [DateStep::Day, DateStep::Week, DateStep::Quarter] {
            let query = group("at", Some(step));
            let found = ask(&database, Which::Sqlite, &[("at", kind)], &query);
            let error = found.expect_err(odd);
            assert!(error.is("source_changed"), "{odd} {step:?} {error:?}");
        }
        let whole = "DELETE FROM odd WHERE id = 3; UPDATE odd SET at = '2026-02-28T23:59:59.9999Z' WHERE id = 1";
        let script = if is_moment {
            whole
        } else {
            "DELETE FROM odd WHERE id = 3"
        };
        database.sqlite_file().execute_batch(script).expect(script);
        let query = group("at", Some(DateStep::Month));
        let found = ask(&database, Which::Sqlite, &[("at", kind)], &query);
        assert_eq!(
            found.expect("an answer"),
            r#"[{"g":"2026-02","m":1},{"g":null,"m":1}]"#
        );
    }
}

#[test]
fn numbers_that_are_not_finite_are_in_the_group_of_nulls() {
    let values = "(1, 'NaN'), (2, NULL), (3, '1.50'), (4, 'NaN'), (5, '1.5')";
    for native in ["float4", "float8", "numeric"] {
        let both = Both::filled(
            "",
            &format!(
                "CREATE TABLE odd (id int PRIMARY KEY, n {native}); INSERT INTO odd VALUES {values}"
            ),
        );
        if native != "numeric" {
            both.fill("", "INSERT INTO odd VALUES (6, 'Infinity'), (7, '-Infinity'); DELETE FROM odd WHERE id < 3");
        }
        let query = group("n", None);
        let found = ask(&both, Which::Postgresql, &[("n", Type::Number)], &query);
        assert_eq!(
            found.expect("an answer"),
            r#"[{"g":1.5,"m":2},{"g":null,"m":3}]"#,
            "{native}"
        );
    }
}

#[test]
fn the_year_before_the_first_is_the_year_zero() {
    let both = Both::filled(
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, day DATE, at DATETIME);
         INSERT INTO odd VALUES (1, '0000-05-06', '0000-05-06T07:08:09Z')",
        "CREATE TABLE odd (id int PRIMARY KEY, day date, at timestamptz);
         INSERT INTO odd VALUES (1, '0001-05-06 BC', '0001-05-06 07:08:09+00 BC')",
    );
    for which in [Which::Sqlite, Which::Postgresql] {
        for column in ["day", "at"] {
            for (step, label) in [
                (DateStep::Day, "0000-05-06"),
                (DateStep::Quarter, "0000-Q2"),
            ] {
                let found = ask(&both, which, &[], &group(column, Some(step)));
                let expected = format!(r#"[{{"g":"{label}","m":1}}]"#);
                assert_eq!(found.expect("an answer"), expected);
            }
        }
        let found = ask(
            &both,
            which,
            &[],
            &measure(SummaryFunction::Minimum, Some("at")),
        );
        assert_eq!(
            found.expect("an answer"),
            r#"[{"m":"0000-05-06T07:08:09Z"}]"#
        );
    }
}

/// Nothing else in the SELECT makes one row of all.
#[test]
fn a_sum_of_decimals_alone_is_one_record() {
    for (rows, sum) in [
        ("(1, 1.1), (2, 2.2), (3, 3.3)", "\"6.6\""),
        ("(1, NULL)", "null"),
    ] {
        let both = Both::filled(
            &format!(
                "CREATE TABLE odd (id INTEGER PRIMARY KEY, a DECIMAL(9,2)); INSERT INTO odd VALUES {rows}"
            ),
            "",
        );
        let query = measure(SummaryFunction::Sum, Some("a"));
        let found = ask(&both, Which::Sqlite, &[("a", Type::Decimal)], &query);
        assert_eq!(found.expect("an answer"), format!(r#"[{{"m":{sum}}}]"#));
    }
}

#[test]
fn decimals_are_added_in_the_statement_that_groups_them() {
    let both = Both::filled(
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, city TEXT, a DECIMAL(9,2), b TEXT);
         INSERT INTO odd VALUES (1, 'Oslo', 0.1, '1.25'), (2, 'Oslo', 0.2, NULL), (3, NULL, 0.1, '2'), (4, 'Rome', NULL, '3')",
        "",
    );
    let mut query = group("city", None);
    query.measures.clear();
    for (name, function, column) in [
        ("sa", SummaryFunction::Sum, "a"),
        ("aa", SummaryFunction::Average, "a"),
        ("sb", SummaryFunction::Sum, "b"),
    ] {
        query.measures.push(SummaryMeasure {
            name: name.to_owned(),
            function,
            column: Some(column.to_owned()),
        });
    }
    let types = [("a", Type::Decimal), ("b", Type::Decimal)];
    let found = ask(&both, Which::Sqlite, &types, &query).expect("an answer");
    assert_eq!(
        found,
        r#"[{"g":"Oslo","sa":"0.3","aa":"0.15","sb":"1.25"},{"g":"Rome","sa":null,"aa":null,"sb":"3"},{"g":null,"sa":"0.1","aa":"0.1","sb":"2"}]"#
    );
    let asked = testing::sql::statements();
    let grouping = asked.iter().filter(|one| one.text.contains("GROUP BY"));
    assert_eq!(grouping.count(), 1, "all is of one moment");
}

/// SQLite itself ends a sum beyond 64 bits with an error.
#[test]
fn a_sum_of_integers_beyond_64_bits_is_exact() {
    let rows = "INSERT INTO odd VALUES (1, 'a', 9223372036854775807), (2, 'a', 9223372036854775807), \
                (3, 'b', -9223372036854775808), (4, 'b', -9223372036854775808), (5, 'b', -1), (6, 'c', NULL), (7, 'd', -7);";
    let table = |int: &str| {
        format!("CREATE TABLE odd (id {int} PRIMARY KEY, g VARCHAR(9), n BIGINT); {rows}")
    };
    let both = Both::filled(&table("INTEGER"), &table("int")).with_mysql(&table("int"));
    let found = |function, group: Option<&str>| {
        let mut query = measure(function, Some("n"));
        query.groups.extend(group.map(|column| SummaryGroup {
            name: "g".to_owned(),
            column: column.to_owned(),
            step: None,
        }));
        let summed = || -> Result<String, Error> {
            let opened = SqlAdapter::open(SETTINGS, &describe(SETTINGS)?)?;
            Ok(opened.summarize(&query)?.records)
        };
        both.same(summed).expect("an answer")
    };
    assert_eq!(found(SummaryFunction::Sum, None), r#"[{"m":"-10"}]"#);
    assert_eq!(
        found(SummaryFunction::Average, None),
        r#"[{"m":"-1.666667"}]"#
    );
    assert_eq!(
        found(SummaryFunction::Sum, Some("g")),
        r#"[{"g":"a","m":"18446744073709551614"},{"g":"b","m":"-18446744073709551617"},{"g":"c","m":null},{"g":"d","m":"-7"}]"#
    );
    assert_eq!(
        found(SummaryFunction::Average, Some("g")),
        r#"[{"g":"a","m":"9223372036854775807"},{"g":"b","m":"-6148914691236517205.666667"},{"g":"c","m":null},{"g":"d","m":"-7"}]"#
    );
}
