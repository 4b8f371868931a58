//! Tests what the processes of other servers can open of this machine. As root they could open everything, so they run as
//! another user if the test is root.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use weir_tests::{Gateway, House, Modern, place, strangers::hostile};

use super::{entry, listed};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").expect("there is /proc").uid() == 0
}

/// Returns the command as `nobody` runs it, where this user is root.
pub(crate) fn as_nobody(command: &Command) -> Command {
    let program = reachable(command);
    let mut words = vec![program.as_os_str()];
    if is_root() {
        let user = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        words.splice(0..0, user.map(AsRef::as_ref));
    }
    words.extend(command.get_args());
    let mut wrapped = Command::new(words[0]);
    wrapped.args(&words[1..]);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}

/// Returns the program of a command where `nobody` may start it: the folder of builds may be accessible only to root.
fn reachable(command: &Command) -> PathBuf {
    let program = PathBuf::from(command.get_program());
    let Some(folder) = command.get_current_dir().filter(|_| is_root()) else {
        return program;
    };
    let copy = folder.join("program");
    if !copy.exists() {
        fs::copy(&program, &copy).expect("the program can be copied");
    }
    copy
}

/// Gives a folder with all that is in it to `nobody`, where this user is root.
pub(crate) fn give_away(path: &Path) {
    if !is_root() {
        return;
    }
    chown(path, Some(NOBODY), Some(NOBODY)).expect("root may do that");
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            give_away(&entry.expect("an entry").path());
        }
    }
}

/// Asks the kernel for its version of Landlock, as no code of Weir's does.
fn has_landlock() -> bool {
    let script = "import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))";
    let python = &hostile(&["good"])[0];
    let output = Command::new(python).args(["-c", script]).output();
    let text = String::from_utf8(output.expect("Python runs").stdout).expect("a number");
    text.trim().parse::<i32>().expect("a number") >= 2
}

/// Returns a house with the same server twice: as any other, and with no sandbox.
fn house() -> House {
    let house = House::new()
        .file("token", "a secret")
        .file("data/a.csv", "a\n1\n")
        .file("contracts/note.txt", "")
        .file("plugins/note.txt", "")
        .file("home/note.txt", "");
    let script = place::repository().join("tests/upstreams/spy.sh");
    fs::copy(script, house.path().join("spy.sh")).expect("copied");
    let path = house.path().to_owned();
    let spy = |name: &str, more: &str| {
        let folder = path.join(name);
        for inner in ["from", "to"] {
            fs::create_dir_all(folder.join(inner)).expect("a folder");
        }
        for file in ["moved", "from/a"] {
            fs::write(folder.join(file), "").expect("a file");
        }
        let text = |path: &Path| path.display().to_string();
        let words = [
            "/bin/sh".to_owned(),
            text(&path.join("spy.sh")),
            text(&path),
            text(&folder),
        ];
        let more = format!(
            "folder = \"{name}\"\nenv = {{ TOKEN = \"file:token\" }}\nfirst = \"publish\"\n{more}"
        );
        entry(name, &words, &more)
    };
    house
        .config(&spy("spy", ""))
        .config(&spy("free", "sandbox = false"))
}

#[tokio::test]
async fn a_server_reaches_neither_the_gateway_nor_what_is_its_own() {
    let house = house();
    let mut command = house.weir(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command
        .env("HOME", house.path().join("home"))
        .env("WEIR_PLUGINS", house.path().join("plugins"));
    give_away(house.path());
    let gateway = Gateway::start(as_nobody(&command));
    let client = Modern::new(gateway.url());
    for (server, is_kept) in [("spy", has_landlock()), ("free", false)] {
        listed(&client, &format!("{server}_look")).await;
        let result = client.call(&format!("{server}_look"), json!({})).await;
        let open = result["structuredContent"].as_object().expect("an object");
        // What the process of the gateway holds is kept in either case.
        for name in [
            "environ of gateway",
            "mem of gateway",
            "environ of guard",
            "mem of guard",
            "through the gateway",
        ] {
            assert_eq!(open[name], false, "{server}: {name} of {open:?}");
        }
        for name in [
            "read state/admin.token",
            "read weir.toml",
            "read token",
            "write state/new",
            "write weir.toml",
            "write token",
            "write contracts/new.yaml",
            "write plugins/new",
            "swap the state",
            "move the token in",
        ] {
            assert_eq!(open[name], !is_kept, "{server}: {name} of {open:?}");
        }
        for name in [
            "read contracts/note.txt",
            "read data/a.csv",
            "write data/new",
            "write here",
            "move here",
            "write a temporary file",
        ] {
            assert_eq!(open[name], true, "{server}: {name} of {open:?}");
        }
    }
    assert_eq!(gateway.log().contains("has no Landlock"), !has_landlock());
}

/// Waits until a process cannot be read by another one of its user.
fn becomes_closed(process: &mut Child, what: &str) {
    let file = format!("/proc/{}/environ", process.id());
    let started = Instant::now();
    loop {
        let mut cat = Command::new("cat");
        let output = as_nobody(cat.arg(&file)).output().expect("cat runs");
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(error.contains("Permission denied"), "{what}: {error}");
            return;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{what} can be read"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn no_process_of_weirs_can_be_read_by_another_of_its_user() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
    // A host of native plugins waits for its library until this is written to.
    let pipe = folder.path().join("library");
    let made = Command::new("mkfifo").arg("-m0644").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let pipe = pipe.display().to_string();
    for words in [
        &["child", "--", "sleep", "60"][..],
        &[
            "native-host",
            "--processor-ms=1",
            "--memory-bytes=1",
            "--sha256=0",
            &pipe,
        ],
    ] {
        let mut command = Command::new(place::binary("weir"));
        let mut process = as_nobody(command.args(words))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        becomes_closed(&mut process, words[0]);
        process.kill().expect("killed");
        process.wait().expect("waited for");
    }
}
