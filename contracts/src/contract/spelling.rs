//! Choices that mean several texts of the source, such as `Paid` as well as `paid`.

use serde_json::Value;

use super::BindingInput;

impl BindingInput {
    /// Replaces chosen values by all texts that they mean.
    pub(super) fn spell_out(&self, value: &mut Value) {
        let chosen = match value {
            _ if self.spellings.is_empty() => return,
            Value::Array(chosen) => std::mem::take(chosen),
            Value::String(_) => vec![value.take()],
            _ => return,
        };
        let mut texts = Vec::with_capacity(chosen.len() + 1);
        for one in chosen {
            let further = one.as_str().and_then(|one| self.spellings.get(one));
            texts.push(one);
            texts.extend(
                further
                    .into_iter()
                    .flatten()
                    .map(|text| Value::from(&**text)),
            );
        }
        *value = Value::Array(texts);
    }
}
