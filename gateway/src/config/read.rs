//! Reads `weir.toml`: every problem at once, each with its place and a hint.

use std::{collections::BTreeMap, path::Path};

use serde::de::DeserializeOwned;
use toml::{Table, Value};
use weir_contracts::Problem;

use super::{Config, Folders};

/// A section has fewer keys than this; it bounds the search for further problems.
const PROBLEMS_MAX: usize = 32;

pub fn load(path: &Path) -> Result<Config, Vec<Problem>> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        vec![Problem::new(&file, "", format!("cannot be read: {error}")).hint("name the file with --config FILE")]
    })?;
    let base = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    read(&file, &text, base)
}

/// `base`: the folder that relative paths start from.
pub fn read(file: &str, text: &str, base: &Path) -> Result<Config, Vec<Problem>> {
    let mut table: Table = toml::from_str(text).map_err(|error| vec![syntax(file, text, &error)])?;
    let mut reader = Reader { file, problems: Vec::new() };
    let folders: Folders = reader.section(&mut table, "folders");
    let config = Config {
        folders: Folders {
            contracts: base.join(folders.contracts),
            plugins: base.join(folders.plugins),
            state: base.join(folders.state),
            cache: folders.cache.map(|folder| base.join(folder)),
        },
        http: reader.section(&mut table, "http"),
        identity: reader.section(&mut table, "identity"),
        admin: reader.section(&mut table, "admin"),
        audit: reader.section(&mut table, "audit"),
        contracts: reader.section(&mut table, "contracts"),
        metrics: reader.section(&mut table, "metrics"),
        limits: reader.section(&mut table, "limits"),
        log: reader.section(&mut table, "log"),
        connections: reader.named(&mut table, "connections"),
        plugins: reader.named(&mut table, "plugins"),
        base: base.to_path_buf(),
    };
    for key in table.keys() {
        reader.problem(
            format!("/{key}"),
            format!("unknown key `{key}`"),
            "known are folders, http, identity, admin, audit, contracts, metrics, limits, log, connections and plugins",
        );
    }
    reader.bounds(&config);
    match reader.problems.is_empty() {
        true => Ok(config),
        false => Err(reader.problems),
    }
}

/// The rules that hold for a whole configuration, for one that flags have changed.
pub fn check(config: &Config) -> Result<(), Vec<Problem>> {
    let mut reader = Reader { file: "(command line)", problems: Vec::new() };
    reader.bounds(config);
    if reader.problems.is_empty() { Ok(()) } else { Err(reader.problems) }
}

struct Reader<'a> {
    file: &'a str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, place: String, message: impl Into<String>, hint: &str) {
        let problem = Problem::new(self.file, place, message);
        self.problems.push(if hint.is_empty() { problem } else { problem.hint(hint) });
    }

    /// A section whose keys all have defaults: each key is tried alone, so that each problem is found.
    fn section<T: DeserializeOwned + Default>(&mut self, table: &mut Table, name: &str) -> T {
        let Some(value) = table.remove(name) else { return T::default() };
        let Value::Table(section) = value else {
            self.problem(format!("/{name}"), "must be a table", &format!("write [{name}]"));
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
                Err(error) => self.problem(format!("{place}/{key}"), first_line(&error), ""),
            }
        }
        Value::Table(sound).try_into().unwrap_or_default()
    }

    /// Tables of tables: `[connections.NAME]`, `[plugins.NAME]`.
    fn named<T: DeserializeOwned>(&mut self, table: &mut Table, name: &str) -> BTreeMap<String, T> {
        let entries = match table.remove(name) {
            None => return BTreeMap::new(),
            Some(Value::Table(entries)) => entries,
            Some(_) => {
                self.problem(format!("/{name}"), "must be a table of tables", &format!("write [{name}.NAME]"));
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

    /// One entry with required keys: unknown keys are taken out one by one, so that each is reported.
    fn entry<T: DeserializeOwned>(&mut self, mut value: Value, place: &str) -> Option<T> {
        let mut sound = true;
        for _ in 0..PROBLEMS_MAX {
            match value.clone().try_into::<T>() {
                Ok(entry) => return sound.then_some(entry),
                Err(error) => {
                    sound = false;
                    let message = first_line(&error);
                    let unknown = unknown_field(&message).map(str::to_owned);
                    let key = unknown.as_ref().map_or(String::new(), |key| format!("/{key}"));
                    self.problem(format!("{place}{key}"), message, "");
                    let removed = unknown.and_then(|key| value.as_table_mut()?.remove(&key));
                    removed.as_ref()?;
                }
            }
        }
        None
    }

    fn bounds(&mut self, config: &Config) {
        if let Some(listen) = config.http.listen
            && !listen.ip().is_loopback()
            && !config.identity.required
        {
            self.problem(
                "/http/listen".into(),
                format!("{listen} is not a loopback address, and without a key anyone could call every tool"),
                "set `required = true` under [identity], and make a key for each agent with `weir keys create`",
            );
        }
        for (place, value) in [
            ("/http/body_max_bytes", config.http.body_max_bytes),
            ("/http/connections_max", config.http.connections_max),
            ("/http/page_size", config.http.page_size),
            ("/http/sessions_max", config.http.sessions_max),
            ("/http/streams_max", config.http.streams_max),
            ("/audit/fsync_interval_ms", usize::try_from(config.audit.fsync_interval_ms).unwrap_or(usize::MAX)),
            ("/audit/segment_max_bytes", usize::try_from(config.audit.segment_max_bytes).unwrap_or(usize::MAX)),
            ("/metrics/tools_max", config.metrics.tools_max),
            ("/limits/in_flight_max", config.limits.in_flight_max),
            ("/limits/timeout_ms", usize::try_from(config.limits.timeout_ms).unwrap_or(usize::MAX)),
        ] {
            if value == 0 {
                self.problem(place.into(), "must be at least 1", "leave it out for the default");
            }
        }
        for (plugin, settings) in &config.plugins {
            for connection in settings.grants.keys().filter(|name| !config.connections.contains_key(*name)) {
                // One that is there and wrong has been told of.
                let wrong = format!("/connections/{connection}");
                let told = |problem: &Problem| problem.place.split('/').take(3).eq(wrong.split('/'));
                if self.problems.iter().any(told) {
                    continue;
                }
                let place = format!("/plugins/{plugin}/grants/{connection}");
                let hint = format!("define [connections.{connection}]");
                self.problem(place, format!("there is no connection `{connection}`"), &hint);
            }
        }
    }
}

fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Problem {
    let place = error.span().map_or(String::new(), |span| {
        let before = text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        format!("line {line}, column {column}")
    });
    Problem::new(file, place, error.message().trim())
}

/// Without the quoted source: it may hold a secret.
fn first_line(error: &toml::de::Error) -> String {
    error.message().lines().next().unwrap_or_default().to_owned()
}

fn unknown_field(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
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
        let places: Vec<&str> = problems.iter().map(|problem| problem.place.as_str()).collect();
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
            assert!(places.contains(&place), "{place} is missing from {places:?}");
        }
        let all = format!("{problems:?}");
        assert!(!all.contains("hunter2"), "a value that may be secret is repeated: {all}");
    }

    #[test]
    fn paths_start_from_the_file() {
        let config = read("x/weir.toml", "[folders]\ncontracts = \"tools\"\n", Path::new("x")).expect("read");
        assert_eq!(config.folders.contracts, Path::new("x/tools"));
        assert_eq!(config.folders.plugins, Path::new("x/plugins"));
    }
}
