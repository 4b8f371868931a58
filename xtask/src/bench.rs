//! `cargo xtask bench`: the measurements, in release mode. None is written yet.

use crate::{step::Failure, workshop::Workshop};

pub(crate) fn run(_workshop: &Workshop) -> Result<(), Failure> {
    Err("there are no benches yet".into())
}
