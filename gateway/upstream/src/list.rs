//! Reads all lists of a server, each to its end or its bound.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::{
    error::{RequestError, UpstreamFailure, UpstreamFailureKind, one_line},
    message,
    session::{OutgoingMeta, SessionRequest, UpstreamSession},
};

/// The number of times that lists are read again if they change while they are read.
const READ_AGAIN_MAX: usize = 5;
const METHOD_NOT_FOUND: i64 = -32601;
/// The member of an answer that has the tools.
const TOOLS: &str = "tools";
const TEMPLATES: &str = "resourceTemplates";

/// The raw items of every list that the server advertises.
#[derive(Debug, Default)]
pub struct UpstreamLists {
    pub tools: Option<Vec<Box<RawValue>>>,
    pub resources: Option<Vec<Box<RawValue>>>,
    pub templates: Option<Vec<Box<RawValue>>>,
    pub prompts: Option<Vec<Box<RawValue>>>,
    /// The faults of the lists that did not keep them from being read.
    pub notes: Vec<String>,
    /// The methods that the server answered with an error, so that their lists are unknown.
    pub refused: Vec<&'static str>,
}

impl UpstreamLists {
    /// Returns `true` if both have the same items, as they were written.
    fn has_items_of(&self, other: &Self) -> bool {
        self.texts() == other.texts() && self.refused == other.refused
    }

    fn texts(&self) -> [Option<Vec<&str>>; 4] {
        let lists = [&self.tools, &self.resources, &self.templates, &self.prompts];
        lists.map(|list| {
            let items = list.as_ref()?;
            Some(items.iter().map(|item| item.get()).collect())
        })
    }
}

/// The lists as they are read.
struct ListReader {
    /// The room that all lists together have left.
    bytes: usize,
    items: usize,
    notes: Vec<String>,
    refused: Vec<&'static str>,
}

