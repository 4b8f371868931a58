//! The text of a file becomes a value by the strict reader's rules, whichever of the two notations it is in.

use serde_json::Value;
use weir_text::shorten;

use crate::{
    json::{self, JsonError, JsonFault},
    problem::FileProblem,
};

/// Reads the text as JSON if it starts with `{` or `[`, else as YAML.
pub(crate) fn read(file: &str, text: &str) -> Result<Value, FileProblem> {
    read_but_for(file, text, |_| false)
}

/// Reads like [`read`], except that numbers may be larger than readers hold exactly.
pub(crate) fn read_any_numbers(file: &str, text: &str) -> Result<Value, FileProblem> {
    read_but_for(file, text, |fault| fault == JsonFault::NumberOutOfRange)
}

fn read_but_for(
    file: &str,
    text: &str,
    is_borne: fn(JsonFault) -> bool,
) -> Result<Value, FileProblem> {
    if text.len() > super::FILE_BYTES_MAX {
        return Err(FileProblem::new(
            file,
            "",
            format!(
                "the file is larger than {} MiB",
                super::FILE_BYTES_MAX >> 20
            ),
        ));
    }
    // Editors on Windows put a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(FileProblem::new(file, "", "the file is empty"));
    }
    match text.trim_start().starts_with(['{', '[']) {
        true => json(file, text, is_borne),
        false => yaml(file, text, is_borne),
    }
}

fn json(file: &str, text: &str, is_borne: fn(JsonFault) -> bool) -> Result<Value, FileProblem> {
    let refused =
        |fault: JsonError| FileProblem::new(file, fault.path, format!("JSON: {}", fault.message));
    json::read(text).or_else(|first| {
        let (value, faults) = json::read_all(text);
        match faults.into_iter().find(|fault| !is_borne(fault.fault)) {
            Some(fault) => Err(refused(fault)),
            None => value.ok_or_else(|| refused(first)),
        }
    })
}

fn yaml(file: &str, text: &str, is_borne: fn(JsonFault) -> bool) -> Result<Value, FileProblem> {
    let refused = |fault: JsonError| {
        let problem = FileProblem::new(file, fault.path, format!("YAML: {}", fault.message));
        match fault.fault {
            JsonFault::NumberOutOfRange => problem.hint("put it in quotes to keep it as text"),
            _ => problem,
        }
    };
    let mut outcome = Err(FileProblem::new(file, "", "YAML: the file has no document"));
    let read =
        serde_saphyr::with_deserializer_from_str_with_options(text, options(), |deserializer| {
            match json::read_other(deserializer) {
                Ok((value, faults)) => {
                    outcome = faults
                        .into_iter()
                        .find(|fault| !is_borne(fault.fault))
                        .map_or(Ok(value), |fault| Err(refused(fault)));
                    Ok(())
                }
                Err((fault, place, error)) => {
                    outcome = Err(match fault {
                        Some(fault) => refused(fault),
                        None => {
                            FileProblem::new(file, place, format!("YAML: {}", first_line(&error)))
                        }
                    });
                    Err(error)
                }
            }
        });
    match (outcome, read) {
        (Ok(_), Err(error)) => Err(FileProblem::new(
            file,
            "",
            format!("YAML: {}", first_line(&error)),
        )),
        (outcome, _) => outcome,
    }
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
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}

fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default().trim();
    shorten(line, 300).into_owned()
}
