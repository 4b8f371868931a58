//! The process between us and a child. It only watches us: when we are gone, for whatever reason, it ends the child
//! and everything the child started.
//!
//! Both are in one separate process group, and the child has our pipes themselves, so that the guard costs a call
//! nothing. The guard notices our end by the pipe of its stdout: the system marks a pipe whose reader is gone.

use std::{
    ffi::OsString,
    io,
    os::{fd::AsFd, unix::process::ExitStatusExt as _},
    process::ExitCode,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, kill_current_process_group, kill_process},
};
use tokio::{process::Child, sync::oneshot, time::timeout};

use crate::sandbox::{self, KeptFiles};

/// The time that a child has after its stdin is closed, and again after TERM.
pub(crate) const GRACE: Duration = Duration::from_millis(1_500);

/// The same time, for a child that is no longer awaited.
const ALONE: Duration = Duration::from_secs(1);

/// Runs the command to its end; the exit code is the command's. Where the kernel can, files are kept from it.
pub fn guard(command: &[OsString], kept: &KeptFiles) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else {
        return ExitCode::from(64);
    };
    // Before any other thread: each begins with what its maker may do.
    let variables = match sandbox::restrict(kept) {
        Ok(variables) => variables,
        Err(error) => {
            eprintln!(
                "weir: the server is not started, since the gateway's own files cannot be kept from it: {error}; \
                 `sandbox = false` in its entry starts it without"
            );
            return ExitCode::from(126);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).envs(variables);
    let run = |runtime: tokio::runtime::Runtime| runtime.block_on(watch(command));
    match runtime.and_then(run) {
        Ok(code) => std::process::exit(code), // the watching thread may still wait
        Err(error) => {
            eprintln!("weir: the server cannot be started: {error}");
            std::process::exit(127)
        }
    }
}

async fn watch(mut command: tokio::process::Command) -> io::Result<i32> {
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut child = command.spawn()?;
    let gone = when_gone(io::stdout());
    tokio::select! {
        status = child.wait() => {
            let status = status?;
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()));
        }
        _ = gone => {
            // The gateway is gone, and with it the other end of the child's stdin, from which the child notices.
            if timeout(ALONE, child.wait()).await.is_err() {
                tell(&child);
            }
        }
        _ = ended.recv() => tell(&child),
    }
    let _ = timeout(ALONE, child.wait()).await; // in vain or not, the group ends now
    let _ = kill_current_process_group(Signal::KILL);
    Ok(137)
}

fn tell(child: &Child) {
    let id = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    if let Some(id) = id {
        let _ = kill_process(id, Signal::TERM); // it may be gone already
    }
}

/// Ends this process and all of its group once the other end of `pipe` is closed: for a child that needs no guard, since its
/// program is ours.
pub fn end_with_reader(pipe: impl AsFd + Send + 'static) {
    std::thread::spawn(move || {
        wait_for_the_end(&pipe);
        let _ = kill_current_process_group(Signal::KILL);
        std::process::exit(137) // not reached: the group has this process
    });
}

/// Returns a receiver that is ready once the other end of `pipe` is closed.
fn when_gone(pipe: impl AsFd + Send + 'static) -> oneshot::Receiver<()> {
    let (gone, when) = oneshot::channel();
    std::thread::spawn(move || {
        wait_for_the_end(&pipe);
        let _ = gone.send(()); // the command may have ended meanwhile
    });
    when
}

/// Waits until the system marks the pipe as one whose reader is gone.
fn wait_for_the_end(pipe: &impl AsFd) {
    loop {
        let mut descriptors = [PollFd::new(pipe, PollFlags::empty())];
        if poll(&mut descriptors, None) != Err(rustix::io::Errno::INTR) {
            return;
        }
    }
}
