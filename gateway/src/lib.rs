//! Weir, the gateway between agents and data. Modules in the order a request meets them.

pub mod transport;

pub mod era;
pub mod identity;
pub mod methods;
pub mod wire;

pub mod call;
pub mod catalogue;
pub mod codes;
pub mod cursor;
pub mod limits;

pub mod accounts;
pub mod admin;
pub mod announcements;
pub mod app;
pub mod call_history;
pub mod client_entry;

pub mod config;
pub mod control;
pub mod live_resources;
pub mod memory;
pub mod node_messages;
mod pages;
pub mod plans;
pub mod plugin_files;
pub mod readiness;
pub mod scrape;
pub mod serving;
pub mod session_notes;
pub mod snapshot;
pub mod source_checks;
pub mod tasks;
pub mod telemetry;
pub mod tokens;
pub mod web_files;

#[cfg(test)]
mod testing;

pub use app::GatewayApp;
pub use serving::ServingGateway;
