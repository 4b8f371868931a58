//! The connection that a drafted contract names: one that `weir.toml` already has, or a new one with the lines to write for it.

use std::path::Path;

use reqwest::Url;
use toml_edit::DocumentMut;
use weir::config::GatewayConfig;
use weir_connections::ConnectionConfig;
use weir_contracts::draft::contract_name;
use weir_plugin_host::ConnectionGrant;

use super::served::DatabasePlace;

/// The block with an address, so that `weir serve` listens wherever it is started from.
const LISTEN: &str = "[http]\nlisten = \"127.0.0.1:8484\"\n\n";

/// A connection for one plugin, and how much of it `weir.toml` has.
pub(super) struct DraftConnection {
    pub(super) name: String,
    plugin: &'static str,
    /// The keys of a new connection, as TOML; `None` for an existing one.
    new: Option<String>,
    is_writable: bool,
    grant: Option<ConnectionGrant>,
    /// Whether the plugin has grants already, whose table cannot be written a second time.
    has_grants: bool,
    /// Whether there is a `weir.toml` at all.
    is_configured: bool,
}

impl DraftConnection {
    /// Returns the connection of the `sheet` adapter to a folder. `config` is that of `weir.toml`, if there is one.
    pub(super) fn to_folder(folder: &Path, config: Option<&GatewayConfig>) -> Self {
        let leads_there = |config: &GatewayConfig, known: &ConnectionConfig| match known {
            ConnectionConfig::Files { path, .. } => config
                .base
                .join(path)
                .canonicalize()
                .is_ok_and(|known| known == folder),
            _ => false,
        };
        let title = folder
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("files");
        let keys = format!(
            "kind = \"files\"\npath = {}\n",
            quoted(&folder.to_string_lossy())
        );
        Self::new("sheet", title, &keys, config, leads_there)
    }

    /// Returns the connection of the `sql` adapter to a database. The URL of a new one is written as a reference to the
    /// environment, since it may hold a password.
    pub(super) fn to_database(place: &DatabasePlace, config: Option<&GatewayConfig>) -> Self {
        let (key, value) = &place.place;
        let leads_there = |config: &GatewayConfig, known: &ConnectionConfig| match known {
            ConnectionConfig::Sqlite { path, .. } => {
                let known = config.base.join(path).canonicalize();
                *key == "path" && known.is_ok_and(|known| known == Path::new(value))
            }
            ConnectionConfig::Postgresql { url, .. } | ConnectionConfig::Mysql { url, .. } => {
                *key == "url" && url == value
            }
            _ => false,
        };
        let written = match *key {
            "url" if !value.starts_with("env:") => "env:DATABASE_URL",
            _ => value,
        };
        let keys = format!("kind = \"{}\"\n{key} = {}\n", place.kind, quoted(written));
        let made = Self::new("sql", &place.title, &keys, config, leads_there);
        Self {
            // A write to a database was not requested.
            is_writable: made.is_writable && !made.is_new(),
            ..made
        }
    }

    /// Returns the connection of the `rest` adapter to the host of a URL, and the path of the URL beneath it.
    pub(super) fn to_host(
        url: &Url,
        config: &GatewayConfig,
        is_configured: bool,
    ) -> (Self, String) {
        let leads_there =
            |_: &GatewayConfig, known: &ConnectionConfig| beneath(known, url).is_some();
        let port = url
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let host = url.domain().map_or_else(
            || format!("host-{}", url.host_str().unwrap_or_default()),
            str::to_owned,
        );
        let title = format!("{host}{port}");
        let keys = format!(
            "kind = \"http\"\nbase_url = {}\n",
            quoted(&url.origin().ascii_serialization())
        );
        let connection = Self::new(
            "rest",
            &title,
            &keys,
            Some(config).filter(|_| is_configured),
            leads_there,
        );
        let path = config
            .connections
            .get(&connection.name)
            .and_then(|known| beneath(known, url));
        (connection, path.unwrap_or_else(|| url.path().to_owned()))
    }

