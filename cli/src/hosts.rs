//! The MCP clients people have: where their configurations lie, and how they write a server down.

mod edit;
mod file;
mod read;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use weir_upstream::{Failure, Kind, Target};

pub(super) use self::edit::{find, put, remove};
pub(super) use self::file::ClientFile;
pub(super) use self::read::expanded;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Host {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Codex,
    Cline,
    Gemini,
    Windsurf,
    Zed,
}

/// The way to reach a server, for a client to write down. `key`: the variable that holds the client's key.
pub(super) enum Entry {
    Command {
        program: String,
        arguments: Vec<String>,
        key: Option<String>,
    },
    Url {
        url: String,
        headers: Vec<(String, String)>,
        key: Option<String>,
    },
}

/// The variable in which Weir on stdio looks for the key.
const KEY: &str = "WEIR_KEY";

impl Host {
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .expect("every host has a name")
            .get_name()
            .to_owned()
    }

    /// Returns the file of the working folder's project, for clients that have one.
    pub(super) fn project_file(self) -> Option<PathBuf> {
        Some(PathBuf::from(match self {
            Self::ClaudeCode => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Gemini => ".gemini/settings.json",
            Self::Zed => ".zed/settings.json",
            Self::ClaudeDesktop | Self::Cline | Self::Windsurf => return None,
        }))
    }

    /// Returns the file of the user.
    pub(super) fn user_file(self) -> Result<PathBuf, Failure> {
        let home = home()?;
        let applications = match cfg!(target_os = "macos") {
            true => home.join("Library/Application Support"),
            false => set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
        };
        Ok(match self {
            Self::ClaudeCode => home.join(".claude.json"),
            Self::ClaudeDesktop => applications.join("Claude/claude_desktop_config.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::VsCode => applications.join("Code/User/mcp.json"),
            Self::Codex => set("CODEX_HOME")
                .unwrap_or_else(|| home.join(".codex"))
                .join("config.toml"),
            Self::Cline => applications.join(
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed => set("XDG_CONFIG_HOME")
                .unwrap_or_else(|| home.join(".config"))
                .join("zed/settings.json"),
        })
    }

    /// Returns the member that holds the servers by name.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// Returns how this client's configuration writes the value of an environment variable; `None` if it cannot.
    /// Microsoft's APM checked it with the clients (microsoft.github.io/apm/reference/mcp-variable-compatibility); for Zed
    /// it is github.com/zed-industries/zed/issues/60459. Codex names the variable itself, see [`Host::entry`].
    pub(super) fn reference(self, variable: &str) -> Option<String> {
        match self {
            Self::ClaudeCode | Self::Gemini => Some(format!("${{{variable}}}")),
            Self::Cursor | Self::VsCode | Self::Windsurf => Some(format!("${{env:{variable}}}")),
            Self::Codex => Some(variable.to_owned()),
            Self::ClaudeDesktop | Self::Cline | Self::Zed => None,
        }
    }

    /// Returns the server in this client's own words. The failure says what the client cannot take.
    pub(super) fn entry(self, entry: &Entry) -> Result<Value, Failure> {
        let (Entry::Command { key, .. } | Entry::Url { key, .. }) = entry;
        let key = key.as_deref().map(|variable| {
            Ok((
                variable,
                self.reference(variable)
                    .ok_or_else(|| self.no_variables())?,
            ))
        });
        let key: Option<(&str, String)> = key.transpose()?;
        let (url, headers) = match entry {
            Entry::Command {
                program, arguments, ..
            } => {
                let mut written = json!({ "command": program, "args": arguments });
                if matches!(self, Self::ClaudeCode | Self::VsCode) {
                    written = json!({ "type": "stdio", "command": program, "args": arguments });
                }
                match key {
                    None => {}
                    // Codex starts a server with those variables alone that it is told to hand on.
                    Some((KEY, _)) if self == Self::Codex => written["env_vars"] = json!([KEY]),
                    Some((variable, _)) if self == Self::Codex => {
                        let cause = format!(
                            "Codex hands a variable on under its own name, and Weir does not look at {variable}"
                        );
                        let failure = Failure::new(Kind::Start, format!("the key in {KEY}"), cause);
                        return Err(failure.step(format!("name the variable so: --key-env {KEY}")));
                    }
                    Some((_, reference)) => written["env"] = json!({ KEY: reference }),
                }
                return Ok(written);
            }
            Entry::Url { url, headers, .. } => (url, headers),
        };
        let mut written = match self {
            Self::ClaudeDesktop => {
                let expected = "a client that can be told of a URL";
                return Err(Failure::new(
                    Kind::Start,
                    expected,
                    "Claude Desktop starts servers itself",
                )
                .step("leave out --url, and Claude Desktop starts Weir")
                .step("or add the URL in its settings, under Connectors"));
            }
            Self::ClaudeCode | Self::VsCode => json!({ "type": "http", "url": url }),
            Self::Cline => json!({ "type": "streamableHttp", "url": url }),
            Self::Gemini => json!({ "httpUrl": url }),
            Self::Windsurf => json!({ "serverUrl": url }),
            Self::Cursor | Self::Codex | Self::Zed => json!({ "url": url }),
        };
        let mut headers: Map<String, Value> = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        match key {
            Some((variable, _)) if self == Self::Codex => {
                written["bearer_token_env_var"] = variable.into()
            }
            Some((_, reference)) => drop(headers.insert(
                "Authorization".to_owned(),
                format!("Bearer {reference}").into(),
            )),
            None => {}
        }
        if !headers.is_empty() {
            written[if self == Self::Codex {
                "http_headers"
            } else {
                "headers"
            }] = headers.into();
        }
        Ok(written)
    }

    fn no_variables(self) -> Failure {
        let name = self.name();
        Failure::new(
            Kind::Start,
            "a client that reads variables of its environment",
            format!("`{name}` takes what its configuration says as it stands"),
        )
        .step("leave out --key-env, and write the key itself: --header 'Authorization: Bearer KEY' with --url")
        .step(format!("or, where {name} starts Weir, \"env\": {{\"{KEY}\": \"KEY\"}} in the entry"))
    }
}

/// Returns whether an entry of Weir has a key, or says where one is.
pub(super) fn has_key(entry: &Value) -> bool {
    let names = |member: &str, name: &str| {
        entry[member]
            .as_object()
            .is_some_and(|members| members.keys().any(|known| known.eq_ignore_ascii_case(name)))
    };
    let headers = ["headers", "http_headers", "env_http_headers"];
    names("env", KEY)
        || entry["env_vars"]
            .as_array()
            .is_some_and(|variables| variables.iter().any(|variable| variable == KEY))
        || headers
            .into_iter()
            .any(|member| names(member, "Authorization"))
        || entry["bearer_token_env_var"].is_string()
}

/// Returns the server `name` of a client's configuration, or of a configuration file, to be reached now.
pub(super) fn server(from: &str, name: &str) -> Result<Target, Failure> {
    server_as(from, name, read::target)
}

/// Returns the same server for `weir.toml`, with references in the place of variables.
pub(super) fn server_to_write(from: &str, name: &str) -> Result<Target, Failure> {
    server_as(from, name, read::target_to_write)
}

fn server_as(
    from: &str,
    name: &str,
    target: fn(&Value, &Path) -> Result<Target, Failure>,
) -> Result<Target, Failure> {
    let files = match Host::from_str(from, true) {
        Ok(host) => host
            .project_file()
            .into_iter()
            .chain([host.user_file()?])
            .collect(),
        Err(_) => vec![PathBuf::from(from)],
    };
    let mut known = Vec::new();
    let mut read = Vec::new();
    for file in &files {
        let Some(text) = text(file)? else { continue };
        read.push(file.display().to_string());
        let servers = read::servers(file, &text)?;
        if let Some(server) = servers.get(name) {
            let folder = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            return target(server, folder.parent().unwrap_or(Path::new("/"))).map_err(|failure| {
                failure.step(format!("the entry is `{name}` in {}", file.display()))
            });
        }
        known.extend(servers.keys().cloned());
    }
    let expected = format!("the server `{name}` in the configuration of `{from}`");
    if read.is_empty() {
        let looked: Vec<String> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let clients: Vec<String> = Host::value_variants()
            .iter()
            .map(|host| host.name())
            .collect();
        return Err(Failure::new(
            Kind::Start,
            expected,
            format!("there is no {}", looked.join(" and no ")),
        )
        .step(format!(
            "name a client ({}) or a configuration file",
            clients.join(", ")
        )));
    }
    known.sort_unstable();
    let there = match known.as_slice() {
        [] => "it names no server".to_owned(),
        known => format!("it names {}", known.join(", ")),
    };
    Err(Failure::new(
        Kind::Start,
        expected,
        format!("{there} (read: {})", read.join(", ")),
    )
    .step("use one of these names"))
}

/// The size up to which a configuration is read.
const TEXT_MAX_BYTES: u64 = 16 << 20;

/// Returns the text of a configuration; `None` if there is no such file.
pub(super) fn text(file: &Path) -> Result<Option<String>, Failure> {
    let unreadable = |cause: String| {
        Failure::new(
            Kind::Start,
            format!("{} to be readable", file.display()),
            cause,
        )
    };
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
        Ok(about) if about.len() > TEXT_MAX_BYTES => {
            return Err(unreadable(format!(
                "it has more than {TEXT_MAX_BYTES} bytes"
            )));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(file)
        .map(Some)
        .map_err(|error| unreadable(error.to_string()))
}

pub(super) fn is_toml(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "toml")
}

fn home() -> Result<PathBuf, Failure> {
    set("HOME").ok_or_else(|| {
        Failure::new(Kind::Start, "a home folder", "HOME is not set").step("set HOME")
    })
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
