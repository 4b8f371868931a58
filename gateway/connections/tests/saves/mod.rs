//! Programs that take long over a save, or never end it.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use weir_connections::FailureCode;

use super::open;

/// A program may take longer over a save than the file has to be quiet. What it wrote behind an exchange was lost.
#[tokio::test]
async fn a_save_in_slow_steps_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    let files = open(folder.path(), true);
    loop {
        std::fs::write(&path, "id,by\n1,person\n").expect("written");
        let (begun, begin) = mpsc::channel();
        let person = thread::spawn({
            let path = path.clone();
            move || {
                let mut file = File::create(path).expect("emptied");
                file.write_all(b"id,by\n").expect("written");
                let paused = Instant::now();
                begun.send(()).expect("the agent waits");
                thread::sleep(Duration::from_millis(500));
                file.write_all(b"2,person\n").expect("written");
                paused.elapsed()
            }
        });
        begin.recv().expect("the save begins");
        let half = files.stat("rows.csv").await.expect("there").version;
        let row = vec![(6, 0, b"3,agent\n".to_vec())];
        let replaced = files.replace_parts("rows.csv", &half, row).await;
        let paused = person.join().expect("the person ends");
        // On a busy machine the pause may be so long that the save seems to be over.
        if paused > Duration::from_millis(900) {
            continue;
        }
        let error = replaced.expect_err("the file has moved on");
        assert_eq!(error.code, FailureCode::Conflict);
        let now = std::fs::read_to_string(&path).expect("there");
        assert_eq!(now, "id,by\n2,person\n");
        return;
    }
}

/// A program that keeps the file open and adds to it again and again made a write wait until the call ran out of time.
#[tokio::test]
async fn a_program_that_goes_on_writing_is_not_waited_for_forever() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    let files = open(folder.path(), true);
    for _ in 0..5 {
        std::fs::write(&path, "id,by\n").expect("written");
        let is_over = Arc::new(AtomicBool::new(false));
        let (begun, begin) = mpsc::channel();
        let program = thread::spawn({
            let (path, is_over) = (path.clone(), is_over.clone());
            move || {
                let file = OpenOptions::new().append(true).open(path);
                let mut file = file.expect("opened");
                let (mut rows, mut longest) = (0, Duration::ZERO);
                while !is_over.load(Ordering::Relaxed) {
                    file.write_all(b"1,program\n").expect("written");
                    let paused = Instant::now();
                    rows += 1;
                    if rows == 1 {
                        begun.send(()).expect("the agent waits");
                    }
                    thread::sleep(Duration::from_millis(50));
                    longest = longest.max(paused.elapsed());
                }
                (rows, longest)
            }
        });
        begin.recv().expect("the program begins");
        let read = files.stat("rows.csv").await.expect("there").version;
        let row = vec![(6, 0, b"2,agent\n".to_vec())];
        let replaced = files.replace_parts("rows.csv", &read, row).await;
        is_over.store(true, Ordering::Relaxed);
        let (rows, longest) = program.join().expect("the program ends");
        // On a busy machine the pause may be so long that the program seems to be done.
        if longest > Duration::from_millis(900) {
            continue;
        }
        let error = replaced.expect_err("the program goes on");
        // The time of one write in a thousand looks like that of an agent's, which is not waited for.
        if error.code == FailureCode::Conflict {
            continue;
        }
        assert_eq!(error.code, FailureCode::Unavailable);
        assert!(error.nothing_changed, "{error:?}");
        let now = std::fs::read_to_string(&path).expect("there");
        assert_eq!(now.matches("program").count(), rows);
        return;
    }
    panic!("no write waited for the program");
}
