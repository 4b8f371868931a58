//! Nasty files, whole: through the adapter as the gateway uses it.

use weir_plugin_sdk::serde_json::{self, Value, json};
use weir_plugin_sdk::summary::{SummaryFunction, SummaryGroup, SummaryMeasure, SummaryQuery};
use weir_plugin_sdk::testing::{self, files, progress};
use weir_plugin_sdk::{Adapter, Change, Comparison, Condition, Error, Order, Query, Shape, Verb};

use crate::SheetAdapter;

fn settings(path: &str) -> String {
    json!({ "connection": "data", "path": path }).to_string()
}

/// Puts a file of its own for a test, and describes and opens it.
fn open(content: &str) -> (SheetAdapter, Shape) {
    open_with(content, |_| {})
}

fn open_with(content: &str, change: impl FnOnce(&mut Shape)) -> (SheetAdapter, Shape) {
    testing::reset();
    crate::cache::make_room(crate::cache::BYTES_MAX);
    files::put("data", "x.csv", content);
    let mut shape = SheetAdapter::describe(&settings("x.csv")).unwrap();
    change(&mut shape);
    (
        SheetAdapter::open(&settings("x.csv"), &shape).unwrap(),
        shape,
    )
}

fn open_keyed(content: &str) -> (SheetAdapter, Shape) {
    open_with(content, |shape| shape.key = vec!["id".into()])
}

fn types(shape: &Shape) -> Vec<String> {
    let name = |field: &weir_plugin_sdk::Field| {
        let kind = serde_json::to_value(field.kind).unwrap();
        format!(
            "{}:{}{}",
            field.key,
            kind.as_str().unwrap(),
            if field.nullable { "?" } else { "" }
        )
    };
    shape.fields.iter().map(name).collect()
}

fn query() -> Query {
    Query {
        limit: 100,
        ..Query::default()
    }
}

fn all(sheet: &SheetAdapter) -> String {
    sheet.read(&query()).unwrap().records
}

fn create(record: Value) -> Change {
    Change {
        record: record.as_object().unwrap().clone(),
        ..Change::new(Verb::Create)
    }
}

fn update(key: Value, record: Value) -> Change {
    let (key, record) = (
        key.as_object().unwrap().clone(),
        record.as_object().unwrap().clone(),
    );
    Change {
        key,
        record,
        ..Change::new(Verb::Update)
    }
}

fn delete(key: Value) -> Change {
    Change {
        key: key.as_object().unwrap().clone(),
        ..Change::new(Verb::Delete)
    }
}

fn content() -> String {
    String::from_utf8(files::content("data", "x.csv").unwrap()).unwrap()
}

#[test]
fn nasty_files_are_read_as_documented() {
    for (name, content, columns, records) in [
        (
            "plain",
            "id,name\n1,Ann\n2,Bob\n",
            "id:integer name:string",
            r#"[{"id":1,"name":"Ann"},{"id":2,"name":"Bob"}]"#,
        ),
        (
            "byte order mark, CRLF",
            "\u{feff}id,n\r\n1,a\r\n",
            "id:integer n:string",
            r#"[{"id":1,"n":"a"}]"#,
        ),
        (
            "two byte order marks",
            "\u{feff}\u{feff}\"id\",\"n\"\n\"1\",\"a\"\n",
            "id:integer n:string",
            r#"[{"id":1,"n":"a"}]"#,
        ),
        (
            "the sign of DOS programs behind the last line",
            "id,n\r\n1,a\r\n\u{1a}",
            "id:integer n:string",
            r#"[{"id":1,"n":"a"}]"#,
        ),
        (
            "no line end at the end",
            "id\n1",
            "id:integer",
            r#"[{"id":1}]"#,
        ),
        (
            "old line ends",
            "id,n\r1,a\r",
            "id:integer n:string",
            r#"[{"id":1,"n":"a"}]"#,
        ),
        (
            "old line ends, other marks below the header",
            "id;n\r1;a,b,c\r2;\0\r",
            "id:integer n:string",
            r#"[{"id":1,"n":"a,b,c"},{"id":2,"n":"\u0000"}]"#,
        ),
        (
            "semicolons",
            "id;n\n1;2,5\n",
            "id:integer n:string",
            r#"[{"id":1,"n":"2,5"}]"#,
        ),
        (
            "quoted newline and quote",
            "id,n\n1,\"a\n\"\"b\"\"\"\n",
            "id:integer n:string",
            r#"[{"id":1,"n":"a\n\"b\""}]"#,
        ),
        (
            "leading zeros",
            "id,zip\n1,01234\n",
            "id:integer zip:string",
            r#"[{"id":1,"zip":"01234"}]"#,
        ),
        (
            "formula-like text",
            "id,n\n1,=1+1\n",
            "id:integer n:string",
            r#"[{"id":1,"n":"=1+1"}]"#,
        ),
        (
            "long digits",
            "id,n\n1,9007199254740993\n",
            "id:integer n:decimal",
            r#"[{"id":1,"n":"9007199254740993"}]"#,
        ),
        (
            "empty cells",
            "id,n,t\n1,,\n2,5,x\n",
            "id:integer n:integer? t:string?",
            r#"[{"id":1,"n":null,"t":null},{"id":2,"n":5,"t":"x"}]"#,
        ),
        (
            "duplicate headers",
            "id,a,a\n1,2,3\n",
            "id:integer a:integer a_2:integer",
            r#"[{"id":1,"a":2,"a_2":3}]"#,
        ),
        (
            "blank header",
            "id,,c\n1,2,3\n",
            "id:integer column_2:integer c:integer",
            r#"[{"id":1,"column_2":2,"c":3}]"#,
        ),
        ("blank column", "id,\n1,\n", "id:integer", r#"[{"id":1}]"#),
        (
            "trailing blank rows",
            "id,n\n1,a\n,\n\n,\n",
            "id:integer n:string",
            r#"[{"id":1,"n":"a"}]"#,
        ),
        (
            "ragged rows",
            "id,n\n1\n2,b,c\n",
            "id:integer n:string? column_3:string?",
            r#"[{"id":1,"n":null,"column_3":null},{"id":2,"n":"b","column_3":"c"}]"#,
        ),
        ("header only", "id,n\n", "id:string n:string?", "[]"),
        (
            "columns named like results",
            "status,code\nopen,x\n",
            "status:string code:string",
            r#"[{"status":"open","code":"x"}]"#,
        ),
        (
            "dates",
            "d,t\n2024-02-29,2024-02-29 10:00\n",
            "d:date t:datetime",
            r#"[{"d":"2024-02-29","t":"2024-02-29T10:00:00Z"}]"#,
        ),
        (
            "booleans",
            "k,b\nx,TRUE\ny,false\n",
            "k:string b:boolean",
            r#"[{"k":"x","b":true},{"k":"y","b":false}]"#,
        ),
        (
            "numbers",
            "k,n\nx,1\ny,2.50\n",
            "k:string n:number",
            r#"[{"k":"x","n":1},{"k":"y","n":2.5}]"#,
        ),
        (
            "unicode",
            "ключ\nЖ\n日本\n",
            "ключ:string",
            r#"[{"ключ":"Ж"},{"ключ":"日本"}]"#,
        ),
    ] {
        let (sheet, shape) = open(content);
        assert_eq!(types(&shape).join(" "), columns, "{name}");
        assert_eq!(all(&sheet), records, "{name}");
        let reads = files::reads();
        assert_eq!(all(&sheet), records, "{name}: from the cache");
        assert_eq!(files::reads(), reads, "{name}: nothing is read twice");
    }
}

#[test]
fn hopeless_files_are_refused_with_a_reason() {
    testing::reset();
    for (content, part) in [
        (b"".to_vec(), "header"),
        (b"\n\n\n".to_vec(), "header"),
        (b"id,n\n1,\xff\n".to_vec(), "Row 2 is not UTF-8"),
        (b"id,n\n\xc3,\xa9\n".to_vec(), "UTF-8"),
        (b"\xff\xfei\x00d\x00".to_vec(), "UTF-16"),
        (b"PK\x03\x04....".to_vec(), "ZIP"),
        (
            [b"id,n\n1,\"never closed".to_vec(), vec![b'x'; 3 << 20]].concat(),
            "longer than 1 MiB",
        ),
        (vec![b','; 5_000], "columns"),
    ] {
        files::put("data", "x.csv", content);
        let error = SheetAdapter::describe(&settings("x.csv")).unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }
    assert!(
        SheetAdapter::describe(&settings("missing.csv"))
            .unwrap_err()
            .is("unavailable")
    );
    assert!(
        SheetAdapter::describe(&json!({"connection": "other", "path": "x.csv"}).to_string())
            .unwrap_err()
            .is("denied")
    );
}

#[test]
fn settings_are_strict() {
    for (settings, field) in [
        (json!({"connection": "data"}), "settings"),
        (
            json!({"connection": "data", "path": "x.csv", "colour": 1}),
            "settings",
        ),
        (json!({"connection": "data", "path": "x.pdf"}), "path"),
        (
            json!({"connection": "data", "path": "x.csv", "delimiter": "::"}),
            "delimiter",
        ),
        (
            json!({"connection": "data", "path": "x.csv", "sheet": "a"}),
            "sheet",
        ),
        (
            json!({"connection": "data", "path": "x.csv", "header_row": 0}),
            "header_row",
        ),
        (
            json!({"connection": "data", "path": "x.xlsx", "delimiter": ","}),
            "delimiter",
        ),
    ] {
        let error = SheetAdapter::describe(&settings.to_string()).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field), "{settings}");
    }
}

