//! pydantic models in a component: those of pydantic 1 work, and those of pydantic 2 are refused with what to write.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::{Value, json};
use weir_tests::place;

use super::Desk;

/// Makes a plugin whose author has installed the packages of a list in `tests/clients`.
fn begin(desk: &Desk, installed: &str) -> PathBuf {
    desk.succeed("", &["plugin", "new", "models", "--lang", "python"]);
    let folder = desk.path().join("models");
    let environment = place::present(
        place::cache().join("clients").join(installed),
        "cargo xtask test",
    );
    symlink(environment, folder.join(".venv")).expect("a link in a new folder");
    fs::copy(
        place::repository().join(format!("tests/clients/{installed}.txt")),
        folder.join("requirements.txt"),
    )
    .expect("the requirements");
    fs::write(
        folder.join("app.py"),
        include_str!("../../fixtures/author/models.py"),
    )
    .expect("the source is written");
    fs::remove_dir_all(folder.join("tests")).expect("the cases of the template");
    folder
}

#[test]
fn a_model_is_the_schema_of_the_dataclass_and_its_own_rules_refuse() {
    let desk = Desk::new("models1");
    begin(&desk, "plugin-models1");
    desk.succeed("models", &["plugin", "build"]);
    let definitions = desk.json("models", &["plugin", "schema"]);
    let order = json!({
        "type": "object",
        "properties": {
            "item": { "type": "string", "minLength": 1, "description": "What is ordered." },
            "count": { "type": "integer", "minimum": 1, "maximum": 9, "default": 1, "description": "How many of it." },
        },
        "required": ["item"],
    });
    let mut described = order.clone();
    described["description"] = "What is wanted.".into();
    for tool in definitions.as_array().expect("two tools") {
        assert_eq!(
            tool["inputSchema"]["properties"]["order"], described,
            "{tool}"
        );
        assert_eq!(tool["outputSchema"], order, "{tool}");
    }
    let checked = desk.json("models", &["plugin", "check", "--json", "--once"]);
    assert_eq!(checked["ok"], true, "{checked}");

    let gateway = desk.serve("models");
    let url = gateway.url();
    let call = |tool: &str, order: &str| {
        desk.run("models", &["call", "--url", &url, tool, "--order", order])
    };
    let refused = |tool: &str, order: &str| {
        let (code, out, err) = desk.run(
            "models",
            &["call", "--json", "--url", &url, tool, "--order", order],
        );
        assert_eq!(code, 1, "{tool}: {out}\n{err}");
        serde_json::from_str::<Value>(&out).expect("a result")["structuredContent"].take()
    };
    for tool in ["place", "place_plain"] {
        let (code, out, err) = call(tool, r#"{"item": "chair"}"#);
        assert_eq!(
            (code, out.as_str()),
            (0, r#"{"item":"chair","count":2}"#),
            "{tool}: {err}"
        );
        let wrong = r#"{"item": "", "count": "many"}"#;
        assert_eq!(refused(tool, wrong)["code"], "invalid_arguments", "{tool}");
        let (code, out, err) = call(tool, wrong);
        assert!(code == 1 && out.is_empty(), "{tool}: {out}\n{err}");
        assert!(
            err.contains("/order/item: ") && err.contains("/order/count: "),
            "{tool}: {err}"
        );
    }
    // The model refuses what no schema can express, with its own message.
    let answer = refused("place", r#"{"item": "lamp"}"#);
    assert_eq!(
        (&answer["code"], &answer["field"]),
        (&"invalid_arguments".into(), &"order".into()),
        "{answer}"
    );
    let (_, _, err) = call("place", r#"{"item": "lamp"}"#);
    assert!(
        err.contains("`order` is wrong: item: lamps are sold out."),
        "{err}"
    );
}

#[test]
fn a_package_that_is_compiled_is_refused_with_what_to_write() {
    let desk = Desk::new("models2");
    let folder = begin(&desk, "plugin-models2");
    let (code, _, err) = desk.run("models", &["plugin", "build"]);
    assert_eq!(code, 1, "{err}");
    let answer = err.rsplit("weir: ").next().unwrap_or_default();
    for words in [
        "`pydantic_core` has parts that are compiled",
        "a dataclass",
        "`pydantic<2` in requirements.txt",
    ] {
        assert!(answer.contains(words), "{words}: {answer}");
    }
    assert!(!folder.join("plugins/models.wasm").exists());

    fs::write(folder.join("app.py"), "import nothing_of_the_kind\n")
        .expect("the source is written");
    let (code, _, err) = desk.run("models", &["plugin", "build"]);
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("`nothing_of_the_kind` is not in .venv: name its package in requirements.txt"),
        "{err}"
    );
}
