//! `weir plugin`: the author's commands, and the plugins of a running gateway: list, upload and remove them.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Done,
    admin::{AdminArgs, AdminTarget, cell, each, joined, path, print_table, table},
    author, block_on,
};

pub(super) type Plugins = AdminArgs<PluginsCommand>;

#[derive(Subcommand)]
pub(super) enum PluginsCommand {
    /// Make a folder for a new plugin, which builds as it is
    New(author::NewArgs),
    /// Make the component of the plugin in this folder; each command is shown before it runs
    Build(author::BuildArgs),
    /// Look at a built plugin as agents and operators will; the exit code is 1 if something fails
    Check(author::CheckArgs),
    /// Print the definitions of a component's tools, as its code declares them
    Schema(author::SchemaArgs),
    /// Run the cases in `tests/*.json`: arguments, and the result or the error that is expected
    Test(author::TestArgs),
    /// Put a component from a file, a URL or a registry into the plugins folder, after checks, and note its origin
    Install(author::InstallArgs),
    /// Check the files of the plugins folder against their origins, pins and signatures; the exit code is 1 if one differs
    Verify(author::PluginVerifyArgs),
    /// List the plugins that run, with their source and health, and the files that were refused or are held
    List,
    /// Show one plugin: its digest, what it may reach, and how its calls ended
    Show {
        /// The plugin's name, as listed
        name: String,
    },
    /// Put a component into the plugins folder of the gateway, and wait until it runs or is refused
    ///
    /// The previous build serves until the new one runs. A file that is refused is removed again.
    Upload {
        /// The component, such as numbers.wasm
        file: PathBuf,
        /// The name of its file there, without `.wasm`; by default its name here
        #[arg(long, value_parser = file_name)]
        name: Option<String>,
    },
    /// Accept a held build: one whose plugin may write, and that no admin has accepted yet
    ///
    /// `weir plugin list` names the files that are held, with their digests. Look at the file before you accept it.
    Accept {
        /// The file's name, without `.wasm`
        #[arg(value_parser = file_name)]
        name: String,
        /// The digest of the file you have looked at, as listed
        #[arg(long, value_name = "HEX")]
        sha256: String,
    },
    /// Load the files of the folder, and retry refused ones; print the outcome of each
    ///
    /// Use it, for instance, once a contract no longer prevents a file from being loaded.
    Reload,
    /// Remove a plugin's file: a built-in plugin serves instead, or its tools answer `unavailable`
    Remove {
        /// The file's name, with or without `.wasm`, or the plugin's
        name: String,
    },
}

