//! The command line as a whole: its help in groups, names that it no longer has, and flags that find nothing.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use weir_tests::{Modern, place, read_output};

use crate::{audit::records, sample};

fn weir(words: &[&str]) -> Output {
    Command::new(place::binary("weir"))
        .args(words)
        .output()
        .expect("weir starts")
}

#[test]
fn help_has_the_commands_in_groups() {
    let output = weir(&["--help"]);
    let help = String::from_utf8_lossy(&output.stdout);
    let places = [
        "\nServe and call:\n  serve ",
        "\nWrite:\n  draft ",
        "\nLook after a gateway:\n  contracts ",
        "\nOther servers:\n  upstream ",
        "\nOptions:\n",
    ]
    .map(|part| help.find(part).unwrap_or_else(|| panic!("{part}: {help}")));
    assert!(places.is_sorted(), "{help}");
    for hidden in ["backup", "native-host", "  child"] {
        assert!(
            !help.contains(&format!("\n  {hidden} ")),
            "{hidden}: {help}"
        );
    }
    let output = weir(&["keys", "--help"]);
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(
        help.contains("Examples:\n  weir keys create --agent billing"),
        "{help}"
    );
}

#[test]
fn an_old_command_runs_the_new_one_and_names_it() {
    let own = tempfile::tempdir().expect("a temporary folder");
    fs::write(own.path().join("a b.json"), "{}").expect("a document");
    for (old, new, line) in [
        (
            &["backup", "there", "--config", "none.toml"][..],
            &["state", "backup", "there", "--config", "none.toml"][..],
            "weir state backup there --config none.toml",
        ),
        (
            &["import", "openapi", "a b.json"],
            &["draft", "--openapi", "a b.json"],
            "weir draft --openapi 'a b.json'",
        ),
        (
            &["check", "clients", "--help"],
            &["tools", "clients", "--help"],
            "weir tools clients --help",
        ),
        (
            &["help", "lock"],
            &["contracts", "lock", "--help"],
            "weir contracts lock --help",
        ),
    ] {
        let [before, now] = [old, new].map(|words| {
            let mut command = Command::new(place::binary("weir"));
            command.args(words).current_dir(own.path());
            read_output(command.output().expect("weir starts"))
        });
        let (note, rest) = before.2.split_once('\n').unwrap_or((&before.2, ""));
        assert!(note.ends_with(&format!("now: {line}")), "{old:?}: {note}");
        assert_eq!(
            (before.0, &before.1[..], rest),
            (now.0, &now.1[..], &now.2[..]),
            "{old:?}"
        );
    }
    let output = weir(&["flatten"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unrecognized subcommand 'flatten'"));
}

/// No user can make a folder in `/sys`, not even root.
#[test]
fn a_state_that_cannot_be_written_names_the_flag_for_another() {
    let own = tempfile::tempdir().expect("a temporary folder");
    fs::write(own.path().join("prices.csv"), "sku,price\nA,1\n").expect("a spreadsheet");
    for words in [
        &["call", "--file", "prices.csv"][..],
        &["draft", "prices.csv"],
        &["serve", "prices.csv", "--listen", "127.0.0.1:0"],
    ] {
        let mut command = Command::new(place::binary("weir"));
        command.args(words).current_dir(own.path());
        command.env("HOME", "/sys").env_remove("XDG_CACHE_HOME");
        for name in ["WEIR_CONFIG", "WEIR_STATE"] {
            command.env_remove(name);
        }
        let (code, _, err) = read_output(command.output().expect("weir starts"));
        assert!(
            code == 1 && err.contains("/sys/.cache/weir/state/weir.db: "),
            "{words:?}: {code} {err}"
        );
        assert!(err.contains("with `--state FOLDER`"), "{words:?}: {err}");
    }
}

/// Such a path is written into no file of JSON or TOML: a client would start another one.
#[test]
fn a_path_that_is_not_utf8_is_refused_or_read() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let folder = home.path().join(OsStr::from_bytes(b"k\xff"));
    fs::create_dir(&folder).expect("a folder of bytes");
    fs::write(folder.join("weir.toml"), "").expect("a configuration");
    fs::write(folder.join("prices.csv"), "sku,price\nA,1\n").expect("a spreadsheet");
    let run = |inside: &Path, words: &[OsString]| {
        let mut command = Command::new(place::binary("weir"));
        command.args(words).current_dir(inside);
        command.env("HOME", home.path()).env_remove("WEIR_CONFIG");
        read_output(command.output().expect("weir starts"))
    };
    let sheet: OsString = folder.join("prices.csv").into();
    let config: OsString = folder.join("weir.toml").into();
    let refused: [Vec<OsString>; 4] = [
        vec!["call".into(), "--file".into(), sheet.clone()],
        vec!["serve".into(), sheet.clone()],
        vec!["draft".into(), sheet],
        vec![
            "connect".into(),
            "cursor".into(),
            "--config".into(),
            config.clone(),
        ],
    ];
    for words in refused {
        let (code, out, err) = run(home.path(), &words);
        assert!(
            code == 1 && err.contains("is not UTF-8"),
            "{words:?}: {code} {out} {err}"
        );
    }
    let (code, _, err) = run(&folder, &["connect".into(), "cursor".into()]);
    assert!(code == 1 && err.contains("is not UTF-8"), "{err}");
    assert!(!home.path().join(".cursor").exists(), "nothing is written");
    let keys = ["keys".into(), "list".into(), "--config".into(), config];
    let (code, _, err) = run(home.path(), &keys);
    assert!(
        code == 1 && err.contains("is `weir serve` running?"),
        "{err}"
    );
}

/// A query that cannot find anything is refused, and a limit holds for the latest records too.
#[tokio::test]
async fn a_query_that_finds_nothing_by_its_flags_is_refused() {
    let house = sample::house();
    let gateway = house.serve();
    for iata in ["OSL", "ARN", "KEF"] {
        Modern::new(gateway.url())
            .call("lookup_airport", json!({"iata": iata}))
            .await;
    }
    for (words, reason) in [
        (&["query", "--limit", "0"][..], "0 is not in 1.."),
        (&["query", "--limit", "-1"], "-1 is not in 1.."),
        (&["export", "--limit", "0"], "0 is not in 1.."),
        (
            &["query", "--since", "2026-11-02", "--until", "2026-11-02"],
            "--until must be later than --since",
        ),
        (
            &["tail", "--since", "1h", "--until", "2h"],
            "--until must be later than --since",
        ),
    ] {
        let (code, out, err) = house.run(&[&["audit"], words].concat());
        assert!(
            code != 0 && out.is_empty() && err.contains(reason),
            "{words:?}: {code} {out} {err}"
        );
    }
    let calls = records(&house, &["--kind", "call"]);
    assert_eq!(
        records(&house, &["--kind", "call", "--limit", "2"]),
        calls[..2]
    );
    let words = ["audit", "tail", "--json", "--kind", "call", "--limit", "2"];
    let (code, out, err) = house.run(&words);
    let latest: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record is JSON"))
        .collect();
    assert_eq!((code, &latest[..]), (0, &calls[1..]), "{err}");
}

/// A variable whose value is refused is named, and so is one whose name is misspelt.
#[tokio::test]
async fn a_variable_with_a_mistake_is_named() {
    let house = sample::house();
    let _gateway = house.serve();
    let run = |variable: &str, value: &OsStr, words: &[&str]| {
        let output = house.weir(words).env(variable, value).output();
        read_output(output.expect("weir starts"))
    };
    for (variable, value, words, reason) in [
        ("WEIR_LOG", "weir=loud", &["call"][..], "info,weir=debug"),
        ("WEIR_LOG", "inof", &["call"], "info,weir=debug"),
        ("WEIR_LOG_FORMAT", "yaml", &["call"], "pretty, json"),
        ("WEIR_STATE", "", &["keys", "list"], "a value is required"),
        (
            "WEIR_ADMIN_URL",
            "127.0.0.1:8485",
            &["keys", "list"],
            "with its scheme",
        ),
        (
            "WEIR_ADMIN_URL",
            "",
            &["audit", "verify"],
            "with its scheme",
        ),
    ] {
        let (code, out, err) = run(variable, value.as_ref(), words);
        let names = err.contains(&format!("the variable {variable} "))
            || err.contains(&format!("the variable {variable}:"));
        assert!(
            code != 0 && out.is_empty() && names && err.contains(reason),
            "{variable}={value}: {code} {out} {err}"
        );
    }
    let (code, _, err) = run("WEIR_LOG", "weir::telemetry::traces".as_ref(), &["call"]);
    assert_eq!(code, 0, "the name of a part is no level: {err}");
    let not_utf8 = OsStr::from_bytes(b"info\xff");
    let (code, _, err) = run("WEIR_LOG", not_utf8, &["call"]);
    assert!(code == 1 && err.contains("the variable WEIR_LOG "), "{err}");
    let (code, _, err) = run("WEIR_ADMIN_KEY", not_utf8, &["keys", "list"]);
    assert!(code == 1 && err.contains("is not valid"), "{err}");

    let (code, _, err) = run("WEIR_LISTN", "127.0.0.1:1".as_ref(), &["keys", "list"]);
    let note = "weir: the variable WEIR_LISTN is not read; did you mean WEIR_LISTEN?";
    assert_eq!((code, &*err), (0, note));
    for (variable, value) in [("WEIR_LOG", ""), ("WEIR_STATE_URL", "x")] {
        let (code, _, err) = run(variable, value.as_ref(), &["keys", "list"]);
        assert_eq!((code, &*err), (0, ""), "{variable}");
    }
    let (code, _, err) = house.run(&["keys", "list", "--admin", "localhost:8485"]);
    assert!(
        code == 2 && err.contains("with its scheme") && !err.contains("the variable"),
        "{err}"
    );
}
