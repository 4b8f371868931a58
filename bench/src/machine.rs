//! Describes the machine, the kernel, and the versions of everything in the run.

use std::{fs, process::Command};

use serde::{Deserialize, Serialize};

use crate::{place::BenchPaths, postgres};

#[derive(Serialize, Deserialize)]
pub(crate) struct BenchMachine {
    date: String,
    processor: String,
    cores: usize,
    memory_gb: u64,
    kernel: String,
    command: String,
    /// Name and version.
    versions: Vec<(String, String)>,
}

impl BenchMachine {
    pub(crate) fn look(place: &BenchPaths) -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let options = words.join(" ").replace("--write docs/benchmarks", "");
        let command = match options.trim() {
            "" => "cargo xtask bench".to_owned(),
            options => format!("cargo xtask bench -- {options}"),
        };
        let processor = said_in("/proc/cpuinfo", "model name");
        let memory = said_in("/proc/meminfo", "MemTotal");
        let kilobytes: u64 = memory
            .split_whitespace()
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        Self {
            date: first_line(Command::new("date").args(["-u", "+%F"])),
            processor,
            // This process may be bound to one core.
            cores: fs::read_to_string("/proc/cpuinfo")
                .unwrap_or_default()
                .matches("processor\t:")
                .count(),
            memory_gb: kilobytes.div_ceil(1 << 20),
            kernel: first_line(Command::new("uname").arg("-sr")),
            command,
            versions: versions(place),
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let versions: Vec<String> = self
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        vec![
            format!("{}, `{}`", self.date, self.command),
            format!(
                "{} ({} cores, {} GB), {}",
                self.processor, self.cores, self.memory_gb, self.kernel
            ),
            versions.join(", "),
        ]
    }
}

fn versions(place: &BenchPaths) -> Vec<(String, String)> {
    let read = |path: &std::path::Path| fs::read_to_string(path).unwrap_or_default();
    let mut versions = Vec::new();
    let mut add = |name: &str, version: Option<String>| {
        versions.extend(
            version
                .filter(|version| !version.is_empty())
                .map(|version| (name.to_owned(), version)),
        );
    };
    add(
        "weir",
        first_line(Command::new(place.binary("weir")).arg("--version"))
            .strip_prefix("weir ")
            .map(str::to_owned),
    );
    let commit = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .current_dir(&place.repository)
        .output();
    add(
        "commit",
        commit
            .ok()
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()),
    );
    let lock = read(&place.repository.join("Cargo.lock"));
    for name in ["axum", "rmcp", "wasmtime"] {
        add(
            name,
            after(&lock, &format!("name = \"{name}\"\nversion = \"")),
        );
    }
    let node = read(&place.servers().join("node/package.json"));
    for name in ["@modelcontextprotocol/server", "@toolbox-sdk/server"] {
        add(name, after(&node, &format!("\"{name}\": \"")));
    }
    let python = read(&place.servers().join("python.txt"))
        + &read(&place.servers().join("contextforge.txt"));
    for name in ["mcp", "fastmcp", "mcp-contextforge-gateway"] {
        add(
            name,
            python
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name}==")))
                .map(str::to_owned),
        );
    }
    add(
        "PostgreSQL",
        postgres::program("postgres").ok().and_then(|program| {
            first_line(Command::new(program).arg("--version"))
                .split_whitespace()
                .nth(2)
                .map(str::to_owned)
        }),
    );
    add(
        "rustc",
        first_line(Command::new("rustc").arg("--version"))
            .split_whitespace()
            .nth(1)
            .map(str::to_owned),
    );
    versions
}

/// Returns what follows `start` up to the next quote.
fn after(text: &str, start: &str) -> Option<String> {
    let rest = &text[text.find(start)? + start.len()..];
    rest.split('"').next().map(str::to_owned)
}

/// Returns the value of the first line of `name: value`.
fn said_in(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_default();
    line.split_once(':')
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

fn first_line(command: &mut Command) -> String {
    let output = command
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    String::from_utf8_lossy(&output)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}
