//! JavaScript: componentize-qjs, from the plugin's own `package.json`.

use std::{fs, path::PathBuf};

use anyhow::Context as _;

use super::{PluginProject, command, run, work, world};

/// Imports the plugin and looks for its exports, while the component is made.
const ENTRY: &str = include_str!("entry.js");
/// The functions of each export.
const TOOLBOX: &str = r#"{ about: ["about"], tools: ["configure", "definitions", "call"] }"#;
const ADAPTER: &str =
    r#"{ about: ["about"], collections: ["describe", "configure", "read", "write"] }"#;

const INSTALL_NODE: &str =
    "apt install nodejs npm    (or from https://nodejs.org; version 18 or newer)";

pub(super) fn build(folder: &PluginProject) -> anyhow::Result<PathBuf> {
    let tool = "node_modules/componentize-qjs/bin/componentize-qjs";
    if !folder.has(tool) {
        run(
            command(folder, "npm").args(["install", "--no-audit", "--no-fund"]),
            INSTALL_NODE,
        )?;
    }
    // Authors may write TypeScript.
    if folder.has("tsconfig.json") {
        run(
            command(folder, "node").arg("node_modules/typescript/bin/tsc"),
            INSTALL_NODE,
        )?;
    }
    let (work, world) = (work(folder)?, world(folder, "sdk/weir.js"));
    let (exports, example) = match world {
        "toolbox" => (TOOLBOX, "export const { about, tools } = plugin({ … })"),
        _ => (ADAPTER, "export const about = { … }"),
    };
    let entry = ENTRY
        .replace("EXPORTS", exports)
        .replace("EXAMPLE", example);
    let path = work.join("entry.js");
    fs::write(&path, entry).with_context(|| format!("{} cannot be written", path.display()))?;
    let built = work.join("plugin.wasm");
    let mut componentize = command(folder, "node");
    componentize.args([
        tool,
        "--wit",
        "sdk/wit",
        "--world",
        world,
        "--js",
        ".weir/build/entry.js",
    ]);
    // The gateway does not support the asynchronous interface. Minified code has other lines than its source, and is no
    // smaller: most of a component is the interpreter.
    componentize
        .args(["--module-root", ".", "--sync", "--opt-size", "-o"])
        .arg(&built);
    run(&mut componentize, INSTALL_NODE)?;
    Ok(built)
}
