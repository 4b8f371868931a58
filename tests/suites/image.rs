//! Tests the container image: built from the Dockerfile around the program of the tests, on a base that `cargo xtask test`
//! made from Debian's packages, and run as its users run it, by podman.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_tests::{
    Gateway, Modern, answer_to, http, network::TestNetwork, place, upstream::free_port,
};

use crate::sample;

/// The image's name in a separate store.
const IMAGE: &str = "localhost/weir:test";
const BASE: &str = "docker.io/library/debian:bookworm-slim";
const CONTAINER: &str = "weir-of-a-test";

/// Podman with an empty store of one test. Removed with all that runs in it when dropped.
struct ContainerEngine {
    folder: TempDir,
}

impl ContainerEngine {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("weir-image-")
            .tempdir()
            .expect("a temporary folder");
        Self { folder }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut podman = Command::new(place::present("/usr/bin/podman".into(), "cargo xtask test"));
        let at = |name: &str| self.folder.path().join(name);
        podman
            .arg("--root")
            .arg(at("store"))
            .arg("--runroot")
            .arg(at("run"))
            // Neither systemd nor version 2 of control groups is needed.
            .args(["--cgroup-manager", "cgroupfs", "--runtime", "runc"])
            .args(words)
            .stdin(Stdio::null());
        podman
    }

    /// Returns the exit code of a command, and all that it printed.
    fn attempt(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.command(words).output().expect("podman starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout) + &text(&output.stderr),
        )
    }

    /// Returns what a command prints on stdout.
    fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("podman starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "podman {words:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Builds the last stage of the Dockerfile; what its first stage leaves behind is in a folder.
    fn build(&self) {
        let base = place::present(place::cache().join("image/base.tar"), "cargo xtask test");
        self.run(&["import", "--quiet", path(&base), BASE]);
        let built = self.folder.path().join("built");
        let package = built.join("package");
        let certificates = built.join("etc/ssl/certs");
        fs::create_dir_all(&package).expect("a folder in the temporary folder");
        fs::create_dir_all(&certificates).expect("a folder in the temporary folder");
        let stripped = Command::new("strip")
            .arg("-o")
            .arg(package.join("weir"))
            .arg(place::binary("weir"))
            .status();
        assert!(stripped.expect("strip runs").success());
        for (from, to) in [("packaging/weir.toml", "weir.toml"), ("LICENSE", "LICENSE")] {
            fs::copy(place::repository().join(from), package.join(to)).expect("a file is copied");
        }
        let name = "ca-certificates.crt";
        fs::copy(
            Path::new("/etc/ssl/certs").join(name),
            certificates.join(name),
        )
        .expect("this machine has certificates");
        let context = format!("build={}", built.display());
        let file = place::repository().join("Dockerfile");
        // The format is Docker's, since the OCI format has no health check.
        let mut words = vec!["build", "--quiet", "--pull=never", "--format=docker"];
        words.extend(["--isolation=chroot", "--network=host", "--layers=false"]);
        words.extend(["--build-context", &context, "--tag", IMAGE]);
        self.run(&[&words[..], &["--file", path(&file), path(&built)]].concat());
    }

    /// Runs the image over a folder of contracts and one for all that it writes, read-only and without any capability.
    fn serve(&self, port: u16) -> Gateway {
        // The adapters as the tests have compiled them, since their compiler is not optimised.
        let compiled = place::cache().join("compiled");
        if compiled.exists() {
            let state = self.folder.path().join("home/state");
            fs::create_dir_all(&state).expect("a folder in the temporary folder");
            let copied = Command::new("cp")
                .arg("-r")
                .args([&compiled, &state.join("plugins")])
                .status();
            assert!(copied.expect("cp runs").success());
        }
        let mount = |name: &str, target: &str| {
            format!("{}:{target}", self.folder.path().join(name).display())
        };
        let contracts = mount("contracts", "/etc/weir/contracts:ro");
        // As it is in Kubernetes, nothing of the image shows through here. Podman gives it to the image's user.
        let home = mount("home", "/var/lib/weir:U");
        let listen = format!("WEIR_LISTEN=127.0.0.1:{port}");
        let mut words = vec!["run", "--name", CONTAINER, "--read-only", "--cap-drop=ALL"];
        words.extend([
            "--read-only-tmpfs=false",
            "--security-opt=no-new-privileges",
        ]);
        words.extend(["--network=host"]);
        // What a machine of tests may set; the health is asked by hand.
        words.extend(["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"]);
        words.extend(["--health-interval=disable", "--env", &listen]);
        words.extend(["--volume", &contracts, "--volume", &home, IMAGE]);
        Gateway::start(self.command(&words))
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("its folder");
        fs::write(path, content).expect("a file in the temporary folder");
    }
}

impl Drop for ContainerEngine {
    fn drop(&mut self) {
        let _ = self.attempt(&["rm", "--force", "--volumes", "--time=0", "--all"]);
        let _ = self.attempt(&["rmi", "--force", "--all"]);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

/// Returns `true` if the image's build is not given this file of the folder. Git reads patterns as the engines do, once each
/// begins at the root.
fn is_left_out(git: &Path, file: &str) -> bool {
    let mut command = Command::new("git");
    command
        .current_dir(git)
        .args(["-c", "core.excludesFile=patterns"]);
    command.args(["check-ignore", "-q", "--no-index", file]);
    command.status().expect("git runs").success()
}

#[test]
fn the_build_is_given_no_secret_and_nothing_built() {
    let patterns = fs::read_to_string(place::repository().join(".dockerignore")).expect("it");
    let from_root = |line: &str| match line.strip_prefix('!') {
        _ if line.is_empty() || line.starts_with('#') => String::new(),
        Some(kept) => format!("!/{kept}\n"),
        None => format!("/{line}\n"),
    };
    let folder = TempDir::new().expect("a temporary folder");
    let from_root: String = patterns.lines().map(from_root).collect();
    fs::write(folder.path().join("patterns"), from_root).expect("it can be written");
    let mut init = Command::new("git");
    init.args(["init", "-q"]).current_dir(folder.path());
    assert!(init.status().expect("git runs").success());
    for file in [
        ".weir/admin.token",
        "demo/.weir/state.sqlite",
        "weir.toml",
        "prod.env",
        "deploy/compose/prod.env",
        "data/airports.sqlite",
        "target/debug/weir",
        "console/node_modules/vite/index.js",
    ] {
        assert!(is_left_out(folder.path(), file), "{file}");
    }
    for file in [
        "Cargo.toml",
        "gateway/src/lib.rs",
        "console/dist/.gitignore",
    ] {
        assert!(!is_left_out(folder.path(), file), "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_image_is_built_and_serves_on_a_read_only_system() {
    // What makes networks may run containers too.
    if !TestNetwork::is_allowed() {
        return;
    }
    let engine = ContainerEngine::new();
    engine.file("contracts/airports.yaml", sample::CONTRACT);
    engine.file("home/data/airports.csv", sample::DATA);
    engine.build();
    check_what_it_holds(&engine);

    let port = free_port();
    let mut gateway = engine.serve(port);
    let health = http().get(format!("http://127.0.0.1:{port}/healthz"));
    let health = answer_to(health).await;
    assert_eq!(health.text().await.expect("text"), "ok\n");
    let (code, output) = engine.attempt(&["healthcheck", "run", CONTAINER]);
    assert_eq!(code, Some(0), "its own check of health: {output}");

    check_what_it_may(&engine);
    let refused = Modern::new(gateway.url())
        .ask("tools/list", json!({}))
        .await;
    assert_eq!(refused.status, 401, "without a key");
    let words = [
        "exec", CONTAINER, "weir", "keys", "create", "--agent", "ann",
    ];
    let key = engine.run(&words);
    let client = Modern::with_key(gateway.url(), key.lines().last().unwrap_or_default());
    let found = client.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(
        found["structuredContent"]["name"], "Oslo Gardermoen Airport",
        "{found}"
    );

    let began = Instant::now();
    gateway.signal("TERM");
    let status = gateway.left();
    assert_eq!(status.code(), Some(0), "{status}\n{}", gateway.log());
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "it is not killed"
    );
    // The signal reaches the program.
    gateway.wait_for_log("stopping");
}

/// Checks the image's settings, and that it adds its own files to the base and nothing else.
fn check_what_it_holds(engine: &ContainerEngine) {
    let shown = engine.run(&["image", "inspect", IMAGE]);
    let shown: Value = serde_json::from_str(&shown).expect("podman prints JSON");
    let config = &shown[0]["Config"];
    assert_eq!(
        config["User"], "10001:10001",
        "Kubernetes cannot tell by a name that a user is not root"
    );
    assert_eq!(config["Entrypoint"], json!(["weir"]));
    assert_eq!(config["Cmd"], json!(["serve"]));
    assert_eq!(config["ExposedPorts"], json!({"8484/tcp": {}}));
    assert_eq!(config["Volumes"], json!({"/var/lib/weir": {}}));
    assert_eq!(config["StopSignal"], "SIGTERM");

    let changed = engine.run(&["diff", IMAGE, BASE]);
    let added: BTreeSet<&str> = changed
        .lines()
        .filter_map(|line| line.strip_prefix("A "))
        // What the tools of users keep of the files that they change.
        .filter(|path| !["/etc/gshadow-", "/etc/shadow-"].contains(path))
        .collect();
    let wanted = BTreeSet::from([
        "/etc/ssl",
        "/etc/ssl/certs",
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/weir",
        "/etc/weir/contracts",
        "/etc/weir/weir.toml",
        "/usr/local/bin/weir",
        "/usr/share/doc/weir",
        "/usr/share/doc/weir/LICENSE",
        "/var/lib/weir",
        "/var/lib/weir/data",
        "/var/lib/weir/plugins",
    ]);
    let more: Vec<_> = added.difference(&wanted).collect();
    assert!(
        more.is_empty() && added.contains("/usr/local/bin/weir"),
        "the image adds {more:?}:\n{changed}"
    );
}

/// Checks what the process in the container is: another user than root, without capabilities, before a read-only system.
fn check_what_it_may(engine: &ContainerEngine) {
    let shell = |script: &str| engine.run(&["exec", CONTAINER, "sh", "-c", script]);
    assert_eq!(shell("id -u; id -g"), "10001\n10001");
    let status = shell("cat /proc/1/status");
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{line}\n{status}");
    }
    let refused = shell("touch /etc/weir/x /usr/local/bin/x /tmp/x 2>&1; true");
    assert_eq!(
        refused.matches("Read-only file system").count(),
        3,
        "{refused}"
    );
}