    /// Chooses a connection to this place that the plugin may use. A new one is named after the place, with a number if
    /// that name is taken.
    fn new(
        plugin: &'static str,
        title: &str,
        keys: &str,
        config: Option<&GatewayConfig>,
        leads_there: impl Fn(&GatewayConfig, &ConnectionConfig) -> bool,
    ) -> Self {
        let connections = config.map(|config| &config.connections);
        let grants = config.and_then(|config| Some(&config.plugins.get(plugin)?.grants));
        let grant = |name: &str| grants.and_then(|grants| grants.get(name)).copied();
        let known = connections.into_iter().flatten();
        let known =
            known.filter(|(_, known)| config.is_some_and(|config| leads_there(config, known)));
        let known = known.min_by_key(|(name, _)| grant(name).is_none());
        let name = match known {
            Some((name, _)) => name.clone(),
            None => {
                let plain = contract_name(title);
                let numbered = (2..).map(|number| format!("{plain}-{number}"));
                let is_free =
                    |name: &String| connections.is_none_or(|known| !known.contains_key(name));
                std::iter::once(plain.clone())
                    .chain(numbered)
                    .find(is_free)
                    .expect("numbers do not end")
            }
        };
        Self {
            grant: grant(&name),
            name,
            plugin,
            new: known.is_none().then(|| keys.to_owned()),
            is_writable: known.is_none_or(|(_, known)| known.is_writable()),
            has_grants: false,
            is_configured: config.is_some(),
        }
    }

    /// Looks at the text of `weir.toml` for a table of grants: an empty one, which is in no configuration, must not be
    /// written again either.
    pub(super) fn beside(self, text: &str) -> Self {
        let document: Option<DocumentMut> = text.parse().ok();
        let grants = document
            .as_ref()
            .and_then(|document| document.get("plugins")?.get(self.plugin)?.get("grants"));
        Self {
            has_grants: grants.is_some(),
            ..self
        }
    }

    /// Returns whether `weir.toml` lets the connection write, or could.
    pub(super) fn may_write(&self) -> (bool, ConnectionGrant) {
        let grant = if self.is_writable {
            ConnectionGrant::Write
        } else {
            ConnectionGrant::Read
        };
        (self.is_writable, self.grant.unwrap_or(grant))
    }

    pub(super) fn is_new(&self) -> bool {
        self.new.is_some()
    }

    /// Returns what `weir.toml` lacks for a contract that only reads, or also writes; empty if it has everything.
    pub(super) fn missing(&self, writes: bool) -> String {
        let Self { name, plugin, .. } = self;
        let (write, grant) = if writes {
            ("write = true\n", "write")
        } else {
            ("", "read")
        };
        let grant = format!("{} = \"{grant}\"\n", toml_edit::Key::new(name));
        let mut blocks = String::new();
        if let Some(keys) = &self.new {
            let listen = if self.is_configured { "" } else { LISTEN };
            blocks.push_str(&format!("{listen}[connections.{name}]\n{keys}{write}"));
        }
        let needs_grant = self.grant.is_none();
        if needs_grant && !self.has_grants {
            let gap = if blocks.is_empty() { "" } else { "\n" };
            blocks.push_str(&format!("{gap}[plugins.{plugin}.grants]\n{grant}"));
        }
        let mut missing = String::new();
        if !blocks.is_empty() {
            missing.push_str(&format!("\nIt needs this in weir.toml:\n\n{blocks}"));
        }
        if needs_grant && self.has_grants {
            missing.push_str(&format!(
                "\nIt needs this line in weir.toml, under [plugins.{plugin}.grants]:\n\n{grant}"
            ));
        }
        missing
    }
}

