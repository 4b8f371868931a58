//! Applies an edited configuration while serving: everything that may change, or nothing if there is any problem.
//!
//! Every problem is reported, as at start. Calls in flight end under the old configuration. Keys that only a new process can
//! apply (addresses, folders, sizes of tables) keep their values and are reported.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use weir_audit::AdminAct;
use weir_connections::ConnectionRegistry;
use weir_contracts::FileProblem;
use weir_plugin_host::LoadReport;
use weir_upstream::{ResolvedUpstream, UpstreamRegistry};

use crate::{
    config::{
        self, AdminConfig, ContractsConfig, GatewayConfig, HttpConfig, IdentityConfig,
        LimitsConfig, LogConfig, MetricsConfig, PolicyConfig, access::AccessRules,
    },
    control::ControlPlane,
    telemetry,
};

const FILE: &str = "weir.toml";
/// The hint on how to name a secret.
const SECRET: &str =
    "set the variable that `env:NAME` names, or write the file that `file:path` names";

/// Reads the configuration as at start: the file, overridden by flags and environment.
pub type Read = Box<dyn Fn() -> Result<GatewayConfig, Vec<FileProblem>> + Send + Sync>;

/// Reloads the configuration of a running gateway, one reload at a time.
pub struct ConfigReloader {
    control: Arc<ControlPlane>,
    read: Read,
    /// The connections in effect. The lock allows one reload at a time.
    connections: Mutex<Arc<ConnectionRegistry>>,
}

/// The outcome of a reload.
#[derive(Debug)]
pub struct ReloadOutcome {
    /// Places in the configuration, such as `/limits/timeout_ms`.
    pub changed: Vec<String>,
    /// The keys that changed in the file but take effect only after a restart.
    pub needs_restart: Vec<String>,
    pub plugins: Vec<LoadReport>,
}

/// The resources that a configuration refers to, opened and resolved.
pub struct OpenedConfig {
    pub connections: ConnectionRegistry,
    pub metrics_token: Option<String>,
    pub upstreams: Vec<ResolvedUpstream>,
    /// The problems of connections and upstreams that could not be opened, which are left out. A start continues without these, a
    /// reload does not.
    pub left_out: Vec<FileProblem>,
}

/// Runs the checks that remain after parsing a configuration. `before` has connections that may be kept.
pub fn open(
    config: &GatewayConfig,
    before: &ConnectionRegistry,
    upstreams: &UpstreamRegistry,
) -> Result<OpenedConfig, Vec<FileProblem>> {
    let (mut problems, places) = (Vec::new(), &config.places);
    for (section, rules) in [
        ("http", AccessRules::public(config)),
        ("admin", AccessRules::admin(config)),
    ] {
        let wrong = rules.problems().into_iter();
        problems.extend(wrong.map(|(key, message, hint)| {
            let problem = places.problem(format!("/{section}/{key}"), message);
            problem.hint(hint)
        }));
    }
    if let Some(filter) = &config.log.filter
        && !telemetry::is_filter(filter)
    {
        let problem = places.problem("/log/filter", "must be a filter of log lines");
        let hint = "write a level as \"info\", or with levels of parts as \"info,weir=debug\"";
        problems.push(problem.hint(hint));
    }
    if places.has("/policy/folder") && !config.policy.folder.is_dir() {
        let problem = places.problem("/policy/folder", "is not a folder that can be read");
        let hint = "correct its name, or make the folder: nothing is served without the policies that should be in force";
        problems.push(problem.hint(hint));
    }
    let token = config
        .metrics
        .token
        .as_deref()
        .map(|token| weir_connections::config::resolve(token, &config.base));
    let metrics_token = token.transpose().unwrap_or_else(|what| {
        problems.push(places.problem("/metrics/token", what).hint(SECRET));
        None
    });
    if metrics_token.as_deref() == Some("") {
        let problem = places.problem("/metrics/token", "is empty, so that no scraper can show it");
        problems.push(problem.hint(SECRET));
    }
    let (connections, wrong) = before.renewed(&config.connections, &config.base);
    let left_out = wrong.into_iter().map(|(name, what)| {
        let is_secret = ["environment", "secret", "${"]
            .iter()
            .any(|word| what.contains(word));
        let hint = if is_secret {
            SECRET
        } else {
            "see docs/connections.md for how each kind is written"
        };
        places
            .problem(format!("/connections/{name}"), what)
            .hint(hint)
    });
    let mut left_out: Vec<FileProblem> = left_out.collect();
    let (upstreams, wrong) =
        upstreams.resolve(&config.upstreams, &config.base, &config.kept_files());
    let without_secret = wrong.into_iter().map(|(name, what)| {
        places
            .problem(format!("/upstreams/{name}"), what)
            .hint(SECRET)
    });
    left_out.extend(without_secret);
    if !problems.is_empty() {
        problems.extend(left_out);
        return Err(problems);
    }
    Ok(OpenedConfig {
        connections,
        metrics_token,
        upstreams,
        left_out,
    })
}

