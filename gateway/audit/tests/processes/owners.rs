//! A trail that several users of a machine write to: the gateway's own, and root with a command.

use std::{
    fs::{self, Permissions},
    io::{BufRead as _, BufReader},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{append, child, open};

/// The user of the gateway, where root runs this test.
const GATEWAY: u32 = 65_534;

#[test]
fn what_one_user_may_not_read_keeps_no_other_from_recording() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("state/audit");
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
        chown(scratch.path(), Some(GATEWAY), Some(GATEWAY)).unwrap();
    }
    drop(open(&folder));
    let [closed] = &chains(&folder)[..] else {
        panic!("one chain")
    };
    if !is_root {
        fs::set_permissions(closed, Permissions::from_mode(0o000)).unwrap();
        append(&open(&folder), 1);
        return fs::set_permissions(closed, Permissions::from_mode(0o700)).unwrap();
    }
    // What root makes is the gateway's; this chain becomes root's, as one that an earlier version made.
    assert_eq!(
        [
            owner(folder.parent().unwrap()),
            owner(&folder),
            owner(closed)
        ],
        [GATEWAY; 3]
    );
    chown(closed, Some(0), Some(0)).unwrap();
    let program = scratch.path().join("child");
    // A process that another test begins at this moment would keep a file that is written here from being run.
    assert!(
        Command::new("cp")
            .arg(child())
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    let mut gateway = Command::new(&program);
    gateway
        .arg("write")
        .arg(&folder)
        .uid(GATEWAY)
        .gid(GATEWAY)
        .stdout(Stdio::piped());
    let mut gateway = gateway.spawn().unwrap();
    let receipt = BufReader::new(gateway.stdout.take().unwrap())
        .lines()
        .next();
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    assert!(receipt.is_some_and(|line| line.unwrap().starts_with("receipt ")));

    // What root writes from now on is the gateway's.
    append(&open(&folder), 1);
    for chain in chains(&folder).iter().filter(|chain| *chain != closed) {
        let files = fs::read_dir(chain)
            .unwrap()
            .map(|file| file.unwrap().path());
        let foreign: Vec<_> = [chain.clone()]
            .into_iter()
            .chain(files)
            .filter(|path| owner(path) != GATEWAY)
            .collect();
        assert_eq!(foreign, [] as [PathBuf; 0]);
    }
    assert_eq!(chains(&folder).len(), 3);
}

fn chains(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|chain| chain.unwrap().path())
        .collect()
}

fn owner(path: &Path) -> u32 {
    fs::metadata(path).unwrap().uid()
}
