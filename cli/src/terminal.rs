//! Prints a command's output. No text can control the terminal: servers, files and sources wrote much of it.

use std::{
    fmt::{Arguments, Write as _},
    io::{IsTerminal as _, Write as _},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, value::RawValue};
use weir_plugin_host::CallEvents;
use weir_upstream::{Answering, UpstreamListener, UpstreamQuestion};

static OUT: LazyLock<bool> = LazyLock::new(|| std::io::stdout().is_terminal());
static ERR: LazyLock<bool> = LazyLock::new(|| std::io::stderr().is_terminal());

/// Prints to stdout, for the macro `print!` of the command line.
pub(super) fn print(text: Arguments<'_>) {
    match *OUT {
        true => std::print!("{}", plain(&text.to_string())),
        false => std::print!("{text}"),
    }
}

/// Prints to stderr, for the macro `eprint!` of the command line. A closed reader does not end the command, whose result and
/// exit code still matter.
pub(super) fn print_error(text: Arguments<'_>) {
    let mut stderr = std::io::stderr();
    let _ = match *ERR {
        true => stderr.write_all(plain(&text.to_string()).as_bytes()),
        false => stderr.write_fmt(text),
    };
}

/// Returns the text without control characters, except for line breaks and tabs, and without characters that change
/// its direction.
pub(super) fn plain(text: &str) -> String {
    let turns = |it: char| matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let steers = |it: char| (it.is_control() && !matches!(it, '\n' | '\t')) || turns(it);
    text.chars().filter(|it| !steers(*it)).collect()
}

/// The time between two states of a progress that are shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
/// The characters of a message that are shown.
const MESSAGE_MAX: usize = 60;

/// Shows the progress of one call in one line of the terminal, which disappears when the call ends.
pub(super) struct TerminalProgress {
    shown: Mutex<Option<Instant>>,
    is_over: AtomicBool,
}

impl TerminalProgress {
    /// Returns `None` where stderr is not a terminal.
    pub(super) fn open() -> Option<Arc<Self>> {
        let progress = Self {
            shown: Mutex::default(),
            is_over: AtomicBool::new(false),
        };
        ERR.then(|| Arc::new(progress))
    }

    pub(super) fn show(&self, done: f64, total: Option<f64>, message: &str) {
        let mut shown = self.shown.lock();
        if self.is_over.load(Ordering::Relaxed)
            || shown.is_some_and(|at| at.elapsed() < PROGRESS_INTERVAL)
        {
            return;
        }
        *shown = Some(Instant::now());
        std::eprint!("\r\u{1b}[K{}", line(done, total, message));
    }

    /// Takes the line away again.
    pub(super) fn end(&self) {
        let shown = self.shown.lock();
        if !self.is_over.swap(true, Ordering::Relaxed) && shown.is_some() {
            std::eprint!("\r\u{1b}[K");
        }
    }
}

fn line(done: f64, total: Option<f64>, message: &str) -> String {
    let mut line = String::from("… ");
    let message = plain(message).replace(['\n', '\t'], " ");
    line.extend(message.chars().take(MESSAGE_MAX));
    if !message.is_empty() {
        line.push(' ');
    }
    let _ = match total {
        Some(total) => write!(line, "{done}/{total}"),
        None => write!(line, "{done}"),
    };
    line
}

impl CallEvents for TerminalProgress {
    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        self.show(done, total, message);
    }

    fn log_level(&self) -> Option<&'static str> {
        None
    }

    fn log(&self, _: &str, _: &str, _: Value) {}
}

impl UpstreamListener for TerminalProgress {
    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: weir_upstream::UpstreamProgress) {
        let message = progress.message.as_deref().unwrap_or_default();
        self.show(progress.progress, progress.total, message);
    }

    fn log_level(&self) -> Option<&'static str> {
        None
    }

    fn log(&self, _: &str, _: &str, _: &RawValue) {}

    fn ask(&self, _: UpstreamQuestion) -> Answering {
        Box::pin(async { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_printed_steers_a_terminal() {
        let text = "a\u{1b}[2J\r\u{7}b\u{9b}31m\n\tc \u{202e}d\u{2069} é🌧";
        assert_eq!(plain(text), "a[2Jb31m\n\tc d é🌧");
        assert_eq!(line(1.0, Some(3.0), "x\n\u{1b}[2Jy"), "… x [2Jy 1/3");
        assert_eq!(line(0.5, None, ""), "… 0.5");
    }
}
