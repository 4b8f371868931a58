//! Python: componentize-py, in an environment of the plugin's own.

use std::path::PathBuf;

use super::{Folder, command, run, work, world};

const INSTALL_PYTHON: &str = "apt install python3 python3-venv    (version 3.10 or newer)";

pub(super) fn build(folder: &Folder) -> anyhow::Result<PathBuf> {
    let tool = ".venv/bin/componentize-py";
    if !folder.has(tool) {
        run(command(folder, "python3").args(["-m", "venv", ".venv"]), INSTALL_PYTHON)?;
        let install =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", "requirements.txt"];
        run(command(folder, folder.path.join(".venv/bin/python")).args(install), INSTALL_PYTHON)?;
    }
    let built = work(folder)?.join("plugin.wasm");
    let mut componentize = command(folder, folder.path.join(tool));
    componentize.args(["-d", "sdk/wit", "-w", world(folder, "sdk/weir_plugin"), "componentize", "--stub-wasi", "app"]);
    componentize.args(["-p", ".", "-p", "sdk", "-o"]).arg(&built);
    run(&mut componentize, INSTALL_PYTHON)?;
    Ok(built)
}
