//! Proof of one record as a file: its line, and the lines that link it to a later record that is known elsewhere. It is
//! checked without the trail.

use std::{
    collections::BTreeSet,
    fmt,
    fs::File,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    AuditFilter, AuditReceipt, ChainName, LINE_MAX_BYTES, RecordHash,
    folder::FolderSurvey,
    line::{ChainLine, LinePiece, LineReader},
    plain_text::printable,
    read,
};

/// The format that this program writes and reads.
const FORMAT: u32 = 1;
/// Records that follow the proven one at most, and the bytes of all lines.
const LINKS_MAX: usize = 1000;
const LINES_MAX_BYTES: usize = 4 << 20;
/// The length in characters of the message about a file that is not a proof.
const WHY_MAX_CHARS: usize = 300;
/// Files beyond this were not written as a proof: text of JSON is at most six times as long as its lines.
pub const PROOF_MAX_BYTES: u64 = 6 * (LINES_MAX_BYTES + LINE_MAX_BYTES) as u64;

/// The record to be proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofSubject {
    /// The end of a call or, if there is none, its intent.
    Call(String),
    Numbered {
        chain: ChainName,
        seq: u64,
    },
}

impl FromStr for ProofSubject {
    type Err = std::convert::Infallible;

    /// Reads `chain:seq` or a whole receipt; other text is the id of a call.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbered = || {
            let (chain, rest) = text.split_once(':')?;
            let seq = rest.split(':').next()?.parse().ok()?;
            Some(Self::Numbered {
                chain: chain.parse().ok()?,
                seq,
            })
        };
        Ok(numbered().unwrap_or_else(|| Self::Call(text.to_owned())))
    }
}

/// Proof that one record was written before a later one of its chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordProof {
    /// The format of this file: 1.
    pub format: u32,
    /// The record that is proven.
    #[schema(value_type = String)]
    pub receipt: AuditReceipt,
    /// The record that the lines lead to: the same one if nothing later is needed.
    #[schema(value_type = String)]
    pub end: AuditReceipt,
    pub end_known_by: ProofEnd,
    /// The lines of the records from the proven one to the end, as they were written.
    pub lines: Vec<String>,
}

/// The source, other than the trail, that has the record at the end of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProofEnd {
    /// The receipt that was asked for.
    Receipt,
    /// Another chain, which names it.
    Chain,
    /// Nothing yet: it was the last record when the proof was made.
    Head,
    /// Nothing: the proof was not to be longer.
    Limit,
}

/// A file that proves nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    #[error("it is not a proof of a record: {0}")]
    Form(String),
    #[error("it has format {0}, and this program reads format {FORMAT}")]
    Format(u32),
    #[error("line {0} does not have the form of a record")]
    NoRecord(usize),
    #[error("line {0} was changed: its bytes do not give its hash")]
    Changed(usize),
    #[error("line {0} does not follow the line before it")]
    Unlinked(usize),
    #[error("its first line is not the record that it names")]
    OtherRecord,
    #[error("its last line is not the end that it names")]
    OtherEnd,
}

/// The result of a proof.
#[derive(Clone, Debug, Serialize)]
pub struct ProofReport {
    pub receipt: AuditReceipt,
    pub end: AuditReceipt,
    /// The record, as it was written.
    pub record: Map<String, Value>,
    /// Whether something that was kept elsewhere is among the records of the proof.
    pub proven: bool,
    pub receipts: Vec<ProofReceipt>,
}

/// A receipt or head that was kept elsewhere.
#[derive(Clone, Debug, Serialize)]
pub struct ProofReceipt {
    pub receipt: AuditReceipt,
    /// Whether it is of a record of the proof.
    pub present: bool,
}

