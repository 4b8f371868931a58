//! Servers as clients' configurations name them: JSON with comments, or TOML.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Map, Value};
use weir_upstream::{
    UpstreamCommand, UpstreamFailure, UpstreamFailureKind, UpstreamTarget, UpstreamTransport,
    UpstreamUrl,
};

use super::is_toml;

/// The members in which a configuration may hold its servers.
const MEMBERS: [&str; 4] = ["mcpServers", "servers", "mcp_servers", "context_servers"];

/// Returns the servers of one file by name. The project's own ones of Claude Code count as well.
pub(super) fn servers(file: &Path, text: &str) -> Result<BTreeMap<String, Value>, UpstreamFailure> {
    let broken = |cause: String| {
        UpstreamFailure::new(
            UpstreamFailureKind::Start,
            format!("{} to be a configuration", file.display()),
            cause,
        )
        .step("open it with the client itself, and correct what it reports")
    };
    // Editors of Windows begin a text with this mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let config: Value = match is_toml(file) {
        true => toml::from_str(text).map_err(|error| broken(error.message().to_owned()))?,
        false => jsonc_parser::parse_to_serde_value::<Value>(text, &Default::default())
            .map_err(|error| broken(error.to_string()))?,
    };
    let folder = std::env::current_dir().unwrap_or_default();
    let project = &config["projects"][folder.to_string_lossy().as_ref()];
    let mut servers = BTreeMap::new();
    for place in [&config, &config["mcp"], project] {
        for member in MEMBERS {
            for (name, server) in place[member].as_object().into_iter().flatten() {
                servers.insert(name.clone(), server.clone());
            }
        }
    }
    Ok(servers)
}

/// Returns the value of a variable that an entry names.
type Fill = fn(&str) -> Result<String, UpstreamFailure>;

/// Returns how one server is reached now, with the values of all variables; `folder` is that of its file.
pub(super) fn target(server: &Value, folder: &Path) -> Result<UpstreamTarget, UpstreamFailure> {
    filled(server, folder, value_of, value_of)
}

/// Returns how one server is reached, for `weir.toml`: a value may be a secret, so variables are kept as references. An
/// entry with a variable where `weir.toml` takes no reference is refused.
pub(super) fn target_to_write(
    server: &Value,
    folder: &Path,
) -> Result<UpstreamTarget, UpstreamFailure> {
    filled(server, folder, reference_to, refused)
}

