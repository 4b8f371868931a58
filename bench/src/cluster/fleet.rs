//! Nodes over one PostgreSQL, each a process of this machine.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use weir_bench::ticket;

use crate::{
    place::BenchPaths,
    pressure::LoadedServer,
    process::{MeasuredProcess, START_MAX},
    weir::{KeyBreadth, WeirInstance},
    wire::{self, BenchEndpoint, BenchQuestion},
};

/// The contract that every fleet serves first.
pub(super) const CONTRACT: &str = "support-0";
/// Tools of one contract.
const CONTRACT_TOOLS: usize = 1_000;

pub(super) struct BenchNode {
    house: WeirInstance,
    pub(super) process: MeasuredProcess,
    pub(super) door: BenchEndpoint,
    admin: String,
}

pub(super) struct BenchFleet {
    pub(super) nodes: Vec<BenchNode>,
    admin_key: String,
}

impl BenchNode {
    fn start(place: &BenchPaths, house: WeirInstance, key: Option<String>) -> anyhow::Result<Self> {
        let (process, port) = house.start(&place.server_core, START_MAX)?;
        let admin = std::fs::read_to_string(house.state().join("admin.url"))?;
        let url = format!("http://127.0.0.1:{port}/mcp");
        Ok(Self {
            house,
            process,
            door: BenchEndpoint { url, key },
            admin: admin.trim().to_owned(),
        })
    }

    pub(super) fn server(&self) -> LoadedServer<'_> {
        LoadedServer {
            process: &self.process,
            door: &self.door,
        }
    }
}

impl BenchFleet {
    /// Starts nodes one after the other; the first one publishes the given number of tools.
    pub(super) fn start(
        place: &BenchPaths,
        url: &str,
        nodes: usize,
        tools: usize,
    ) -> anyhow::Result<Self> {
        let first = BenchNode::start(place, house(place, url)?, None)?;
        let admin_key = std::fs::read_to_string(first.house.state().join("admin.token"))?;
        let mut fleet = Self {
            nodes: vec![first],
            admin_key: admin_key.trim().to_owned(),
        };
        let names: Vec<String> = (0..tools).map(tool_name).collect();
        for (number, names) in names.chunks(CONTRACT_TOOLS).enumerate() {
            fleet.publish(
                0,
                &contract(&format!("support-{number}"), names, "Look a ticket up"),
            )?;
        }
        let key = fleet.nodes[0].house.key("bench", KeyBreadth::Wide)?;
        fleet.nodes[0].door.key = Some(key.clone());
        for _ in 1..nodes {
            let node = BenchNode::start(place, house(place, url)?, Some(key.clone()))?;
            fleet.nodes.push(node);
        }
        for node in &fleet.nodes {
            let began = Instant::now();
            while let Err(error) = BenchQuestion::lookup().ask(&node.door, None) {
                ensure!(began.elapsed() < START_MAX, "a node does not call: {error}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(fleet)
    }

    /// Ends the first node and starts it again, from the state.
    pub(super) fn restart_first(mut self, place: &BenchPaths) -> anyhow::Result<Self> {
        let BenchNode {
            house,
            process,
            door,
            ..
        } = self.nodes.remove(0);
        process.stop()?;
        let node = BenchNode::start(place, house, door.key)?;
        self.nodes.insert(0, node);
        Ok(self)
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.nodes
            .into_iter()
            .try_for_each(|node| node.process.stop())
    }

    /// Publishes a contract at one node. The answer means that all nodes have it.
    pub(super) fn publish(&self, node: usize, contract: &Value) -> anyhow::Result<()> {
        let body = json!({ "source": contract.to_string() });
        let answer = self.ask_admin(node, "POST", "/v1/contracts", Some(&body))?;
        hold_everywhere(&answer)
    }

    /// Makes a key at one node. Returns its id and the key.
    pub(super) fn make_key(&self, node: usize, agent: &str) -> anyhow::Result<(String, String)> {
        let made = self.ask_admin(node, "POST", "/v1/keys", Some(&json!({ "agent": agent })))?;
        let text = |name: &str| made[name].as_str().map(str::to_owned);
        text("id").zip(text("key")).context("a key has an id")
    }

    /// Revokes a key at one node. The answer means that all nodes have applied it.
    pub(super) fn revoke(&self, node: usize, id: &str) -> anyhow::Result<()> {
        let answer = self.ask_admin(node, "DELETE", &format!("/v1/keys/{id}"), None)?;
        hold_everywhere(&answer)
    }

    fn ask_admin(
        &self,
        node: usize,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.nodes[node].admin);
        let authorization = format!("Bearer {}", self.admin_key);
        let agent = wire::agent();
        let answer = match (method, body) {
            ("DELETE", _) => agent
                .delete(&url)
                .header("authorization", &authorization)
                .call(),
            (_, body) => agent
                .post(&url)
                .header("authorization", &authorization)
                .header("content-type", "application/json")
                .send(body.unwrap_or(&Value::Null).to_string()),
        };
        let mut answer = answer?;
        let text = answer.body_mut().read_to_string()?;
        if !answer.status().is_success() {
            bail!("{method} {path}: {} {text}", answer.status());
        }
        Ok(serde_json::from_str(&text)?)
    }
}

/// Makes a separate database for a fleet, and returns its URL.
pub(super) fn make_database(place: &BenchPaths, name: &str) -> anyhow::Result<String> {
    let postgres = place.postgres()?;
    postgres.sql(&format!("CREATE DATABASE {name};"))?;
    Ok(postgres.url_of(name))
}

/// Returns a contract with these tools.
pub(super) fn contract(name: &str, tools: &[String], description: &str) -> Value {
    let mut contract = ticket::contract(name, "noop", &json!({}), tools);
    contract["tools"][0]["description"] = description.into();
    contract
}

fn house(place: &BenchPaths, url: &str) -> anyhow::Result<WeirInstance> {
    let house = WeirInstance::empty(place, "bench-weir")?;
    house.share_state(url)?;
    Ok(house)
}

fn tool_name(number: usize) -> String {
    match number {
        0 => ticket::TOOL.to_owned(),
        number => format!("{}_{number:05}", ticket::TOOL),
    }
}

fn hold_everywhere(answer: &Value) -> anyhow::Result<()> {
    ensure!(answer["everywhere"] == true, "not everywhere: {answer}");
    Ok(())
}
