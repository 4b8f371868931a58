//! Computes how many connections the limit on open files allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The file handles reserved for the admin listener, the sources, the state and the trail.
const RESERVE: u64 = 256;

/// Raises the limit on open files as far as `connections_max` requires, and returns how many connections fit within it.
pub(crate) fn connections_within_limit(connections_max: usize) -> usize {
    let needed = (connections_max as u64).saturating_add(RESERVE);
    let limit = getrlimit(Resource::Nofile);
    let mut files = limit.current.unwrap_or(u64::MAX);
    if files < needed {
        let raised = limit.maximum.map_or(needed, |most| most.min(needed));
        let wanted = Rlimit {
            current: Some(raised),
            ..limit
        };
        match setrlimit(Resource::Nofile, wanted) {
            Ok(()) => files = raised.max(files),
            Err(error) => tracing::warn!(%error, "the limit on open files cannot be raised"),
        }
    }
    let most = connections_within(files, connections_max);
    if most < connections_max {
        tracing::warn!(
            files,
            connections_max = most,
            "the limit on open files (ulimit -n) leaves room for fewer connections than [http] connections_max"
        );
    }
    most
}

/// Returns how many connections fit in addition to the reserve, which takes no more than half of a small limit.
fn connections_within(files: u64, connections_max: usize) -> usize {
    let room = files - RESERVE.min(files / 2);
    usize::try_from(room)
        .unwrap_or(usize::MAX)
        .min(connections_max)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_left() {
        for (files, connections_max, most) in [
            (1024, 10_000, 768),
            (20_000, 10_000, 10_000),
            (256, 10_000, 128),
            (u64::MAX, 10_000, 10_000),
            (0, 10_000, 1),
        ] {
            assert_eq!(connections_within(files, connections_max), most, "{files}");
        }
    }
}
