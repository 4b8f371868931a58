//! The child: loads one library, and answers the calls that come over its input until that is closed.

use std::{
    cell::RefCell,
    fs::{self, File},
    io::{self, BufReader, Read, Write},
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
    path::Path,
    rc::Rc,
    time::Duration,
};

use rustix::{
    io::fcntl_dupfd_cloexec,
    process::{Resource, Rlimit, setrlimit},
};
use sha2::{Digest as _, Sha256};

use super::{
    abi::{Answer, DONE, FAILED},
    loaded::{self, LoadedLibrary},
    message::PipeMessage,
    processor_max, wire,
};

/// The bounds of one call of the library.
#[derive(Clone, Copy, Debug)]
pub struct LibraryBounds {
    /// Processor time of all its threads together: the process ends if it uses more. A description has five times as
    /// much.
    pub processor: Duration,
    /// Bytes beyond what the process has before its first call: asking for more fails, as it does on a full machine.
    pub memory: usize,
}

/// The parent bounds its messages; its files may be as large as a plugin's memory.
const MESSAGE_MAX_BYTES: usize = u32::MAX as usize;

/// Serves a library. The first message reports whether it was loaded. `digest` is the SHA-256 of the file in hexadecimal,
/// which is checked again here.
pub fn serve(
    path: &Path,
    digest: &str,
    bounds: LibraryBounds,
    input: impl Read + 'static,
    mut output: impl Write + 'static,
) -> io::Result<()> {
    let loaded = match load(path, digest, bounds.memory) {
        Ok(loaded) => loaded,
        Err(why) => {
            let head = serde_json::to_vec(&wire::Panic {
                message: why.into(),
            })
            .expect("plain data");
            return PipeMessage::Answer(Answer {
                status: FAILED,
                head,
                body: Vec::new(),
            })
            .write(&mut output);
        }
    };
    PipeMessage::Answer(Answer {
        status: DONE,
        ..Answer::default()
    })
    .write(&mut output)?;
    let pipes = Rc::new(RefCell::new((BufReader::new(input), output)));
    let asking = Rc::clone(&pipes);
    loaded::answer_with(move |function, head, body| {
        let (input, output) = &mut *asking.borrow_mut();
        let asked = PipeMessage::Call {
            function: function.to_owned(),
            head: head.to_vec(),
            body: body.to_vec(),
        };
        match asked
            .write(output)
            .and_then(|()| PipeMessage::read(input, MESSAGE_MAX_BYTES))
        {
            Ok(Some(PipeMessage::Answer(answer))) => answer,
            // The gateway is gone, and this process serves no other.
            _ => std::process::exit(0),
        }
    });
    loop {
        let message = PipeMessage::read(&mut pipes.borrow_mut().0, MESSAGE_MAX_BYTES)?;
        let Some(PipeMessage::Call {
            function,
            head,
            body,
        }) = message
        else {
            return Ok(());
        };
        timer::start(processor_max(&function, bounds.processor));
        let answer = loaded.call(&function, &head, &body);
        timer::start(Duration::ZERO);
        PipeMessage::Answer(answer).write(&mut pipes.borrow_mut().1)?;
    }
}

/// Reserves the pipes of this process for messages: a library reads nothing, and its output goes to stderr.
#[expect(
    unsafe_code,
    reason = "the numbers of the standard pipes are given away"
)]
pub fn take_pipes() -> io::Result<(File, File)> {
    let kept = |pipe: BorrowedFd<'_>| Ok::<_, io::Error>(File::from(fcntl_dupfd_cloexec(pipe, 3)?));
    let (input, output) = (kept(io::stdin().as_fd())?, kept(io::stdout().as_fd())?);
    let nothing = File::open("/dev/null")?;
    for (from, to) in [
        (nothing.as_fd(), libc::STDIN_FILENO),
        (io::stderr().as_fd(), libc::STDOUT_FILENO),
    ] {
        // SAFETY: both are open, and no thread reads from or writes to the one that is replaced.
        if unsafe { libc::dup2(from.as_raw_fd(), to) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((input, output))
}

fn load(path: &Path, digest: &str, memory: usize) -> Result<LoadedLibrary, String> {
    let bytes = fs::read(path)
        .map_err(|error| format!("its copy {} cannot be read: {error}", path.display()))?;
    if hex::encode(Sha256::digest(&bytes)) != digest {
        return Err(format!(
            "its copy {} was changed since it was checked",
            path.display()
        ));
    }
    drop(bytes);
    let loaded = LoadedLibrary::load(path)?;
    bound_memory(memory).map_err(|error| format!("its memory cannot be bounded: {error}"))?;
    Ok(loaded)
}

/// Bounds the memory that the process writes to, beyond its present use.
fn bound_memory(memory: usize) -> io::Result<()> {
    let most = data_bytes()? + memory as u64;
    setrlimit(
        Resource::Data,
        Rlimit {
            current: Some(most),
            maximum: Some(most),
        },
    )?;
    // A crash is reported in words; a core dump would not be read.
    Ok(setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?)
}

#[cfg(target_os = "linux")]
fn data_bytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix(" kB"));
    let kilobytes = kilobytes.and_then(|text| text.trim().parse::<u64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes << 10)
        .ok_or_else(|| io::Error::other("/proc/self/status has no VmData"))
}

/// Returns the usual limit of a program if the number cannot be read.
#[cfg(not(target_os = "linux"))]
fn data_bytes() -> io::Result<u64> {
    Ok(64 << 20)
}

/// Counts the processor time of the process, and ends it with SIGPROF.
mod timer {
    use std::time::Duration;

    /// Starts the timer; zero stops it.
    #[expect(
        unsafe_code,
        reason = "the timer of a process is set by the C library alone"
    )]
    pub(super) fn start(after: Duration) {
        let seconds = libc::time_t::try_from(after.as_secs()).unwrap_or(libc::time_t::MAX);
        let value = libc::timeval {
            tv_sec: seconds,
            tv_usec: after.subsec_micros() as libc::suseconds_t,
        };
        let once = libc::itimerval {
            it_interval: libc::timeval {
                tv_sec: 0,
                tv_usec: 0,
            },
            it_value: value,
        };
        // SAFETY: the value is read and nothing is written.
        unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const once, std::ptr::null_mut()) };
    }
}
