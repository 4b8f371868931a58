//! Reads `weir.toml`: every problem at once, each with its place and a hint.

use std::{collections::BTreeMap, path::Path};

use serde::de::DeserializeOwned;
use toml::{Table, Value};
use weir_contracts::{FileProblem, name};
use weir_plugin_host::{INSTANCES_MAX, signature::is_public_key};
use weir_schema::client::ClientProfile;

use super::{
    ConfigLines, FoldersConfig, GatewayConfig,
    fault_path::{at_fault, first_line, without},
    issuers, ledger_place, plugins, sign_in, state_store, traces,
    words::{self, KeyFault},
};

const SECTIONS: [&str; 17] = [
    "folders",
    "state",
    "http",
    "identity",
    "admin",
    "audit",
    "contracts",
    "metrics",
    "traces",
    "limits",
    "log",
    "policy",
    "connections",
    "plugins",
    "upstreams",
    "trust",
    "views",
];
/// The most names or patterns in one list of a view.
const VIEW_NAMES_MAX: usize = 1000;
const PATTERN_MAX: usize = 200;
/// Numbers that may not be 0.
const AT_LEAST_ONE: [&str; 12] = [
    "/http/body_max_bytes",
    "/http/connections_max",
    "/http/address_connections_max",
    "/http/page_size",
    "/http/sessions_max",
    "/http/streams_max",
    "/audit/fsync_interval_ms",
    "/audit/segment_max_bytes",
    "/metrics/tools_max",
    "/limits/in_flight_max",
    "/limits/instances_max",
    "/limits/timeout_ms",
];
/// Every section has fewer keys than this; it bounds the search for further problems.
const PROBLEMS_MAX: usize = 32;

/// Reads a configuration file. Relative paths in it start at its folder. `Err` has every problem that was found.
pub fn load(path: &Path) -> Result<GatewayConfig, Vec<FileProblem>> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        vec![
            FileProblem::new(&file, "", format!("cannot be read: {error}"))
                .hint("name the file with --config FILE"),
        ]
    })?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    read(&file, &text, folder.unwrap_or(Path::new(".")))
}

/// Reads a configuration. `base` is the folder from which relative paths start.
pub fn read(file: &str, text: &str, base: &Path) -> Result<GatewayConfig, Vec<FileProblem>> {
    let table = toml::from_str::<Table>(text);
    let mut table = table.map_err(|error| vec![syntax(file, text, &error)])?;
    let mut reader = ConfigReader {
        places: ConfigLines::new(file, text),
        problems: Vec::new(),
    };
    let folders: FoldersConfig = reader.section(&mut table, "folders");
    let mut config = GatewayConfig {
        folders: FoldersConfig {
            contracts: base.join(folders.contracts),
            plugins: base.join(folders.plugins),
            state: base.join(folders.state),
            cache: folders.cache.map(|folder| base.join(folder)),
        },
        state: reader.section(&mut table, "state"),
        http: reader.section(&mut table, "http"),
        identity: reader.section(&mut table, "identity"),
        admin: reader.section(&mut table, "admin"),
        audit: reader.section(&mut table, "audit"),
        contracts: reader.section(&mut table, "contracts"),
        metrics: reader.section(&mut table, "metrics"),
        traces: reader.section(&mut table, "traces"),
        limits: reader.section(&mut table, "limits"),
        log: reader.section(&mut table, "log"),
        policy: reader.section(&mut table, "policy"),
        connections: reader.named(&mut table, "connections"),
        plugins: reader.named(&mut table, "plugins"),
        upstreams: reader.named(&mut table, "upstreams"),
        trust: reader.named(&mut table, "trust"),
        views: reader.named(&mut table, "views"),
        base: base.to_path_buf(),
        places: reader.places.clone(),
    };
    for key in table.keys() {
        let hint = match name::nearest(key, SECTIONS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", SECTIONS.join(", ")),
        };
        reader.problem(format!("/{key}"), format!("unknown key `{key}`"), &hint);
    }
    config.policy.folder = base.join(&config.policy.folder);
    for plugin in config.plugins.values_mut() {
        plugin.native = plugin.native.take().map(|library| base.join(library));
    }
    reader.trust(&mut config);
    reader.bounds(&config);
    match reader.problems.is_empty() {
        true => Ok(config),
        false => Err(reader.problems),
    }
}

