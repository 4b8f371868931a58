//! Python: componentize-py, in an environment of the plugin's own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use super::{super::templates, PluginProject, command, ended, run, run_and_read, work, world};

const INSTALL_PYTHON: &str = "apt install python3 python3-venv    (version 3.10 or newer)";
const REQUIREMENTS: &str = "requirements.txt";
const SOURCE: &str = "app.py";
/// Makes the component.
const COMPONENTIZE: &str = ".venv/bin/componentize-py";
/// The bound on the text of an error in the author's own code, behind the line that led to it.
const ERROR_LINES_MAX: usize = 4;

pub(super) fn build(folder: &PluginProject) -> anyhow::Result<PathBuf> {
    if !folder.has(SOURCE) {
        bail!("{SOURCE} does not exist: a plugin begins with this file");
    }
    let work = work(folder)?;
    install(folder, &work.join(REQUIREMENTS))?;
    let built = work.join("plugin.wasm");
    if !folder.has(COMPONENTIZE) {
        bail!(
            "{REQUIREMENTS} does not name `componentize-py`, which makes the component: write this line there, and build again\n\n  {}\n",
            pinned()?
        );
    }
    let environment = folder.path.join(".venv");
    let mut componentize = command(folder, folder.path.join(COMPONENTIZE));
    // Without it componentize-py looks for packages where the Python of `PATH` has its own.
    componentize.env("VIRTUAL_ENV", &environment);
    componentize.args([
        "-d",
        "sdk/wit",
        "-w",
        world(folder, "sdk/weir_plugin"),
        "componentize",
        "app",
    ]);
    componentize
        .args(["-p", ".", "-p", "sdk", "-o"])
        .arg(&built);
    let (status, written) = run_and_read(&mut componentize, INSTALL_PYTHON)?;
    if !status.success() {
        if let Some(error) = authors_error(&written) {
            bail!("{error}{}", missing(&environment, &written));
        }
        eprint!("{written}");
        bail!(
            "{}{}",
            ended(&componentize, status),
            missing(&environment, &written)
        );
    }
    eprint!("{written}");
    Ok(built)
}

/// Returns an error that the author's file, the SDK or Python's own library raised, with the author's own line that led to it.
/// An error from a package is only of use with all of its frames.
fn authors_error(written: &str) -> Option<String> {
    // The folder is mounted as the first one, and that of the SDK as the second.
    const OWN: &str = "  File \"/0/";
    const SDK: &str = "  File \"/1/weir_plugin/";
    const LIBRARY: &str = "  File \"/python/";
    if let Some((_, missing)) = written.split_once("Error: module 'app' has no attribute '") {
        let name = missing.split('\'').next()?;
        let example = match name {
            "Tools" => "About, Tools = plugin(…)".to_owned(),
            name => format!("class {name}(exports.{name})"),
        };
        return Some(format!("{SOURCE} has no `{name}`: write `{example}`"));
    }
    let text = written.split_once("AssertionError: ");
    let text = text.map_or(written, |(_, text)| text);
    // A syntax error has a place but no traceback.
    let way = text.rsplit_once("Traceback (most recent call last):\n");
    let lines: Vec<&str> = way.map_or(text, |(_, way)| way).lines().collect();
    let is_frame = |line: &&&str| line.starts_with("  File \"") && !line.starts_with(LIBRARY);
    let last = lines.iter().rfind(is_frame)?;
    if !last.starts_with(OWN) && !last.starts_with(SDK) {
        return None;
    }
    let own = lines.iter().rposition(|line| line.starts_with(OWN))?;
    let (file, rest) = lines[own].strip_prefix(OWN)?.split_once("\", line ")?;
    let number = rest.split(',').next()?;
    let source = lines.get(own + 1).map_or("", |line| line.trim());
    let error = lines
        .iter()
        .skip_while(|line| line.starts_with(' '))
        .take_while(|line| !line.is_empty());
    let error: Vec<&str> = error.take(ERROR_LINES_MAX).copied().collect();
    Some(format!(
        "{file}, line {number}: {source}\n{}",
        error.join("\n")
    ))
}

