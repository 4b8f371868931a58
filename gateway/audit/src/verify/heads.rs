//! The heads of all chains, as stored next to collected chains.

use std::{
    fs::File,
    io::{self, ErrorKind, Read as _},
    path::Path,
};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ChainName, RecordHash};

/// The file in a folder of collected chains.
pub const HEADS_FILE: &str = "heads.json";
const FILE_MAX_BYTES: u64 = 64 << 20;

/// The last record of a chain, as its process stated it last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainHead {
    #[schema(value_type = String)]
    pub chain: ChainName,
    /// The name of the machine that writes the chain.
    pub node: String,
    pub segment: u32,
    pub seq: u64,
    #[schema(value_type = String)]
    pub hash: RecordHash,
}

/// The heads of all chains recorded in the state of a fleet. A folder with this file has the chains of all machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectedHeads {
    pub heads: Vec<ChainHead>,
}

impl CollectedHeads {
    /// Reads the file of a folder; `None` if the folder has none.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(folder.join(HEADS_FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut text = String::new();
        file.take(FILE_MAX_BYTES).read_to_string(&mut text)?;
        let heads = serde_json::from_str(&text).map_err(|error| {
            io::Error::new(ErrorKind::InvalidData, format!("{HEADS_FILE}: {error}"))
        })?;
        Ok(Some(heads))
    }
}
