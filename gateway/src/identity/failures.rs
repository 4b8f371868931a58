//! Recent refusals of callers with their reasons, for operators: clients show little more than the fact that they were refused.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde::Serialize;
use utoipa::ToSchema;
use weir_text::shorten;

use super::now_ms;

/// The number of refusals that are kept for genuine credentials, and the same for others: strangers displace only strangers.
const KEPT_MAX: usize = 100;
/// The bound on each text, which a stranger may have written.
const TEXT_MAX_CHARS: usize = 200;

/// A refusal, with its repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct IdentityFailure {
    /// Milliseconds since 1970, as all times.
    pub first_ms: i64,
    pub last_ms: i64,
    /// The number of times.
    pub count: u64,
    /// The requested path.
    pub endpoint: String,
    pub reason: String,
    /// Whether the credential was genuine: the secret of a key or the signature of a token was right. Otherwise anyone may
    /// have written it, and only the last such credential is shown.
    pub genuine: bool,
    /// The public part of a key.
    pub key_id: Option<String>,
    pub issuer: Option<String>,
    pub subject: Option<String>,
    pub client: Option<String>,
}

/// The holder that a refused token names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedHolder {
    pub issuer: Option<Box<str>>,
    pub subject: Option<Box<str>>,
    pub client: Option<Box<str>>,
}

/// The known details of a refused caller.
#[derive(Clone, Copy)]
pub struct RefusedCredential<'a> {
    pub endpoint: &'a str,
    pub reason: &'a str,
    pub is_genuine: bool,
    pub key_id: Option<&'a str>,
    pub holder: Option<&'a ClaimedHolder>,
}

/// The newest refusals. Their number and size are bounded, whatever is sent.
#[derive(Default)]
pub struct IdentityFailures {
    genuine: Mutex<FailureRing>,
    strangers: Mutex<FailureRing>,
}

/// Refusals, newest last.
#[derive(Default)]
struct FailureRing(VecDeque<IdentityFailure>);

impl IdentityFailures {
    /// Keeps a refusal, or counts it if it is a repeat.
    pub fn note(&self, refused: RefusedCredential<'_>) {
        let ring = match refused.is_genuine {
            true => &self.genuine,
            false => &self.strangers,
        };
        ring.lock().note(IdentityFailure::new(refused, now_ms()));
    }

    /// Returns the refusals, newest first.
    pub fn list(&self) -> Vec<IdentityFailure> {
        let mut all: Vec<_> = self.genuine.lock().0.iter().cloned().collect();
        all.extend(self.strangers.lock().0.iter().cloned());
        all.sort_by_key(|failure| std::cmp::Reverse(failure.last_ms));
        all
    }
}

impl FailureRing {
    fn note(&mut self, mut failure: IdentityFailure) {
        let known = self.0.iter().position(|known| known.is_repeat(&failure));
        if let Some(known) = known.and_then(|at| self.0.remove(at)) {
            failure.first_ms = known.first_ms;
            failure.count = known.count.saturating_add(1);
        } else if self.0.len() == KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(failure);
    }
}

impl IdentityFailure {
    fn new(refused: RefusedCredential<'_>, now_ms: i64) -> Self {
        // A line break would begin a separate row where failures are printed.
        let text = |text: &str| shorten(text, TEXT_MAX_CHARS).replace(char::is_control, " ");
        let holder = refused.holder;
        let claim = |of: fn(&ClaimedHolder) -> Option<&Box<str>>| {
            holder.and_then(of).map(|value| text(value))
        };
        Self {
            first_ms: now_ms,
            last_ms: now_ms,
            count: 1,
            endpoint: text(refused.endpoint),
            reason: text(refused.reason),
            genuine: refused.is_genuine,
            key_id: refused.key_id.map(text),
            issuer: claim(|holder| holder.issuer.as_ref()),
            subject: claim(|holder| holder.subject.as_ref()),
            client: claim(|holder| holder.client.as_ref()),
        }
    }

    /// Returns `true` for the same refusal. The contents of strangers' credentials do not make a difference.
    fn is_repeat(&self, other: &Self) -> bool {
        // One holder takes one row per reason, for all paths.
        let is_same =
            self.reason == other.reason && (self.genuine || self.endpoint == other.endpoint);
        let holder = |failure: &Self| {
            let claims = [&failure.key_id, &failure.issuer, &failure.subject];
            claims.map(Clone::clone)
        };
        is_same
            && self.genuine == other.genuine
            && (!self.genuine || holder(self) == holder(other) && self.client == other.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(failures: &IdentityFailures, endpoint: &str, subject: &str, is_genuine: bool) {
        failures.note(RefusedCredential {
            endpoint,
            reason: "token expired",
            is_genuine,
            key_id: None,
            holder: Some(&ClaimedHolder {
                subject: Some(subject.into()),
                ..ClaimedHolder::default()
            }),
        });
    }

    #[test]
    fn what_strangers_write_begins_no_line() {
        let failures = IdentityFailures::default();
        note(&failures, "/mcp\r\n/x", "ann\nbob\u{1b}[2J\t", false);
        for failure in failures.list() {
            let subject = failure.subject.as_deref().unwrap_or_default();
            let text = format!("{} {subject}", failure.endpoint);
            assert!(!text.contains(char::is_control), "{text:?}");
            assert!(subject.starts_with("ann bob"), "{text:?}");
        }
    }

    #[test]
    fn strangers_crowd_out_strangers_alone() {
        let failures = IdentityFailures::default();
        note(&failures, "/mcp", "ann", true);
        note(&failures, "/mcp", "bob", true);
        note(&failures, "/mcp", "ann", true);
        for number in 0..2000 {
            let long = format!("{number}{}", "x".repeat(5000));
            note(&failures, &long, &long, false);
            note(&failures, "/mcp", &long, false);
        }
        let kept = failures.list();
        assert!(kept.len() <= 2 * KEPT_MAX, "{}", kept.len());
        let of = |subject: &str| {
            let is = |failure: &&IdentityFailure| failure.subject.as_deref() == Some(subject);
            kept.iter().find(is).map(|failure| failure.count)
        };
        assert_eq!((of("ann"), of("bob")), (Some(2), Some(1)));
        let repeated = kept.iter().filter(|failure| failure.endpoint == "/mcp");
        let counts: Vec<u64> = repeated
            .filter(|failure| !failure.genuine)
            .map(|failure| failure.count)
            .collect();
        assert_eq!(counts, [2000], "other subjects of strangers make no row");
        let texts = kept.iter().map(|failure| failure.endpoint.chars().count());
        assert!(texts.max() <= Some(TEXT_MAX_CHARS + 1));
    }
}