/// Makes the environment if there is none, and installs what `requirements.txt` names if that was not done before.
fn install(folder: &PluginProject, installed: &Path) -> anyhow::Result<()> {
    let is_new = !folder.has(COMPONENTIZE);
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

/// Returns the line of a new plugin's requirements that names what makes the component.
fn pinned() -> anyhow::Result<&'static str> {
    let requirements = templates::source("plugin-sdk/templates/python/requirements.txt")?;
    std::str::from_utf8(requirements)?
        .lines()
        .find(|line| line.starts_with("componentize-py"))
        .context("the requirements of a new plugin name componentize-py")
}

/// Says what to do about a module that was not found.
fn missing(environment: &Path, output: &str) -> String {
    let named = |before: &str| {
        output
            .rsplit_once(before)
            .and_then(|(_, rest)| rest.split('\'').next())
    };
    // A folder of nothing but libraries counts as a module, which has no names and no place.
    let nameless = || {
        output
            .contains("(unknown location)")
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
            "\n\nWrite a dataclass in place of the pydantic model, or a model of pydantic 1, which is pure Python: \
             `pydantic<2` in requirements.txt"
        }
        _ => "\n\nUse a pure Python package instead",
    };
    format!(
        "\n\n`{package}` has parts that are compiled for this machine, and a component runs only Python.{instead}"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_with_the_authors_line_alone() {
        let of_sdk = "Traceback (most recent call last):\n  File \"/home/a/.venv/bin/componentize-py\", line 8, in <module>\n    \
            sys.exit(script())\nAssertionError: \nTraceback (most recent call last):\n  File \"/0/app.py\", line 7, in <module>\n    \
            @tool\n     ^^^^\n  File \"/1/weir_plugin/__init__.py\", line 234, in tool\n    return make(function)\n           \
            ~~~~^^^^^^^^^^\nTypeError: price: `amount`: `Decimal` has no schema\n\n\nCaused by:\n    TypeError: price\n";
        assert_eq!(
            authors_error(of_sdk).as_deref(),
            Some("app.py, line 7: @tool\nTypeError: price: `amount`: `Decimal` has no schema")
        );
        let syntax = "Traceback (most recent call last):\n  File \"/0/app.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n";
        assert_eq!(
            authors_error(syntax).as_deref(),
            Some("app.py, line 3: def f(:\nSyntaxError: invalid syntax")
        );
        let indented = "AssertionError:   File \"/0/app.py\", line 9\n    x = 2\nTabError: inconsistent use of tabs\n\n\nCaused by:\n    TabError: inconsistent\n";
        assert_eq!(
            authors_error(indented).as_deref(),
            Some("app.py, line 9: x = 2\nTabError: inconsistent use of tabs")
        );
        let of_python = "AssertionError: Traceback (most recent call last):\n  File \"/0/app.py\", line 8, in <module>\n    \
            @dataclass\n     ^^^^^^^^^\n  File \"/python/dataclasses.py\", line 1370, in dataclass\n    return wrap(cls)\n\
            ValueError: mutable default <class 'list'> for field x is not allowed\n\n\nCaused by:\n    ValueError: mutable\n";
        assert_eq!(
            authors_error(of_python).as_deref(),
            Some(
                "app.py, line 8: @dataclass\nValueError: mutable default <class 'list'> for field x is not allowed"
            )
        );
        let forgotten = "AssertionError: AttributeError: module 'app' has no attribute 'Tools'. Did you mean: 'tool'?\n\n\nCaused by:\n";
        assert_eq!(
            authors_error(forgotten).as_deref(),
            Some("app.py has no `Tools`: write `About, Tools = plugin(…)`")
        );
        let of_library = "Traceback (most recent call last):\n  File \"/0/app.py\", line 1, in <module>\n    import x\n  \
            File \"/2/x/__init__.py\", line 1, in <module>\n    import _x\nModuleNotFoundError: No module named '_x'\n";
        assert_eq!(authors_error(of_library), None);
    }
}
