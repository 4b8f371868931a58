//! The sources of submissions: contract files, the code of plugins, and other servers.

pub mod files;
mod folder;
pub(super) mod locks;
pub mod plugins;
pub mod upstreams;

pub use self::folder::lock_path;
