//! Holds what an operator writes under `[upstreams.NAME]` of `weir.toml`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use weir_connections::config::{resolve_named, resolve_url, secret_files};

use crate::auth::AuthConfig;
use crate::sandbox::KeptFiles;
use crate::settings::{
    ClientCapability, EraPreference, UpstreamBounds, UpstreamCommand, UpstreamSettings,
    UpstreamTarget, UpstreamTransport, UpstreamUrl,
};

/// `url`, and the values of `env` and `headers`, may hold secrets by reference, as connections do: `env:NAME`, `file:path`,
/// or `${env:NAME}` inside a longer value.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamConfig {
    /// The program, or it and its arguments.
    #[serde(deserialize_with = "words")]
    pub command: Vec<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// The child's environment in addition to `PATH`, `HOME`, `LANG` and `TMPDIR`.
    pub env: BTreeMap<String, String>,
    /// The folder in which the command is started; by default the folder of the configuration.
    pub folder: Option<PathBuf>,
    /// Whether files of the gateway are kept from the command, where the kernel can. It gets no further rights then, so that
    /// `sudo` does not work.
    pub sandbox: bool,
    pub url: Option<String>,
    /// The headers sent with every request.
    pub headers: BTreeMap<String, String>,
    /// How requests are authorized in addition to that.
    pub auth: Option<AuthConfig>,
    /// The transport; by default it is tried out.
    pub transport: Option<TransportWord>,
    /// The era to speak; by default the modern one where the server speaks it.
    pub era: EraPreference,
    /// The callers that may share one session.
    pub isolation: UpstreamIsolation,
    /// The questions that the server may ask of callers; it may list other tools if it may ask.
    pub ask: Vec<ClientCapability>,
    /// What happens to the server's tools when they are seen for the first time.
    pub first: PublishMode,
    /// What happens to later changes.
    pub changes: ChangeMode,
    /// Whether the list of its resources is requested each time, or is part of the approved version.
    pub resources: UpstreamResources,
    /// A file that chooses, renames, describes and bounds its tools.
    pub overlay: Option<PathBuf>,
    /// The contract that its tools are published as; by default one with the server's name.
    pub contract: Option<String>,
    /// The text in front of every tool's name, with `_` between them; by default the upstream's name, and with ""
    /// nothing.
    pub prefix: Option<String>,
    /// The time that a start may take. A call waits ten seconds for it at most.
    pub start_s: u64,
    /// The timeout of each list, and of a call whose tool sets no other.
    pub timeout_ms: u64,
    pub in_flight_max: usize,
    pub sessions_max: usize,
    /// A session that was not used for this long is closed.
    pub idle_s: u64,
    pub result_max_bytes: usize,
    /// The bound on all its lists together.
    pub list_max_bytes: usize,
    pub items_max: usize,
}

/// The transport that a configuration demands of a server with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportWord {
    Http,
    Sse,
}

/// Which callers share a session with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamIsolation {
    /// All callers share one, for a server that keeps no state.
    Shared,
    Tenant,
    #[default]
    Agent,
    /// Each session of a client; of clients without sessions, the agent.
    Session,
}

/// What happens with the tools of a server that has no published version yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublishMode {
    /// The tools wait until they are published.
    #[default]
    Hold,
    /// The tools are published, unless lint finds an error.
    Publish,
}

/// Which changes of a server's tools are published without an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeMode {
    /// All changes wait.
    #[default]
    Hold,
    /// Changes that change no text, add nothing and take nothing from callers are published.
    Compatible,
}

/// How the resources of a server are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamResources {
    /// The resources change on their own, as files do: the server is asked for the list each time.
    #[default]
    Live,
    /// The list is part of the approved version.
    Pinned,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            folder: None,
            sandbox: true,
            url: None,
            headers: BTreeMap::new(),
            auth: None,
            transport: None,
            era: EraPreference::default(),
            isolation: UpstreamIsolation::default(),
            ask: Vec::new(),
            first: PublishMode::default(),
            changes: ChangeMode::default(),
            resources: UpstreamResources::default(),
            overlay: None,
            contract: None,
            prefix: None,
            start_s: 180,
            timeout_ms: 30_000,
            in_flight_max: 32,
            sessions_max: 16,
            idle_s: 300,
            result_max_bytes: 8 << 20,
            list_max_bytes: 4 << 20,
            items_max: 2_000,
        }
    }
}

