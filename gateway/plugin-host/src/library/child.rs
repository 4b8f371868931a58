//! A library in its own child process: one process per instance, in a process group that ends with it.
//!
//! The child is this program, and ends on its own when we are gone (`weir native-host`).

use std::{
    ffi::OsString,
    io::ErrorKind,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

use super::{
    abi::{Answer, DONE},
    message::PipeMessage,
    processor_max, wire,
};
use crate::guest::{GuestProfile, GuestStop};

/// The variables that a child gets of our environment, which holds secrets.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// The time that a child has to end after it has closed its pipes.
const ENDS_WITHIN: Duration = Duration::from_millis(500);
const LINE_MAX_BYTES: u64 = 1 << 10;
/// The memory added to that of the library, for a head and the lengths.
const HEAD_MAX_BYTES: usize = 1 << 20;

pub(super) struct LibraryProcess {
    process: tokio::process::Child,
    group: Option<Pid>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    printed: Arc<Mutex<String>>,
    listens: tokio::task::JoinHandle<()>,
    cpu_max: Duration,
    /// The processor time that the last call had.
    processor_max: Duration,
    message_max: usize,
}

impl LibraryProcess {
    pub(super) async fn start(
        runner: &[OsString],
        path: &Path,
        digest: &str,
        profile: &Arc<GuestProfile>,
    ) -> wasmtime::Result<Self> {
        let Some((program, words)) = runner.split_first() else {
            return Err(wasmtime::Error::msg(
                "this program starts no processes for native plugins",
            ));
        };
        let limits = &profile.limits;
        let mut command = tokio::process::Command::new(program);
        command
            .args(words)
            .arg("--processor-ms")
            .arg(limits.cpu_max.as_millis().to_string());
        command
            .arg("--memory-bytes")
            .arg(limits.memory_max.to_string())
            .arg("--sha256")
            .arg(digest)
            .arg(path);
        command
            .env_clear()
            .process_group(0)
            .kill_on_drop(true)
            .current_dir("/");
        command.envs(
            INHERITED
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().map_err(|error| {
            wasmtime::Error::msg(format!(
                "no process can be started for it ({}): {error}",
                program.display()
            ))
        })?;
        let printed = Arc::<Mutex<String>>::default();
        let stderr = process.stderr.take().expect("stderr is piped");
        let listens = tokio::spawn(listen(stderr, Arc::clone(&printed), Arc::clone(profile)));
        let mut child = Self {
            group: process
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw),
            input: process.stdin.take().expect("stdin is piped"),
            output: BufReader::with_capacity(
                64 << 10,
                process.stdout.take().expect("stdout is piped"),
            ),
            process,
            printed,
            listens,
            processor_max: limits.cpu_max,
            cpu_max: limits.cpu_max,
            message_max: limits.memory_max.saturating_add(HEAD_MAX_BYTES),
        };
        match child.receive().await? {
            PipeMessage::Answer(Answer { status: DONE, .. }) => Ok(child),
            PipeMessage::Answer(Answer { head, .. }) => {
                let refused = serde_json::from_slice::<wire::Panic<'_>>(&head);
                let why = refused.map_or_else(
                    |_| "it was not loaded".to_owned(),
                    |why| why.message.into_owned(),
                );
                Err(wasmtime::Error::msg(why))
            }
            PipeMessage::Call { .. } => Err(wasmtime::Error::msg("it asked before it was called")),
        }
    }

    pub(super) async fn send(&mut self, message: &PipeMessage) -> wasmtime::Result<()> {
        if let PipeMessage::Call { function, .. } = message {
            self.processor_max = processor_max(function, self.cpu_max);
        }
        match message.send(&mut self.input).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.end().await),
        }
    }

    pub(super) async fn receive(&mut self) -> wasmtime::Result<PipeMessage> {
        match PipeMessage::receive(&mut self.output, self.message_max).await {
            Ok(message) => Ok(message),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(wasmtime::Error::msg(
                format!("it sent what cannot be read: {error}"),
            )),
            Err(_) => Err(self.end().await),
        }
    }

    /// Returns `false` if the child ended between calls.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Returns the bytes of memory that are its own.
    pub(super) fn bytes(&self) -> usize {
        // Resident and shared pages, the second and third number.
        let pages = || {
            let statm =
                std::fs::read_to_string(format!("/proc/{}/statm", self.process.id()?)).ok()?;
            let mut numbers = statm
                .split(' ')
                .skip(1)
                .map(|number| number.parse::<usize>().ok());
            Some(numbers.next()??.saturating_sub(numbers.next()??))
        };
        pages()
            .unwrap_or(0)
            .saturating_mul(rustix::param::page_size())
    }

    /// Returns `true` if the child printed what the Rust runtime prints before it ends a process that gets no memory.
    pub(super) fn memory_refused(&self) -> bool {
        self.stderr_text().contains("memory allocation of")
    }

    /// Returns why the child no longer answers.
    async fn end(&mut self) -> wasmtime::Error {
        let Ok(Ok(status)) = timeout(ENDS_WITHIN, self.process.wait()).await else {
            return wasmtime::Error::msg("it closed its pipes");
        };
        // Processes that the child started may still be there.
        self.kill();
        self.group = None;
        let _ = timeout(ENDS_WITHIN, &mut self.listens).await; // what it printed last
        self.why(status)
    }

    fn why(&self, status: ExitStatus) -> wasmtime::Error {
        use std::os::unix::process::ExitStatusExt as _;
        let how = match (status.code(), status.signal()) {
            (_, Some(signal)) if signal == Signal::PROF.as_raw() => {
                return wasmtime::Error::new(GuestStop::Processor(self.processor_max.as_millis()));
            }
            (_, Some(signal)) => format!(
                "its process was ended by signal {signal}{}",
                name_of(signal)
            ),
            (code, None) => format!(
                "its process ended with exit code {}",
                code.unwrap_or_default()
            ),
        };
        let printed = self.stderr_text();
        wasmtime::Error::msg(if printed.is_empty() {
            how
        } else {
            format!("{how}: {printed}")
        })
    }

    fn stderr_text(&self) -> String {
        self.printed.lock().clone()
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL); // it may be gone already
        }
    }
}

/// The runtime waits for the child, which is dropped after this.
impl Drop for LibraryProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn name_of(signal: i32) -> &'static str {
    let names = [
        (Signal::SEGV, " (SIGSEGV)"),
        (Signal::BUS, " (SIGBUS)"),
        (Signal::ABORT, " (SIGABRT)"),
        (Signal::ILL, " (SIGILL)"),
        (Signal::FPE, " (SIGFPE)"),
        (Signal::KILL, " (SIGKILL)"),
        (Signal::TERM, " (SIGTERM)"),
    ];
    names
        .iter()
        .find(|(known, _)| known.as_raw() == signal)
        .map_or("", |(_, name)| name)
}

/// Logs what a library writes to its stderr or stdout, within the plugin's own bound, and keeps the last line.
async fn listen(stderr: ChildStderr, printed: Arc<Mutex<String>>, profile: Arc<GuestProfile>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr)
            .take(LINE_MAX_BYTES)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text: String = String::from_utf8_lossy(&line)
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        // A Rust program adds such lines about a backtrace to its last words.
        if text.is_empty() || text.starts_with("note: ") {
            continue;
        }
        let plugin = &*profile.name;
        if profile.log.passes(plugin, text.len()) {
            tracing::info!(target: "weir::plugin", plugin, "{text}");
        }
        *printed.lock() = text;
    }
}