impl ConfigReloader {
    /// Creates the reload. `connections` are those in effect, and `read` reads the configuration again.
    pub fn new(
        control: Arc<ControlPlane>,
        connections: Arc<ConnectionRegistry>,
        read: Read,
    ) -> Self {
        Self {
            control,
            read,
            connections: Mutex::new(connections),
        }
    }

    /// Reloads the configuration. `by` is the caller, for the audit trail.
    pub async fn run(&self, by: &str) -> Result<ReloadOutcome, Vec<FileProblem>> {
        let taken = self.take(by).await;
        self.control
            .gateway()
            .metrics()
            .config_reload(taken.is_ok());
        taken
    }

    async fn take(&self, by: &str) -> Result<ReloadOutcome, Vec<FileProblem>> {
        let mut connections = self.connections.lock().await;
        let read = (self.read)()?;
        let old = Arc::clone(&self.control.gateway().config());
        let new = with_what_must_stay(&old, read.clone())?;
        let opened = open(&new, &connections, self.control.gateway().upstreams())?;
        if !opened.left_out.is_empty() {
            return Err(opened.left_out);
        }
        let changed = differences(&old, &new);
        let needs_restart = differences(&new, &read);
        self.record(&old, &new, &changed, by)?;
        *connections = Arc::new(opened.connections);
        telemetry::set_filter(&new.log);
        self.control
            .gateway()
            .metrics()
            .set_token(opened.metrics_token.as_deref());
        let settings = new.plugins.clone();
        self.control.gateway().upstreams().take(opened.upstreams);
        self.control.reconfigure(new);
        self.control.set_refused_connections(Vec::new());
        self.control.set_connections(Arc::clone(&connections));
        let plugins = self
            .control
            .gateway()
            .host()
            .reconfigure(settings, Arc::clone(&connections))
            .await;
        plugins
            .iter()
            .for_each(|report| self.control.note_plugin(report));
        Ok(ReloadOutcome {
            changed,
            needs_restart,
            plugins,
        })
    }

    /// Records a reload; one that cannot be recorded is not carried out.
    fn record(
        &self,
        old: &GatewayConfig,
        new: &GatewayConfig,
        changed: &[String],
        by: &str,
    ) -> Result<(), Vec<FileProblem>> {
        let audit = self.control.gateway().audit();
        let places = |places: &[String]| Map::from_iter([("changed".to_owned(), json!(places))]);
        let mut recorded = audit.admin(
            AdminAct::ConfigReload,
            FILE,
            None,
            by,
            Some(&places(changed)),
        );
        for name in old
            .plugins
            .keys()
            .chain(new.plugins.keys())
            .collect::<std::collections::BTreeSet<_>>()
        {
            let grants = |config: &GatewayConfig| {
                config
                    .plugins
                    .get(name)
                    .map(|plugin| plugin.grants.clone())
                    .unwrap_or_default()
            };
            if grants(old) != grants(new) {
                let words = |config: &GatewayConfig| {
                    let words = grants(config).into_iter();
                    json!(
                        words
                            .map(|(to, grant)| (to, grant.word().to_owned()))
                            .collect::<BTreeMap<_, _>>()
                    )
                };
                let detail = Map::from_iter([
                    ("old".to_owned(), words(old)),
                    ("new".to_owned(), words(new)),
                ]);
                recorded = recorded.and_then(|()| {
                    audit.admin(AdminAct::GrantChange, name, None, by, Some(&detail))
                });
            }
        }
        recorded.map_err(|error| vec![FileProblem::new(FILE, "", error.to_string())])
    }
}

