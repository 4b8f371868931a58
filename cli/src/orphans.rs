//! Takes off the processes that others leave behind, where this one is the first of its container: the kernel makes it their parent,
//! and until it asks for their end, each keeps a place in the table of processes.

use std::{collections::BTreeSet, fs, path::Path, process, thread, time::Duration};

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};

/// The time between two looks. What has ended is taken off at the second look that finds it, so that a part of this program that
/// waits for it comes first.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// The bytes of a name that the kernel keeps.
const NAME_BYTES: usize = 15;

/// Begins to look for orphans, if this is the first process.
pub(super) fn start_reaper() {
    if process::id() != 1 {
        return;
    }
    let thread = thread::Builder::new().name("weir-orphans".to_owned());
    let started = thread.spawn(|| {
        let mut before = BTreeSet::new();
        loop {
            thread::sleep(LOOK_INTERVAL);
            let ended = ended_orphans();
            for id in ended.intersection(&before) {
                let _ = waitpid(Pid::from_raw(*id), WaitOptions::NOHANG); // it may be gone already
            }
            before = ended;
        }
    });
    if let Err(error) = started {
        eprintln!("weir: ended processes are not taken off: {error}");
    }
}

/// Returns the children that have ended and are not of this program, which waits for its own.
fn ended_orphans() -> BTreeSet<i32> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !matches!(waitid(WaitId::All, look), Ok(Some(_))) {
        return BTreeSet::new();
    }
    let program = std::env::current_exe().unwrap_or_default();
    let own = program.file_name().unwrap_or_default().as_encoded_bytes();
    let own = &own[..own.len().min(NAME_BYTES)];
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|id| is_orphan(*id, own))
        .collect()
}

/// Returns `true` if a process has ended, is a child of this one, and has another name than `own`.
fn is_orphan(id: i32, own: &[u8]) -> bool {
    let file = Path::new("/proc").join(id.to_string()).join("stat");
    let Ok(stat) = fs::read(file) else {
        return false;
    };
    // `ID (NAME) STATE PARENT …`, where the name may hold brackets and spaces.
    let begin = stat.iter().position(|byte| *byte == b'(');
    let end = stat.iter().rposition(|byte| *byte == b')');
    let (Some(begin), Some(end)) = (begin, end) else {
        return false;
    };
    let rest = String::from_utf8_lossy(&stat[end + 1..]);
    let mut words = rest.split_whitespace();
    let (state, parent) = (words.next(), words.next());
    state == Some("Z") && parent == Some("1") && stat[begin + 1..end] != *own
}
