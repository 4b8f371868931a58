//! The guests that the tests load: a hostile one, and one small adapter in each language.

use super::{build_crates, guest_folder, toolchain::Toolchain};
use crate::{step::Failure, workshop::Workshop};

const RUST_GUESTS: [(&str, &str); 1] = [("weir-guest-misbehaving", "misbehaving")];

pub(super) fn build(workshop: &Workshop, toolchain: &Toolchain) -> Result<(), Failure> {
    build_crates(workshop, toolchain, "test guests", &RUST_GUESTS, &guest_folder(workshop))
}
