//! The command line as a whole: its help in groups, and names that it no longer has.

use std::process::{Command, Output};

use weir_tests::place;

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
fn an_old_command_ends_with_2_and_names_the_new_line() {
    for (words, line) in [
        (
            &["backup", "/var/b", "--config", "weir.toml"][..],
            "weir state backup /var/b --config weir.toml",
        ),
        (
            &["import", "openapi", "a b.yaml"],
            "weir draft --openapi 'a b.yaml'",
        ),
        (&["check", "clients", "--help"], "weir tools clients --help"),
        (&["help", "lock"], "weir contracts lock"),
    ] {
        let output = weir(words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(
            error.trim_end().ends_with(&format!("now: {line}")) && output.stdout.is_empty(),
            "{words:?}: {error}"
        );
    }
    let output = weir(&["flatten"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unrecognized subcommand 'flatten'"));
}
