//! Checks that no value contradicts a verdict, and that every witness is true: with random schemas and close neighbours
//! of them, random values, and the validator as the judge.
//!
//! `PROPTEST_CASES=200000 cargo test --release -p weir-contracts --test suite diff_properties::` is a long campaign.

mod corners;
mod schemas;
mod shims;
mod tape;
mod values;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_contracts::{
    compile,
    diff::{ChangeSeverity, SchemaSide, diff_schemas},
    form,
    impact::{ImpactVerdict, ValueProfile, judge, profile},
};

use tape::Tape;

proptest! {
    #[test]
    fn general_schemas(tape in tape::tapes()) {
        let mut tape = Tape::new(&tape);
        let mut old = schemas::schema(&mut tape, 3);
        schemas::add_definitions(&mut tape, &mut old);
        let new = schemas::neighbour(&mut tape, &old);
        check(&mut tape, &old, &new)?;
    }

    #[test]
    fn corners_of_one_type(tape in tape::tapes()) {
        let mut tape = Tape::new(&tape);
        // A short tape holds several small pairs.
        for _ in 0..6 {
            let (old, new, values) = corners::pair(&mut tape);
            check_values(&values, &old, &new)?;
        }
    }

    #[test]
    fn compiled_inputs(tape in tape::tapes()) {
        let mut tape = Tape::new(&tape);
        let fields = schemas::form(&mut tape, 2);
        let changed = schemas::changed_form(&mut tape, &fields);
        let (Some(old), Some(new)) = (input_schema(&fields), input_schema(&changed)) else { return Ok(()) };
        check(&mut tape, &old, &new)?;
    }

    #[test]
    fn judged_calls(tape in tape::tapes(), general in any::<bool>()) {
        let mut tape = Tape::new(&tape);
        let (old, new) = match general {
            true => {
                let old = schemas::schema(&mut tape, 3);
                let new = schemas::neighbour(&mut tape, &old);
                (old, new)
            }
            false => {
                let fields = schemas::form(&mut tape, 2);
                let changed = schemas::changed_form(&mut tape, &fields);
                let (Some(old), Some(new)) = (input_schema(&fields), input_schema(&changed)) else { return Ok(()) };
                (old, new)
            }
        };
        check_judgement(&mut tape, &old, &new)?;
    }

    #[test]
    fn shimmed_calls(tape in tape::tapes()) {
        let mut tape = Tape::new(&tape);
        for _ in 0..3 {
            let pair = shims::pair(&mut tape);
            if pair.converts() && pair.fits() {
                check_shim(&mut tape, &pair)?;
            }
        }
    }
}

/// Checks that valid arguments of the old version become valid ones of the new version, and results the reverse.
fn check_shim(tape: &mut Tape<'_>, pair: &shims::Pair) -> Result<(), TestCaseError> {
    let (old, new) = (&pair.old, &pair.new);
    let (Some(valid_old), Some(valid_new)) = (validator(old), validator(new)) else {
        return Ok(());
    };
    let Some(tool) = pair.shim.tools.get("t") else {
        return Ok(());
    };
    let (up, down) = tool.conversions().expect("it fits");
    // What someone has to review may break single values: a member that is named no more may be anything.
    let is_reviewed = |side| {
        let items = diff_schemas(old, new, side).items;
        items
            .iter()
            .any(|item| item.class == ChangeSeverity::Review)
    };
    let (up_reviewed, down_reviewed) = (
        is_reviewed(SchemaSide::Input),
        is_reviewed(SchemaSide::Output),
    );
    for value in values::near(tape, old, new)
        .iter()
        .filter(|it| it.is_object())
    {
        if !up_reviewed && valid_old.is_valid(value) {
            let mut changed = value.clone();
            up.up(&mut changed);
            let is_valid = valid_new.is_valid(&changed);
            prop_assert!(
                is_valid,
                "{} → {}\n{}\n{}\n{:?}",
                value,
                changed,
                old,
                new,
                tool
            );
        }
        if !down_reviewed && valid_new.is_valid(value) {
            let mut changed = value.clone();
            down.down(&mut changed);
            let is_valid = valid_old.is_valid(&changed);
            prop_assert!(
                is_valid,
                "{} ← {}\n{}\n{}\n{:?}",
                changed,
                value,
                old,
                new,
                tool
            );
        }
    }
    Ok(())
}

