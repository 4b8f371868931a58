//! The text of a file becomes a value by the strict reader's rules, whichever of the two notations it is in.

use serde_json::Value;
use weir_text::shorten;

use crate::{
    json::{self, JsonError, JsonFault},
    problem::FileProblem,
};

const NUMBER_HINT: &str = "put it in quotes to keep it as text";
const DOCUMENT_HINT: &str = "give one document of JSON or YAML";
const JSON_HINT: &str = "check commas, quotes and brackets there";
const YAML_HINT: &str = "check indentation, quotes and brackets there; merge keys, tags and a second document are refused";

/// A value with the faults in it, as far as it could be read; otherwise only the faults, of which there is at least one.
type ReadText = Result<(Value, Vec<FileProblem>), Vec<FileProblem>>;

/// Reads the text as JSON if it starts with `{` or `[`, else as YAML.
pub(crate) fn read(file: &str, text: &str) -> ReadText {
    read_but_for(file, text, |_| false)
}

/// Reads like [`read`], except that numbers may be larger than readers hold exactly, and that a value has no faults.
pub(crate) fn read_any_numbers(file: &str, text: &str) -> Result<Value, Vec<FileProblem>> {
    let (value, faults) = read_but_for(file, text, |fault| fault == JsonFault::NumberOutOfRange)?;
    match faults.is_empty() {
        true => Ok(value),
        false => Err(faults),
    }
}

fn read_but_for(file: &str, text: &str, is_borne: fn(JsonFault) -> bool) -> ReadText {
    let refused =
        |message: String, hint: &str| Err(vec![FileProblem::new(file, "", message).hint(hint)]);
    if text.len() > super::FILE_BYTES_MAX {
        let message = format!(
            "the file is larger than {} MiB",
            super::FILE_BYTES_MAX >> 20
        );
        return refused(message, "write several files");
    }
    // Editors on Windows put a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return refused("the file is empty".to_owned(), DOCUMENT_HINT);
    }
    match text.trim_start().starts_with(['{', '[']) {
        true => json(file, text, is_borne),
        false => yaml(file, text, is_borne),
    }
}

fn json(file: &str, text: &str, is_borne: fn(JsonFault) -> bool) -> ReadText {
    let first = match json::read(text) {
        Ok(value) => return Ok((value, Vec::new())),
        Err(first) => first,
    };
    let (value, faults) = json::read_all(text);
    let faults = describe_all(file, "JSON", faults, is_borne);
    match value {
        Some(value) => Ok((value, faults)),
        None if faults.is_empty() => Err(vec![describe(file, "JSON", first)]),
        None => Err(faults),
    }
}

fn yaml(file: &str, text: &str, is_borne: fn(JsonFault) -> bool) -> ReadText {
    let unread = |place: &str, error: &serde_saphyr::Error| {
        let message = format!("YAML: {}", first_line(error));
        FileProblem::new(file, place, message).hint(YAML_HINT)
    };
    let empty = FileProblem::new(file, "", "YAML: the file has no document").hint(DOCUMENT_HINT);
    let mut outcome: ReadText = Err(vec![empty]);
    let read =
        serde_saphyr::with_deserializer_from_str_with_options(text, options(), |deserializer| {
            match json::read_other(deserializer) {
                Ok((value, faults)) => {
                    outcome = Ok((value, describe_all(file, "YAML", faults, is_borne)));
                    Ok(())
                }
                Err((fault, place, error)) => {
                    outcome = Err(vec![match fault {
                        Some(fault) => describe(file, "YAML", fault),
                        None => unread(&place, &error),
                    }]);
                    Err(error)
                }
            }
        });
    match (outcome, read) {
        (Ok((_, mut faults)), Err(error)) => {
            faults.push(unread("", &error));
            Err(faults)
        }
        (outcome, _) => outcome,
    }
}

/// Returns the faults that are not borne, each once.
fn describe_all(
    file: &str,
    notation: &str,
    faults: Vec<JsonError>,
    is_borne: fn(JsonFault) -> bool,
) -> Vec<FileProblem> {
    let mut problems: Vec<FileProblem> = faults
        .into_iter()
        .filter(|fault| !is_borne(fault.fault))
        .map(|fault| describe(file, notation, fault))
        .collect();
    problems.dedup();
    problems
}

/// Returns a fault as a problem of the file, with what to do about it.
fn describe(file: &str, notation: &str, fault: JsonError) -> FileProblem {
    let hint = match fault.fault {
        JsonFault::Syntax => JSON_HINT,
        JsonFault::DuplicateKey => "keep one of the two",
        JsonFault::TooDeep => "nest it less deeply",
        JsonFault::NumberOutOfRange => NUMBER_HINT,
    };
    FileProblem::new(file, fault.path, format!("{notation}: {}", fault.message)).hint(hint)
}

/// Returns the options for YAML 1.2 without its traps: no second meaning of `no` or `010`, no merge keys, no tags, few
/// aliases.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: json::DEPTH_MAX + 1,
            flow_nesting_limit: json::DEPTH_MAX + 1,
            max_documents: 1,
            max_events: 4_000_000,
            max_nodes: 2_000_000,
            max_aliases: 1_000,
            max_anchors: 1_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 200_000,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::PassThrough,
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        strict_booleans: true,
        reject_unsupported_tags: true,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default().trim();
    shorten(line, 300).into_owned()
}
