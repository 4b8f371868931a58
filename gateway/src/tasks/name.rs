//! The ids of tasks: a random number and, if several nodes share a state, the node of the task and the time when it began, sealed
//! under the number. Its caller can send it to any node; it reveals nothing to others.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;

use super::KEPT_FOR;
use crate::{
    catalogue::CatalogueEndpoint,
    cursor::{CursorCipher, CursorScope},
    identity::CallerIdentity,
};

const FORM: u8 = 1;
const NODE_BYTES: usize = 8;
const CONTENT_BYTES: usize = 1 + NODE_BYTES + size_of::<i64>();
const NUMBER_BYTES: usize = size_of::<u128>();
const TAG_BYTES: usize = 16;
/// The bytes of an id that names a node.
const SHARED_BYTES: usize = NUMBER_BYTES + CONTENT_BYTES + TAG_BYTES;

/// The place of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPlace {
    pub number: u128,
    /// The id of the node that runs it.
    pub node: String,
    pub created: Timestamp,
}

/// Writes and reads ids that name nodes.
pub(super) struct SharedNames {
    node: [u8; NODE_BYTES],
    cursors: CursorCipher,
}

/// Returns the id of a task that only one process has.
pub(super) fn plain(number: u128) -> String {
    format!("{number:032x}")
}

/// Returns the number in an id of either kind.
pub(super) fn number(id: &str) -> Option<u128> {
    let mut bytes = [0; NUMBER_BYTES];
    if hex::decode_to_slice(id, &mut bytes).is_ok() {
        return Some(u128::from_be_bytes(bytes));
    }
    let shared = shared_bytes(id)?;
    let number = shared.first_chunk::<NUMBER_BYTES>()?;
    Some(u128::from_be_bytes(*number))
}

fn shared_bytes(id: &str) -> Option<[u8; SHARED_BYTES]> {
    let mut bytes = [0; SHARED_BYTES];
    let length = URL_SAFE_NO_PAD.decode_slice(id, &mut bytes).ok()?;
    (length == SHARED_BYTES).then_some(bytes)
}

impl SharedNames {
    /// Returns `None` if `node` is not the id of a node.
    pub(super) fn new(node: &str, cursors: CursorCipher) -> Option<Self> {
        let mut bytes = [0; NODE_BYTES];
        hex::decode_to_slice(node, &mut bytes).ok()?;
        Some(Self {
            node: bytes,
            cursors,
        })
    }

    pub(super) fn write(
        &self,
        number: u128,
        created: Timestamp,
        caller: &CallerIdentity,
        endpoint: &CatalogueEndpoint,
    ) -> String {
        let created = created.as_millisecond().to_be_bytes();
        let content = [&[FORM][..], &self.node, &created].concat();
        let sealed = self
            .cursors
            .seal_under(number, &bound(caller, endpoint), &content);
        URL_SAFE_NO_PAD.encode([&number.to_be_bytes()[..], &sealed].concat())
    }

    /// Opens an id of another node for this caller at this endpoint; `None` for one that is foreign, altered or too old.
    pub(super) fn open(
        &self,
        id: &str,
        caller: &CallerIdentity,
        endpoint: &CatalogueEndpoint,
    ) -> Option<TaskPlace> {
        let bytes = shared_bytes(id)?;
        let (number, sealed) = bytes.split_first_chunk::<NUMBER_BYTES>()?;
        let number = u128::from_be_bytes(*number);
        let content = self
            .cursors
            .open_under(number, &bound(caller, endpoint), sealed)?;
        let content: [u8; CONTENT_BYTES] = content.try_into().ok()?;
        let [FORM, content @ ..] = content else {
            return None;
        };
        let (node, created) = content.split_first_chunk::<NODE_BYTES>()?;
        let created = i64::from_be_bytes(created.try_into().ok()?);
        let kept_ms = i64::try_from(KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
        let is_over = Timestamp::now().as_millisecond() >= created.saturating_add(kept_ms);
        if *node == self.node || is_over {
            return None;
        }
        Some(TaskPlace {
            number,
            node: hex::encode(node),
            created: Timestamp::from_millisecond(created).ok()?,
        })
    }
}

/// No tool has a space in its name, so no cursor is bound to the same text.
fn bound(caller: &CallerIdentity, endpoint: &CatalogueEndpoint) -> CursorScope {
    let owner = serde_json::json!([&*caller.tenant, caller.principal()]).to_string();
    CursorScope::new("a task", 0, &owner, &endpoint.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_node_to_its_caller_at_its_endpoint() {
        let cursors = CursorCipher::ephemeral().expect("randomness");
        let [one, two] = ["00000000000000a1", "00000000000000a2"]
            .map(|node| SharedNames::new(node, cursors.clone()).expect("an id of a node"));
        let (caller, now) = (CallerIdentity::local(), Timestamp::now());
        let id = one.write(7, now, &caller, &CatalogueEndpoint::All);
        assert_eq!((number(&id), number(&plain(7))), (Some(7), Some(7)));
        let found = two
            .open(&id, &caller, &CatalogueEndpoint::All)
            .expect("its caller");
        assert_eq!((found.number, found.node.as_str()), (7, "00000000000000a1"));
        assert_eq!(found.created.as_millisecond(), now.as_millisecond());
        assert_eq!(
            one.open(&id, &caller, &CatalogueEndpoint::All),
            None,
            "it is its own"
        );
        let other = CallerIdentity {
            agent: "eve".into(),
            ..CallerIdentity::local()
        };
        let desk = CatalogueEndpoint::Contract("desk".into());
        assert_eq!(two.open(&id, &other, &CatalogueEndpoint::All), None);
        assert_eq!(two.open(&id, &caller, &desk), None);
        let old = now - jiff::SignedDuration::from_secs(3601);
        let old = one.write(8, old, &caller, &CatalogueEndpoint::All);
        assert_eq!(two.open(&old, &caller, &CatalogueEndpoint::All), None);
        for at in 0..id.len() {
            let mut altered = id.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).expect("ASCII");
            assert_eq!(two.open(&altered, &caller, &CatalogueEndpoint::All), None);
        }
        for bad in ["", "7", &id[1..], &format!("{id}A")] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
