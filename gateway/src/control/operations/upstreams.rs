//! Other servers: the health of each, which of its lists are published, a look at one now, and the consent to its offer. Only the
//! configuration determines which servers there are: no operation starts a command that it does not name.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;
use weir_upstream::{AuthConfig, UpstreamConfig, UpstreamOutcome, UpstreamServer};

use super::{ActingAdmin, OperationError, OperationResult};
use crate::control::{
    ControlPlane,
    gate::{Role, Verdict},
    sources::upstreams::offer::{self, CompiledOffer},
};

/// Every server of the configuration.
#[derive(Serialize, ToSchema)]
pub struct UpstreamsView {
    pub upstreams: Vec<UpstreamView>,
    /// The folder of the configuration on the gateway's machine, to which its paths are relative.
    pub folder: String,
}

/// A server, as of the last look.
#[derive(Serialize, ToSchema)]
pub struct UpstreamView {
    pub name: String,
    /// The URL without credentials, query and fragment, or the reference to it, or the program that is started.
    pub address: String,
    /// The overlay file of the configuration.
    pub overlay: Option<String>,
    /// The contract under which its tools are published.
    pub contract: String,
    /// The live version of that contract; null if none is published.
    pub version: Option<String>,
    /// At the last look: `up`, `down`, or `unknown` before the first.
    pub state: &'static str,
    /// Why it is down, or why no part of it can be published.
    pub reason: Option<String>,
    pub looked_ms: Option<u64>,
    /// The authorization of requests to it: `oauth` and `exchange` by tokens of the caller, `client_credentials` by the gateway's
    /// own tokens, `header` by a fixed header; null if they have none.
    pub auth: Option<&'static str>,
    /// Its own name and version; null before it was looked at.
    #[schema(value_type = Option<Object>)]
    pub server: Value,
    /// Tools that it lists and that can be published.
    pub tools: usize,
    /// Items that cannot be published, and why.
    pub left_out: Vec<String>,
    /// The differences between what it wrote and what is published.
    pub notes: Vec<String>,
    /// The draft that waits.
    pub draft: Option<String>,
    pub sessions: usize,
    pub restarts: u64,
    /// Calls; `failures` counts those that were not answered.
    pub calls: u64,
    pub failures: u64,
    /// Tools that are not called for a while because their last calls all failed, counted per tenant.
    pub backing_off: usize,
    /// The last lines that a command wrote to stderr.
    pub stderr: String,
}

/// Returns all servers, as of the last look at each.
pub fn list(control: &ControlPlane) -> UpstreamsView {
    let all = control.gateway().upstreams().all();
    UpstreamsView {
        upstreams: all.iter().map(|upstream| view(control, upstream)).collect(),
        folder: absolute_folder(&control.gateway().config().base),
    }
}

/// Returns one server.
pub fn show(control: &ControlPlane, name: &str) -> OperationResult<UpstreamView> {
    Ok(view(control, &*find(control, name)?))
}

/// Looks at the lists of a server now, and returns the findings.
pub async fn look(control: &ControlPlane, name: &str) -> OperationResult<UpstreamView> {
    let upstream = find(control, name)?;
    control.upstreams().look_at(&upstream).await;
    Ok(view(control, &upstream))
}

/// Asks a server of the configuration for its offer, and returns the publishable part. Nothing is submitted. The session is open
/// until [`weir_upstream::UpstreamRegistry::close`].
pub async fn preview(control: &ControlPlane, name: &str) -> OperationResult<CompiledOffer> {
    let gateway = control.gateway();
    let config = gateway.config();
    let Some(settings) = config.upstreams.get(name) else {
        return Err(unknown(name));
    };
    let only = BTreeMap::from([(name.to_owned(), settings.clone())]);
    let resolved = gateway
        .upstreams()
        .resolve(&only, &config.base, &config.kept_files());
    if let Some((_, fault)) = resolved.1.into_iter().next() {
        return Err(OperationError::invalid(fault));
    }
    let listed = find(control, name)?.lists().await;
    let (listed, about) = listed.map_err(|failure| {
        OperationError::unavailable(format!("{:#}", anyhow::Error::new(failure)))
    })?;
    let taken = control.gate().names_taken_from(name).await?;
    offer::compile(name, settings, &config.base, listed, &about, &taken)
        .map_err(|problems| OperationError::problems("its lists cannot be published", problems))
}

