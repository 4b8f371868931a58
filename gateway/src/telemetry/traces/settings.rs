//! Reads the configuration and the variables of OpenTelemetry. A key of the file overrides a variable.

use std::{collections::HashMap, path::Path};

use super::sampling::TraceSampler;
use crate::config::{self, AgentRate, traces::is_collector};

const PATH: &str = "/v1/traces";

/// The reason why traces cannot be sent: the place in the configuration and the problem.
#[derive(Debug)]
pub struct TraceFault {
    pub place: &'static str,
    pub message: String,
}

/// The settings in effect.
pub(super) struct TraceSettings {
    pub endpoint: String,
    pub headers: HashMap<String, String>,
    pub sampling: TraceSampler,
}

/// Returns `None` if nothing is traced.
pub(super) fn settle(
    config: &config::TraceConfig,
    base: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<TraceSettings>, TraceFault> {
    let is = |name: &str, word: &str| {
        variable(name).is_some_and(|text| text.trim().eq_ignore_ascii_case(word))
    };
    if is("OTEL_SDK_DISABLED", "true") {
        return Ok(None);
    }
    let Some(endpoint) = (match &config.endpoint {
        Some(endpoint) => Some(with_path(endpoint)),
        None if is("OTEL_TRACES_EXPORTER", "none") => None,
        None => of_environment(variable),
    }) else {
        return Ok(None);
    };
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        let value = weir_connections::config::resolve_named(name, value, base);
        let value = value.map_err(|message| TraceFault {
            place: "/traces/headers",
            message,
        })?;
        let is_sent = axum::http::HeaderName::try_from(name.as_str()).is_ok()
            && axum::http::HeaderValue::try_from(value.as_str()).is_ok();
        if !is_sent {
            return Err(TraceFault {
                place: "/traces/headers",
                message: format!("the header `{name}` cannot be sent"),
            });
        }
        headers.insert(name.clone(), value);
    }
    let (ratio, callers_decide) = match config.ratio {
        Some(ratio) => (ratio, true),
        None => sampler(variable),
    };
    let caller_rate = match callers_decide {
        true => config.caller_rate,
        false => AgentRate(None),
    };
    Ok(Some(TraceSettings {
        endpoint,
        headers,
        sampling: TraceSampler::new(ratio, caller_rate),
    }))
}

fn of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let own = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let endpoint = own.or_else(|| {
        let all = variable("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Some(format!("{}{PATH}", all.trim_end_matches('/')))
    })?;
    if is_collector(&endpoint) {
        return Some(endpoint);
    }
    tracing::warn!(
        "nothing is traced: the endpoint of OpenTelemetry's variables is no http or https URL without credentials and \
         query"
    );
    None
}

fn with_path(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    if endpoint.ends_with(PATH) {
        return endpoint.to_owned();
    }
    format!("{endpoint}{PATH}")
}

/// Returns the ratio, and whether callers decide.
fn sampler(variable: &dyn Fn(&str) -> Option<String>) -> (f64, bool) {
    let ratio = || {
        let given = variable("OTEL_TRACES_SAMPLER_ARG");
        let ratio = given.and_then(|text| text.trim().parse::<f64>().ok());
        ratio.filter(|ratio| (0.0..=1.0).contains(ratio))
    };
    let name = variable("OTEL_TRACES_SAMPLER").unwrap_or_default();
    match name.trim() {
        "always_on" => (1.0, false),
        "always_off" => (0.0, false),
        "traceidratio" => (ratio().unwrap_or(1.0), false),
        "parentbased_always_off" => (0.0, true),
        "parentbased_traceidratio" => (ratio().unwrap_or(1.0), true),
        "" | "parentbased_always_on" => (1.0, true),
        _ => {
            tracing::warn!("OTEL_TRACES_SAMPLER is not known: traces are sampled by their parents");
            (1.0, true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(file: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        let config = config::TraceConfig {
            endpoint: file.map(str::to_owned),
            ..config::TraceConfig::default()
        };
        let variable = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let settled = settle(&config, Path::new("."), &variable).expect("valid");
        settled.map(|settings| settings.endpoint)
    }

    #[test]
    fn nothing_is_traced_unless_a_collector_is_named() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://there:4318/");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:1/x");
        let bad = ("OTEL_EXPORTER_OTLP_ENDPOINT", "there:4318");
        let none = ("OTEL_TRACES_EXPORTER", "none");
        let disabled = ("OTEL_SDK_DISABLED", "TRUE");
        for (file, variables, expected) in [
            (None, &[][..], None),
            (Some("http://a:1"), &[][..], Some("http://a:1/v1/traces")),
            (
                Some("http://a:1/v1/traces"),
                &[all][..],
                Some("http://a:1/v1/traces"),
            ),
            (None, &[all][..], Some("http://there:4318/v1/traces")),
            (None, &[all, own][..], Some("http://own:1/x")),
            (None, &[bad][..], None),
            (None, &[all, none][..], None),
            (Some("http://a:1"), &[disabled][..], None),
        ] {
            assert_eq!(
                endpoint(file, variables).as_deref(),
                expected,
                "{variables:?}"
            );
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_refused_without_its_value() {
        let headers = |name: &str, value: &str| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            std::fs::write(folder.path().join("secret"), value).expect("it can be written");
            let config = config::TraceConfig {
                endpoint: Some("http://a:1".to_owned()),
                headers: [(name.to_owned(), "file:secret".to_owned())].into(),
                ..config::TraceConfig::default()
            };
            settle(&config, folder.path(), &|_| None).map(|settled| settled.map(|it| it.headers))
        };
        let sent = headers("x-key", "hunter2").expect("valid").expect("traced");
        assert_eq!(sent["x-key"], "hunter2");
        for (name, value) in [
            ("x key", "hunter2"),
            ("x-key", "hunter2\nx: y"),
            ("x-key", "hunter2\u{7}"),
        ] {
            let fault = headers(name, value).expect_err(name);
            assert_eq!(fault.place, "/traces/headers");
            assert!(
                fault.message.contains(name) && !fault.message.contains("hunter2"),
                "{fault:?}"
            );
        }
    }

    #[test]
    fn samplers_have_their_usual_names() {
        let sampler = |name: &str, ratio: &str| {
            super::sampler(&|variable| {
                let value = match variable {
                    "OTEL_TRACES_SAMPLER" => name,
                    _ => ratio,
                };
                Some(value.to_owned())
            })
        };
        assert_eq!(sampler("traceidratio", "0.25"), (0.25, false));
        assert_eq!(sampler("parentbased_traceidratio", "7"), (1.0, true));
        assert_eq!(sampler("always_off", ""), (0.0, false));
        assert_eq!(sampler("jaeger_remote", ""), (1.0, true));
    }
}
