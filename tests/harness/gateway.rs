//! A gateway of one test: its own folder of contracts, data and state, and the real binary serving it.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{
    Admin, Modern,
    client::{http, send},
    place,
};

/// The time a start may take: compiling three adapters on a busy machine is most of it.
const START: Duration = Duration::from_secs(120);

/// The words of a gateway that listens on a free port.
pub const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--log-format", "json"];

/// Returns `weir` without what this process' environment may have for another one.
pub fn weir(words: &[&str]) -> Command {
    let mut command = Command::new(place::binary("weir"));
    command.args(words);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WEIR_")) {
        command.env_remove(name);
    }
    command
}

/// The folder that a gateway is started from. Every test has its own.
pub struct House {
    folder: TempDir,
    config: String,
    plugins: PathBuf,
}

impl House {
    /// Makes an empty house: folders `contracts`, `data` and `state`, and the built adapters.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("weir-test-")
            .tempdir()
            .expect("a temporary folder");
        for name in ["contracts", "data", "state"] {
            fs::create_dir(folder.path().join(name)).expect("a folder in the temporary folder");
        }
        Self {
            folder,
            config: String::new(),
            plugins: place::plugins(),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a file; `name` is relative to the house, such as `contracts/a.yaml` or `data/a.csv`.
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(name, content);
        self
    }