/// The result of the consent to an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgreedOffer {
    Published {
        version: String,
    },
    /// The same offer was already published.
    Unchanged {
        version: String,
    },
    /// The change to the published version waits.
    Held {
        summary: String,
    },
}

/// Publishes an offer that an operator has reviewed and agreed to. The gate judges a change of a published version like any
/// other.
pub async fn agree(
    control: &ControlPlane,
    name: &str,
    offer: CompiledOffer,
    admin: ActingAdmin<'_>,
) -> OperationResult<AgreedOffer> {
    admin.needs(Role::Editor)?;
    let verdict = control.upstreams().agree(name, offer, admin.by).await?;
    Ok(match verdict {
        Verdict::Published { version, .. } => AgreedOffer::Published {
            version: version.to_string(),
        },
        Verdict::Unchanged { version } => AgreedOffer::Unchanged {
            version: version.to_string(),
        },
        Verdict::Held(held) => AgreedOffer::Held {
            summary: held.line(),
        },
    })
}

fn unknown(name: &str) -> OperationError {
    OperationError::not_found("upstream", name)
        .see("GET /v1/upstreams and `weir upstream list` list the upstreams")
}

fn find(control: &ControlPlane, name: &str) -> OperationResult<Arc<UpstreamServer>> {
    control
        .gateway()
        .upstreams()
        .get(name)
        .ok_or_else(|| unknown(name))
}

fn absolute_folder(base: &Path) -> String {
    let folder = base.canonicalize();
    folder.as_deref().unwrap_or(base).display().to_string()
}

/// Returns the location of the server, without parts of its URL or arguments that may be secret.
fn address(config: &UpstreamConfig) -> String {
    let Some(written) = &config.url else {
        return config.command.first().cloned().unwrap_or_default();
    };
    // A reference to the whole URL names a variable or a file, but no value.
    if written.starts_with("env:") || written.starts_with("file:") {
        return written.clone();
    }
    match Url::parse(written) {
        Ok(mut url) => {
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.set_fragment(None);
            url.into()
        }
        Err(_) => String::new(),
    }
}

fn view(control: &ControlPlane, upstream: &UpstreamServer) -> UpstreamView {
    let seen = upstream.seen();
    let contract = if seen.contract.is_empty() {
        upstream.contract()
    } else {
        &seen.contract
    }
    .to_owned();
    let live = control.gate().live();
    let since = |at: SystemTime| {
        at.duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis())
    };
    let count = |called: &UpstreamOutcome| upstream.calls(*called);
    let config = upstream.config();
    UpstreamView {
        name: upstream.name.to_string(),
        address: address(config),
        overlay: config
            .overlay
            .as_ref()
            .map(|file| file.display().to_string()),
        version: live
            .get(&contract)
            .map(|live| live.contract.version.to_string()),
        contract,
        state: seen.state(),
        reason: seen.failure,
        looked_ms: seen
            .at
            .map(|at| u64::try_from(since(at)).unwrap_or(u64::MAX)),
        auth: config.auth.as_ref().map(AuthConfig::kind),
        server: serde_json::from_str(&seen.server).unwrap_or_default(),
        tools: seen.tools,
        left_out: seen.left_out,
        notes: seen.notes,
        draft: seen.draft,
        sessions: upstream.sessions(),
        restarts: upstream.restarts(),
        calls: UpstreamOutcome::ALL.iter().map(count).sum(),
        failures: UpstreamOutcome::ALL
            .iter()
            .filter(|called| {
                !matches!(
                    called,
                    UpstreamOutcome::Answered | UpstreamOutcome::Cancelled
                )
            })
            .map(count)
            .sum(),
        backing_off: upstream.backing_off(),
        stderr: upstream.stderr(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address_of(url: &str) -> String {
        address(&UpstreamConfig {
            url: Some(url.to_owned()),
            ..UpstreamConfig::default()
        })
    }

    #[test]
    fn an_address_has_nothing_that_may_be_secret() {
        assert_eq!(
            address_of("https://ann:pass@mcp.example.org/mcp?key=secret#part"),
            "https://mcp.example.org/mcp"
        );
        assert_eq!(address_of("env:SERVER_URL"), "env:SERVER_URL");
        assert_eq!(address_of("no URL?key=secret"), "");
        let command = UpstreamConfig {
            command: vec!["uvx".into(), "--token=secret".into()],
            ..UpstreamConfig::default()
        };
        assert_eq!(address(&command), "uvx");
    }
}
