//! Raw lines over stdio, to the real binary or to another server.

use std::{process::Stdio as Pipe, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::gateway::House;

const ANSWER: Duration = Duration::from_secs(60);
/// The time that the end of a process may take on a busy machine.
const END: Duration = Duration::from_secs(60);

/// A gateway, or another server, on stdio. Killed when dropped.
pub struct Stdio {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
    /// The answer to `initialize` of a server that was started by [`server`](Self::server).
    hello: Value,
}

impl Stdio {
    pub fn start(house: &House) -> Self {
        Self::start_as(house, "")
    }

    /// Starts a process with a key in the environment.
    pub fn start_as(house: &House, key: &str) -> Self {
        Self::start_with(house, key, &[])
    }

    /// Starts a process with further words on the command line.
    pub fn start_with(house: &House, key: &str, more: &[&str]) -> Self {
        let words = house.stdio_command();
        let mut command = Command::new(&words[0]);
        Self::of(
            command
                .args(&words[1..])
                .args(more)
                .env("WEIR_KEY", key)
                .stderr(Pipe::inherit()),
        )
    }

    /// Starts another server and says hello to it, as a legacy client that can be asked nothing.
    pub async fn server(words: &[String], env: &[(String, String)]) -> Self {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(env.iter().cloned());
        let mut server = Self::of(command.stderr(Pipe::null()));
        let info = json!({"name": "raw", "version": "1"});
        let hello = json!({"protocolVersion": crate::client::LEGACY, "capabilities": {}, "clientInfo": info});
        server.hello = server.ask("initialize", hello).await["result"].clone();
        server
            .send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        server
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Pipe::piped())
            .stdout(Pipe::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Self {
            child,
            input,
            output,
            next: 1,
            hello: Value::Null,
        }
    }

    pub async fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("stdin is open");
        input.write_all(line.as_bytes()).await.expect("weir reads");
        input.write_all(b"\n").await.expect("weir reads");
        input.flush().await.expect("weir reads");
    }

    /// Returns the next line; anything but JSON on stdout is a failure.
    pub async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(ANSWER, self.output.next_line())
            .await
            .expect("an answer in time");
        let line = line.expect("stdout can be read").expect("stdout is open");
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("stdout carries only messages ({error}): {line}"))
    }

    /// Sends a request of the session era, and returns its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send_line(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        )
        .await;
        id
    }

    /// Sends a request of the session era and reads its response; notifications on the way are dropped.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        loop {
            let message = self.read().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Sends a request of the 2026-07-28 revision and reads its response.
    pub async fn ask_modern(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, modern(params)).await
    }

    /// Sends a request of the 2026-07-28 revision, and returns its id.
    pub async fn begin_modern(&mut self, method: &str, params: Value) -> u64 {
        self.begin(method, modern(params)).await
    }

    /// Returns what a [`server`](Self::server) lists, as it wrote it: `{server, tools, …}`. A list that the server does not
    /// advertise or support is absent.
    pub async fn lists(&mut self) -> Value {
        let mut lists = json!({"server": {"info": self.hello["serverInfo"], "capabilities": self.hello["capabilities"]}});
        if let Some(instructions) = self.hello.get("instructions") {
            lists["server"]["instructions"] = instructions.clone();
        }
        let of = [
            ("tools", "tools/list", "tools"),
            ("resources", "resources/list", "resources"),
            ("resources", "resources/templates/list", "resourceTemplates"),
            ("prompts", "prompts/list", "prompts"),
        ];
        for (capability, method, list) in of {
            if self.hello["capabilities"].get(capability).is_none() {
                continue;
            }
            let mut params = json!({});
            while let Some(page) = self.ask(method, params).await.get("result") {
                let mut all = lists[list].take().as_array().cloned().unwrap_or_default();
                all.extend(page[list].as_array().expect("a list").iter().cloned());
                lists[list] = all.into();
                match page.get("nextCursor") {
                    Some(cursor) => params = json!({ "cursor": cursor }),
                    None => break,
                }
            }
        }
        lists
    }

    /// Closes stdin; the process must then exit on its own.
    pub async fn close(mut self) -> std::process::ExitStatus {
        drop(self.input.take());
        tokio::time::timeout(END, self.child.wait())
            .await
            .expect("weir leaves when stdin closes")
            .expect("weir can be waited for")
    }

    /// Sends a signal while stdin remains open.
    pub async fn signal(&self, name: &str) {
        let id = self.child.id().expect("weir runs").to_string();
        let killed = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status()
            .await;
        assert!(killed.expect("kill runs").success());
    }

    /// Waits until the process has exited on its own, while stdin is open.
    pub async fn left(mut self) -> std::process::ExitStatus {
        let status = tokio::time::timeout(END, self.child.wait()).await;
        status
            .expect("weir leaves while stdin is open")
            .expect("weir can be waited for")
    }
}

fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(crate::client::MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}
