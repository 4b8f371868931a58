//! Reading a shape from JSON, as a plugin described it or a person wrote it.

use serde::{Deserialize, Deserializer};

use super::{CollectionShape, ShapeCapabilities, SummarySupport};
use crate::json;

/// Every comparison there is, in the order in which messages list them.
pub const COMPARISONS: &[&str] = &[
    "equals",
    "not-equals",
    "one-of",
    "at-least",
    "at-most",
    "contains",
    "contains-ci",
    "starts-with",
    "is-empty",
];

/// Larger descriptions are refused: no source has them.
const BYTES_MAX: usize = 4 << 20;

impl CollectionShape {
    /// Reads a shape strictly. The error states the fault and, if known, its place.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("the shape is larger than {} MiB", BYTES_MAX >> 20));
        }
        let value = json::read(text).map_err(|error| error.placed())?;
        let shape: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        shape.check()?;
        Ok(shape)
    }
}

impl ShapeCapabilities {
    /// Returns the abilities of a shape that states none: everything but operations.
    pub fn unstated() -> Self {
        Self {
            read: true,
            write: all_verbs(),
            matches: [(
                "*".to_owned(),
                COMPARISONS.iter().map(|&word| word.to_owned()).collect(),
            )]
            .into(),
            order: vec!["*".to_owned()],
            summaries: SummarySupport::All,
            ..Self::default()
        }
    }

    /// Returns the comparisons that the column can be asked by, as words. `*` in the shape is for all columns that it
    /// does not name.
    pub fn compares(&self, column: &str) -> &[String] {
        self.matches
            .get(column)
            .or_else(|| self.matches.get("*"))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns `true` if records can be ordered by the column.
    pub fn orders(&self, column: &str) -> bool {
        self.order
            .iter()
            .any(|entry| entry == "*" || entry == column)
    }
}

/// Reads `["create", …]`, or `true` and `false` for all and none.
pub(super) fn verbs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum WriteVerbs {
        All(bool),
        Named(Vec<String>),
    }
    Ok(match WriteVerbs::deserialize(deserializer)? {
        WriteVerbs::All(true) => all_verbs(),
        WriteVerbs::All(false) => Vec::new(),
        WriteVerbs::Named(verbs) => verbs,
    })
}

fn all_verbs() -> Vec<String> {
    ["create", "update", "delete"].map(str::to_owned).to_vec()
}