/// `secret` fills in variables of the URL, the headers and the environment, `word` those of the command and its folder.
fn filled(
    server: &Value,
    folder: &Path,
    secret: Fill,
    word: Fill,
) -> Result<UpstreamTarget, UpstreamFailure> {
    let text = |name: &str, fill: Fill| {
        server[name]
            .as_str()
            .map(|text| expand(text, folder, fill))
            .transpose()
    };
    // The variables of another file would be missing without a word.
    if server.get("envFile").is_some() {
        return Err(UpstreamFailure::new(
            UpstreamFailureKind::Start,
            "an entry that says everything itself",
            "its variables are in `envFile`",
        )
        .step("give them with `--env NAME=VALUE`, and the command after `--`"));
    }
    for member in ["httpUrl", "serverUrl", "url"] {
        if let Some(url) = text(member, secret)? {
            let mut headers = texts(&server["headers"], folder, secret)?;
            headers.extend(texts(&server["http_headers"], folder, secret)?);
            // Codex keeps secrets out of its file by naming variables.
            for (name, variable) in server["env_http_headers"].as_object().into_iter().flatten() {
                if let Some(variable) = variable.as_str() {
                    headers.insert(name.clone(), secret(variable)?);
                }
            }
            if let Some(variable) = server["bearer_token_env_var"].as_str() {
                headers.insert(
                    "Authorization".to_owned(),
                    format!("Bearer {}", secret(variable)?),
                );
            }
            let transport = if server["type"] == "sse" || server["transport"] == "sse" {
                UpstreamTransport::Sse
            } else {
                UpstreamTransport::Either
            };
            return Ok(UpstreamTarget::Url(UpstreamUrl {
                url,
                headers: headers.into_iter().collect(),
                transport,
                auth: None,
            }));
        }
    }
    // Zed used to write the command as a separate object.
    let (command, place) = match &server["command"] {
        Value::Object(_) => (server["command"]["path"].as_str(), &server["command"]),
        command => (command.as_str(), server),
    };
    let Some(command) = command else {
        return Err(UpstreamFailure::new(
            UpstreamFailureKind::Start,
            "an entry with a `command` or a `url`",
            "it has neither",
        )
        .step("give the command after `--`, or the URL"));
    };
    let arguments = place["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let arguments: Result<Vec<_>, _> = arguments
        .map(|text| expand(text, folder, word).map(Into::into))
        .collect();
    let mut environment = texts(&place["env"], folder, secret)?;
    for variable in server["env_vars"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        environment.insert(variable.to_owned(), secret(variable)?);
    }
    Ok(UpstreamTarget::Command(UpstreamCommand {
        program: expand(command, folder, word)?.into(),
        arguments: arguments?,
        environment: environment
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        folder: text("cwd", word)?.map(|cwd| folder.join(cwd)),
        ..UpstreamCommand::default()
    }))
}

/// Replaces `${env:NAME}`, `${NAME}` and `${NAME:-otherwise}`, as clients do.
pub(crate) fn expanded(text: &str) -> Result<String, UpstreamFailure> {
    expand(text, &std::env::current_dir().unwrap_or_default(), value_of)
}

fn texts(
    members: &Value,
    folder: &Path,
    fill: Fill,
) -> Result<BTreeMap<String, String>, UpstreamFailure> {
    let members = members.as_object().map(Map::iter).into_iter().flatten();
    let texts = members.filter_map(|(name, value)| match value {
        Value::String(text) => Some((name, text.clone())),
        Value::Number(_) | Value::Bool(_) => Some((name, value.to_string())),
        _ => None,
    });
    texts
        .map(|(name, text)| Ok((name.clone(), expand(&text, folder, fill)?)))
        .collect()
}

fn expand(text: &str, folder: &Path, fill: Fill) -> Result<String, UpstreamFailure> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        expanded.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('}') else {
            break;
        };
        let name = &rest[at + 2..at + end];
        rest = &rest[at + end + 1..];
        let (name, otherwise) = match name.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (name, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        match (name, otherwise) {
            ("workspaceFolder", _) => expanded.push_str(
                &std::env::current_dir()
                    .unwrap_or_default()
                    .to_string_lossy(),
            ),
            ("fileDirname", _) => expanded.push_str(&folder.to_string_lossy()),
            ("userHome" | "HOME", _) => expanded.push_str(&value_of("HOME")?),
            (input, _) if input.starts_with("input:") => {
                let asked = input.trim_start_matches("input:");
                return Err(UpstreamFailure::new(
                    UpstreamFailureKind::Start,
                    "an entry that says everything itself",
                    format!("its client asks its user for `{asked}`"),
                )
                .step(
                    "give the value with `--env NAME=VALUE` or `--header 'NAME: VALUE'`, and the command or URL itself",
                ));
            }
            (name, Some(otherwise)) if std::env::var(name).unwrap_or_default().is_empty() => {
                expanded.push_str(otherwise);
            }
            (name, _) => expanded.push_str(&fill(name)?),
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn value_of(name: &str) -> Result<String, UpstreamFailure> {
    std::env::var(name).map_err(|_| {
        UpstreamFailure::new(
            UpstreamFailureKind::Start,
            format!("the variable `{name}` in the environment"),
            "it is not set, or not a text",
        )
        .step(format!("set `{name}`"))
    })
}

fn reference_to(name: &str) -> Result<String, UpstreamFailure> {
    value_of(name).map(|_| format!("${{env:{name}}}"))
}

fn refused(name: &str) -> Result<String, UpstreamFailure> {
    let cause =
        format!("it names the variable `{name}`, whose value would be in weir.toml in clear");
    Err(UpstreamFailure::new(UpstreamFailureKind::Start, "an entry whose command and folder name no variables", cause)
        .step(format!(
            "if it is a secret, let the server read it from its environment: --env {name}, and the command after `--`"
        ))
        .step("if it is not a secret, give the command after `--`, with the value in it"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn command(server: &Value) -> UpstreamCommand {
        match target(server, Path::new("/project")).expect("a command") {
            UpstreamTarget::Command(command) => command,
            UpstreamTarget::Url(_) => panic!("{server} is a command"),
        }
    }

    fn url(server: &Value) -> UpstreamUrl {
        match target(server, Path::new("/project")).expect("a URL") {
            UpstreamTarget::Url(url) => url,
            UpstreamTarget::Command(_) => panic!("{server} is a URL"),
        }
    }

    #[test]
    fn servers_are_found_wherever_clients_keep_them() {
        let entry = json!({ "command": "s" });
        let cases = [
            ("a.json", "{\"mcpServers\": {\"s\": {\"command\": \"s\"}}}"),
            (
                "a.json",
                "{// VS Code\n \"servers\": {\"s\": {\"command\": \"s\"},},}",
            ),
            (
                "a.json",
                "{\"mcp\": {\"servers\": {\"s\": {\"command\": \"s\"}}}}",
            ),
            (
                "a.json",
                "{\"context_servers\": /* Zed */ {\"s\": {\"command\": \"s\"}}}",
            ),
            ("a.toml", "[mcp_servers.s]\ncommand = \"s\"\n"),
            (
                "a.json",
                "\u{feff}{\"mcpServers\": {\"s\": {\"command\": \"s\"}}}",
            ),
        ];
        for (file, text) in cases {
            let found = servers(Path::new(file), text).expect(text);
            assert_eq!(
                found,
                BTreeMap::from([("s".to_owned(), entry.clone())]),
                "{text}"
            );
        }
        assert!(servers(Path::new("a.json"), "{\"mcpServers\": ").is_err());
        assert!(servers(Path::new("a.toml"), "= 1").is_err());
    }

    #[test]
    fn entries_are_read_in_every_dialect() {
        let zed =
            command(&json!({ "command": { "path": "z", "args": ["-a"], "env": { "K": 1 } } }));
        assert_eq!(
            (zed.program, zed.arguments),
            ("z".into(), vec!["-a".into()])
        );
        assert_eq!(zed.environment, BTreeMap::from([("K".into(), "1".into())]));
        let home = std::env::var("HOME").expect("HOME is set");
        let code = command(
            &json!({ "type": "stdio", "command": "${userHome}/s", "args": ["${NO_SUCH_NAME:-x}"], "cwd": "sub" }),
        );
        assert_eq!(code.program, format!("{home}/s").as_str());
        assert_eq!(
            (code.arguments, code.folder),
            (vec!["x".into()], Some("/project/sub".into()))
        );
        let codex = url(
            &json!({ "url": "https://a/mcp", "http_headers": { "X": "1" }, "bearer_token_env_var": "HOME" }),
        );
        assert_eq!(
            codex.headers,
            [
                ("Authorization".to_owned(), format!("Bearer {home}")),
                ("X".to_owned(), "1".to_owned())
            ]
        );
        assert_eq!(
            url(&json!({ "serverUrl": "https://a/sse", "type": "sse" })).transport,
            UpstreamTransport::Sse
        );
        assert_eq!(
            url(&json!({ "httpUrl": "https://g/mcp", "url": "https://old" })).url,
            "https://g/mcp"
        );
        for refused in [
            json!({}),
            json!({ "command": "s", "envFile": ".env" }),
            json!({ "command": "s", "env": { "K": "${input:key}" } }),
            json!({ "url": "https://a", "headers": { "K": "${env:NO_SUCH_NAME}" } }),
        ] {
            let failure = target(&refused, Path::new("/")).expect_err("refused");
            assert!(!failure.steps.is_empty(), "{failure}");
        }
    }

    /// `PATH` plays the part of a variable with a secret: it is set wherever tests run.
    #[test]
    fn an_entry_that_is_written_down_names_variables_and_not_their_values() {
        let written = |server: Value| target_to_write(&server, Path::new("/project"));
        let environment = json!({ "A": "${PATH}", "B": "x ${env:PATH}", "C": "${NO_SUCH_NAME:-c}", "D": "${PATH:-d}" });
        let command =
            json!({ "command": "${userHome}/s", "env": environment, "env_vars": ["PATH"] });
        let Ok(UpstreamTarget::Command(command)) = written(command) else {
            panic!("it is a command")
        };
        let reference = "${env:PATH}";
        let environment = [
            ("A", reference),
            ("B", "x ${env:PATH}"),
            ("C", "c"),
            ("D", reference),
            ("PATH", reference),
        ];
        assert_eq!(
            command.environment,
            BTreeMap::from(environment.map(|(name, value)| (name.into(), value.into())))
        );
        let codex = json!({ "url": "https://a/${PATH}", "env_http_headers": { "X": "PATH" }, "bearer_token_env_var": "PATH" });
        let Ok(UpstreamTarget::Url(url)) = written(codex) else {
            panic!("it is a URL")
        };
        assert_eq!(url.url, "https://a/${env:PATH}");
        let headers = [("Authorization", "Bearer ${env:PATH}"), ("X", reference)];
        assert_eq!(
            url.headers,
            headers.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        for member in ["command", "args", "cwd"] {
            let mut server = json!({ "command": "s" });
            server[member] = if member == "args" {
                json!(["--token", reference])
            } else {
                json!(reference)
            };
            let Err(failure) = written(server) else {
                panic!("a command in weir.toml takes no references")
            };
            assert!(
                failure.cause.contains("`PATH`") && failure.steps.len() == 2,
                "{failure}"
            );
        }
        let unset = json!({ "command": "s", "env": { "A": "${NO_SUCH_NAME}" } });
        let Err(failure) = written(unset) else {
            panic!("it is not set")
        };
        assert!(failure.expected.contains("NO_SUCH_NAME"), "{failure}");
    }
}
