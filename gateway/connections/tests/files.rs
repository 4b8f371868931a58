//! File roots on a real disk: what may be reached, versions, and replacing under contention.

use std::{
    collections::{BTreeMap, HashSet},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::Arc,
};

use weir_connections::{Connection, ConnectionConfig, Connections, files::FileRoot};

#[tokio::test]
async fn no_path_leaves_the_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("sub")).expect("made");
    std::fs::write(folder.path().join("secret.csv"), "s").expect("written");
    std::fs::write(root.join("sub/a.csv"), "inside").expect("written");
    std::fs::write(root.join(".env"), "TOKEN=1").expect("written");
    symlink("../secret.csv", root.join("out.csv")).expect("linked");
    symlink(folder.path(), root.join("up")).expect("linked");
    symlink("sub/a.csv", root.join("link.csv")).expect("linked");
    let files = open(&root, true);

    assert_eq!(files.read("sub/a.csv", 2, 3).await.expect("read"), b"sid");
    assert_eq!(files.read("sub/a.csv", 90, 3).await.expect("read"), b"");
    assert_eq!(files.read("link.csv", 0, 100).await.expect("a link inside the root"), b"inside");
    for (path, code) in [
        ("", "invalid"),
        ("/etc/passwd", "invalid"),
        ("../secret.csv", "invalid"),
        ("sub/../../secret.csv", "invalid"),
        ("sub//a.csv", "invalid"),
        ("./sub/a.csv", "invalid"),
        ("sub\\a.csv", "invalid"),
        ("a\0b", "invalid"),
        (".env", "invalid"),
        ("sub", "invalid"),
        ("absent.csv", "not_found"),
        ("sub/a.csv/b", "not_found"),
    ] {
        assert_eq!(files.stat(path).await.expect_err(path).code.word(), code, "{path:?}");
        assert_eq!(files.read(path, 0, 10).await.expect_err(path).code.word(), code, "{path:?}");
    }
    for path in ["out.csv", "up/secret.csv"] {
        let error = files.read(path, 0, 10).await.expect_err(path);
        assert!(matches!(error.code.word(), "denied" | "upstream_error"), "{path}: {error:?}");
        files.replace(path, None, b"overwritten".to_vec()).await.expect_err(path);
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("secret.csv")).expect("there"), "s");
    assert_eq!(files.read("sub/a.csv", 0, 1024 * 1024 + 1).await.expect_err("too long").code.word(), "too_large");
    assert_eq!(files.list("", None).await.expect("listed").paths, ["link.csv", "sub/a.csv"]);
    assert_eq!(files.list("sub/", None).await.expect("listed").paths, ["sub/a.csv"]);
    assert_eq!(files.list("su", None).await.expect("listed").paths, ["sub/a.csv"]);
}

#[tokio::test]
async fn versions_follow_the_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.csv");
    let files = open(folder.path(), false);
    let mut seen = HashSet::new();
    for round in 0..200 {
        // The change is in place and of one length, so neither inode nor size nor, often, the times tell.
        std::fs::write(&path, format!("{round:04}")).expect("written");
        assert!(seen.insert(files.stat("a.csv").await.expect("there").version), "round {round}");
    }
    let before = files.stat("a.csv").await.expect("there");
    std::thread::sleep(std::time::Duration::from_millis(120));
    assert_eq!(files.stat("a.csv").await.expect("there"), before);
    assert_eq!(files.stat("a.csv").await.expect("there, from memory"), before);
    assert_eq!(files.replace("a.csv", None, vec![]).await.expect_err("read-only").code.word(), "denied");
}

