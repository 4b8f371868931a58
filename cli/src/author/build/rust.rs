//! Rust: cargo, for the target that the linker of every Rust toolchain makes a component of.

use std::{
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{PluginProject, command, output, read, run};
use crate::draft;

const TARGET: &str = "wasm32-unknown-unknown";
const INSTALL_RUST: &str = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh";

pub(super) fn build(folder: &PluginProject) -> anyhow::Result<Vec<u8>> {
    let sysroot = output(
        command(folder, "rustc").args(["--print", "sysroot"]),
        INSTALL_RUST,
    )?;
    if !Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .join("lib")
        .is_dir()
    {
        bail!(
            "Rust has no standard library for `{TARGET}` here; install it:\n\n  rustup target add {TARGET}\n"
        );
    }
    let package = CargoPackage::read(folder)?;
    let _turn = package.take_turn()?;
    package.claim(folder, &["--target", TARGET])?;
    let words = ["build", "--release", "--target", TARGET];
    run(package.cargo(folder).args(words), INSTALL_RUST)?;
    let built = package.folder.join(TARGET).join("release");
    read(&built.join(format!("{}.wasm", package.library)))
}

/// Builds a library for this machine, which needs no target: the feature makes the library's symbol.
pub(super) fn build_library(folder: &PluginProject) -> anyhow::Result<Vec<u8>> {
    let package = CargoPackage::read(folder)?;
    let _turn = package.take_turn()?;
    package.claim(folder, &[])?;
    let words = ["build", "--release", "--features", "native"];
    run(package.cargo(folder).args(words), INSTALL_RUST)?;
    let (begin, end) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let built = package.folder.join("release");
    read(&built.join(format!("{begin}{}{end}", package.library)))
}

/// Forgets the plugin's own build, so that the next one compiles it again.
pub(super) fn forget(folder: &PluginProject, native: bool) -> anyhow::Result<()> {
    let package = CargoPackage::read(folder)?;
    let target: &[&str] = if native { &[] } else { &["--target", TARGET] };
    let mut clean = package.cargo(folder);
    clean
        .args(["clean", "--quiet", "--release"])
        .args(target)
        .args(["--package", &package.name]);
    run(&mut clean, INSTALL_RUST)
}

struct CargoPackage {
    name: String,
    /// The name of its file.
    library: String,
    /// The names of all packages in the plugin's folder.
    members: Vec<String>,
    /// The folder in which cargo builds.
    folder: PathBuf,
    /// Whether the plugins of this user share it, so that common dependencies are compiled once.
    is_shared: bool,
}

impl CargoPackage {
    fn read(folder: &PluginProject) -> anyhow::Result<Self> {
        let words = ["metadata", "--no-deps", "--format-version", "1"];
        let metadata: Value =
            serde_json::from_str(&output(command(folder, "cargo").args(words), INSTALL_RUST)?)?;
        let manifest = folder.path.join("Cargo.toml");
        let packages = metadata["packages"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let package = packages
            .iter()
            .find(|package| package["manifest_path"].as_str().map(Path::new) == Some(&manifest))
            .with_context(|| format!("{} names no package", manifest.display()))?;
        let is_component = |target: &&Value| {
            target["crate_types"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
        };
        let library = package["targets"].as_array().into_iter().flatten().find(is_component).with_context(|| {
            format!(
                "{}: there is no library for a component; write `[lib] crate-type = [\"rlib\", \"cdylib\"]`",
                manifest.display()
            )
        })?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let configured = PathBuf::from(text(&metadata["target_directory"]));
        // Settings of the author or a workspace are kept.
        let shared = draft::cache_folder().filter(|_| configured == folder.path.join("target"));
        let shared = shared.map(|cache| cache.join("rust-plugins"));
        let shared = shared.map(
            |shared| match has_all_its_packages(packages, &folder.path) {
                true => shared,
                false => shared.join(own_name(&folder.path)),
            },
        );
        let shared = shared.filter(|shared| std::fs::create_dir_all(shared).is_ok());
        let members = packages.iter().map(|package| text(&package["name"]));
        Ok(Self {
            name: text(&package["name"]),
            library: text(&library["name"]).replace('-', "_"),
            members: members.collect(),
            is_shared: shared.is_some(),
            folder: shared.unwrap_or(configured),
        })
    }

    fn cargo(&self, folder: &PluginProject) -> Command {
        let mut cargo = command(folder, "cargo");
        if self.is_shared {
            cargo.env("CARGO_TARGET_DIR", &self.folder);
        }
        cargo
    }

    /// Removes what was built from another plugin's packages with the same names: cargo tells two packages of one name apart
    /// only by their paths in a workspace, and would take the other's output for this one's.
    fn claim(&self, folder: &PluginProject, target: &[&str]) -> anyhow::Result<()> {
        if !self.is_shared {
            return Ok(());
        }
        let owners = self.folder.join(".weir-owners").join(target.concat());
        let failed = || format!("{} cannot be written", owners.display());
        std::fs::create_dir_all(&owners).with_context(failed)?;
        let own = own_name(&folder.path);
        let is_other = |name: &&String| {
            let owner = std::fs::read_to_string(owners.join(name));
            owner.is_ok_and(|owner| owner != own)
        };
        let others: Vec<&String> = self.members.iter().filter(is_other).collect();
        if !others.is_empty() {
            let mut clean = self.cargo(folder);
            clean.args(["clean", "--quiet", "--release"]).args(target);
            clean.args(others.into_iter().flat_map(|name| ["--package", name]));
            run(&mut clean, INSTALL_RUST)?;
        }
        for name in &self.members {
            std::fs::write(owners.join(name), &own).with_context(failed)?;
        }
        Ok(())
    }

    /// Waits until no other plugin is being built in the folder: one of the same name would put its file in this one's place.
    fn take_turn(&self) -> anyhow::Result<Option<File>> {
        if !self.is_shared {
            return Ok(None);
        }
        let failed = || format!("{} cannot be written", self.folder.display());
        std::fs::create_dir_all(&self.folder).with_context(failed)?;
        let turn = File::create(self.folder.join(".weir-turn")).with_context(failed)?;
        turn.lock().with_context(failed)?;
        Ok(Some(turn))
    }
}

/// Returns `true` if no package of the plugin depends on one elsewhere on this machine.
fn has_all_its_packages(packages: &[Value], folder: &Path) -> bool {
    let needed = packages
        .iter()
        .filter_map(|package| package["dependencies"].as_array());
    let mut places = needed.flatten().filter_map(|it| it["path"].as_str());
    places.all(|place| Path::new(place).starts_with(folder))
}

/// Returns a name that only a plugin in this folder has.
fn own_name(folder: &Path) -> String {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let mut own = DefaultHasher::new();
    path.hash(&mut own);
    format!("{:016x}", own.finish())
}
