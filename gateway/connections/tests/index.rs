//! Scratch indexes, as a plugin's calls use them.

use std::{fs, path::Path};

use weir_connections::{
    FailureCode,
    index::{IndexEntry, IndexName, IndexRange, IndexStore},
};

const BYTES_MAX: u64 = 64 << 20;

fn name<'a>(version: &'a str, column: &'a str) -> IndexName<'a> {
    IndexName {
        plugin: "sheet",
        source: "data/x.csv",
        version,
        column,
    }
}

fn entry(key: &[u8], at: u64) -> IndexEntry {
    IndexEntry {
        key: key.to_vec(),
        at,
        length: 10,
    }
}

fn built(indexes: &IndexStore, name: IndexName<'_>, entries: &[IndexEntry]) {
    assert_eq!(indexes.begin(name, BYTES_MAX), Ok(0));
    indexes.add(name, entries, 0, 500).unwrap();
    indexes.finish(name, BYTES_MAX).unwrap();
}

fn files(folder: &Path) -> Vec<String> {
    let plugins = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = plugins.flat_map(|plugin| fs::read_dir(plugin).unwrap());
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn ats(entries: &[IndexEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.at).collect()
}

#[test]
fn ranges_come_in_order_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let indexes = IndexStore::new(folder.path().join("a folder with ü and %41"));
    assert_eq!(indexes.find(name("1", "id")), None);
    let entries = [
        entry(b"b", 10),
        entry(b"a", 20),
        entry(b"b", 30),
        entry(b"", 40),
        entry(b"b", 50),
        entry(b"c", 60),
    ];
    built(&indexes, name("1", "id"), &entries);
    assert_eq!(indexes.find(name("1", "id")), Some(500));
    for (descending, expected) in [
        (false, [40, 20, 10, 30, 50, 60]),
        (true, [60, 10, 30, 50, 20, 40]),
    ] {
        for limit in 1..8 {
            let mut range = IndexRange {
                descending,
                limit,
                ..IndexRange::default()
            };
            let mut walked = Vec::new();
            loop {
                let page = indexes.range(name("1", "id"), &range).unwrap();
                let Some(last) = page.last() else { break };
                range.after = Some((last.key.clone(), last.at));
                walked.extend(ats(&page));
            }
            assert_eq!(
                walked, expected,
                "{limit} at a time, descending: {descending}"
            );
        }
    }
    let some = |from: &[u8], to: Option<&[u8]>| {
        let range = IndexRange {
            from: from.to_vec(),
            to: to.map(<[u8]>::to_vec),
            limit: 100,
            ..IndexRange::default()
        };
        ats(&indexes.range(name("1", "id"), &range).unwrap())
    };
    assert_eq!(some(b"b", Some(b"b\0")), [10, 30, 50]);
    assert_eq!(some(b"b", None), [10, 30, 50, 60]);
    assert_eq!(some(b"x", None), [0_u64; 0]);
}

/// Two calls that build the same index each do their part of it, and none twice.
#[test]
fn a_begun_index_is_gone_on_with_and_never_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let indexes = IndexStore::new(folder.path().to_owned());
    let name = name("1", "id");
    assert_eq!(indexes.begin(name, BYTES_MAX), Ok(0));
    indexes.add(name, &[entry(b"a", 0)], 0, 100).unwrap();
    assert_eq!(indexes.find(name), None, "half an index is none");
    assert_eq!(indexes.begin(name, BYTES_MAX), Ok(100));
    assert_eq!(
        indexes
            .add(name, &[entry(b"a", 0)], 0, 100)
            .unwrap_err()
            .code,
        FailureCode::Conflict
    );
    indexes.add(name, &[entry(b"b", 100)], 100, 200).unwrap();
    indexes.finish(name, BYTES_MAX).unwrap();
    let all = indexes
        .range(
            name,
            &IndexRange {
                limit: 10,
                ..IndexRange::default()
            },
        )
        .unwrap();
    assert_eq!((ats(&all), indexes.find(name)), (vec![0, 100], Some(200)));
}

