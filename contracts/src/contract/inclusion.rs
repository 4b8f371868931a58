//! A related record that a lookup answers along with its own, if its caller asks for it.

use serde::{Deserialize, Serialize};

/// One record of another collection, found by its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordInclusion {
    /// The name that `include` asks for it by, and the member of the answer that holds it.
    pub name: String,
    /// A collection of the same contract.
    pub collection: String,
    /// The columns of the record with the other record's key, in the order of that key.
    pub columns: Vec<String>,
}
