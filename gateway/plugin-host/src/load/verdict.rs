//! Decides about a build by one table, whatever its origin.
//!
//! A row is a source, and names the checks of its builds in their order. The first check that a build does not pass decides.
//! What a check needs is found only when its turn comes: a build that is refused by its name is not asked for its tools.

use crate::PluginConfig;

/// The origin of a build, and when it appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuildSource {
    /// It came with the program, and serves if no file and no library replaces it.
    BuiltIn,
    /// A file that is in the folder at a start: the operator has put it there. Nothing is served yet, and recorded shapes
    /// serve without asking a source.
    FileAtStart,
    /// A file that is in the folder when a one-shot command begins: the operator may have put it there for a gateway that
    /// holds it.
    FileOfCommand,
    /// A file that came or changed while serving, by hand or over the admin API.
    File,
    /// A library that the configuration names at a start.
    LibraryAtStart,
    /// A library that the configuration names since it was reloaded.
    Library,
    /// An earlier build, which a published contract still needs.
    Kept,
    /// The build that serves, under settings with which it may define other tools.
    Reconfigured,
}

/// A question about a build. Whether it can be read, compiled or copied, and has an `about`, comes before all of these; so do
/// the pin and signature of a library, which is not opened before, and the pin of a kept build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuildCheck {
    /// It is the plugin that is expected there.
    Identity,
    /// `sha256` of its configuration allows it.
    Pin,
    /// One of `signed_by` has signed it, if that names anyone.
    Signature,
    /// No other plugin has its name or one of its adapters.
    Names,
    /// It is accepted, if its plugin may write.
    Acceptance,
    /// Its tool definitions are always the same; for a kept build, they are those that it was kept for.
    Tools,
    /// It still has what published contracts read and write.
    Needs,
    /// The gate has published its definitions.
    Gate,
}

impl BuildSource {
    /// Returns the checks of its builds, in their order.
    fn checks(self) -> &'static [BuildCheck] {
        use BuildCheck::{Acceptance, Gate, Identity, Names, Needs, Pin, Signature, Tools};
        match self {
            Self::BuiltIn => &[Identity, Pin],
            Self::FileAtStart => &[Pin, Signature, Names, Tools, Gate],
            Self::FileOfCommand => &[Pin, Signature, Names, Acceptance, Tools, Gate],
            Self::File => &[Pin, Signature, Names, Acceptance, Tools, Needs, Gate],
            Self::LibraryAtStart => &[Identity, Names, Tools, Gate],
            Self::Library => &[Identity, Names, Tools, Needs, Gate],
            Self::Kept => &[Identity, Signature, Tools],
            Self::Reconfigured => &[Tools, Gate],
        }
    }
}

/// The known facts about a build.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BuildFacts {
    /// Whether a connection is granted to the plugin for writing.
    pub(super) may_write: bool,
    /// Whether a pin determines which builds may run.
    pub(super) is_pinned: bool,
    /// Whether the plugin is being developed.
    pub(super) in_development: bool,
    pub(super) record: Option<AcceptanceRecord>,
    pub(super) admission: Option<ToolAdmission>,
    /// Whether the other checks were passed, by check.
    passed: [Option<bool>; 8],
}

/// The entry of a build in the record of accepted builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcceptanceRecord {
    /// It was accepted, or serves now.
    Accepted,
    /// No build of its plugin was accepted yet, and none serves.
    First,
    /// Others were accepted, or another serves.
    Other,
    Unreadable,
}

/// The gate's verdict on a build's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolAdmission {
    /// It has no tools and needs none; or there is no gate.
    NoTools,
    /// A published contract needs tools, and it has none.
    ToolsMissing,
    Published,
    /// The change of its tools waits for approval.
    Waiting,
    /// Its tools cannot be published.
    Refused,
}

/// The verdict on a build. A build that does not serve changes nothing: what served before serves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadVerdict {
    /// The answer depends on this check, which was not made yet.
    Find(BuildCheck),
    Serve,
    /// It waits until a person lets it in, because of this check.
    Hold(BuildCheck),
    Refuse(BuildCheck),
}

impl BuildFacts {
    pub(super) fn new(config: &PluginConfig) -> Self {
        Self {
            may_write: config.grants.values().any(|grant| grant.may_write()),
            is_pinned: !config.sha256.is_empty(),
            in_development: config.dev,
            ..Self::default()
        }
    }

