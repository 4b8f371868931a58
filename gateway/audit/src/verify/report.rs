//! Reports what verification found: for people as text, for machines as JSON.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{AuditReceipt, ChainName};

/// Findings and warnings beyond this many are only counted.
const LISTED_MAX: usize = 1000;

/// Whether the trail is as it was written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = TrailReport)]
pub struct TrailReport {
    pub chains: u64,
    pub segments: u64,
    pub records: u64,
    pub bytes: u64,
    pub findings_count: u64,
    pub findings: Vec<TrailFinding>,
    pub warnings_count: u64,
    pub warnings: Vec<TrailWarning>,
    pub receipts: Vec<ReceiptCheck>,
    /// The last record of each chain: kept elsewhere, they prove a later cut.
    #[schema(value_type = Vec<String>)]
    pub heads: Vec<AuditReceipt>,
    /// The ends of chains where a cut would not be found.
    pub open_ends: Vec<OpenEnd>,
}

/// The end of a chain that is recorded nowhere else: its records could be cut off unnoticed, and later ones may have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenEnd {
    #[schema(value_type = String)]
    pub chain: ChainName,
    /// The last record that another chain or a receipt names; 0 if none does.
    pub after: u64,
    /// The last record that is there.
    pub last: u64,
}

/// Evidence that the trail is not as it was written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = TrailFinding)]
pub struct TrailFinding {
    pub what: TrailProblem,
    #[schema(value_type = String)]
    pub chain: ChainName,
    /// File name within the chain's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub detail: String,
}

/// What is wrong with a trail at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TrailProblem)]
pub enum TrailProblem {
    /// A line's bytes do not give its hash, or it has not the form of a record.
    Changed,
    /// Records between two others, or before the first, are not there.
    Deleted,
    /// A record comes after a later one.
    OutOfOrder,
    /// A record was added: it is there twice, or after the chain had ended.
    Inserted,
    /// The end of a chain is not there.
    Cut,
    /// A whole chain is not there.
    Missing,
    /// A record is whole but differs from the one that its successor, another chain or a receipt names.
    Replaced,
    /// A file of another chain or segment.
    Foreign,
    /// The system refused to read it.
    Unreadable,
}

/// A finding worth a look, which can occur without a change.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = TrailWarning)]
pub struct TrailWarning {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub chain: Option<ChainName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub detail: String,
}

/// What a receipt proves about the trail.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReceiptCheck {
    #[schema(value_type = String)]
    pub receipt: AuditReceipt,
    pub status: ReceiptStatus,
    /// The record, if it was looked for and exists: what the receipt proves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub record: Option<Map<String, Value>>,
}

/// Whether the record of a receipt is in the trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    /// Exactly this record is there.
    Present,
    /// The record was there, and was removed by retention, which stated so.
    Removed,
    /// The record is not there.
    Missing,
    /// Another record has its number.
    Replaced,
}

impl TrailReport {
    pub(super) fn new(receipts: &[AuditReceipt]) -> Self {
        let check = |receipt: &AuditReceipt| ReceiptCheck {
            receipt: receipt.clone(),
            status: ReceiptStatus::Missing,
            record: None,
        };
        Self {
            chains: 0,
            segments: 0,
            records: 0,
            bytes: 0,
            findings_count: 0,
            findings: Vec::new(),
            warnings_count: 0,
            warnings: Vec::new(),
            receipts: receipts.iter().map(check).collect(),
            heads: Vec::new(),
            open_ends: Vec::new(),
        }
    }

    /// Returns `true` if nothing was found, and every receipt is honoured or was removed as stated.
    pub fn is_ok(&self) -> bool {
        let kept = |check: &ReceiptCheck| {
            matches!(
                check.status,
                ReceiptStatus::Present | ReceiptStatus::Removed
            )
        };
        self.findings_count == 0 && self.receipts.iter().all(kept)
    }

    fn write_open_ends(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED_MAX: usize = 3;
        if self.open_ends.is_empty() {
            return Ok(());
        }
        let named = self.open_ends.iter().take(NAMED_MAX);
        let named = named.map(|end| format!("{} after record {}", end.chain, end.after));
        let mut named: Vec<String> = named.collect();
        if self.open_ends.len() > NAMED_MAX {
            named.push(format!("and {} more", self.open_ends.len() - NAMED_MAX));
        }
        writeln!(
            to,
            "a cut would not be found at the end of {}: no other chain and no receipt given here names a later record. Keep \
             receipts, or the heads that --json prints, elsewhere",
            named.join(", ")
        )
    }

    pub(super) fn add(&mut self, finding: TrailFinding) {
        self.findings_count += 1;
        if self.findings.len() < LISTED_MAX {
            self.findings.push(finding);
        }
    }

    pub(super) fn find(&mut self, what: TrailProblem, chain: &ChainName, detail: String) {
        self.add(TrailFinding::new(what, chain, detail));
    }

    pub(super) fn warn(&mut self, chain: Option<&ChainName>, file: Option<&str>, detail: String) {
        self.warnings_count += 1;
        if self.warnings.len() < LISTED_MAX {
            self.warnings.push(TrailWarning {
                chain: chain.cloned(),
                file: file.map(str::to_owned),
                detail,
            });
        }
    }
}

impl TrailFinding {
    pub(super) fn new(what: TrailProblem, chain: &ChainName, detail: String) -> Self {
        Self {
            what,
            chain: chain.clone(),
            file: None,
            line: None,
            detail,
        }
    }

    pub(super) fn at(self, file: &str, line: u64) -> Self {
        Self {
            file: Some(file.to_owned()),
            line: Some(line),
            ..self
        }
    }
}

impl fmt::Display for TrailReport {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(to, "{finding}")?;
        }
        let unlisted = self
            .findings_count
            .saturating_sub(self.findings.len() as u64);
        if unlisted > 0 {
            writeln!(to, "… and {unlisted} findings more")?;
        }
        for warning in &self.warnings {
            writeln!(to, "{warning}")?;
        }
        for check in &self.receipts {
            writeln!(to, "receipt {}: {}", check.receipt, check.status.text())?;
        }
        self.write_open_ends(to)?;
        let verdict = if self.is_ok() {
            "the trail is whole"
        } else {
            "THE TRAIL IS NOT WHOLE"
        };
        let count =
            |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (records, chains) = (count(self.records, "record"), count(self.chains, "chain"));
        writeln!(
            to,
            "{verdict}: {records} in {chains}, {}",
            count(self.findings_count, "finding")
        )
    }
}

impl fmt::Display for TrailFinding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.what.text(), self.chain)?;
        if let Some(file) = &self.file {
            write!(to, "/{file}")?;
        }
        if let Some(line) = self.line {
            write!(to, " line {line}")?;
        }
        write!(to, ": {}", self.detail)
    }
}

impl fmt::Display for TrailWarning {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match (&self.chain, &self.file) {
            (Some(chain), Some(file)) => format!("{chain}/{file}: "),
            (Some(chain), None) => format!("{chain}: "),
            (None, _) => String::new(),
        };
        write!(to, "warning: {place}{}", self.detail)
    }
}

impl TrailProblem {
    fn text(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::OutOfOrder => "out of order",
            Self::Inserted => "inserted",
            Self::Cut => "cut",
            Self::Missing => "missing",
            Self::Replaced => "replaced",
            Self::Foreign => "foreign",
            Self::Unreadable => "unreadable",
        }
    }
}

impl ReceiptStatus {
    fn text(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Removed => "removed by retention",
            Self::Missing => "MISSING",
            Self::Replaced => "REPLACED",
        }
    }
}
