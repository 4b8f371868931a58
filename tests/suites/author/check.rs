//! `weir plugin check` fails where an agent would.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use weir_tests::{Modern, gateway::read_output, place};

use super::Desk;
use crate::sample;

/// A check reports what is wrong with the build, and where.
#[test]
fn a_check_fails_where_an_agent_would() {
    let desk = Desk::new("flawed");
    let folder = desk.begin("flawed", "js", "tools");
    fs::write(
        folder.join("plugin.js"),
        r#"
import { integer, plugin, record, sql, text, tool } from "./sdk/weir.js";
const wrong = tool({ name: "count_things", description: "Counts all things and answers their number.", returns: record({ count: integer() }),
  run: () => ({ count: "many" }) });
const lost = tool({ name: "greet_all", description: "Greets whoever is there, by a name.", readOnly: true, run: () => "Hello" });
const spare = tool({ name: "move_all", description: "Moves all things and says how many.", run: () => 2 });
const crash = tool({ name: "crash_always", run: () => null.x });
const look = tool({ name: "look_up", description: "Looks up a thing and answers nothing at all.", readOnly: true, requests: ["sql"],
  parameters: { id: integer() }, run: ({ id }) => { sql.execute("db", "DELETE FROM things WHERE id = ?", [id]); } });
export const { about, tools } = plugin({ name: "flawed", version: "0.1.0", tools: [wrong, lost, spare, crash, look] });
"#,
    )
    .expect("the source is written");
    let config = fs::read_to_string(folder.join("weir.toml")).expect("a configuration");
    let database = "[connections.db]\nkind = \"sqlite\"\npath = \"things.sqlite\"\nwrite = true\n[plugins.flawed.grants]\ndb = \"write\"\n";
    fs::write(folder.join("weir.toml"), format!("{config}\n{database}"))
        .expect("the configuration is written");
    let things = rusqlite::Connection::open(folder.join("things.sqlite")).expect("a database");
    things
        .execute_batch("CREATE TABLE things (id INTEGER); INSERT INTO things VALUES (0), (1)")
        .expect("two things");

    let (code, out, err) = desk.run("flawed", &["plugin", "check", "--once"]);
    assert_eq!(code, 1, "{out}\n{err}");
    for expected in [
        "fail  outputs conform: count_things",
        "fail  answers over HTTP: greet_all",
        "warn  documented: crash_always: the tool has no description",
        "warn  documented: look_up: the parameter `id` has no description",
        "fail  reads only: look_up",
    ] {
        assert!(out.contains(expected), "{expected}\n{out}");
    }
    for expected in [
        "The tool failed: TypeError: `greet_all` returned a value and declares none: write `returns: text()`",
        "The value is left out of the answer: `move_all` returned a value and declares none: write `returns: integer()`",
    ] {
        assert!(err.contains(expected), "{expected}\n{err}");
    }
    assert!(
        !out.contains("HTTP: move_all"),
        "it may have written, so it has not failed: {out}"
    );
    let count = things.query_row("SELECT count(*) FROM things", [], |row| {
        row.get::<_, i64>(0)
    });
    assert_eq!(count.expect("a count"), 2, "nothing is changed by a check");
}

