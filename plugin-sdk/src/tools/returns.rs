//! Turns what a function returns into a reply.

use std::future::Future;
use std::pin::pin;
use std::task::{Poll, Waker};

use super::{Answer, Reply, ToolFailure};
use crate::error::{Error, Result};
use crate::schema::{ToolSchema, Unknown, Writer};

/// A type that a tool may return: nothing, a value with a schema, an `Option` of one, an [`Answer`], or a `Result` of
/// these.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`: it has no schema",
    label = "a return type without a schema",
    note = "write `#[data]` above a struct or an enum of your own, or return a type of the table in docs/tools-from-code.md"
)]
pub trait ToolOutput: Sized {
    /// The writer of the output schema; `None` if nothing is answered.
    const OUTPUT: Option<fn(&mut Writer)>;

    /// Returns the reply.
    fn reply(self) -> Result<Reply>;
}

#[diagnostic::do_not_recommend]
impl<T: ToolSchema> ToolOutput for T {
    const OUTPUT: Option<fn(&mut Writer)> = Some(T::write_present);

    fn reply(self) -> Result<Reply> {
        if self.is_absent() {
            return Err(nothing());
        }
        let mut value = String::new();
        self.print(&mut value);
        Ok(Reply::complete(Some(value), None))
    }
}

impl ToolOutput for () {
    const OUTPUT: Option<fn(&mut Writer)> = None;

    fn reply(self) -> Result<Reply> {
        Ok(Reply::complete(None, Some("[]".to_owned())))
    }
}

impl ToolOutput for &'static str {
    const OUTPUT: Option<fn(&mut Writer)> = Some(String::write);

    fn reply(self) -> Result<Reply> {
        self.to_owned().reply()
    }
}

impl<T: ToolOutput, E: ToolFailure> ToolOutput for std::result::Result<T, E> {
    const OUTPUT: Option<fn(&mut Writer)> = T::OUTPUT;

    fn reply(self) -> Result<Reply> {
        match self {
            Ok(value) => value.reply(),
            Err(error) => Err(error.into_error()),
        }
    }
}

impl<T: ToolSchema> ToolOutput for Answer<T> {
    const OUTPUT: Option<fn(&mut Writer)> = Some(T::write_present);

    fn reply(self) -> Result<Reply> {
        if self.is_absent(T::is_absent) {
            return Err(nothing());
        }
        Ok(self.into_reply(|value| {
            let mut out = String::new();
            value.print(&mut out);
            Some(out)
        }))
    }
}

impl ToolOutput for Answer<()> {
    const OUTPUT: Option<fn(&mut Writer)> = None;

    fn reply(self) -> Result<Reply> {
        let mut reply = self.into_reply(|()| None);
        if reply.kind == "complete" && reply.content.is_none() {
            reply.content = Some("[]".to_owned());
        }
        Ok(reply)
    }
}

/// Returns the error for an `Option` that is `None`.
fn nothing() -> Error {
    Error::not_found("There is nothing of that kind.")
}

/// The functions of one return type, with its trait erased, as [`crate::schema::Parameter`] has them for parameters.
pub struct Returned<T> {
    /// The writer of the output schema.
    pub output: Option<fn(&mut Writer)>,
    /// Makes the reply.
    pub reply: fn(T) -> Result<Reply>,
}

impl<T: ToolOutput> Returned<T> {
    /// Whether a tool may return the type: here it may.
    pub const KNOWN: bool = true;

    /// The functions of the type.
    pub const OF: Self = Self {
        output: T::OUTPUT,
        reply: T::reply,
    };
}

impl<T> Unknown for Returned<T> {
    const OF: Self = Self {
        output: None,
        reply: |_| Err(Error::internal("The return type has no schema.")),
    };
}

/// Decides whether a tool may fail with a type.
pub struct Failing<E>(std::marker::PhantomData<E>);

impl<E: ToolFailure> Failing<E> {
    /// Whether a tool may fail with the type: here it may.
    pub const KNOWN: bool = true;
}

impl<E> Unknown for Failing<E> {
    const OF: Self = Self(std::marker::PhantomData);
}

/// Runs an `async fn` in place. The imports of a plugin answer before they return, so nothing can wake it later: a future
/// that waits would wait forever, and is refused.
pub fn poll_in_place<T>(future: impl Future<Output = T>) -> Result<T> {
    match pin!(future).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(Error::internal(
            "The tool waits for something that never comes.",
        )),
    }
}