impl ListReader {
    fn new(session: &UpstreamSession) -> Self {
        let bounds = session.core.settings().bounds;
        Self {
            bytes: bounds.list_max_bytes,
            items: bounds.items_max,
            notes: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Notes that a list is unknown. It is empty then, and what was published from it is kept.
    fn refuse(&mut self, method: &'static str, note: String) -> Vec<Box<RawValue>> {
        self.notes.push(note);
        self.refused.push(method);
        Vec::new()
    }
}

impl UpstreamSession {
    /// Lists what the server advertises, once it has been quiet: some servers list other tools a moment after a client
    /// stated its capabilities. Some announce a change whenever they are asked: what they list twice in a row counts.
    pub async fn lists(&self) -> Result<UpstreamLists, UpstreamFailure> {
        let mut changes = self.core.changes();
        let mut before: Option<UpstreamLists> = None;
        for _ in 0..READ_AGAIN_MAX {
            if !self.is_modern() && self.about().get().contains("\"listChanged\"") {
                let quiet = self.core.settings().quiet;
                let settle =
                    async { while let Ok(Ok(())) = timeout(quiet, changes.changed()).await {} };
                let _ = timeout(quiet.max(Duration::from_millis(1)) * 20, settle).await;
            }
            changes.mark_unchanged();
            let mut listed = self.read_lists().await?;
            if !changes.has_changed().unwrap_or(false) {
                return Ok(listed);
            }
            if before.is_some_and(|before| before.has_items_of(&listed)) {
                listed.notes.push(
                    "the server announces a change whenever its lists are read, and lists the same"
                        .to_owned(),
                );
                return Ok(listed);
            }
            before = Some(listed);
        }
        let cause = format!("they changed each of the {READ_AGAIN_MAX} times they were read");
        Err(UpstreamFailure::new(
            UpstreamFailureKind::Protocol,
            "the server's lists to settle",
            cause,
        ))
    }

    /// Returns only the current list of resources. A server that does not support the list has none.
    pub(crate) async fn resources(&self) -> Result<Vec<Box<RawValue>>, UpstreamFailure> {
        let mut reading = ListReader::new(self);
        let listed = self
            .list("resources/list", "resources", &mut reading)
            .await?;
        match reading.notes.pop().filter(|_| !reading.refused.is_empty()) {
            Some(cause) => Err(UpstreamFailure::new(
                UpstreamFailureKind::Protocol,
                "the server to list its resources",
                cause,
            )),
            None => Ok(listed.unwrap_or_default()),
        }
    }

    async fn read_lists(&self) -> Result<UpstreamLists, UpstreamFailure> {
        let (mut reading, mut listed) = (ListReader::new(self), UpstreamLists::default());
        if self.advertises("tools") {
            listed.tools = self.list("tools/list", TOOLS, &mut reading).await?;
        }
        if self.advertises("resources") {
            listed.resources = self
                .list("resources/list", "resources", &mut reading)
                .await?;
            listed.templates = self
                .list("resources/templates/list", TEMPLATES, &mut reading)
                .await?;
        }
        if self.advertises("prompts") {
            listed.prompts = self.list("prompts/list", "prompts", &mut reading).await?;
        }
        if !["tools", "resources", "prompts"]
            .iter()
            .any(|capability| self.advertises(capability))
        {
            reading.notes.push(
                "the server declares no tools, resources or prompts in its capabilities, so it is asked for none".to_owned(),
            );
        }
        Ok(UpstreamLists {
            notes: reading.notes,
            refused: reading.refused,
            ..listed
        })
    }

    /// Reads one list; `None` if the server does not know the method. A server is useless without its tools, but if it has
    /// them, it may answer another list with an error, which then counts as empty.
    async fn list(
        &self,
        method: &'static str,
        member: &str,
        reading: &mut ListReader,
    ) -> Result<Option<Vec<Box<RawValue>>>, UpstreamFailure> {
        let bounds = self.core.settings().bounds;
        let expected = || format!("the server to list its {member}");
        let mut items = Vec::new();
        let mut cursors = HashSet::new();
        // JSON: some servers write numbers.
        let mut cursor: Option<String> = None;
        for _ in 0..bounds.pages_max {
            let mut params: Vec<(&str, &str)> = cursor
                .iter()
                .map(|cursor| ("cursor", cursor.as_str()))
                .collect();
            let meta = self
                .is_modern()
                .then(|| self.core.meta(self.version(), &OutgoingMeta::LIST));
            params.extend(meta.iter().map(|meta| ("_meta", meta.as_str())));
            let page = match self
                .request(SessionRequest::new(
                    method,
                    message::object(&params),
                    self.version(),
                ))
                .await
            {
                Ok(page) => page,
                Err(RequestError::Refused(refusal))
                    if refusal.code == METHOD_NOT_FOUND && items.is_empty() =>
                {
                    // A server without templates need not support listing them.
                    if member != TEMPLATES {
                        reading.notes.push(format!(
                            "the server advertises {member} and does not know `{method}`"
                        ));
                    }
                    return Ok(None);
                }
                Err(RequestError::Refused(refusal)) if member != TOOLS => {
                    let (code, message) = (refusal.code, one_line(&refusal.words(), 200));
                    let note = format!(
                        "the server advertises {member} and answers `{method}` with error {code}: {message}"
                    );
                    return Ok(Some(reading.refuse(method, note)));
                }
                Err(error) => return Err(error.into_failure(method)),
            };
            let too_large = |cause: String| {
                UpstreamFailure::new(UpstreamFailureKind::TooLarge, expected(), cause)
                    .step("list less, or raise the bound")
            };
            reading.bytes = reading.bytes.checked_sub(page.get().len()).ok_or_else(|| {
                too_large(format!(
                    "its lists have more than {} bytes",
                    bounds.list_max_bytes
                ))
            })?;
            let Some((found, next)) = read_page(&page, member) else {
                let cause = format!("its answer to `{method}` has no list `{member}`");
                if member == TOOLS {
                    return Err(UpstreamFailure::new(
                        UpstreamFailureKind::Protocol,
                        expected(),
                        cause,
                    ));
                }
                return Ok(Some(reading.refuse(method, cause)));
            };
            reading.items = reading.items.checked_sub(found.len()).ok_or_else(|| {
                too_large(format!(
                    "its lists have more than {} items",
                    bounds.items_max
                ))
            })?;
            items.extend(found);
            let Some(next) = next else {
                return Ok(Some(items));
            };
            if !cursors.insert(next.clone()) {
                let cause = "it gave a cursor a second time, so that its pages never end";
                return Err(
                    UpstreamFailure::new(UpstreamFailureKind::Protocol, expected(), cause)
                        .step("report it to the server's author"),
                );
            }
            cursor = Some(next);
        }
        Err(UpstreamFailure::new(
            UpstreamFailureKind::TooLarge,
            expected(),
            format!("it has more than {} pages", bounds.pages_max),
        ))
    }
}

/// Returns the items, and the cursor of the next page, JSON. An empty cursor ends the list, as it does for every client.
fn read_page(page: &RawValue, member: &str) -> Option<(Vec<Box<RawValue>>, Option<String>)> {
    let members: HashMap<String, &RawValue> = serde_json::from_str(page.get()).ok()?;
    let items = match members.get(member)?.get() {
        // Programs that do not distinguish an empty list from none, or from an empty object, write it so.
        "null" | "{}" => Vec::new(),
        items => serde_json::from_str(items).ok()?,
    };
    let next = members.get("nextCursor").map(|next| next.get());
    let next = next.filter(|next| !matches!(*next, "null" | "false" | r#""""#));
    Some((items, next.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(json: &str) -> Option<(usize, Option<String>)> {
        let page: &RawValue = serde_json::from_str(json).expect("JSON");
        read_page(page, TOOLS).map(|(items, next)| (items.len(), next))
    }

    #[test]
    fn pages_are_read_as_servers_write_them() {
        for (json, items, next) in [
            (r#"{"tools":[{},{}],"nextCursor":"a"}"#, 2, Some(r#""a""#)),
            (r#"{"tools":[{}],"nextCursor":2}"#, 1, Some("2")),
            (
                r#"{"tools":[{}],"nextCursor":{"at":2}}"#,
                1,
                Some(r#"{"at":2}"#),
            ),
            (r#"{"tools":[{}],"nextCursor":""}"#, 1, None),
            (r#"{"tools":[],"nextCursor":null}"#, 0, None),
            (r#"{"tools":[],"nextCursor":false}"#, 0, None),
            (r#"{"tools":null}"#, 0, None),
            (r#"{"tools":{}}"#, 0, None),
        ] {
            assert_eq!(page(json), Some((items, next.map(str::to_owned))), "{json}");
        }
        for json in [r#"{}"#, r#"{"tools":"all"}"#, r#"{"tools":{"a":{}}}"#, "[]"] {
            assert_eq!(page(json), None, "{json}");
        }
    }
}