/// Takes the keys that are read while serving from the new configuration, and those that are fixed at the start from the old
/// one.
///
/// Each section and each key is named, and none is copied by `..`: a new key does not compile until it is decided here which kind
/// it is. Both kinds must remain consistent: an address that is kept may need a rule that is removed.
fn with_what_must_stay(
    old: &GatewayConfig,
    new: GatewayConfig,
) -> Result<GatewayConfig, Vec<FileProblem>> {
    let GatewayConfig {
        http,
        identity,
        contracts,
        metrics,
        limits,
        log,
        connections,
        plugins,
        upstreams,
        trust,
        views,
        policy,
        base,
        places,
        admin,
        folders: _,
        state: _,
        audit: _,
        traces: _,
    } = new;
    let new = GatewayConfig {
        folders: old.folders.clone(),
        state: old.state.clone(),
        http: HttpConfig {
            listen: old.http.listen,
            hosts: http.hosts,
            origins: http.origins,
            public_url: http.public_url,
            openai_apps_challenge: http.openai_apps_challenge,
            body_max_bytes: http.body_max_bytes,
            connections_max: old.http.connections_max,
            address_connections_max: old.http.address_connections_max,
            page_size: http.page_size,
            list_ttl_ms: http.list_ttl_ms,
            sessions_max: old.http.sessions_max,
            session_idle_s: old.http.session_idle_s,
            drain_s: http.drain_s,
            streams_max: old.http.streams_max,
            rest: http.rest,
            forms: http.forms,
        },
        identity: IdentityConfig {
            required: identity.required,
            issuers: identity.issuers,
            dpop_bound_access_tokens_required: identity.dpop_bound_access_tokens_required,
        },
        admin: AdminConfig {
            listen: old.admin.listen,
            enabled: old.admin.enabled,
            hosts: admin.hosts,
            oidc: admin.oidc,
        },
        audit: old.audit.clone(),
        contracts: ContractsConfig {
            drift_interval_s: contracts.drift_interval_s,
            impact_days: contracts.impact_days,
        },
        metrics: MetricsConfig {
            token: metrics.token,
            tools_max: old.metrics.tools_max,
        },
        traces: old.traces.clone(),
        limits: LimitsConfig {
            in_flight_max: old.limits.in_flight_max,
            instances_max: old.limits.instances_max,
            timeout_ms: limits.timeout_ms,
            tasks_max: limits.tasks_max,
            agent_rate: limits.agent_rate,
            ledger: old.limits.ledger.clone(),
            agent_quota_day: limits.agent_quota_day,
            agent_quota_month: limits.agent_quota_month,
            held_max_bytes: limits.held_max_bytes,
            agent_held_max_bytes: limits.agent_held_max_bytes,
        },
        log: LogConfig {
            format: old.log.format,
            filter: log.filter,
        },
        connections,
        plugins,
        upstreams,
        trust,
        policy: PolicyConfig {
            folder: old.policy.folder.clone(),
            mode: policy.mode,
            default: policy.default,
        },
        views, // with the next look at the contracts, which prepares their lists
        base,
        places,
    };
    config::check(&new).map(|()| new)
}

/// Returns the places where two configurations differ.
fn differences(old: &GatewayConfig, new: &GatewayConfig) -> Vec<String> {
    let (old_values, new_values) = (values(old), values(new));
    let mut places: Vec<String> = old_values
        .iter()
        .filter(|(place, value)| new_values.get(*place) != Some(value))
        .map(|(place, _)| place.clone())
        .collect();
    places.extend(named("connections", &old.connections, &new.connections));
    places.extend(named("plugins", &old.plugins, &new.plugins));
    places.extend(named("upstreams", &old.upstreams, &new.upstreams));
    places.extend(named("trust", &old.trust, &new.trust));
    places.extend(named("views", &old.views, &new.views));
    if old.state.url != new.state.url {
        places.push("/state/url".to_owned());
    }
    if old.limits.ledger != new.limits.ledger {
        places.push("/limits/ledger".to_owned());
    }
    if old.metrics.token != new.metrics.token {
        places.push("/metrics/token".to_owned());
    }
    if old.traces.headers != new.traces.headers {
        places.push("/traces/headers".to_owned());
    }
    places
}

