//! Finds out which era a server speaks. It is asked for the modern one first, and for the legacy one after a refusal:
//! the other way round, reference servers refuse the second request.

use std::{collections::HashMap, time::Duration};

use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};
use tokio::time::timeout;
use weir_protocol::ProtocolVersion;

use crate::{
    error::{RequestError, UpstreamFailure, UpstreamFailureKind, one_line},
    message::{self, LEGACY, MODERN},
    session::{OutgoingMeta, SessionCore, SessionRequest},
    settings::EraPreference,
};

/// The result of the handshake: the version, and the server's description of itself.
pub(crate) struct HandshakeResult {
    pub(crate) version: &'static str,
    /// The result of `server/discover` or `initialize`: name, capabilities, instructions.
    pub(crate) about: Box<RawValue>,
}

/// The capabilities of a server that say what it does beside answering lists and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredCapabilities {
    /// It suggests values for arguments.
    pub completions: bool,
    /// It notifies of changes of single resources.
    pub subscriptions: bool,
}

impl HandshakeResult {
    pub(crate) fn is_modern(&self) -> bool {
        self.version == MODERN
    }

    pub(crate) fn declared(&self) -> DeclaredCapabilities {
        DeclaredCapabilities {
            completions: self.declares(&["completions"]) || self.version == FIRST.as_str(),
            subscriptions: self.declares(&["resources", "subscribe"]),
        }
    }

    /// Returns `true` if the server declares the capability at this path, with any value but `null` and `false`.
    pub(crate) fn declares(&self, path: &[&str]) -> bool {
        let member = |text: Box<RawValue>, name: &str| {
            let mut members: HashMap<String, Box<RawValue>> =
                serde_json::from_str(text.get()).ok()?;
            members.remove(name)
        };
        let capabilities = member(self.about.clone(), "capabilities");
        let stated = path
            .iter()
            .fold(capabilities, |stated, name| member(stated?, name));
        stated.is_some_and(|stated| !matches!(stated.get(), "null" | "false"))
    }
}

/// The revision that has completions, and no capability for them.
const FIRST: ProtocolVersion = ProtocolVersion::V2024_11_05;

enum EraVerdict {
    Modern(Box<RawValue>),
    Legacy,
    /// The answer does not identify an era. The failure is that of this request, and counts if the server does not
    /// support `initialize` either.
    Unclear(UpstreamFailure),
}

/// Agrees on an era. `probe` bounds the silence of a child before it is asked for the legacy era as well; `None` waits
/// for the answer.
pub(crate) async fn agree(
    core: &SessionCore,
    era: EraPreference,
    probe: Option<Duration>,
) -> Result<HandshakeResult, UpstreamFailure> {
    if era == EraPreference::Legacy {
        return initialize(core).await;
    }
    let discover = discover(core);
    let Some(probe) = probe.filter(|_| era == EraPreference::Either) else {
        return settle(core, era, discover.await).await;
    };
    tokio::pin!(discover);
    match timeout(probe, &mut discover).await {
        Ok(verdict) => settle(core, era, verdict).await,
        // Some servers do not answer unknown messages. The first answer decides.
        Err(_) => {
            let initialize = initialize(core);
            tokio::pin!(initialize);
            tokio::select! {
                verdict = &mut discover => match verdict {
                    Ok(EraVerdict::Modern(about)) => Ok(HandshakeResult { version: MODERN, about }),
                    // The other request may still be answered; if not, its failure explains why.
                    Ok(EraVerdict::Legacy | EraVerdict::Unclear(_)) | Err(_) => initialize.await,
                },
                agreed = &mut initialize => match agreed {
                    Ok(agreed) => Ok(agreed),
                    Err(failure) => match discover.await {
                        Ok(EraVerdict::Modern(about)) => Ok(HandshakeResult { version: MODERN, about }),
                        _ => Err(failure),
                    },
                },
            }
        }
    }
}

async fn settle(
    core: &SessionCore,
    era: EraPreference,
    verdict: Result<EraVerdict, UpstreamFailure>,
) -> Result<HandshakeResult, UpstreamFailure> {
    match verdict? {
        EraVerdict::Modern(about) => Ok(HandshakeResult {
            version: MODERN,
            about,
        }),
        EraVerdict::Legacy if era == EraPreference::Modern => {
            Err(unspoken("it speaks only revisions with `initialize`"))
        }
        EraVerdict::Legacy => initialize(core).await,
        EraVerdict::Unclear(failure) if era == EraPreference::Modern => Err(failure),
        EraVerdict::Unclear(failure) => initialize(core).await.map_err(|_| failure),
    }
}

