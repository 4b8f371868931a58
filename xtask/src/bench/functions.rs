//! The measured function in the languages that the program itself builds plugins of: as its author would, by
//! `weir plugin new` and `weir plugin build`.

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::{clients, plugins, step::Failure, workshop::Workshop};

/// One language, and what its author has installed.
pub(super) struct Language {
    /// The row that measures it.
    pub(super) row: &'static str,
    name: &'static str,
    source: &'static str,
    /// Where its tools are below the folder of clients, and where its author has them.
    installed: (&'static str, &'static str),
}

pub(super) const LANGUAGES: [Language; 2] = [
    Language {
        row: "weir-function-js",
        name: "js",
        source: "plugin.js",
        installed: ("tiny-js/node_modules", "node_modules"),
    },
    Language {
        row: "weir-function-python",
        name: "python",
        source: "app.py",
        installed: ("tiny-python", ".venv"),
    },
];

/// The row of the function behind hyper-mcp.
pub(super) const EXTISM: &str = "hyper-mcp-function-stdio";

/// Builds the function as a plugin of Extism, which is a bare module and no component: cargo's own linker makes it.
pub(super) fn extism(workshop: &Workshop) -> Result<(), Failure> {
    let (target, built) = (
        workshop.cache.join("extism"),
        "wasm32-unknown-unknown/release/weir_bench_extism.wasm",
    );
    let mut cargo = workshop.cargo(&[
        "build",
        "--release",
        "--locked",
        "--target",
        "wasm32-unknown-unknown",
    ]);
    cargo
        .current_dir(workshop.repository.join("bench/functions/extism"))
        .env_remove("RUSTFLAGS");
    workshop.steps.command(
        "function for Extism",
        cargo.env("CARGO_TARGET_DIR", &target),
    )?;
    plugins::place(
        &target.join(built),
        &plugins::guest_folder(workshop).join("lookup-extism.wasm"),
    )
}

impl Language {
    /// Builds the function into the folder of guests, with the `weir` among `programs`.
    pub(super) fn build(&self, workshop: &Workshop, programs: &Path) -> Result<(), Failure> {
        match self.name {
            "js" => drop(clients::npm(
                workshop,
                &workshop.repository.join("tests/guests/tiny-js"),
                "tiny-js",
            )?),
            _ => drop(clients::python(workshop, "tiny-python")?),
        }
        let desk = workshop.cache.join("bench-functions").join(self.name);
        let _ = fs::remove_dir_all(&desk);
        let io = |error: std::io::Error| Failure::from(format!("{}: {error}", desk.display()));
        fs::create_dir_all(&desk).map_err(io)?;
        let weir = |inside: &Path, words: &[&str]| {
            let mut command = workshop.command(programs.join("weir"));
            command.args(words).current_dir(inside);
            let node = clients::node(workshop)?;
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(node).chain(std::env::split_paths(&path));
            let path = std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?;
            workshop.steps.command(
                &format!("weir {} ({})", words.join(" "), self.name),
                command.env("PATH", path),
            )
        };
        weir(
            &desk,
            &[
                "plugin", "new", "lookup", "--lang", self.name, "--kind", "tools",
            ],
        )?;
        let folder = desk.join("lookup");
        let (installed, here) = self.installed;
        symlink(
            workshop.cache.join("clients").join(installed),
            folder.join(here),
        )
        .map_err(io)?;
        let source = workshop
            .repository
            .join("bench/functions")
            .join(self.name)
            .join(self.source);
        fs::copy(source, folder.join(self.source)).map_err(io)?;
        weir(&folder, &["plugin", "build"])?;
        let built = folder.join("plugins/lookup.wasm");
        plugins::place(
            &built,
            &plugins::guest_folder(workshop).join(format!("lookup-{}.wasm", self.name)),
        )
    }
}
