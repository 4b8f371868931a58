//! Python: componentize-py, in an environment of the plugin's own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::bail;

use super::{Folder, command, ended, run, run_and_read, work, world};

const INSTALL_PYTHON: &str = "apt install python3 python3-venv    (version 3.10 or newer)";
const REQUIREMENTS: &str = "requirements.txt";

pub(super) fn build(folder: &Folder) -> anyhow::Result<PathBuf> {
    let work = work(folder)?;
    install(folder, &work.join(REQUIREMENTS))?;
    let built = work.join("plugin.wasm");
    let environment = folder.path.join(".venv");
    let mut componentize = command(folder, environment.join("bin/componentize-py"));
    // Without it componentize-py looks for packages where the Python of `PATH` has its own.
    componentize.env("VIRTUAL_ENV", &environment);
    componentize.args([
        "-d",
        "sdk/wit",
        "-w",
        world(folder, "sdk/weir_plugin"),
        "componentize",
        "--stub-wasi",
        "app",
    ]);
    componentize
        .args(["-p", ".", "-p", "sdk", "-o"])
        .arg(&built);
    let (status, told) = run_and_read(&mut componentize, INSTALL_PYTHON)?;
    if !status.success() {
        bail!(
            "{}{}",
            ended(&componentize, status),
            missing(&environment, &told)
        );
    }
    Ok(built)
}

/// Makes the environment if there is none, and installs what `requirements.txt` names if that was not done before.
fn install(folder: &Folder, installed: &Path) -> anyhow::Result<()> {
    let is_new = !folder.has(".venv/bin/componentize-py");
    let wanted = fs::read(folder.path.join(REQUIREMENTS)).ok();
    if !is_new && (wanted.is_none() || wanted == fs::read(installed).ok()) {
        return Ok(());
    }
    if is_new {
        run(
            command(folder, "python3").args(["-m", "venv", ".venv"]),
            INSTALL_PYTHON,
        )?;
    }
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        REQUIREMENTS,
    ];
    run(
        command(folder, folder.path.join(".venv/bin/python")).args(install),
        INSTALL_PYTHON,
    )?;
    Ok(fs::write(installed, wanted.unwrap_or_default())?)
}

/// Says what to do about a module that was not found.
fn missing(environment: &Path, told: &str) -> String {
    let named = |before: &str| {
        told.rsplit_once(before)
            .and_then(|(_, rest)| rest.split('\'').next())
    };
    // A folder of nothing but libraries counts as a module, which has no names and no place.
    let nameless = || {
        told.contains("(unknown location)")
            .then(|| named("' from '"))
            .flatten()
    };
    let Some(module) = named("No module named '").or_else(nameless) else {
        return String::new();
    };
    let package = module.split('.').next().unwrap_or(module);
    if !is_compiled(environment, package) {
        return format!(
            "\n\n`{package}` is not in .venv: name its package in {REQUIREMENTS}, and build again"
        );
    }
    let instead = match package {
        "pydantic_core" => {
            "\n\nWrite a dataclass in place of the pydantic model, or a model of pydantic 1, which is Python alone: \
             `pydantic<2` in requirements.txt"
        }
        _ => "\n\nUse a package that is Python alone in its place",
    };
    format!(
        "\n\n`{package}` has parts that are compiled for this machine, and a component runs Python alone.{instead}"
    )
}

/// Returns `true` if the environment has the package, with libraries of this machine in it.
fn is_compiled(environment: &Path, package: &str) -> bool {
    let versions = fs::read_dir(environment.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    versions
        .map(|version| version.path().join("site-packages").join(package))
        .any(|folder| {
            let mut files = fs::read_dir(folder).into_iter().flatten().flatten();
            files.any(|file| {
                file.path()
                    .extension()
                    .is_some_and(|extension| extension == "so")
            })
        })
}