/// Returns the path of a URL beneath the base URL of a connection, if it lies there.
fn beneath(known: &ConnectionConfig, url: &Url) -> Option<String> {
    let ConnectionConfig::Http { base_url, .. } = known else {
        return None;
    };
    let base = Url::parse(base_url)
        .ok()
        .filter(|base| base.origin() == url.origin())?;
    let rest = url.path().strip_prefix(base.path().trim_end_matches('/'))?;
    match rest {
        // For this the connection requests its base itself, and no other address.
        "" | "/" => (base.path() == url.path()).then(|| "/".to_owned()),
        rest => rest.starts_with('/').then(|| rest.to_owned()),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the missing parts as a person would paste them: blocks at the end, a line beneath its header.
    fn pasted(toml: &str, missing: &str) -> String {
        let mut toml = toml.to_owned();
        for part in missing
            .split("\nIt needs this ")
            .filter(|part| !part.is_empty())
        {
            let (comment, lines) = part
                .split_once(":\n\n")
                .expect("a sentence before the lines");
            match comment.split_once("under ") {
                Some((_, header)) => {
                    toml = toml.replace(&format!("{header}\n"), &format!("{header}\n{lines}"))
                }
                None => toml = format!("{toml}{lines}\n"),
            }
        }
        toml
    }

    fn read(toml: &str, base: &Path) -> GatewayConfig {
        weir::config::read("weir.toml", toml, base)
            .unwrap_or_else(|problems| panic!("{toml}\n{problems:?}"))
    }

    /// Drafts two folders and then the first one again, pasting the missing parts of each into one `weir.toml`.
    #[test]
    fn one_file_takes_what_every_draft_needs() {
        let place = tempfile::tempdir().expect("a folder");
        let place = place.path().canonicalize().expect("a path");
        let folder = |name: &str| {
            let folder = place.join(name);
            std::fs::create_dir_all(&folder).expect("a folder");
            folder
        };
        let first = DraftConnection::to_folder(&folder("x"), None);
        let toml = pasted("", &first.missing(true));
        let config = read(&toml, &place);
        assert!(config.http.listen.is_some() && config.connections["x"].is_writable());
        let second = DraftConnection::to_folder(&folder("y"), Some(&config)).beside(&toml);
        let toml = pasted(&toml, &second.missing(false));
        let third =
            DraftConnection::to_folder(&folder("more/x"), Some(&read(&toml, &place))).beside(&toml);
        let toml = pasted(&toml, &third.missing(false));
        let host = |url: &str, config: &GatewayConfig| {
            DraftConnection::to_host(&Url::parse(url).expect("a URL"), config, true)
        };
        let (remote, path) = host("https://api.example.com/v1/items", &read(&toml, &place));
        assert_eq!(path, "/v1/items");
        let toml = pasted(&toml, &remote.missing(false));
        let config = read(&toml, &place);
        let names: Vec<&str> = config.connections.keys().map(String::as_str).collect();
        assert_eq!(names, ["api-example-com", "x", "x-2", "y"], "{toml}");
        let grants: Vec<_> = config.plugins["sheet"]
            .grants
            .iter()
            .map(|(name, grant)| (name.as_str(), *grant))
            .collect();
        assert_eq!(
            grants,
            [
                ("x", ConnectionGrant::Write),
                ("x-2", ConnectionGrant::Read),
                ("y", ConnectionGrant::Read)
            ]
        );
        assert!(!config.connections["y"].is_writable());
        for folder in ["x", "y", "more/x"] {
            let again = DraftConnection::to_folder(&place.join(folder), Some(&config));
            assert_eq!(
                (again.is_new(), again.missing(true).as_str()),
                (false, ""),
                "{folder}"
            );
        }
        let (again, _) = host("https://api.example.com/v2/items", &config);
        assert_eq!(again.missing(false), "");
        assert!(host("https://api.example.com:8443/v2", &config).0.is_new());
    }

    /// An existing connection is used as it is, and lacks only the plugin's grant.
    #[test]
    fn a_connection_that_is_there_is_named() {
        let place = tempfile::tempdir().expect("a folder");
        let place = place.path().canonicalize().expect("a path");
        let toml = "[connections.sheets]\nkind = \"files\"\npath = \".\"\n\n\
                    [connections.api]\nkind = \"http\"\nbase_url = \"http://localhost:8000/v1/\"\n\n\
                    [plugins.rest.grants]\napi = \"read\"\n";
        let config = read(toml, &place);
        let sheets = DraftConnection::to_folder(&place, Some(&config));
        assert_eq!(
            (sheets.name.as_str(), sheets.may_write()),
            ("sheets", (false, ConnectionGrant::Read))
        );
        let missing = sheets.missing(false);
        assert_eq!(
            missing,
            "\nIt needs this in weir.toml:\n\n[plugins.sheet.grants]\nsheets = \"read\"\n"
        );
        // A table without a line exists all the same.
        let missing = sheets
            .beside(&format!("{toml}[plugins.sheet.grants]\n# none\n"))
            .missing(false);
        assert_eq!(
            missing,
            "\nIt needs this line in weir.toml, under [plugins.sheet.grants]:\n\nsheets = \"read\"\n"
        );
        for (url, expected) in [
            ("http://localhost:8000/v1/items", ("api", "/items")),
            ("http://localhost:8000/v1/", ("api", "/")),
            ("http://localhost:8000/v1", ("localhost-8000", "/v1")),
            ("http://localhost:8000/v10", ("localhost-8000", "/v10")),
            ("http://127.0.0.1/items", ("host-127-0-0-1", "/items")),
        ] {
            let (connection, path) =
                DraftConnection::to_host(&Url::parse(url).expect("a URL"), &config, true);
            assert_eq!((connection.name.as_str(), path.as_str()), expected, "{url}");
        }
    }
}
