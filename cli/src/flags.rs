//! Command-line flags of one tool, from its input schema. Their text is converted to values here, since a terminal
//! has only text.

mod member;

use std::{collections::BTreeSet, io::Read as _};

use clap::{Arg, ArgAction, Command};
use serde_json::{Map, Value};
use weir_contracts::{schema::without_null, text};

pub(super) use self::member::{put_members, split_members};
use super::terminal::plain as plain_text;

/// The bound on a file of arguments, the same as that of a request over HTTP.
const INPUT_MAX_BYTES: u64 = 4 << 20;

/// Returns the command of one tool: a flag for every argument, and help from the descriptions. `cli` is its author's
/// settings for the command line (`{"parameters": {"environment": {"positional": true, "aliases": ["-e"], "metavar":
/// "ENV"}}}`), or null.
pub(super) fn command(name: &str, description: &str, schema: &Value, cli: &Value) -> Command {
    let required = required(schema);
    let mut command = Command::new(name.to_owned())
        .bin_name(format!("weir call {name}"))
        .about(plain_text(description))
        .no_binary_name(true)
        .disable_version_flag(true)
        .disable_help_flag(true);
    let fields = || {
        schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(field, _)| can_be_flag(field))
    };
    let positional = positional(schema, cli);
    let mut taken: BTreeSet<String> = fields()
        .flat_map(|(name, _)| [name.clone(), dashed(name)])
        .collect();
    let help = Arg::new("help")
        .short('h')
        .action(ArgAction::Help)
        .help("Print help");
    command = command.arg(if taken.contains("help") {
        help
    } else {
        help.long("help")
    });
    taken.extend(["help", "h", "arguments", "input"].map(str::to_owned));
    for (field, property) in fields() {
        let long = dashed(field);
        // A tool may have another argument that is written so.
        let is_free =
            !fields().any(|(other, _)| other != field && (*other == long || dashed(other) == long));
        let stated = &cli["parameters"][field];
        let mut flag = flag(field, property, required.contains(&field.as_str()));
        if let Some(metavar) = stated["metavar"].as_str() {
            flag = flag.value_name(metavar.to_owned());
        }
        let place = positional.iter().position(|name| name == field);
        if let Some(place) = place {
            // Shown where the author declared it; otherwise a convenience in addition to the flag.
            let is_declared = stated["positional"] == true;
            let takes_the_rest =
                text::kind(property) == Some("array") && place + 1 == positional.len();
            let word = Arg::new(by_position(field))
                .index(place + 1)
                .conflicts_with(by_flag(field));
            let word = match takes_the_rest {
                true => word.action(ArgAction::Append).num_args(1..),
                false => word.action(ArgAction::Set),
            };
            let help = flag.get_help().cloned().unwrap_or_default();
            command = command.arg(
                word.help(help)
                    .value_name(long.to_uppercase())
                    .hide(!is_declared),
            );
            flag = flag.hide(is_declared);
        }
        for alias in stated["aliases"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            flag = aliased(flag, alias, &mut taken);
        }
        command = command.arg(match is_free {
            true => flag.long(long).alias(field.clone()),
            false => flag.long(field.clone()),
        });
    }
    for (whole, word, help) in [
        (
            "arguments",
            "JSON",
            "All arguments as one JSON object; flags override them",
        ),
        (
            "input",
            "FILE",
            "A file with all arguments as one JSON object, `-` for stdin; flags override them",
        ),
    ] {
        if schema["properties"].get(whole).is_none() {
            command = command.arg(Arg::new(whole).long(whole).value_name(word).help(help));
        }
    }
    command
}

/// Returns the arguments that the flags state; what the schema refuses is left to the tool to refuse.
pub(super) fn arguments(
    schema: &Value,
    matches: &clap::ArgMatches,
) -> anyhow::Result<Map<String, Value>> {
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut arguments = Map::new();
    let whole = |name: &str| match properties.contains_key(name) {
        true => None,
        false => matches.get_one::<String>(name),
    };
    if let Some(file) = whole("input") {
        arguments.extend(object("--input", &read(file)?)?);
    }
    if let Some(text) = whole("arguments") {
        arguments.extend(object("--arguments", text)?);
    }
    for (field, property) in &properties {
        let stated = |id: &str| matches.try_get_many::<String>(id).ok().flatten();
        let Some(values) = stated(&by_flag(field)).or_else(|| stated(&by_position(field))) else {
            continue;
        };
        let values: Vec<&str> = values.map(String::as_str).collect();
        arguments.insert(field.clone(), value(property, &values));
    }
    Ok(arguments)
}