/// An author of JavaScript reads where a fault is: when the plugin is built, and in the log of a call. A check after a build that
/// failed does not take the build before it for the source.
#[test]
fn a_fault_in_javascript_has_its_file_and_line() {
    const HEAD: &str = "import { plugin, text, tool } from \"./sdk/weir.js\";\nimport { greeting } from \"./words.js\";\n\n";
    const TOOL: &str = "/** A comment\n * of lines. */\nconst greet = tool({ name: \"greet\", description: \"Greets the people who are named.\", run() {\n\n    throw new Error(greeting());\n} });\n";
    const EXPORT: &str = "export const { about, tools } = plugin({ name: \"lines\", version: \"0.1.0\", tools: [greet] });\n";
    let desk = Desk::new("lines");
    let folder = desk.begin("lines", "js", "tools");
    let write = |plugin: &str, words: &str| {
        fs::write(folder.join("plugin.js"), plugin).expect("the source is written");
        fs::write(folder.join("words.js"), words).expect("the source is written");
    };
    let words = "export const greeting = () => \"hello\";\n";
    write(&format!("{HEAD}{TOOL}{EXPORT}"), words);
    desk.succeed("lines", &["plugin", "build"]);
    let (code, _, err) = desk.run("lines", &["call", "greet"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("(/plugin.js:8:"), "{err}");
    for (plugin, words, expected) in [
        (
            format!("{HEAD}{TOOL}const x = ;\n{EXPORT}"),
            words,
            "/plugin.js:10:11",
        ),
        (
            format!("{HEAD}{TOOL}{EXPORT}"),
            "\n\nexport const greeting = = 1;\n",
            "/words.js:3:",
        ),
        (
            format!("{HEAD}{TOOL}{EXPORT}nothing.here();\n"),
            words,
            "/plugin.js:11:1",
        ),
        (
            format!("{HEAD}{TOOL}"),
            words,
            "plugin.js does not export `about`",
        ),
        (
            format!("{HEAD}{TOOL}{}", EXPORT.replace("[greet]", "greet")),
            words,
            "`tools` is a list: write `tools: [deploy]`",
        ),
        (
            format!("{HEAD}{TOOL}{}", EXPORT.replace("[greet]", "[greet, {}]")),
            words,
            "`tools[1]` is not a tool",
        ),
        (
            format!("{HEAD}{TOOL}{}", EXPORT.replace("version", "versions")),
            words,
            "a plugin has a name and a version",
        ),
        (
            format!(
                "{HEAD}{TOOL}{}",
                EXPORT.replace("tools }", "tools: tool_s }")
            ),
            words,
            "does not export `tools`",
        ),
        (
            format!("{HEAD}{TOOL}{EXPORT}")
                .replace("about, tools", "about")
                .replace(
                    "tools: [greet] });",
                    "tools: [greet] });\nexport const tools = {};",
                ),
            words,
            "has no function `configure`, `definitions`, `call`",
        ),
    ] {
        write(&plugin, words);
        let (code, _, err) = desk.run("lines", &["plugin", "build"]);
        assert_eq!(code, 1, "{expected}: {err}");
        assert!(err.contains(expected), "{expected}: {err}");
        for foreign in ["(/sdk/weir.js:", "(/.weir/", "Failed to evaluate"] {
            assert!(!err.contains(foreign), "{expected}: {err}");
        }
        let (code, out, err) = desk.run("lines", &["plugin", "check", "--once"]);
        assert_eq!(code, 1, "{out}\n{err}");
        assert!(
            out.contains("fail  build: the last `weir plugin build` failed"),
            "{out}"
        );
    }
    write(&format!("{HEAD}{TOOL}{EXPORT}"), words);
    desk.succeed("lines", &["plugin", "build"]);
    let (_, out, _) = desk.run("lines", &["plugin", "check", "--once"]);
    assert!(!out.contains("build:"), "{out}");
}

/// An import that cannot be resolved is reported with what to do: a package only in CommonJS, one that is not
/// installed, a part of Node.
#[test]
fn an_import_in_javascript_that_cannot_be_made_says_what_to_do() {
    let desk = Desk::new("importing");
    let folder = desk.begin("importing", "js", "tools");
    let modules = folder.join("node_modules");
    let shared = fs::read_link(&modules).expect("the link to what is installed");
    fs::remove_file(&modules).expect("the link to what is installed");
    fs::create_dir_all(modules.join("old")).expect("a package");
    for entry in fs::read_dir(shared).expect("what is installed") {
        let entry = entry.expect("a package");
        symlink(entry.path(), modules.join(entry.file_name())).expect("a link in a new folder");
    }
    for (file, text) in [
        (
            "node_modules/old/package.json",
            r#"{"name": "old", "main": "index.js"}"#,
        ),
        (
            "node_modules/old/index.js",
            "exports.greet = () => \"hello\";\n",
        ),
        ("older.js", "module.exports = { greet: () => \"hello\" };\n"),
        ("words.js", "export const words = [];\n"),
        ("words.json", "{\"a\": 1}\n"),
    ] {
        fs::write(folder.join(file), text).expect("a file is written");
    }
    let source = fs::read_to_string(folder.join("plugin.js")).expect("a source");
    let bundle = "npx esbuild node_modules/old/index.js --bundle --format=esm --outfile=old.js\n\n\
         and write `import it from \"./old.js\"`";
    let own = "older.js is an ES module: write `import` in place of `require`";
    for (import, expected) in [
        ("import { greet } from \"old\";", bundle),
        ("import old from \"old\";", bundle),
        ("import \"old\";", bundle),
        ("import older from \"./older.js\";", own),
        (
            "const old = require(\"old\");",
            "plugin.js is an ES module: write `import` in place of `require`",
        ),
        (
            "import none from \"no-such-package/inner.js\";",
            "plugin.js imports `no-such-package/inner.js`, which is not in node_modules: run `npm install no-such-package`",
        ),
        (
            "import { readFileSync } from \"node:fs\";",
            "plugin.js imports `node:fs`, which is a part of Node",
        ),
        (
            "import { none } from \"./none.js\";",
            "plugin.js imports `./none.js`, and there is no such file",
        ),
        (
            "import { none } from \"./words.js\";",
            "words.js does not export `none`",
        ),
        (
            "import words from \"./words.json\";",
            "words.json is not JavaScript",
        ),
        (
            "await new Promise(() => undefined);",
            "an `await` outside of functions waits for something that never comes",
        ),
    ] {
        fs::write(folder.join("plugin.js"), format!("{import}\n{source}"))
            .expect("the source is written");
        let (code, _, err) = desk.run("importing", &["plugin", "build"]);
        assert_eq!(code, 1, "{import}: {err}");
        assert!(err.contains(expected), "{import}: {err}");
        assert!(!err.contains("filesystem module"), "{import}: {err}");
    }
    fs::remove_file(folder.join("plugin.js")).expect("the source");
    let (code, _, err) = desk.run("importing", &["plugin", "build"]);
    assert!(
        code == 1 && err.contains("plugin.js does not exist"),
        "{err}"
    );
}

/// Authors write their own lists of packages, and leave out what the list of a new plugin has.
#[test]
fn a_build_names_what_makes_the_component_where_it_is_missing() {
    let desk = Desk::new("unmade");
    let folder = desk.begin("unmade-js", "js", "tools");
    fs::write(folder.join("tsconfig.json"), "{}\n").expect("a file is written");
    let (code, _, err) = desk.run("unmade-js", &["plugin", "build"]);
    assert!(
        code == 1 && err.contains("run `npm install --save-dev typescript`, and build again"),
        "{err}"
    );

    fs::remove_file(folder.join("node_modules")).expect("the link to what is installed");
    fs::write(folder.join("package.json"), "{\"type\": \"module\"}\n").expect("a package");
    let (code, _, err) = desk.run("unmade-js", &["plugin", "build"]);
    assert!(
        code == 1 && err.contains("run `npm install --save-dev componentize-qjs@"),
        "{err}"
    );

    let folder = desk.begin("unmade-python", "python", "tools");
    fs::remove_file(folder.join(".venv")).expect("the link to what is installed");
    fs::write(folder.join("requirements.txt"), "").expect("the requirements");
    let (code, _, err) = desk.run("unmade-python", &["plugin", "build"]);
    assert!(
        code == 1 && err.contains("requirements.txt does not name `componentize-py`"),
        "{err}"
    );
    assert!(err.contains("\n  componentize-py=="), "{err}");
    assert!(!err.contains("apt install"), "{err}");
}

/// The linker reports an undefined name once for each use, and in its own words.
#[test]
fn what_a_plugin_in_c_does_not_define_is_named() {
    let desk = Desk::new("undefined");
    for (kind, from, to, expected) in [
        (
            "tools",
            "weir_this_plugin =",
            "other_plugin =",
            "defines `weir_this_plugin`: write `const weir_plugin weir_this_plugin",
        ),
        (
            "collection",
            "bool exports_weir_plugin_collections_write(",
            "bool other_write(",
            "defines `exports_weir_plugin_collections_write`: the interface in sdk/adapter.h",
        ),
    ] {
        let folder = desk.begin(kind, "c", kind);
        let source = fs::read_to_string(folder.join("plugin.c")).expect("the template's");
        assert!(source.contains(from), "{source}");
        fs::write(folder.join("plugin.c"), source.replacen(from, to, 1))
            .expect("the source is written");
        let (code, _, err) = desk.run(kind, &["plugin", "build"]);
        assert_eq!(code, 1, "{err}");
        assert!(
            err.contains(expected) && !err.contains("undefined symbol"),
            "{err}"
        );
    }
}

/// Plugins in Rust share what they have in common, unless their author sets the build folder.
#[test]
fn plugins_in_rust_are_built_in_one_folder() {
    // A cargo that compiles nothing: only its arguments matter here.
    const CARGO: &str = "#!/bin/sh
target=${CARGO_TARGET_DIR:-$PWD/target}
if [ \"$1\" = metadata ]; then
  name=$(basename \"$PWD\")
  printf '{\"packages\":[{\"name\":\"%s\",\"manifest_path\":\"%s/Cargo.toml\",\"targets\":[{\"name\":\"%s\",\"crate_types\":[\"cdylib\"]}]}],\"target_directory\":\"%s\"}' \"$name\" \"$PWD\" \"$name\" \"$target\"
  exit
fi
mkdir -p \"$target/wasm32-unknown-unknown/release\"
echo built > \"$target/wasm32-unknown-unknown/release/$(basename \"$PWD\").wasm\"
";
    let desk = Desk::new("shared");
    let programs = desk.path().join("programs");
    fs::create_dir(&programs).expect("a folder");
    fs::write(programs.join("cargo"), CARGO).expect("a program");
    let runs = fs::Permissions::from_mode(0o755);
    fs::set_permissions(programs.join("cargo"), runs).expect("its own");
    let mut path = programs.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let cache = desk.path().join("cache");
    let build = |name: &str, target: Option<&str>| {
        let (within, last) = name.rsplit_once('/').unwrap_or(("", name));
        fs::create_dir_all(desk.path().join(within)).expect("a folder");
        desk.succeed(within, &["plugin", "new", last]);
        let mut build = desk.weir(name, &["plugin", "build"]);
        build.env("PATH", &path).env("XDG_CACHE_HOME", &cache);
        match target {
            Some(target) => build.env("CARGO_TARGET_DIR", target),
            None => build.env_remove("CARGO_TARGET_DIR"),
        };
        let (code, out, err) = read_output(build.output().expect("weir starts"));
        assert_eq!(code, 0, "{out}\n{err}");
        let component = desk.path().join(name).join(format!("plugins/{last}.wasm"));
        assert_eq!(
            fs::read_to_string(component).expect("a component"),
            "built\n"
        );
        err
    };
    let shared = cache.join("weir/rust-plugins");
    let command = format!("$ CARGO_TARGET_DIR={} cargo ", shared.display());
    // The last plugin has the name of the first: none of the first one's output is taken for its own.
    for (name, is_cleaned) in [("one", false), ("two", false), ("more/one", true)] {
        let err = build(name, None);
        assert!(err.contains(&format!("{command}build")), "{err}");
        let cleans = format!(
            "{command}clean --quiet --release --target wasm32-unknown-unknown --package one"
        );
        assert_eq!(err.contains(&cleans), is_cleaned, "{err}");
        assert!(!desk.path().join(name).join("target").exists());
    }
    let own = desk.path().join("own").display().to_string();
    let err = build("three", Some(&own));
    assert!(
        err.contains("$ cargo build")
            && !shared
                .join("wasm32-unknown-unknown/release/three.wasm")
                .exists(),
        "{err}"
    );
}

/// Schemas and defaults are compared with each other before any call.
#[test]
fn schemas_that_do_not_compile_and_defaults_that_do_not_fit_are_said_with_their_place() {
    let desk = Desk::new("ill");
    let folder = desk.begin("ill", "js", "tools");
    for (parameter, expected) in [
        (
            "text({ pattern: \"(\", description: \"A pattern that is none.\" })",
            "fail  schemas compile",
        ),
        (
            "text({ minLength: 3, default: \"ab\", description: \"Too short by itself.\" })",
            "fail  defaults fit",
        ),
        (
            "integer({ maximum: 3, default: 4, description: \"Too large by itself.\" })",
            "fail  defaults fit",
        ),
    ] {
        let source = format!(
            "import {{ integer, plugin, text, tool }} from \"./sdk/weir.js\";\n\
             const ill = tool({{ name: \"ill\", description: \"Does nothing, and does it for ever.\",\n\
             parameters: {{ value: {parameter}, other: text({{ default: \"\", description: \"Fits.\" }}), more: integer({{ default: 1, description: \"Fits.\" }}) }}, run: () => undefined }});\n\
             export const {{ about, tools }} = plugin({{ name: \"ill\", version: \"0.1.0\", tools: [ill] }});\n"
        );
        fs::write(folder.join("plugin.js"), source).expect("the source is written");
        desk.succeed("ill", &["plugin", "build"]);
        let (code, out, err) = desk.run("ill", &["plugin", "check", "--once"]);
        assert_eq!(code, 1, "{parameter}: {out}\n{err}");
        let line = out
            .lines()
            .find(|line| line.starts_with(expected))
            .unwrap_or_else(|| panic!("{expected}: {out}"));
        assert!(line.contains("value"), "it says where: {line}");
        assert_eq!(out.matches("fail  ").count(), 1, "{out}");
        assert!(
            !out.contains("answers over"),
            "what is ill is not tried: {out}"
        );
    }
}

/// A schema of answers that takes exponentially many steps is refused before anything runs: by the check of its author, and by
/// a gateway, which serves the others.
#[tokio::test]
async fn an_output_schema_that_explodes_is_refused() {
    let desk = Desk::new("chained");
    let folder = desk.begin("chained", "js", "tools");
    let source = r#"
import { plugin, record, text, tool } from "./sdk/weir.js";
const chain = tool({ name: "read_chain", description: "Reads a chain and answers its end.", readOnly: true,
  returns: record({ a: text() }), run: () => ({ a: "x" }) });
const next = (level) => ({ $ref: `#/$defs/d${level}` });
const levels = Array.from({ length: 30 }, (_, level) => [`d${level}`, { allOf: [next(level + 1), next(level + 1)] }]);
chain.definition.outputSchema = { type: "object", properties: { a: next(0) },
  $defs: { ...Object.fromEntries(levels), d30: { type: "string" } } };
export const { about, tools } = plugin({ name: "chained", version: "0.1.0", tools: [chain] });
"#;
    fs::write(folder.join("plugin.js"), source).expect("the source is written");
    desk.succeed("chained", &["plugin", "build"]);
    let bound = "at most 200000 are accepted";
    let (code, out, err) = desk.run("chained", &["plugin", "check", "--once"]);
    assert_eq!(code, 1, "{out}\n{err}");
    let line = out
        .lines()
        .find(|line| line.starts_with("fail  schemas compile"))
        .unwrap_or_else(|| panic!("{out}\n{err}"));
    assert!(
        line.contains("/0/outputSchema") && line.contains(bound),
        "{line}"
    );
    assert!(!out.contains("answers over"), "it is not tried: {out}");

    let house = sample::house()
        .own_plugins(&["sheet"])
        .config("[plugins.chained]\nmemory_max_mb = 128");
    let component = fs::read(folder.join("plugins/chained.wasm")).expect("it is built");
    house.write("plugins/chained.wasm", component);
    let gateway = house.serve();
    gateway.wait_for_log(bound);
    let (tools, _) = Modern::new(gateway.url()).list().await;
    assert_eq!(tools.len(), 3, "{tools:?}");
}

/// A file that is not a component, or not one of this interface, fails at once, for programs too.
#[test]
fn what_does_not_load_fails_and_nothing_else_is_tried() {
    let desk = Desk::new("broken");
    desk.begin("broken", "js", "tools");
    let guest = fs::read(place::guest("tools-js")).expect("a guest can be read");
    for (name, bytes, why) in [
        ("text.wasm", b"not a component".to_vec(), ""),
        ("cut.wasm", guest[..guest.len() / 2].to_vec(), ""),
        (
            "moody.wasm",
            fs::read(place::guest("tools-js-moody")).expect("a guest can be read"),
            "differ from one instance",
        ),
        (
            "library.wasm",
            fs::read(place::native("tools-rust")).expect("a library can be read"),
            "native code",
        ),
    ] {
        fs::write(desk.path().join("broken").join(name), bytes).expect("a file is written");
        let (code, out, err) = desk.run("broken", &["plugin", "check", name, "--json"]);
        assert_eq!(code, 1, "{name}: {out}\n{err}");
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let checks = report["checks"].as_array().expect("checks");
        assert!(
            report["ok"] == false && checks.len() == 1,
            "{name}: {report}"
        );
        assert_eq!(
            (&checks[0]["check"], &checks[0]["level"]),
            (&"loads".into(), &"fail".into()),
            "{name}: {report}"
        );
        assert!(checks[0].to_string().contains(why), "{name}: {report}");
    }
}

/// The check answers no question and follows no task: a tool that needs either is not at fault.
#[test]
fn a_tool_that_asks_first_or_runs_only_as_a_task_passes() {
    let desk = Desk::new("asking");
    let folder = desk.begin("asking", "js", "tools");
    fs::write(
        folder.join("plugin.js"),
        r#"
import { ask, boolean, form, integer, plugin, tool } from "./sdk/weir.js";
const sure = tool({ name: "remove_all", description: "Removes all things, once its caller is sure.", returns: integer(),
  run: () => ask({ sure: form("Sure?", { sure: boolean() }) }) });
const url = tool({ name: "sign_in", description: "Sends its caller to a page to sign in.", returns: integer(),
  run: () => ask({ page: { method: "elicitation/create",
    params: { mode: "url", message: "Sign in.", url: "https://example.org/", elicitationId: "1" } } }) });
const long = tool({ name: "move_all", description: "Moves all things, which takes long.", task: "required",
  returns: integer(), run: () => 1 });
export const { about, tools } = plugin({ name: "asking", version: "0.1.0", tools: [sure, url, long] });
"#,
    )
    .expect("the source is written");
    let (code, out, err) = desk.run("asking", &["plugin", "check", "--once"]);
    assert_eq!(code, 0, "{out}\n{err}");
    for expected in [
        "ok    answers over HTTP",
        "ok    answers over stdio",
        "ok    outputs conform",
    ] {
        assert!(out.contains(expected), "{expected}\n{out}");
    }
}
