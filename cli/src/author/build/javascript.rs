//! JavaScript: componentize-qjs, from the plugin's own `package.json`.

use std::path::PathBuf;

use super::{Folder, command, run, work, world};

const INSTALL_NODE: &str =
    "apt install nodejs npm    (or from https://nodejs.org; version 18 or newer)";

pub(super) fn build(folder: &Folder) -> anyhow::Result<PathBuf> {
    let tool = "node_modules/componentize-qjs/bin/componentize-qjs";
    if !folder.has(tool) {
        run(
            command(folder, "npm").args(["install", "--no-audit", "--no-fund"]),
            INSTALL_NODE,
        )?;
    }
    // This is for authors who write TypeScript.
    if folder.has("tsconfig.json") {
        run(
            command(folder, "node").arg("node_modules/typescript/bin/tsc"),
            INSTALL_NODE,
        )?;
    }
    let built = work(folder)?.join("plugin.wasm");
    let mut componentize = command(folder, "node");
    componentize.args([
        tool,
        "--wit",
        "sdk/wit",
        "--world",
        world(folder, "sdk/weir.js"),
        "--js",
        "plugin.js",
    ]);
    // The gateway takes neither the asynchronous interface nor a system of the plugin's own.
    componentize
        .args([
            "--module-root",
            ".",
            "--sync",
            "--stub-wasi",
            "--opt-size",
            "--minify",
            "-o",
        ])
        .arg(&built);
    run(&mut componentize, INSTALL_NODE)?;
    Ok(built)
}