/// Checks the rules for a whole configuration, for example after flags have changed it.
pub fn check(config: &GatewayConfig) -> Result<(), Vec<FileProblem>> {
    let mut reader = ConfigReader {
        places: config.places.clone(),
        problems: Vec::new(),
    };
    reader.bounds(config);
    if reader.problems.is_empty() {
        Ok(())
    } else {
        Err(reader.problems)
    }
}

struct ConfigReader {
    places: ConfigLines,
    problems: Vec<FileProblem>,
}

impl ConfigReader {
    fn problem(&mut self, place: String, message: impl Into<String>, hint: &str) {
        let problem = self.places.problem(place, message);
        self.problems.push(if hint.is_empty() {
            problem
        } else {
            problem.hint(hint)
        });
    }

    /// Reads a section whose keys all have defaults: each key is tried alone, so that each problem is found.
    fn section<T: DeserializeOwned + Default>(&mut self, table: &mut Table, name: &str) -> T {
        let Some(value) = table.remove(name) else {
            return T::default();
        };
        let Value::Table(section) = value else {
            self.problem(
                format!("/{name}"),
                "must be a table",
                &format!("write [{name}]"),
            );
            return T::default();
        };
        self.keys(section, &format!("/{name}"))
    }

    fn keys<T: DeserializeOwned + Default>(&mut self, section: Table, place: &str) -> T {
        let mut sound = Table::new();
        for (key, value) in section {
            let alone = Table::from_iter([(key.clone(), value.clone())]);
            match Value::Table(alone).try_into::<T>() {
                Ok(_) => {
                    sound.insert(key, value);
                }
                Err(error) => {
                    let alone = Value::Table(Table::from_iter([(key.clone(), value)]));
                    let mut path = at_fault::<T>(&alone, &error);
                    if value_fault(place, &error).missing.is_some() {
                        // A missing key has no place: the list element or the section around it has one.
                        let is_index = |key: &String| key.parse::<usize>().is_ok();
                        path.truncate(path.iter().rposition(is_index).unwrap_or(0) + 1);
                    }
                    let place = format!("{place}/{}", path.join("/"));
                    let fault = value_fault(&place, &error);
                    self.problem(place, fault.message, &fault.hint);
                }
            }
        }
        Value::Table(sound).try_into().unwrap_or_default()
    }

    /// Tables of tables: `[connections.NAME]`, `[plugins.NAME]`, `[upstreams.NAME]`.
    fn named<T: DeserializeOwned>(&mut self, table: &mut Table, name: &str) -> BTreeMap<String, T> {
        let entries = match table.remove(name) {
            None => return BTreeMap::new(),
            Some(Value::Table(entries)) => entries,
            Some(_) => {
                self.problem(
                    format!("/{name}"),
                    "must be a table of tables",
                    &format!("write [{name}.NAME]"),
                );
                return BTreeMap::new();
            }
        };
        let mut read = BTreeMap::new();
        for (key, value) in entries {
            let place = format!("/{name}/{key}");
            if let Some(entry) = self.entry(value, &place) {
                read.insert(key, entry);
            }
        }
        read
    }

    /// Reads one entry with required keys: faulty parts are removed one by one, so that each is reported.
    fn entry<T: DeserializeOwned>(&mut self, mut value: Value, place: &str) -> Option<T> {
        let mut taken: Vec<String> = Vec::new();
        while taken.len() < PROBLEMS_MAX {
            let error = match value.clone().try_into::<T>() {
                Ok(entry) => return taken.is_empty().then_some(entry),
                Err(error) => error,
            };
            let fault = value_fault(place, &error);
            if fault
                .missing
                .as_ref()
                .is_some_and(|missing| taken.contains(missing))
            {
                return None;
            }
            let wrong = match &fault.unknown {
                Some(unknown) => vec![unknown.clone()],
                None if fault.missing.is_some() => Vec::new(),
                None => at_fault::<T>(&value, &error),
            };
            let place = format!(
                "{place}{}",
                wrong
                    .iter()
                    .map(|key| format!("/{key}"))
                    .collect::<String>()
            );
            let fault = self::value_fault(&place, &error);
            self.problem(place, fault.message, &fault.hint);
            value = without(&value, &wrong)?;
            taken.push(wrong.concat());
        }
        None
    }

