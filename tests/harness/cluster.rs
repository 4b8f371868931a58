//! A fleet of one test: three gateways behind HAProxy with the configuration in `deploy/`, each on its own machine.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::NamedTempFile;

use crate::{
    Gateway, House, Postgres, client::http, network::TestNetwork, place, upstream::wait_for_address,
};

pub const NODES: [&str; 3] = ["n1", "n2", "n3"];
const DATABASE: &str = "db";
const BALANCER: &str = "lb";
const PORT: u16 = 8484;
/// The port of HAProxy's own metrics.
const METRICS_PORT: u16 = 8405;

/// The machines of a fleet, and HAProxy, which runs before there are nodes.
pub struct Cluster {
    balancer: Child,
    log: NamedTempFile,
    pub network: TestNetwork,
}

impl Cluster {
    pub fn new() -> Self {
        let network = TestNetwork::new(&[DATABASE, BALANCER, NODES[0], NODES[1], NODES[2]]);
        let program = place::present("/usr/sbin/haproxy".into(), "cargo xtask test");
        let mut haproxy = Command::new(program);
        haproxy
            .args(["-db", "-f"])
            .arg(place::repository().join("deploy/haproxy.cfg"))
            .env("WEIR_BIND", at(&network, BALANCER));
        for (number, name) in (1..).zip(NODES) {
            haproxy.env(format!("WEIR_NODE{number}"), at(&network, name));
        }
        let log = NamedTempFile::new().expect("a temporary file");
        let file = log.reopen().expect("the temporary file can be written");
        let balancer = network
            .on(BALANCER, &haproxy)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a file can be shared"))
            .stderr(file)
            .spawn()
            .expect("haproxy starts");
        let cluster = Self {
            balancer,
            log,
            network,
        };
        // A failure prints HAProxy's log.
        wait_for_address(&cluster.host(), PORT, "haproxy");
        cluster
    }

    /// Starts PostgreSQL on a separate machine.
    pub fn start_database(&self) -> Postgres {
        let mut database = Postgres::stopped();
        database.move_to(&self.network, DATABASE);
        database.run();
        database
    }

    /// Serves a house on one of the machines, by the program of this build or another one.
    pub fn serve(
        &self,
        node: &str,
        house: &House,
        environment: &[(&str, String)],
        program: Option<&Path>,
    ) -> Gateway {
        let listen = at(&self.network, node);
        let words = ["serve", "--listen", &listen, "--log-format", "json"];
        let mut command = house.weir_as_it_is(&words);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let command = match program {
            Some(program) => by_program(program, &command),
            None => command,
        };
        Gateway::start(self.network.on(node, &command))
    }

    /// Runs a command of a house on one of the machines, where the admin API is on loopback. Returns what it prints.
    pub fn run(&self, node: &str, house: &House, words: &[&str]) -> String {
        let mut command = self.network.on(node, &house.weir_as_it_is(words));
        let output = command.output().expect("weir starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?} on {node}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Waits until HAProxy sees the given number of nodes.
    pub async fn wait_for_nodes(&self, count: usize) {
        let url = format!("http://{}:{METRICS_PORT}/metrics", self.host());
        let began = Instant::now();
        loop {
            let answer = http().get(&url).send().await.expect("haproxy answers");
            let text = answer.text().await.expect("text");
            let up = "haproxy_server_status{proxy=\"nodes\",";
            let is_up = |line: &&str| line.starts_with(up) && line.ends_with("state=\"UP\"} 1");
            if text.lines().filter(is_up).count() == count {
                return;
            }
            assert!(
                began.elapsed() < Duration::from_secs(120),
                "HAProxy does not see {count} nodes:\n{text}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the endpoint that clients use.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", at(&self.network, BALANCER))
    }

    /// Returns the name that clients use, as in `[http] hosts`.
    pub fn host(&self) -> String {
        self.network.address(BALANCER)
    }

    /// Returns what HAProxy wrote so far.
    pub fn balancer_log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap_or_default()
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.balancer.kill();
        let _ = self.balancer.wait();
        if std::thread::panicking() {
            eprintln!("--- log of HAProxy\n{}\n---", self.balancer_log());
        }
    }
}

/// Returns the same command by another program.
fn by_program(program: &Path, command: &Command) -> Command {
    let mut other = Command::new(program);
    other.args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        other.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
}

fn at(network: &TestNetwork, name: &str) -> String {
    format!("{}:{PORT}", network.address(name))
}
