//! The process between us and a child. It holds nothing but an eye on us: when we are gone, however that came, it ends
//! the child and everything the child started.
//!
//! Both are in one process group of their own, and the child has our pipes themselves, so that a call pays nothing for
//! the guard. It sees us go by the pipe of its stdout: the system marks one whose reader is gone.

use std::{ffi::OsString, io, os::unix::process::ExitStatusExt as _, process::ExitCode, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, kill_current_process_group, kill_process},
};
use tokio::{process::Child, sync::oneshot, time::timeout};

/// How long a child has for each of: its stdin is closed, TERM.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Likewise, when nobody waits for it any more.
const ALONE: Duration = Duration::from_secs(1);

/// Runs the command to its end; the exit code is the command's.
pub fn guard(command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return ExitCode::from(64) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let run = |runtime: tokio::runtime::Runtime| runtime.block_on(watch(program, arguments));
    match runtime.and_then(run) {
        Ok(code) => std::process::exit(code), // the watching thread may still wait
        Err(error) => {
            eprintln!("weir: the server cannot be started: {error}");
            std::process::exit(127)
        }
    }
}

async fn watch(program: &OsString, arguments: &[OsString]) -> io::Result<i32> {
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut child = tokio::process::Command::new(program).args(arguments).spawn()?;
    let gone = when_we_are_gone();
    tokio::select! {
        status = child.wait() => {
            let status = status?;
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()));
        }
        _ = gone => {
            // With us went the other end of its stdin, which tells it already.
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
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        let _ = kill_process(id, Signal::TERM); // it may be gone already
    }
}

/// Ready once nobody reads our stdout any more.
fn when_we_are_gone() -> oneshot::Receiver<()> {
    let (gone, when) = oneshot::channel();
    std::thread::spawn(move || {
        let stdout = io::stdout();
        loop {
            let mut descriptors = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut descriptors, None) {
                Err(rustix::io::Errno::INTR) => continue,
                _ => {
                    let _ = gone.send(()); // the command may have ended meanwhile
                    return;
                }
            }
        }
    });
    when
}
