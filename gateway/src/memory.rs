//! Returns the memory of the process to the system.

/// Blocks of this size are mapped on their own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_MIN_BYTES: i32 = 1 << 20;

/// Makes the C library return large blocks when they are freed. By default, it maps a block separately only until one of its size
/// has been freed: bodies of 4 MB then come from areas that remain with the process. To be called before there are other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers it in no other way")]
pub fn give_large_blocks_back() {
    // SAFETY: this sets one number of the allocator.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_MIN_BYTES) };
}

/// Does nothing: other systems and C libraries have no such setting.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_large_blocks_back() {}

/// After this many bytes of JSON, free memory is returned to the system: their values take many times as much memory.
pub(crate) const MUCH_BYTES: usize = 1 << 20;

/// Returns free blocks of every size, a second later on a separate thread: otherwise many small ones remain with the process.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_free_blocks_back() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static IS_COMING: AtomicBool = AtomicBool::new(false);
    // Whatever is freed until then is returned in the same pass.
    if IS_COMING.swap(true, Ordering::Relaxed) {
        return;
    }
    let look = || {
        std::thread::sleep(std::time::Duration::from_secs(1));
        IS_COMING.store(false, Ordering::Relaxed);
        give_free_blocks_back_now();
    };
    // If no thread can be created now, a later call tries again.
    if std::thread::Builder::new().spawn(look).is_err() {
        IS_COMING.store(false, Ordering::Relaxed);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_free_blocks_back() {}

/// Returns free blocks of every size, which takes some tenths of a second if there are many.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers it in no other way")]
pub(crate) fn give_free_blocks_back_now() {
    // SAFETY: this only returns free pages to the system.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_free_blocks_back_now() {}

/// Returns what only the start needed, once it is over: free blocks, and the pages of the program that were mapped for it. The
/// kernel maps a page of the program again when it is used. Without this, about half of the program remains resident.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) async fn give_start_back() {
    // The first checks of sources follow seconds later.
    for pause_ms in [500, 20_000] {
        tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
        let given_back = tokio::task::spawn_blocking(|| {
            give_program_pages_back();
            give_free_blocks_back();
        });
        let _ = given_back.await; // it can only be cancelled, at the end of the process
    }
}

/// Does nothing: other systems and C libraries have no such calls.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) async fn give_start_back() {}

/// Unmaps the pages of the program's file that the process cannot have changed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers it in no other way")]
fn give_program_pages_back() {
    let Ok(program) = std::fs::read_link("/proc/self/exe") else {
        return;
    };
    let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for (start, length) in unchanged_mappings(&mappings, &program.to_string_lossy()) {
        // SAFETY: these pages cannot be written, and none, in memory or swapped out, is private to the process: they hold the
        // contents of the file, and the kernel reads the same bytes again.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
}

/// Returns the start and length of each mapping of a file that is read-only and has no private page, in memory or swapped out.
/// Parts that the loader changed, such as tables of addresses, have private pages.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn unchanged_mappings(smaps: &str, file: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut mapping = None;
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            [range, flags, _, _, _, ref name @ ..] if range.contains('-') => {
                let is_unchangeable = flags.starts_with("r-") && flags.ends_with('p');
                let is_of_file = name.join(" ") == file;
                mapping = (is_unchangeable && is_of_file)
                    .then(|| bounds(range))
                    .flatten();
            }
            // The first counts only the pages in memory.
            ["Anonymous:" | "Swap:", size, "kB"] if size != "0" => mapping = None,
            ["VmFlags:", ..] => found.extend(mapping.take()),
            _ => {}
        }
    }
    found
}

/// Reads `start-end`, and returns start and length.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn bounds(range: &str) -> Option<(usize, usize)> {
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let start = address(start)?;
    Some((start, address(end)?.checked_sub(start)?))
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_process_cannot_have_changed_is_given_back() {
        let swapped = |range: &str, flags: &str, name: &str, own_kb: u32, swapped_kb: u32| {
            format!(
                "{range} {flags} 00000000 fe:00 42   {name}\nRss: 8 kB\nAnonymous: {own_kb} kB\nSwap: {swapped_kb} kB\n\
                 VmFlags: rd\n"
            )
        };
        let mapping = |range, flags, name, own_kb| swapped(range, flags, name, own_kb, 0);
        let smaps = [
            mapping("1000-3000", "r--p", "/usr/bin/we ir", 0),
            mapping("3000-7000", "r-xp", "/usr/bin/we ir", 0),
            mapping("7000-8000", "r--p", "/usr/bin/we ir", 4),
            mapping("8000-9000", "rw-p", "/usr/bin/we ir", 0),
            mapping("9000-a000", "r-xp", "/usr/lib/libc.so.6", 0),
            mapping("a000-b000", "r--p", "", 0),
            mapping("b000-c000", "r--s", "/usr/bin/we ir", 0),
            swapped("c000-d000", "r--p", "/usr/bin/we ir", 0, 4),
        ]
        .concat();
        assert_eq!(
            unchanged_mappings(&smaps, "/usr/bin/we ir"),
            [(0x1000, 0x2000), (0x3000, 0x4000)]
        );
    }

    #[test]
    fn the_program_runs_on_without_its_pages() {
        give_program_pages_back();
        assert_eq!(bounds("10-20"), Some((16, 16)));
    }
}
