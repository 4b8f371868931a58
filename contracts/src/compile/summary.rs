//! Compiles what only tools have that ask about many records at once.

use super::Problems;
use crate::{
    contract::{Collection, Verb},
    form,
};

/// Refuses a verb that asks about many records at once, which the source cannot answer.
pub(super) fn check_source(
    collection: &Collection,
    verb: Verb,
    place: String,
    problems: &mut Problems,
) {
    let (name, word) = (&collection.name, verb.word());
    problems.add_hint(
        place,
        format!("collection '{name}' has no {word}: the source cannot {word} records"),
        "publish a list, or serve the data by an adapter that can",
    );
}

/// Checks the keys of a form that mean nothing to a count.
pub(super) fn check_keys(form: &form::Tool, verb: Verb, problems: &mut Problems) {
    if form.returns.is_some() && verb == Verb::Count {
        problems.add_hint(
            format!("{}/returns", form.place),
            "a count answers no columns",
            "drop it",
        );
    }
}
