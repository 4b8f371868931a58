//! Where submissions come from: contract files, the code of plugins, and other servers.

pub(super) mod files;
pub mod plugins;
pub mod upstreams;
