//! Tests the definitions that signatures become: a function here, its definition in `signatures/`.
//!
//! `WEIR_BLESS=1 cargo test` writes the files anew; read the diff.

#[path = "signatures/parameters.rs"]
mod parameters;
#[path = "signatures/returns.rs"]
mod returns;
#[path = "signatures/seed.rs"]
mod seed;

use std::{env, fs, path::Path};

use weir_plugin_sdk::plugin::Plugin;
use weir_plugin_sdk::serde_json::{self, Value, json};
use weir_plugin_sdk::tools::{self, Invocation};

#[test]
fn parameters_say_their_types() {
    check::<parameters::WeirPlugin>("parameters", 60);
}

#[test]
fn return_types_say_what_is_answered() {
    check::<returns::WeirPlugin>("returns", 20);
}

/// The page that this feature began with (Milo's "Schema Contract"), in Rust.
#[test]
fn the_first_example_has_the_schema_of_its_page() {
    let tools: Value =
        serde_json::from_str(&tools::definitions::<seed::WeirPlugin>().unwrap()).unwrap();
    let schema = json!({
        "type": "object",
        "properties": {
            "environment": { "type": "string", "minLength": 1, "description": "Target environment" },
            "service": { "type": "string", "minLength": 1, "description": "Service name." },
            "version": { "type": "string", "description": "Version or image tag.", "default": "latest" },
        },
        "required": ["environment", "service"],
    });
    assert_eq!(tools[0]["inputSchema"], schema);
    assert_eq!(tools[0]["description"], "Deploy a service.");
    let output = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    assert_eq!(tools[0]["outputSchema"], output);

    let arguments = r#"{"environment":"prod","service":"web"}"#.to_owned();
    let invocation = Invocation {
        tool: "deploy".into(),
        arguments,
        context: "{}".into(),
        ..Invocation::default()
    };
    let reply = tools::call::<seed::WeirPlugin>(invocation).unwrap();
    assert_eq!(
        reply.value.unwrap(),
        r#"{"environment":"prod","service":"web","version":"latest"}"#
    );
    assert_eq!(
        weir_plugin_sdk::testing::log::lines()[0].message,
        "Deploying web"
    );
}

/// Every definition of a plugin, one a line's block, against the file of that name.
fn check<P: Plugin>(name: &str, least: usize) {
    let definitions: Vec<Value> =
        serde_json::from_str(&tools::definitions::<P>().unwrap()).unwrap();
    assert!(
        definitions.len() >= least,
        "{name}: {} signatures, not {least}",
        definitions.len()
    );
    let written: Vec<String> = definitions.iter().map(Value::to_string).collect();
    let written = format!("[\n{}\n]\n", written.join(",\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/signatures")
        .join(name)
        .with_extension("json");
    if env::var_os("WEIR_BLESS").is_some() {
        fs::write(&path, &written).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    for (line, (golden, written)) in golden.lines().zip(written.lines()).enumerate() {
        assert_eq!(golden, written, "{}:{}", path.display(), line + 1);
    }
    assert_eq!(
        golden.len(),
        written.len(),
        "{} is out of date: WEIR_BLESS=1 writes it",
        path.display()
    );
}