/// A fault of an entry other than the types of its values: the key, the fault, and what to do.
pub type Wrong = (&'static str, String, String);

impl UpstreamConfig {
    /// Returns all faults at once.
    pub fn check(&self, name: &str) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        let mut note =
            |key, what: &str, hint: &str| wrong.push((key, what.to_owned(), hint.to_owned()));
        let fits = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
        };
        if !(1..=64).contains(&name.len()) || !name.bytes().all(fits) {
            note(
                "",
                "an upstream's name is 1 to 64 of a-z, 0-9, `-` and `_`",
                "give it another name",
            );
        }
        match (&self.command[..], &self.url) {
            ([], None) => note(
                "",
                "neither a `command` nor a `url` locates the server",
                "write command = [\"program\", \"argument\"], or url = \"https://…\"",
            ),
            ([_, ..], Some(_)) => {
                note(
                    "url",
                    "a server is either a `command` or a `url`",
                    "leave one of them out",
                );
            }
            ([program, ..], None) if program.is_empty() => {
                note(
                    "command",
                    "the program has no name",
                    "write command = [\"program\", \"argument\"]",
                );
            }
            _ => {}
        }
        if self.url.is_some() {
            let of_commands = [
                ("args", self.args.is_empty()),
                ("env", self.env.is_empty()),
                ("folder", self.folder.is_none()),
                ("sandbox", self.sandbox),
            ];
            for (key, is_empty) in of_commands {
                if !is_empty {
                    note(
                        key,
                        &format!("`{key}` is for a command"),
                        "leave it out; a URL takes `headers`",
                    );
                }
            }
        } else {
            let of_urls = [
                ("headers", self.headers.is_empty()),
                ("transport", self.transport.is_none()),
            ];
            for (key, is_empty) in of_urls {
                if !is_empty {
                    note(
                        key,
                        &format!("`{key}` is for a URL"),
                        "leave it out; a command takes `env`",
                    );
                }
            }
        }
        if self.transport == Some(TransportWord::Sse) && self.era == EraPreference::Modern {
            note(
                "era",
                "HTTP+SSE has no modern era",
                "leave out `era`, or `transport`",
            );
        }
        if let Some(auth) = &self.auth {
            let mut names = self.headers.keys();
            let has_header = names.any(|name| name.eq_ignore_ascii_case("authorization"));
            wrong.extend(auth.check(self.url.as_deref(), has_header, self.isolation));
        }
        let mut note =
            |key, what: &str, hint: &str| wrong.push((key, what.to_owned(), hint.to_owned()));
        let counts = [
            ("start_s", self.start_s),
            ("timeout_ms", self.timeout_ms),
            ("in_flight_max", self.in_flight_max as u64),
            ("sessions_max", self.sessions_max as u64),
            ("idle_s", self.idle_s),
            ("result_max_bytes", self.result_max_bytes as u64),
            ("list_max_bytes", self.list_max_bytes as u64),
            ("items_max", self.items_max as u64),
        ];
        for (key, _) in counts.iter().filter(|(_, count)| *count == 0) {
            note(
                key,
                "must be a whole number from 1",
                "leave it out for the default",
            );
        }
        wrong
    }

    /// Returns the name of the contract that the server's tools are published as: by default the server's own, `name`.
    pub fn contract<'c>(&'c self, name: &'c str) -> &'c str {
        self.contract.as_deref().unwrap_or(name)
    }

    /// Returns the files that its secrets are read from.
    pub fn secret_files(&self, base: &Path) -> Vec<PathBuf> {
        let values = self.env.values().chain(self.headers.values());
        let values = values.chain(&self.url).map(String::as_str);
        let files = values.flat_map(|value| secret_files(value, base));
        let of_auth = self.auth.iter().flat_map(|auth| auth.secret_files(base));
        files.chain(of_auth).collect()
    }

    /// Returns the address of the server, with every secret filled in. `guard` has the command of the guard of children, and
    /// `kept` the files to keep from them. The error names the reference, never a value.
    pub(crate) fn target(
        &self,
        base: &Path,
        guard: &[OsString],
        kept: &KeptFiles,
    ) -> Result<UpstreamTarget, String> {
        let resolved = |values: &BTreeMap<String, String>| {
            let each = values
                .iter()
                .map(|(name, value)| Ok((name.clone(), resolve_named(name, value, base)?)));
            each.collect::<Result<Vec<(String, String)>, String>>()
        };
        if let Some(url) = &self.url {
            let transport = match self.transport {
                None => UpstreamTransport::Either,
                Some(TransportWord::Http) => UpstreamTransport::Http,
                Some(TransportWord::Sse) => UpstreamTransport::Sse,
            };
            let auth = self.auth.as_ref().map(|auth| auth.resolved(base));
            let (auth, mut headers) = (auth.transpose()?, resolved(&self.headers)?);
            if let Some(AuthConfig::Header { name, value }) = &auth {
                headers.push((name.clone(), value.clone()));
            }
            return Ok(UpstreamTarget::Url(UpstreamUrl {
                url: resolve_url(url, base)?,
                headers,
                transport,
                auth,
            }));
        }
        let mut words = self.command.iter().chain(&self.args).map(OsString::from);
        Ok(UpstreamTarget::Command(UpstreamCommand {
            program: words.next().unwrap_or_default(),
            arguments: words.collect(),
            environment: resolved(&self.env)?
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            folder: Some(base.join(self.folder.as_deref().unwrap_or(Path::new("")))),
            guard: guard.to_owned(),
            kept: if self.sandbox {
                kept.clone()
            } else {
                KeptFiles::default()
            },
        }))
    }

    pub(crate) fn settings(&self) -> UpstreamSettings {
        UpstreamSettings {
            era: self.era,
            ask: self.ask.clone(),
            is_shared: matches!(
                self.isolation,
                UpstreamIsolation::Shared | UpstreamIsolation::Tenant
            ),
            start: Duration::from_secs(self.start_s),
            request: Duration::from_millis(self.timeout_ms),
            bounds: UpstreamBounds {
                message_max_bytes: self.result_max_bytes.max(self.list_max_bytes),
                list_max_bytes: self.list_max_bytes,
                items_max: self.items_max,
                ..UpstreamBounds::default()
            },
            ..UpstreamSettings::default()
        }
    }
}

