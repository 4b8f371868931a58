//! A disk that is full: nothing half-written stays, nothing is answered, and writing goes on when there is room.

use std::process::Command;

use crate::child;

#[test]
fn a_full_disk_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" fill \"$1\""])
        .arg(child())
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
