//! Rights that are granted and end at one node, and are tried at every node after that.

use serde_json::{Value, json};
use weir_tests::{Admin, Modern, Postgres};

use super::{Node, submit};

const GUARDED: &str = r#"
contract: guarded
collections:
  airports:
    adapter: sheet
    settings: { connection: data, path: airports.csv }
    columns: [iata, name, country, elevation_ft, latitude]
    key: [iata]
    write: true
    shape: { elevation_ft: { type: integer, nullable: true }, latitude: { type: number, nullable: true } }
tools:
  - tool: add_airport
    description: Adds an airport that a person approved.
    verb: create
    collection: airports
    approval: required
    fields:
      - { name: iata, type: text, required: true }
      - { name: name, type: text, required: true }
      - { name: country, type: text, required: true }
"#;

/// An account and a link as a sign-in at another server leaves them.
const CONNECTED: &str = "INSERT INTO accounts (upstream, owner, label, server, issuer, sealed, version, renewing_until_ms, created_ms, renewed_ms) \
    VALUES ('crm', 'gateway', 'gateway', 's', 'i', 'sealed', 1, 0, 1, 1); \
    INSERT INTO connect_links (hash, kind, upstream, owner, label, sealed, expires_ms) \
    VALUES ('hash', 'ticket', 'crm', 'gateway', 'gateway', 'sealed', 9000000000000)";
/// What the gateway does to both.
const DISCONNECT: &str = "DELETE FROM accounts; DELETE FROM connect_links";
const STILL_CONNECTED: &str =
    "SELECT (SELECT count(*) FROM accounts) + (SELECT count(*) FROM connect_links)";

/// Rights of the kinds that end in another way than with a key.
pub(super) struct SampleRights {
    /// A session of the console, and a link that starts one.
    session: String,
    link: String,
    /// The key of the agent whose writes a person decides about.
    agent: String,
    approved: String,
    rejected: String,
}

impl SampleRights {
    /// Grants rights at a node to an agent with a key.
    pub(super) async fn grant(node: &Node, server: &Postgres, agent: &str) -> Self {
        let (status, answer) = submit(node, GUARDED).await;
        assert_eq!(status, 200, "{answer}");
        let make = async |path: &str, member: &str| {
            let (status, made) = node.admin.ask("POST", path, "").await;
            assert_eq!(status, 201, "{made}");
            made[member].as_str().expect("a token").to_owned()
        };
        let session = make("/v1/session", "token").await;
        let link = make("/v1/session/link", "link").await;
        let approved = plan(&add(node, agent, "AAA").await);
        let (status, answer) = decide(node, &approved, "approve").await;
        assert_eq!(status, 200, "{answer}");
        let rejected = plan(&add(node, agent, "BBB").await);
        server.sql(CONNECTED);
        Self {
            session,
            link,
            agent: agent.to_owned(),
            approved,
            rejected,
        }
    }

    /// Ends each right at a node: by a sign-out, by its use, by a rejection, by a removal.
    pub(super) async fn end(&self, node: &Node, server: &Postgres) {
        let (status, _) = holder(node, &self.session)
            .ask("DELETE", "/v1/session", "")
            .await;
        assert_eq!(status, 204);
        let (status, _) = holder(node, &self.link)
            .ask("POST", "/v1/session", "")
            .await;
        assert_eq!(status, 201);
        let done = add(node, &self.agent, "AAA").await;
        assert_eq!(done["isError"], false, "{done}");
        let (status, answer) = decide(node, &self.rejected, "reject").await;
        assert_eq!(status, 200, "{answer}");
        server.sql(DISCONNECT);
    }

    /// Asserts that a node accepts none of the rights, and that the database has none.
    pub(super) async fn assert_ended(&self, node: &Node, server: &Postgres) {
        let (status, answer) = holder(node, &self.session)
            .ask("GET", "/v1/session", "")
            .await;
        assert_eq!(status, 401, "it was signed out: {answer}");
        let (status, answer) = holder(node, &self.link)
            .ask("POST", "/v1/session", "")
            .await;
        assert_eq!(status, 401, "the link was used: {answer}");
        let asked = add(node, &self.agent, "AAA").await;
        assert_ne!(plan(&asked), self.approved, "the approval was used");
        let refused = add(node, &self.agent, "BBB").await;
        let reason = &refused["structuredContent"]["reason"];
        assert_eq!(reason, "approval_rejected", "{refused}");
        assert_eq!(server.sql(STILL_CONNECTED), "0", "accounts and links");
    }
}

/// Returns the admin API of a node with a session or a link.
fn holder(node: &Node, token: &str) -> Admin {
    Admin {
        url: node.admin.url.clone(),
        key: token.to_owned(),
    }
}

async fn add(node: &Node, key: &str, iata: &str) -> Value {
    let client = Modern::with_key(node.gateway.url(), key);
    let new = json!({"iata": iata, "name": "New", "country": "NO"});
    client.call("add_airport", new).await
}

/// Returns the id of the plan that a call waits as.
fn plan(result: &Value) -> String {
    let id = result["structuredContent"]["plan"]["id"].as_str();
    id.unwrap_or_else(|| panic!("{result}")).to_owned()
}

async fn decide(node: &Node, plan: &str, decision: &str) -> (u16, Value) {
    let path = format!("/v1/approvals/{plan}");
    let (_, shown) = node.admin.ask("GET", &path, "").await;
    let body = match decision {
        "approve" => json!({ "fingerprint": shown["fingerprint"] }),
        _ => json!({}),
    };
    let path = format!("{path}/{decision}");
    node.admin.ask("POST", &path, body.to_string()).await
}