    /// Adds to `weir.toml`.
    pub fn config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self.config.push('\n');
        self
    }

    /// Takes all of that out of `weir.toml` again.
    pub fn without_config(self) -> Self {
        Self {
            config: String::new(),
            ..self
        }
    }

    /// Grants the files under `data/` to the adapter `sheet`.
    pub fn sheets(self) -> Self {
        self.config("[connections.data]\nkind = \"files\"\npath = \"data\"\nwrite = true\n[plugins.sheet.grants]\ndata = \"write\"")
    }

    /// Runs the plugin as a native library, which is the built guest `guest`.
    pub fn native(self, plugin: &str, guest: &str) -> Self {
        self.library(plugin, &place::native(guest))
    }

    pub fn library(self, plugin: &str, library: &Path) -> Self {
        let digest = digest(library);
        let library = library.display();
        self.config(&format!(
            "[plugins.{plugin}]\nnative = \"{library}\"\nsha256 = \"{digest}\""
        ))
    }

    /// Adds a plugin folder of this test's own, with copies of the named adapters.
    pub fn own_plugins(mut self, adapters: &[&str]) -> Self {
        let folder = self.folder.path().join("plugins");
        fs::create_dir_all(&folder).expect("a folder in the temporary folder");
        for adapter in adapters {
            let name = format!("{adapter}.wasm");
            fs::copy(place::plugins().join(&name), folder.join(&name))
                .expect("an adapter is copied");
        }
        self.plugins = folder;
        self
    }

    pub fn plugins(&self) -> &Path {
        &self.plugins
    }

    /// Replaces a file at once, as an editor does.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        let draft = path.with_extension("draft");
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("its folder");
        fs::write(&draft, content).expect("a file in the temporary folder");
        fs::rename(&draft, &path).expect("a file in the temporary folder");
    }

    /// Returns `weir` with this house's configuration; the caller adds the command's own words.
    pub fn weir(&self, words: &[&str]) -> Command {
        let mut command = weir(words);
        command
            .arg("--config")
            .arg(self.write_config())
            .current_dir(self.folder.path());
        command
    }

    /// Returns `weir` with the current configuration file.
    pub fn weir_as_it_is(&self, words: &[&str]) -> Command {
        let file = self.folder.path().join("weir.toml");
        if !file.exists() {
            self.write_config();
        }
        let written = fs::read(&file).expect("the configuration is there");
        let command = self.weir(words);
        self.write("weir.toml", written);
        command
    }

    /// Runs one command to its end: its exit code, and what it printed on stdout and stderr.
    pub fn run(&self, words: &[&str]) -> (i32, String, String) {
        read_output(self.weir(words).output().expect("weir starts"))
    }

    /// Returns what a command prints, which must succeed.
    pub fn succeed(&self, words: &[&str]) -> String {
        let (code, out, err) = self.run(words);
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        out
    }

    /// Runs one command with the configuration as it lies there by now.
    pub fn run_as_it_is(&self, words: &[&str]) -> (i32, String, String) {
        read_output(self.weir_as_it_is(words).output().expect("weir starts"))
    }

    /// Returns the JSON that a command prints with `--json`.
    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        let (code, out, err) = self.run(&[words, &["--json"]].concat());
        serde_json::from_str(&out)
            .unwrap_or_else(|error| panic!("{words:?} ({code}, {error}): {out}\n{err}"))
    }

    /// Makes a key at a running gateway of this house; `words` follow `weir keys create`.
    pub fn key(&self, words: &[&str]) -> String {
        self.succeed(&[&["keys", "create"], words].concat())
    }

    /// Returns the draft of a contract that waits, and null if none does.
    pub fn waiting_draft(&self, contract: &str) -> serde_json::Value {
        let shown = self.json(&["contracts", "show", contract]);
        let mut drafts = shown["drafts"].as_array().into_iter().flatten();
        let waiting = drafts.find(|draft| draft["status"] == "pending");
        waiting.cloned().unwrap_or_default()
    }

    /// Publishes a draft by its fingerprint, and returns how the command ended.
    pub fn publish(&self, draft: &serde_json::Value) -> (i32, String, String) {
        let [id, fingerprint] = ["id", "fingerprint"].map(|key| {
            let text = draft[key].as_str();
            text.unwrap_or_else(|| panic!("no draft: {draft}"))
        });
        self.run(&["contracts", "publish", id, "--fingerprint", fingerprint])
    }

    /// Publishes a draft as an operator.
    pub fn agree(&self, draft: &serde_json::Value) {
        let (code, out, err) = self.publish(draft);
        assert_eq!(code, 0, "{out}{err}");
    }

    /// Returns the words that start this house over stdio, for clients that start their server themselves.
    pub fn stdio_command(&self) -> Vec<String> {
        let config = self.write_config();
        let words = [
            place::binary("weir").into_os_string(),
            "stdio".into(),
            "--config".into(),
            config.into(),
        ];
        words
            .into_iter()
            .map(|word| word.into_string().expect("paths of tests are UTF-8"))
            .collect()
    }

    /// Serves over HTTP on a free port, and answers once it does.
    pub fn serve(&self) -> Gateway {
        Gateway::start(self.weir(&SERVE))
    }

    /// Serves over HTTP, and returns a client of it too.
    pub fn serve_client(&self) -> (Gateway, Modern) {
        let gateway = self.serve();
        let client = Modern::new(gateway.url());
        (gateway, client)
    }

    /// Serves with the configuration as it lies there by now.
    pub fn serve_as_it_is(&self) -> Gateway {
        Gateway::start(self.weir_as_it_is(&SERVE))
    }

    /// Serves with a limit of the shell, such as `-n 300` for open files.
    pub fn serve_within(&self, limit: &str) -> Gateway {
        let serve = self.weir(&SERVE);
        let mut limited = Command::new("sh");
        limited
            .args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")])
            .arg(serve.get_program())
            .args(serve.get_args())
            .current_dir(self.path());
        for (name, _) in serve.get_envs() {
            limited.env_remove(name);
        }
        Gateway::start(limited)
    }

    /// Serves as a folder without `weir.toml` is served, and returns the first operator of it.
    pub fn serve_without_config(&self) -> (Gateway, Admin) {
        let mut command = Command::new(place::binary("weir"));
        command
            .args(SERVE)
            .env_remove("WEIR_CONFIG")
            .current_dir(self.path());
        let gateway = Gateway::start(command);
        let written = |name: &str| {
            let text = fs::read_to_string(self.path().join(".weir").join(name));
            text.expect("the gateway writes it").trim().to_owned()
        };
        let admin = Admin {
            url: written("admin.url"),
            key: written("admin.token"),
        };
        (gateway, admin)
    }

    fn write_config(&self) -> PathBuf {
        let plugins = self.plugins.display();
        // A gateway that shares its state reads no contract files.
        let contracts = match self.config.contains("[state]") {
            true => "",
            false => "contracts = \"contracts\"\n",
        };
        let text = format!(
            "[folders]\n{contracts}plugins = \"{plugins}\"\nstate = \"state\"\ncache = \"{}\"\n\n{}",
            place::cache().join("compiled").display(),
            self.config
        );
        // The file is replaced at once: a process that was started a moment ago may be reading it.
        self.write("weir.toml", text);
        self.folder.path().join("weir.toml")
    }
}

