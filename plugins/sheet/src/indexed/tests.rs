//! Checks that reading through indexes and reading in one pass give the same bytes.

use proptest::prelude::*;
use weir_plugin_sdk::serde_json::{Value, json};
use weir_plugin_sdk::shape::TextFormat;
use weir_plugin_sdk::summary::{SummaryFunction, SummaryGroup, SummaryMeasure};
use weir_plugin_sdk::testing::{self, files, index};
use weir_plugin_sdk::{
    Adapter, Change, Comparison, Condition, Error, Order, Page, Query, Shape, SummaryPage,
    SummaryQuery, Verb,
};

use crate::SheetAdapter;

fn open(index: &str, change: impl FnOnce(&mut Shape)) -> SheetAdapter {
    let settings = json!({ "connection": "data", "path": "x.csv", "index": index }).to_string();
    let mut shape = SheetAdapter::describe(&settings).unwrap();
    change(&mut shape);
    // The columns learn of the shape's rules for cells.
    let shape = Shape::parse(&shape.to_json()).unwrap();
    SheetAdapter::open(&settings, &shape).unwrap()
}

/// Builds all indexes that calls asked for.
fn build(sheet: &SheetAdapter) {
    for work in index::asked() {
        while sheet.later(&work).unwrap() {}
    }
}

/// Returns all pages of a query, through indexes once they are there.
fn walk(sheet: &SheetAdapter, query: &Query) -> Result<Vec<Page>, Error> {
    let _ = sheet.read(query);
    build(sheet);
    let (mut pages, mut query) = (Vec::new(), query.clone());
    loop {
        let page = sheet.read(&query)?;
        query.cursor.clone_from(&page.next);
        pages.push(page);
        if query.cursor.is_none() || pages.len() > 60 {
            return Ok(pages);
        }
    }
}

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{0,2}",
        2 => "[a-cB]{3,7}",
        2 => "(é|Ж|\u{feff}a|\"\"|a\nb|a\r\nb|,|;| |=1\\+1)",
        2 => "-?[0-9]{1,3}(\\.[0-9]{1,2})?",
        1 => "2024-0[1-3]-0[1-9]",
        1 => "[x-y]{254,258}",
    ]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![12 => "-?[0-9]{1,3}", 4 => "[0-9]\\.[0-9]{1,2}", 2 => "(-0|007|1e2|NaN|five)?", 1 => "[1-9] (kg|lb)"]
}

fn table() -> impl Strategy<Value = String> {
    let row = (number(), cell(), number(), cell());
    let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
    (
        proptest::collection::vec(row, 0..60),
        any::<bool>(),
        "(\n|\r\n)",
        any::<bool>(),
    )
        .prop_map(move |(rows, quote, end, last)| {
            let mut text = format!("id,name,amount,other{end}");
            for (id, name, amount, other) in rows {
                let (name, other) = (quoted(&name), quoted(&other));
                let amount = if quote { quoted(&amount) } else { amount };
                text.push_str(&format!("{id},{name},{amount},{other}{end}"));
            }
            if last {
                text.truncate(text.len() - end.len());
            }
            text
        })
}

fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    let text = (prop_oneof![Just("name"), Just("other")], 0_usize..9, cell());
    let number = (Just("amount"), 0_usize..9, number());
    let one = prop_oneof![text, number].prop_map(|(column, comparison, operand)| {
        let comparison = Comparison::ALL[comparison];
        let plain = operand
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        let one = |text: String| match (column, plain) {
            ("amount", Some(number)) => json!(number),
            _ => json!(text),
        };
        let value = match comparison {
            Comparison::OneOf => json!([one(operand.clone()), one(operand)]),
            Comparison::IsEmpty => json!(operand.len() % 2 == 0),
            _ => one(operand),
        };
        Condition::new(column, comparison, value)
    });
    proptest::collection::vec(one, 0..3)
}

