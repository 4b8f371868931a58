//! The C interface between a native plugin and its host, as `native/weir-plugin.h` defines it. Both sides compile this file:
//! what one side lays out, the other reads.

use std::mem::ManuallyDrop;

/// The version of the interface. Another version has another table; this one may grow at its end.
pub const ABI: u32 = 1;
/// The symbol that a library exports.
pub const SYMBOL: &str = "weir_plugin_abi";

/// Head and body are the answer.
pub const DONE: i32 = 0;
/// The head is an error record.
pub const FAILED: i32 = 1;
/// The head is `{"message"}`: the called library is in an unknown state.
pub const PANICKED: i32 = 2;
/// The status for a function that does not exist.
pub const UNKNOWN: i32 = 3;

/// Bytes that are lent for the time of a call.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Slice {
    pointer: *const u8,
    length: usize,
}

/// Bytes that are handed over, and go back to their maker's `release`.
#[repr(C)]
pub struct Owned {
    pointer: *mut u8,
    length: usize,
    capacity: usize,
}

/// The outcome of a call.
#[repr(C)]
pub struct Reply {
    status: i32,
    head: Owned,
    body: Owned,
}

/// Calls one function: the token of the call, the function's name, its head and its body.
pub type CallFunction = unsafe extern "C" fn(u64, Slice, Slice, Slice, *mut Reply);

/// The functions that each side shows the other.
#[repr(C)]
pub struct Table {
    /// [`ABI`].
    pub abi: u32,
    /// Bytes of the table, for one that has grown.
    pub size: u32,
    /// Calls one function.
    pub call: CallFunction,
    /// Frees a reply of `call`.
    pub release: unsafe extern "C" fn(*mut Reply),
}

/// A reply as its reader keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// [`DONE`], [`FAILED`], [`PANICKED`] or [`UNKNOWN`].
    pub status: i32,
    /// JSON, or nothing.
    pub head: Vec<u8>,
    /// Bytes, as the function defines them.
    pub body: Vec<u8>,
}

impl Slice {
    /// Lends bytes.
    pub fn lend(bytes: &[u8]) -> Self {
        Self {
            pointer: bytes.as_ptr(),
            length: bytes.len(),
        }
    }

    /// Returns the bytes of a slice.
    ///
    /// # Safety
    /// They must be lent for as long as `'a`.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.pointer.is_null() || self.length == 0 {
            return &[];
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(self.pointer, self.length) }
    }
}

impl Owned {
    const NONE: Self = Self {
        pointer: std::ptr::null_mut(),
        length: 0,
        capacity: 0,
    };

    fn take(bytes: Vec<u8>) -> Self {
        let mut bytes = ManuallyDrop::new(bytes);
        Self {
            pointer: bytes.as_mut_ptr(),
            length: bytes.len(),
            capacity: bytes.capacity(),
        }
    }

    /// # Safety
    /// The bytes must still be there.
    unsafe fn copied(&self) -> Vec<u8> {
        // SAFETY: as the caller promises.
        unsafe {
            Slice {
                pointer: self.pointer,
                length: self.length,
            }
            .bytes()
        }
        .to_vec()
    }

    /// # Safety
    /// Made by [`Owned::of`] of this very library, and freed once.
    unsafe fn free(&mut self) {
        let Self {
            pointer,
            length,
            capacity,
        } = std::mem::replace(self, Self::NONE);
        if !pointer.is_null() {
            // SAFETY: as the caller promises.
            drop(unsafe { Vec::from_raw_parts(pointer, length, capacity) });
        }
    }
}

impl Table {
    /// Returns the table of a side that answers with `call`.
    pub const fn new(call: CallFunction) -> Self {
        Self {
            abi: ABI,
            size: size_of::<Self>() as u32,
            call,
            release,
        }
    }

    /// Calls a function of the other side, and keeps its answer.
    ///
    /// # Safety
    /// The table must be the other side's, whose library is still loaded.
    pub unsafe fn ask(&self, token: u64, function: &str, head: &[u8], body: &[u8]) -> Answer {
        let mut reply = Reply {
            status: UNKNOWN,
            head: Owned::NONE,
            body: Owned::NONE,
        };
        // SAFETY: the other side writes a reply whose bytes it keeps until `release`.
        unsafe {
            (self.call)(
                token,
                Slice::lend(function.as_bytes()),
                Slice::lend(head),
                Slice::lend(body),
                &raw mut reply,
            );
            let answer = Answer {
                status: reply.status,
                head: reply.head.copied(),
                body: reply.body.copied(),
            };
            (self.release)(&raw mut reply);
            answer
        }
    }
}

/// Writes an answer where the other side expects a reply.
///
/// # Safety
/// `out` must be what came with the call.
pub unsafe fn put(answer: Answer, out: *mut Reply) {
    let Answer { status, head, body } = answer;
    // SAFETY: as the caller promises.
    unsafe {
        out.write(Reply {
            status,
            head: Owned::take(head),
            body: Owned::take(body),
        })
    };
}

/// Frees what [`put`] wrote.
unsafe extern "C" fn release(reply: *mut Reply) {
    // SAFETY: the other side returns it once, as the interface requires.
    if let Some(reply) = unsafe { reply.as_mut() } {
        // SAFETY: `put` made both parts.
        unsafe {
            reply.head.free();
            reply.body.free();
        }
    }
}
