//! Workbooks as programs write them, and hostile ones.

use std::io::Write;

use weir_plugin_sdk::serde_json::{self, json};
use weir_plugin_sdk::testing::{self, files};
use weir_plugin_sdk::{Adapter, Query, Shape};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::*;
use crate::SheetAdapter;

/// Describes a workbook of one sheet with these cells.
fn described(cells: &[(&str, &str)]) -> Result<Shape, Error> {
    described_sheets(&[cells])
}

/// Describes a workbook of sheets with these cells.
fn described_sheets(sheets: &[&[(&str, &str)]]) -> Result<Shape, Error> {
    let row = |(place, text): &(&str, &str)| {
        let row = place.trim_start_matches(char::is_alphabetic);
        format!(r#"<row r="{row}"><c r="{place}" t="inlineStr"><is><t>{text}</t></is></c></row>"#)
    };
    let sheets = sheets.iter().map(|cells| cells.iter().map(row).collect());
    described_rows(&sheets.collect::<Vec<String>>())
}

/// Describes a workbook of sheets with these rows.
fn described_rows(sheets: &[String]) -> Result<Shape, Error> {
    testing::reset();
    files::put("data", "x.xlsx", workbook(sheets));
    SheetAdapter::describe(r#"{"connection":"data","path":"x.xlsx"}"#)
}

/// Returns a workbook of sheets with these rows, which are named `S1`, `S2`, ….
fn workbook(sheets: &[String]) -> Vec<u8> {
    styled_workbook(sheets, "")
}

/// Returns a workbook with a part of styles, if there are some.
fn styled_workbook(sheets: &[String], styles: &str) -> Vec<u8> {
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let (mut names, mut relations) = (String::new(), String::new());
    let root = format!(
        r#"<Relationships><Relationship Id="r1" Type="{relation}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
    );
    let mut parts = vec![("_rels/.rels".to_owned(), root)];
    if !styles.is_empty() {
        parts.push(("xl/styles.xml".to_owned(), styles.to_owned()));
    }
    for (at, rows) in (1..).zip(sheets) {
        let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
        parts.push((format!("xl/worksheets/sheet{at}.xml"), sheet));
        names += &format!(r#"<sheet name="S{at}" sheetId="{at}" r:id="r{at}"/>"#);
        relations += &format!(
            r#"<Relationship Id="r{at}" Type="{relation}/worksheet" Target="worksheets/sheet{at}.xml"/>"#
        );
    }
    let workbook = format!(r#"<workbook xmlns:r="{relation}"><sheets>{names}</sheets></workbook>"#);
    let relations = format!("<Relationships>{relations}</Relationships>");
    parts.push(("xl/workbook.xml".to_owned(), workbook));
    parts.push(("xl/_rels/workbook.xml.rels".to_owned(), relations));
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        archive
            .start_file(
                name,
                SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
            )
            .unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Describes and reads a workbook of a header `id`, `n`, `m` and these rows.
fn read_rows(rows: &str) -> Result<(String, String), Error> {
    let name = |name: &str| format!(r#"<c t="inlineStr"><is><t>{name}</t></is></c>"#);
    let header: String = ["id", "n", "m"].map(name).concat();
    let rows = format!("<row>{header}</row>{rows}");
    read("x.xlsx", &workbook(&[rows]))
}

/// A number that is not finite is no value.
#[test]
fn numbers_of_a_workbook_are_finite() {
    let row =
        |number: &str| format!("<row><c><v>1</v></c><c><v>{number}</v></c><c><v>2</v></c></row>");
    let rows = ["1.5", "NaN", "-inf", "1e999"].map(row).concat();
    let (columns, records) = read_rows(&rows).unwrap();
    assert_eq!(columns, "id:integer n:number? m:integer");
    let nulls = records.matches(r#""n":null"#).count();
    assert_eq!(nulls, 3, "{records}");
}

/// An error that calamine does not know costs neither the sheet nor the position of another cell.
#[test]
fn errors_of_any_name_are_no_values() {
    let error = |name: &str, place: &str| format!(r#"<c{place} t="e"><v>{name}</v></c>"#);
    let placed = format!(
        r#"<row r="2"><c r="A2"><v>1</v></c>{}<c r="C2"><v>7</v></c></row>
        <row r="3"><c r="A3"><v>2</v></c><c r="B3"><f>1+1</f><v>2</v></c>{}</row>
        <row r="4">{}<c r="B4"><v>3</v></c><c r="C4"><v>9</v></c></row>"#,
        error("#SPILL!", r#" r="B2""#),
        error("#GETTING_DATA", r#" r="C3""#),
        error("#CALC!", r#" r="A4""#),
    );
    let (columns, records) = read_rows(&placed).unwrap();
    assert_eq!(columns, "id:integer? n:integer? m:integer?");
    assert_eq!(
        records,
        r#"[{"id":1,"n":null,"m":7},{"id":2,"n":2,"m":null},{"id":null,"n":3,"m":9}]"#
    );
    // Without positions, the cell behind the error would be in its place.
    let last = format!(
        "<row><c><v>1</v></c><c><v>2</v></c>{}</row><row><c><v>2</v></c></row>",
        error("#BUSY!", "")
    );
    let (_, records) = read_rows(&last).unwrap();
    assert_eq!(
        records,
        r#"[{"id":1,"n":2,"m":null},{"id":2,"n":null,"m":null}]"#
    );
    let within = format!("<row>{}<c><v>2</v></c></row>", error("#BUSY!", ""));
    let refused = read_rows(&within).expect_err("the cell behind it has no position");
    assert!(refused.message.contains("error cell"), "{refused}");
}

/// Tables of a workbook are found by their first rows: what a sheet has far below costs the description of another one nothing.
#[test]
fn other_sheets_are_judged_by_their_first_rows() {
    let orders: &[_] = &[("A1", "no"), ("B1", "city"), ("A2", "1"), ("B2", "Bern")];
    let long = [orders, &[("XFD1048576", "x")]].concat();
    let cover: &[_] = &[("A1", "Orders of 2026"), ("A2", "by the shop")];
    let shape = described_sheets(&[orders, &long, cover]).expect("a table");
    let parts: Vec<_> = shape
        .parts
        .iter()
        .map(|part| (&*part.name, part.left_out.as_deref()))
        .collect();
    let title = "its first row has one cell, which is a title rather than a header";
    assert_eq!(parts, [("S1", None), ("S2", None), ("S3", Some(title))]);
}

#[test]
fn a_stray_cell_is_refused_before_it_takes_the_memory() {
    let shape = described(&[("A1", "name"), ("A2", "x")]).expect("a table");
    assert_eq!(shape.fields[0].key, "name");
    for (stray, expected) in [
        ("XFD1048576", "more than 2000 columns"),
        ("B1048576", "more than 1000000 cells"),
    ] {
        let error = described(&[("A1", "name"), ("A2", "x"), (stray, "x")])
            .map(|_| ())
            .expect_err(stray);
        assert!(
            error.is("unsupported") && error.message.contains(expected),
            "{error}"
        );
    }
}

fn settings(path: &str) -> String {
    json!({ "connection": "data", "path": path }).to_string()
}

/// Returns `name:type` of each column, with `?` where it may be null.
fn types(shape: &Shape) -> String {
    let of = |field: &weir_plugin_sdk::Field| {
        let kind = serde_json::to_value(field.kind).unwrap();
        let mark = if field.nullable { "?" } else { "" };
        format!("{}:{}{mark}", field.key, kind.as_str().unwrap())
    };
    shape.fields.iter().map(of).collect::<Vec<_>>().join(" ")
}

fn all(sheet: &SheetAdapter) -> String {
    let query = Query {
        limit: 100,
        ..Query::default()
    };
    sheet.read(&query).unwrap().records
}

/// Describes and reads a file; the types of its columns, and its records.
fn read(path: &str, bytes: &[u8]) -> Result<(String, String), Error> {
    testing::reset();
    crate::cache::make_room(crate::cache::BYTES_MAX);
    files::put("data", path, bytes);
    let shape = SheetAdapter::describe(&settings(path))?;
    let sheet = SheetAdapter::open(&settings(path), &shape)?;
    Ok((types(&shape), all(&sheet)))
}

#[test]
fn workbooks_of_other_programs_are_read() {
    for (path, bytes, columns, records) in [
        (
            "calc.ods",
            &include_bytes!("../../tests/calc.ods")[..],
            "id:integer n:integer?",
            r#"[{"id":1,"n":7},{"id":2,"n":null}]"#,
        ),
        (
            "calc.xlsx",
            &include_bytes!("../../tests/calc.xlsx")[..],
            "id:integer n:integer?",
            r#"[{"id":1,"n":7},{"id":2,"n":null}]"#,
        ),
        (
            "errors.ods",
            &include_bytes!("../../tests/errors.ods")[..],
            "id:integer? n:integer? m:integer? note:string?",
            concat!(
                r##"[{"id":1,"n":7,"m":8,"note":"#N/A"},{"id":null,"n":null,"m":null,"note":"x"},"##,
                r#"{"id":null,"n":null,"m":null,"note":"x"},{"id":2,"n":null,"m":9,"note":null}]"#
            ),
        ),
        (
            "hidden.xlsx",
            &include_bytes!("../../tests/hidden.xlsx")[..],
            "id:integer name:string",
            r#"[{"id":1,"name":"a"}]"#,
        ),
        (
            "chart.xlsx",
            &include_bytes!("../../tests/chart.xlsx")[..],
            "id:integer name:string",
            r#"[{"id":1,"name":"a"}]"#,
        ),
        (
            "leap.xlsx",
            &include_bytes!("../../tests/leap.xlsx")[..],
            "id:integer day:date?",
            r#"[{"id":1,"day":"2023-03-15"},{"id":2,"day":null}]"#,
        ),
        (
            "range.xlsx",
            &include_bytes!("../../tests/range.xlsx")[..],
            "id:integer day:date?",
            r#"[{"id":1,"day":"2023-03-15"},{"id":2,"day":null},{"id":3,"day":null}]"#,
        ),
        (
            "head.xlsx",
            &include_bytes!("../../tests/head.xlsx")[..],
            "name:string 2023-03-15:integer",
            r#"[{"name":"x","2023-03-15":3}]"#,
        ),
    ] {
        let read = read(path, bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(read, (columns.to_owned(), records.to_owned()), "{path}");
    }
}

/// A program that saves in place writes the end of the archive last. Half a workbook was a fault of the parser's.
#[test]
fn half_a_workbook_is_read_later() {
    for (path, whole) in [
        ("x.xlsx", &include_bytes!("../../tests/calc.xlsx")[..]),
        ("x.ods", &include_bytes!("../../tests/calc.ods")[..]),
    ] {
        let error = read(path, &whole[..whole.len() / 2]).expect_err("half");
        assert!(error.is("unavailable"), "{error:?}");
        assert_eq!(error.retry_after_ms, Some(1_000));
    }
}

#[test]
fn workbooks_that_are_not_read_say_what_to_do() {
    for (bytes, words) in [
        (
            &b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0"[..],
            "save it as XLSX without a password",
        ),
        (&b""[..], "The file is empty."),
        (&b"id,v\n1,2\n"[..], "is not a workbook"),
    ] {
        let error = read("old.xlsx", bytes).expect_err("refused");
        assert!(error.is("upstream_error"), "{error:?}");
        assert!(error.message.contains(words), "{error:?}");
    }
}

#[test]
fn sheets_that_are_not_read_are_noted() {
    for (path, bytes, expected) in [
        (
            "hidden.xlsx",
            &include_bytes!("../../tests/hidden.xlsx")[..],
            "and not \"First\" (hidden)",
        ),
        (
            "chart.xlsx",
            &include_bytes!("../../tests/chart.xlsx")[..],
            "and not \"First\" (no cells)",
        ),
        (
            "times.ods",
            &include_bytes!("../../tests/times.ods")[..],
            "The sheet \"Times\" of the workbook is read, and not \"Hidden\" (hidden), \"Cover\"",
        ),
    ] {
        read(path, bytes).unwrap();
        let notes = SheetAdapter::describe(&settings(path))
            .unwrap()
            .notes
            .join("\n");
        assert!(notes.contains(expected), "{path}: {notes}");
    }
    read("calc.xlsx", include_bytes!("../../tests/calc.xlsx")).unwrap();
    assert!(
        SheetAdapter::describe(&settings("calc.xlsx"))
            .unwrap()
            .notes
            .is_empty()
    );
}

/// Times of day and durations are the same text from both formats, without the day that they are counted from.
#[test]
fn times_of_a_workbook_are_times() {
    for (path, bytes) in [
        ("times.xlsx", &include_bytes!("../../tests/times.xlsx")[..]),
        ("times.ods", &include_bytes!("../../tests/times.ods")[..]),
    ] {
        let (columns, records) = read(path, bytes).unwrap();
        assert_eq!(
            columns, "id:integer start:string worked:string sum:number",
            "{path}"
        );
        assert_eq!(
            records,
            concat!(
                r#"[{"id":1,"start":"09:00:00","worked":"26:30:00","sum":0.3},"#,
                r#"{"id":2,"start":"00:00:00","worked":"01:30:00","sum":19.99},"#,
                r#"{"id":3,"start":"23:59:59","worked":"12:00:00","sum":2}]"#
            ),
            "{path}"
        );
    }
}

/// The recorded shape of an earlier version is served as it was.
#[test]
fn a_published_workbook_keeps_its_types_and_names() {
    let (bytes, path) = (
        include_bytes!("../../tests/times.xlsx").as_slice(),
        "times.xlsx",
    );
    read(path, bytes).unwrap();
    let mut shape = SheetAdapter::describe(&settings(path)).unwrap();
    shape.fields[1].kind = weir_plugin_sdk::Type::Datetime;
    shape.fields[2].kind = weir_plugin_sdk::Type::Number;
    let sheet = SheetAdapter::open(&settings(path), &shape).unwrap();
    assert!(
        all(&sheet).starts_with(
            r#"[{"id":1,"start":"1899-12-31T09:00:00Z","worked":1.1041666666666667,"sum":0.3}"#
        ),
        "{}",
        all(&sheet)
    );

    let (bytes, path) = (
        include_bytes!("../../tests/head.xlsx").as_slice(),
        "head.xlsx",
    );
    read(path, bytes).unwrap();
    let mut shape = SheetAdapter::describe(&settings(path)).unwrap();
    shape.fields[1].key = "2023-03-15 00:00:00".to_owned();
    let sheet = SheetAdapter::open(&settings(path), &shape).unwrap();
    assert_eq!(all(&sheet), r#"[{"name":"x","2023-03-15 00:00:00":3}]"#);
}

/// A word for an empty cell made points in time of a column of dates, which a zone moves to another day.
#[test]
fn dates_beside_a_word_for_an_empty_cell_are_dates() {
    for (last, kind) in [
        ("2023-03-16 00:00:00", "date"),
        ("2023-03-16 09:30:00", "datetime"),
    ] {
        let cells = [
            ("A1", "name"),
            ("B1", "day"),
            ("A2", "a"),
            ("B2", "2023-03-15 00:00:00"),
            ("A3", "b"),
            ("B3", "n/a"),
            ("A4", "c"),
            ("B4", last),
        ];
        let shape = described(&cells).unwrap();
        let reading = serde_json::to_value(&shape.fields[1].readings[0]).unwrap();
        assert_eq!(
            (&reading["type"], &reading["null_words"]),
            (&json!(kind), &json!(["n/a"]))
        );
    }
}

/// A number of a workbook is a double: of a whole one the digits behind the fifteenth may be others than the file has.
#[test]
fn whole_numbers_of_more_than_15_digits_are_noted() {
    let head = r#"<row r="1"><c r="A1" t="inlineStr"><is><t>name</t></is></c><c r="B1" t="inlineStr"><is><t>no</t></is></c></row>"#;
    for (number, is_noted) in [
        ("1234567890123456789", true),
        ("-9007199254740993", true),
        ("123456789012345", false),
        ("5000000000000000", false),
        ("1E+20", false),
    ] {
        let sheet = format!(
            r#"{head}<row r="2"><c r="A2" t="inlineStr"><is><t>x</t></is></c><c r="B2"><v>{number}</v></c></row>"#
        );
        let notes = described_rows(&[sheet]).unwrap().notes;
        let note = "The column \"no\" has whole numbers of more than 15 digits.";
        let has_note = notes.iter().any(|given| given.starts_with(note));
        assert_eq!(has_note, is_noted, "{number}: {notes:?}");
    }
}

/// Describes an ODS workbook of sheets with these names and rows.
fn described_ods(sheets: &[(&str, &str)]) -> Result<Shape, Error> {
    let of = "urn:oasis:names:tc:opendocument:xmlns";
    let sheet = |(name, rows): &(&str, &str)| {
        format!(r#"<table:table table:name="{name}">{rows}</table:table>"#)
    };
    let sheets: String = sheets.iter().map(sheet).collect();
    let content = format!(
        r#"<office:document-content xmlns:office="{of}:office:1.0" xmlns:table="{of}:table:1.0" xmlns:text="{of}:text:1.0"><office:body><office:spreadsheet>{sheets}</office:spreadsheet></office:body></office:document-content>"#
    );
    let mime = "application/vnd.oasis.opendocument.spreadsheet";
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let parts = [
        ("mimetype", mime),
        ("META-INF/manifest.xml", "<manifest></manifest>"),
        ("content.xml", content.as_str()),
    ];
    for (name, text) in parts {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        archive.start_file(name, options).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    testing::reset();
    crate::cache::make_room(crate::cache::BYTES_MAX);
    files::put("data", "x.ods", archive.finish().unwrap().into_inner());
    SheetAdapter::describe(&settings("x.ods"))
}

/// Reads the notes on an ODS workbook of one sheet with these rows.
fn ods_notes(rows: &str) -> Vec<String> {
    described_ods(&[("S", rows)]).unwrap().notes
}

/// A few bytes of ODS stand for a billion cells, which are refused before they are made. Empty ones at the end count for nothing.
#[test]
fn repeated_cells_of_ods_are_counted_before_they_are_made() {
    let cell = |text: &str, times: &str| {
        format!(
            r#"<table:table-cell office:value-type="string" {times}><text:p>{text}</text:p></table:table-cell>"#
        )
    };
    let columns = r#"table:number-columns-repeated="1000000000""#;
    let none = format!("<table:table-cell {columns}/>");
    let row = |cells: &str| format!("<table:table-row>{cells}</table:table-row>");
    let billion = |cells: &str| {
        format!(
            r#"<table:table-row table:number-rows-repeated="1000000000">{cells}</table:table-row>"#
        )
    };
    let pair = cell("a", "") + &cell("b", "");
    let far = row(&(none.replace("1000000000", "16382") + &cell("a", "")));
    let table = row(&(cell("id", "") + &cell("name", ""))) + &row(&pair);
    let nested = format!("<table:table-cell><table:table>{table}</table:table></table:table-cell>");
    for (rows, expected) in [
        (table.clone() + &billion(&none), None),
        (table.clone() + &row(&(pair.clone() + &none)), None),
        (table.clone() + &billion(&pair), Some("behind row 1048576")),
        (
            table.clone() + &billion(&none) + &row(&pair),
            Some("behind row 1048576"),
        ),
        (billion(&none) + &table, Some("behind row 1048576")),
        (
            table.clone() + &row(&nested) + &billion(&pair),
            Some("behind row 1048576"),
        ),
        (
            table.clone() + &row(&cell("a", columns)),
            Some("column 16384"),
        ),
        (
            table.clone() + &billion(&pair).replace("1000000000", "900000"),
            Some("more than 1000000 cells"),
        ),
        (
            table.clone() + &far.repeat(99),
            Some("more than 1000000 cells"),
        ),
    ] {
        let described = described_ods(&[("Wide", rows.as_str())]);
        match expected {
            None => {
                let keys: Vec<String> = described
                    .expect("a table")
                    .fields
                    .into_iter()
                    .map(|field| field.key)
                    .collect();
                assert_eq!(keys, ["id", "name"]);
            }
            Some(expected) => {
                let error = described.map(|_| ()).expect_err(expected);
                assert!(
                    error.is("unsupported")
                        && error.message.contains("\"Wide\"")
                        && error.message.contains(expected),
                    "{error}"
                );
            }
        }
    }
}

/// A column that is filled down to the last row is no reason against another sheet.
#[test]
fn a_long_column_of_ods_costs_another_sheet_nothing() {
    let cell =
        r#"<table:table-cell office:value-type="string"><text:p>a</text:p></table:table-cell>"#;
    let row = |times: u32, cells: &str| {
        format!(
            r#"<table:table-row table:number-rows-repeated="{times}">{cells}</table:table-row>"#
        )
    };
    let table = row(2, &cell.repeat(2));
    let long = row(1_048_576, cell);
    let shape = described_ods(&[("A", table.as_str()), ("B", long.as_str())]).expect("a table");
    assert_eq!(shape.fields.len(), 2);
    let error = described_ods(&[("B", long.as_str())])
        .map(|_| ())
        .expect_err("too many cells");
    assert!(error.message.contains("more than 1000000 cells"), "{error}");
}

/// Of two sheets of one name the first of XLSX was read, and the last of ODS.
#[test]
fn two_sheets_of_one_name_are_refused() {
    let row = |cells: [&str; 2]| {
        let cell = |text: &str| {
            format!(
                r#"<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>"#
            )
        };
        format!(
            "<table:table-row>{}</table:table-row>",
            cells.map(cell).concat()
        )
    };
    let table = row(["id", "name"]) + &row(["1", "a"]);
    let table = table.as_str();
    let error = described_ods(&[("S", table), ("S", table)])
        .map(|_| ())
        .expect_err("two sheets");
    assert!(
        error.is("upstream_error") && error.message.contains("several sheets named \"S\""),
        "{error}"
    );
    // The name of another sheet can still be given.
    let shape = described_ods(&[("A", table), ("S", table), ("S", table)]).expect("a table");
    let left_out: Vec<_> = shape
        .parts
        .iter()
        .map(|part| part.left_out.as_deref())
        .collect();
    let same = Some("another sheet has the same name");
    assert_eq!(left_out, [None, same, same]);
    let named = r#"{"connection":"data","path":"x.ods","sheet":"S"}"#;
    let error = SheetAdapter::describe(named).map(|_| ()).expect_err("two");
    assert!(error.message.contains("\"S\""), "{error}");
}

/// Excel writes such formats by their number, without a code: a time of day was null.
#[test]
fn times_in_formats_of_east_asia_are_times() {
    let formats = [31, 32, 33, 34, 55];
    let text = |text: &str| format!(r#"<c t="inlineStr"><is><t>{text}</t></is></c>"#);
    let header: String = formats.map(|id| text(&format!("f{id}"))).concat();
    let row = |days: [f64; 5]| {
        let cell = |(at, days): (usize, &f64)| format!(r#"<c s="{at}"><v>{days}</v></c>"#);
        let cells: String = days.iter().enumerate().map(cell).collect();
        format!("<row>{cells}</row>")
    };
    let rows = format!(
        "<row>{header}</row>{}{}",
        row([45000.0, 0.375, 0.375, 0.375, 45000.0]),
        row([45001.0, 0.0, 0.75, 0.5, 45031.0])
    );
    let styles = formats
        .map(|id| format!(r#"<xf numFmtId="{id}"/>"#))
        .concat();
    let styles = format!("<styleSheet><cellXfs>{styles}</cellXfs></styleSheet>");
    let (types, records) = read("x.xlsx", &styled_workbook(&[rows], &styles)).expect("a table");
    assert_eq!(types, "f31:date f32:string f33:string f34:string f55:date");
    assert_eq!(
        records,
        r#"[{"f31":"2023-03-15","f32":"09:00:00","f33":"09:00:00","f34":"09:00:00","f55":"2023-03-15"},{"f31":"2023-03-16","f32":"00:00:00","f33":"18:00:00","f34":"12:00:00","f55":"2023-04-15"}]"#
    );
}

/// The first section of a format decided for all numbers: a small one was a day of 1900, and a date behind it a number.
#[test]
fn the_section_of_a_format_that_shows_a_number_decides() {
    let formats = [
        "[&gt;100]yyyy-mm-dd;General",
        "[&lt;100]General;[$-409]yyyy-mm-dd",
        "[&lt;1]h:mm;[h]:mm",
        "[&gt;100]yyyy-mm-dd;General",
    ];
    let text = |text: &str| format!(r#"<c t="inlineStr"><is><t>{text}</t></is></c>"#);
    let row = |numbers: [f64; 4]| {
        let cell = |(at, number): (usize, &f64)| format!(r#"<c s="{at}"><v>{number}</v></c>"#);
        let cells: String = numbers.iter().enumerate().map(cell).collect();
        format!("<row>{cells}</row>")
    };
    let header = ["a", "b", "c", "d"].map(text).concat();
    let rows = format!(
        "<row>{header}</row>{}{}",
        row([45000.0, 45000.0, 0.375, 5.0]),
        row([45001.0, 45001.0, 1.5, 7.0])
    );
    let (mut codes, mut styles) = (String::new(), String::new());
    for (id, code) in (200..).zip(formats) {
        codes += &format!(r#"<numFmt numFmtId="{id}" formatCode="{code}"/>"#);
        styles += &format!(r#"<xf numFmtId="{id}" applyNumberFormat="1"/>"#);
    }
    let styles = format!(
        r#"<styleSheet><numFmts count="4">{codes}</numFmts><cellXfs count="4">{styles}</cellXfs></styleSheet>"#
    );
    let (types, records) = read("x.xlsx", &styled_workbook(&[rows], &styles)).expect("a table");
    assert_eq!(types, "a:date b:date c:string d:integer");
    assert_eq!(
        records,
        r#"[{"a":"2023-03-15","b":"2023-03-15","c":"09:00:00","d":5},{"a":"2023-03-16","b":"2023-03-16","c":"36:00:00","d":7}]"#
    );
}

/// Returns an archive with every part changed.
fn changed_archive(bytes: &[u8], change: impl Fn(&str) -> Vec<u8>) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut part, &mut text).unwrap();
        let name = part.name().unwrap().into_owned();
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        out.start_file(name, options).unwrap();
        out.write_all(&change(&text)).unwrap();
    }
    out.finish().unwrap().into_inner()
}

/// LibreOffice writes `1:4` for rows that are used up to the last column, and Excel on phones writes UTF-16: both were refused.
#[test]
fn parts_of_uncommon_forms_are_read() {
    let text = |text: &str| format!(r#"<c t="inlineStr"><is><t>{text}</t></is></c>"#);
    let row = |cells: [&str; 2]| format!("<row>{}</row>", cells.map(text).concat());
    let rows = row(["id", "dimension ref"]) + &row(["a", "é"]);
    let plain = workbook(&[rows.clone(), rows]);
    let expected = (
        "id:string dimension ref:string".to_owned(),
        r#"[{"id":"a","dimension ref":"é"}]"#.to_owned(),
    );
    for dimension in [
        r#"<dimension ref="1:4"/>"#,
        r#"<dimension ref='A:B'></dimension>"#,
        r#"<dimension ref=""/>"#,
        "<dimension/>",
        r#"<dimension ref="$A$1:$B$2" />"#,
        r#"<dimension ref="A1:B2"/>"#,
        "",
    ] {
        let change = |part: &str| {
            let head = format!("{dimension}<sheetData>");
            part.replace("<sheetData>", &head).into_bytes()
        };
        let workbook = changed_archive(&plain, change);
        assert_eq!(read("x.xlsx", &workbook).expect(dimension), expected);
        // Each sheet is judged, too.
        let parts = SheetAdapter::describe(&settings("x.xlsx")).unwrap().parts;
        assert!(
            parts.iter().all(|part| part.left_out.is_none()),
            "{dimension}"
        );
    }
    let encoded = |part: &str, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let part = format!("\u{feff}<?xml version=\"1.0\" encoding=\"UTF-16\"?>\r\n{part}");
        part.encode_utf16().flat_map(to_bytes).collect()
    };
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let workbook = changed_archive(&plain, |part| encoded(part, to_bytes));
        assert_eq!(read("x.xlsx", &workbook).expect("UTF-16"), expected);
        // Some leave the mark out.
        let workbook = changed_archive(&plain, |part| encoded(part, to_bytes)[2..].to_vec());
        assert_eq!(read("x.xlsx", &workbook).expect("UTF-16"), expected);
    }
}

/// Excel lists macros of its first versions as sheets, which have no part: the workbook was refused.
#[test]
fn sheets_without_a_part_are_left_out() {
    let text = |text: &str| format!(r#"<c t="inlineStr"><is><t>{text}</t></is></c>"#);
    let row = |cells: [&str; 2]| format!("<row>{}</row>", cells.map(text).concat());
    let rows = row(["id", "name"]) + &row(["a", "b"]);
    let workbook = workbook(&[rows.clone(), rows]);
    let macros = concat!(
        r#"<sheet name="Module > 1" sheetId="8" state="veryHidden" r:id=""/>"#,
        r#"<sheet name="Sheets" sheetId="9"></sheet>"#
    );
    let change = |part: &str| {
        let part = part.replacen(
            r#"<sheet name="S2""#,
            &format!(r#"{macros}<sheet name="S2""#),
            1,
        );
        part.replace("</sheets>", &format!("{macros}</sheets>"))
            .into_bytes()
    };
    let (_, records) = read("x.xlsx", &changed_archive(&workbook, change)).expect("a table");
    assert_eq!(records, r#"[{"id":"a","name":"b"}]"#);
    let parts = SheetAdapter::describe(&settings("x.xlsx")).unwrap().parts;
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["S1", "S2"]);
}

/// Pictures and shapes that are anchored to a cell are within it, and their words were read as words of the cell.
#[test]
fn words_of_drawings_are_not_words_of_their_cell() {
    let row = |cells: [&str; 2]| {
        let cell = |content: &str| {
            format!(r#"<table:table-cell office:value-type="string">{content}</table:table-cell>"#)
        };
        let cells = cells.map(cell).concat();
        format!("<table:table-row>{cells}</table:table-row>")
    };
    let picture = "<draw:frame><draw:image><text:p/></draw:image><svg:title>Logo</svg:title></draw:frame><text:p>id</text:p>";
    let shape = r#"<draw:custom-shape><text:p>Click<text:s/>me</text:p></draw:custom-shape> <text:p>x &amp; y<text:s text:c="2"/><text:span>z</text:span></text:p><text:p>no. 2&#33;</text:p>"#;
    let rows = row([picture, "<text:p>name</text:p>"])
        + &row(["<text:p>a</text:p>", shape])
        + &row(["<text:p>b</text:p><draw:line/>", "<text:p>plain</text:p>"]);
    let shape = described_ods(&[("S", rows.as_str())]).expect("a table");
    let sheet = SheetAdapter::open(&settings("x.ods"), &shape).expect("opened");
    assert_eq!(
        all(&sheet),
        r#"[{"id":"a","name":"x & y  z\nno. 2!"},{"id":"b","name":"plain"}]"#
    );
}

/// KSpread and formatters of XML write an element a line: the sheet was refused, since calamine took a line end for a cell.
#[test]
fn blanks_between_the_elements_of_ods_are_no_cells() {
    let cell = |text: &str| {
        format!(
            "\n  <table:table-cell office:value-type=\"string\">\n    <text:p>{text}</text:p>\n  </table:table-cell>"
        )
    };
    let row = |cells: [&str; 2]| {
        let cells = cells.map(cell).concat();
        format!("\n<table:table-row>{cells}\n  <!-- end -->\n</table:table-row>\n")
    };
    let rows = row(["id", "name"]) + &row(["a", "x <text:span> y &amp;</text:span>"]);
    let shape = described_ods(&[("S", rows.as_str())]).expect("a table");
    let sheet = SheetAdapter::open(&settings("x.ods"), &shape).expect("opened");
    assert_eq!(all(&sheet), r#"[{"id":"a","name":"x  y &"}]"#);
}

/// A formula whose result is an empty text or an error has been computed.
#[test]
fn formulas_of_ods_that_were_never_computed_are_noted() {
    let text = |text: &str| {
        format!(
            r#"<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>"#
        )
    };
    let row = |cells: &str| format!("<table:table-row>{cells}</table:table-row>");
    let head = row(&(text("name") + &text("sum")));
    let line = |attributes: &str| {
        let sum = format!(
            r#"<table:table-cell table:formula="of:=1+1" {attributes}></table:table-cell>"#
        );
        row(&(text("x") + &sum))
    };
    let computed = r#"office:value-type="float" office:value="2""#;
    for (rows, expected) in [
        ([computed, r#"office:value-type="string""#], None),
        ([computed, ""], Some("A formula in row 3 has no value")),
        (
            [r#"office:value-type="float""#, ""],
            Some("2 formulas have no value, the first in row 2"),
        ),
    ] {
        let notes = ods_notes(&format!("{head}{}{}", line(rows[0]), line(rows[1])));
        let note = notes.iter().find(|note| note.contains("no value"));
        match expected {
            Some(expected) => assert!(note.is_some_and(|note| note.contains(expected)), "{note:?}"),
            None => assert_eq!(note, None),
        }
    }
}

/// Libraries write formulas without computing them: all of the column was null without a word.
#[test]
fn formulas_that_were_never_computed_are_noted() {
    let head = r#"<row r="1"><c r="A1" t="inlineStr"><is><t>name</t></is></c><c r="B1" t="inlineStr"><is><t>sum</t></is></c></row>"#;
    let row = |row: u32, sum: &str| {
        format!(
            r#"<row r="{row}"><c r="A{row}" t="inlineStr"><is><t>n{row}</t></is></c><c r="B{row}">{sum}</c></row>"#
        )
    };
    let (computed, not) = ("<f>1+1</f><v>2</v>", "<f>1+1</f>");
    for (rows, expected) in [
        ([computed, ""], None),
        ([computed, not], Some("A formula in row 3 has no value")),
        (
            [not, not],
            Some("2 formulas have no value, the first in row 2"),
        ),
    ] {
        let sheet = format!("{head}{}{}", row(2, rows[0]), row(3, rows[1]));
        let shape = described_rows(&[sheet]).unwrap();
        let note = shape.notes.iter().find(|note| note.contains("no value"));
        match expected {
            Some(expected) => assert!(note.is_some_and(|note| note.contains(expected)), "{note:?}"),
            None => assert_eq!(note, None),
        }
    }
}