    /// Returns `true` if another build of the plugin has to be accepted: the accepted ones are recorded.
    pub(super) fn needs_acceptance(&self) -> bool {
        self.may_write && !self.is_pinned && !self.in_development
    }

    pub(super) fn note(&mut self, check: BuildCheck, passed: bool) {
        self.passed[check as usize] = Some(passed);
    }

    /// Returns the verdict that follows from this check on its own; `None` if it is still to be made.
    fn after(&self, check: BuildCheck) -> Option<LoadVerdict> {
        let verdict = match check {
            BuildCheck::Acceptance if !self.needs_acceptance() => LoadVerdict::Serve,
            BuildCheck::Acceptance => match self.record? {
                AcceptanceRecord::Accepted | AcceptanceRecord::First => LoadVerdict::Serve,
                AcceptanceRecord::Other | AcceptanceRecord::Unreadable => LoadVerdict::Hold(check),
            },
            BuildCheck::Gate => match self.admission? {
                ToolAdmission::NoTools | ToolAdmission::Published => LoadVerdict::Serve,
                ToolAdmission::Waiting => LoadVerdict::Hold(check),
                ToolAdmission::ToolsMissing | ToolAdmission::Refused => LoadVerdict::Refuse(check),
            },
            _ if self.passed[check as usize]? => LoadVerdict::Serve,
            _ => LoadVerdict::Refuse(check),
        };
        Some(verdict)
    }
}

