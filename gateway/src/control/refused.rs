//! Collects everything that is refused now. Contracts that do not depend on it are still served.

use weir_contracts::FileProblem;

use super::ControlPlane;

/// The kind of a thing that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactKind {
    /// A contract file or its lock.
    Contract,
    /// A published version that this program cannot read.
    Version,
    Plugin,
    Connection,
    /// An upstream server whose secrets are missing.
    Upstream,
}

/// A thing that is refused, and every reason.
#[derive(Clone, Debug)]
pub struct RefusedArtifact {
    pub kind: ArtifactKind,
    /// The file, or the place in the configuration.
    pub name: String,
    pub problems: Vec<FileProblem>,
}

impl ArtifactKind {
    pub const ALL: [Self; 5] = [
        Self::Contract,
        Self::Version,
        Self::Plugin,
        Self::Connection,
        Self::Upstream,
    ];

    /// Returns the name of the kind in metrics and in the admin API.
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

impl ControlPlane {
    /// Returns how many things of each kind are currently refused.
    pub fn refused_by_kind(&self) -> Vec<(&'static str, usize)> {
        let refused = self.refused();
        let count = |kind| {
            refused
                .iter()
                .filter(|refused| refused.kind == kind)
                .count()
        };
        ArtifactKind::ALL
            .map(|kind| (kind.word(), count(kind)))
            .to_vec()
    }

    /// Returns everything that is currently refused: contract files, published versions, plugin files, connections and upstreams.
    pub fn refused(&self) -> Vec<RefusedArtifact> {
        let files = self
            .unserved()
            .into_iter()
            .filter(|file| !file.problems.is_empty())
            .map(|file| RefusedArtifact {
                kind: ArtifactKind::Contract,
                name: file.file.display().to_string(),
                problems: file.problems,
            });
        let versions = self
            .gate()
            .unreadable()
            .into_iter()
            .map(|(contract, skipped)| RefusedArtifact {
                kind: ArtifactKind::Version,
                name: format!("{contract}@{}", skipped.version),
                problems: vec![FileProblem::new(&contract, "", skipped.why)],
            });
        let plugins = self
            .plugin_files()
            .refused()
            .into_iter()
            .map(|plugin| RefusedArtifact {
                kind: ArtifactKind::Plugin,
                problems: vec![FileProblem::new(&plugin.file, "", plugin.reason)],
                name: plugin.file,
            });
        let connections = self.refused_connections();
        let connections = connections.iter().map(|problem| RefusedArtifact {
            kind: if problem.place.starts_with("/upstreams/") {
                ArtifactKind::Upstream
            } else {
                ArtifactKind::Connection
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
