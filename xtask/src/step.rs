//! A step: one thing done, timed, its output kept in a log that is shown when it fails.

use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Mutex,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// The time after which a long step is shown again.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The time without a line of output after which tests count as hanging.
const SILENCE: Duration = Duration::from_secs(600);
const TAIL_LINES: usize = 60;

/// An error message, ready to be read by a person.
pub(crate) struct StepFailure(String);

impl From<String> for StepFailure {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for StepFailure {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

impl fmt::Display for StepFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The steps of one run. Shared by the threads of a run; each step prints whole lines.
pub(crate) struct StepRunner {
    started: Instant,
    logs: PathBuf,
    done: Mutex<Vec<FinishedStep>>,
}

struct FinishedStep {
    name: String,
    took: Duration,
    passed: bool,
}

impl StepRunner {
    pub(crate) fn new(logs: PathBuf) -> Self {
        Self {
            started: Instant::now(),
            logs,
            done: Mutex::new(Vec::new()),
        }
    }

    /// Runs a command with its output in a log; shows the end of the log when it fails.
    pub(crate) fn command(&self, name: &str, command: &mut Command) -> Result<(), StepFailure> {
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

    /// Runs tests, and prints their output. Ends them when they print nothing for [`SILENCE`], and names those that had not
    /// ended.
    pub(crate) fn tests(&self, name: &str, command: &mut Command) -> Result<(), StepFailure> {
        self.streamed_within(name, command, SILENCE)
    }

    /// Runs a command that may print nothing for long, as benches do, and prints its output.
    pub(crate) fn streamed(&self, name: &str, command: &mut Command) -> Result<(), StepFailure> {
        self.streamed_within(name, command, Duration::MAX)
    }

    fn streamed_within(
        &self,
        name: &str,
        command: &mut Command,
        silence: Duration,
    ) -> Result<(), StepFailure> {
        self.task(name, || {
            println!("         {name}:");
            let (status, hanging) = run_streamed(command, silence)
                .map_err(|error| describe(name, command, &error.to_string()))?;
            if let Some(hanging) = hanging {
                let minutes = silence.as_secs() / 60;
                return Err(format!(
                    "{name} printed nothing for {minutes} minutes and was ended. Tests that had not ended: {hanging}"
                )
                .into());
            }
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
        work: impl FnOnce() -> Result<T, StepFailure>,
    ) -> Result<T, StepFailure> {
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
        done.push(FinishedStep {
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
        println!("{} in total", seconds(self.started.elapsed()));
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

/// Runs a command and prints its lines. Returns its status, and the names of the tests that hung if it was ended for that.
fn run_streamed(
    command: &mut Command,
    silence: Duration,
) -> io::Result<(ExitStatus, Option<String>)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().expect("the output is piped");
    let (sender, lines) = mpsc::channel();
    // A process that a test left behind may keep the output open, so that the thread is not joined.
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                break;
            }
        }
    });
    let mut slow = BTreeSet::new();
    let mut heard = Instant::now();
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => {
                println!("{line}");
                note_slow(&line, &mut slow);
                heard = Instant::now();
            }
            Err(end) => {
                if end == RecvTimeoutError::Disconnected {
                    return Ok((child.wait()?, None));
                }
                if let Some(status) = child.try_wait()? {
                    return Ok((status, None));
                }
                if heard.elapsed() > silence {
                    // The children of a process that has ended are no longer listed.
                    let children = list_children(child.id());
                    let _ = child.kill();
                    end_all(&children);
                    let names = slow.into_iter().collect::<Vec<_>>().join(", ");
                    return Ok((child.wait()?, Some(names)));
                }
            }
        }
    }
}

/// Keeps the names of the tests that libtest reports as slow until it reports their end.
fn note_slow(line: &str, slow: &mut BTreeSet<String>) {
    let Some(rest) = line.strip_prefix("test ") else {
        return;
    };
    if let Some((name, _)) = rest.split_once(" has been running for over ") {
        slow.insert(name.to_owned());
    } else if let Some((name, _)) = rest.split_once(" ... ") {
        slow.remove(name);
    }
}

/// Returns the processes that cargo started: ending only cargo would leave the program of the tests running.
fn list_children(parent: u32) -> String {
    fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default()
}

fn end_all(processes: &str) {
    for process in processes.split_whitespace() {
        let _ = Command::new("sh")
            .args(["-c", &format!("kill -9 {process}")])
            .status();
    }
}

fn describe(name: &str, command: &Command, error: &str) -> StepFailure {
    format!(
        "{name}: cannot run {}: {error}",
        command.get_program().to_string_lossy()
    )
    .into()
}

/// Returns what a command printed.
pub(crate) fn capture_output(command: &mut Command) -> Result<String, StepFailure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_has_not_ended_is_named() {
        let mut slow = BTreeSet::new();
        for line in [
            "test a::first has been running for over 60 seconds",
            "test b::second has been running for over 60 seconds",
            "test b::second ... ok",
            "running 3 tests",
        ] {
            note_slow(line, &mut slow);
        }
        assert_eq!(slow.into_iter().collect::<Vec<_>>(), ["a::first"]);
    }

    #[test]
    fn the_status_is_that_of_the_command_though_its_output_stays_open() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo line; sleep 30 & exit 3"]);
        let (status, hanging) =
            run_streamed(&mut command, SILENCE).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((status.code(), hanging), (Some(3), None));
    }

    #[test]
    fn tests_that_print_nothing_are_ended_and_named() {
        let mut command = Command::new("sh");
        let script = "echo 'test a::b has been running for over 60 seconds'; sleep 100; echo late";
        command.args(["-c", script]);
        let started = Instant::now();
        let (status, hanging) = run_streamed(&mut command, Duration::from_secs(2))
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(!status.success());
        assert_eq!(hanging.as_deref(), Some("a::b"));
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
