//! Collects everything that is refused now. Contracts that do not depend on it are served.

use weir_contracts::Problem;

use super::Control;

/// The kind of a thing that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A contract file, or the lock beside it.
    Contract,
    /// A published version that this program cannot read.
    Version,
    Plugin,
    Connection,
    /// Another server whose secrets are missing.
    Upstream,
}

/// A thing that is refused, and every reason.
#[derive(Clone, Debug)]
pub struct Refused {
    pub kind: Kind,
    /// The file, or the place in the configuration.
    pub name: String,
    pub problems: Vec<Problem>,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::Contract,
        Self::Version,
        Self::Plugin,
        Self::Connection,
        Self::Upstream,
    ];

    /// Returns the word in metrics and in the admin API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Version => "version",
            Self::Plugin => "plugin",
            Self::Connection => "connection",
            Self::Upstream => "upstream",
        }
    }
}

impl Control {
    /// Returns how many things of each kind are refused now.
    pub fn refused_by_kind(&self) -> Vec<(&'static str, usize)> {
        let refused = self.refused();
        let count = |kind| {
            refused
                .iter()
                .filter(|refused| refused.kind == kind)
                .count()
        };
        Kind::ALL.map(|kind| (kind.word(), count(kind))).to_vec()
    }

    /// Returns everything that is refused now: contract files, published versions, plugin files, connections and upstreams.
    pub fn refused(&self) -> Vec<Refused> {
        let files = self
            .unserved()
            .into_iter()
            .filter(|file| !file.problems.is_empty())
            .map(|file| Refused {
                kind: Kind::Contract,
                name: file.file.display().to_string(),
                problems: file.problems,
            });
        let versions = self
            .gate()
            .unreadable()
            .into_iter()
            .map(|(contract, skipped)| Refused {
                kind: Kind::Version,
                name: format!("{contract}@{}", skipped.version),
                problems: vec![Problem::new(&contract, "", skipped.why)],
            });
        let plugins = self
            .plugin_files()
            .refused()
            .into_iter()
            .map(|plugin| Refused {
                kind: Kind::Plugin,
                problems: vec![Problem::new(&plugin.file, "", plugin.reason)],
                name: plugin.file,
            });
        let connections = self.refused_connections();
        let connections = connections.iter().map(|problem| Refused {
            kind: if problem.place.starts_with("/upstreams/") {
                Kind::Upstream
            } else {
                Kind::Connection
            },
            name: problem
                .place
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
            problems: vec![problem.clone()],
        });
        files
            .chain(versions)
            .chain(plugins)
            .chain(connections)
            .collect()
    }
}
