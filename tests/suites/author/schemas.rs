//! Tests the schemas that functions in Python, JavaScript, TypeScript and C become.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use serde_json::{Value, json};
use weir_tests::place;

use super::Desk;

/// Each kind of type hint is tried natively: its schema, what it reads, and what it refuses; pydantic models where
/// installed.
#[test]
fn type_hints_are_the_schemas_of_the_table() {
    python("python-mcp1", "hints.py", "hints are right");
}

/// The same for JavaScript: the types of its SDK, their options, and what it refuses.
#[test]
fn types_of_javascript_are_the_schemas_of_the_table() {
    javascript("types.mjs", "types are right");
}

/// The same of C, whose table is compiled.
#[test]
fn parameters_in_c_are_the_schemas_of_the_table() {
    let desk = Desk::new("types");
    let folder = desk.begin("types", "c", "tools");
    fs::write(
        folder.join("plugin.c"),
        include_str!("../../fixtures/author/types.c"),
    )
    .expect("the source is written");
    desk.succeed("types", &["plugin", "build"]);
    let rules = json!({
        "name": "rules",
        "title": "Rules of a tool.",
        "description": "Told at length.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "bounded": {
                    "type": "string", "minLength": 1, "maxLength": 9, "description": "At most \"nine\"\n\\ letters \u{e6}."
                },
                "integer": {"type": "integer", "minimum": 1, "maximum": 9},
                "number": {"type": "number", "minimum": -0.5, "default": 0.25},
                "boolean": {"type": "boolean", "default": false},
                "optional": {"type": "string", "default": null},
                "optional_with_default": {"type": "string", "default": "x"},
                "list": {"type": "array", "items": {"type": "string"}, "default": []},
                "anything": {"description": "Whatever it is."},
                "spaced": {"type": "string", "description": "Written with spaces."},
            },
            "required": ["text", "bounded", "integer", "anything", "spaced"],
        },
        "outputSchema": {"type": "integer"},
        "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false},
        "execution": {"taskSupport": "required"},
        "cli": {"parameters": {
            "boolean": {"aliases": ["-b"]}, "list": {"metavar": "WORD"}, "anything": {"positional": true},
        }},
    });
    let bare = json!({"name": "bare", "inputSchema": {"type": "object", "properties": {}}});
    let definitions = desk.json("types", &["plugin", "schema"]);
    assert_eq!((&definitions[0], &definitions[2]), (&rules, &bare));
    // A paragraph that is too long for a title is only a description, and its first sentence is the title.
    let long = "\u{e6}".repeat(200);
    for (at, title, description) in [
        (3_usize, json!(long), long.clone()),
        (4, json!("Short."), format!("Short. {long}\n\nMore.")),
        (5, json!(null), format!("{long}. Short.")),
    ] {
        let definition = &definitions[at];
        assert_eq!(
            (&definition["title"], &definition["description"]),
            (&title, &json!(description))
        );
    }

    // Each number is the shortest that is read back as the same.
    let answer = |arguments: &str| desk.run("types", &["call", "echo", "--arguments", arguments]);
    let numbers = r#"{"numbers":[0.1,-2.5,3,0.30000000000000004,1.5e-300,5e-324,9007199254740991,123456789.12345679,-0.0]}"#;
    let (code, out, err) = answer(numbers);
    assert_eq!(code, 0, "{out}\n{err}");
    let expected = r#""numbers":[0.1,-2.5,3,0.30000000000000004,1.5e-300,5e-324,9007199254740991,123456789.12345679,0]"#;
    assert!(
        out.contains(expected) && out.contains(r#""none":[null]"#),
        "{out}"
    );

    // A text of C ends at a NUL, so a NUL is refused; an escaped backslash before the same digits is not a NUL.
    let (code, out, err) = answer(r#"{"text":"a\\u0000b"}"#);
    assert!(
        code == 0 && out.contains(r#""text":"a\\u0000b""#),
        "{out}\n{err}"
    );
    let (code, out, err) = answer(r#"{"text":"a\u0000b"}"#);
    assert!(
        code == 1 && out.is_empty() && err.contains("`text` holds the character U+0000"),
        "{out}\n{err}"
    );
}

/// Authors may write TypeScript: the compiler runs before the component is made, and checks the argument types of
/// each function.
#[test]
fn typescript_is_compiled_against_the_types_of_the_sdk() {
    let desk = Desk::new("typed");
    let folder = desk.begin("typed", "js", "tools");
    // The tests' TypeScript lies next to their JavaScript.
    let [shared, compiler] = [
        "clients/tiny-js/node_modules",
        "clients/openapi/node_modules/typescript",
    ]
    .map(|path| place::present(place::cache().join(path), "cargo xtask test"));
    fs::remove_file(folder.join("node_modules")).expect("the link to what is installed");
    fs::create_dir(folder.join("node_modules")).expect("a folder in a new folder");
    for entry in fs::read_dir(shared).expect("what is installed") {
        let entry = entry.expect("a package");
        symlink(
            entry.path(),
            folder.join("node_modules").join(entry.file_name()),
        )
        .expect("a link in a new folder");
    }
    symlink(compiler, folder.join("node_modules/typescript")).expect("a link in a new folder");

    // The template and the tools of all languages, as editors check them.
    let options = r#""strict": true, "target": "es2022", "module": "esnext", "moduleResolution": "bundler", "types": []"#;
    let configure = |more: &str, file: &str| {
        let config =
            format!(r#"{{"compilerOptions": {{{options}, {more}}}, "files": ["{file}"]}}"#);
        fs::write(folder.join("tsconfig.json"), config).expect("a configuration is written");
    };
    configure(
        r#""allowJs": true, "checkJs": true, "noEmit": true"#,
        "plugin.js",
    );
    let (code, out, err) = desk.run("typed", &["plugin", "build"]);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(
        err.contains("$ node node_modules/typescript/bin/tsc\n"),
        "{err}"
    );
    let of_the_template = desk.json("typed", &["plugin", "schema"]);
    fs::write(
        folder.join("plugin.js"),
        include_str!("../../fixtures/author/plugin.js"),
    )
    .expect("the source is written");
    desk.succeed("typed", &["plugin", "build"]);

    fs::remove_file(folder.join("plugin.js")).expect("the source in JavaScript");
    let source = include_str!("../../fixtures/author/types.ts");
    fs::write(folder.join("plugin.ts"), source).expect("the source is written");
    configure(r#""noEmit": false"#, "plugin.ts");
    desk.succeed("typed", &["plugin", "build"]);
    assert_eq!(desk.json("typed", &["plugin", "schema"]), of_the_template);
    let call = [
        "call",
        "deploy",
        "--environment",
        "prod",
        "--service",
        "web",
    ];
    assert_eq!(
        desk.succeed("typed", &call),
        r#"{"environment":"prod","service":"web","version":"latest"}"#
    );

    let component = folder.join("plugins/typed.wasm");
    let before = fs::read(&component).expect("a component");
    let wrong = source.replacen("const words: string[]", "const words: number[]", 1);
    fs::write(folder.join("plugin.ts"), wrong).expect("the source is written");
    let (code, out, err) = desk.run("typed", &["plugin", "build"]);
    assert_eq!(code, 1, "{out}\n{err}");
    assert!(
        err.contains("error TS2322: Type 'string' is not assignable to type 'number'"),
        "{err}"
    );
    assert!(
        fs::read(&component).expect("a component") == before,
        "nothing is put in its place"
    );
}

/// Arguments and results of functions in Python have the type that they name, and meet its schema.
#[test]
fn values_in_python_are_those_of_their_types() {
    python("plugin-models1", "values.py", "values are right");
}

#[test]
fn docstrings_in_python_are_read_in_every_style() {
    python("plugin-models1", "docstrings.py", "docstrings are right");
}

/// The first paragraph of many docstrings is longer than a title may be. The build is served, and nothing that a docstring
/// says about parameters is lost.
#[test]
fn docstrings_as_servers_have_them_are_what_agents_read() {
    let desk = Desk::new("documented");
    let folder = desk.begin("documented", "python", "tools");
    fs::write(
        folder.join("app.py"),
        include_str!("../../fixtures/author/documented.py"),
    )
    .expect("the source is written");
    let definitions = built_and_checked(&desk, "documented");
    let [search, resize, delete, add] = &definitions.as_array().expect("tools")[..] else {
        panic!("four tools: {definitions}");
    };
    assert!(is_long_description(search), "{search}");
    let described = |tool: &Value, parameter: &str| {
        let properties = &tool["inputSchema"]["properties"];
        properties[parameter]["description"].clone()
    };
    for (tool, parameter, expected) in [
        (
            resize,
            "mode",
            "One of the two:\nfast: quick results\ndeep: exhaustive scan",
        ),
        (resize, "size", "The wanted size."),
        (resize, "x", "The x."),
        (delete, "id", "The project's id."),
        (add, "a", "The two numbers."),
        (add, "b", "The two numbers."),
    ] {
        assert_eq!(described(tool, parameter), expected, "{tool}");
    }
    let rest = "Warning: This cannot be undone.\n\nOnly call it when the user said so twice.";
    assert_eq!(
        (&delete["title"], &delete["description"]),
        (&json!("Delete a project."), &json!(rest))
    );
}

/// The same of a comment in Rust.
#[test]
fn a_long_comment_in_rust_is_what_agents_read() {
    let desk = Desk::new("commented");
    let folder = desk.begin("commented", "rust", "tools");
    let source = format!(
        "//! Tools.\n\nuse weir_plugin_sdk::tool;\n\n/// {LONG}\n#[tool(read_only)]\nfn search_tickets(\n    \
         /// The words.\n    query: String,\n) -> Option<String> {{\n    Some(query)\n}}\n\n\
         weir_plugin_sdk::export!(tools: search_tickets);\n"
    );
    fs::write(folder.join("src/lib.rs"), source).expect("the source is written");
    let definitions = built_and_checked(&desk, "commented");
    assert!(is_long_description(&definitions[0]), "{definitions}");
}

/// A paragraph of one sentence that is too long for a title.
const LONG: &str = "Search the tickets of the support desk by words in their subject or body, newest first, and answer at most \
                    twenty of them with their number, subject, status and the name of the person who opened each one, so that \
                    the user can pick the right one.";

/// Returns `true` if a tool has that paragraph as its description, and no title.
fn is_long_description(tool: &Value) -> bool {
    let description = tool["description"].as_str().unwrap_or_default();
    let words: Vec<&str> = description.split_whitespace().collect();
    tool["title"].is_null() && words.join(" ") == LONG
}

/// Builds a plugin whose check has to find nothing wrong, and returns the definitions of its tools.
fn built_and_checked(desk: &Desk, name: &str) -> Value {
    desk.succeed(name, &["plugin", "build"]);
    let checked = desk.json(name, &["plugin", "check", "--json", "--once"]);
    assert_eq!(checked["ok"], true, "{checked}");
    desk.json(name, &["plugin", "schema"])
}

/// The same of JavaScript.
#[test]
fn values_in_javascript_are_those_of_their_types() {
    javascript("values.mjs", "values are right");
}

/// Runs a script over the SDK of Python, in one of the environments that are kept for tests.
fn python(environment: &str, script: &str, expected: &str) {
    let program = place::cache()
        .join("clients")
        .join(environment)
        .join("bin/python");
    let mut python = Command::new(place::present(program, "cargo xtask test"));
    python.arg(fixture(script)).env(
        "PYTHONPATH",
        place::repository().join("plugin-sdk/python/tools"),
    );
    says(python.env("PYTHONDONTWRITEBYTECODE", "1"), expected);
}

/// Runs a script over the SDK of JavaScript.
fn javascript(script: &str, expected: &str) {
    let program = place::cache().join("clients/node-runtime/bin/node");
    let mut node = Command::new(place::present(program, "cargo xtask test"));
    says(
        node.arg(fixture(script))
            .arg(place::repository().join("plugin-sdk/js/tools/weir.js")),
        expected,
    );
}

fn fixture(script: &str) -> PathBuf {
    place::repository()
        .join("tests/fixtures/author")
        .join(script)
}

fn says(command: &mut Command, expected: &str) {
    let output = command.output().expect("it starts");
    let answer = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{answer}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains(expected),
        "{answer}"
    );
}