fn object(flag: &str, text: &str) -> anyhow::Result<Map<String, Value>> {
    match weir_contracts::json::read_wide(text)
        .map_err(|error| anyhow::anyhow!("{flag}: {error}"))?
    {
        Value::Object(whole) => Ok(whole),
        _ => anyhow::bail!("{flag}: must be a JSON object"),
    }
}

fn read(file: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut source: Box<dyn std::io::Read> = match file {
        "-" => Box::new(std::io::stdin()),
        file => Box::new(
            std::fs::File::open(file)
                .map_err(|error| anyhow::anyhow!("--input {file}: {error}"))?,
        ),
    };
    let count = source
        .by_ref()
        .take(INPUT_MAX_BYTES + 1)
        .read_to_string(&mut text);
    let count = count.map_err(|error| anyhow::anyhow!("--input {file}: {error}"))?;
    anyhow::ensure!(
        count as u64 <= INPUT_MAX_BYTES,
        "--input {file}: has more than {INPUT_MAX_BYTES} bytes"
    );
    Ok(text)
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns the arguments that may be given without a flag, in their order: those that the author declares as
/// positional, or else the required ones.
fn positional(schema: &Value, cli: &Value) -> Vec<String> {
    let declared = cli["parameters"].as_object().into_iter().flatten();
    let declared: Vec<&str> = declared
        .filter(|(_, stated)| stated["positional"] == true)
        .map(|(field, _)| field.as_str())
        .collect();
    let chosen = if declared.is_empty() {
        required(schema)
    } else {
        declared
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let fields = properties.map(|(field, _)| field.clone());
    fields
        .filter(|field| can_be_flag(field) && chosen.contains(&field.as_str()))
        .collect()
}

/// Returns whether an argument of this name can be written as a flag. Any other is given by `--arguments` or `--input`.
fn can_be_flag(field: &str) -> bool {
    let is_apart = |char: char| char == '=' || char.is_whitespace() || char.is_control();
    !field.is_empty()
        && !field.starts_with('-')
        && !dashed(field).starts_with('-')
        && !field.contains(is_apart)
}

/// Returns a name as people type it.
fn dashed(field: &str) -> String {
    field.replace('_', "-")
}

/// The id of an argument given by its flag. No other id of a command begins like this, whatever the argument is called.
fn by_flag(field: &str) -> String {
    format!("flag {field}")
}

/// The id of the same argument given by its position.
fn by_position(field: &str) -> String {
    format!("word {field}")
}

/// Adds `-e` or `--env`. Flags that the help and other arguments need are reserved, and the first argument that names a
/// flag gets it.
fn aliased(flag: Arg, alias: &str, taken: &mut BTreeSet<String>) -> Arg {
    let (long, name) = match (alias.strip_prefix("--"), alias.strip_prefix('-')) {
        (Some(name), _) => (true, name),
        (None, Some(name)) => (false, name),
        (None, None) => return flag,
    };
    let letter = name
        .chars()
        .next()
        .filter(|first| first.is_ascii_alphanumeric());
    let Some(letter) = letter.filter(|_| long || name.len() == 1) else {
        return flag;
    };
    if !taken.insert(name.to_owned()) {
        return flag;
    }
    match (long, flag.get_short()) {
        (true, _) => flag.visible_alias(name.to_owned()),
        (false, None) => flag.short(letter),
        (false, Some(_)) => flag.visible_short_alias(letter),
    }
}

fn flag(field: &str, property: &Value, required: bool) -> Arg {
    let mut help = property["description"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let rules = without_null(property);
    let mut notes = Vec::new();
    if required {
        notes.push("required".to_owned());
    }
    if text::kind(property) == Some("object") {
        notes.push(format!("a member as --{}.NAME", dashed(field)));
    }
    if let Some(choices) = choices(rules) {
        notes.push(choices);
    }
    for (key, word) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("format", "a"),
        ("default", "by default"),
    ] {
        if let Some(value) = rules.get(key).or_else(|| property.get(key)) {
            notes.push(format!("{word} {}", plain(value)));
        }
    }
    if !notes.is_empty() {
        help = format!(
            "{help}{}[{}]",
            if help.is_empty() { "" } else { " " },
            notes.join("; ")
        );
    }
    let arg = Arg::new(by_flag(field)).help(plain_text(&help));
    match text::kind(property).unwrap_or("json") {
        "boolean" => arg
            .num_args(0..=1)
            .default_missing_value("true")
            .value_name("true|false"),
        "array" => arg
            .action(ArgAction::Append)
            .allow_hyphen_values(true)
            .value_name("VALUE"),
        kind => arg
            .allow_hyphen_values(true)
            .value_name(kind.to_uppercase()),
    }
}

fn choices(property: &Value) -> Option<String> {
    let values = property
        .get("enum")
        .or_else(|| property["items"].get("enum"))?
        .as_array()?;
    if values.is_empty() {
        return Some("no value is allowed".to_owned());
    }
    Some(format!(
        "one of {}",
        values.iter().map(choice).collect::<Vec<_>>().join(", ")
    ))
}

/// Returns an allowed value as a flag takes it; a text that would be read as several, or as none, is in quotes.
fn choice(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.is_empty() || text.trim() != text || text.contains([',', '"']) => {
            value.to_string()
        }
        _ => plain(value),
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns text as the property's type reads it. One text may be a whole list.
fn value(property: &Value, texts: &[&str]) -> Value {
    let takes_many = text::kind(property) == Some("array");
    // As it is written in other places, such as `TRUE` and `False`.
    let small: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    let small: Vec<&str> = small.iter().map(String::as_str).collect();
    let is_truth = text::kind(property) == Some("boolean")
        && small.iter().all(|text| matches!(*text, "true" | "false"));
    let texts = if is_truth { &small[..] } else { texts };
    let texts = if takes_many {
        texts
    } else {
        &texts[texts.len().saturating_sub(1)..]
    };
    match (takes_many, texts) {
        (true, [list]) => match weir_contracts::json::read_wide(list) {
            Ok(list @ Value::Array(_)) => list,
            _ => text::value(property, texts),
        },
        _ => text::value(property, texts),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(schema: &Value, line: &[&str]) -> Value {
        parse_with(schema, &Value::Null, line)
    }

    fn parse_with(schema: &Value, cli: &Value, line: &[&str]) -> Value {
        let matches = command("tool", "A tool.", schema, cli)
            .try_get_matches_from(line)
            .expect("parsed");
        Value::Object(arguments(schema, &matches).expect("arguments"))
    }

    #[test]
    fn help_tells_one_choice_from_the_next() {
        let schema = json!({ "properties": {
            "state": { "type": "string", "enum": ["open", "a, b", "", " c", "1"] },
        }});
        let help = command("tool", "A tool.", &schema, &Value::Null)
            .render_help()
            .to_string();
        assert!(
            help.contains(r#"[one of open, "a, b", "", " c", 1]"#),
            "{help}"
        );
    }

    #[test]
    fn flags_become_typed_arguments() {
        let schema = json!({ "properties": {
            "city": { "type": "string" }, "limit": { "type": "integer" }, "exact": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } }, "note": { "type": ["string", "null"] },
            "size": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
        }});
        assert_eq!(
            parse(
                &schema,
                &[
                    "--city", "007", "--limit", "-3", "--exact", "--tags", "a", "--tags", "b",
                    "--note", "null"
                ]
            ),
            json!({ "city": "007", "limit": -3, "exact": true, "tags": ["a", "b"], "note": null })
        );
        assert_eq!(parse(&schema, &["--size", "3"]), json!({ "size": 3 }));
        assert_eq!(parse(&schema, &["--size", "null"]), json!({ "size": null }));
        let schema = json!({ "properties": {
            "min_price": { "type": "number" }, "a_b": { "type": "string" }, "a-b": { "type": "string" },
            "limit": { "type": "integer" },
        }});
        assert_eq!(
            parse(&schema, &["--min-price", "1.5"]),
            json!({ "min_price": 1.5 }),
            "as people type it"
        );
        assert_eq!(
            parse(&schema, &["--min_price", "1.5"]),
            json!({ "min_price": 1.5 }),
            "as the schema names it"
        );
        assert_eq!(
            parse(&schema, &["--a-b", "x", "--a_b", "y"]),
            json!({ "a-b": "x", "a_b": "y" })
        );
        let help = command("tool", "A tool.", &schema, &Value::Null)
            .render_help()
            .to_string();
        assert!(
            help.contains("--min-price") && !help.contains("--min_price"),
            "{help}"
        );
        assert_eq!(
            parse(&schema, &["--limit", "many"]),
            json!({ "limit": "many" })
        );
        assert_eq!(
            parse(&schema, &["--arguments", "{\"limit\":1}", "--limit", "2"]),
            json!({ "limit": 2 })
        );
    }

    /// The schema of another server may give its arguments any names.
    #[test]
    fn no_name_of_an_argument_collides() {
        let names = [
            "help",
            "h",
            "version",
            "json",
            "arguments",
            "input",
            "a_b_c",
            "a-b_c",
            "x by position",
            "x",
            "",
            "-y",
        ];
        let properties = names.map(|name| (name.to_owned(), json!({ "type": "string" })));
        let schema = json!({ "properties": Value::Object(properties.into_iter().collect()) });
        command("tool", "A tool.", &schema, &Value::Null).debug_assert();
        for name in [
            "help",
            "h",
            "version",
            "json",
            "arguments",
            "input",
            "a_b_c",
            "a-b_c",
            "x",
        ] {
            assert_eq!(
                parse(&schema, &[&format!("--{name}"), "1"]),
                json!({ name: "1" }),
                "{name}"
            );
        }
        let help = command("tool", "A tool.", &schema, &Value::Null)
            .try_get_matches_from(["-h"])
            .expect_err("the help");
        assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp);
        let required = json!({ "properties": { "id": {}, "help": {}, "--": {} }, "required": ["id", "help", "--"] });
        assert_eq!(
            parse(&required, &["7", "--help", "me"]),
            json!({ "id": 7, "help": "me" })
        );
        let plain = command("tool", "A tool.", &json!({}), &Value::Null);
        let help = plain
            .try_get_matches_from(["--help"])
            .expect_err("the help");
        assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp);
    }

    #[test]
    fn a_member_of_an_object_has_a_flag() {
        let schema = json!({ "properties": {
            "meta": { "type": "object", "properties": {
                "tag": { "type": "string" }, "max_size": { "type": "integer" }, "on": { "type": "boolean" },
                "inner": { "$ref": "#/$defs/inner" },
            }},
            "free": { "anyOf": [{ "type": "object" }, { "type": "null" }] },
            "a.b": { "type": "string" }, "city": { "type": "string" }, "exact": { "type": "boolean" },
        }, "$defs": { "inner": { "type": "object", "properties": { "n": { "type": "number" } } } }, "required": ["meta"] });
        let cli = json!({ "parameters": { "meta": { "aliases": ["-m"] } } });
        let parse = |line: &[&str]| {
            let line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            let command = command("tool", "A tool.", &schema, &cli);
            let (words, members) = split_members(&schema, &command, &line);
            let matches = command
                .try_get_matches_from(&words)
                .map_err(|error| error.to_string())?;
            let mut found = arguments(&schema, &matches).expect("arguments");
            put_members(&mut found, members).map_err(|error| error.to_string())?;
            Ok::<_, String>(Value::Object(found))
        };
        assert_eq!(
            parse(&[
                "--meta.tag",
                "7",
                "--meta.max-size=-3",
                "--meta.on",
                "--meta.inner.n",
                "1.5",
                "--free.x",
                "[1]",
                "--a.b",
                "c",
                "--exact",
                "TRUE",
            ]),
            Ok(json!({
                "meta": { "tag": "7", "max_size": -3, "on": true, "inner": { "n": 1.5 } }, "free": { "x": [1] },
                "a.b": "c", "exact": true,
            }))
        );
        assert_eq!(
            parse(&[
                "--meta",
                r#"{"tag":"a","on":false}"#,
                "--meta.tag",
                "b",
                "--meta.on=True"
            ]),
            Ok(json!({ "meta": { "tag": "b", "on": true } }))
        );
        for wrong in [["--city.x", "1"], ["--none.x", "1"], ["--meta.", "1"]] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&["--meta", "text", "--meta.tag", "b"]).is_err());
        for (line, other) in [
            (
                &["--meta.tag", "x", "--meta", r#"{"tag":"q"}"#][..],
                "--meta ",
            ),
            (&["--meta.tag", "x", r#"{"tag":"q"}"#][..], "--meta "),
            (&["--meta.tag", "x", "-m", r#"{"tag":"q"}"#][..], "--meta "),
            (
                &["--meta.tag", "x", "--city", "y", "--", r#"{"tag":"q"}"#][..],
                "--meta ",
            ),
            (
                &["--meta.inner.n", "1", "--meta.inner", "{}"][..],
                "--meta.inner ",
            ),
        ] {
            let refused = parse(line).expect_err("one is dropped otherwise");
            assert!(
                refused.starts_with(&format!("{} and {other}both give", line[0])),
                "{refused}"
            );
        }
        for line in [
            &["--meta.tag", "x", "--meta", r#"{"on":true}"#][..],
            &["--meta.tag", "x", r#"{"on":true}"#],
            &[r#"{"tag":"q","on":true}"#, "--meta.tag", "x"],
            &["-m", r#"{"tag":"q","on":true}"#, "--meta.tag", "x"],
        ] {
            let expected = json!({ "meta": { "on": true, "tag": "x" } });
            assert_eq!(parse(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn words_aliases_and_files_are_arguments_too() {
        let schema = json!({ "properties": {
            "environment": { "type": "string" }, "service_name": { "type": "string" }, "count": { "type": "integer" },
            "limits": { "type": "object" },
        }, "required": ["environment", "service_name"] });
        let expected = json!({ "environment": "prod", "service_name": "web" });
        for line in [
            ["prod", "web"].as_slice(),
            &["prod", "--service-name", "web"],
            &["--environment", "prod", "--service_name=web"],
        ] {
            assert_eq!(parse(&schema, line), expected, "{line:?}");
        }
        let nested = parse(
            &schema,
            &[
                "prod",
                "web",
                "--limits",
                r#"{"low": [1, {"a": null}]}"#,
                "--count",
                "-2",
            ],
        );
        assert_eq!(
            (&nested["limits"]["low"][1], &nested["count"]),
            (&json!({"a": null}), &json!(-2))
        );
        let both = command("tool", "A tool.", &schema, &Value::Null).try_get_matches_from([
            "prod",
            "--environment",
            "test",
        ]);
        assert!(both.is_err(), "an argument is given once");

        let lists = json!({ "properties": {
            "parcels": { "type": "array", "items": { "type": "integer" } }, "tags": { "type": "array" },
        }, "required": ["parcels", "tags"] });
        let expected = json!({ "parcels": [3, 9], "tags": ["a", "b"] });
        assert_eq!(
            parse(&lists, &["[3,9]", "a", "b"]),
            expected,
            "the last list takes the rest"
        );
        assert_eq!(
            parse(
                &lists,
                &["--parcels", "3", "--parcels", "9", "--tags", r#"["a","b"]"#]
            ),
            expected
        );

        let cli = json!({ "parameters": {
            "count": { "positional": true }, "service_name": { "aliases": ["-s", "--svc", "-S"], "metavar": "NAME" },
        }});
        for line in [
            ["3", "-s", "web"],
            ["3", "--svc", "web"],
            ["3", "-S", "web"],
        ] {
            assert_eq!(
                parse_with(&schema, &cli, &line),
                json!({ "service_name": "web", "count": 3 }),
                "{line:?}"
            );
        }
        let help = command("tool", "A tool.", &schema, &cli)
            .render_help()
            .to_string();
        for shown in ["[COUNT]", "-s, --service-name <NAME>", "--svc"] {
            assert!(help.contains(shown), "{shown}: {help}");
        }

        let file = std::env::temp_dir().join(format!("weir-flags-{}.json", std::process::id()));
        std::fs::write(&file, r#"{"environment": "test", "count": 1}"#).expect("written");
        let path = file.to_str().expect("a path");
        let merged = parse(&schema, &["--input", path, "--environment", "prod"]);
        assert_eq!(
            merged,
            json!({ "environment": "prod", "count": 1 }),
            "flags override it"
        );
        std::fs::remove_file(&file).expect("removed");
        let matches = command("tool", "A tool.", &schema, &Value::Null)
            .try_get_matches_from(["--input", "/not/there"]);
        let refused = arguments(&schema, &matches.expect("parsed")).expect_err("no such file");
        assert!(
            refused.to_string().contains("--input /not/there"),
            "{refused}"
        );
    }
}
