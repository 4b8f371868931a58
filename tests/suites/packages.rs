//! Tests what people install: the npm package, the wheel and the `.deb`, each installed into an empty place without a
//! network, and one call with the installed program.

use std::{
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::json;
use tempfile::TempDir;
use weir_tests::{Gateway, Modern, place, until};

fn package(ending: &str) -> PathBuf {
    let folder = place::cache().join("packages");
    let files = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.path());
    let mut found = files.filter(|file| file.to_string_lossy().ends_with(ending));
    found.next().unwrap_or_else(|| {
        panic!(
            "no *{ending} in {}: run `cargo xtask test`",
            folder.display()
        )
    })
}

/// Returns what a command prints.
fn run(command: &mut Command) -> String {
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the command starts");
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}\n{out}{error}");
    out.into_owned()
}

/// Makes an empty home with one sheet in it.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(
        home.path().join("prices.csv"),
        "sku,name,price\nA1,Lamp,20\nB2,Chair,45\n",
    )
    .expect("a sheet");
    home
}

/// Restricts a command's environment to that home.
fn at_home(mut command: Command, home: &Path) -> Command {
    command
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_CACHE_HOME", home.join("cache"));
    command
}

/// Calls one tool of a spreadsheet with the installed program and its built-in adapters.
fn calls(program: Command, home: &Path) {
    let mut call = at_home(program, home);
    let answer = run(call.args(["call", "--file", "prices.csv", "list_prices", "--sku", "B2"]));
    assert!(
        answer.contains("Chair") && !answer.contains("Lamp"),
        "{answer}"
    );
}

/// Serves the spreadsheet as a user types it, asks it once over HTTP, and ends it as Ctrl-C does: a terminal sends the signal
/// to the program and to all that is in front of it.
async fn serves(program: Command, home: &Path) {
    let mut serve = at_home(program, home);
    serve
        .args(["serve", "prices.csv", "--listen", "127.0.0.1:0"])
        .process_group(0);
    let mut gateway = Gateway::start(serve);
    let client = Modern::new(gateway.url());
    let found = client.call("list_prices", json!({"sku": "B2"})).await;
    assert_eq!(
        found["structuredContent"]["records"][0]["name"], "Chair",
        "{found}"
    );
    run(Command::new("kill").args(["-INT", "--", &format!("-{}", gateway.process_id())]));
    gateway.left();
    // What started the program may leave before it.
    until("the program ends with what started it", async || {
        client
            .request("tools/list", json!({}))
            .send()
            .await
            .is_err()
    })
    .await;
}

/// Restricts a command's environment to that home and the Node of the tests.
fn with_node(command: Command, home: &Path) -> Command {
    let bin = place::cache().join("clients/node-runtime/bin");
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut command = at_home(command, home);
    command.env("PATH", path);
    command
}

