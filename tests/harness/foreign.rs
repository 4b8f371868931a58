//! Other people's programs: official clients and web services, installed by `cargo xtask test`.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::place;

pub(crate) const INSTALLED_BY: &str = "cargo xtask test";

/// Returns `node`, which sees the packages of `tests/clients/node`.
pub fn node() -> Command {
    let mut command = Command::new(place::present(node_bin().join("node"), INSTALLED_BY));
    command
        .current_dir(node_folder())
        .env("PATH", path_with(&node_bin()));
    command
}

/// Returns a script of `tests/clients`, placed where its imports resolve.
pub fn node_script(name: &str) -> Command {
    node_script_in("node", name)
}

/// Returns a script next to the packages of a folder other than `tests/clients/node`.
pub fn node_script_in(environment: &str, name: &str) -> Command {
    let clients = place::repository().join("tests/clients");
    // Scripts import these two.
    for shared in ["driver.mjs", "browser.mjs"] {
        beside_packages(environment, &clients.join(shared));
    }
    let target = beside_packages(environment, &clients.join(name));
    let mut command = node();
    command
        .current_dir(target.parent().expect("a file lies in a folder"))
        .arg(target);
    command
}

/// Copies a script of this repository to where its imports resolve, and returns the copy.
pub fn beside_packages(environment: &str, script: &Path) -> PathBuf {
    let source = fs::read(script).expect("a script of this repository");
    let name = script.file_name().expect("a script has a name").display();
    let folder = place::present(
        place::cache().join("clients").join(environment),
        INSTALLED_BY,
    );
    let target = folder.join(name.to_string());
    // Tests run at the same time, and clones share the cache: replaced whole.
    if fs::read(&target).ok().as_deref() != Some(&source) {
        let mut draft = tempfile::NamedTempFile::new_in(&folder).expect("the cache can be written");
        draft.write_all(&source).expect("the cache can be written");
        draft.persist(&target).expect("the cache can be written");
    }
    target
}

/// Returns a file of an installed Node package.
pub fn node_module(path: &str) -> PathBuf {
    place::present(node_folder().join("node_modules").join(path), INSTALLED_BY)
}

/// Returns a file of a package in another folder than `tests/clients/node`.
pub fn node_module_in(environment: &str, path: &str) -> PathBuf {
    let folder = place::present(
        place::cache().join("clients").join(environment),
        INSTALLED_BY,
    );
    place::present(folder.join("node_modules").join(path), INSTALLED_BY)
}

/// Returns a script of `tests/clients`, run by the Python of one environment (`python-current`, `python-mcp1`).
pub fn python_script(environment: &str, name: &str) -> Command {
    let mut command = python(environment);
    command.arg(place::repository().join("tests/clients").join(name));
    command
}

pub fn python(environment: &str) -> Command {
    let folder = place::cache().join("clients").join(environment);
    Command::new(place::present(folder.join("bin/python"), INSTALLED_BY))
}

/// Runs to the end, or is killed after `limit`.
pub fn run(mut command: Command, limit: Duration) -> Output {
    let started = Instant::now();
    let what = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{what} does not start: {error}"));
    // The pipes are read while the program runs: a full pipe would stop it.
    let stdout = drain(child.stdout.take().expect("stdout is piped"));
    let stderr = drain(child.stderr.take().expect("stderr is piped"));
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be asked") {
            break status;
        }
        if started.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{what} takes longer than {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let read = |thread: std::thread::JoinHandle<Vec<u8>>| {
        thread.join().expect("a pipe is read to its end")
    };
    Output {
        status,
        stdout: read(stdout),
        stderr: read(stderr),
    }
}

/// Runs a client with its plan; its report.
pub fn report(command: Command, plan: &Value) -> Value {
    let (_, last, errors) = answer(command, plan);
    serde_json::from_str(&last)
        .unwrap_or_else(|error| panic!("no report ({error}):\n{last}\n{errors}"))
}

/// Runs a client with its plan; its report, and whatever else it wrote to its standard output or standard error.
pub fn report_and_noise(command: Command, plan: &Value) -> (Value, String) {
    let (before, last, stderr) = answer(command, plan);
    let noise = [before, stderr].join("\n").trim().to_owned();
    let report = serde_json::from_str(&last)
        .unwrap_or_else(|error| panic!("no report ({error}):\n{last}\n{noise}"));
    (report, noise)
}

/// Returns the standard output of a client up to its last line, that line, and the standard error.
fn answer(mut command: Command, plan: &Value) -> (String, String, String) {
    command.arg(plan.to_string());
    let output = run(command, Duration::from_secs(120));
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "the client failed ({}):\n{stdout}\n{stderr}",
        output.status
    );
    let (before, last) = stdout
        .trim_end()
        .rsplit_once('\n')
        .unwrap_or(("", stdout.trim_end()));
    (before.to_owned(), last.to_owned(), stderr.into_owned())
}

fn drain(mut pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

fn node_folder() -> PathBuf {
    place::present(place::cache().join("clients/node"), INSTALLED_BY)
}

pub(crate) fn node_bin() -> PathBuf {
    place::cache().join("clients/node-runtime/bin")
}

fn path_with(first: &Path) -> std::ffi::OsString {
    let mut path = first.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}