impl Default for House {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the exit code of a command that ended, and what it printed on stdout and stderr.
pub fn read_output(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes)
            .expect("weir prints text")
            .trim_end()
            .to_owned()
    };
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Returns the SHA-256 of a file in hexadecimal.
pub fn digest(file: &Path) -> String {
    hex::encode(Sha256::digest(fs::read(file).expect("a file can be read")))
}

/// A running gateway; killed when dropped.
pub struct Gateway {
    child: Child,
    /// `http://127.0.0.1:PORT`, without a path.
    pub base: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Gateway {
    /// Starts `command` and waits for the line with the address on which it listens.
    pub fn start(mut command: Command) -> Self {
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("weir does not start: {error}"));
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let kept = log.clone();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                kept.lock().push(line);
            }
        });
        loop {
            let text = log.lock().join("\n");
            if let Some(at) = text.find("listening on http://") {
                let address = &text[at + "listening on http://".len()..];
                let end = address.find('/').expect("the address ends in a path");
                return Self {
                    child,
                    base: format!("http://{}", &address[..end]),
                    log,
                };
            }
            if let Some(status) = child.try_wait().expect("the child can be asked") {
                panic!("weir stopped at its start ({status}):\n{text}");
            }
            assert!(
                started.elapsed() < START,
                "weir does not listen after {START:?}:\n{text}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the endpoint of all contracts.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    /// Returns the endpoint of one contract.
    pub fn contract_url(&self, contract: &str) -> String {
        format!("{}/mcp/{contract}", self.base)
    }

    /// Returns the endpoint of one view.
    pub fn view_url(&self, view: &str) -> String {
        format!("{}/mcp/view/{view}", self.base)
    }

    /// Returns its metrics, which this machine may read.
    pub async fn metrics(&self) -> String {
        send(http().get(format!("{}/metrics", self.base)))
            .await
            .text
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by its name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits until the process has exited on its own.
    pub fn left(&mut self) -> ExitStatus {
        self.child.wait().expect("the child can be waited for")
    }

    /// Kills it at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns everything logged so far.
    pub fn log(&self) -> String {
        self.log.lock().join("\n")
    }

    /// Waits until a line of the log contains `text`.
    pub fn wait_for_log(&self, text: &str) {
        let started = Instant::now();
        while !self.log().contains(text) {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "no log line has `{text}`:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the resident memory in KB, as the kernel counts it.
    pub fn memory_kb(&self) -> u64 {
        self.counted_kb("VmRSS:")
    }

    /// Returns the resident memory in KB without file pages, such as those of the program, which are loaded as they are used.
    pub fn own_memory_kb(&self) -> u64 {
        self.counted_kb("RssAnon:")
    }

    /// Returns the most memory in KB that was resident so far.
    pub fn peak_memory_kb(&self) -> u64 {
        self.counted_kb("VmHWM:")
    }

    /// Asserts that the process never had more than 1 GB in memory.
    pub fn stayed_within_a_gigabyte(&self) {
        let peak = self.peak_memory_kb();
        assert!(peak < 1 << 20, "{peak} KB were resident");
    }

    fn counted_kb(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .expect("the process runs");
        let number = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        number
            .and_then(|number| number.parse().ok())
            .expect("the kernel counts memory")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The last lines are still under way: the log is written behind the calls.
            std::thread::sleep(Duration::from_millis(300));
        }
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- log of the gateway\n{}\n---", self.log());
        }
    }
}
