//! Clients' configurations as people have them: each is read, and edited without touching other entries.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tempfile::TempDir;
use weir_tests::{House, place, strangers::hostile, weir};

use crate::sample;

/// Each client, and where its configuration lies at home.
const HOSTS: [(&str, &str); 9] = [
    ("claude-code", ".claude.json"),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
    ),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("codex", ".codex/config.toml"),
    (
        "cline",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    ("gemini", ".gemini/settings.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("zed", ".config/zed/settings.json"),
];

/// A user's home, where one client is set up with its own server, called `notes`.
struct Home {
    folder: TempDir,
    client: &'static str,
    file: PathBuf,
    before: String,
}

impl Home {
    fn of(client: &'static str, lies_at: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let extension = Path::new(lies_at)
            .extension()
            .filter(|kind| *kind == "toml")
            .map_or("json", |_| "toml");
        let fixture =
            place::repository().join(format!("tests/fixtures/hosts/{client}.{extension}"));
        let fixture = fs::read_to_string(fixture).expect("a configuration of the client");
        let words = hostile(&["good"]);
        let before = fixture
            .replace("@PYTHON@", &words[0])
            .replace("@SERVER@", &words[1]);
        let file = folder.path().join(lies_at);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, &before).expect("a configuration");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the user's alone");
        Self {
            folder,
            client,
            file,
            before,
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        HOSTS
            .iter()
            .map(|(client, lies_at)| Self::of(client, lies_at))
    }

    /// Runs `weir` in this home. Returns what it prints.
    fn run(&self, words: &[&str]) -> String {
        let (is_ok, out, err) = self.try_in(self.folder.path(), words);
        assert!(is_ok, "{} {words:?}: {out}{err}", self.client);
        out
    }

    /// Runs `weir` in a folder. Returns whether it succeeds, and what it prints to stdout and stderr.
    fn try_in(&self, folder: &Path, words: &[&str]) -> (bool, String, String) {
        let mut command = weir(words);
        command
            .env("HOME", self.folder.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("CODEX_HOME");
        let output = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .expect("weir starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("weir prints text");
        (
            output.status.success(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// Lets Weir be started by the client.
    fn connect(&self, house: &House) -> String {
        let config = house.stdio_command()[3].clone();
        self.run(&["connect", self.client, "--config", &config])
    }

    /// Returns the names of a configured server's offer.
    fn offered(&self, server: &str) -> Vec<String> {
        let document: Value =
            serde_json::from_str(&self.run(&["extract", server, "--from", self.client]))
                .expect("a document");
        let items = document["items"].as_array().expect("items").iter();
        items
            .map(|item| item["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    fn now(&self) -> String {
        fs::read_to_string(&self.file).expect("the configuration is there")
    }

    /// Returns the file in which Weir keeps the content from before it wrote.
    fn backup(&self) -> PathBuf {
        self.kept("weir-backup")
    }

    /// Returns the file in which Weir keeps what an entry held before Weir changed it.
    fn last_backup(&self) -> PathBuf {
        self.kept("weir-backup-last")
    }

    /// Finds a file of Weir's in the user's state folder. It belongs to the one client that this home has.
    fn kept(&self, ending: &str) -> PathBuf {
        let folder = self.folder.path().join(".local/state/weir/clients");
        let files = fs::read_dir(&folder).into_iter().flatten();
        let mut files = files.map(|file| file.expect("a file").path());
        files
            .find(|file| file.extension().is_some_and(|is| is == ending))
            .unwrap_or(folder.join("none"))
    }

    fn edit(&self, edit: impl FnOnce(String) -> String) -> String {
        let edited = edit(self.now());
        fs::write(&self.file, &edited).expect("edited");
        edited
    }

    /// Writes another key into the entry that Weir made.
    fn add_a_key(&self) -> String {
        let (head, key) = match self.client {
            "codex" => ("[mcp_servers.weir]\n", "env = { WEIR_KEY = \"theirs\" }\n"),
            _ => ("\"weir\": {", "\"env\": { \"WEIR_KEY\": \"theirs\" },"),
        };
        self.edit(|now| {
            assert_eq!(now.matches(head).count(), 1, "{now}");
            now.replace(head, &format!("{head}{key}"))
        })
    }

    fn mode(&self) -> u32 {
        fs::metadata(&self.file)
            .expect("the configuration is there")
            .permissions()
            .mode()
            & 0o777
    }
}

/// Checks that every earlier line is still there, in the same order, but for white space. Something may have been put
/// behind it.
fn has_what_was_there(client: &str, before: &str, now: &str) {
    let tight = |text: &str| text.split_whitespace().collect::<String>();
    let mut rest = &*tight(now);
    for line in before.lines().map(tight) {
        let line = line.trim_end_matches([',', '}']);
        let at = rest
            .find(line)
            .unwrap_or_else(|| panic!("{client}: {line:?} is gone, or elsewhere:\n{now}"));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn the_servers_of_every_client_are_read_from_where_they_lie() {
    for home in Home::all() {
        assert_eq!(home.offered("notes"), ["good"], "{}", home.client);
    }
}

#[test]
fn weir_is_put_into_every_client_beside_what_is_there_and_taken_out_to_equal_bytes() {
    let house = sample::house();
    for home in Home::all() {
        let client = home.client;
        let printed = home.connect(&house);
        let with = home.now();
        has_what_was_there(client, &home.before, &with);
        assert_eq!(
            fs::read_to_string(home.backup()).expect("a backup"),
            home.before,
            "{client}"
        );
        assert!(
            printed.contains(".weir-backup is what it was"),
            "{client}: {printed}"
        );
        assert_eq!(home.mode(), 0o600, "{client}: it stays the user's alone");
        assert_eq!(
            home.offered("weir").len(),
            3,
            "{client}: the client starts Weir"
        );
        assert_eq!(
            home.offered("notes"),
            ["good"],
            "{client}: and what it started before"
        );
        // Once more changes nothing.
        assert!(home.connect(&house).contains("already names"), "{client}");
        assert_eq!(home.now(), with, "{client}");

        home.run(&["connect", client, "--undo"]);
        assert_eq!(home.now(), home.before, "{client}: byte for byte");
        assert_eq!(home.mode(), 0o600, "{client}");
        assert!(!home.backup().exists(), "{client}: nothing of ours is left");
    }
}

/// Changes that the client or its user made meanwhile do not keep Weir in, and are not lost.
#[test]
fn what_was_edited_since_stays_when_weir_is_taken_out() {
    let house = sample::house();
    for home in Home::all() {
        let client = home.client;
        home.connect(&house);
        let edit = |text: &str| text.replacen("\"good\"", "\"better\"", 1);
        fs::write(&home.file, edit(&home.now())).expect("edited");
        home.run(&["connect", client, "--undo"]);
        let now = home.now();
        assert!(
            now.contains("\"better\"") && !now.contains("--config"),
            "{client}: {now}"
        );
        has_what_was_there(client, &edit(&home.before), &now);
    }
}

/// A comment is not part of any value, but is kept all the same: no backup has it.
#[test]
fn what_was_only_commented_since_stays_when_weir_is_taken_out() {
    let house = sample::house();
    for home in Home::all() {
        let client = home.client;
        home.connect(&house);
        let comment = if client == "codex" {
            "# mine, since\n"
        } else {
            "// mine, since\n"
        };
        home.edit(|now| format!("{comment}{now}"));
        let printed = home.run(&["connect", client, "--undo"]);
        let now = home.now();
        assert!(
            now.starts_with(comment) && !now.contains("--config"),
            "{client}: {now}"
        );
        has_what_was_there(client, &home.before, &now);
        assert!(
            printed.contains("everything else is unchanged"),
            "{client}: {printed}"
        );
        assert_eq!(
            fs::read_to_string(home.backup()).expect("the backup stays"),
            home.before,
            "{client}"
        );
    }
}

/// Keys are shown once: connecting again does not lose a key that was put into the entry.
#[test]
fn a_key_in_the_entry_stays_when_weir_is_connected_again() {
    let house = sample::house().config("[views.reading]\nread_only = true\n");
    let config = house.stdio_command()[3].clone();
    for home in Home::all() {
        let client = home.client;
        home.connect(&house);
        let with_key = home.add_a_key();
        assert!(home.connect(&house).contains("already names"), "{client}");
        assert_eq!(home.now(), with_key, "{client}");
        home.run(&["connect", client, "--config", &config, "--view", "reading"]);
        let now = home.now();
        assert!(
            now.contains("theirs") && now.contains("--view"),
            "{client}: {now}"
        );
        assert_eq!(
            fs::read_to_string(home.last_backup()).expect("a backup"),
            with_key,
            "{client}"
        );

        // A URL takes no environment, and the key is in the backup.
        if client != "claude-desktop" {
            home.run(&["connect", client, "--url", "http://127.0.0.1:1/mcp"]);
            let url = home.now();
            assert!(
                !url.contains("theirs") && !url.contains("--view"),
                "{client}: {url}"
            );
            assert_eq!(
                fs::read_to_string(home.last_backup()).expect("a backup"),
                now,
                "{client}"
            );
        }
        home.run(&["connect", client, "--undo"]);
        assert_eq!(home.now(), home.before, "{client}: byte for byte");
        assert!(
            !home.backup().exists() && !home.last_backup().exists(),
            "{client}: nothing of ours is left"
        );
    }
}

#[test]
fn an_entry_that_was_there_before_weir_is_put_back() {
    let house = sample::house();
    let edit = |text: &str| text.replacen("\"good\"", "\"better\"", 1);
    for is_edited_since in [false, true] {
        for home in Home::all() {
            let client = home.client;
            // The user wrote their own entry, with a key.
            home.connect(&house);
            home.add_a_key();
            let theirs = home.edit(|now| now.replace("--config", "--own"));
            fs::remove_file(home.backup()).expect("the backup of that is none of theirs");

            home.connect(&house);
            let now = home.now();
            assert!(
                now.contains("theirs") && now.contains("--config") && !now.contains("--own"),
                "{client}: {now}"
            );
            assert_eq!(
                fs::read_to_string(home.backup()).expect("a backup"),
                theirs,
                "{client}"
            );
            if is_edited_since {
                home.edit(|now| edit(&now));
            }
            let printed = home.run(&["connect", client, "--undo"]);
            let now = home.now();
            assert!(
                printed.contains("repeat this command"),
                "{client}: {printed}"
            );
            match is_edited_since {
                false => assert_eq!(now, theirs, "{client}: byte for byte"),
                true => {
                    assert!(
                        now.contains("theirs")
                            && now.contains("--own")
                            && now.contains("\"better\""),
                        "{client}: {now}"
                    );
                    assert!(!now.contains("--config"), "{client}: {now}");
                }
            }
            home.run(&["connect", client, "--undo"]);
            let now = home.now();
            assert!(!now.contains("theirs"), "{client}: {now}");
            has_what_was_there(
                client,
                &if is_edited_since {
                    edit(&home.before)
                } else {
                    home.before.clone()
                },
                &now,
            );
        }
    }
}

/// The file is new, and contains a key: no other user may read it.
#[test]
fn a_new_configuration_is_the_users_alone() {
    for home in Home::all().filter(|home| home.client != "claude-desktop") {
        fs::remove_file(&home.file).expect("it was there");
        let header = "Authorization: Bearer theirs";
        home.run(&[
            "connect",
            home.client,
            "--url",
            "http://127.0.0.1:1/mcp",
            "--header",
            header,
        ]);
        assert!(home.now().contains("theirs"), "{}", home.client);
        assert_eq!(home.mode(), 0o600, "{}", home.client);
        home.run(&[
            "connect",
            home.client,
            "--url",
            "http://127.0.0.1:1/mcp",
            "--view",
            "reading",
        ]);
        home.run(&["connect", home.client, "--undo"]);
        assert!(
            !home.file.exists(),
            "{}: both entries were ours, and so was the file",
            home.client
        );
        assert!(
            !home.backup().exists() && !home.last_backup().exists(),
            "{}",
            home.client
        );
    }
}

/// A client writes to its file as it runs, and the endpoint may take its time to answer.
#[test]
fn what_a_client_writes_while_the_endpoint_is_asked_is_not_lost() {
    for home in Home::all().filter(|home| home.client != "claude-desktop") {
        let client = home.client;
        let endpoint = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/mcp", endpoint.local_addr().expect("an address"));
        let (file, edited) = (
            home.file.clone(),
            home.before.replacen("\"good\"", "\"better\"", 1),
        );
        std::thread::spawn(move || {
            let (mut caller, _) = endpoint
                .accept()
                .expect("Weir asks whether a key is needed");
            let mut request = [0; 4096];
            assert!(caller.read(&mut request).expect("a request") > 0);
            fs::write(&file, edited).expect("edited");
            let answer =
                "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            caller.write_all(answer.as_bytes()).expect("answered");
        });
        home.run(&["connect", client, "--url", &url]);
        let after = home.now();
        assert!(
            after.contains(&url) && after.contains("\"better\""),
            "{client}: {after}"
        );
        assert!(
            fs::read_to_string(home.backup())
                .expect("a backup")
                .contains("\"better\""),
            "{client}"
        );
    }
}

#[test]
fn commands_at_once_leave_each_others_entries() {
    for home in [
        &Home::of("cursor", HOSTS[2].1),
        &Home::of("codex", HOSTS[4].1),
    ] {
        let names: Vec<String> = (0..6).map(|number| format!("weir-{number}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                let words = ["connect", home.client, "--name", name.as_str()];
                let connect = [&words[..], &URL].concat();
                scope.spawn(move || home.run(&connect));
            }
        });
        let now = home.now();
        for name in &names {
            assert!(now.contains(name.as_str()), "{name} is in {now}");
        }
    }
}

/// Each client with a file of projects.
const PROJECTS: [(&str, &str); 6] = [
    ("claude-code", ".mcp.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".vscode/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("zed", ".zed/settings.json"),
];

const URL: [&str; 2] = ["--url", "http://127.0.0.1:1/mcp"];

/// A cloned repository may hold links to wherever its author likes.
#[test]
fn a_link_of_a_project_is_not_followed() {
    let home = Home::of("zed", HOSTS[8].1);
    let private = home.folder.path().join("private");
    for (client, lies_at) in PROJECTS {
        let connect = [&["connect", client, "--project"][..], &URL].concat();
        let undo = ["connect", client, "--project", "--undo"];
        let links = ["the file", "its folder", "its backup", "a dangling file"];
        for (number, link) in links.into_iter().enumerate() {
            let project = home.folder.path().join(format!("{client}-{number}"));
            let file = project.join(lies_at);
            let folder = file.parent().expect("a folder");
            let theirs = home.folder.path().join(format!("theirs-{client}-{number}"));
            fs::create_dir_all(&project).expect("a project");
            fs::create_dir_all(&theirs).expect("a folder elsewhere");
            fs::write(&private, "mine = 1\n").expect("written");
            match link {
                "its folder" if folder == project => continue,
                "its folder" => symlink(&theirs, folder).expect("a link"),
                "the file" => {
                    fs::create_dir_all(folder).expect("a folder");
                    symlink(&private, &file).expect("a link");
                }
                "a dangling file" => {
                    fs::create_dir_all(folder).expect("a folder");
                    symlink(theirs.join("new"), &file).expect("a link");
                }
                _ => {
                    fs::create_dir_all(folder).expect("a folder");
                    for ending in ["weir-backup", "weir-backup-last"] {
                        let backup = format!("{}.{ending}", file.display());
                        symlink(&private, backup).expect("a link");
                    }
                }
            }
            let is_harmless = link == "its backup";
            for (words, print) in [(&connect[..], false), (&connect, true), (&undo, false)] {
                let words = [words, if print { &["--print"] } else { &[] }].concat();
                let (is_ok, out, err) = home.try_in(&project, &words);
                let shown = format!("{client} {link} {words:?}: {out}{err}");
                assert_eq!(is_ok, is_harmless, "{shown}");
                assert!(is_ok || err.contains("it is a link"), "{shown}");
                assert!(!out.contains("mine"), "{shown}");
            }
            let now = fs::read_to_string(&private).expect("it is there");
            assert_eq!(now, "mine = 1\n", "{client}: {link}");
            let made = fs::read_dir(&theirs).expect("a folder").count();
            assert_eq!(made, 0, "{client}: {link}");
            let all: Vec<_> = fs::read_dir(&project).expect("a folder").collect();
            assert!(all.len() <= 3, "nothing is left: {client} {link} {all:?}");
        }
    }
}

/// A cloned repository may hold a pipe, or a link to a device, that is never read to its end.
#[test]
fn what_is_no_file_in_a_project_is_not_read() {
    let home = Home::of("cursor", HOSTS[2].1);
    let project = home.folder.path().join("project");
    fs::create_dir_all(project.join(".cursor")).expect("a project");
    symlink("/dev/null", project.join(".cursor/mcp.json")).expect("a link");
    let (is_ok, out, err) = home.try_in(&project, &["extract", "notes", "--from", "cursor"]);
    assert!(!is_ok && err.contains("it is not a file"), "{out}{err}");
}

/// The text of a project's file is kept in the user's state folder, where the project does not take it along.
#[test]
fn a_project_is_connected_and_left_as_it_was() {
    let home = Home::of("zed", HOSTS[8].1);
    for (client, lies_at) in PROJECTS {
        let project = home.folder.path().join(client);
        let file = project.join(lies_at);
        fs::create_dir_all(&project).expect("a project");
        let connect = [&["connect", client, "--project"][..], &URL].concat();
        let (is_ok, out, err) = home.try_in(&project, &connect);
        assert!(is_ok, "{client}: {out}{err}");
        let now = fs::read_to_string(&file).expect("it is made");
        assert!(now.contains(URL[1]), "{client}: {now}");
        assert!(home.backup().exists(), "{client}");
        let (is_ok, out, err) = home.try_in(&project, &["connect", client, "--project", "--undo"]);
        assert!(is_ok && !file.exists(), "{client}: {out}{err}");
        assert!(!home.backup().exists(), "{client}");
    }
}

/// Programs for dotfiles put links into a home.
#[test]
fn a_link_of_the_user_is_followed_to_a_file_of_their_own_below_home_alone() {
    for home in Home::all() {
        let client = home.client;
        if client == "claude-desktop" {
            continue; // it takes no URL
        }
        let connect = [&["connect", client][..], &URL].concat();
        let undo = ["connect", client, "--undo"];
        let dotfiles = home.folder.path().join("dotfiles");
        fs::create_dir_all(&dotfiles).expect("a folder");
        let real = dotfiles.join("kept");
        fs::rename(&home.file, &real).expect("moved");
        symlink(&real, &home.file).expect("a link");
        let (is_ok, out, err) = home.try_in(home.folder.path(), &connect);
        let real_path = real.canonicalize().expect("it is there");
        assert!(
            is_ok && err.contains(&real_path.display().to_string()),
            "{client}: it is named: {out}{err}"
        );
        assert!(
            home.file.is_symlink() && home.now().contains(URL[1]),
            "{client}"
        );
        home.run(&undo);
        assert_eq!(
            fs::read_to_string(&real).expect("kept"),
            home.before,
            "{client}"
        );

        let elsewhere = tempfile::tempdir().expect("a folder");
        let outside = elsewhere.path().join("file");
        fs::rename(&real, &outside).expect("moved");
        for target in [&outside, &elsewhere.path().join("none")] {
            fs::remove_file(&home.file).expect("a link");
            symlink(target, &home.file).expect("a link");
            for words in [&connect[..], &undo] {
                let (is_ok, out, err) = home.try_in(home.folder.path(), words);
                assert!(!is_ok && out.is_empty(), "{client} {words:?}: {out}{err}");
                assert!(err.contains("below your home folder"), "{client}: {err}");
            }
        }
        assert_eq!(
            fs::read_to_string(&outside).expect("kept"),
            home.before,
            "{client}"
        );
        assert!(!elsewhere.path().join("none").exists(), "{client}");
    }
}

/// Clients read the last of two members of one name, and the first would be edited.
#[test]
fn a_configuration_with_a_member_twice_is_left_alone() {
    for home in Home::all().filter(|home| !["codex", "claude-desktop"].contains(&home.client)) {
        let text = home.before.trim_end().strip_suffix('}').expect("an object");
        let twice = format!(
            "{}, \"theme\": 1, \"theme\": 2}}\n",
            text.trim_end().trim_end_matches(',')
        );
        fs::write(&home.file, &twice).expect("written");
        let words = [&["connect", home.client][..], &URL].concat();
        let (is_ok, out, err) = home.try_in(home.folder.path(), &words);
        assert!(
            !is_ok && err.contains("`theme` occurs twice"),
            "{}: {out}{err}",
            home.client
        );
        assert_eq!(home.now(), twice);
    }
}
