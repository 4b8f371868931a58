//! The trail in processes of their own: killed, side by side, of several users, and on a full disk.

mod crash;
mod full_disk;
mod owners;
#[path = "../steps/mod.rs"]
mod steps;

use std::{env, path::PathBuf};

use steps::{append, check_whole, open};

/// Returns the example `child`, built by the same cargo run as this test.
fn child() -> PathBuf {
    let test = env::current_exe().expect("this test has a path");
    let child = test
        .ancestors()
        .nth(2)
        .expect("tests lie in TARGET/PROFILE/deps")
        .join("examples/child");
    assert!(
        child.exists(),
        "{} is missing: run `cargo build --workspace --all-targets --locked`",
        child.display()
    );
    child
}
