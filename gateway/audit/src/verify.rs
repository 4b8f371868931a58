//! Verification: walks every chain and compares it with itself, with what other chains state about it, and with receipts.
//!
//! Reads line by line; memory grows with the number of segments and receipts, not with records. Live processes may keep
//! running: named records are gathered first, so they must exist when their chain is walked afterwards.

mod heads;
mod report;
mod walk;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

pub use self::heads::{ChainHead, CollectedHeads, HEADS_FILE};
pub use self::report::{
    OpenEnd, ReceiptCheck, ReceiptStatus, TrailFinding, TrailProblem, TrailReport, TrailWarning,
};
use self::walk::ChainWalk;
use crate::{
    AuditError, AuditReceipt, ChainName, RecordHash,
    folder::{self, retention::RemovalStatement},
};

/// Walks all chains of `folder`. Fails only when the folder itself cannot be read.
pub fn verify(folder: &Path, receipts: &[AuditReceipt]) -> Result<TrailReport, AuditError> {
    let error = |source| AuditError::Folder {
        what: "read",
        folder: folder.to_owned(),
        source,
    };
    let mut named = ChainReferences::gather(folder).map_err(error)?;
    for (index, receipt) in receipts.iter().enumerate() {
        named.expect(
            &receipt.chain,
            ExpectedRecord {
                seq: receipt.seq,
                hash: receipt.hash,
                by: ExpectationSource::Receipt(index),
                ended: false,
            },
        );
    }
    let mut report = TrailReport::new(receipts);
    warn_of_strangers(folder, &mut report).map_err(error)?;
    let mut demands = Vec::new();
    let mut walked = BTreeSet::new();
    for (chain, path) in folder::chains(folder).map_err(error)? {
        let expected = named
            .expected
            .get(&chain)
            .map(Vec::as_slice)
            .unwrap_or_default();
        match ChainWalk::new(&chain, &path, expected, &mut report).run() {
            Ok(chain_demands) => demands.extend(chain_demands),
            // The chain was removed while we read: it is then judged like any missing chain.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => report.find(TrailProblem::Unreadable, &chain, error.to_string()),
        }
        walked.insert(chain);
    }
    for (chain, expected) in named
        .expected
        .iter()
        .filter(|(chain, _)| !walked.contains(*chain))
    {
        // The last record that is known comes first: the finding is about all up to it.
        let mut expected: Vec<&ExpectedRecord> = expected.iter().collect();
        expected.sort_by_key(|expected| std::cmp::Reverse(expected.seq));
        let missing = expected.into_iter();
        demands.extend(missing.map(|expected| MissingRecord::missing_chain(chain, expected)));
    }
    if !demands.is_empty() {
        // Retention may have run in the meantime.
        named = ChainReferences::gather(folder).map_err(error)?;
        settle(demands, &named, &mut report);
    }
    Ok(report)
}

/// The words of records and receipts about chains.
struct ChainReferences {
    expected: BTreeMap<ChainName, Vec<ExpectedRecord>>,
    /// The furthest removal stated for each chain.
    removed: BTreeMap<ChainName, RemovalStatement>,
    /// The machines that write the chains, as far as collected heads name them.
    nodes: BTreeMap<ChainName, String>,
    /// For each machine, or for those that are not known, the chain up to which removals may be stated no more.
    horizons: BTreeMap<Option<String>, ChainName>,
}

/// A record that must be there.
#[derive(Clone, Debug)]
struct ExpectedRecord {
    seq: u64,
    hash: RecordHash,
    by: ExpectationSource,
    /// Whether it must be the last one.
    ended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ExpectationSource {
    /// Index of the receipt asked about.
    Receipt(usize),
    Chain(ChainName),
    /// A chain of another machine; this one cannot tell what retention removed there.
    Elsewhere(ChainName),
    /// The heads that were collected with the chains.
    Heads,
}

/// Records that are not there. Fine when their removal is stated.
struct MissingRecord {
    chain: ChainName,
    seq: u64,
    /// The hash of record `seq`, if it is known.
    hash: Option<RecordHash>,
    by: Option<ExpectationSource>,
    /// The finding, if no removal is stated.
    finding: TrailFinding,
}

impl ChainReferences {
    fn gather(folder: &Path) -> io::Result<Self> {
        let mut named = Self {
            expected: BTreeMap::new(),
            removed: BTreeMap::new(),
            nodes: BTreeMap::new(),
            horizons: BTreeMap::new(),
        };
        let heads = CollectedHeads::read(folder)?;
        let collected = heads.is_some();
        for head in heads.into_iter().flat_map(|heads| heads.heads) {
            let expected = ExpectedRecord {
                seq: head.seq,
                hash: head.hash,
                by: ExpectationSource::Heads,
                ended: false,
            };
            named.expect(&head.chain, expected);
            named.nodes.insert(head.chain, head.node);
        }
        for (chain, path) in folder::chains(folder)? {
            // A segment that cannot be read is found when the chain is walked.
            for (number, segment) in folder::segments_of(&path).unwrap_or_default() {
                let Ok(Some(first)) = folder::read_first(&segment, &chain, number) else {
                    continue;
                };
                if let Some(horizon) = first.opening.horizon {
                    let node = named.nodes.get(&chain).cloned();
                    let known = named.horizons.entry(node).or_insert(horizon.clone());
                    *known = horizon.max(known.clone());
                }
                for head in first.opening.heads {
                    // The chains of other machines are here only if they were collected.
                    if head.elsewhere && !collected {
                        continue;
                    }
                    let by = match head.elsewhere {
                        true => ExpectationSource::Elsewhere(chain.clone()),
                        false => ExpectationSource::Chain(chain.clone()),
                    };
                    named.expect(
                        &head.chain,
                        ExpectedRecord {
                            seq: head.seq,
                            hash: head.hash,
                            by,
                            ended: head.ended,
                        },
                    );
                }
                for removed in first.opening.removed {
                    match named.removed.get(&removed.chain) {
                        Some(known) if known.seq >= removed.seq => {}
                        _ => drop(named.removed.insert(removed.chain.clone(), removed)),
                    }
                }
            }
        }
        Ok(named)
    }