/// Reads one text or a list of texts.
fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct WordsVisitor;
    impl<'de> Visitor<'de> for WordsVisitor {
        type Value = Vec<String>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a sequence")
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Vec<String>, E> {
            Ok(vec![word.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut words = Vec::new();
            while let Some(word) = list.next_element()? {
                words.push(word);
            }
            Ok(words)
        }
    }
    from.deserialize_any(WordsVisitor)
}

/// Leaves out anything that may contain a credential, written there or not.
impl fmt::Debug for UpstreamConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("UpstreamConfig")
            .field("isolation", &self.isolation)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_where_the_server_is_once() {
        let command = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let url = || Some("https://example.org/mcp".to_owned());
        let sound = UpstreamConfig {
            command: command(&["uvx", "mcp-server-time"]),
            ..UpstreamConfig::default()
        };
        assert_eq!(sound.check("time"), []);
        let keys = |config: &UpstreamConfig, name: &str| -> Vec<&str> {
            config
                .check(name)
                .into_iter()
                .map(|(key, ..)| key)
                .collect()
        };
        assert_eq!(keys(&UpstreamConfig::default(), "Time"), ["", ""]);
        assert_eq!(
            keys(
                &UpstreamConfig {
                    url: url(),
                    ..sound.clone()
                },
                "t"
            ),
            ["url"]
        );
        let mixed = UpstreamConfig {
            url: url(),
            args: command(&["a"]),
            in_flight_max: 0,
            ..UpstreamConfig::default()
        };
        assert_eq!(keys(&mixed, "t"), ["args", "in_flight_max"]);
        let transport = Some(TransportWord::Sse);
        let modern = UpstreamConfig {
            url: url(),
            transport,
            era: EraPreference::Modern,
            ..UpstreamConfig::default()
        };
        assert_eq!(keys(&modern, "t"), ["era"]);
        assert_eq!(
            keys(&UpstreamConfig { transport, ..sound }, "t"),
            ["transport"]
        );
    }

    #[test]
    fn a_missing_secret_is_named_and_a_found_one_is_not_printed() {
        let mut config = UpstreamConfig {
            command: vec!["x".to_owned()],
            ..UpstreamConfig::default()
        };
        config
            .env
            .insert("TOKEN".to_owned(), "env:WEIR_NO_SUCH_VARIABLE".to_owned());
        let error = config
            .target(Path::new("."), &[], &KeptFiles::default())
            .expect_err("the variable is not set");
        assert!(error.contains("WEIR_NO_SUCH_VARIABLE"), "{error}");
        config.env.insert("TOKEN".to_owned(), "hunter2".to_owned());
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
