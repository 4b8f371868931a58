//! Three nodes over one PostgreSQL, with the configuration that `deploy/` has.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};
use weir_tests::{
    Admin, Cluster, Gateway, House, Modern, Postgres, answer_to, cluster::NODES, http,
    network::TestNetwork, place, read_output, within,
};

use crate::sample;

/// The time in which a change reaches every node.
pub(super) const SPREAD: Duration = Duration::from_secs(5);
const SCRAPE: &str = "scrape-2c81d0e5";

pub(super) struct FleetNode {
    pub(super) gateway: Gateway,
    pub(super) house: House,
}

/// A fleet with one contract and a key.
pub(super) struct Fleet {
    pub(super) nodes: Vec<FleetNode>,
    pub(super) database: Postgres,
    pub(super) key: String,
    /// The first admin key, which every node accepts.
    pub(super) admin_key: String,
    pub(super) cluster: Cluster,
}

impl Fleet {
    /// Returns `None` where this machine makes no networks.
    pub(super) async fn start() -> Option<Self> {
        Self::start_with(("", "")).await
    }

    /// Starts nodes with one text of the configuration in another's place.
    pub(super) async fn start_with(replaced: (&str, &str)) -> Option<Self> {
        Self::start_by(None, replaced).await
    }

    /// Starts nodes of the given program, or of this build's program if none is given.
    pub(super) async fn start_by(program: Option<&Path>, replaced: (&str, &str)) -> Option<Self> {
        if !TestNetwork::is_allowed() {
            return None;
        }
        let cluster = Cluster::new();
        let database = cluster.start_database();
        // All at once, on a database without tables, as an orchestrator starts them.
        let start = |name| {
            let house = house(&cluster, name, replaced);
            let gateway = serve(&cluster, &database, name, &house, program);
            FleetNode { gateway, house }
        };
        let nodes: Vec<FleetNode> = std::thread::scope(|scope| {
            let starting = NODES.map(|name| scope.spawn(move || start(name)));
            let started = starting.map(|node| node.join().expect("a node starts"));
            started.into()
        });
        let token =
            |node: &FleetNode| fs::read_to_string(node.house.path().join("state/admin.token")).ok();
        let tokens: Vec<String> = nodes.iter().filter_map(token).collect();
        assert_eq!(tokens.len(), 1, "one node has the first admin key");
        let mut fleet = Self {
            nodes,
            database,
            key: String::new(),
            admin_key: tokens[0].trim().to_owned(),
            cluster,
        };
        fleet.publish(0, sample::CONTRACT).await;
        let (status, made) = fleet
            .admin(0)
            .ask("POST", "/v1/keys", json!({"agent": "ann"}).to_string())
            .await;
        assert_eq!(status, 201, "{made}");
        fleet.key = made["key"].as_str().expect("a key").to_owned();
        fleet.cluster.wait_for_nodes(NODES.len()).await;
        for node in 0..NODES.len() {
            let serves = async || {
                let answer = fleet.client(node).ask("tools/list", json!({})).await;
                answer.status == 200 && answer.text.contains("lookup_airport")
            };
            within(SPREAD, "the key and the contract are known", serves).await;
        }
        Some(fleet)
    }

    /// Returns the admin API of a node.
    pub(super) fn admin(&self, node: usize) -> Admin {
        let url = fs::read_to_string(self.nodes[node].house.path().join("state/admin.url"));
        Admin {
            url: url.expect("the node has written it"),
            key: self.admin_key.clone(),
        }
    }

    /// Submits a contract to one node, where it goes live.
    pub(super) async fn publish(&self, node: usize, contract: &str) -> Value {
        let body = json!({"source": contract}).to_string();
        let (status, answer) = self.admin(node).ask("POST", "/v1/contracts", body).await;
        assert!(
            (200..300).contains(&status) && answer["verdict"] != "held",
            "{answer}"
        );
        answer
    }

    /// Returns a client of only one node.
    pub(super) fn client(&self, node: usize) -> Modern {
        Modern::with_key(self.nodes[node].gateway.url(), &self.key)
    }

    /// Starts a node again that has ended.
    pub(super) fn restart(&mut self, node: usize) {
        self.restart_by(node, None);
    }

    /// Starts it by another program.
    pub(super) fn restart_by(&mut self, node: usize, program: Option<&Path>) {
        let house = &self.nodes[node].house;
        let gateway = serve(&self.cluster, &self.database, NODES[node], house, program);
        self.nodes[node].gateway = gateway;
    }

    /// Runs a command with the first node's configuration, by the first admin key. Returns what it prints.
    pub(super) fn command(&self, words: &[&str]) -> String {
        let mut command = self.nodes[0].house.weir_as_it_is(words);
        command.env("WEIR_ADMIN_KEY", &self.admin_key);
        command.env("WEIR_STATE_URL", self.database.url());
        let (code, out, err) = read_output(command.output().expect("weir starts"));
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        out
    }

    /// Returns how many calls each node has answered.
    pub(super) async fn calls(&self) -> Vec<f64> {
        self.sums("weir_calls_total{").await
    }

    /// Returns how many calls run at each node.
    pub(super) async fn running(&self) -> Vec<f64> {
        self.sums("weir_in_flight_calls ").await
    }

    /// Returns the sums of the series that begin so.
    async fn sums(&self, beginning: &str) -> Vec<f64> {
        let mut sums = Vec::new();
        for node in &self.nodes {
            let url = format!("{}/metrics", node.gateway.base);
            let answer = answer_to(http().get(url).bearer_auth(SCRAPE)).await;
            let text = answer.text().await.expect("text");
            let series = text.lines().filter(|line| line.starts_with(beginning));
            let numbers = series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            sums.push(numbers.sum());
        }
        sums
    }
}

/// Makes the folder of a node. Its configuration is that of `deploy/`, with places and names of this test.
fn house(cluster: &Cluster, name: &str, replaced: (&str, &str)) -> House {
    let file = place::repository().join("deploy/weir.toml");
    let mut config = fs::read_to_string(file).expect("the configuration is there");
    let cache = place::cache().join("compiled");
    let hosts = format!("hosts = [\"{}\"]", cluster.host());
    // Adapters are in the program.
    let folders = format!("plugins = \"plugins\"\ncache = {cache:?}");
    for (there, here) in [
        ("plugins = \"/var/lib/weir/plugins\"", folders.as_str()),
        ("\"/var/lib/weir/state\"", "\"state\""),
        ("hosts = []", &hosts),
        replaced,
    ] {
        assert!(config.contains(there), "{there} in deploy/weir.toml");
        config = config.replacen(there, here, 1);
    }
    config += &format!(
        "[admin]\nlisten = \"{}:8485\"\n[limits]\nagent_rate = \"off\"\n\
         [connections.data]\nkind = \"files\"\npath = \"data\"\nwrite = true\n[plugins.sheet.grants]\ndata = \"write\"\n\
         [plugins.weir-guest-conformance]\ncontract = \"conformance\"\ncpu_max_ms = 60000\n",
        cluster.network.address(name)
    );
    House::new()
        .file("data/airports.csv", sample::DATA)
        .file("weir.toml", config)
}

fn serve(
    cluster: &Cluster,
    database: &Postgres,
    name: &str,
    house: &House,
    program: Option<&Path>,
) -> Gateway {
    let environment = [
        ("WEIR_STATE_URL", database.url()),
        ("WEIR_SCRAPE_TOKEN", SCRAPE.to_owned()),
    ];
    cluster.serve(name, house, &environment, program)
}
