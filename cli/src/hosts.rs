//! The supported MCP clients: where their configurations are, and how each describes a server.

mod edit;
mod file;
mod read;

use std::{
    fs::File,
    io::{self, ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use serde_json::Value;
use weir_upstream::{UpstreamFailure, UpstreamFailureKind, UpstreamTarget};

pub(super) use weir::client_entry::ServerEntry as Entry;
use weir::client_entry::{KEY, McpClient};

pub(super) use self::edit::{TextForm, find, put, remove};
pub(super) use self::file::ClientFile;
use self::file::unreadable;
pub(super) use self::read::expanded;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum McpHost {
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

impl McpHost {
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
    pub(super) fn user_file(self) -> Result<PathBuf, UpstreamFailure> {
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
        self.client().member()
    }

    /// Returns how this client's configuration writes the value of an environment variable; `None` if it cannot.
    pub(super) fn reference(self, variable: &str) -> Option<String> {
        self.client().reference(variable)
    }

    /// Returns the entry of the server as this client writes it. The failure names what the client cannot express.
    pub(super) fn entry(self, entry: &Entry) -> Result<Value, UpstreamFailure> {
        self.client().entry(entry)
    }

    fn client(self) -> McpClient {
        match self {
            Self::ClaudeCode => McpClient::ClaudeCode,
            Self::ClaudeDesktop => McpClient::ClaudeDesktop,
            Self::Cursor => McpClient::Cursor,
            Self::VsCode => McpClient::VsCode,
            Self::Codex => McpClient::Codex,
            Self::Cline => McpClient::Cline,
            Self::Gemini => McpClient::Gemini,
            Self::Windsurf => McpClient::Windsurf,
            Self::Zed => McpClient::Zed,
        }
    }
}

/// Returns whether an entry of Weir has a key, or names its place.
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
pub(super) fn server(from: &str, name: &str) -> Result<UpstreamTarget, UpstreamFailure> {
    server_as(from, name, read::target)
}

/// Returns the same server for `weir.toml`, with references in the place of variables.
pub(super) fn server_to_write(from: &str, name: &str) -> Result<UpstreamTarget, UpstreamFailure> {
    server_as(from, name, read::target_to_write)
}

fn server_as(
    from: &str,
    name: &str,
    target: fn(&Value, &Path) -> Result<UpstreamTarget, UpstreamFailure>,
) -> Result<UpstreamTarget, UpstreamFailure> {
    let host = McpHost::from_str(from, true);
    let is_client = host.is_ok();
    let files = match host {
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
        // A project may come from a stranger: a pipe in it is never read to its end.
        if is_client && file.exists() && !file.is_file() {
            return Err(unreadable(file, "it is not a file"));
        }
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
        let clients: Vec<String> = McpHost::value_variants()
            .iter()
            .map(|host| host.name())
            .collect();
        return Err(UpstreamFailure::new(
            UpstreamFailureKind::Start,
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
    Err(UpstreamFailure::new(
        UpstreamFailureKind::Start,
        expected,
        format!("{there} (read: {})", read.join(", ")),
    )
    .step("use one of these names"))
}

/// The size up to which a configuration is read.
const TEXT_MAX_BYTES: u64 = 16 << 20;

/// Returns the text of a configuration; `None` if the file does not exist.
pub(super) fn text(file: &Path) -> Result<Option<String>, UpstreamFailure> {
    let failed = |error: io::Error| unreadable(file, &error.to_string());
    let opened = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let mut text = String::new();
    let mut bounded = opened.take(TEXT_MAX_BYTES + 1);
    let bytes = bounded.read_to_string(&mut text).map_err(failed)?;
    if bytes as u64 > TEXT_MAX_BYTES {
        let cause = format!("it has more than {TEXT_MAX_BYTES} bytes");
        return Err(unreadable(file, &cause));
    }
    Ok(Some(text))
}

pub(super) fn is_toml(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "toml")
}

fn home() -> Result<PathBuf, UpstreamFailure> {
    set("HOME").ok_or_else(|| {
        UpstreamFailure::new(
            UpstreamFailureKind::Start,
            "a home folder",
            "HOME is not set",
        )
        .step("set HOME")
    })
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