async fn discover(core: &SessionCore) -> Result<EraVerdict, UpstreamFailure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DiscoverResult {
        #[serde(deserialize_with = "texts")]
        supported_versions: Vec<String>,
    }
    #[derive(Deserialize)]
    struct UnsupportedVersion {
        #[serde(deserialize_with = "texts")]
        supported: Vec<String>,
    }
    let params = message::object(&[("_meta", &core.meta(MODERN, &OutgoingMeta::default()))]);
    let answer = core
        .request(SessionRequest::new("server/discover", params, MODERN))
        .await;
    match answer {
        Ok(about) => {
            let discovered: Option<DiscoverResult> = serde_json::from_str(about.get()).ok();
            let versions = discovered
                .map(|discovered| discovered.supported_versions)
                .unwrap_or_default();
            let is_modern = versions.iter().any(|version| version == MODERN);
            if !is_modern
                && !versions.is_empty()
                && !versions.iter().any(|version| is_legacy(version))
            {
                return Err(unspoken(&format!(
                    "it speaks {}",
                    one_line(&versions.join(", "), 200)
                )));
            }
            Ok(if is_modern {
                EraVerdict::Modern(about)
            } else {
                EraVerdict::Legacy
            })
        }
        Err(RequestError::Refused(refusal)) => match refusal.code {
            -32022 => {
                let data = refusal.data.as_deref().map_or("null", RawValue::get);
                let supported = serde_json::from_str::<UnsupportedVersion>(data)
                    .map(|data| data.supported)
                    .unwrap_or_default();
                match supported.iter().any(|version| is_legacy(version)) {
                    true => Ok(EraVerdict::Legacy),
                    false => Err(unspoken(&format!(
                        "it speaks {}",
                        one_line(&supported.join(", "), 200)
                    ))),
                }
            }
            -32020 | -32021 => Err(RequestError::Refused(refusal).into_failure("server/discover")),
            _ => Ok(EraVerdict::Legacy),
        },
        Err(RequestError::Failed(failure)) if failure.kind == UpstreamFailureKind::NotHere => {
            Ok(EraVerdict::Legacy)
        }
        // Some servers answer unknown messages with an error of HTTP, a page, or an answer that names no request.
        Err(RequestError::Failed(failure))
            if matches!(
                failure.kind,
                UpstreamFailureKind::Protocol | UpstreamFailureKind::Unreachable
            ) && failure.is_handed_over =>
        {
            Ok(EraVerdict::Unclear(failure))
        }
        Err(RequestError::Failed(failure)) => Err(failure),
    }
}

async fn initialize(core: &SessionCore) -> Result<HandshakeResult, UpstreamFailure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeResult {
        protocol_version: String,
    }
    let params = message::object(&[
        ("protocolVersion", &message::text(LEGACY[0])),
        ("capabilities", &message::capabilities(core.ask(), false)),
        ("clientInfo", message::CLIENT_INFO),
    ]);
    let answer = core
        .request(SessionRequest::new("initialize", params, LEGACY[0]))
        .await;
    let about = answer.map_err(|error| error.into_failure("initialize"))?;
    let initialized: InitializeResult = serde_json::from_str(about.get()).map_err(|_| {
        UpstreamFailure::new(
            UpstreamFailureKind::Protocol,
            "the server to name its revision of the protocol",
            "its answer does not",
        )
    })?;
    let version = LEGACY
        .into_iter()
        .find(|version| *version == initialized.protocol_version);
    let version = version.ok_or_else(|| {
        unspoken(&format!(
            "it speaks {}",
            one_line(&initialized.protocol_version, 60)
        ))
    })?;
    let notified = core
        .notify("notifications/initialized", "{}".to_owned(), version)
        .await;
    if let Err(failure) = notified {
        if failure.kind == UpstreamFailureKind::SessionOver {
            return Err(failure);
        }
        // A notification has no answer, so that nothing depends on this one.
        let (upstream, cause) = (&*core.settings().name, failure.in_one_line());
        tracing::warn!(
            upstream,
            cause,
            "the server refuses `notifications/initialized`; its session is used nevertheless"
        );
    }
    core.link().listen(version);
    Ok(HandshakeResult { version, about })
}

/// Reads the texts of a list; what else is in it is left out.
fn texts<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<Value>::deserialize(list)?;
    let texts = entries.into_iter().filter_map(|entry| match entry {
        Value::String(text) => Some(text),
        _ => None,
    });
    Ok(texts.collect())
}

fn is_legacy(version: &str) -> bool {
    LEGACY.contains(&version)
}

fn unspoken(cause: &str) -> UpstreamFailure {
    let spoken = format!(
        "the server to speak {MODERN}, or one of {}",
        LEGACY.join(", ")
    );
    UpstreamFailure::new(UpstreamFailureKind::Protocol, spoken, cause)
        .step("use another version of the server, or a newer Weir")
}