/// Makes the proof of a record: up to the record of receipt `to`, or the next one that another chain names, or the last.
/// `None` if there is no such record, or no record of that receipt after it.
pub fn prove(
    folder: &Path,
    subject: &ProofSubject,
    to: Option<&AuditReceipt>,
) -> io::Result<Option<RecordProof>> {
    let (chain, seq) = match subject {
        ProofSubject::Numbered { chain, seq } => (chain.clone(), *seq),
        ProofSubject::Call(call_id) => match find_call(folder, call_id)? {
            Some(place) => place,
            None => return Ok(None),
        },
    };
    let survey = FolderSurvey::take(folder)?;
    let Some(view) = survey.chains.iter().find(|view| view.name == chain) else {
        return Ok(None);
    };
    let wanted = match to {
        Some(to) if to.chain != chain || to.seq < seq => return Ok(None),
        Some(to) => WantedEnd::Receipt(to),
        None => WantedEnd::Named(
            survey
                .openings()
                .flat_map(|opening| &opening.heads)
                .filter(|head| head.chain == chain)
                .map(|head| (head.seq, head.hash))
                .collect(),
        ),
    };
    let segments = view.begun_segments();
    // The segment that holds the record is the last one that begins with it or before it.
    let begins_after = |at: &usize| {
        segments[*at]
            .first
            .as_ref()
            .is_some_and(|first| first.seq > seq)
    };
    let until = (0..segments.len()).find(begins_after);
    let from = until.unwrap_or(segments.len()).saturating_sub(1);
    let paths: Vec<PathBuf> = segments[from..]
        .iter()
        .map(|segment| segment.path.clone())
        .collect();
    let (lines, known_by) = linked_lines(&paths, seq, &wanted)?;
    let proof = receipts_at(&chain, &lines).map(|(receipt, end)| RecordProof {
        format: FORMAT,
        receipt,
        end,
        end_known_by: known_by,
        lines,
    });
    let is_wanted =
        |proof: &RecordProof| proof.receipt.seq == seq && to.is_none_or(|to| *to == proof.end);
    Ok(proof.filter(is_wanted))
}

fn find_call(folder: &Path, call_id: &str) -> io::Result<Option<(ChainName, u64)>> {
    let filter = AuditFilter {
        call_id: Some(call_id.to_owned()),
        ..AuditFilter::default()
    };
    let (mut records, _) = read::tail(folder, filter, 2)?;
    let end = records
        .iter()
        .rposition(|record| record.text("kind") == Some("call"));
    let record = match end {
        Some(at) => Some(records.swap_remove(at)),
        None => records.pop(),
    };
    Ok(record.map(|record| (record.chain, record.seq)))
}

/// The record at which a proof is to end.
enum WantedEnd<'a> {
    Receipt(&'a AuditReceipt),
    /// The next one that another chain names. A record of the same number and another hash is not that one.
    Named(BTreeSet<(u64, RecordHash)>),
}

impl WantedEnd<'_> {
    /// Returns where else the record of a line is known, if the proof ends with it.
    fn known_by(&self, line: &ChainLine<'_>) -> Option<ProofEnd> {
        match self {
            Self::Receipt(receipt) => (line.seq >= receipt.seq).then_some(ProofEnd::Receipt),
            Self::Named(named) => named
                .contains(&(line.seq, line.hash))
                .then_some(ProofEnd::Chain),
        }
    }
}

/// Reads the lines from record `seq` to the one at the end.
fn linked_lines(
    segments: &[PathBuf],
    seq: u64,
    wanted: &WantedEnd<'_>,
) -> io::Result<(Vec<String>, ProofEnd)> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for path in segments {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            file => file?,
        };
        let mut lines = LineReader::new(file);
        while let Some(piece) = lines.next()? {
            let LinePiece::Line(text) = piece else {
                continue;
            };
            let Some(line) = ChainLine::parse(text).filter(|line| line.seq >= seq) else {
                continue;
            };
            bytes += text.len();
            if found.len() > LINKS_MAX || (bytes > LINES_MAX_BYTES && !found.is_empty()) {
                return Ok((found, ProofEnd::Limit));
            }
            let known_by = wanted.known_by(&line);
            let text = String::from_utf8(text.to_vec());
            found.push(text.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?);
            if let Some(known_by) = known_by {
                return Ok((found, known_by));
            }
        }
    }
    Ok((found, ProofEnd::Head))
}