#[test]
fn the_key_is_a_column_named_like_one_without_doubles() {
    for (content, key) in [
        ("name,ID\nx,1\ny,2\n", vec!["ID"]),
        ("group,code\na,x\na,y\n", vec!["code"]),
        ("id,code\n1,1\n1,1\n", vec![]),
        ("id,code\n1,x\n1,y\n", vec!["code"]),
        ("code,Invoice No.\n1,x\n2,y\n", vec!["Invoice No."]),
        ("id,sku\n,1\n2,2\n", vec!["sku"]),
        // Amounts and names that happen to differ make no key.
        ("Amount (EUR),Name\n1,Ann\n2,Bob\n", vec![]),
        ("id\n", vec!["id"]),
        ("code\n", vec![]),
    ] {
        let (_, shape) = open(content);
        assert_eq!(shape.key, key, "{content:?}");
    }
}

/// A file as a spreadsheet program of many countries saves it.
const EUROPE: &str = "\u{feff}Rechnung Nr;Kunde;Betrag (EUR);Bezahlt am;Menge\r\n\
    R-1;Müller;1.234,50;28/2/2026;1.000\r\n\
    R-2;Åse;12,00;1/3/2026;20\r\n\
    R-3;Ann;-7,25;;12.500\r\n";

/// Reads the shape as a draft of it says under `shape:`.
fn as_read(shape: &mut Shape) {
    for field in &mut shape.fields {
        if let [one] = field.readings.as_slice() {
            (field.kind, field.format) = (one.kind, Some(Box::new(one.format.clone())));
        }
    }
}

#[test]
fn a_spreadsheet_from_europe_is_described_as_it_can_be_read() {
    let (_, shape) = open(EUROPE);
    assert_eq!(
        types(&shape).join(" "),
        "Rechnung Nr:string Kunde:string Betrag (EUR):string Bezahlt am:string? Menge:number"
    );
    let readings: Vec<Value> = shape
        .fields
        .iter()
        .map(|field| serde_json::to_value(&field.readings).unwrap())
        .collect();
    assert_eq!(readings[..2], [json!([]), json!([])]);
    assert_eq!(
        readings[2],
        json!([{ "type": "number", "format": { "decimal": ",", "grouping": "." } }])
    );
    assert_eq!(
        readings[3],
        json!([{ "type": "date", "format": { "date": "%-d/%-m/%Y" } }])
    );
    // The amounts have points between their groups, so these are groups as well.
    assert_eq!(
        readings[4],
        json!([{ "type": "integer", "format": { "grouping": "." } }])
    );
    assert_eq!(shape.key, ["Rechnung Nr"]);
}

/// Beside a column with decimal commas `1.234` may be 1234 or a little over one.
#[test]
fn points_in_a_file_of_commas_are_asked_for() {
    let (_, shape) = open("id;price;weight\n1;1,5;1.234\n2;2,25;12.500\n");
    assert_eq!(
        serde_json::to_value(&shape.fields[2].readings).unwrap(),
        json!([{ "type": "integer", "format": { "grouping": "." } }, { "type": "number", "format": {} }])
    );
    let (_, shape) = open("id;price;weight\n1;1,5;1.234\n2;2,25;12.5\n");
    assert!(shape.fields[2].readings.is_empty());
    let (_, shape) = open("id;amount\n1;1.234\n2;12.500\n");
    assert_eq!(
        shape.fields[1].readings.len(),
        2,
        "nothing else in the file says what a point is"
    );
    let (_, shape) = open("id;amount;price\n1;1.234;1.5\n2;12.500;0.25\n");
    assert!(
        shape.fields[1].readings.is_empty(),
        "another column has decimal points"
    );
}

