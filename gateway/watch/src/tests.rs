//! Tests watching on real folders: only what the kernel reports ends a rest.

use std::fs;

use super::*;

/// Longer than any test: only a reported change ends such a rest.
const NEVER: Duration = Duration::from_secs(3600);
const INTERVAL: Duration = Duration::from_millis(1);

async fn started(folder: &Path) -> FileWatcher {
    let watcher = FileWatcher::start(folder).await;
    assert!(watcher.kernel.is_some(), "this machine reports changes");
    watcher
}

/// Returns the pace of a loop that rests over a place, which is watched from now on.
fn resting(watcher: &FileWatcher, place: WatchTarget) -> LookPace {
    let mut pace = watcher.pace(INTERVAL, vec![place]);
    pace.rest = NEVER;
    renew(&pace);
    pace
}

fn renew(pace: &LookPace) {
    let watch = pace.watch.as_ref().expect("watched");
    watch.renew().expect("watched");
}

async fn reported(pace: &mut LookPace) {
    let look = pace.next_look();
    let patience = Duration::from_secs(60);
    timeout(patience, look).await.expect("it is reported");
}

#[tokio::test]
async fn a_change_ends_the_rest_and_further_looks_follow_soon() {
    let folder = tempfile::tempdir().expect("a folder");
    let watcher = started(folder.path()).await;
    let mut pace = resting(&watcher, WatchTarget::folder(folder.path()));
    fs::write(folder.path().join("a"), "one").expect("written");
    reported(&mut pace).await;
    reported(&mut pace).await;
}

#[tokio::test]
async fn a_file_counts_with_those_that_are_named_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let watcher = started(folder.path()).await;
    let mut state = resting(&watcher, WatchTarget::file(&folder.path().join("weir.db")));
    let mut all = resting(&watcher, WatchTarget::folder(folder.path()));
    fs::write(folder.path().join("admin.url"), "one").expect("written");
    reported(&mut all).await;
    let watch = state.watch.as_ref().expect("watched");
    assert!(!watch.take_change(), "another file");
    fs::write(folder.path().join("weir.db-wal"), "one").expect("written");
    reported(&mut state).await;
}

/// A folder that is made later, and another one in its place, are watched from the next look on.
#[tokio::test]
async fn a_folder_may_come_and_be_replaced() {
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join("contracts");
    let watcher = started(above.path()).await;
    let mut pace = resting(&watcher, WatchTarget::folder(&folder));
    for before in ["first", "second"] {
        fs::create_dir(&folder).expect("made");
        renew(&pace);
        fs::write(folder.join("a.yaml"), "one").expect("written");
        pace.active_until = None;
        reported(&mut pace).await;
        fs::rename(&folder, above.path().join(before)).expect("moved");
    }
}

#[tokio::test]
async fn without_reports_the_loop_looks_at_its_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut pace = FileWatcher::default().pace(INTERVAL, vec![WatchTarget::folder(folder.path())]);
    pace.rest = NEVER;
    reported(&mut pace).await;
    let nowhere = FileWatcher::start(Path::new("/proc/self")).await;
    assert!(nowhere.kernel.is_none(), "no file can be made there");
}