fn query() -> impl Strategy<Value = Query> {
    let order = proptest::collection::vec("-?(id|name|amount)", 0..3);
    (conditions(), order, 1_u32..9).prop_map(|(conditions, order, limit)| {
        let mut seen = Vec::new();
        let order = order.iter().map(|text| Order::parse(text));
        let order = order
            .filter(|by| {
                !seen.contains(&by.column) && {
                    seen.push(by.column.clone());
                    true
                }
            })
            .collect();
        Query {
            conditions,
            order,
            limit,
            ..Query::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn indexes_and_passes_answer_the_same(text in table(), queries in proptest::collection::vec(query(), 1..4), kind in 0_usize..4, tail in table(), empties: bool) {
        testing::reset();
        files::put("data", "x.csv", text.as_bytes());
        let change = |shape: &mut Shape| {
            shape.key = vec!["id".to_owned()];
            if empties {
                shape.misfits = weir_plugin_sdk::shape::Misfits::Empty;
                shape.null_words = vec!["b".to_owned(), "five".to_owned()];
            }
            // A cell that is not of its column's type stays as it is, and comes after the others.
            if let Some(amount) = shape.fields.iter_mut().find(|field| field.key == "amount") {
                use weir_plugin_sdk::Type::{Decimal, Integer, Number};
                amount.kind = [amount.kind, Integer, Decimal, Number][kind];
            }
        };
        let (passes, indexed) = (open("never", change), open("always", change));
        for query in &queries {
            prop_assert_eq!(walk(&indexed, query), walk(&passes, query));
        }
        // Others append to the file, and what was indexed is still so.
        let old = files::stat("data", "x.csv").unwrap().version;
        let rows = tail.split_once('\n').map_or("", |(_, rows)| rows);
        let rows = format!("{text}\n{rows}");
        files::put("data", "x.csv", rows.as_bytes());
        let new = files::stat("data", "x.csv").unwrap().version;
        for query in &queries {
            let before = walk(&passes, query);
            weir_plugin_sdk::index::extend(&super::SheetSource::source(&indexed.settings), &old, &new).unwrap();
            prop_assert_eq!(indexed.read(query).ok(), before.ok().map(|pages| pages[0].clone()));
        }
    }
}

fn rows(count: usize) -> String {
    let row = |row: usize| {
        format!(
            "{row},{},{}\n",
            ["open", "closed", "new"][row % 3],
            row * 7 % count
        )
    };
    format!(
        "id,status,rank\n{}",
        (0..count).map(row).collect::<String>()
    )
}

#[test]
fn a_lookup_reads_its_row_and_little_else() {
    testing::reset();
    files::put("data", "x.csv", rows(20_000));
    let sheet = open("always", |_| ());
    let query = Query {
        conditions: vec![Condition::new("id", Comparison::Equals, 12_345)],
        limit: 2,
        ..Query::default()
    };
    let first = sheet.read(&query).unwrap();
    assert_eq!(
        index::asked().len(),
        1,
        "the pass asks for the index of the key"
    );
    sheet.read(&query).unwrap();
    build(&sheet);
    let reads = files::reads();
    assert_eq!(sheet.read(&query).unwrap(), first);
    assert_eq!(
        (files::reads() - reads, index::ranges()),
        (1, 1),
        "one row is read"
    );
    assert!(index::asked().is_empty());
}

/// The index counts a line end behind the last row, and the file has none.
#[test]
fn the_last_row_without_a_line_end_is_changed() {
    let record = |members: Value| members.as_object().expect("an object").clone();
    for (verb, values, expected) in [
        (Verb::Update, json!({ "n": "z" }), "id,n\r\n1,a\r\n2,z"),
        (Verb::Delete, json!({}), "id,n\r\n1,a"),
    ] {
        testing::reset();
        files::put("data", "x.csv", "id,n\r\n1,a\r\n2,b");
        let sheet = open("always", |_| ());
        let query = Query {
            conditions: vec![Condition::new("id", Comparison::Equals, 2)],
            limit: 2,
            ..Query::default()
        };
        walk(&sheet, &query).unwrap();
        let ranges = index::ranges();
        let change = Change {
            key: record(json!({ "id": 2 })),
            record: record(values),
            ..Change::new(verb)
        };
        sheet.write(&change).unwrap();
        assert!(index::ranges() > ranges, "the row is found by the index");
        let content = files::content("data", "x.csv").unwrap();
        assert_eq!(String::from_utf8(content).unwrap(), expected);
    }
}

/// A list goes along the order until its page is full, or takes the rows that meet a condition.
#[test]
fn lists_read_what_they_need() {
    testing::reset();
    files::put("data", "x.csv", rows(20_000));
    let (sheet, passes) = (open("always", |_| ()), open("never", |_| ()));
    for (conditions, order, reads_max) in [
        (vec![], "id", 1),
        (vec![], "-rank", 1),
        (
            vec![Condition::new("status", Comparison::Equals, "open")],
            "id",
            2,
        ),
        (
            vec![Condition::new("rank", Comparison::AtLeast, 19_950)],
            "id",
            1,
        ),
        (
            vec![Condition::new("status", Comparison::Contains, "lose")],
            "id",
            2,
        ),
        // These lie between the two: more than are taken at once, and far behind in the order.
        (
            vec![
                Condition::new("rank", Comparison::AtMost, 600),
                Condition::new("id", Comparison::AtLeast, 19_000),
            ],
            "id",
            4,
        ),
    ] {
        let query = Query {
            conditions,
            order: vec![Order::parse(order)],
            limit: 50,
            ..Query::default()
        };
        let expected = passes.read(&query).unwrap();
        let _ = sheet.read(&query);
        build(&sheet);
        let reads = files::reads();
        assert_eq!(sheet.read(&query).unwrap(), expected, "{query:?}");
        assert!(
            files::reads() - reads <= reads_max,
            "{query:?}: {}",
            files::reads() - reads
        );
    }
}

/// A part of a text is looked for in the blocks that may hold it, and a part that no row has in none.
#[test]
fn parts_of_texts_are_looked_for_where_they_may_be() {
    testing::reset();
    let row = |row: usize| format!("{row},Name of {row}\n");
    files::put(
        "data",
        "x.csv",
        format!("id,name\n{}", (0..20_000).map(row).collect::<String>()),
    );
    let (sheet, passes) = (open("always", |_| ()), open("never", |_| ()));
    for (comparison, part, count, reads_max) in [
        (Comparison::Contains, "absent", 0, 0),
        (Comparison::Contains, "of 12345", 1, 1),
        (Comparison::Contains, "name of 12345", 0, 1),
        (Comparison::ContainsCi, "NAME OF 12345", 1, 1),
    ] {
        let conditions = vec![Condition::new("name", comparison, part)];
        let query = Query {
            conditions,
            order: vec![Order::parse("id")],
            limit: 50,
            ..Query::default()
        };
        let expected = passes.read(&query).unwrap();
        let found: Vec<Value> = weir_plugin_sdk::serde_json::from_str(&expected.records).unwrap();
        assert_eq!(found.len(), count, "{part}");
        let _ = sheet.read(&query);
        build(&sheet);
        let reads = files::reads();
        assert_eq!(sheet.read(&query).unwrap(), expected, "{part}");
        assert!(
            files::reads() - reads <= reads_max,
            "{part}: {}",
            files::reads() - reads
        );
    }
}

#[test]
fn a_changed_file_is_read_anew_until_its_index_is() {
    testing::reset();
    files::put("data", "x.csv", "id,n\n1,a\n2,b\n");
    let sheet = open("always", |_| ());
    let query = Query {
        limit: 5,
        ..Query::default()
    };
    sheet.read(&query).unwrap();
    build(&sheet);
    files::put("data", "x.csv", "id,n\n2,c\n1,d\n");
    let expected = r#"[{"id":1,"n":"d"},{"id":2,"n":"c"}]"#;
    assert_eq!(sheet.read(&query).unwrap().records, expected);
    let asked = index::asked();
    assert_eq!(asked.len(), 1);
    // The file changes once more while the index is built: what was read of the old one is not kept.
    while sheet.later(&asked[0]).unwrap() {}
    assert_eq!(sheet.read(&query).unwrap().records, expected);
}

/// Text that is appended behind an open quote belongs to the last row.
#[test]
fn a_file_that_ends_within_a_quote_gets_no_index() {
    testing::reset();
    files::put("data", "x.csv", "id,n\n1,a\n2,b\n");
    let sheet = open("always", |_| ());
    files::put("data", "x.csv", "id,n\n1,a\n2,\"b\n");
    let query = Query {
        limit: 5,
        ..Query::default()
    };
    let refused = sheet.read(&query).unwrap_err();
    let [work] = &index::asked()[..] else {
        panic!("one index is asked for")
    };
    let no_index = sheet.later(work).unwrap_err();
    assert!(no_index.message.contains("never closed"), "{no_index}");
    assert_eq!(sheet.read(&query).unwrap_err(), refused);
}

/// Returns the answer to a summary, by the cells that indexes hold once they are there.
fn summed(sheet: &SheetAdapter, query: &SummaryQuery) -> Result<SummaryPage, Error> {
    let _ = sheet.summarize(query);
    build(sheet);
    sheet.summarize(query)
}

fn summary() -> impl Strategy<Value = SummaryQuery> {
    use SummaryFunction::{Average, Count, Distinct, Maximum, Minimum, Sum};
    const COLUMNS: [&str; 4] = ["id", "name", "amount", "other"];
    let groups = proptest::collection::vec(0_usize..4, 0..3);
    let measures = proptest::collection::vec((0_usize..6, 0_usize..4), 0..4);
    (conditions(), groups, measures, 1_u32..30).prop_map(
        |(conditions, mut groups, measures, limit)| {
            groups.dedup();
            let groups = groups.into_iter().map(|at| SummaryGroup {
                name: COLUMNS[at].to_owned(),
                column: COLUMNS[at].to_owned(),
                step: None,
            });
            let measures = measures
                .into_iter()
                .zip(0..)
                .map(|((function, at), number)| {
                    let function = [Count, Sum, Average, Minimum, Maximum, Distinct][function];
                    SummaryMeasure {
                        name: format!("measure {number}"),
                        function,
                        column: (function != Count).then(|| COLUMNS[at].to_owned()),
                    }
                });
            SummaryQuery {
                conditions,
                groups: groups.collect(),
                measures: measures.collect(),
                limit,
                ..SummaryQuery::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn summaries_by_columns_and_by_passes_are_the_same(text in table(), queries in proptest::collection::vec(summary(), 1..6), kind in 0_usize..5, tail in table(), empties: bool, unit: bool) {
        use weir_plugin_sdk::Type::{Decimal, Integer, Number, String};
        testing::reset();
        files::put("data", "x.csv", text.as_bytes());
        let change = |shape: &mut Shape| {
            if empties {
                shape.misfits = weir_plugin_sdk::shape::Misfits::Empty;
                shape.null_words = vec!["b".to_owned(), "5".to_owned()];
            }
            if let Some(amount) = shape.fields.iter_mut().find(|field| field.key == "amount") {
                amount.kind = [amount.kind, Integer, Decimal, Number, String][kind];
                amount.nullable = true;
                let format = TextFormat {
                    grouping: Some(".".to_owned()),
                    unit: Some("# kg".to_owned()),
                    ..TextFormat::default()
                };
                amount.format = (unit && amount.kind != String).then(|| Box::new(format));
            }
        };
        let (passes, indexed) = (open("never", change), open("always", change));
        for query in &queries {
            prop_assert_eq!(summed(&indexed, query), summed(&passes, query));
        }
        // Others append to the file, and what was indexed is still so. Another column is indexed only then, and covers more.
        let old = files::stat("data", "x.csv").unwrap().version;
        let rows = tail.split_once('\n').map_or("", |(_, rows)| rows);
        files::put("data", "x.csv", format!("{text}\n{rows}").as_bytes());
        let new = files::stat("data", "x.csv").unwrap().version;
        weir_plugin_sdk::index::extend(&super::SheetSource::source(&indexed.settings), &old, &new).unwrap();
        for query in queries.iter().rev() {
            prop_assert_eq!(summed(&indexed, query), summed(&passes, query));
        }
    }
}

/// A summary reads the columns that it needs from their indexes, and nothing of the file.
#[test]
fn a_summary_reads_its_columns_alone() {
    testing::reset();
    files::put("data", "x.csv", rows(20_000));
    let (sheet, passes) = (open("always", |_| ()), open("never", |_| ()));
    let measure = |function, column: Option<&str>| SummaryMeasure {
        name: format!("{function:?}"),
        function,
        column: column.map(str::to_owned),
    };
    let status = SummaryGroup {
        name: "status".to_owned(),
        column: "status".to_owned(),
        step: None,
    };
    let query = SummaryQuery {
        groups: vec![status],
        measures: vec![
            measure(SummaryFunction::Count, None),
            measure(SummaryFunction::Sum, Some("rank")),
        ],
        limit: 10,
        ..SummaryQuery::default()
    };
    let count = SummaryQuery {
        conditions: vec![Condition::new("status", Comparison::Equals, "open")],
        measures: vec![measure(SummaryFunction::Count, None)],
        limit: 1,
        ..SummaryQuery::default()
    };
    for query in [query, count] {
        let expected = passes.summarize(&query).unwrap();
        sheet.summarize(&query).unwrap();
        build(&sheet);
        let reads = files::reads();
        assert_eq!(sheet.summarize(&query).unwrap(), expected);
        assert_eq!(files::reads(), reads, "{query:?}");
        assert!(index::asked().is_empty());
    }
}

fn count() -> SummaryQuery {
    let count = SummaryMeasure {
        name: "count".to_owned(),
        function: SummaryFunction::Count,
        column: None,
    };
    SummaryQuery {
        measures: vec![count],
        limit: 1,
        ..SummaryQuery::default()
    }
}

#[test]
fn records_are_counted_by_a_column_that_the_file_has() {
    testing::reset();
    files::put("data", "x.csv", rows(2_000));
    let gone = weir_plugin_sdk::Field::new("gone", weir_plugin_sdk::Type::String);
    let change = |shape: &mut Shape| shape.fields.insert(0, gone.clone());
    let (sheet, passes) = (open("always", change), open("never", change));
    let expected = passes.summarize(&count()).unwrap();
    assert_eq!(summed(&sheet, &count()).unwrap(), expected);
    let reads = files::reads();
    assert_eq!(sheet.summarize(&count()).unwrap(), expected);
    assert_eq!(files::reads(), reads);
}

#[test]
fn a_summary_passes_over_the_file_where_an_index_is_broken() {
    testing::reset();
    files::put("data", "x.csv", rows(2_000));
    let (sheet, passes) = (open("always", |_| ()), open("never", |_| ()));
    sheet.summarize(&count()).unwrap();
    let info = files::stat("data", "x.csv").unwrap();
    for column in index::asked() {
        let name = weir_plugin_sdk::index::Name {
            source: super::SheetSource::source(&sheet.settings),
            version: info.version.clone(),
            column,
        };
        let no_block = weir_plugin_sdk::index::Entry {
            key: vec![0; 11],
            at: 0,
            length: 0,
        };
        index::begin(&name).unwrap();
        index::add(&name, &[no_block], 0, info.size).unwrap();
        index::finish(&name).unwrap();
    }
    let ranges = index::ranges();
    let summed = sheet.summarize(&count());
    assert!(index::ranges() > ranges, "the index is read");
    assert_eq!(summed, passes.summarize(&count()));
}

/// A row is appended while the columns of a summary are read: their indexes go to the new version in the middle of it.
#[test]
fn a_summary_counts_a_row_that_is_written_meanwhile() {
    testing::reset();
    files::put("data", "x.csv", rows(2_000));
    let (sheet, passes) = (open("always", |_| ()), open("never", |_| ()));
    let groups = SummaryQuery {
        groups: vec![SummaryGroup {
            name: "status".to_owned(),
            column: "status".to_owned(),
            step: None,
        }],
        limit: 10,
        ..count()
    };
    sheet.summarize(&groups).unwrap();
    build(&sheet);
    // A pass would keep the small file in memory.
    let before = sheet.summarize(&groups).unwrap();
    let source = super::SheetSource::source(&sheet.settings);
    let mut is_written = false;
    index::before_range(move || {
        if !std::mem::replace(&mut is_written, true) {
            let old = files::stat("data", "x.csv").unwrap().version;
            let text = files::content("data", "x.csv").unwrap();
            files::put("data", "x.csv", [&text[..], b"2000,new,5\n"].concat());
            let new = files::stat("data", "x.csv").unwrap().version;
            weir_plugin_sdk::index::extend(&source, &old, &new).unwrap();
        }
    });
    let ranges = index::ranges();
    let page = sheet.summarize(&groups).unwrap();
    assert!(index::ranges() > ranges, "columns are read");
    assert_ne!(page, before);
    assert_eq!(page, passes.summarize(&groups).unwrap());
}

/// Another program is in the middle of writing the file: what was read of it fails, and is read again.
#[test]
fn a_summary_waits_for_a_file_that_is_half_written() {
    testing::reset();
    let whole = rows(50);
    files::put("data", "x.csv", whole.clone());
    let sheet = open("never", |_| ());
    let half = format!("{whole}50,\"open");
    let mut contents = vec![format!("{whole}50,open,1\n"), half];
    files::before_read(move || {
        if let Some(content) = contents.pop() {
            files::put("data", "x.csv", content);
        }
    });
    let page = sheet.summarize(&count()).unwrap();
    assert_eq!(page.records, r#"[{"count":51}]"#);
}
