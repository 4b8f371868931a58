//! Finds out whether another program has a file open for writing, by a lease. The kernel grants one only if no program has,
//! and a program that opens the file to write waits for it. Other systems, files of other users and most network file systems
//! have no leases; there Weir continues without one.

use std::{fs::File, io, os::fd::AsRawFd};

/// A lease on a file. It ends when this is dropped, and programs that wait for it continue.
pub(super) struct FileLease<'f> {
    file: &'f File,
}

/// The kernel's answer to a lease.
pub(super) enum LeaseAnswer<'f> {
    Given(FileLease<'f>),
    /// Another program has the file open for writing.
    Writers,
    /// Leases are not supported here.
    Unknown,
}

impl<'f> FileLease<'f> {
    /// Asks for a lease on a file that is open only for reading.
    pub(super) fn take(file: &'f File) -> LeaseAnswer<'f> {
        match kernel::take(file.as_raw_fd()) {
            Ok(()) => LeaseAnswer::Given(Self { file }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => LeaseAnswer::Writers,
            Err(_) => LeaseAnswer::Unknown,
        }
    }

    /// Returns `true` if a program waits to open the file for writing.
    pub(super) fn is_awaited(&self) -> bool {
        kernel::is_awaited(self.file.as_raw_fd())
    }
}

impl Drop for FileLease<'_> {
    fn drop(&mut self) {
        kernel::release(self.file.as_raw_fd());
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::{io, os::fd::RawFd};

    /// Not in `libc` for every target; the same number on all.
    const F_SETSIG: libc::c_int = 10;

    /// Calls `fcntl` with a number.
    #[expect(
        unsafe_code,
        reason = "the kernel is asked through the C library alone"
    )]
    fn control(fd: RawFd, command: libc::c_int, value: libc::c_int) -> io::Result<libc::c_int> {
        // SAFETY: `fd` is open while its file is borrowed, and none of these commands takes a pointer.
        match unsafe { libc::fcntl(fd, command, value) } {
            -1 => Err(io::Error::last_os_error()),
            answer => Ok(answer),
        }
    }

    pub(super) fn take(fd: RawFd) -> io::Result<()> {
        // The kernel announces a waiting program by a signal. This one is ignored unless a program asks for it; the usual
        // one would end the process.
        control(fd, F_SETSIG, libc::SIGURG)?;
        control(fd, libc::F_SETLEASE, libc::F_RDLCK).map(drop)
    }

    pub(super) fn is_awaited(fd: RawFd) -> bool {
        // While a program waits, `F_GETLEASE` returns the type that the lease has to become.
        !matches!(control(fd, libc::F_GETLEASE, 0), Ok(libc::F_RDLCK))
    }

    pub(super) fn release(fd: RawFd) {
        let _ = control(fd, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::{io, os::fd::RawFd};

    pub(super) fn take(_: RawFd) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_awaited(_: RawFd) -> bool {
        false
    }

    pub(super) fn release(_: RawFd) {}
}