    /// Gives each plugin the keys of its allowed signers.
    fn trust(&mut self, config: &mut GatewayConfig) {
        for (signer, trust) in &config.trust {
            if !is_public_key(&trust.minisign) {
                let place = format!("/trust/{signer}/minisign");
                let hint = "write the line of `minisign.pub` that begins with RW";
                self.problem(place, "is not a public key of minisign", hint);
            }
        }
        let GatewayConfig { trust, plugins, .. } = config;
        for (plugin, settings) in plugins {
            for signer in &settings.signed_by {
                match trust.get(signer) {
                    Some(trust) => drop(
                        settings
                            .trusted
                            .insert(signer.clone(), trust.minisign.clone()),
                    ),
                    None => self.problem(
                        format!("/plugins/{plugin}/signed_by"),
                        format!("no one is trusted as `{signer}`"),
                        &format!("define [trust.{signer}]"),
                    ),
                }
            }
        }
    }

    fn bounds(&mut self, config: &GatewayConfig) {
        if let Some(listen) = config.http.listen
            && !listen.ip().is_loopback()
            && !config.identity.needs_credential()
        {
            self.problem(
                "/http/listen".into(),
                format!("{listen} is not a loopback address, and without a key anyone could call every tool"),
                "set `required = true` under [identity], and make a key for each agent with `weir keys create`",
            );
        }
        let sections = serde_json::Value::Object(config.sections());
        for place in AT_LEAST_ONE {
            if sections
                .pointer(place)
                .is_some_and(|value| value.as_u64() == Some(0))
            {
                let fault = words::parse_fault("invalid value: integer, expected u64", place, 1);
                self.problem(place.into(), fault.message, &fault.hint);
            }
        }
        if config.limits.instances_max > INSTANCES_MAX {
            self.problem(
                "/limits/instances_max".into(),
                format!("must be a whole number from 1 to {INSTANCES_MAX}"),
                "leave it out for the most there can be",
            );
        }
        for (plugin, settings) in &config.plugins {
            for (key, message, hint) in plugins::check(plugin, settings) {
                self.problem(format!("/plugins/{plugin}/{key}"), message, &hint);
            }
            for connection in settings
                .grants
                .keys()
                .filter(|name| !config.connections.contains_key(*name))
            {
                // A connection that exists but is wrong has already been reported.
                let wrong = format!("/connections/{connection}");
                let is_about_it =
                    |problem: &FileProblem| problem.place.split('/').take(3).eq(wrong.split('/'));
                if self.problems.iter().any(is_about_it) {
                    continue;
                }
                let place = format!("/plugins/{plugin}/grants/{connection}");
                let hint = format!("define [connections.{connection}]");
                self.problem(
                    place,
                    format!("there is no connection `{connection}`"),
                    &hint,
                );
            }
        }
        let signing_in = sign_in::check(config.admin.oidc.as_ref());
        let traced = traces::check(&config.traces);
        for (place, message, hint) in state_store::check(config) {
            self.problem(place, message, hint);
        }
        if let Some((place, message, hint)) = ledger_place::check(config) {
            self.problem(place, message, hint);
        }
        let more = issuers::check(config).into_iter().chain(signing_in);
        for (place, message, hint) in more.chain(traced) {
            self.problem(place, message, hint);
        }
        self.copies(config);
        self.upstreams(config);
        self.views(config);
    }

    /// Refuses settings of a bucket if none is named: the trail would not be copied anywhere.
    fn copies(&mut self, config: &GatewayConfig) {
        let audit = &config.audit;
        for (key, value) in [
            ("copies_endpoint", &audit.copies_endpoint),
            ("copies_region", &audit.copies_region),
        ] {
            if audit.copies.is_none() && value.is_some() {
                self.problem(
                    format!("/audit/{key}"),
                    "has no effect without `copies`: the trail is copied nowhere",
                    "name the bucket, as copies = \"s3://bucket/weir\", or leave this out",
                );
            }
        }
    }

    fn upstreams(&mut self, config: &GatewayConfig) {
        let mut contracts: BTreeMap<&str, &str> = BTreeMap::new();
        for (upstream, settings) in &config.upstreams {
            for (key, what, hint) in settings.check(upstream) {
                let key = if key.is_empty() {
                    String::new()
                } else {
                    format!("/{key}")
                };
                self.problem(format!("/upstreams/{upstream}{key}"), what, &hint);
            }
            let contract = settings.contract(upstream);
            if let Err(message) = name::check_contract(contract) {
                let hint =
                    "give the server another name, or name its contract with `contract = \"…\"`";
                self.problem(format!("/upstreams/{upstream}/contract"), message, hint);
            }
            if let Some(other) = contracts.insert(contract, upstream) {
                let what =
                    format!("the contract `{contract}` is that of the upstream `{other}` already");
                let hint = "give one of them another name with `contract = \"…\"`";
                self.problem(format!("/upstreams/{upstream}/contract"), what, hint);
            }
        }
    }

