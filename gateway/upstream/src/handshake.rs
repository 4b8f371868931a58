//! Finds out which era a server speaks. It is asked for the modern one first, and for the legacy one after a refusal:
//! the other way round, reference servers refuse what comes second.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::{
    error::{Failure, Kind, RequestError, one_line},
    message::{self, LEGACY, MODERN},
    session::{Core, Meta, Request},
    settings::Era,
};

/// The result of the handshake: the version, and what the server says about itself.
pub(crate) struct Agreed {
    pub(crate) version: &'static str,
    /// The result of `server/discover` or `initialize`: name, capabilities, instructions.
    pub(crate) about: Box<RawValue>,
}

impl Agreed {
    pub(crate) fn is_modern(&self) -> bool {
        self.version == MODERN
    }
}

enum Verdict {
    Modern(Box<RawValue>),
    Legacy,
    /// The answer says nothing of an era. The failure is that of the question, and counts if the server does not know
    /// `initialize` either.
    Unclear(Failure),
}

/// Agrees on an era. `probe` bounds the silence of a child before it is asked for the legacy era as well; `None` waits
/// for the answer.
pub(crate) async fn agree(
    core: &Core,
    era: Era,
    probe: Option<Duration>,
) -> Result<Agreed, Failure> {
    if era == Era::Legacy {
        return initialize(core).await;
    }
    let discover = discover(core);
    let Some(probe) = probe.filter(|_| era == Era::Either) else {
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
                    Ok(Verdict::Modern(about)) => Ok(Agreed { version: MODERN, about }),
                    // The other question may be answered yet; if not, its failure says why.
                    Ok(Verdict::Legacy | Verdict::Unclear(_)) | Err(_) => initialize.await,
                },
                agreed = &mut initialize => match agreed {
                    Ok(agreed) => Ok(agreed),
                    Err(failure) => match discover.await {
                        Ok(Verdict::Modern(about)) => Ok(Agreed { version: MODERN, about }),
                        _ => Err(failure),
                    },
                },
            }
        }
    }
}

async fn settle(
    core: &Core,
    era: Era,
    verdict: Result<Verdict, Failure>,
) -> Result<Agreed, Failure> {
    match verdict? {
        Verdict::Modern(about) => Ok(Agreed {
            version: MODERN,
            about,
        }),
        Verdict::Legacy if era == Era::Modern => {
            Err(unspoken("it speaks only revisions with `initialize`"))
        }
        Verdict::Legacy => initialize(core).await,
        Verdict::Unclear(failure) if era == Era::Modern => Err(failure),
        Verdict::Unclear(failure) => initialize(core).await.map_err(|_| failure),
    }
}

async fn discover(core: &Core) -> Result<Verdict, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered {
        supported_versions: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Unsupported {
        supported: Vec<String>,
    }
    let params = message::object(&[("_meta", &core.meta(MODERN, &Meta::default()))]);
    let answer = core
        .request(Request::new("server/discover", params, MODERN))
        .await;
    match answer {
        Ok(about) => {
            let discovered: Option<Discovered> = serde_json::from_str(about.get()).ok();
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
                Verdict::Modern(about)
            } else {
                Verdict::Legacy
            })
        }
        Err(RequestError::Refused(refusal)) => match refusal.code {
            -32022 => {
                let data = refusal.data.as_deref().map_or("null", RawValue::get);
                let supported = serde_json::from_str::<Unsupported>(data)
                    .map(|data| data.supported)
                    .unwrap_or_default();
                match supported.iter().any(|version| is_legacy(version)) {
                    true => Ok(Verdict::Legacy),
                    false => Err(unspoken(&format!(
                        "it speaks {}",
                        one_line(&supported.join(", "), 200)
                    ))),
                }
            }
            -32020 | -32021 => Err(RequestError::Refused(refusal).into_failure("server/discover")),
            _ => Ok(Verdict::Legacy),
        },
        Err(RequestError::Failed(failure)) if failure.kind == Kind::NotHere => Ok(Verdict::Legacy),
        // Some servers answer unknown messages with an error of HTTP, a page, or an answer that names no request.
        Err(RequestError::Failed(failure))
            if matches!(failure.kind, Kind::Protocol | Kind::Unreachable)
                && failure.is_handed_over =>
        {
            Ok(Verdict::Unclear(failure))
        }
        Err(RequestError::Failed(failure)) => Err(failure),
    }
}

async fn initialize(core: &Core) -> Result<Agreed, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialized {
        protocol_version: String,
    }
    let params = message::object(&[
        ("protocolVersion", &message::text(LEGACY[0])),
        ("capabilities", &message::capabilities(core.ask(), false)),
        ("clientInfo", message::CLIENT_INFO),
    ]);
    let answer = core
        .request(Request::new("initialize", params, LEGACY[0]))
        .await;
    let about = answer.map_err(|error| error.into_failure("initialize"))?;
    let initialized: Initialized = serde_json::from_str(about.get()).map_err(|_| {
        Failure::new(
            Kind::Protocol,
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
    core.notify("notifications/initialized", "{}".to_owned(), version)
        .await?;
    core.link().listen(version);
    Ok(Agreed { version, about })
}

fn is_legacy(version: &str) -> bool {
    LEGACY.contains(&version)
}

fn unspoken(cause: &str) -> Failure {
    let spoken = format!(
        "the server to speak {MODERN}, or one of {}",
        LEGACY.join(", ")
    );
    Failure::new(Kind::Protocol, spoken, cause)
        .step("use another version of the server, or a newer Weir")
}