/// Decides by the known facts of a build.
pub(super) fn verdict(build: &BuildFacts, source: BuildSource) -> LoadVerdict {
    source
        .checks()
        .iter()
        .map(|&check| build.after(check).unwrap_or(LoadVerdict::Find(check)))
        .find(|verdict| *verdict != LoadVerdict::Serve)
        .unwrap_or(LoadVerdict::Serve)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on every build. The first row that matches decides; `.` matches anything, and words joined by `|` match
    /// any of these. `watched`: its plugin may write, has no pin, and is not being developed.
    const TABLE: &str = "
        source                    identity pin  signature names watched record           tools needs gate            verdict

        built-in                  bad      .    .         .     .       .                .     .     .               refuse
        built-in                  .        bad  .         .     .       .                .     .     .               refuse
        built-in                  .        .    .         .     .       .                .     .     .               serve

        kept                      bad      .    .         .     .       .                .     .     .               refuse
        kept                      .        .    bad       .     .       .                .     .     .               refuse
        kept                      .        .    .         .     .       .                bad   .     .               refuse
        kept                      .        .    .         .     .       .                .     .     .               serve

        file|at-start|of-command  .        bad  .         .     .       .                .     .     .               refuse
        file|at-start|of-command  .        .    bad       .     .       .                .     .     .               refuse
        file|at-start|of-command  .        .    .         bad   .       .                .     .     .               refuse
        file|of-command           .        .    .         .     yes     other|unreadable .     .     .               hold

        library|library-at-start  bad      .    .         .     .       .                .     .     .               refuse
        library|library-at-start  .        .    .         bad   .       .                .     .     .               refuse

        .                         .        .    .         .     .       .                bad   .     .               refuse
        file|library              .        .    .         .     .       .                .     bad   .               refuse
        .                         .        .    .         .     .       .                .     .     waiting         hold
        .                         .        .    .         .     .       .                .     .     missing|refused refuse
        .                         .        .    .         .     .       .                .     .     .               serve
    ";

    const SOURCES: [(&str, BuildSource); 8] = [
        ("built-in", BuildSource::BuiltIn),
        ("at-start", BuildSource::FileAtStart),
        ("of-command", BuildSource::FileOfCommand),
        ("file", BuildSource::File),
        ("library-at-start", BuildSource::LibraryAtStart),
        ("library", BuildSource::Library),
        ("kept", BuildSource::Kept),
        ("reconfigured", BuildSource::Reconfigured),
    ];
    const RECORDS: [(&str, AcceptanceRecord); 4] = [
        ("accepted", AcceptanceRecord::Accepted),
        ("first", AcceptanceRecord::First),
        ("other", AcceptanceRecord::Other),
        ("unreadable", AcceptanceRecord::Unreadable),
    ];
    const ADMISSIONS: [(&str, ToolAdmission); 5] = [
        ("none", ToolAdmission::NoTools),
        ("missing", ToolAdmission::ToolsMissing),
        ("published", ToolAdmission::Published),
        ("waiting", ToolAdmission::Waiting),
        ("refused", ToolAdmission::Refused),
    ];
    /// The checks that are passed or not, in the order of the columns.
    const PASSED: [BuildCheck; 6] = [
        BuildCheck::Identity,
        BuildCheck::Pin,
        BuildCheck::Signature,
        BuildCheck::Names,
        BuildCheck::Tools,
        BuildCheck::Needs,
    ];

    /// Calls `see` with every source and every build, and their words in the order of the columns.
    fn each_build(mut see: impl FnMut(BuildSource, &BuildFacts, [&str; 10])) {
        let word = |passed: bool| if passed { "good" } else { "bad" };
        for (source_word, source) in SOURCES {
            for bits in 0..1_u32 << 9 {
                let is_set = |bit: usize| bits >> bit & 1 == 1;
                for (record_word, record) in RECORDS {
                    for (gate_word, admission) in ADMISSIONS {
                        let mut build = BuildFacts {
                            may_write: is_set(6),
                            is_pinned: is_set(7),
                            in_development: is_set(8),
                            record: Some(record),
                            admission: Some(admission),
                            ..BuildFacts::default()
                        };
                        for (bit, check) in PASSED.into_iter().enumerate() {
                            build.note(check, is_set(bit));
                        }
                        let [identity, pin, signature, names, tools, needs] =
                            std::array::from_fn(|bit| word(is_set(bit)));
                        let watched = is_set(6) && !is_set(7) && !is_set(8);
                        let watched = if watched { "yes" } else { "no" };
                        let words = [
                            source_word,
                            identity,
                            pin,
                            signature,
                            names,
                            watched,
                            record_word,
                            tools,
                            needs,
                            gate_word,
                        ];
                        see(source, &build, words);
                    }
                }
            }
        }
    }

    #[test]
    fn every_build_is_decided_as_in_the_table() {
        let rows: Vec<Vec<&str>> = TABLE
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|row| !row.is_empty())
            .skip(1)
            .collect();
        let mut decided = vec![0; rows.len()];
        let mut builds = 0;
        each_build(|source, build, words| {
            let matches = |row: &Vec<&str>| {
                row.iter()
                    .zip(&words)
                    .all(|(cell, word)| *cell == "." || cell.split('|').any(|cell| cell == *word))
            };
            let row = rows.iter().position(matches).expect("the last row matches");
            decided[row] += 1;
            builds += 1;
            let verdict = match verdict(build, source) {
                LoadVerdict::Serve => "serve",
                LoadVerdict::Hold(_) => "hold",
                LoadVerdict::Refuse(_) => "refuse",
                LoadVerdict::Find(check) => panic!("{check:?} is known: {words:?}"),
            };
            assert_eq!(verdict, rows[row][10], "{words:?} by {:?}", rows[row]);
        });
        assert_eq!(builds, 8 * 512 * 4 * 5);
        assert!(
            decided.iter().all(|builds| *builds > 0),
            "a row decides nothing: {decided:?}"
        );
    }

    /// Checks made one by one give the same verdict as all checks together, and none is made after the deciding one.
    #[test]
    fn a_check_is_made_only_where_those_before_it_leave_the_answer_open() {
        each_build(|source, whole, words| {
            let mut build = BuildFacts {
                record: None,
                admission: None,
                passed: [None; 8],
                ..*whole
            };
            let mut made = Vec::new();
            let last = loop {
                match verdict(&build, source) {
                    LoadVerdict::Find(check) => {
                        assert!(!made.contains(&check), "{check:?} is made again: {words:?}");
                        made.push(check);
                        match check {
                            BuildCheck::Acceptance => build.record = whole.record,
                            BuildCheck::Gate => build.admission = whole.admission,
                            check => build.passed[check as usize] = whole.passed[check as usize],
                        }
                    }
                    last => break last,
                }
            };
            assert_eq!(last, verdict(whole, source), "{words:?}");
            if let LoadVerdict::Hold(check) | LoadVerdict::Refuse(check) = last {
                assert_eq!(made.last(), Some(&check), "{words:?}");
            }
        });
    }
}
