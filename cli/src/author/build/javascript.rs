//! JavaScript: componentize-qjs, from the plugin's own `package.json`.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, bail};

use super::{
    super::templates, PluginProject, command, ended, imports, run, run_and_read, work, world,
};

/// Imports the plugin and looks for its exports, while the component is made.
const ENTRY: &str = include_str!("entry.js");
/// The functions of each export.
const TOOLBOX: &str = r#"{ about: ["about"], tools: ["configure", "definitions", "call"] }"#;
const ADAPTER: &str =
    r#"{ about: ["about"], collections: ["describe", "configure", "read", "write"] }"#;

/// Makes the component.
const COMPONENTIZE: &str = "node_modules/componentize-qjs/bin/componentize-qjs";
/// The compiler of TypeScript.
const COMPILER: &str = "node_modules/typescript/bin/tsc";

/// The bound on the lines of an error in the author's own code.
const ERROR_LINES_MAX: usize = 5;

const INSTALL_NODE: &str =
    "apt install nodejs npm    (or from https://nodejs.org; version 18 or newer)";

pub(super) fn build(folder: &PluginProject) -> anyhow::Result<PathBuf> {
    install(folder)?;
    // Authors may write TypeScript.
    if folder.has("tsconfig.json") {
        if !folder.has(COMPILER) {
            bail!(
                "there is a tsconfig.json, but no TypeScript compiler: run `npm install --save-dev typescript`, and build again"
            );
        }
        run(command(folder, "node").arg(COMPILER), INSTALL_NODE)?;
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
        COMPONENTIZE,
        "--wit",
        "sdk/wit",
        "--world",
        world,
        "--js",
        ".weir/build/entry.js",
    ]);
    // The gateway does not support the asynchronous interface. Minifying would change the lines of the code without
    // making the component smaller: most of it is the interpreter.
    componentize
        .args(["--module-root", ".", "--sync", "--opt-size", "-o"])
        .arg(&built);
    let (status, written) = run_and_read(&mut componentize, INSTALL_NODE)?;
    if !status.success() {
        if let Some(error) = authors_error(&written) {
            bail!(
                "{}",
                imports::explain(&folder.path, &error).unwrap_or(error)
            );
        }
        eprint!("{written}");
        bail!("{}", ended(&componentize, status));
    }
    eprint!("{written}");
    Ok(built)
}

/// Installs what `package.json` names if the program that makes the component is missing.
fn install(folder: &PluginProject) -> anyhow::Result<()> {
    if folder.has(COMPONENTIZE) {
        return Ok(());
    }
    run(
        command(folder, "npm").args(["install", "--no-audit", "--no-fund"]),
        INSTALL_NODE,
    )?;
    if !folder.has(COMPONENTIZE) {
        let package: serde_json::Value =
            serde_json::from_slice(templates::source("plugin-sdk/templates/js/package.json")?)?;
        let version = &package["devDependencies"]["componentize-qjs"];
        bail!(
            "package.json does not name `componentize-qjs`, which makes the component: \
             run `npm install --save-dev componentize-qjs@{}`, and build again",
            version.as_str().unwrap_or("latest")
        );
    }
    Ok(())
}

/// Returns an error that was raised while the plugin's modules were read, with the places in the author's own files.
fn authors_error(written: &str) -> Option<String> {
    const FRAME: &str = "    at ";
    const NEVER: &str = "blocking on a promise resulted in a dead lock";
    const OTHERS: [&str; 3] = [
        "/sdk/weir.js:",
        "/sdk/globals.js:",
        "/.weir/build/entry.js:",
    ];
    let (_, error) = written.split_once("Failed to evaluate user JavaScript module: ")?;
    if error.contains(NEVER) {
        return Some("an `await` outside of functions waits for something that never comes: nothing wakes a plugin".to_owned());
    }
    // The message names what was done with the module before the module's own error.
    let error = error
        .split_once(" module")
        .and_then(|(_, error)| error.split_once(": Error: "))
        .map_or(error, |(_, error)| error);
    let own =
        |line: &&str| !line.starts_with(FRAME) || !OTHERS.iter().any(|other| line.contains(other));
    let lines = error.lines().take_while(|line| !line.is_empty());
    let lines: Vec<&str> = lines.filter(own).take(ERROR_LINES_MAX).collect();
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_with_the_authors_places_alone() {
        let of_sdk = "Error: : Failed to evaluate user JavaScript module: Failed to finish JavaScript module evaluation: \
            Error: `least` is not an option: write `minLength`\n    at make (/sdk/weir.js:29:127)\n    at text (/sdk/weir.js:34:65)\n    \
            at <anonymous> (/plugin.js:2:46)\n\n";
        assert_eq!(
            authors_error(of_sdk).as_deref(),
            Some(
                "`least` is not an option: write `minLength`\n    at <anonymous> (/plugin.js:2:46)"
            )
        );
        let syntax = "Error: : Failed to evaluate user JavaScript module: Failed to declare JavaScript module: \
            Error: Unexpected token ';'\n    at /plugin.js:2:52\n\n";
        assert_eq!(
            authors_error(syntax).as_deref(),
            Some("Unexpected token ';'\n    at /plugin.js:2:52")
        );
        let waits = "Error: : Failed to evaluate user JavaScript module: Failed to finish JavaScript module evaluation: \
            Error blocking on a promise resulted in a dead lock\n";
        assert_eq!(
            authors_error(waits).as_deref(),
            Some(
                "an `await` outside of functions waits for something that never comes: nothing wakes a plugin"
            )
        );
        assert_eq!(authors_error("Error: no such world\n"), None);
    }
}