fn named<T: PartialEq>(
    section: &str,
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
) -> Vec<String> {
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    let other = new
        .iter()
        .filter(|(name, value)| old.get(*name) != Some(value))
        .map(|(name, _)| name);
    gone.chain(other)
        .map(|name| format!("/{section}/{name}"))
        .collect()
}

/// Returns every key of the sections that have a fixed set of keys, by place.
fn values(config: &GatewayConfig) -> BTreeMap<String, Value> {
    let sections = config.sections();
    let keys = sections.iter().flat_map(|(section, value)| {
        let keys = value.as_object().into_iter().flatten();
        keys.map(move |(key, value)| (format!("/{section}/{key}"), value.clone()))
    });
    keys.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::app::{AppOptions, GatewayApp};

    /// A draft names the folder of its file, which is often also that of the state: both a start and a reload accept this. Both
    /// refuse any path that leads into the state itself, whatever it is called.
    #[tokio::test]
    async fn a_connection_lies_around_the_state_and_not_in_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let read = |base: &Path, path: &str| {
            let connections = ["source", "data"]
                .map(|name| format!("[connections.{name}]\nkind = 'files'\npath = '{path}'\n"));
            let text = format!(
                "[folders]\nstate = 'st'\n[log]\nfilter = 'off'\n{}",
                connections.concat()
            );
            config::read(FILE, &text, base).expect("valid")
        };
        let places = |problems: &[FileProblem]| {
            problems
                .iter()
                .map(|problem| problem.place.clone())
                .collect::<Vec<_>>()
        };
        let app = GatewayApp::open(read(folder.path(), "."), AppOptions::default())
            .await
            .expect("it starts");
        assert_eq!(places(&app.control.refused_connections()), [""; 0]);
        for (path, refused) in [
            (".", &[][..]),
            ("st", &["/connections/data", "/connections/source"]),
        ] {
            let again = read(folder.path(), path);
            let reload = ConfigReloader::new(
                app.control.clone(),
                app.connections.clone(),
                Box::new(move || Ok(again.clone())),
            );
            let problems = reload.run("a test").await.err().unwrap_or_default();
            assert_eq!(places(&problems), refused, "{problems:?}");
        }
        let other = tempfile::tempdir().expect("a temporary folder");
        let app = GatewayApp::open(read(other.path(), "st"), AppOptions::default())
            .await
            .expect("the rest is served");
        assert_eq!(
            places(&app.control.refused_connections()),
            ["/connections/data", "/connections/source"]
        );
        assert!(app.connections.get("source").is_none());
    }

    #[test]
    fn what_changed_is_told_from_what_needs_a_restart() {
        let read = |text: &str| config::read(FILE, text, Path::new(".")).expect("valid");
        let old =
            read("[http]\nlisten = '127.0.0.1:1'\n[connections.a]\nkind = 'files'\npath = 'a'\n");
        let read = read(
            "[http]\nlisten = '127.0.0.1:2'\nlist_ttl_ms = 7\n[connections.a]\nkind = 'files'\npath = 'b'\n[limits]\nin_flight_max = 1\n",
        );
        let new = with_what_must_stay(&old, read.clone()).expect("they go together");
        assert_eq!(
            differences(&old, &new),
            ["/http/list_ttl_ms", "/connections/a"]
        );
        assert_eq!(
            differences(&new, &read),
            ["/http/listen", "/limits/in_flight_max"]
        );
        assert_eq!(differences(&old, &old), [""; 0]);
    }
    /// A gateway that others can reach remains closed to them, even though the edited file is valid: its address changes only at
    /// a restart.
    #[test]
    fn what_stays_has_to_go_with_what_is_new() {
        let read = |text: &str| config::read(FILE, text, Path::new(".")).expect("valid");
        let old = read("[http]\nlisten = '10.0.0.5:1'\n[identity]\nrequired = true\n");
        let problems = with_what_must_stay(&old, read("[http]\nlisten = '127.0.0.1:1'\n"))
            .expect_err("it would be open");
        assert!(
            format!("{problems:?}").contains("required = true"),
            "{problems:?}"
        );
    }
}