fn check_judgement(tape: &mut Tape<'_>, old: &Value, new: &Value) -> Result<(), TestCaseError> {
    let (Some(valid_old), Some(valid_new)) = (validator(old), validator(new)) else {
        return Ok(());
    };
    for value in values::near(tape, old, new)
        .into_iter()
        .filter(|value| valid_old.is_valid(value))
    {
        let Value::Object(arguments) = &value else {
            continue;
        };
        let kept = serde_json::to_string(&profile(old, arguments)).expect("plain data");
        let kept: ValueProfile = serde_json::from_str(&kept).expect("a profile");
        let is_valid = valid_new.is_valid(&value);
        match judge(new, &kept) {
            ImpactVerdict::Passes => {
                prop_assert!(is_valid, "{} fails\n{}\n{}\n{:?}", value, old, new, kept)
            }
            ImpactVerdict::Fails { why } => {
                prop_assert!(
                    !is_valid,
                    "{} passes, {}\n{}\n{}\n{:?}",
                    value,
                    why,
                    old,
                    new,
                    kept
                )
            }
            ImpactVerdict::CannotTell { .. } => {}
        }
    }
    Ok(())
}

fn input_schema(fields: &[Value]) -> Option<Value> {
    let form = json!({ "tool": "t", "fields": fields });
    let source = form::read("-", &form.to_string()).ok()?;
    Some(
        compile(&source, &BTreeMap::new())
            .ok()?
            .tools
            .first()?
            .input_schema
            .value(),
    )
}

fn check(tape: &mut Tape<'_>, old: &Value, new: &Value) -> Result<(), TestCaseError> {
    check_values(&values::near(tape, old, new), old, new)
}

fn check_values(values: &[Value], old: &Value, new: &Value) -> Result<(), TestCaseError> {
    let (Some(valid_old), Some(valid_new)) = (validator(old), validator(new)) else {
        return Ok(());
    };
    for side in [SchemaSide::Input, SchemaSide::Output] {
        let diff = diff_schemas(old, new, side);
        prop_assert_eq!(
            diff.class,
            diff.items
                .iter()
                .map(|item| item.class)
                .max()
                .unwrap_or(ChangeSeverity::Identical)
        );
        prop_assert_eq!(diff.breaking, diff.class >= ChangeSeverity::Undecided);
        let (source, target) = match side {
            SchemaSide::Input => (&valid_old, &valid_new),
            SchemaSide::Output => (&valid_new, &valid_old),
        };
        for witness in diff.items.iter().filter_map(|item| item.witness.as_ref()) {
            prop_assert!(
                source.is_valid(witness) && !target.is_valid(witness),
                "{} is no witness: {:#?}",
                witness,
                diff
            );
        }
        for value in values {
            let contradicts = match diff.class {
                ChangeSeverity::Identical | ChangeSeverity::Cosmetic => {
                    source.is_valid(value) != target.is_valid(value)
                }
                ChangeSeverity::Compatible => source.is_valid(value) && !target.is_valid(value),
                ChangeSeverity::Review | ChangeSeverity::Undecided | ChangeSeverity::Breaking => {
                    false
                }
            };
            prop_assert!(
                !contradicts,
                "{:?}: {} contradicts\n{}\n{}\n{:#?}",
                side,
                value,
                old,
                new,
                diff
            );
        }
    }
    Ok(())
}

fn validator(schema: &Value) -> Option<jsonschema::Validator> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .build(schema)
        .ok()
}