impl Plugins {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        match command {
            PluginsCommand::New(new) => new.run(),
            PluginsCommand::Build(build) => build.run(&target.settings),
            PluginsCommand::Check(check) => check.run(&target.settings, target.json),
            PluginsCommand::Schema(schema) => schema.run(&target.settings),
            PluginsCommand::Test(test) => test.run(&target.settings, target.json),
            PluginsCommand::Install(install) => install.run(&target.settings, target.json),
            PluginsCommand::Verify(verify) => verify.run(&target.settings, target.json),
            PluginsCommand::List => list(&target),
            PluginsCommand::Show { name } => show(&target, &name),
            PluginsCommand::Upload { file, name } => upload(&target, &file, name),
            PluginsCommand::Accept { name, sha256 } => {
                let path = format!("/v1/plugins/{name}/accept");
                let accepted = json!({ "sha256": sha256 });
                let plugin = target.ask(Method::POST, &path, Some(&accepted))?;
                print_plugin(&target, &plugin);
                Ok(ExitCode::SUCCESS)
            }
            PluginsCommand::Reload => {
                let reloaded = target.ask(Method::POST, "/v1/plugins/reload", None)?;
                outcomes(&target, &reloaded);
                Ok(ExitCode::SUCCESS)
            }
            PluginsCommand::Remove { name } => {
                let path = path(&["v1", "plugins", &name]);
                let removed = target.ask(Method::DELETE, &path, None)?;
                outcomes(&target, &removed);
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Prints a line for each file, and for each built-in plugin.
fn outcomes(target: &AdminTarget, outcomes: &Value) {
    if target.json {
        println!("{outcomes}");
        return;
    }
    for outcome in each(outcomes) {
        let plugin = outcome["plugin"]
            .as_str()
            .map(|plugin| format!(" {plugin} {}", cell(&outcome["version"])));
        let reason = outcome["reason"]
            .as_str()
            .map(|reason| format!(": {reason}"));
        let (plugin, reason) = (plugin.unwrap_or_default(), reason.unwrap_or_default());
        println!(
            "{}: {}{plugin}{reason}",
            cell(&outcome["file"]),
            cell(&outcome["result"])
        );
    }
}

fn list(target: &AdminTarget) -> Done {
    let all = target.ask(Method::GET, "/v1/plugins", None)?;
    if target.json {
        println!("{all}");
        return Ok(ExitCode::SUCCESS);
    }
    let row = |plugin: &Value| {
        vec![
            cell(&plugin["name"]),
            cell(&plugin["version"]),
            cell(&plugin["origin"]),
            cell(&plugin["health"]),
            joined(&plugin["adapters"]),
            grants(plugin),
            cell(&plugin["generation"]),
            cell(&plugin["calls"]),
            cell(&plugin["failures"]),
            cell(&plugin["digest"]).chars().take(12).collect(),
        ]
    };
    let head = [
        "PLUGIN",
        "VERSION",
        "FROM",
        "HEALTH",
        "ADAPTERS",
        "GRANTS",
        "GENERATION",
        "CALLS",
        "FAILED",
        "DIGEST",
    ];
    print_table(&head, &all["plugins"], row);
    for plugin in each(&all["plugins"]).filter(|plugin| plugin["reason"].is_string()) {
        println!(
            "\n{}: {}: {}",
            cell(&plugin["name"]),
            cell(&plugin["health"]),
            cell(&plugin["reason"])
        );
    }
    let row = |refused: &Value| {
        vec![
            cell(&refused["file"]),
            cell(&refused["health"]),
            cell(&refused["reason"]),
        ]
    };
    let rows: Vec<Vec<String>> = each(&all["refused"]).map(row).collect();
    if !rows.is_empty() {
        print!("\n{}", table(&["FILE", "HEALTH", "WHY"], &rows));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(target: &AdminTarget, name: &str) -> Done {
    let all = target.ask(Method::GET, "/v1/plugins", None)?;
    let plugins = all["plugins"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let Some(plugin) = plugins.iter().find(|plugin| plugin["name"] == name) else {
        let names: Vec<String> = plugins.iter().map(|plugin| cell(&plugin["name"])).collect();
        return Err(
            anyhow::anyhow!("no plugin `{name}` runs; there are [{}]", names.join(", ")).into(),
        );
    };
    print_plugin(target, plugin);
    Ok(ExitCode::SUCCESS)
}

fn upload(target: &AdminTarget, file: &Path, name: Option<String>) -> Done {
    let name = match name {
        Some(name) => name,
        None => named(file)?,
    };
    let component =
        std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let api = target.api()?;
    let plugin = block_on(api.put(
        &format!("/v1/plugins/{name}"),
        "application/wasm",
        component,
    ))??;
    print_plugin(target, &plugin);
    Ok(ExitCode::SUCCESS)
}

fn print_plugin(target: &AdminTarget, plugin: &Value) {
    if target.json {
        println!("{plugin}");
    } else {
        print_details(plugin);
    }
}

fn print_details(plugin: &Value) {
    println!(
        "{} {} ({})",
        cell(&plugin["name"]),
        cell(&plugin["version"]),
        cell(&plugin["origin"])
    );
    println!("  digest      {}", cell(&plugin["digest"]));
    println!("  adapters    {}", joined(&plugin["adapters"]));
    let grants = grants(plugin);
    println!(
        "  grants      {}",
        if grants.is_empty() { "none" } else { &grants }
    );
    println!(
        "  generation  {} (swaps: {})",
        cell(&plugin["generation"]),
        cell(&plugin["swaps"])
    );
    println!(
        "  calls       {} ({} of them failed)",
        cell(&plugin["calls"]),
        cell(&plugin["failures"])
    );
    let reason = plugin["reason"]
        .as_str()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    println!("  health      {}{reason}", cell(&plugin["health"]));
}

fn grants(plugin: &Value) -> String {
    let grants = plugin["grants"].as_object().into_iter().flatten();
    grants
        .map(|(connection, grant)| format!("{connection}={}", cell(grant)))
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns `numbers` for `target/numbers.wasm`.
fn named(file: &Path) -> anyhow::Result<String> {
    let stem = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    match file_name(stem) {
        Ok(name) => Ok(name),
        Err(why) => bail!("`{stem}` cannot be its name there, since {why}: give one with --name"),
    }
}

pub(super) fn file_name(name: &str) -> Result<String, String> {
    let fits = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
    };
    if (1..=64).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(name.to_owned());
    }
    Err("a plugin's name is 1 to 64 of a-z, 0-9, `-` and `_`".to_owned())
}
