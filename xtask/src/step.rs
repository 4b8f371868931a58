//! A step: one thing done, timed, its output kept in a log that is shown when it fails.

use std::{
    fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

/// The time after which a long step shows again what it is doing.
const HEARTBEAT: Duration = Duration::from_secs(15);
const TAIL_LINES: usize = 60;

/// An error message, ready to be read by a person.
pub(crate) struct Failure(String);

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The steps of one run. Shared by the threads of a run; each step prints whole lines.
pub(crate) struct Steps {
    started: Instant,
    logs: PathBuf,
    done: Mutex<Vec<Done>>,
}

struct Done {
    name: String,
    took: Duration,
    passed: bool,
}

impl Steps {
    pub(crate) fn new(logs: PathBuf) -> Self {
        Self {
            started: Instant::now(),
            logs,
            done: Mutex::new(Vec::new()),
        }
    }

    /// Runs a command with its output in a log; shows the end of the log when it fails.
    pub(crate) fn command(&self, name: &str, command: &mut Command) -> Result<(), Failure> {
        self.task(name, || {
            let log = self
                .logs
                .join(format!("{}.log", name.replace([' ', '/'], "-")));
            let status = self
                .run_logged(name, command, &log)
                .map_err(|error| describe(name, command, &error.to_string()))?;
            if status.success() {
                return Ok(());
            }
            let tail = tail(&log, TAIL_LINES);
            Err(format!(
                "{name} failed ({status})\n{tail}\n(all of it: {})",
                log.display()
            )
            .into())
        })
    }

    /// Runs a command whose output is for the reader: tests, benches.
    pub(crate) fn streamed(&self, name: &str, command: &mut Command) -> Result<(), Failure> {
        self.task(name, || {
            println!("         {name}:");
            let status = command
                .stdin(Stdio::null())
                .status()
                .map_err(|error| describe(name, command, &error.to_string()))?;
            if status.success() {
                Ok(())
            } else {
                Err(format!("{name} failed ({status})").into())
            }
        })
    }

    /// Times any work under a name.
    pub(crate) fn task<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        let result = work();
        let took = start.elapsed();
        println!(
            "{} {name}{}",
            seconds(took),
            if result.is_ok() { "" } else { ": FAILED" }
        );
        let mut done = self
            .done
            .lock()
            .expect("no step panics while it holds the list");
        done.push(Done {
            name: name.to_owned(),
            took,
            passed: result.is_ok(),
        });
        result
    }

    /// Prints every step with its time, and the whole.
    pub(crate) fn summary(&self) {
        println!("\nTimes:");
        for step in self
            .done
            .lock()
            .expect("no step panics while it holds the list")
            .iter()
        {
            println!(
                "{} {}{}",
                seconds(step.took),
                step.name,
                if step.passed { "" } else { ": FAILED" }
            );
        }
        println!("{} in all", seconds(self.started.elapsed()));
    }

    fn run_logged(&self, name: &str, command: &mut Command, log: &Path) -> io::Result<ExitStatus> {
        let file = File::create(log)?;
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        let start = Instant::now();
        let mut child = command.spawn()?;
        let mut beats = 1;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > HEARTBEAT * beats {
                beats += 1;
                let now = tail(log, 1);
                println!(
                    "     ... {name}, {} s: {}",
                    start.elapsed().as_secs(),
                    now.trim()
                );
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn describe(name: &str, command: &Command, error: &str) -> Failure {
    format!(
        "{name}: cannot run {}: {error}",
        command.get_program().to_string_lossy()
    )
    .into()
}

/// Returns what a command printed.
pub(crate) fn said(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .output()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn seconds(time: Duration) -> String {
    format!("{:>7.1}s", time.as_secs_f64())
}

/// Returns the last lines of a log that is still being written, without the control sequences of progress bars.
fn tail(log: &Path, lines: usize) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let all: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let shown = &all[all.len().saturating_sub(lines)..];
    shown
        .iter()
        .map(|line| line.rsplit('\r').next().unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}
