//! Collects the checks and their results.

use serde_json::{Value, json};

#[derive(Default)]
pub(super) struct CheckReport {
    lines: Vec<CheckLine>,
}

struct CheckLine {
    check: &'static str,
    level: CheckLevel,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckLevel {
    Ok,
    Warn,
    Fail,
}

impl CheckLevel {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl CheckReport {
    pub(super) fn ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(check, CheckLevel::Ok, message);
    }

    pub(super) fn warn(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(check, CheckLevel::Warn, message);
    }

    pub(super) fn fail(&mut self, check: &'static str, message: impl Into<String>) {
        self.add(check, CheckLevel::Fail, message);
    }

    /// Returns `true` if the check has found nothing, or nothing but good.
    pub(super) fn is_clean(&self, check: &str) -> bool {
        self.lines
            .iter()
            .all(|line| line.check != check || line.level == CheckLevel::Ok)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.count(CheckLevel::Fail) > 0
    }

    pub(super) fn print(&self, json: bool) {
        if json {
            let line = |line: &CheckLine| json!({ "check": line.check, "level": line.level.word(), "message": line.message });
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
            self.count(CheckLevel::Warn),
            self.count(CheckLevel::Fail)
        );
    }

    fn add(&mut self, check: &'static str, level: CheckLevel, message: impl Into<String>) {
        self.lines.push(CheckLine {
            check,
            level,
            message: message.into(),
        });
    }

    fn count(&self, level: CheckLevel) -> usize {
        self.lines.iter().filter(|line| line.level == level).count()
    }
}