/// What Weir has written is not digested again, and a change by somebody else in the next moment is seen all the same.
#[tokio::test]
async fn a_change_right_after_our_own_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "0").expect("written");
    let files = open(folder.path(), true);
    for round in 0..200 {
        let content = format!("{round:04}");
        let written = files.replace("a.csv", None, content.into_bytes()).await.expect("replaced");
        if round % 2 == 0 {
            assert_eq!(files.stat("a.csv").await.expect("there").version, written);
        }
        std::fs::write(&path, format!("x{round:03}")).expect("written in place");
        assert_ne!(files.stat("a.csv").await.expect("there").version, written, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_lose_nothing_and_leave_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, "").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("set");
    // A crashed writer left this behind.
    std::fs::write(folder.path().join(".weir-replace.tmp"), "half a file").expect("written");
    let writers = (0..8).map(|writer| {
        // Roots of their own, as in other processes.
        let files = open(folder.path(), true);
        tokio::spawn(async move {
            for row in 0..10 {
                loop {
                    let version = files.stat("rows.csv").await.expect("there").version;
                    let mut content = files.read("rows.csv", 0, 1024 * 1024).await.expect("read");
                    if files.stat("rows.csv").await.expect("there").version != version {
                        continue;
                    }
                    content.extend_from_slice(format!("{writer}-{row}\n").as_bytes());
                    match files.replace("rows.csv", Some(&version), content).await {
                        Ok(after) => break assert_ne!(after, version),
                        Err(error) => assert_eq!(error.code.word(), "conflict"),
                    }
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("a writer ends");
    }
    let content = std::fs::read_to_string(&path).expect("there");
    assert_eq!(content.lines().collect::<HashSet<_>>().len(), 80);
    assert_eq!(content.lines().count(), 80);
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).expect("listed").map(|e| e.expect("entry").file_name()).collect();
    assert_eq!(names, ["rows.csv"]);
    let files = open(folder.path(), true);
    let version = files.replace("new.csv", None, b"x".to_vec()).await.expect("a new file");
    assert_eq!(files.stat("new.csv").await.expect("there").version, version);
    assert_eq!(
        files.replace("gone.csv", Some(&version), b"x".to_vec()).await.expect_err("absent").code.word(),
        "conflict"
    );
}

#[tokio::test]
async fn a_root_that_is_missing_is_found_once_it_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = open(&folder.path().join("later"), false);
    assert_eq!(files.stat("a.csv").await.expect_err("no root").code.word(), "unavailable");
    std::fs::create_dir(folder.path().join("later")).expect("made");
    assert_eq!(files.stat("a.csv").await.expect_err("no file").code.word(), "not_found");
}

#[test]
fn connections_that_reach_a_path_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let config =
        |name: &str, path: &str| (name.to_owned(), ConnectionConfig::Files { path: path.into(), write: false });
    let configs = BTreeMap::from([
        config("data", "data"),
        ("db".to_owned(), ConnectionConfig::Sqlite { path: "state/weir.db".into(), write: false }),
    ]);
    let connections = Connections::new(&configs, folder.path()).expect("fine");
    assert_eq!(connections.reaching(&folder.path().join("state")), Some("db"));
    assert_eq!(connections.reaching(&folder.path().join("data/state")), Some("data"));
    assert_eq!(connections.reaching(&folder.path().join("elsewhere")), None);
}

fn open(root: &Path, write: bool) -> Arc<FileRoot> {
    let configs = BTreeMap::from([("f".to_owned(), ConnectionConfig::Files { path: root.into(), write })]);
    match Connections::new(&configs, Path::new("/")).expect("a root").get("f") {
        Some(Connection::Files(files)) => files.clone(),
        _ => unreachable!("it is a file root"),
    }
}

/// Parts are read and replaced as the whole is: the version is that of the content, whichever way it came about.
#[tokio::test]
async fn parts_are_read_and_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "0123456789").expect("written");
    let files = open(folder.path(), true);
    let parts = files.read_parts("a.csv", vec![(8, 5), (0, 2), (90, 1)]).await.expect("read");
    assert_eq!(parts, [b"89".to_vec(), b"01".to_vec(), Vec::new()]);

    // This runs once just after the file was written, and once when its times are settled.
    for wait_ms in [0, 2_200] {
        std::fs::write(&path, "0123456789").expect("written");
        tokio::time::sleep(std::time::Duration::from_millis(wait_ms)).await;
        for (edits, expected) in [
            (vec![(10, 0, b"more".to_vec())], "0123456789more"),
            (vec![(14, 0, b"!".to_vec()), (14, 0, b"?".to_vec())], "0123456789more!?"),
            (vec![(0, 1, b"zero".to_vec()), (3, 2, Vec::new()), (16, 0, b".".to_vec())], "zero1256789more!?."),
        ] {
            let old = files.stat("a.csv").await.expect("there").version;
            let new = files.replace_parts("a.csv", &old, edits.clone()).await.expect("replaced");
            assert_eq!(std::fs::read_to_string(&path).expect("there"), expected);
            assert_eq!(files.stat("a.csv").await.expect("there").version, new, "{expected}");
            // The same bytes written by somebody else have the same version.
            std::fs::write(folder.path().join("same.csv"), expected).expect("written");
            assert_eq!(files.stat("same.csv").await.expect("there").version, new);
            assert_eq!(
                files.replace_parts("a.csv", &old, edits).await.expect_err("it is another").code,
                weir_connections::Code::Conflict
            );
        }
    }
    let version = files.stat("a.csv").await.expect("there").version;
    for edits in [vec![(5, 1, vec![]), (4, 1, vec![])], vec![(17, 9, vec![])], vec![(u64::MAX, 1, vec![])]] {
        assert_eq!(
            files.replace_parts("a.csv", &version, edits).await.expect_err("no").code,
            weir_connections::Code::InvalidArguments
        );
    }
    assert_eq!(files.stat("a.csv").await.expect("there").version, version);
    assert_eq!(
        open(folder.path(), false).replace_parts("a.csv", &version, vec![]).await.expect_err("no").code,
        weir_connections::Code::Forbidden
    );
}
