//! Walks one chain from its first line to its last.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    ops::RangeInclusive,
    path::Path,
};

use serde::de::IgnoredAny;

use super::{
    ExpectationSource, ExpectedRecord, MissingRecord,
    report::{OpenEnd, ReceiptStatus, TrailFinding, TrailProblem, TrailReport},
};
use crate::{
    AuditReceipt, ChainName, LINE_MAX_BYTES, RecordHash,
    folder::{self, FirstRecord, UncertainRange},
    line::{ChainLine, LinePiece, LineReader},
};

/// Gaps that may still be filled by records that stand too late; further ones are taken for deletions at once.
const GAPS_MAX: usize = 1024;

pub(super) struct ChainWalk<'a> {
    chain: &'a ChainName,
    path: &'a Path,
    report: &'a mut TrailReport,
    /// The records of this chain that other chains and receipts name, by number.
    expected: BTreeMap<u64, Vec<&'a ExpectedRecord>>,
    demands: Vec<MissingRecord>,
    /// The sound record with the highest number.
    last: Option<(u64, RecordHash)>,
    /// Lines since then that are not sound records.
    damaged: u64,
    gaps: Vec<SequenceGap>,
    /// The record that others saw as the last one, when its process had ended.
    ended: Option<u64>,
    /// The last record that another chain or a receipt names.
    named: u64,
    place: LinePosition,
}

/// Numbers that were jumped over.
struct SequenceGap {
    missing: RangeInclusive<u64>,
    before: LinePosition,
}

#[derive(Clone, Default)]
struct LinePosition {
    file: String,
    line: u64,
}

impl<'a> ChainWalk<'a> {
    pub(super) fn new(
        chain: &'a ChainName,
        path: &'a Path,
        expected: &'a [ExpectedRecord],
        report: &'a mut TrailReport,
    ) -> Self {
        let mut by_seq = BTreeMap::<u64, Vec<&ExpectedRecord>>::new();
        for expected in expected {
            by_seq.entry(expected.seq).or_default().push(expected);
        }
        Self {
            chain,
            path,
            report,
            expected: by_seq,
            demands: Vec::new(),
            last: None,
            damaged: 0,
            gaps: Vec::new(),
            ended: None,
            named: 0,
            place: LinePosition::default(),
        }
    }

    pub(super) fn run(mut self) -> io::Result<Vec<MissingRecord>> {
        self.warn_of_strangers()?;
        let segments = folder::begun_segments(self.path)?;
        let first = segments.first().map(|(number, _)| *number);
        for (number, path) in &segments {
            self.report.segments += 1;
            self.place = LinePosition {
                file: folder::segment_name(*number),
                line: 0,
            };
            match self.segment(*number, path) {
                Ok(()) => {}
                // The chain's first segments may go while we read; the next one then demands a statement.
                Err(error) if error.kind() == io::ErrorKind::NotFound && Some(*number) == first => {
                }
                Err(error) => self.find(TrailProblem::Unreadable, error.to_string()),
            }
        }
        self.report.chains += 1;
        self.finish();
        Ok(self.demands)
    }

    fn segment(&mut self, number: u32, path: &Path) -> io::Result<()> {
        let mut lines = LineReader::new(File::open(path)?);
        let mut torn = None;
        while let Some(piece) = lines.next()? {
            self.place.line += 1;
            match piece {
                LinePiece::Line(line) => {
                    if self.place.line == 1 && self.is_foreign(number, line) {
                        return Ok(());
                    }
                    self.line(line);
                }
                LinePiece::TooLong => {
                    self.damage(format!("the line is longer than {LINE_MAX_BYTES} bytes"))
                }
                LinePiece::Torn { bytes } => torn = Some(bytes),
            }
        }
        self.report.bytes += lines.offset;
        if let Some(bytes) = torn {
            let live = folder::is_live(self.path).unwrap_or_default();
            let why = if live {
                "its process is writing"
            } else {
                "its process was killed; the next one repairs it"
            };
            let detail = format!("{bytes} bytes after the last whole line: {why}");
            self.report
                .warn(Some(self.chain), Some(&self.place.file), detail);
        }
        Ok(())
    }

