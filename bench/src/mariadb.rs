//! MariaDB with the table of tickets, on the generator's core: what Weir and its peers spend is counted, not this.

// The tests of connections start one in the same way.
#[path = "../../gateway/connections/tests/mariadb/mod.rs"]
#[expect(dead_code, reason = "tests share a server, and have a database each")]
mod server;

use std::path::Path;

use anyhow::ensure;

use crate::{
    place::free_port,
    weir::{CREATE_TABLE, insert_rows},
};

/// The account that Weir and Toolbox sign in with, over loopback.
pub(crate) const USER: &str = "weir";
pub(crate) const PASSWORD: &str = "bench";
pub(crate) const DATABASE: &str = "bench";

pub(crate) struct TicketDatabase {
    #[expect(dead_code, reason = "it runs for as long as this is kept")]
    server: server::MariadbServer,
    pub(crate) port: u16,
}

impl TicketDatabase {
    /// Starts it on the cores that this process may use.
    pub(crate) fn start() -> anyhow::Result<Self> {
        ensure!(
            Path::new("/usr/sbin/mariadbd").exists(),
            "MariaDB is missing"
        );
        let port = free_port()?;
        let server = server::MariadbServer::started(&[
            "--bind-address=127.0.0.1",
            &format!("--port={port}"),
        ]);
        // A key needs a length.
        let table = CREATE_TABLE.replace("ticket_id TEXT", "ticket_id VARCHAR(32)");
        server.script(
            "",
            &format!(
                "CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4; \
                 CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'; \
                 GRANT SELECT, SHOW VIEW ON {DATABASE}.* TO {USER}@'127.0.0.1';"
            ),
        );
        server.script(DATABASE, &format!("{table}; {};", insert_rows()));
        Ok(Self { server, port })
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "mysql://{USER}:{PASSWORD}@127.0.0.1:{}/{DATABASE}",
            self.port
        )
    }
}
