//! Tests what people install: the npm package, the wheel and the `.deb`, each put into an empty place without a
//! network, and one call through the program that came out of it.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use weir_tests::place;

fn package(ending: &str) -> PathBuf {
    let folder = place::cache().join("packages");
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut found = files.filter(|file| file.to_string_lossy().ends_with(ending));
    found.next().unwrap_or_else(|| panic!("no *{ending} in {}: run `cargo xtask test`", folder.display()))
}

/// Returns what a command prints.
fn said(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the command starts");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}{error}");
    out.into_owned()
}

/// Calls one tool of a spreadsheet with the installed program, whose adapters come from inside it.
fn calls(program: &Path, home: &Path) {
    let sheet = home.join("prices.csv");
    std::fs::write(&sheet, "sku,name,price\nA1,Lamp,20\nB2,Chair,45\n").expect("a sheet");
    let mut call = Command::new(program);
    call.current_dir(home).env("HOME", home).env("XDG_CACHE_HOME", home.join("cache"));
    let answer = said(call.args(["call", "--file", "prices.csv", "list_prices", "--sku", "B2"]));
    assert!(answer.contains("Chair") && !answer.contains("Lamp"), "{answer}");
}

#[test]
fn the_npm_package_is_installed_and_called() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let bin = place::cache().join("clients/node-runtime/bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut install = Command::new(bin.join("npm"));
    install.current_dir(home.path()).env("PATH", &path).env("HOME", home.path());
    said(install.args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"]).arg(package(".tgz")));
    let mut npx = Command::new(bin.join("npx"));
    npx.current_dir(home.path()).env("PATH", &path).env("HOME", home.path());
    let version = said(npx.args(["--offline", "weir-gateway", "--version"]));
    assert!(version.starts_with("weir "), "{version}");
    calls(&home.path().join("node_modules/.bin/weir-gateway"), home.path());
}

#[test]
fn the_wheel_is_installed_and_called() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let environment = home.path().join("environment");
    said(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    let mut install = Command::new(environment.join("bin/python"));
    said(install.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]).arg(package(".whl")));
    calls(&environment.join("bin/weir-gateway"), home.path());
}

#[test]
fn the_debian_package_is_unpacked_and_called() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (package, root) = (package(".deb"), home.path().join("root"));
    let fields = said(Command::new("dpkg-deb").arg("--field").arg(&package));
    assert!(fields.contains("Package: weir-gateway") && fields.contains("Depends: libc6"), "{fields}");
    said(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root));
    let unit = std::fs::read_to_string(root.join("usr/lib/systemd/system/weir.service")).expect("the unit");
    assert!(unit.contains("ExecStart=/usr/bin/weir serve"), "{unit}");
    calls(&root.join("usr/bin/weir"), home.path());
}