#[tokio::test]
async fn the_npm_package_is_installed_called_and_served() {
    let home = home();
    let bin = place::cache().join("clients/node-runtime/bin");
    let node = |program: &str| with_node(Command::new(bin.join(program)), home.path());
    let mut install = node("npm");
    run(install
        .args([
            "install",
            "--offline",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .arg(package(".tgz")));
    let npx = || {
        let mut npx = node("npx");
        npx.args(["--offline", "weir-gateway"]);
        npx
    };
    let version = run(npx().arg("--version"));
    assert!(version.starts_with("weir "), "{version}");
    calls(
        Command::new(home.path().join("node_modules/.bin/weir-gateway")),
        home.path(),
    );
    serves(npx(), home.path()).await;
}

/// Only the port is another one than the README's, and the client is not downloaded.
#[test]
fn a_newcomer_follows_the_readme_with_the_npm_package() {
    let readme = std::fs::read_to_string(place::repository().join("README.md"));
    let readme = readme.expect("the README");
    let (_, readme) = readme.split_once("## Your first tool").expect("a heading");
    let block = |number: usize| {
        let block = readme.split("```sh\n").nth(number).expect("a block");
        let (lines, _) = block.split_once("```").expect("its end");
        lines.lines().collect::<Vec<_>>()
    };
    let (first, second) = (block(1), block(2));

    let home = tempfile::tempdir().expect("a temporary folder");
    let package = package(".tgz");
    let name = package.file_name().expect("a file has a name");
    std::fs::copy(&package, home.path().join(name)).expect("the package is copied");
    let shell = |line: &str| {
        let mut shell = with_node(Command::new("bash"), home.path());
        shell
            .args(["-c", line])
            .env("npm_config_offline", "true")
            .env("npm_config_update_notifier", "false");
        shell
    };
    let [sheet, serve] = first[..] else {
        panic!("a sheet and a gateway: {first:?}")
    };
    run(&mut shell(sheet));
    let mut serve = shell(&format!("exec {serve}"));
    serve.env("WEIR_LISTEN", "127.0.0.1:0").process_group(0);
    let mut gateway = Gateway::start(serve);
    let inspector = place::present(
        place::cache().join("clients/node/node_modules/.bin/mcp-inspector"),
        "cargo xtask test",
    );
    let inspector = inspector.display().to_string();
    assert_eq!(second.len(), 2, "a client, and Weir: {second:?}");
    for line in second {
        let line = line
            .replace("npx --yes @modelcontextprotocol/inspector", &inspector)
            .replace("http://127.0.0.1:8484", &gateway.base);
        let answer = run(&mut shell(&line));
        assert!(answer.contains("Chair"), "{line}: {answer}");
    }
    run(Command::new("kill").args(["-INT", "--", &format!("-{}", gateway.process_id())]));
    gateway.left();
}

#[tokio::test]
async fn the_wheel_is_installed_called_and_served() {
    let home = home();
    let environment = home.path().join("environment");
    run(Command::new("python3")
        .args(["-m", "venv"])
        .arg(&environment));
    let mut install = Command::new(environment.join("bin/python"));
    run(install
        .args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"])
        .arg(package(".whl")));
    let program = environment.join("bin/weir-gateway");
    calls(Command::new(&program), home.path());
    serves(Command::new(&program), home.path()).await;
}

/// `uvx` makes a separate environment for the wheel, either anew or from its cache.
#[tokio::test]
async fn the_wheel_runs_by_uvx() {
    let home = home();
    let uvx = || {
        let uvx = place::present(
            place::cache().join("clients/uv/bin/uvx"),
            "cargo xtask test",
        );
        let mut uvx = at_home(Command::new(uvx), home.path());
        uvx.args(["--offline", "--quiet", "--from"])
            .arg(package(".whl"))
            .arg("weir-gateway");
        uvx
    };
    calls(uvx(), home.path());
    serves(uvx(), home.path()).await;
}

/// apt reports what it would do on this machine; dpkg then does it in a separate root. Only the package's script, which
/// makes a user, is left out.
#[tokio::test]
async fn the_debian_package_is_installed_called_and_served() {
    let home = home();
    let (package, root) = (package(".deb"), home.path().join("root"));
    let fields = run(Command::new("dpkg-deb").arg("--field").arg(&package));
    assert!(
        fields.contains("Package: weir-gateway") && fields.contains("Depends: libc6"),
        "{fields}"
    );
    let planned = run(Command::new("apt-get")
        .args(["install", "--simulate"])
        .arg(&package));
    assert!(
        planned.contains("Inst weir-gateway"),
        "apt finds all that it depends on: {planned}"
    );

    let database = root.join("var/lib/dpkg");
    std::fs::create_dir_all(database.join("info")).expect("a folder in the temporary folder");
    std::fs::write(database.join("status"), "").expect("an empty list of packages");
    let option = |name: &str| format!("--{name}={}", root.display());
    let mut unpack = Command::new("dpkg");
    unpack.args([
        &option("root"),
        "--force-not-root",
        "--force-script-chrootless",
        "--log=/dev/null",
        "--unpack",
    ]);
    run(unpack.arg(&package));
    let listed = run(Command::new("dpkg").args([&option("root"), "--status", "weir-gateway"]));
    assert!(listed.contains("Status: install ok unpacked"), "{listed}");
    let unit = std::fs::read_to_string(root.join("usr/lib/systemd/system/weir.service"))
        .expect("the unit");
    assert!(unit.contains("ExecStart=/usr/bin/weir serve"), "{unit}");
    // Its child answers the calls in flight, so a stop must not reach it; an unexpected end restarts the service.
    assert!(
        unit.contains("\nKillMode=mixed\n") && unit.contains("\nRestart=always\n"),
        "{unit}"
    );
    let script = |name: &str| {
        std::fs::read_to_string(database.join(format!("info/weir-gateway.{name}"))).expect(name)
    };
    assert!(
        script("prerm").contains("systemctl stop weir.service"),
        "a removed program does not serve on"
    );
    assert!(
        script("postinst").contains("systemctl try-restart weir.service"),
        "an upgrade is what runs afterwards"
    );
    let program = root.join("usr/bin/weir");
    // The machine that packs may have a newer C library than the program asks for.
    let newest = "objdump -T \"$0\" | grep -o 'GLIBC_[0-9.]*' | sort --version-sort | tail -n 1";
    let glibc = run(Command::new("sh").args(["-c", newest]).arg(&program))
        .trim()
        .replace("GLIBC_", "");
    assert!(
        fields.contains(&format!("Depends: libc6 (>= {glibc}),")),
        "{glibc}: {fields}"
    );
    calls(Command::new(&program), home.path());
    serves(Command::new(&program), home.path()).await;

    let mut remove = Command::new("dpkg");
    run(remove.args([
        &option("root"),
        "--force-not-root",
        "--force-script-chrootless",
        "--log=/dev/null",
        "--purge",
        "weir-gateway",
    ]));
    assert!(
        !program.exists() && !root.join("etc/weir/weir.toml").exists(),
        "nothing of it is left"
    );
}
