//! Asks one question in each era, as bytes for the generator and as one answer read to its end.

use std::{
    io::{BufRead, BufReader},
    time::Duration,
};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use weir_bench::ticket;

pub(crate) const MODERN: &str = "2026-07-28";
/// The mark of an answer that refuses a call for its arguments.
pub(crate) const REFUSED: &str = "invalid_arguments";
const LEGACY: &str = "2025-06-18";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BenchEra {
    Modern,
    /// The legacy protocol without a session.
    Stateless,
    /// The legacy protocol, one session a connection.
    Session,
}

/// The question that is asked again and again.
#[derive(Clone, Debug)]
pub(crate) struct BenchQuestion {
    pub(crate) era: BenchEra,
    pub(crate) method: &'static str,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// A text that every good answer contains.
    pub(crate) mark: &'static str,
}

/// The address of a question, and its caller.
#[derive(Clone, Debug)]
pub(crate) struct BenchEndpoint {
    pub(crate) url: String,
    pub(crate) key: Option<String>,
}

impl BenchQuestion {
    /// Returns a call of the revision 2026-07-28.
    pub(crate) fn call(tool: &str, arguments: Value, mark: &'static str) -> Self {
        Self {
            era: BenchEra::Modern,
            method: "tools/call",
            tool: tool.to_owned(),
            arguments,
            mark,
        }
    }

    /// Returns the call of the ticket that is there.
    pub(crate) fn lookup() -> Self {
        let arguments = json!({ "ticket_id": ticket::ID });
        Self::call(ticket::TOOL, arguments, ticket::ID)
    }

    /// Returns a list of the tools.
    pub(crate) fn listing() -> Self {
        Self {
            method: "tools/list",
            ..Self::call("", Value::Null, ticket::TOOL)
        }
    }

    pub(crate) fn headers(
        &self,
        door: &BenchEndpoint,
        session: Option<&str>,
    ) -> Vec<(String, String)> {
        let mut headers = door.headers();
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        match self.era {
            BenchEra::Modern => {
                add("mcp-protocol-version", MODERN);
                add("mcp-method", self.method);
                if self.method == "tools/call" {
                    add("mcp-name", &self.tool);
                }
            }
            BenchEra::Stateless | BenchEra::Session => add("mcp-protocol-version", LEGACY),
        }
        if let Some(session) = session {
            add("mcp-session-id", session);
        }
        headers
    }

    pub(crate) fn body(&self) -> String {
        self.message(7).to_string()
    }

    pub(crate) fn message(&self, id: u64) -> Value {
        let mut params = match self.method {
            "tools/call" => json!({ "name": self.tool, "arguments": self.arguments }),
            _ => json!({}),
        };
        if self.era == BenchEra::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": { "name": "weir-bench", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": self.method, "params": params })
    }

    /// Asks once; the response, when it is a good one.
    pub(crate) fn ask(&self, door: &BenchEndpoint, session: Option<&str>) -> anyhow::Result<Value> {
        let (_, answer) = post(
            &agent(),
            &door.url,
            &self.headers(door, session),
            &self.body(),
        )?;
        self.judge(&answer)?;
        serde_json::from_str(&answer).context("the answer is not JSON")
    }

    /// Asks once, over a connection that is kept for the next time.
    pub(crate) fn ask_over(&self, agent: &ureq::Agent, door: &BenchEndpoint) -> anyhow::Result<()> {
        let (_, answer) = post(agent, &door.url, &self.headers(door, None), &self.body())?;
        self.judge(&answer)
    }

    /// Fails if there is no valid answer, if it lacks the mark, or if it is an error where no refusal was expected.
    pub(crate) fn judge(&self, answer: &str) -> anyhow::Result<()> {
        let is_answer = answer.contains("\"result\"") && answer.contains(self.mark);
        if !is_answer || is_error(answer) != (self.mark == REFUSED) {
            bail!(
                "not the answer that was asked for: {}",
                answer.chars().take(400).collect::<String>()
            );
        }
        Ok(())
    }
}

/// Returns `true` if a result is marked as an error. Within a text the member's name has no quotes.
fn is_error(answer: &str) -> bool {
    answer.match_indices("\"isError\"").any(|(at, name)| {
        let value = answer[at + name.len()..].trim_start().strip_prefix(':');
        value.is_some_and(|value| value.trim_start().starts_with("true"))
    })
}

impl BenchEndpoint {
    /// Returns host and port, and the path.
    pub(crate) fn parts(&self) -> anyhow::Result<(String, String)> {
        let rest = self
            .url
            .strip_prefix("http://")
            .context("an http address")?;
        let (address, path) = rest.split_once('/').context("an address with a path")?;
        Ok((address.to_owned(), format!("/{path}")))
    }

    fn headers(&self) -> Vec<(String, String)> {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            (
                "accept".to_owned(),
                "application/json, text/event-stream".to_owned(),
            ),
        ];
        headers.extend(
            self.key
                .iter()
                .map(|key| ("authorization".to_owned(), format!("Bearer {key}"))),
        );
        headers
    }

    /// Opens a session of the legacy era.
    pub(crate) fn open_session(&self) -> anyhow::Result<String> {
        let (session, _) = post(
            &agent(),
            &self.url,
            &self.headers(),
            &initialize().to_string(),
        )?;
        let session = session.context("the server opened no session")?;
        let mut headers = self.headers();
        headers.push(("mcp-session-id".to_owned(), session.clone()));
        headers.push(("mcp-protocol-version".to_owned(), LEGACY.to_owned()));
        post(&agent(), &self.url, &headers, &initialized().to_string())?;
        Ok(session)
    }
}

pub(crate) fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "weir-bench", "version": "1" } } })
}

pub(crate) fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

pub(crate) fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60)));
    config.http_status_as_error(false).build().into()
}

/// Posts a message. Returns the session a server names, and the one message of its answer, plain or from a stream.
fn post(
    agent: &ureq::Agent,
    url: &str,
    headers: &[(String, String)],
    body: &str,
) -> anyhow::Result<(Option<String>, String)> {
    let mut request = agent.post(url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let mut response = request.send(body)?;
    let header = |name: &str| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let session = header("mcp-session-id");
    let stream = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let status = response.status();
    if !stream {
        let text = response
            .body_mut()
            .with_config()
            .limit(64 << 20)
            .read_to_string()?;
        if !status.is_success() {
            bail!(
                "HTTP {status}: {}",
                text.chars().take(400).collect::<String>()
            );
        }
        return Ok((session, text));
    }
    for line in BufReader::new(response.body_mut().as_reader()).lines() {
        if let Some(data) = line?.strip_prefix("data:")
            && data.contains("\"id\"")
        {
            return Ok((session, data.trim().to_owned()));
        }
    }
    bail!("the stream ended without an answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_an_answer_only_where_a_refusal_is_asked_for() {
        let judge = |mark, answer: &str| {
            let question = BenchQuestion::call(ticket::TOOL, Value::Null, mark);
            question.judge(answer).is_ok()
        };
        let found = r#"{"id":7,"result":{"content":[{"type":"text","text":"T-1001 \"isError\":true"}],"isError":false}}"#;
        let failed = r#"{"id":7,"result":{"content":[{"type":"text","text":"no T-1001"}],"isError" : true}}"#;
        let refused = r#"{"id":7,"result":{"content":[{"type":"text","text":"invalid_arguments"}],"isError":true}}"#;
        assert!(judge("T-1001", found) && !judge("T-1001", failed));
        assert!(judge(REFUSED, refused) && !judge(REFUSED, &refused.replace("true", "false")));
    }
}
