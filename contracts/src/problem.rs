//! Describes a problem of a file: the fault, its place, and the remedy.

use serde::Serialize;

/// One problem of one file. Files are refused with all their problems at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileProblem {
    /// The file as the user named it; `-` for stdin.
    pub file: String,
    /// The place in the file, as a JSON Pointer (`/tools/0/fields/2/min`); empty for the whole file.
    pub place: String,
    /// The line of that place, from 1, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The fault, in one sentence without a final stop.
    pub message: String,
    /// The hint what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl FileProblem {
    /// Creates a problem. `place` is a JSON Pointer into the file, and `message` a sentence without a final stop.
    pub fn new(file: &str, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place: place.into(),
            line: None,
            message: message.into(),
            hint: None,
        }
    }

    /// Sets the file of a problem that was found without knowing it. A problem of another file, such as a policy, is unchanged.
    pub fn in_file(self, file: &str) -> Self {
        match self.file.is_empty() {
            true => Self {
                file: file.to_owned(),
                ..self
            },
            false => self,
        }
    }

    /// Sets the line of the place, counted from 1.
    pub fn line(self, line: Option<usize>) -> Self {
        Self { line, ..self }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for FileProblem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A contract from the admin API has no file.
        write!(
            out,
            "{}",
            if self.file.is_empty() {
                "the contract"
            } else {
                &self.file
            }
        )?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        if !self.place.is_empty() {
            write!(out, " at {}", self.place)?;
        }
        write!(out, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(out, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
