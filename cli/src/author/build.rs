//! `weir plugin build`: the commands that make a component or a native library of a plugin's folder, each shown before
//! it runs.

mod c;
mod imports;
mod javascript;
mod python;
mod rust;

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
};

use anyhow::{Context as _, bail};
use clap::Args;
use sha2::{Digest as _, Sha256};
use weir_files::FilePermission;

use super::{
    super::{AppError, CliSettings, Done},
    folder::PluginProject,
    templates::PluginLanguage,
};

/// The file that exists from the start of a build until it succeeds.
const FAILED: &str = ".weir/build-failed";

#[derive(Args)]
pub(in super::super) struct BuildArgs {
    /// The plugin's folder
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Make a native library, which runs without a sandbox, instead of a component (Rust only)
    #[arg(long)]
    native: bool,
}

impl BuildArgs {
    pub(in super::super) fn run(self, settings: &CliSettings) -> Done {
        let folder = PluginProject::open(&self.folder, settings)?;
        let built = if self.native {
            build_library(&folder)?
        } else {
            build(&folder)?
        };
        println!(
            "{} ({} KB)",
            built.display(),
            fs::metadata(&built)?.len().div_ceil(1024)
        );
        if self.native {
            let digest = hex::encode(Sha256::digest(fs::read(&built)?));
            println!("\nIt runs if weir.toml has this, under the plugin's name:\n");
            println!(
                "native = {:?}\nsha256 = \"{digest}\"",
                built.display().to_string()
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Builds and puts the component in its place at once: a gateway that watches the folder never sees half a file.
pub(super) fn build(folder: &PluginProject) -> Result<PathBuf, AppError> {
    place(folder, compile, folder.component())
}

/// Builds the same source as a native library of this machine.
pub(super) fn build_library(folder: &PluginProject) -> Result<PathBuf, AppError> {
    place(folder, compile_library, folder.library())
}

/// Returns `true` if the last build failed, so that the component in place is the build before it.
pub(super) fn has_failed(folder: &PluginProject) -> bool {
    folder.has(FAILED)
}

fn place(
    folder: &PluginProject,
    compile: fn(&PluginProject) -> Result<Vec<u8>, AppError>,
    target: PathBuf,
) -> Result<PathBuf, AppError> {
    work(folder)?;
    let mark = folder.path.join(FAILED);
    fs::write(&mark, "").with_context(|| format!("{} cannot be written", mark.display()))?;
    let bytes = compile(folder)?;
    weir_files::replace(&target, &bytes, FilePermission::Everyone)
        .with_context(|| format!("{} cannot be written", target.display()))?;
    fs::remove_file(&mark).with_context(|| format!("{} cannot be removed", mark.display()))?;
    Ok(target)
}

fn compile_library(folder: &PluginProject) -> Result<Vec<u8>, AppError> {
    match folder.language {
        PluginLanguage::Rust => Ok(rust::build_library(folder)?),
        _ => Err(anyhow::anyhow!(
            "a native library is written in Rust: in other languages a plugin is a component (`weir plugin build`)"
        )
        .into()),
    }
}

/// Builds everything that is the plugin's own once more, and returns the result.
pub(super) fn build_again(folder: &PluginProject, native: bool) -> Result<Vec<u8>, AppError> {
    if folder.language == PluginLanguage::Rust {
        rust::forget(folder, native)?;
    }
    if native {
        compile_library(folder)
    } else {
        compile(folder)
    }
}

fn compile(folder: &PluginProject) -> Result<Vec<u8>, AppError> {
    let built = match folder.language {
        PluginLanguage::Rust => return Ok(rust::build(folder)?),
        PluginLanguage::Js => javascript::build(folder)?,
        PluginLanguage::Python => python::build(folder)?,
        PluginLanguage::C => c::build(folder)?,
    };
    Ok(read(&built)?)
}

fn read(built: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(built).with_context(|| format!("{} cannot be read", built.display()))
}

/// Returns the interface of the folder's plugin, which has only tools or only adapters. For a plugin in Rust its code
/// decides.
fn world(folder: &PluginProject, of_tools: &str) -> &'static str {
    if folder.has(of_tools) {
        "toolbox"
    } else {
        "adapter"
    }
}

/// Returns the folder for files that are not in their place yet.
fn work(folder: &PluginProject) -> anyhow::Result<PathBuf> {
    let work = folder.path.join(".weir/build");
    fs::create_dir_all(&work).with_context(|| format!("{} cannot be made", work.display()))?;
    Ok(work)
}

fn command(folder: &PluginProject, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(&folder.path);
    command
}

/// Shows the command and runs it. `lacking` is what to do if its program is missing.
fn run(command: &mut Command, lacking: &str) -> anyhow::Result<()> {
    let status = start(command, lacking)?.wait()?;
    if !status.success() {
        bail!("{}", ended(command, status));
    }
    Ok(())
}

/// Runs the command and returns its stderr.
fn run_and_read(command: &mut Command, lacking: &str) -> anyhow::Result<(ExitStatus, String)> {
    let mut child = start(command.stderr(Stdio::piped()), lacking)?;
    let mut written = Vec::new();
    child
        .stderr
        .take()
        .expect("it is piped")
        .read_to_end(&mut written)?;
    Ok((
        child.wait()?,
        String::from_utf8_lossy(&written).into_owned(),
    ))
}

fn start(command: &mut Command, lacking: &str) -> anyhow::Result<Child> {
    eprintln!("$ {}", command_line(command));
    // Output goes to stderr, since stdout is for the output of `weir`, which may be JSON.
    let started = command
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .spawn();
    started.map_err(|error| not_started(command, lacking, error))
}

fn not_started(command: &Command, lacking: &str, error: std::io::Error) -> anyhow::Error {
    let program = command.get_program().to_string_lossy();
    if error.kind() == std::io::ErrorKind::NotFound {
        return anyhow::anyhow!("`{program}` is missing; install it:\n\n  {lacking}\n");
    }
    anyhow::Error::new(error).context(format!("`{program}` cannot be run"))
}

fn ended(command: &Command, status: ExitStatus) -> String {
    format!(
        "`{}` ended with {status}; see above for the reason",
        command.get_program().to_string_lossy()
    )
}

/// Returns the command as it would be typed in the plugin's folder.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let quoted = |word: &std::ffi::OsStr| {
        let word = word.to_string_lossy();
        let plain = word
            .chars()
            .all(|c| c.is_alphanumeric() || "-_./=:@+,".contains(c));
        if plain {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let variables =
        variables.map(|(name, value)| format!("{}={}", name.to_string_lossy(), quoted(value)));
    variables
        .chain(words.map(quoted))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns what a program prints, without showing it.
fn output(command: &mut Command, lacking: &str) -> anyhow::Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_started(command, lacking, error))?;
    if !output.status.success() {
        bail!(
            "`{}` failed: {}",
            command_line(command),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
