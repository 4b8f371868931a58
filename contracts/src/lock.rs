//! The lock file next to a contract file: the published version as it was compiled, and the approvals that led to it.
//!
//! With an empty state the lock is the published version, so that a gate survives a fresh container. It is read as any
//! file from outside: bounded, strictly, with every problem at its place.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_text::shorten;

use crate::{
    artifact::typed,
    contract::{CompiledContract, ContractVersion},
    json, name,
    problem::FileProblem,
    shape::ValueType,
    values,
};

/// The format that this crate writes, and the only one that it reads.
pub const FORMAT: u64 = 1;
/// Largest file, in bytes.
pub const FILE_BYTES_MAX: usize = 64 << 20;
const APPROVALS_MAX: usize = 10_000;
const BY_LENGTH_MAX: usize = 200;

/// A published version and the approvals of the changes before it.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractLock {
    pub contract: CompiledContract,
    /// Oldest first.
    pub approvals: Vec<LockApproval>,
}

/// An approved change, with its approver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockApproval {
    /// The fingerprint of the diff, 64 hexadecimal digits.
    pub fingerprint: String,
    pub from: ContractVersion,
    pub to: ContractVersion,
    /// The approver, by the name known to the gateway.
    pub by: String,
    /// The time in RFC 3339, in UTC.
    pub at: String,
}

impl ContractLock {
    /// Reads a lock file; `file` is the name shown in problems.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<FileProblem>> {
        let refused = |problem: FileProblem| vec![problem];
        if text.len() > FILE_BYTES_MAX {
            let message = format!("the lock file is larger than {} MiB", FILE_BYTES_MAX >> 20);
            return Err(refused(FileProblem::new(file, "", message)));
        }
        let value = json::read_kept(text)
            .map_err(|error| refused(FileProblem::new(file, error.path, error.message)))?;
        check_format(file, &value).map_err(refused)?;
        let parts: LockFile = typed(&value)
            .map_err(|(place, message)| refused(FileProblem::new(file, place, message)))?;
        let mut problems = Vec::new();
        if let Err(message) =
            name::check_contract(&parts.contract.name).and_then(|()| parts.contract.check())
        {
            problems.push(FileProblem::new(file, "/contract", message));
        }
        check_approvals(file, &parts.approvals, &mut problems);
        match problems.is_empty() {
            true => Ok(Self {
                contract: parts.contract,
                approvals: parts.approvals,
            }),
            false => Err(problems),
        }
    }

    /// Returns the file's text. Equal locks have the same bytes.
    pub fn to_text(&self) -> String {
        let value =
            json!({ "lock": FORMAT, "contract": self.contract, "approvals": self.approvals });
        let mut text = serde_json::to_string_pretty(&value).expect("a lock is plain data");
        text.push('\n');
        text
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFile {
    #[serde(rename = "lock")]
    _format: u64,
    contract: CompiledContract,
    approvals: Vec<LockApproval>,
}

/// Checks the format before all else, since another format may have other keys.
fn check_format(file: &str, value: &Value) -> Result<(), FileProblem> {
    match value.get("lock") {
        Some(format) if *format == json!(FORMAT) => Ok(()),
        Some(format) => {
            let format = format.to_string();
            let shown = shorten(&format, 40);
            let message =
                format!("the lock file is of format {shown}, and only {FORMAT} can be read");
            Err(FileProblem::new(file, "/lock", message)
                .hint("read it with the version of Weir that wrote it"))
        }
        None => Err(
            FileProblem::new(file, "", "not a lock file: it has no `lock:` number")
                .hint("write one with `weir contracts lock`"),
        ),
    }
}

fn check_approvals(file: &str, approvals: &[LockApproval], problems: &mut Vec<FileProblem>) {
    if approvals.len() > APPROVALS_MAX {
        problems.push(FileProblem::new(
            file,
            "/approvals",
            format!("more than {APPROVALS_MAX} approvals"),
        ));
    }
    for (index, approval) in approvals.iter().take(APPROVALS_MAX).enumerate() {
        let mut fault = |key: &str, message: &str| {
            problems.push(FileProblem::new(
                file,
                format!("/approvals/{index}/{key}"),
                message,
            ));
        };
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if approval.fingerprint.len() != 64 || !approval.fingerprint.bytes().all(is_digit) {
            fault("fingerprint", "is not 64 hexadecimal digits");
        }
        if approval.to < approval.from {
            fault("to", "is a lower version than `from`");
        }
        if approval.by.is_empty()
            || approval.by.len() > BY_LENGTH_MAX
            || approval.by.chars().any(name::is_invisible)
        {
            fault(
                "by",
                "is empty, longer than 200 bytes or has invisible characters",
            );
        }
        if !values::is_text_of(ValueType::Datetime, &approval.at) {
            fault("at", "is not a time in UTC such as 2026-01-31T12:00:00Z");
        }
    }
}
