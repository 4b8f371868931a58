//! Any text as the records that a guest hands over the component interface: what passes is one JSON object on one line,
//! with the published columns alone, and passes again as it is.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, value::RawValue};
use weir_contracts::{CollectionShape, output::RecordChecker};

const COLUMNS: [&str; 10] = [
    "s", "i", "n", "d", "b", "day", "at", "list", "record", "json",
];

fn checker() -> &'static RecordChecker {
    static CHECKER: OnceLock<RecordChecker> = OnceLock::new();
    CHECKER.get_or_init(|| {
        let shape = CollectionShape::read(
            r#"{"name":"all","fields":[
                {"key":"s","type":"string","nullable":true},{"key":"i","type":"integer","nullable":true},
                {"key":"n","type":"number","nullable":true},{"key":"d","type":"decimal","nullable":true},
                {"key":"b","type":"boolean","nullable":true},{"key":"day","type":"date","nullable":true},
                {"key":"at","type":"datetime","nullable":true},
                {"key":"list","type":"list","nullable":true,"items":{"key":"x","type":"string","nullable":true}},
                {"key":"record","type":"record","nullable":true,"fields":[{"key":"a","type":"integer"}]},
                {"key":"json","type":"json","nullable":true},{"key":"hidden","type":"string","nullable":true}]}"#,
        )
        .expect("a shape");
        RecordChecker::new(&shape, &COLUMNS.map(str::to_owned))
    })
}

fuzz_target!(|text: &str| {
    let _ = checker().record(text);
    let Ok(records) = checker().records(text) else {
        return;
    };
    // Not as values: what is left out may hold numbers that a value cannot.
    let given: Vec<&RawValue> = serde_json::from_str(text).expect("what passes is JSON");
    assert_eq!(given.len(), records.len());
    for record in records {
        assert!(!record.contains(['\n', '\r']), "{record}");
        let value: Value =
            serde_json::from_str(&record).unwrap_or_else(|error| panic!("{error}: {record}"));
        let columns: Vec<&str> = value
            .as_object()
            .expect("a record is an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(columns, COLUMNS, "{record}");
        let again = checker().record(&record).expect("it passes again");
        assert_eq!(again.json, record);
    }
});
