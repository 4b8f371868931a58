//! Any two neighbouring schemas: no value contradicts the verdict on the change, and every witness is true.
#![no_main]

#[path = "../../contracts/tests/diff_properties/corners.rs"]
mod corners;
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
use weir_contracts::diff::{ChangeSeverity, SchemaSide, diff_schemas};

fuzz_target!(|bytes: &[u8]| {
    let mut tape = Tape::new(bytes);
    if tape.one_in(3) {
        let (old, new, values) = corners::pair(&mut tape);
        return check(&values, &old, &new);
    }
    let mut old = schemas::schema(&mut tape, 3);
    schemas::add_definitions(&mut tape, &mut old);
    let new = schemas::neighbour(&mut tape, &old);
    check(&values::near(&mut tape, &old, &new), &old, &new);
});

fn check(values: &[Value], old: &Value, new: &Value) {
    let (Some(valid_old), Some(valid_new)) = (judge::validator(old), judge::validator(new)) else {
        return;
    };
    for side in [SchemaSide::Input, SchemaSide::Output] {
        let diff = diff_schemas(old, new, side);
        assert_eq!(
            diff.class,
            diff.items
                .iter()
                .map(|item| item.class)
                .max()
                .unwrap_or(ChangeSeverity::Identical)
        );
        let (source, target) = match side {
            SchemaSide::Input => (&valid_old, &valid_new),
            SchemaSide::Output => (&valid_new, &valid_old),
        };
        for witness in diff.items.iter().filter_map(|item| item.witness.as_ref()) {
            let is_true = source.is_valid(witness) && !target.is_valid(witness);
            assert!(
                is_true,
                "{side:?}: {witness} is no witness\n{old}\n{new}\n{diff:#?}"
            );
        }
        for value in values {
            let contradicts = match diff.class {
                ChangeSeverity::Identical | ChangeSeverity::Cosmetic => {
                    source.is_valid(value) != target.is_valid(value)
                }
                ChangeSeverity::Compatible => source.is_valid(value) && !target.is_valid(value),
                ChangeSeverity::Review | ChangeSeverity::Undecided | ChangeSeverity::Breaking => false,
            };
            assert!(
                !contradicts,
                "{side:?}: {value} contradicts {:?}\n{old}\n{new}\n{diff:#?}",
                diff.class
            );
        }
    }
}
