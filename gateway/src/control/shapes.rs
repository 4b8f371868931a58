//! Keeps recorded shapes in the state folder: `shapes/<contract>/<collection>.json`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_contracts::{Shape, form};

pub(super) struct Recorded {
    folder: PathBuf,
}

/// A collection, in a form or published.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) name: &'a str,
    pub(super) adapter: &'a str,
    pub(super) settings: &'a Value,
}

impl<'a> From<&'a form::Collection> for Of<'a> {
    fn from(collection: &'a form::Collection) -> Self {
        Self {
            name: &collection.name,
            adapter: &collection.adapter,
            settings: &collection.settings,
        }
    }
}

/// A shape counts only for the adapter and the settings it was described with.
#[derive(Serialize, Deserialize)]
struct Entry {
    adapter: String,
    settings: Value,
    shape: Shape,
}

impl Recorded {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn get(&self, contract: &str, collection: Of<'_>) -> Option<Shape> {
        let text = fs::read_to_string(self.path(contract, collection)?).ok()?;
        let entry: Entry = serde_json::from_str(&text).ok()?;
        (entry.adapter == collection.adapter && entry.settings == *collection.settings)
            .then_some(entry.shape)
    }

    /// Writes a shape whole or not at all: a process that dies here leaves the old record.
    pub(super) fn put(&self, contract: &str, collection: Of<'_>, shape: &Shape) -> io::Result<()> {
        let Some(path) = self.path(contract, collection) else {
            return Ok(());
        };
        let entry = Entry {
            adapter: collection.adapter.to_owned(),
            settings: collection.settings.clone(),
            shape: shape.clone(),
        };
        weir_files::replace(
            &path,
            &serde_json::to_vec_pretty(&entry)?,
            weir_files::Readers::Everyone,
        )
    }

    /// Names come from a file that was read: they are checked again before they become a path.
    fn path(&self, contract: &str, collection: Of<'_>) -> Option<PathBuf> {
        let plain = |name: &str| {
            (1..=64).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        (plain(contract) && plain(collection.name)).then(|| {
            self.folder
                .join(contract)
                .join(format!("{}.json", collection.name))
        })
    }
}

/// Returns the shape that a gateway with this state recorded for a collection of a form; `None` if the collection is
/// new or its settings have changed.
pub fn recorded_shape(
    state: &Path,
    contract: &str,
    collection: &form::Collection,
) -> Option<Shape> {
    Recorded::new(state.join("shapes")).get(contract, collection.into())
}
