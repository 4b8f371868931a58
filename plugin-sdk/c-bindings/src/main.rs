//! Writes the plugin interface in C into the SDK: `weir-c-bindings plugin-sdk`.

use std::{env, fs, path::Path};

use anyhow::{Context as _, Result};
use wit_bindgen_core::{Files, wit_parser::Resolve};

/// The version of the interface, its world, the name that the world has in C, and the folder of the SDK's C files that has its
/// bindings.
const WORLDS: [(&str, &str, &str, &str); 2] = [
    ("0.1.2", "summarizing-adapter", "adapter", "collection"),
    ("0.1.1", "toolbox", "toolbox", "tools"),
];

fn main() -> Result<()> {
    let sdk = env::args_os()
        .nth(1)
        .context("usage: weir-c-bindings FOLDER-OF-THE-SDK")?;
    let sdk = Path::new(&sdk);
    for (version, world, name, folder) in WORLDS {
        let files = generate(&sdk.join("wit").join(version), world, name)?;
        let folder = sdk.join("c").join(folder);
        fs::create_dir_all(&folder)?;
        for (name, content) in files.iter() {
            write_changed(&folder.join(name), content)?;
        }
    }
    Ok(())
}

fn generate(interface: &Path, world: &str, name: &str) -> Result<Files> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(interface)?;
    let world = resolve.select_world(&[package], Some(world))?;
    let mut files = Files::default();
    let options = wit_bindgen_c::Opts {
        rename_world: Some(name.to_owned()),
        ..Default::default()
    };
    options
        .build()
        .generate(&mut resolve, world, &mut files)?;
    Ok(files)
}

/// Leaves an equal file alone, so that the program is not linked again.
fn write_changed(file: &Path, content: &[u8]) -> Result<()> {
    if fs::read(file).is_ok_and(|present| present == content) {
        return Ok(());
    }
    fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))
}