    /// Checks views. The name of a view is also a path segment, like that of a contract.
    fn views(&mut self, config: &GatewayConfig) {
        for (view, settings) in &config.views {
            let place = format!("/views/{view}");
            if name::check_contract(view).is_err() {
                let hint = "use a lowercase letter and then up to 31 of a-z, 0-9 and '-'";
                self.problem(place.clone(), "is not the name of a view", hint);
            }
            for (index, contract) in settings.contracts.iter().enumerate() {
                if let Err(message) = name::check_contract(contract) {
                    self.problem(
                        format!("{place}/contracts/{index}"),
                        message,
                        "name the contract as it is listed",
                    );
                }
            }
            let patterns = [
                ("tools", &settings.tools),
                ("always_load", &settings.always_load),
            ];
            for (key, pattern, index) in patterns.iter().flat_map(|(key, patterns)| {
                let each = patterns.iter().enumerate();
                each.map(move |(index, pattern)| (key, pattern, index))
            }) {
                if pattern.is_empty() || pattern.len() > PATTERN_MAX {
                    let message = format!("a pattern has 1 to {PATTERN_MAX} characters");
                    self.problem(
                        format!("{place}/{key}/{index}"),
                        message,
                        "write a name, or a pattern as `list_*`",
                    );
                }
            }
            let is_anthropic = settings.profile == Some(ClientProfile::Anthropic);
            if !settings.always_load.is_empty() && !is_anthropic {
                self.problem(
                    format!("{place}/always_load"),
                    "only clients of the profile `anthropic` read it",
                    "say `profile = \"anthropic\"`, or leave it out",
                );
            }
            for (key, names) in [("contracts", &settings.contracts)]
                .into_iter()
                .chain(patterns)
            {
                if names.len() > VIEW_NAMES_MAX {
                    let message = format!("has more than {VIEW_NAMES_MAX} entries");
                    self.problem(
                        format!("{place}/{key}"),
                        message,
                        "use a pattern, or leave it out for all",
                    );
                }
            }
        }
    }
}

fn syntax(file: &str, text: &str, error: &toml::de::Error) -> FileProblem {
    let place = error.span().map_or(String::new(), |span| {
        let before = text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |last| last.chars().count())
            + 1;
        format!("line {line}, column {column}")
    });
    FileProblem::new(file, place, error.message().trim())
        .hint("see docs/configuration.md for how each key is written")
}

