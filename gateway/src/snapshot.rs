//! Holds one immutable generation of everything a call reads, and swaps it atomically.

use std::sync::Arc;

use weir_contracts::CompiledContract;

use crate::catalogue::ToolCatalogue;

/// The contracts of a gateway at one moment. A call keeps the snapshot with which it began.
pub struct CatalogueSnapshot {
    /// Rises with every swap.
    pub generation: u64,
    /// Rises only when a listing changed, for which list_changed is sent.
    pub listing_generation: u64,
    pub catalogue: ToolCatalogue,
    /// The compiled contracts the catalogue was made from, in name order.
    pub contracts: Vec<Arc<CompiledContract>>,
}

impl CatalogueSnapshot {
    /// Creates the snapshot of a gateway that has published nothing.
    pub fn empty() -> Self {
        Self {
            generation: 0,
            listing_generation: 0,
            catalogue: ToolCatalogue::default(),
            contracts: Vec::new(),
        }
    }
}