/// Entries that come in their order are not sorted again; where they stop doing so, the answer is the same.
#[test]
fn the_order_in_which_entries_come_does_not_show() {
    type Batch<'b> = &'b [(&'b [u8], u64)];
    let batches: [&[Batch<'_>]; 4] = [
        &[&[(b"a", 0), (b"b", 1)], &[(b"b", 2), (b"c", 3)]],
        &[&[(b"a", 0), (b"b", 2)], &[(b"b", 1)], &[(b"c", 3)]],
        &[&[(b"b", 1), (b"a", 0)], &[(b"c", 3), (b"b", 2)]],
        &[&[(b"a", 0)], &[], &[(b"c", 3), (b"b", 1), (b"b", 2)]],
    ];
    for batches in batches {
        let folder = tempfile::tempdir().unwrap();
        let indexes = IndexStore::new(folder.path().to_owned());
        indexes.begin(name("1", "id"), BYTES_MAX).unwrap();
        for (number, batch) in batches.iter().enumerate() {
            let entries: Vec<IndexEntry> = batch.iter().map(|(key, at)| entry(key, *at)).collect();
            indexes
                .add(
                    name("1", "id"),
                    &entries,
                    number as u64 * 10,
                    number as u64 * 10 + 10,
                )
                .unwrap();
        }
        indexes.finish(name("1", "id"), BYTES_MAX).unwrap();
        assert_eq!(
            indexes.find(name("1", "id")),
            Some(batches.len() as u64 * 10)
        );
        let all = indexes
            .range(
                name("1", "id"),
                &IndexRange {
                    limit: 10,
                    ..IndexRange::default()
                },
            )
            .unwrap();
        assert_eq!(ats(&all), [0, 1, 2, 3], "{batches:?}");
        let descending = IndexRange {
            limit: 10,
            descending: true,
            ..IndexRange::default()
        };
        assert_eq!(
            ats(&indexes.range(name("1", "id"), &descending).unwrap()),
            [3, 1, 2, 0],
            "{batches:?}"
        );
        assert_eq!(files(folder.path()).len(), 1, "{:?}", files(folder.path()));
    }
}

#[test]
fn a_new_version_takes_the_place_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let indexes = IndexStore::new(folder.path().to_owned());
    built(&indexes, name("1", "id"), &[entry(b"a", 1)]);
    built(&indexes, name("1", "price"), &[entry(b"a", 1)]);
    indexes.extend("sheet", "data/x.csv", "1", "2").unwrap();
    assert_eq!(
        (indexes.find(name("1", "id")), indexes.find(name("2", "id"))),
        (None, Some(500))
    );
    assert_eq!(indexes.find(name("2", "price")), Some(500));
    built(&indexes, name("3", "id"), &[entry(b"b", 2)]);
    assert_eq!(
        files(folder.path()).len(),
        2,
        "the index of the second version is gone"
    );
    // Another process has one open that is gone from the folder: it stays what it was.
    let all = indexes
        .range(
            name("2", "id"),
            &IndexRange {
                limit: 10,
                ..IndexRange::default()
            },
        )
        .unwrap();
    assert_eq!(ats(&all), [1]);
}

/// The next start sweeps away what a crash leaves, and spares what another process builds now.
#[test]
fn a_crash_leaves_nothing_that_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let other = IndexStore::new(folder.path().to_owned());
    other.begin(name("1", "id"), BYTES_MAX).unwrap();
    other
        .add(name("1", "id"), &[entry(b"a", 1)], 0, 100)
        .unwrap();
    let plugin = fs::read_dir(folder.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for name in ["x.index.1-1.part", "x.index.1-1.sorted.part"] {
        fs::write(plugin.join(name), "half").unwrap();
    }
    let indexes = IndexStore::new(folder.path().to_owned());
    let left = files(folder.path());
    assert!(
        left.len() == 2 && left.iter().all(|name| !name.starts_with("x.")),
        "{left:?}"
    );
    assert_eq!(indexes.find(name("1", "id")), None);
    // Both finish the same one.
    built(&indexes, name("1", "id"), &[entry(b"a", 1)]);
    other.finish(name("1", "id"), BYTES_MAX).unwrap();
    assert!(
        files(folder.path())
            .iter()
            .all(|name| name.ends_with(".index")),
        "{:?}",
        files(folder.path())
    );
    drop(other);
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_file_that_is_no_index_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let indexes = IndexStore::new(folder.path().to_owned());
    built(&indexes, name("1", "id"), &[entry(b"a", 1)]);
    let plugin = fs::read_dir(folder.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let file = fs::read_dir(&plugin)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::write(file, "not a database").unwrap();
    let indexes = IndexStore::new(folder.path().to_owned());
    assert_eq!(indexes.find(name("1", "id")), None);
    built(&indexes, name("1", "id"), &[entry(b"a", 1)]);
    assert_eq!(indexes.find(name("1", "id")), Some(500));
}

#[test]
fn indexes_are_bounded_and_the_oldest_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let indexes = IndexStore::new(folder.path().to_owned());
    let many: Vec<IndexEntry> = (0..2_000).map(|at| entry(&[b'x'; 100], at)).collect();
    let bytes_max = 1 << 20;
    for column in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(indexes.begin(name("1", column), bytes_max), Ok(0));
        indexes.add(name("1", column), &many, 0, 500).unwrap();
        indexes.finish(name("1", column), bytes_max).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let again = IndexStore::new(folder.path().to_owned());
    assert_eq!(
        (again.find(name("1", "a")), again.find(name("1", "f"))),
        (None, Some(500))
    );
    let bytes: u64 = fs::read_dir(
        fs::read_dir(folder.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path(),
    )
    .unwrap()
    .map(|file| file.unwrap().metadata().unwrap().len())
    .sum();
    assert!(bytes <= bytes_max, "{bytes}");
    indexes.begin(name("1", "huge"), bytes_max).unwrap();
    let mut at = 0;
    let refused = loop {
        match indexes.add(name("1", "huge"), &many, at, at + 1) {
            Ok(()) => at += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code, FailureCode::TooLarge);
    assert!(
        files(folder.path())
            .iter()
            .all(|name| name.ends_with(".index")),
        "its part is gone"
    );
}

/// A sheet that grew by many rows is indexed anew under the version that its first index has by now.
#[test]
fn an_index_that_is_built_again_is_found_as_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let indexes = IndexStore::new(folder.path().to_owned());
    let name = name("1", "id");
    built(&indexes, name, &[entry(b"a", 1)]);
    assert_eq!(indexes.find(name), Some(500));
    assert_eq!(indexes.begin(name, BYTES_MAX), Ok(0));
    indexes
        .add(name, &[entry(b"a", 1), entry(b"b", 600)], 0, 900)
        .unwrap();
    indexes.finish(name, BYTES_MAX).unwrap();
    assert_eq!(indexes.find(name), Some(900));
    let all = indexes
        .range(
            name,
            &IndexRange {
                limit: 10,
                ..IndexRange::default()
            },
        )
        .unwrap();
    assert_eq!(ats(&all), [1, 600]);
}

#[test]
fn indexes_that_are_never_finished_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let indexes = IndexStore::new(folder.path().to_owned());
    let bytes_max = 1 << 20;
    let columns = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    for column in columns {
        assert_eq!(indexes.begin(name("1", column), bytes_max), Ok(0));
    }
    assert_eq!(files(folder.path()).len(), 2 * 8, "the files of eight");
    let many: Vec<IndexEntry> = (0..2_000).map(|at| entry(&[b'x'; 100], at)).collect();
    let add = |name: IndexName<'_>| indexes.add(name, &many, 0, 500).map_err(|error| error.code);
    assert_eq!(
        add(name("1", "a")),
        Err(FailureCode::NotFound),
        "the oldest made room"
    );
    // Each takes more than a fifth of what there is, and as much again while it is sorted.
    assert_eq!(
        ["b", "c", "d"].map(|column| add(name("1", column))),
        [Ok(()), Ok(()), Err(FailureCode::TooLarge)]
    );
    let other = IndexName {
        plugin: "other",
        ..name("1", "a")
    };
    assert_eq!(indexes.begin(other, bytes_max), Ok(0));
    assert_eq!(add(other), Ok(()), "another plugin has room of its own");
    indexes.finish(name("1", "b"), bytes_max).unwrap();
    assert_eq!(indexes.begin(name("1", "d"), bytes_max), Ok(0));
    assert_eq!(add(name("1", "d")), Ok(()), "what is finished makes room");
}