#[test]
fn a_spreadsheet_from_europe_is_filtered_ordered_and_written() {
    let (sheet, _) = open_with(EUROPE, as_read);
    let ids = |query: &Query| -> Vec<String> {
        let records: Vec<Value> =
            serde_json::from_str(&sheet.read(query).unwrap().records).unwrap();
        records
            .iter()
            .map(|record| record["Rechnung Nr"].as_str().unwrap().to_owned())
            .collect()
    };
    let first: Vec<Value> = serde_json::from_str(&all(&sheet)).unwrap();
    assert_eq!(
        (&first[0]["Betrag (EUR)"], &first[0]["Bezahlt am"]),
        (&json!(1234.5), &json!("2026-02-28"))
    );
    assert_eq!(first[2]["Bezahlt am"], Value::Null);
    for (column, comparison, value, expected) in [
        (
            "Betrag (EUR)",
            Comparison::AtLeast,
            json!(12),
            vec!["R-1", "R-2"],
        ),
        ("Betrag (EUR)", Comparison::AtMost, json!(0), vec!["R-3"]),
        (
            "Betrag (EUR)",
            Comparison::Equals,
            json!(1234.5),
            vec!["R-1"],
        ),
        (
            "Betrag (EUR)",
            Comparison::OneOf,
            json!([12, -7.25]),
            vec!["R-2", "R-3"],
        ),
        (
            "Bezahlt am",
            Comparison::AtLeast,
            json!("2026-03-01"),
            vec!["R-2"],
        ),
        (
            "Bezahlt am",
            Comparison::Equals,
            json!("2026-02-28"),
            vec!["R-1"],
        ),
        ("Bezahlt am", Comparison::IsEmpty, json!(true), vec!["R-3"]),
    ] {
        let query = Query {
            conditions: vec![Condition::new(column, comparison, value.clone())],
            ..query()
        };
        assert_eq!(ids(&query), expected, "{column} {comparison} {value}");
    }
    let by = |order: &str| {
        ids(&Query {
            order: vec![Order::parse(order)],
            ..query()
        })
    };
    assert_eq!(by("Betrag (EUR)"), ["R-3", "R-2", "R-1"]);
    assert_eq!(by("-Bezahlt am"), ["R-2", "R-1", "R-3"]);

    let record = json!({ "Rechnung Nr": "R-4", "Kunde": "Ört", "Betrag (EUR)": 98765.4, "Bezahlt am": "2026-02-03", "Menge": 7000 });
    let answered: Value =
        serde_json::from_str(&sheet.write(&create(record.clone())).unwrap()).unwrap();
    assert_eq!(answered, record);
    assert_eq!(
        content(),
        format!("{EUROPE}R-4;Ört;98.765,4;3/2/2026;7.000\r\n")
    );
    sheet
        .write(&update(
            json!({ "Rechnung Nr": "R-2" }),
            json!({ "Betrag (EUR)": 0.5 }),
        ))
        .unwrap();
    assert!(
        content().contains("R-2;Åse;0,50;1/3/2026;20\r\n"),
        "{}",
        content()
    );
    // A condition beside the key compares values, not text.
    let guarded = Change {
        conditions: vec![Condition::new(
            "Betrag (EUR)",
            Comparison::Equals,
            json!(98765.4),
        )],
        ..delete(json!({ "Rechnung Nr": "R-4" }))
    };
    sheet.write(&guarded).unwrap();
    assert!(!content().contains("R-4"));
}

#[test]
fn a_changed_cell_is_spelled_as_it_was() {
    let (sheet, _) =
        open("id,paid,at,price\n1,TRUE,2026-02-28 14:30,12.00\n2,True,2026-02-28 14:30:15,7\n");
    let change = |id: u64, paid: bool| {
        let record = json!({"paid": paid, "at": "2026-03-01T09:00:00Z", "price": 0.5});
        sheet.write(&update(json!({ "id": id }), record)).unwrap();
    };
    change(1, false);
    change(2, true);
    assert_eq!(
        content(),
        "id,paid,at,price\n1,FALSE,2026-03-01 09:00,0.50\n2,True,2026-03-01 09:00:00,0.5\n"
    );
}

