//! A server under measurement: started on its core, watched from outside, stopped with everything it started.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use nix::{time::ClockId, unistd::Pid};

/// The longest time that a server may take until its first answer.
pub(crate) const START_MAX: Duration = Duration::from_secs(120);

pub(crate) struct MeasuredProcess {
    child: Child,
    pub(crate) started: Instant,
    /// The file of its output, unless it speaks over pipes.
    log: Option<PathBuf>,
}

impl MeasuredProcess {
    /// Starts a program on one core, so that a runtime makes one worker of it, or on the given `cores`. Its output goes
    /// into `log`.
    pub(crate) fn start(command: &Command, cores: &str, log: &Path) -> anyhow::Result<Self> {
        let mut pinned = pinned(command, cores);
        let file =
            fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        pinned.stdout(file.try_clone()?).stderr(file);
        let started = Instant::now();
        let child = pinned
            .stdin(Stdio::null())
            .spawn()
            .context("setpriv cannot be run")?;
        Ok(Self {
            child,
            started,
            log: Some(log.to_owned()),
        })
    }

    /// Starts a program with pipes instead of a log, for servers that speak over them.
    pub(crate) fn start_piped(command: &Command, cores: &str) -> anyhow::Result<Self> {
        let mut pinned = pinned(command, cores);
        pinned
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let started = Instant::now();
        let child = pinned.spawn().context("setpriv cannot be run")?;
        Ok(Self {
            child,
            started,
            log: None,
        })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the server answers. Fails if it ends instead, or takes longer than `longest`.
    pub(crate) fn wait(
        &mut self,
        longest: Duration,
        mut answers: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        while !answers() {
            let ended = self.ended();
            if ended.is_some() || self.started.elapsed() > longest {
                bail!(
                    "it does not answer ({}): {}",
                    ended.unwrap_or("still running".into()),
                    self.log_tail()
                );
            }
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Returns the end of its output.
    pub(crate) fn log_tail(&self) -> String {
        let log = self
            .log
            .as_ref()
            .and_then(|log| fs::read_to_string(log).ok())
            .unwrap_or_default();
        let before = log.chars().count().saturating_sub(1_500);
        log.chars().skip(before).collect()
    }

    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child
            .try_wait()
            .ok()
            .flatten()
            .map(|status| status.to_string())
    }

    /// Returns the processor seconds of the process and all below it.
    pub(crate) fn cpu(&self) -> f64 {
        self.tree().iter().filter_map(|id| cpu_of(*id)).sum()
    }

    /// Returns the processor seconds of the process without those that it has started.
    pub(crate) fn own_cpu(&self) -> Option<f64> {
        if self.tree().len() > 1 {
            cpu_of(self.child.id())
        } else {
            None
        }
    }

    /// Returns the resident memory of the process and all below it, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.tree().iter().filter_map(|id| memory_of(*id)).sum()
    }

    /// Returns the resident memory of the process without its children, in bytes.
    pub(crate) fn own_memory(&self) -> u64 {
        memory_of(self.child.id()).unwrap_or_default()
    }

    fn tree(&self) -> Vec<u32> {
        let mut found = vec![self.child.id()];
        let mut next = 0;
        while let Some(id) = found.get(next).copied() {
            next += 1;
            for task in fs::read_dir(format!("/proc/{id}/task"))
                .into_iter()
                .flatten()
                .flatten()
            {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                found.extend(
                    children
                        .split_whitespace()
                        .filter_map(|id| id.parse::<u32>().ok()),
                );
            }
        }
        found
    }

    /// Stops the process as an operator stops a server, and kills it if it does not go.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        signal(self.child.id(), "TERM");
        let asked = Instant::now();
        while asked.elapsed() < Duration::from_secs(60) {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            sleep(Duration::from_millis(5));
        }
        bail!("the server does not stop")
    }
}

impl Drop for MeasuredProcess {
    /// Kills everything in the process group, including what the process started itself.
    fn drop(&mut self) {
        signal(self.child.id(), "KILL");
        let _ = self.child.wait();
    }
}

/// Pins a program, in its own process group, so that it can be stopped as a whole; it does not outlive this process.
fn pinned(command: &Command, cores: &str) -> Command {
    let mut pinned = Command::new("setpriv");
    pinned
        .args(["--pdeathsig", "KILL", "taskset", "-c", cores])
        .arg(command.get_program())
        .args(command.get_args())
        .process_group(0);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => pinned.env(name, value),
            None => pinned.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        pinned.current_dir(folder);
    }
    pinned
}

/// Signals the process group that `id` leads.
fn signal(id: u32, name: &str) {
    let _ = Command::new("kill")
        .arg(format!("-{name}"))
        .arg("--")
        .arg(format!("-{id}"))
        .stderr(Stdio::null())
        .status();
}

/// Returns user and system time of all its threads, to the nanosecond: `/proc` counts in hundredths of a second.
fn cpu_of(id: u32) -> Option<f64> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(id).ok()?)).ok()?;
    Some(Duration::from(clock.now().ok()?).as_secs_f64())
}

fn memory_of(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