fn receipts_at(chain: &ChainName, lines: &[String]) -> Option<(AuditReceipt, AuditReceipt)> {
    let receipt = |text: &String| {
        let line = ChainLine::parse(text.as_bytes())?;
        Some(AuditReceipt {
            chain: chain.clone(),
            seq: line.seq,
            hash: line.hash,
        })
    };
    Some((receipt(lines.first()?)?, receipt(lines.last()?)?))
}

impl RecordProof {
    /// Parses the file of a proof. `Err` means that it is malformed, or of another format. Nothing is verified yet.
    pub fn parse(text: &str) -> Result<Self, ProofFault> {
        let proof: Self = serde_json::from_str(text).map_err(|error| {
            // It may quote names of the file.
            let why = printable(&error.to_string());
            ProofFault::Form(weir_text::shorten(&why, WHY_MAX_CHARS).into_owned())
        })?;
        match proof.format {
            FORMAT => Ok(proof),
            other => Err(ProofFault::Format(other)),
        }
    }

    /// Checks every line and link, and looks for receipts and heads that were kept elsewhere among the records.
    pub fn check(&self, kept: &[AuditReceipt]) -> Result<ProofReport, ProofFault> {
        let mut known = BTreeSet::new();
        let mut before: Option<(u64, RecordHash)> = None;
        for (at, text) in self.lines.iter().enumerate() {
            let line = ChainLine::parse(text.as_bytes()).ok_or(ProofFault::NoRecord(at + 1))?;
            if !line.is_intact() {
                return Err(ProofFault::Changed(at + 1));
            }
            if before.is_some_and(|(seq, hash)| (line.seq, line.prev) != (seq + 1, hash)) {
                return Err(ProofFault::Unlinked(at + 1));
            }
            before = Some((line.seq, line.hash));
            known.insert((line.seq, line.hash));
        }
        let (first, last) =
            receipts_at(&self.receipt.chain, &self.lines).ok_or(ProofFault::NoRecord(1))?;
        if first != self.receipt {
            return Err(ProofFault::OtherRecord);
        }
        if last != self.end {
            return Err(ProofFault::OtherEnd);
        }
        let record = serde_json::from_str(&self.lines[0]).map_err(|_| ProofFault::NoRecord(1))?;
        let receipts: Vec<ProofReceipt> = kept
            .iter()
            .map(|receipt| ProofReceipt {
                receipt: receipt.clone(),
                present: receipt.chain == self.receipt.chain
                    && known.contains(&(receipt.seq, receipt.hash)),
            })
            .collect();
        Ok(ProofReport {
            receipt: first,
            end: last,
            record,
            proven: receipts.iter().any(|kept| kept.present),
            receipts,
        })
    }
}

impl ProofReport {
    /// Returns `true` if there is a receipt, and every receipt is of a record of the proof.
    pub fn is_ok(&self) -> bool {
        self.proven && self.receipts.iter().all(|kept| kept.present)
    }
}

impl fmt::Display for ProofReport {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kept in &self.receipts {
            let status = match kept.present {
                true => "present",
                false => "NOT IN THIS PROOF",
            };
            writeln!(to, "receipt {}: {status}", kept.receipt)?;
        }
        let (seq, end) = (self.receipt.seq, &self.end);
        writeln!(
            to,
            "record {seq} of chain {} gives its hash, and is linked to record {} of its chain",
            self.receipt.chain, end.seq
        )?;
        match self.proven {
            true => writeln!(
                to,
                "it is proven: it was written before what the receipt is of, and was not changed since"
            ),
            false => writeln!(
                to,
                "NOT PROVEN YET: compare it with a receipt or head that someone else kept: {end}"
            ),
        }
    }
}