#[test]
fn a_value_that_its_column_cannot_hold_whole_is_refused() {
    let (sheet, _) = open_with("id,at\n1,28.02.2026 14:30\n", as_read);
    assert_eq!(all(&sheet), r#"[{"id":1,"at":"2026-02-28T14:30:00Z"}]"#);
    let before = content();
    let error = sheet
        .write(&create(json!({ "id": 2, "at": "2026-02-28T14:30:15Z" })))
        .unwrap_err();
    assert_eq!(error.field.as_deref(), Some("at"), "{error:?}");
    assert!(
        error.message.contains("%d.%m.%Y %H:%M"),
        "{}",
        error.message
    );
    assert_eq!(content(), before);
}

#[test]
fn a_summary_needs_no_column_that_it_does_not_use() {
    let (sheet, _) = open_with("id,city,secret\n1,Oslo,x\n2,Rome,y\n3,Oslo,z\n", |shape| {
        shape.key = vec!["secret".into()];
    });
    files::put("data", "x.csv", "id,city\n1,Oslo\n2,Rome\n3,Oslo\n");
    let measure = SummaryMeasure {
        name: "count".into(),
        function: SummaryFunction::Count,
        column: None,
    };
    let mut query = SummaryQuery {
        measures: vec![measure],
        limit: 10,
        ..SummaryQuery::default()
    };
    let counted = sheet.summarize(&query).unwrap();
    assert_eq!(counted.records, r#"[{"count":3}]"#);
    query.groups.push(SummaryGroup {
        name: "city".into(),
        column: "city".into(),
        step: None,
    });
    let grouped = sheet.summarize(&query).unwrap();
    assert_eq!(
        grouped.records,
        r#"[{"city":"Oslo","count":2},{"city":"Rome","count":1}]"#
    );
}

#[test]
fn a_column_that_is_gone_is_named_and_others_go_on() {
    let (sheet, _) = open("id,name,city\n1,Ann,Oslo\n");
    files::put("data", "x.csv", "id,city,new\n1,Oslo,?\n");
    let only = Query {
        columns: vec!["city".into()],
        ..query()
    };
    assert_eq!(sheet.read(&only).unwrap().records, r#"[{"city":"Oslo"}]"#);
    let error = sheet.read(&query()).unwrap_err();
    assert!(error.is("source_changed"));
    assert_eq!(error.field.as_deref(), Some("name"));
}

#[test]
fn a_cell_that_is_not_of_its_type_is_passed_on() {
    let (sheet, _) = open("id,n\n1,5\n");
    files::put("data", "x.csv", "id,n\n1,five\n2,6\n");
    assert_eq!(all(&sheet), r#"[{"id":1,"n":"five"},{"id":2,"n":6}]"#);
}

#[test]
fn conditions_order_and_limit_choose_records() {
    let (sheet, _) = open("id,n,t\n3,1.5,b\n1,,a\n2,10,\n10,2,B\n");
    let ids = |conditions: Vec<Condition>, order: &[&str]| {
        let order = order.iter().map(|by| Order::parse(by)).collect();
        let query = Query {
            conditions,
            order,
            columns: vec!["id".into()],
            ..query()
        };
        let records: Vec<Value> =
            serde_json::from_str(&sheet.read(&query).unwrap().records).unwrap();
        records
            .iter()
            .map(|record| record["id"].as_i64().unwrap())
            .collect::<Vec<_>>()
    };
    use Comparison::*;
    assert_eq!(ids(vec![], &[]), [1, 2, 3, 10]);
    assert_eq!(ids(vec![], &["-id"]), [10, 3, 2, 1]);
    assert_eq!(ids(vec![], &["n"]), [3, 10, 2, 1]);
    assert_eq!(ids(vec![], &["-n"]), [2, 10, 3, 1]);
    assert_eq!(ids(vec![], &["t"]), [10, 1, 3, 2]);
    assert_eq!(ids(vec![Condition::new("id", Equals, 3)], &[]), [3]);
    assert_eq!(ids(vec![Condition::new("id", Equals, 3.0)], &[]), [3]);
    assert_eq!(
        ids(vec![Condition::new("id", Equals, Value::Null)], &[]),
        [0_i64; 0]
    );
    assert_eq!(ids(vec![Condition::new("t", Equals, "b")], &[]), [3]);
    assert_eq!(ids(vec![Condition::new("t", Equals, "")], &[]), [0_i64; 0]);
    assert_eq!(
        ids(vec![Condition::new("t", ContainsCi, "B")], &[]),
        [3, 10]
    );
    assert_eq!(ids(vec![Condition::new("t", IsEmpty, true)], &[]), [2]);
    assert_eq!(
        ids(
            vec![
                Condition::new("n", AtLeast, 2),
                Condition::new("id", NotEquals, 10)
            ],
            &[]
        ),
        [2]
    );
    assert_eq!(
        ids(vec![Condition::new("id", OneOf, json!([10, 1, 99]))], &[]),
        [1, 10]
    );
    let error = sheet
        .read(&Query {
            order: vec![Order::parse("x")],
            ..query()
        })
        .unwrap_err();
    assert_eq!(error.field.as_deref(), Some("x"));
}

/// Walks all pages; before each next page `meanwhile` may change the file.
fn walk(
    sheet: &SheetAdapter,
    order: &[&str],
    limit: u32,
    mut meanwhile: impl FnMut(usize),
) -> Vec<Value> {
    let mut records = Vec::new();
    let mut cursor = None;
    for page in 0.. {
        assert!(page < 1_000, "the walk ends");
        let order = order.iter().map(|by| Order::parse(by)).collect();
        let answer = sheet
            .read(&Query {
                order,
                limit,
                cursor,
                ..query()
            })
            .unwrap();
        let page_records: Vec<Value> = serde_json::from_str(&answer.records).unwrap();
        assert!(page_records.len() <= limit as usize);
        records.extend(page_records);
        cursor = answer.next;
        if cursor.is_none() {
            break;
        }
        meanwhile(page);
    }
    records
}

#[test]
fn a_walk_yields_each_record_once_while_rows_are_inserted() {
    let rows: String = (0..50).map(|n| format!("{},{}\n", n * 2, n % 3)).collect();
    let base = format!("id,n\n{rows}");
    for order in [&["id"][..], &["-id"], &["n"], &["-n", "id"]] {
        for limit in [1, 7, 100] {
            let (sheet, _) = open(&base);
            let mut text = base.clone();
            let seen = walk(&sheet, order, limit, |page| {
                // Odd ids, before and behind the cursor.
                if page >= 40 {
                    return;
                }
                let id = page * 2 + 1;
                text = text.replacen("id,n\n", &format!("id,n\n{id},{}\n", page % 3), 1);
                files::put("data", "x.csv", text.clone());
            });
            let mut ids: Vec<i64> = seen
                .iter()
                .map(|record| record["id"].as_i64().unwrap())
                .collect();
            ids.sort_unstable();
            let doubles = ids.windows(2).filter(|pair| pair[0] == pair[1]).count();
            assert_eq!(doubles, 0, "{order:?} by {limit}");
            assert!(
                (0..50).all(|n| ids.binary_search(&(n * 2)).is_ok()),
                "{order:?} by {limit}: {ids:?}"
            );
        }
    }
}

#[test]
fn records_without_a_key_or_with_a_double_one_are_all_walked() {
    let rows: String = (0..20).map(|n| format!("{},x\n", n / 10)).collect();
    for key in [vec![], vec!["a".to_owned()]] {
        for order in [&[][..], &["a"], &["-b"]] {
            for limit in [1, 3, 10, 19, 20] {
                let (sheet, _) =
                    open_with(&format!("a,b\n{rows}"), |shape| shape.key = key.clone());
                assert_eq!(
                    walk(&sheet, order, limit, |_| {}).len(),
                    20,
                    "{key:?} {order:?} by {limit}"
                );
            }
        }
    }
}

#[test]
fn a_foreign_cursor_is_refused() {
    let (sheet, _) = open("id\n1\n2\n");
    for cursor in ["", "[]", "[1]", "[1,-1]", "{}", "[1,2,3]"] {
        let error = sheet
            .read(&Query {
                cursor: Some(cursor.into()),
                ..query()
            })
            .unwrap_err();
        assert_eq!(error.field.as_deref(), Some("cursor"), "{cursor}");
    }
}

#[test]
fn a_write_changes_its_row_and_no_other_byte() {
    for (name, before, change, after, record) in [
        (
            "create",
            "id,n\n1,a\n",
            create(json!({"id": 7, "n": "b"})),
            "id,n\n1,a\n7,b\n",
            r#"{"id":7,"n":"b"}"#,
        ),
        (
            "create, counted",
            "id,n\n1,a\n5,b\n",
            create(json!({"n": "c"})),
            "id,n\n1,a\n5,b\n6,c\n",
            r#"{"id":6,"n":"c"}"#,
        ),
        (
            "create, CRLF, no end",
            "id,n\r\n1,a",
            create(json!({"id": 2, "n": "b"})),
            "id,n\r\n1,a\r\n2,b",
            r#"{"id":2,"n":"b"}"#,
        ),
        (
            "create, CR",
            "id,n\r1,a\r",
            create(json!({"id": 2, "n": "b"})),
            "id,n\r1,a\r2,b\r",
            r#"{"id":2,"n":"b"}"#,
        ),
        (
            "create, all quoted",
            "\"id\",\"n\"\n\"1\",\"a\"\n",
            create(json!({"id": 2, "n": "b"})),
            "\"id\",\"n\"\n\"1\",\"a\"\n\"2\",\"b\"\n",
            r#"{"id":2,"n":"b"}"#,
        ),
        (
            "create, needs quotes",
            "id,n\n1,a\n",
            create(json!({"id": 2, "n": "x,\"y\"\nz"})),
            "id,n\n1,a\n2,\"x,\"\"y\"\"\nz\"\n",
            r#"{"id":2,"n":"x,\"y\"\nz"}"#,
        ),
        (
            "create, formula-like",
            "id,n\n1,a\n",
            create(json!({"id": 2, "n": "=1+1"})),
            "id,n\n1,a\n2,=1+1\n",
            r#"{"id":2,"n":"=1+1"}"#,
        ),
        (
            "update",
            "\u{feff}id,n\r\n\"1\",\"a\"\r\n2,b\r\n",
            update(json!({"id": 2}), json!({"n": "c"})),
            "\u{feff}id,n\r\n\"1\",\"a\"\r\n2,c\r\n",
            r#"{"id":2,"n":"c"}"#,
        ),
        (
            "update, row before quoted newline",
            "id,n\n1,a\n2,\"\n\"\n",
            update(json!({"id": 1}), json!({"n": "z"})),
            "id,n\n1,z\n2,\"\n\"\n",
            r#"{"id":1,"n":"z"}"#,
        ),
        (
            "update of the quoted newline",
            "id,n\n1,a\n\n2,\"\n\"",
            update(json!({"id": 2}), json!({"n": "z"})),
            "id,n\n1,a\n\n2,z",
            r#"{"id":2,"n":"z"}"#,
        ),
        (
            "update beside text behind a closed quote",
            "id,n,c\r\n1,\"a\"b,x\r\n",
            update(json!({"id": 1}), json!({"c": "y"})),
            "id,n,c\r\n1,\"a\"b,y\r\n",
            r#"{"id":1,"n":"ab","c":"y"}"#,
        ),
        (
            "update beside cells in quotes",
            "id,n,c\n\"1\",\"a\" ,x\n",
            update(json!({"id": 1}), json!({"n": "a ", "c": "y"})),
            "id,n,c\n\"1\",\"a\" ,y\n",
            r#"{"id":1,"n":"a ","c":"y"}"#,
        ),
        (
            "update of the key",
            "id,n\n1,a\n2,b\n",
            update(json!({"id": 1}), json!({"id": 9})),
            "id,n\n9,a\n2,b\n",
            r#"{"id":9,"n":"a"}"#,
        ),
        (
            "delete",
            "id,n\n1,a\n2,b\n3,c\n",
            delete(json!({"id": 2})),
            "id,n\n1,a\n3,c\n",
            r#"{"id":2,"n":"b"}"#,
        ),
        (
            "delete the last, no end",
            "id,n\r\n1,a\r\n2,b",
            delete(json!({"id": 2})),
            "id,n\r\n1,a",
            r#"{"id":2,"n":"b"}"#,
        ),
        (
            "delete the only",
            "id,n\n1,a\n",
            delete(json!({"id": 1})),
            "id,n\n",
            r#"{"id":1,"n":"a"}"#,
        ),
    ] {
        let (sheet, _) = open(before);
        assert_eq!(sheet.write(&change).as_deref(), Ok(record), "{name}");
        assert_eq!(content(), after, "{name}");
        // The answer is what reading gives.
        if change.verb != Verb::Delete {
            let read: Vec<Value> = serde_json::from_str(&all(&sheet)).unwrap();
            assert!(
                read.contains(&serde_json::from_str(record).unwrap()),
                "{name}"
            );
        }
    }
}

#[test]
fn writes_that_cannot_be_are_refused_and_change_nothing() {
    let text = "id,n,t\n1,5,a\n2,6,b\n2,7,c\n";
    for (change, code, field) in [
        (
            create(json!({"id": 1, "n": 1, "t": "x"})),
            "conflict",
            Some("id"),
        ),
        (create(json!({"id": 9, "t": "x"})), "invalid", Some("n")),
        (
            create(json!({"id": 9, "n": "many", "t": "x"})),
            "invalid",
            Some("n"),
        ),
        (
            create(json!({"id": 9, "n": null, "t": "x"})),
            "invalid",
            Some("n"),
        ),
        (
            create(json!({"id": 9, "n": 1, "other": "x"})),
            "invalid",
            Some("other"),
        ),
        (create(json!({"n": 1, "t": "x"})), "invalid", Some("id")),
        (update(json!({"id": 3}), json!({"n": 1})), "not_found", None),
        (update(json!({"id": 2}), json!({"n": 1})), "ambiguous", None),
        (update(json!({}), json!({"n": 1})), "invalid", Some("id")),
        (update(json!({"id": 1}), json!({"id": 2})), "conflict", None),
        (delete(json!({"id": 3})), "not_found", None),
        (Change::new(Verb::Call), "unsupported", None),
    ] {
        let (sheet, _) = open_with(text, |shape| shape.key = vec!["id".into()]);
        let error: Error = sheet.write(&change).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.field.as_deref()),
            (code, field),
            "{change:?}"
        );
        assert_eq!(content(), text, "{change:?}");
    }
}

/// A blank row is no record: an update would have deleted it without a word.
#[test]
fn an_update_leaves_no_blank_row() {
    for (text, record) in [
        ("id,n\na,x\n", json!({"id": "", "n": ""})),
        ("id\na\n", json!({"id": ""})),
        ("id\na\n", json!({"id": "\u{1a}"})),
    ] {
        let (sheet, _) = open_keyed(text);
        let error = sheet
            .write(&update(json!({"id": "a"}), record))
            .unwrap_err();
        assert!(error.is("invalid"), "{text:?}: {error}");
        assert_eq!(content(), text);
    }
}

/// A row of over 1 MiB is refused by all that read the file, so that one record would cost every other.
#[test]
fn a_record_that_no_row_can_have_is_not_written() {
    let text = "id,n,m\n1,a,b\n";
    let long = "x".repeat(600_000);
    let (sheet, _) = open_keyed(text);
    let both = create(json!({"id": 2, "n": long, "m": long}));
    let error = sheet.write(&both).unwrap_err();
    assert!(
        error.is("invalid") && error.message.contains("1 MiB"),
        "{error}"
    );
    assert_eq!(content(), text);
    let set = |column: &str| update(json!({"id": 1}), json!({ column: long }));
    sheet.write(&set("n")).unwrap();
    let error = sheet.write(&set("m")).unwrap_err();
    assert!(
        error.is("invalid") && error.message.contains("1 MiB"),
        "{error}"
    );
    assert_eq!(content(), format!("id,n,m\n1,{long},b\n"));
    assert!(all(&sheet).contains(&long));
}

/// Programs that write Ctrl-Z behind the last line read nothing behind it.
#[test]
fn a_row_is_appended_before_the_sign_that_ends_the_file() {
    let (sheet, _) = open_keyed("id,note\r\n1,a\r\n\u{1a}");
    sheet.write(&create(json!({"id": 2, "note": "b"}))).unwrap();
    assert_eq!(content(), "id,note\r\n1,a\r\n2,b\r\n\u{1a}");
    assert_eq!(all(&sheet), r#"[{"id":1,"note":"a"},{"id":2,"note":"b"}]"#);
}

/// A version published while a second byte order mark was part of the header keeps its column.
#[test]
fn a_column_recorded_with_a_byte_order_mark_is_found() {
    let (sheet, _) = open_with("id,note\n1,a\n", |shape| {
        shape.fields[0].key = "\u{feff}id".into();
        shape.key.clear();
    });
    assert_eq!(all(&sheet), "[{\"\u{feff}id\":1,\"note\":\"a\"}]");
}

/// A row behind an open quote would be no row of its own.
#[test]
fn nothing_is_appended_behind_a_quote_that_is_never_closed() {
    for (text, is_counted) in [
        ("id,note\n1,\"abc", true),
        ("id,note\n1,\"abc\n", true),
        ("id,note\n1,a\n2,\"", true),
        ("id,note\nx,\"abc", false),
        ("id,\"note", false),
    ] {
        let id = if is_counted { "1" } else { "x" };
        let (sheet, _) = open_keyed(&format!("id,note\n{id},a\n"));
        files::put("data", "x.csv", text);
        let record = if is_counted {
            json!({"note": "x"})
        } else {
            json!({"id": "y", "note": "x"})
        };
        let refused = sheet.write(&create(record)).unwrap_err();
        assert_eq!(refused.code, "upstream_error", "{text:?}");
        assert_eq!(content(), text);
    }
    let (sheet, _) = open_keyed("id,note\n1,abc");
    files::put("data", "x.csv", "id,note\n1,\"abc");
    sheet
        .write(&update(json!({"id": 1}), json!({"note": "d"})))
        .unwrap();
    sheet.write(&create(json!({"note": "x"}))).unwrap();
    assert_eq!(content(), "id,note\n1,d\n2,x");
}

/// Rows that a quote took in went with a change of its cell, and their keys could be given again.
#[test]
fn nothing_is_written_where_a_quote_takes_in_rows() {
    for text in [
        "id,note\n1,\"abc\n2,b\n3,\"ok\"\n4,d\n",
        "id,note\n1,\"abc\n2,b\n3,c\n",
    ] {
        for change in [
            create(json!({"id": 2, "note": "x"})),
            update(json!({"id": 1}), json!({"note": "x"})),
            delete(json!({"id": 1})),
        ] {
            for index in ["never", "always"] {
                let (_, shape) = open_keyed("id,note\n1,a\n");
                let settings = json!({"connection": "data", "path": "x.csv", "index": index});
                let sheet = SheetAdapter::open(&settings.to_string(), &shape).unwrap();
                files::put("data", "x.csv", text);
                let error = sheet.write(&change).unwrap_err();
                assert!(error.is("upstream_error"), "{change:?}: {error}");
                assert!(error.message.starts_with("Row 2 has a quote"), "{error}");
                assert_eq!(content(), text, "{change:?}");
            }
        }
    }
}

/// A record that does not meet them is not there: neither to be changed nor as a second one with the same key.
#[test]
fn changes_are_held_to_conditions() {
    let text = "id,n,owner\n1,5,ann\n2,6,bob\n2,7,ann\n3,8,\n";
    let guarded = |change: Change, comparison, value: Value| Change {
        conditions: vec![Condition::new("owner", comparison, value)],
        ..change
    };
    let equals = |change, owner: &str| guarded(change, Comparison::Equals, owner.into());
    for (change, after, outcome) in [
        (
            equals(update(json!({"id": 1}), json!({"n": 9})), "ann"),
            text.replace("1,5", "1,9"),
            Ok(()),
        ),
        (
            equals(update(json!({"id": 2}), json!({"n": 9})), "ann"),
            text.replace("2,7", "2,9"),
            Ok(()),
        ),
        (
            equals(delete(json!({"id": 2})), "bob"),
            text.replace("2,6,bob\n", ""),
            Ok(()),
        ),
        (
            equals(update(json!({"id": 1}), json!({"n": 9})), "bob"),
            text.to_owned(),
            Err("not_found"),
        ),
        (
            equals(delete(json!({"id": 1})), "Ann"),
            text.to_owned(),
            Err("not_found"),
        ),
        (
            equals(delete(json!({"id": 3})), ""),
            text.to_owned(),
            Err("not_found"),
        ),
        (
            guarded(delete(json!({"id": 3})), Comparison::IsEmpty, json!(true)),
            text.replace("3,8,\n", ""),
            Ok(()),
        ),
        (
            guarded(delete(json!({"id": 1})), Comparison::OneOf, json!([])),
            text.to_owned(),
            Err("not_found"),
        ),
        (
            guarded(delete(json!({"id": 1})), Comparison::OneOf, json!("ann")),
            text.to_owned(),
            Err("invalid"),
        ),
    ] {
        let (sheet, _) = open_with(text, |shape| shape.key = vec!["id".into()]);
        let done = sheet.write(&change).map(|_| ());
        assert_eq!(
            done.as_ref().map_err(|error| error.code.as_str()),
            outcome.as_ref().map_err(|code| *code),
            "{change:?}"
        );
        assert_eq!(content(), after, "{change:?}");
    }
}

/// A record is elsewhere in the file than where it was when the change began.
#[test]
fn a_record_is_found_while_another_program_writes() {
    let settings = json!({"connection": "data", "path": "x.csv", "index": "always"}).to_string();
    for (change, after) in [
        (
            update(json!({"id": 2}), json!({"n": "z"})),
            "id,n\n1,a\n3,another row\n2,z\n",
        ),
        (delete(json!({"id": 2})), "id,n\n1,a\n3,another row\n"),
    ] {
        testing::reset();
        crate::cache::make_room(crate::cache::BYTES_MAX);
        files::put("data", "x.csv", "id,n\n1,a\n2,b\n");
        let shape = SheetAdapter::describe(&settings).unwrap();
        let sheet = SheetAdapter::open(&settings, &shape).unwrap();
        let mut is_first = true;
        files::before_read(move || {
            if std::mem::take(&mut is_first) {
                files::put("data", "x.csv", "id,n\n1,a\n3,another row\n2,b\n");
            }
        });
        sheet.write(&change).unwrap();
        assert_eq!(content(), after, "{change:?}");
    }
}

/// A program that saves in place empties the file first. A change failed because of the half that it found.
#[test]
fn a_change_waits_for_a_save_in_place() {
    for half in ["", "id", "id,n\n", "id,n\n1,a\n", "id,n\n1,\"a"] {
        let (sheet, _) = open("id,n\n1,a\n2,b\n");
        files::put("data", "x.csv", half);
        let mut is_first = true;
        files::before_replace(move || {
            if std::mem::take(&mut is_first) {
                files::put("data", "x.csv", "id,n\n1,a\n2,b\n3,saved\n");
            }
        });
        let change = update(json!({"id": 2}), json!({"n": "z"}));
        sheet.write(&change).expect(half);
        assert_eq!(content(), "id,n\n1,a\n2,z\n3,saved\n", "{half:?}");
    }
    // A file that stays as it is is judged as it is.
    let (sheet, _) = open("id,n\n1,a\n2,b\n");
    files::put("data", "x.csv", "");
    let error = sheet.write(&create(json!({"n": "c"}))).unwrap_err();
    assert!(error.is("source_changed"), "{error}");
    assert_eq!(content(), "");
}

#[test]
fn two_writers_lose_no_row() {
    let (sheet, _) = open("id,n\n1,a\n");
    let mut others = 0;
    files::before_replace(move || {
        others += 1;
        if others <= 3 {
            let text = format!("{}{},other\n", content(), 100 + others);
            files::put("data", "x.csv", text);
        }
    });
    sheet.write(&create(json!({"n": "mine"}))).unwrap();
    assert_eq!(
        content(),
        "id,n\n1,a\n101,other\n102,other\n103,other\n104,mine\n"
    );

    let (sheet, _) = open("id,n\n1,a\n");
    files::before_replace(|| files::put("data", "x.csv", "id,n\n1,a\n"));
    assert!(
        sheet
            .write(&create(json!({"n": "b"})))
            .unwrap_err()
            .is("conflict")
    );
}

#[test]
fn a_large_file_reports_progress_and_can_be_cancelled() {
    let mut text = String::from("id,name\n");
    (0..200_000).for_each(|n| text.push_str(&format!("{n},name {n}\n")));
    let (sheet, _) = open(&text);
    for pass in ["streamed", "cached"] {
        progress::reset();
        let page = sheet
            .read(&Query {
                limit: 2,
                order: vec![Order::parse("-id")],
                ..query()
            })
            .unwrap();
        assert_eq!(
            page.records,
            r#"[{"id":199999,"name":"name 199999"},{"id":199998,"name":"name 199998"}]"#
        );
        let done: Vec<f64> = progress::reports().iter().map(|report| report.0).collect();
        assert!(
            done.len() >= 3 && done.windows(2).all(|pair| pair[0] < pair[1]),
            "{pass}: {done:?}"
        );
    }
    progress::cancel();
    assert!(sheet.read(&query()).unwrap_err().is("cancelled"));
}

#[test]
fn a_file_too_large_to_keep_is_streamed_by_every_call() {
    let mut text = String::from("id,name\n");
    let filler = "x".repeat(200);
    (0..150_000).for_each(|n| text.push_str(&format!("{n},{filler}{n}\n")));
    let (sheet, _) = open(&text);
    let query = Query {
        conditions: vec![Condition::new("id", Comparison::Equals, 149_999)],
        ..query()
    };
    for _ in 0..2 {
        let reads = files::reads();
        assert!(sheet.read(&query).unwrap().records.contains("149999"));
        assert!(files::reads() > reads);
    }
}

#[test]
fn a_workbook_is_read_and_not_written() {
    testing::reset();
    for (path, bytes) in [
        ("book.xlsx", &include_bytes!("../tests/nasty.xlsx")[..]),
        ("book.ods", &include_bytes!("../tests/nasty.ods")[..]),
    ] {
        files::put("data", path, bytes);
        let shape = SheetAdapter::describe(&settings(path)).unwrap();
        let expected = "id:integer name:string? price:number zip:string day:date at:datetime open:boolean a:integer? a_2:string?";
        assert_eq!(types(&shape).join(" "), expected, "{path}");
        assert!(
            shape
                .capabilities
                .read_only
                .as_deref()
                .unwrap()
                .ends_with("files are read-only")
        );
        let sheet = SheetAdapter::open(&settings(path), &shape).unwrap();
        assert_eq!(
            all(&sheet),
            concat!(
                r#"[{"id":1,"name":"Ann","price":19.99,"zip":"01234","day":"2024-02-29","at":"2024-02-29T10:30:00Z","open":true,"a":1,"a_2":"=1+1"},"#,
                r#"{"id":2,"name":null,"price":5,"zip":"99999","day":"2024-03-01","at":"2024-03-01T00:00:00Z","open":false,"a":null,"a_2":null}]"#
            ),
            "{path}"
        );
        assert!(
            sheet
                .write(&create(json!({"id": 3})))
                .unwrap_err()
                .is("unsupported")
        );
    }
}

#[test]
fn a_line_that_names_the_delimiter_is_no_row() {
    for (text, columns, records) in [
        (
            "sep=;\nid;name;price\n1;bolt;2,50\n",
            "id:integer name:string price:string",
            r#"[{"id":1,"name":"bolt","price":"2,50"}]"#,
        ),
        (
            "\u{feff}sep=\t\r\nid\tname\r\n1\ta, b\r\n",
            "id:integer name:string",
            r#"[{"id":1,"name":"a, b"}]"#,
        ),
        (
            "\"sep=;\"\nid;name\n1;a\n",
            "id:integer name:string",
            r#"[{"id":1,"name":"a"}]"#,
        ),
        (
            "SEP=^\n\nid^name\n1^a\n",
            "id:integer name:string",
            r#"[{"id":1,"name":"a"}]"#,
        ),
        (
            "sep=;x\n1;2\n",
            "sep=:integer x:integer",
            r#"[{"sep=":1,"x":2}]"#,
        ),
    ] {
        let (sheet, shape) = open(text);
        assert_eq!(types(&shape).join(" "), columns, "{text:?}");
        assert_eq!(all(&sheet), records, "{text:?}");
    }
    // The settings of versions published before count it as a row.
    testing::reset();
    files::put("data", "x.csv", "sep=;\nid;name\n1;a\n");
    let settings = json!({"connection": "data", "path": "x.csv", "header_row": 2}).to_string();
    let shape = SheetAdapter::describe(&settings).unwrap();
    assert_eq!(types(&shape).join(" "), "id:integer name:string");
    // A row is appended as the line says.
    let (sheet, _) = open("sep=|\nid|name\n1|a,b\n");
    sheet
        .write(&create(json!({"id": 2, "name": "c|d"})))
        .unwrap();
    assert_eq!(content(), "sep=|\nid|name\n1|a,b\n2|\"c|d\"\n");
}

/// Such a cell loses a quote. Files of the public have some, of a person's nickname for one, so that it is noted and read.
#[test]
fn text_behind_a_closed_quote_is_noted() {
    let behind = "has text behind the quote that closes a cell";
    for (text, expected) in [
        ("id,name\n1,x\n2,\"a\"b\n", Some(format!("Row 3 {behind}"))),
        (
            "id,name\n1,\"a \\\"q\\\" b\"\n",
            Some(format!("Row 2 {behind}")),
        ),
        (
            "id,name\n1,\"a\"b\n2,x\n3,\"a\" b\n",
            Some(
                "2 rows have text behind the quote that closes a cell, the first is row 2"
                    .to_owned(),
            ),
        ),
        ("id,name\n1,\"a\" \n2,\"b \"\"c\"\"\"\n", None),
    ] {
        let (_, shape) = open(text);
        let found = shape.notes.iter().find(|note| note.contains("text behind"));
        match expected {
            Some(expected) => assert!(
                found.is_some_and(|note| note.starts_with(&expected)),
                "{text:?}: {found:?}"
            ),
            None => assert_eq!(found, None, "{text:?}"),
        }
    }
}

#[test]
fn a_title_above_the_header_names_no_delimiter() {
    let settings = json!({"connection": "data", "path": "x.csv", "header_row": 2}).to_string();
    testing::reset();
    crate::cache::make_room(crate::cache::BYTES_MAX);
    files::put("data", "x.csv", "Report, of today,\nid;name\r\n1;a,b,c\r\n");
    let shape = SheetAdapter::describe(&settings).unwrap();
    assert_eq!(types(&shape).join(" "), "id:integer name:string");
    let sheet = SheetAdapter::open(&settings, &shape).unwrap();
    sheet.write(&create(json!({"id": 2, "name": "c"}))).unwrap();
    assert_eq!(
        all(&sheet),
        r#"[{"id":1,"name":"a,b,c"},{"id":2,"name":"c"}]"#
    );
    assert!(content().ends_with("\r\n2;c\r\n"), "{}", content());
}

#[test]
fn what_is_not_utf_8_or_not_closed_is_refused() {
    let utf_16 = |text: &str, from: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(from).collect()
    };
    for (bytes, part) in [
        (utf_16("id;name\n1;Müller\n", u16::to_le_bytes), "UTF-16"),
        (utf_16("id;name\n1;Müller\n", u16::to_be_bytes), "UTF-16"),
        (utf_16("姓名;城市\n李;北京\n", u16::to_le_bytes), "UTF-16"),
        (
            b"id,name,qty\n1,\"abc,2\n2,def,3\n3,ghi,4\n".to_vec(),
            "Row 2 has a quote that is never closed",
        ),
        (
            b"id,name,lat\n0,x,0.5\n1,\"Main St,1.5\n2,b,2.5\n3,\"ok\",3.5\n4,z,4.5\n".to_vec(),
            "Row 3 has a quote that is closed only in a later line",
        ),
    ] {
        testing::reset();
        crate::cache::make_room(crate::cache::BYTES_MAX);
        files::put("data", "x.csv", "id,name\n1,x\n");
        let shape = SheetAdapter::describe(&settings("x.csv")).unwrap();
        let sheet = SheetAdapter::open(&settings("x.csv"), &shape).unwrap();
        files::put("data", "x.csv", bytes);
        for error in [
            SheetAdapter::describe(&settings("x.csv")).unwrap_err(),
            sheet.read(&query()).unwrap_err(),
        ] {
            assert!(error.message.contains(part), "{error}");
            // The file is at fault, and not an argument.
            assert!(error.is("upstream_error"), "{error}");
        }
    }
}

/// Sets what a contract with `misfits: empty` records of a file, in which the column `amount` is a number.
fn with_cell_rules(shape: &mut Shape) {
    shape.key = vec!["id".to_owned()];
    shape.misfits = weir_plugin_sdk::shape::Misfits::Empty;
    shape.null_words = vec!["n/a".to_owned()];
    for field in &mut shape.fields {
        field.nullable = field.key != "id";
        if field.key == "amount" {
            field.kind = weir_plugin_sdk::Type::Number;
        }
    }
    *shape = Shape::parse(&shape.to_json()).unwrap();
}

/// An integer that no answer may hold is no value, as a text is none.
#[test]
fn integers_out_of_bounds_are_null_and_counted() {
    let text = "id,amount\n1,5\n2,9007199254740992\n3,-99999999999999999999\n4,9007199254740991\n";
    for index in ["never", "always"] {
        let (_, mut shape) = open_with(text, with_cell_rules);
        shape.fields[1].kind = weir_plugin_sdk::Type::Integer;
        let shape = Shape::parse(&shape.to_json()).unwrap();
        let settings = json!({"connection": "data", "path": "x.csv", "index": index}).to_string();
        let sheet = SheetAdapter::open(&settings, &shape).unwrap();
        assert_eq!(
            all(&sheet),
            concat!(
                r#"[{"id":1,"amount":5},{"id":2,"amount":null},{"id":3,"amount":null},"#,
                r#"{"id":4,"amount":9007199254740991}]"#
            ),
            "{index}"
        );
        let query = Query {
            conditions: vec![Condition::new("amount", Comparison::AtLeast, 6)],
            columns: vec!["id".into()],
            ..query()
        };
        let page: Value = serde_json::from_str(&sheet.read(&query).unwrap().records).unwrap();
        let skipped = json!({"count": 2, "columns": ["amount"]});
        assert_eq!(
            page,
            json!({"skipped": skipped, "records": [{"id": 4}]}),
            "{index}"
        );
    }
}

/// A cell that is no value of its column is null in its record, and a condition on it does not leave it out in silence.
#[test]
fn cells_that_are_no_values_are_null_and_counted() {
    let text = "id,amount,city\n1,5,Oslo\n2,soon,Oslo\n3,N/A,Rome\n4,12 EUR,Rome\n5,7,\n6,,n/a\n";
    let (sheet, _) = open_with(text, with_cell_rules);
    assert_eq!(
        all(&sheet),
        concat!(
            r#"[{"id":1,"amount":5,"city":"Oslo"},{"id":2,"amount":null,"city":"Oslo"},"#,
            r#"{"id":3,"amount":null,"city":"Rome"},{"id":4,"amount":null,"city":"Rome"},"#,
            r#"{"id":5,"amount":7,"city":null},{"id":6,"amount":null,"city":null}]"#
        )
    );
    use Comparison::*;
    let at_least = |least: i32| Condition::new("amount", AtLeast, least);
    for (conditions, skipped, ids) in [
        (vec![at_least(6)], 2, vec![5]),
        (vec![Condition::new("amount", NotEquals, 5)], 2, vec![5]),
        (vec![Condition::new("amount", Equals, 5)], 2, vec![1]),
        // One that another condition rules out is in no case a result.
        (
            vec![at_least(1), Condition::new("city", Equals, "Oslo")],
            1,
            vec![1],
        ),
        (
            vec![at_least(1), Condition::new("id", AtLeast, 5)],
            0,
            vec![5],
        ),
        // Whether a cell is empty is known of any; a word for an empty one is empty.
        (
            vec![Condition::new("amount", IsEmpty, false)],
            0,
            vec![1, 2, 4, 5],
        ),
        (vec![Condition::new("amount", IsEmpty, true)], 0, vec![3, 6]),
        (vec![Condition::new("city", Equals, "n/a")], 0, vec![]),
        (vec![], 0, vec![1, 2, 3, 4, 5, 6]),
    ] {
        // The number is the same on every page.
        for limit in [1, 100] {
            let query = Query {
                conditions: conditions.clone(),
                columns: vec!["id".into()],
                limit,
                ..query()
            };
            let page: Value = serde_json::from_str(&sheet.read(&query).unwrap().records).unwrap();
            let records = page.get("records").unwrap_or(&page);
            let found: Vec<i64> = records
                .as_array()
                .unwrap()
                .iter()
                .map(|record| record["id"].as_i64().unwrap())
                .collect();
            assert_eq!(found, ids[..ids.len().min(limit as usize)], "{query:?}");
            assert_eq!(
                page.get("skipped"),
                (skipped > 0)
                    .then(|| json!({ "count": skipped, "columns": ["amount"] }))
                    .as_ref(),
                "{query:?}"
            );
        }
    }
    // A text that would read back as null is not written.
    let refused = sheet
        .write(&update(json!({"id": 1}), json!({"city": "N/A"})))
        .unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("city"));
    let updated = sheet
        .write(&update(json!({"id": 2}), json!({"city": "Bern"})))
        .unwrap();
    assert_eq!(updated, r#"{"id":2,"amount":null,"city":"Bern"}"#);
    assert!(content().contains("2,soon,Bern"), "the cell stays as it is");
}

/// Words for an empty cell, and a few mistakes, do not make a column text for the draft; the shape itself stays as it was.
#[test]
fn what_most_cells_are_is_told() {
    let rows: String = (0..40).map(|n| format!("{n},{n}.5,\n")).collect();
    for (text, column, expected, note) in [
        (
            "id,amount\n1,5\n2,n/a\n3,7.25\n4,-\n".to_owned(),
            "amount",
            json!([{ "type": "number", "format": {}, "null_words": ["-", "n/a"] }]),
            Some("with `-`, `n/a` for an empty cell"),
        ),
        (
            "id,amount\n1,\"1.234,50\"\n2,N/A\n".to_owned(),
            "amount",
            json!([{ "type": "number", "format": { "decimal": ",", "grouping": "." }, "null_words": ["n/a"] }]),
            Some("is read as number"),
        ),
        (
            "id,day\n1,2026-02-28\n2,unknown\n".to_owned(),
            "day",
            json!([{ "type": "date", "format": {}, "null_words": ["unknown"] }]),
            Some("is read as date"),
        ),
        (
            format!("id,amount,note\n{rows}41,12 EUR,\n"),
            "amount",
            json!([{ "type": "number", "format": {} }]),
            Some("1 cell is something else, such as \"12 EUR\", and null then"),
        ),
        // A few cells say nothing of others, and text is text.
        (
            "id,amount\n1,5\n2,soon\n3,7\n".to_owned(),
            "amount",
            json!([]),
            None,
        ),
        (
            "id,city\n1,Oslo\n2,n/a\n".to_owned(),
            "city",
            json!([]),
            None,
        ),
        ("id,code\n1,-\n2,-\n".to_owned(), "code", json!([]), None),
    ] {
        let (_, shape) = open(&text);
        let field = shape.field(column).unwrap();
        assert_eq!(field.kind, weir_plugin_sdk::Type::String, "{text:?}");
        assert_eq!(
            serde_json::to_value(&field.readings).unwrap(),
            expected,
            "{text:?}"
        );
        let notes = shape.notes.join("\n");
        assert_eq!(
            note.is_some(),
            notes.contains(&format!("column \"{column}\" is read")),
            "{notes}"
        );
        assert!(notes.contains(note.unwrap_or_default()), "{notes}");
    }
}

#[test]
fn what_a_person_should_look_at_is_noted() {
    for (text, note) in [
        (
            "id,amount\n1,5\n2,7\nTOTAL,12\n",
            Some("The last row looks like a total (\"TOTAL\")"),
        ),
        (
            "Orders of 2026\nid,amount,city\n1,5,Oslo\n",
            Some("`header_row: 2`"),
        ),
        (
            "id,city\n1, Oslo\n2,Rome\n",
            Some("The column \"city\": 1 cell has blanks around the text"),
        ),
        (
            "id,price\n1,\"12,90 €\"\n2,\"7,00 €\"\n",
            Some("The column \"price\" is read as numbers with their unit, `# €`."),
        ),
        (
            "id,day\n1,2026-01-05\n2,05.01.2026\n",
            Some("The column \"day\" has dates in several spellings"),
        ),
        (
            "id,dose\n1, 800\n2,   0.5\n",
            Some(
                "The column \"dose\": 2 cells have blanks around a number or a date, and so it stays text",
            ),
        ),
        (
            "id,length,note\n1,5,NA\n2,NA,good\n",
            Some(
                "The column \"length\" is read as integer; `na` is null here, and a text in other columns",
            ),
        ),
        ("id,total\n1,5\n", None),
    ] {
        let (_, shape) = open(text);
        let notes = shape.notes.join("\n");
        match note {
            Some(note) => assert!(notes.contains(note), "{text:?}: {notes}"),
            None => assert_eq!(notes, "", "{text:?}"),
        }
    }
}
