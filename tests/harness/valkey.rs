//! A server of Valkey's or Redis' kind for one test, from Debian's packages; killed when dropped.

use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::{
    place,
    upstream::{free_port, wait_for_address},
};

pub struct Valkey {
    folder: TempDir,
    port: u16,
    server: Option<Child>,
}

impl Valkey {
    pub fn start() -> Self {
        let mut valkey = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            port: free_port(),
            server: None,
        };
        valkey.run();
        valkey
    }

    pub fn run(&mut self) {
        let program = place::present("/usr/bin/redis-server".into(), "cargo xtask test");
        let mut server = Command::new(program);
        server
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        self.server = Some(server.spawn().expect("redis-server starts"));
        wait_for_address("127.0.0.1", self.port, "redis-server");
    }

    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    pub fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}", self.port)
    }
}

impl Drop for Valkey {
    fn drop(&mut self) {
        self.stop();
    }
}
