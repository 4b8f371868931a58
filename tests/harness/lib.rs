//! The basis of the suites: the real binary, raw JSON clients, other people's clients, databases and web services.
//!
//! Nothing here is skipped when something is missing: the panic names the command that installs it.

pub mod admin;
pub mod client;
pub mod cluster;
pub mod foreign;
pub mod gateway;
#[path = "../../gateway/connections/tests/mariadb/mod.rs"]
pub mod mariadb;
pub mod network;
pub mod place;
pub mod postgres;
pub mod prometheus;
pub mod registry;
pub mod schema;
pub mod stdio;
pub mod strangers;
pub mod upstream;
pub mod valkey;
pub mod vendor;
pub mod wait;
pub mod web;

pub use admin::Admin;
pub use client::{Answer, Events, Legacy, Modern, answer_to, http};
pub use cluster::Cluster;
pub use gateway::{Gateway, House, SERVE, read_output, weir};
pub use mariadb::MariadbServer;
pub use postgres::Postgres;
pub use registry::Registry;
pub use stdio::Stdio;
pub use valkey::Valkey;
pub use wait::{StallMeter, until, within};