    fn states_removal(&self, demand: &MissingRecord) -> bool {
        if let Some(removed) = self.removed.get(&demand.chain) {
            // A statement about this very record must have its hash.
            let same =
                removed.seq == demand.seq && demand.hash.is_none_or(|hash| removed.hash == hash);
            return removed.seq > demand.seq || same;
        }
        // The statement about a chain that only a receipt names may be forgotten as well.
        let only_receipts = matches!(demand.by, Some(ExpectationSource::Receipt(_)))
            && demand.finding.what == TrailProblem::Missing;
        let horizon = self.horizons.values().max();
        only_receipts && horizon.is_some_and(|horizon| demand.chain <= *horizon)
    }

    /// Returns the horizon of a missing chain's machine, where retention may have removed the chain so long ago that
    /// nothing states it anymore. What only another machine or the heads name is unknown to that machine, and does not
    /// keep a statement alive.
    fn forgotten_removal(&self, demand: &MissingRecord) -> Option<&ChainName> {
        let from_elsewhere = matches!(
            demand.by,
            Some(ExpectationSource::Elsewhere(_) | ExpectationSource::Heads)
        );
        if !from_elsewhere || demand.finding.what != TrailProblem::Missing {
            return None;
        }
        let node = self.nodes.get(&demand.chain);
        let horizons = self.horizons.iter().filter(|(other, _)| match node {
            Some(node) => other.as_ref().is_none_or(|other| other == node),
            None => true,
        });
        let horizon = horizons.map(|(_, horizon)| horizon).max();
        horizon.filter(|horizon| demand.chain <= **horizon)
    }

    fn expect(&mut self, chain: &ChainName, expected: ExpectedRecord) {
        self.expected
            .entry(chain.clone())
            .or_default()
            .push(expected);
    }
}

impl MissingRecord {
    fn missing_chain(chain: &ChainName, expected: &ExpectedRecord) -> Self {
        let detail = format!(
            "the chain is missing: the records 1 to {}, of which {} names the last",
            expected.seq, expected.by
        );
        let finding = TrailFinding::new(TrailProblem::Missing, chain, detail);
        let (hash, by) = (Some(expected.hash), Some(expected.by.clone()));
        Self {
            chain: chain.clone(),
            seq: expected.seq,
            hash,
            by,
            finding,
        }
    }
}

impl std::fmt::Display for ExpectationSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Receipt(_) => formatter.write_str("a receipt"),
            Self::Chain(chain) => write!(formatter, "chain {chain}"),
            Self::Elsewhere(chain) => write!(formatter, "chain {chain} of another machine"),
            Self::Heads => formatter.write_str("the head in the state"),
        }
    }
}

fn settle(demands: Vec<MissingRecord>, named: &ChainReferences, report: &mut TrailReport) {
    let (mut missing, mut warned) = (BTreeSet::new(), BTreeSet::new());
    for demand in demands {
        if let Some(horizon) = named.forgotten_removal(&demand)
            && !named.states_removal(&demand)
        {
            if warned.insert(demand.chain.clone()) {
                let detail = format!(
                    "{}. It was removed by retention or by hand, and which of the two cannot be verified: the records that stated \
                     removals of chains up to {horizon} may be gone",
                    demand.finding.detail
                );
                report.warn(Some(&demand.chain), None, detail);
            }
            continue;
        }
        let removed = named.states_removal(&demand);
        if let Some(ExpectationSource::Receipt(index)) = demand.by {
            report.receipts[index].status = if removed {
                ReceiptStatus::Removed
            } else {
                ReceiptStatus::Missing
            };
        }
        // A missing chain is one finding, however many name it.
        if !removed
            && (demand.finding.what != TrailProblem::Missing || missing.insert(demand.chain))
        {
            report.add(demand.finding);
        }
    }
}

/// Warns of anything in the folder that does not belong to a chain. It is left alone.
fn warn_of_strangers(folder: &Path, report: &mut TrailReport) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let ours = name.starts_with('.')
            || name == HEADS_FILE
            || (name.parse::<ChainName>().is_ok() && entry.file_type()?.is_dir());
        if !ours {
            report.warn(
                None,
                None,
                format!("`{}` is not part of the trail", name.escape_debug()),
            );
        }
    }
    Ok(())
}
