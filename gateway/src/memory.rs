//! Returns the memory of the process to the system.

/// Blocks of this size are mapped on their own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_MIN_BYTES: i32 = 1 << 20;

/// Has large blocks given back when they are freed. By itself the C library maps a block on its own only until one of its size
/// was freed: bodies of 4 MB then come from areas that stay with the process. To be called before there are other threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers it in no other way")]
pub fn give_large_blocks_back() {
    // SAFETY: it sets one number of the allocator.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_MIN_BYTES) };
}

/// Does nothing: other systems and C libraries have no such setting.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_large_blocks_back() {}

/// Gives free blocks of every size back, a moment later on a thread of its own: many small ones stay with the process otherwise.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers it in no other way")]
pub(crate) fn give_free_blocks_back() {
    std::thread::spawn(|| {
        std::thread::sleep(std::time::Duration::from_millis(200));
        // SAFETY: it only returns free pages to the system.
        unsafe { libc::malloc_trim(0) };
    });
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_free_blocks_back() {}
