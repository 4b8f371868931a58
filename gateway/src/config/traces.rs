//! `[traces]`: where spans are sent, and for which calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use url::Url;

use super::AgentRate;

/// The section `[traces]`. Without an endpoint, here or in the environment, nothing is traced.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceConfig {
    /// The collector that takes OTLP over HTTP; `/v1/traces` is added if it is missing.
    pub endpoint: Option<String>,
    /// The share of calls that are traced if the caller's trace does not decide: 0 to 1; all by default.
    pub ratio: Option<f64>,
    /// How often callers may decide that their calls are traced; with `off`, they never decide.
    pub caller_rate: AgentRate,
    /// Headers for the collector, with secrets as `env:NAME` or `file:path`.
    #[serde(skip_serializing)]
    pub headers: BTreeMap<String, String>,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            ratio: None,
            caller_rate: AgentRate(Some((100, 1))),
            headers: BTreeMap::new(),
        }
    }
}

/// Leaves out the headers, references or not.
impl std::fmt::Debug for TraceConfig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("TraceConfig")
            .field("endpoint", &self.endpoint)
            .field("ratio", &self.ratio)
            .field("caller_rate", &self.caller_rate)
            .finish_non_exhaustive()
    }
}

/// Returns `true` for a URL to which spans may be posted: the operator wrote it, so any host is permitted.
pub fn is_collector(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    })
}

/// Returns its problems: the place, the message, and a hint.
pub(super) fn check(traces: &TraceConfig) -> Vec<(String, String, &'static str)> {
    let mut problems = Vec::new();
    let mut problem = |key: &str, message: &str, hint| {
        problems.push((format!("/traces/{key}"), message.to_owned(), hint));
    };
    if traces
        .endpoint
        .as_deref()
        .is_some_and(|url| !is_collector(url))
    {
        problem(
            "endpoint",
            "must be an http or https URL without credentials, query and fragment",
            "write it as \"http://127.0.0.1:4318\"; credentials go into `headers`",
        );
    }
    if traces
        .ratio
        .is_some_and(|ratio| !(0.0..=1.0).contains(&ratio))
    {
        problem(
            "ratio",
            "must be a number from 0 to 1",
            "write 0.01 for one call in a hundred",
        );
    }
    problems
}
