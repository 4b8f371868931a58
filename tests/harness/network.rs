//! A network of one test: machines that are network namespaces on one bridge, whose links can be cut. It needs root, and is removed
//! when dropped.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// The networks that tests choose of are parts of 198.18.0.0/15, which is set aside for tests of networks.
const PREFIX: &str = "198.18";
const NETWORKS: u32 = 250;

/// Machines by their names, each with its own address. This process reaches them all.
pub struct TestNetwork {
    /// What all names of interfaces begin with, which may have 15 letters.
    tag: String,
    number: u32,
    machines: Vec<String>,
}

impl TestNetwork {
    /// Returns whether this machine lets its processes make networks; where it does not, that is printed.
    pub fn is_allowed() -> bool {
        let space = format!("weir-probe-{}", std::process::id());
        let run = |words: &[&str]| {
            Command::new("ip")
                .args(words)
                .stderr(Stdio::null())
                .status()
        };
        let is_made = run(&["netns", "add", &space]).is_ok_and(|status| status.success());
        let _ = run(&["netns", "delete", &space]);
        if !is_made {
            eprintln!("not tested: this machine makes no network namespaces (`ip netns add`)");
        }
        is_made
    }

    pub fn new(machines: &[&str]) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let begin = process.wrapping_mul(8) + MADE.fetch_add(1, Ordering::Relaxed);
        let taken = printed(Command::new("ip").args(["-oneline", "-4", "address", "show"]));
        let mut numbers = (0..NETWORKS).map(|next| begin.wrapping_add(next) % NETWORKS);
        let number = numbers
            .find(|number| !taken.contains(&format!(" {PREFIX}.{number}.")))
            .expect("a free network");
        let network = Self {
            tag: format!("w{process:x}{}", char::from(b'a' + (begin % 26) as u8)),
            number,
            machines: machines.iter().map(|name| (*name).to_owned()).collect(),
        };
        network.make();
        network
    }

    fn make(&self) {
        let bridge = self.bridge();
        let mut words = format!("link add {bridge} type bridge\n");
        words += &format!("address add {PREFIX}.{}.1/24 dev {bridge}\n", self.number);
        words += &format!("link set {bridge} up\n");
        for name in &self.machines {
            let (space, link) = (self.namespace(name), self.link(name));
            words += &format!("netns add {space}\n");
            words += &format!("link add {link} type veth peer name eth0 netns {space}\n");
            words += &format!("link set {link} master {bridge} up\n");
        }
        run_batch(&[], &words);
        for name in &self.machines {
            let mut words = format!("address add {}/24 dev eth0\n", self.address(name));
            words += "link set lo up\nlink set eth0 up\n";
            run_batch(&["-netns", &self.namespace(name)], &words);
        }
    }

    /// Returns the address of a machine.
    pub fn address(&self, name: &str) -> String {
        let at = self.machines.iter().position(|machine| machine == name);
        let at = at.unwrap_or_else(|| panic!("no machine {name} in this network"));
        format!("{PREFIX}.{}.{}", self.number, at + 2)
    }

    /// Returns the addresses of all machines, in the notation of a network.
    pub fn range(&self) -> String {
        format!("{PREFIX}.{}.0/24", self.number)
    }

    /// Returns a command that runs on a machine as it would here. The process has the id of the command's own.
    pub fn on(&self, name: &str, command: &Command) -> Command {
        let mut there = Command::new("ip");
        there
            .args(["netns", "exec", &self.namespace(name)])
            .arg(command.get_program())
            .args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            there.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => there.env(name, value),
                None => there.env_remove(name),
            };
        }
        there
    }

    /// Takes a machine off the network. What it sends and what is sent to it is lost without a word.
    pub fn cut(&self, name: &str) {
        printed(Command::new("ip").args(["link", "set", &self.link(name), "down"]));
    }

    /// Puts a machine back.
    pub fn join(&self, name: &str) {
        printed(Command::new("ip").args(["link", "set", &self.link(name), "up"]));
    }

    fn bridge(&self) -> String {
        format!("{}br", self.tag)
    }

    fn link(&self, name: &str) -> String {
        format!("{}{name}", self.tag)
    }

    pub(crate) fn namespace(&self, name: &str) -> String {
        format!("weir-{}-{name}", self.tag)
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        for name in &self.machines {
            let _ = Command::new("ip")
                .args(["netns", "delete", &self.namespace(name)])
                .status();
        }
        let _ = Command::new("ip")
            .args(["link", "delete", &self.bridge()])
            .status();
    }
}

/// Runs several commands of `ip`, one a line.
fn run_batch(words: &[&str], lines: &str) {
    let mut child = Command::new("ip")
        .args(words)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ip runs: `cargo xtask test` installs it");
    let mut input = child.stdin.take().expect("stdin is piped");
    input
        .write_all(lines.as_bytes())
        .expect("ip reads its input");
    drop(input);
    let output = child.wait_with_output().expect("ip ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "networks of tests need root (run the tests as root, or in `unshare --map-root-user --net --mount`): {errors}\n{lines}"
    );
}

fn printed(command: &mut Command) -> String {
    let output = command.output().expect("ip runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
