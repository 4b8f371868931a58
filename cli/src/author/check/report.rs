//! Collects the checks and their results.

use serde_json::{Value, json};

#[derive(Default)]
pub(super) struct Report {
    lines: Vec<Line>,
}

struct Line {
    check: &'static str,
    level: Level,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Report {
    pub(super) fn ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(check, Level::Ok, message);
    }

    pub(super) fn warn(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(check, Level::Warn, message);
    }

    pub(super) fn fail(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(check, Level::Fail, message);
    }

    /// Returns `true` if the check has said nothing, or nothing but good.
    pub(super) fn is_clean(&self, check: &str) -> bool {
        self.lines
            .iter()
            .all(|line| line.check != check || line.level == Level::Ok)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.count(Level::Fail) > 0
    }

    pub(super) fn print(&self, json: bool) {
        if json {
            let line = |line: &Line| json!({ "check": line.check, "level": line.level.word(), "message": line.message });
            println!(
                "{}",
                json!({ "ok": !self.has_failed(), "checks": Value::from_iter(self.lines.iter().map(line)) })
            );
            return;
        }
        for line in &self.lines {
            println!("{:<4}  {}: {}", line.level.word(), line.check, line.message);
        }
        println!(
            "{} checks, {} warnings, {} failures",
            self.lines.len(),
            self.count(Level::Warn),
            self.count(Level::Fail)
        );
    }

    fn add(&mut self, check: &'static str, level: Level, message: impl Into<String>) {
        self.lines.push(Line {
            check,
            level,
            message: message.into(),
        });
    }

    fn count(&self, level: Level) -> usize {
        self.lines.iter().filter(|line| line.level == level).count()
    }
}
