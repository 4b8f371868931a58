//! Any arguments against any schema: what passes is valid, what is valid passes, and a refusal always has a text.
#![no_main]

#[path = "../parts/judge.rs"]
mod judge;
#[path = "../../contracts/tests/diff_properties/schemas.rs"]
#[expect(dead_code, reason = "the property tests use the rest")]
mod schemas;
#[path = "../parts/tape.rs"]
mod tape;
#[path = "../../contracts/tests/diff_properties/values.rs"]
mod values;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tape::Tape;
use weir_schema::validate::ArgumentValidator;

// The first half makes the schema and values near it, the second half is used as arguments unchanged.
fuzz_target!(|bytes: &[u8]| {
    let (made, raw) = bytes.split_at(bytes.len() / 2);
    let mut tape = Tape::new(made);
    let mut schema = schemas::schema(&mut tape, 3);
    schemas::add_definitions(&mut tape, &mut schema);
    let (Ok(arguments), Some(judge)) = (ArgumentValidator::new(&schema), judge::validator(&schema))
    else {
        return;
    };
    let texts = values::near(&mut tape, &schema, &schema)
        .into_iter()
        .map(|value| value.to_string());
    for text in texts.chain(std::str::from_utf8(raw).map(str::to_owned)) {
        match arguments.validate(&text) {
            Ok(passed) => {
                let passed = Value::Object(passed);
                assert!(judge.is_valid(&passed), "{passed} passes\n{schema}");
            }
            Err(refused) => {
                assert!(!refused.errors.is_empty());
                let refusal = refused.structured_content().to_json();
                let refusal: Value = serde_json::from_str(&refusal)
                    .unwrap_or_else(|error| panic!("{error}: {refusal}"));
                assert_eq!(refusal["code"], "invalid_arguments");
                // A text that not every reader reads alike is refused whatever a schema says.
                let readable = weir_schema::json::read(&text).ok().filter(Value::is_object);
                let is_valid = readable.as_ref().is_some_and(|value| judge.is_valid(value));
                assert!(!is_valid, "{text} is refused\n{schema}\n{refusal}");
            }
        }
    }
});