fn value_fault(place: &str, error: &toml::de::Error) -> KeyFault {
    let key = place.rsplit('/').next().unwrap_or_default();
    words::parse_fault(
        first_line(error),
        key,
        u64::from(AT_LEAST_ONE.contains(&place)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_reported_with_its_place() {
        let text = r#"
            colour = "red"
            [http]
            listen = "0.0.0.0:80"
            prot = 1
            page_size = "many"
            [limits]
            in_flight_max = 0
            [connections.data]
            kind = "files"
            path = "data"
            passwort = "hunter2"
            rigths = 1
            [plugins.sheet.grants]
            dada = "write"
        "#;
        let problems = read("weir.toml", text, Path::new(".")).expect_err("refused");
        let places: Vec<&str> = problems
            .iter()
            .map(|problem| problem.place.as_str())
            .collect();
        for place in [
            "/colour",
            "/http/listen",
            "/http/prot",
            "/http/page_size",
            "/limits/in_flight_max",
            "/connections/data/passwort",
            "/connections/data/rigths",
            "/plugins/sheet/grants/dada",
        ] {
            assert!(
                places.contains(&place),
                "{place} is missing from {places:?}"
            );
        }
        let all = format!("{problems:?}");
        assert!(
            !all.contains("hunter2"),
            "a value that may be secret is repeated: {all}"
        );
        assert!(
            problems
                .iter()
                .all(|problem| problem.line.is_some() && problem.hint.is_some()),
            "{all}"
        );
    }

    /// Checks each problem by its line. Messages must not require knowledge of Rust.
    #[test]
    fn problems_are_told_in_the_words_of_who_writes_the_file() {
        let text = r#"[http]
page_size = "many"
list_ttl_ms = -5
listen = "here"
hosts = "weir.example"
[identity]
required = "yes"
[contracts]
impact_days = 5000000000
[audit]
fsync = "sometimes"
keep_day = 3
segment_max_bytes = 0
[limits]
agent_rate = "lots"
instances_max = 257
[connections.db]
kind = "postgresql"
url = 5
write = "hunter2"
[connections.files]
kind = "file"
[connections.web]
base_url = "https://hunter2"
[plugins.sql]
memory_max_mb = "64"
[plugins.sql.grants]
db = "wrte"
web = "read"
"#;
        let problems = read("weir.toml", text, Path::new(".")).expect_err("refused");
        let mut messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        messages.sort_by_key(|problem| {
            problem
                .split([':', ' '])
                .nth(1)
                .and_then(|line| line.parse::<u32>().ok())
        });
        let expected = "\
weir.toml:2 at /http/page_size: must be a whole number from 1 to 9223372036854775807
  hint: write a number without quotes, such as 100
weir.toml:3 at /http/list_ttl_ms: must be a whole number from 0 to 9223372036854775807
  hint: write a number of milliseconds such as 5000, or leave it out for the default
weir.toml:4 at /http/listen: must be an address with its port
  hint: write it as \"127.0.0.1:8484\"
weir.toml:5 at /http/hosts: must be a list of texts
  hint: write it as [\"one\", \"another\"]
weir.toml:7 at /identity/required: must be true or false
  hint: write it without quotes
weir.toml:9 at /contracts/impact_days: must be a whole number from 0 to 4294967295
  hint: write a number of days such as 30, or leave it out for the default
weir.toml:11 at /audit/fsync: must be \"interval\", \"each\" or \"off\"
weir.toml:12 at /audit/keep_day: unknown key `keep_day`
  hint: did you mean `keep_days`?
weir.toml:13 at /audit/segment_max_bytes: must be a whole number from 1 to 9223372036854775807
  hint: write a number of bytes such as 1048576, or leave it out for the default
weir.toml:15 at /limits/agent_rate: must be a rate
  hint: write it as \"1000/s\", \"600/min\" or \"off\"
weir.toml:16 at /limits/instances_max: must be a whole number from 1 to 256
  hint: leave it out for the most there can be
weir.toml:19 at /connections/db/url: must be a text
  hint: write it in quotes
weir.toml:20 at /connections/db/write: must be true or false
  hint: write it without quotes
weir.toml:22 at /connections/files/kind: must be \"sqlite\", \"postgresql\", \"mariadb\", \"mysql\", \"http\" or \"files\"
  hint: did you mean \"files\"?
weir.toml:23 at /connections/web: `kind` is missing
  hint: write kind = \"sqlite\", \"postgresql\", \"mariadb\", \"mysql\", \"http\" or \"files\"
weir.toml:26 at /plugins/sql/memory_max_mb: must be a whole number from 0 to 4294967295
  hint: write a number of MB without quotes, such as 64
weir.toml:28 at /plugins/sql/grants/db: must be \"read\", \"write\" or \"statements\"
  hint: did you mean \"write\"?";
        assert_eq!(messages.join("\n"), expected);
    }

    /// Following a hint corrects the file: it names the unit, the nearest word, or nothing.
    #[test]
    fn a_hint_repairs_what_it_is_about() {
        let hint = |text: &str| {
            let problems = read("weir.toml", text, Path::new(".")).expect_err("refused");
            assert_eq!(problems.len(), 1, "{problems:?}");
            problems[0].hint.clone()
        };
        for (text, expected) in [
            (
                "[limits]\ntimeout_ms = \"5s\"",
                Some("write a number of milliseconds without quotes, such as 5000"),
            ),
            (
                "[http]\nsession_idle_s = \"1h\"",
                Some("write a number of seconds without quotes, such as 60"),
            ),
            (
                "[connections.mail]\nkind = \"http\"\nbase_url = \"http://x\"\ntimeout_ms = \"5s\"",
                Some("write a number of milliseconds without quotes, such as 5000"),
            ),
            (
                "[connections.db]\nkind = \"sqllite\"\npath = \"a.db\"",
                Some("did you mean \"sqlite\"?"),
            ),
            (
                "[connections.z]\nkind = \"files\"\npath = \".\"\n[plugins.sheet]\ngrants = { z = \"rw\" }",
                None,
            ),
        ] {
            assert_eq!(hint(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn paths_start_from_the_file() {
        let config = read(
            "x/weir.toml",
            "[folders]\ncontracts = \"tools\"\n",
            Path::new("x"),
        )
        .expect("read");
        assert_eq!(config.folders.contracts, Path::new("x/tools"));
        assert_eq!(config.folders.plugins, Path::new("x/plugins"));
    }
}