    /// Returns `true` for a segment of another chain, or another segment of this one: it is no evidence about
    /// the records that belong here.
    fn is_foreign(&mut self, number: u32, line: &[u8]) -> bool {
        let Some(first) = FirstRecord::parse(line) else {
            return false;
        };
        let (chain, segment) = (&first.opening.chain, first.opening.segment);
        let foreign = chain != self.chain || segment != number;
        if foreign {
            self.find(
                TrailProblem::Foreign,
                format!("this is segment {segment} of chain {chain}"),
            );
        }
        foreign
    }

    fn line(&mut self, bytes: &[u8]) {
        let Some(line) = ChainLine::parse(bytes) else {
            return self.damage("the line has not the form of a record".into());
        };
        if !line.is_intact() {
            return self.damage(format!(
                "the line claims to be record {}, but its hash does not match its bytes",
                line.seq
            ));
        }
        if serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
            return self.damage("the line is not JSON".into());
        }
        self.warn_of_uncertain(bytes);
        self.record(&line);
    }

    fn damage(&mut self, detail: String) {
        self.find(TrailProblem::Changed, detail);
        self.damaged += 1;
    }

    /// Warns of records whose sync failed. They are here now; records lost with a machine would be found as missing.
    fn warn_of_uncertain(&mut self, bytes: &[u8]) {
        let Some(UncertainRange { from, to }) = UncertainRange::parse(bytes) else {
            return;
        };
        let detail = format!(
            "the records {from} to {to} are uncertain: a sync of them failed, and a crash of the machine could lose them \
             although later syncs succeeded"
        );
        self.report
            .warn(Some(self.chain), Some(&self.place.file), detail);
    }

    fn record(&mut self, line: &ChainLine<'_>) {
        self.report.records += 1;
        self.meet_expectations(line);
        let (next, prev) = match self.last {
            Some((seq, hash)) => (seq + 1, hash),
            None => return self.first_record(line),
        };
        if line.seq < next {
            return self.late(line.seq);
        }
        // A damaged line is one record as a rule; a newline put in or taken out makes it two, or half a one.
        let skipped = line.seq - next;
        if skipped > self.damaged {
            self.gap(next..=line.seq - 1);
        } else if skipped == 0 && line.prev != prev {
            let detail = format!(
                "record {} follows another record than the one before it",
                line.seq
            );
            self.find(TrailProblem::Replaced, detail);
        }
        self.last = Some((line.seq, line.hash));
        self.damaged = 0;
    }

    /// Checks the first record: it is number 1, or a record states the removal of the records before it.
    fn first_record(&mut self, line: &ChainLine<'_>) {
        let before = line.seq.saturating_sub(1);
        let damaged = std::mem::take(&mut self.damaged);
        self.last = Some((line.seq, line.hash));
        if before == 0 {
            if line.seq == 0 || line.prev != RecordHash::NONE {
                self.find(
                    TrailProblem::Replaced,
                    "the first record names one before it".into(),
                );
            }
        } else if before > damaged {
            let detail = format!(
                "the records up to {before} are missing, and no record states their removal"
            );
            let finding = self.finding(TrailProblem::Deleted, detail);
            let chain = self.chain.clone();
            self.demands.push(MissingRecord {
                chain,
                seq: before,
                hash: Some(line.prev),
                by: None,
                finding,
            });
        }
    }

    fn gap(&mut self, missing: RangeInclusive<u64>) {
        let gap = SequenceGap {
            missing,
            before: self.place.clone(),
        };
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(gap)
        } else {
            self.deleted(&gap)
        }
    }

    /// Reports a number that was passed already: it fills a gap, or was there before.
    fn late(&mut self, seq: u64) {
        let Some(at) = self.gaps.iter().position(|gap| gap.missing.contains(&seq)) else {
            return self.find(
                TrailProblem::Inserted,
                format!("record {seq} is here although its place is earlier"),
            );
        };
        let gap = self.gaps.swap_remove(at);
        let (start, end) = gap.missing.into_inner();
        let left = [start..=seq - 1, seq + 1..=end]
            .into_iter()
            .filter(|range| !range.is_empty());
        self.gaps.extend(left.map(|missing| SequenceGap {
            missing,
            before: gap.before.clone(),
        }));
        self.find(
            TrailProblem::OutOfOrder,
            format!("record {seq} comes after later ones"),
        );
    }

    fn deleted(&mut self, gap: &SequenceGap) {
        let (start, end) = (gap.missing.start(), gap.missing.end());
        let detail = format!("{} before this line", missing_records(*start, *end));
        let finding = TrailFinding::new(TrailProblem::Deleted, self.chain, detail)
            .at(&gap.before.file, gap.before.line);
        self.report.add(finding);
    }

    fn meet_expectations(&mut self, line: &ChainLine<'_>) {
        // A second record with this number no longer has anything to match.
        let Some(expected) = self.expected.remove(&line.seq) else {
            return;
        };
        let mut is_reported = false;
        for expected in expected {
            let met = expected.hash == line.hash;
            if met {
                self.named = self.named.max(line.seq);
            }
            if met && expected.ended {
                self.ended = Some(line.seq);
            }
            if let ExpectationSource::Receipt(index) = expected.by {
                let status = if met {
                    ReceiptStatus::Present
                } else {
                    ReceiptStatus::Replaced
                };
                self.report.receipts[index].status = status;
            }
            if !met && !std::mem::replace(&mut is_reported, true) {
                let detail = format!(
                    "record {} is not the one that {} names",
                    line.seq, expected.by
                );
                self.find(TrailProblem::Replaced, detail);
            }
        }
    }

    fn finish(&mut self) {
        for gap in std::mem::take(&mut self.gaps) {
            self.deleted(&gap);
        }
        let last = self.last.map_or(0, |(seq, _)| seq);
        // After the last record of a process that was seen to have ended nothing can have followed.
        if last > self.named || (self.ended != Some(last) && last > 0) {
            self.report.open_ends.push(OpenEnd {
                chain: self.chain.clone(),
                after: self.named,
                last,
            });
        }
        match self.last {
            Some((seq, hash)) => self.report.heads.push(AuditReceipt {
                chain: self.chain.clone(),
                seq,
                hash,
            }),
            // A chain appears with its first record, even if no other chain names it.
            None => self.demand(
                TrailProblem::Deleted,
                1,
                None,
                None,
                "the chain has no record at all".into(),
            ),
        }
        if let Some(ended) = self.ended.filter(|ended| *ended < last) {
            let detail =
                format!("the chain had ended with record {ended}, but continues to record {last}");
            self.report.find(TrailProblem::Inserted, self.chain, detail);
        }
        let mut reported = BTreeSet::new();
        // The furthest record that each source names is reported.
        let expected = std::mem::take(&mut self.expected).into_values().rev();
        for expected in expected.flatten() {
            let (by, seq) = (&expected.by, expected.seq);
            let (what, detail) = if seq <= last {
                (
                    TrailProblem::Deleted,
                    format!("record {seq} is missing, and {by} names it"),
                )
            } else if reported.insert(by) {
                (
                    TrailProblem::Cut,
                    format!(
                        "the chain ends with record {last}, and {by} names record {seq}: {}",
                        missing_records(last + 1, seq)
                    ),
                )
            } else {
                continue;
            };
            self.demand(what, seq, Some(expected.hash), Some(by.clone()), detail);
        }
    }

    /// Notes a finding unless a record states that this one was removed.
    fn demand(
        &mut self,
        what: TrailProblem,
        seq: u64,
        hash: Option<RecordHash>,
        by: Option<ExpectationSource>,
        detail: String,
    ) {
        let finding = TrailFinding::new(what, self.chain, detail);
        self.demands.push(MissingRecord {
            chain: self.chain.clone(),
            seq,
            hash,
            by,
            finding,
        });
    }

    fn find(&mut self, what: TrailProblem, detail: String) {
        let finding = self.finding(what, detail);
        self.report.add(finding);
    }

    /// Makes a finding at the line that is read.
    fn finding(&self, what: TrailProblem, detail: String) -> TrailFinding {
        let finding = TrailFinding::new(what, self.chain, detail);
        if self.place.line > 0 {
            finding.at(&self.place.file, self.place.line)
        } else {
            finding
        }
    }

    fn warn_of_strangers(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(self.path)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if !folder::is_part_of_chain(&name) {
                let detail = format!("`{}` is not part of the trail", name.escape_debug());
                self.report.warn(Some(self.chain), None, detail);
            }
        }
        Ok(())
    }
}

fn missing_records(start: u64, end: u64) -> String {
    match start == end {
        true => format!("record {start} is missing"),
        false => format!("the records {start} to {end} are missing"),
    }
}
