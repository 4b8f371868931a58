//! Values of a column that differ only in case or blanks: one choice of a filter means all of them.

use super::{ContractDrafter, DraftInput, can, yaml::scalar};
use crate::{
    name,
    shape::{CollectionShape, ShapeField, ValueType},
};

/// The characters of a choice.
const CHOICE_MAX: usize = 200;

/// Returns a sentence for each column that has such values.
pub(super) fn note_alike(input: &DraftInput<'_>, shape: &CollectionShape) -> Vec<String> {
    let notes = input.choices.iter().filter_map(|(column, values)| {
        let field = shape.field(column)?;
        let choices = choices_of(values).filter(|_| field.kind == ValueType::String)?;
        let alike = alike_values(&choices);
        if alike.is_empty() {
            return None;
        }
        let way = match can(shape, field, "one-of") {
            true => "a filter by one of these finds all",
            false => "each is a separate choice",
        };
        Some(format!(
            "The column {} has values that differ only in case or blanks, and {way}: {}.",
            name::quoted(column),
            alike.join(", ")
        ))
    });
    notes.collect()
}

impl ContractDrafter<'_> {
    /// Writes the type of a filter by few values. Those that differ only in case or blanks become one choice if the source can
    /// be asked for several texts: a filter by a single spelling would miss the records with the others.
    pub(super) fn type_of_filter(&self, field: &ShapeField) -> String {
        let choices = self.choices(field).unwrap_or_default();
        let merged = merge_alike(&choices);
        if merged.len() == choices.len() || !can(self.shape, field, "one-of") {
            return self.type_of(field, false);
        }
        let written = merged.iter().map(|(value, also)| match also.is_empty() {
            true => scalar(value),
            false => {
                let also: Vec<String> = also.iter().map(|text| scalar(text)).collect();
                format!(
                    "{{ value: {}, also: [{}] }}",
                    scalar(value),
                    also.join(", ")
                )
            }
        });
        let written: Vec<String> = written.collect();
        format!("type: dropdown, choices: [{}]", written.join(", "))
    }
}

/// Returns the values that are choices of a filter; `None` for a column whose filter has none.
pub(super) fn choices_of(values: &[String]) -> Option<Vec<&str>> {
    let texts = values.iter().map(String::as_str);
    let choices: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    let fits = |text: &&str| text.chars().count() <= CHOICE_MAX;
    (!choices.is_empty() && choices.iter().all(fits)).then_some(choices)
}

/// Returns the values, quoted, that are like another one but for case and the blanks around them.
fn alike_values(values: &[&str]) -> Vec<String> {
    let bare: Vec<String> = values
        .iter()
        .map(|value| value.trim().to_lowercase())
        .collect();
    let has_twin = |at: usize| bare.iter().filter(|other| **other == bare[at]).count() > 1;
    let alike = (0..values.len()).filter(|at| has_twin(*at));
    alike.map(|at| name::quoted(values[at])).collect()
}

/// Groups values that differ only in case or blanks, in the order of the first of each group. The one that represents the
/// group has no blanks around it and the fewest capital letters.
fn merge_alike<'v>(values: &[&'v str]) -> Vec<(&'v str, Vec<&'v str>)> {
    let mut alike: Vec<(String, Vec<&'v str>)> = Vec::new();
    for &value in values {
        let bare = value.trim().to_lowercase();
        match alike.iter_mut().find(|(known, _)| *known == bare) {
            Some((_, texts)) => texts.push(value),
            None => alike.push((bare, vec![value])),
        }
    }
    let oddness = |text: &&str| {
        let capitals = text.chars().filter(|next| next.is_uppercase()).count();
        (text.trim() != *text, capitals)
    };
    let mut merged = Vec::with_capacity(alike.len());
    for (_, mut texts) in alike {
        texts.sort_by_key(oddness);
        let first = texts.remove(0);
        merged.push((first, texts));
    }
    merged
}
