//! Tests for a state in a database alone: errors at a start, one number for each change, nodes, and the way there and back.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use weir_state::{
    BuildKind, FILE, FeedPart, GatewayState, MessageRow, NewBuild, NewMessage, NewNode,
    RecordedShape, SecretPurpose, ServerAddress, StateError,
};
use weir_watch::FileWatcher;

use crate::{
    contracts::{FILE as FROM_FILE, key, publish, version},
    endings,
    place::Place,
    server::Server,
};

pub(crate) fn node(id: &str) -> NewNode {
    NewNode {
        id: id.into(),
        name: "machine".into(),
        version: "1".into(),
        formats: "1,2".into(),
        configuration: "c".into(),
        stale_ms: 1_000,
    }
}

/// Fills a state with a row of most kinds.
async fn fill(state: &GatewayState) {
    publish(state, None, FROM_FILE, &version("1.0.0"), None)
        .await
        .expect("published");
    for id in ["a", "b"] {
        state.add_key(&key(id)).await.expect("added");
    }
    state.revoke_key("a", 5).await.expect("revoked");
    state
        .secret(SecretPurpose::Cursors)
        .await
        .expect("a secret");
    state
        .accept_build("sql", "one", Some("ann"), 1)
        .await
        .expect("accepted");
    let build = NewBuild {
        plugin: "p".into(),
        definitions: "d".into(),
        digest: "abc".into(),
        kind: BuildKind::Component,
        bytes: b"content".to_vec(),
        signature: Some("signature".into()),
        at_ms: 1,
    };
    state.keep_build(build).await.expect("kept");
    let shape = RecordedShape {
        contract: "desk".into(),
        collection: "rooms".into(),
        adapter: "sheet".into(),
        settings: "{}".into(),
        shape: "{\"é\":\"ß\"}".into(),
    };
    state.record_shape(&shape).await.expect("recorded");
}

async fn refused(url: &str, folder: &Path) -> String {
    let address = ServerAddress::parse(url).expect("an address");
    let opened = GatewayState::connect(&address, folder).await;
    opened.expect_err("refused").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_in_a_database_is_shared_moved_and_refused_for_what_is_wrong_with_it() {
    let server = Server::started();
    wrong_starts(&server).await;
    numbers(&Place::database(&server)).await;
    builds_of_other_machines(&Place::database(&server)).await;
    leases(&Place::database(&server)).await;
    endings::an_end_stays_where_the_database_forgets_it(&Place::database(&server)).await;
    endings::an_end_stays_where_its_note_alone_is_lost(&Place::database(&server)).await;
    endings::an_approval_that_was_given_back_stays(&Place::database(&server)).await;
    endings::what_makes_room_has_not_ended(&Place::database(&server)).await;
    endings::a_start_from_the_copy_comes_back_on_earlier_tables(&server, &Place::database(&server))
        .await;
    there_and_back(&Place::database(&server)).await;
    away(&server, &Place::database(&server)).await;
}

async fn wrong_starts(server: &Server) {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = server.url().replace("/postgres?", "/missing?");
    let error = refused(&missing, folder.path()).await;
    assert!(error.contains("does not exist: create it"), "{error}");
    server.script("CREATE ROLE poor LOGIN");
    server.script("CREATE DATABASE rich");
    let poor = server
        .url()
        .replace("weir@", "poor@")
        .replace("/postgres?", "/rich?");
    let error = refused(&poor, folder.path()).await;
    assert!(
        error.contains("the role lacks rights") && error.contains("owner"),
        "{error}"
    );
    let place = Place::database(server);
    drop(place.open().await);
    place
        .run("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (999, 'later', true, '', 0)")
        .await;
    let address = place.address().expect("an address");
    // A later version only adds; what is not known here is not copied.
    let state = GatewayState::connect(&address, folder.path())
        .await
        .expect("newer");
    GatewayState::connect_to_read(&address, folder.path())
        .await
        .expect("newer");
    let file = Place::file().open().await;
    let error = state.copy_to(&file).await.expect_err("newer").to_string();
    assert!(error.contains("999"), "{error}");
}

/// Many writers at once: each change has a number of its own, and none is left out.
async fn numbers(place: &Place) {
    let states = [Arc::new(place.open().await), Arc::new(place.open().await)];
    let writers = (0..8).map(|writer| {
        let state = states[writer % 2].clone();
        tokio::spawn(async move {
            for number in 0..20 {
                let id = format!("k{writer}-{number}");
                state.add_key(&key(&id)).await.expect("added");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    let keys = states[0].keys().await.expect("read");
    let numbers: BTreeSet<i64> = keys.iter().map(|key| key.change).collect();
    assert_eq!(
        numbers.into_iter().collect::<Vec<_>>(),
        (1..=160).collect::<Vec<_>>()
    );
    assert_eq!(states[1].generation().await.expect("read"), 160);
}

async fn builds_of_other_machines(place: &Place) {
    let here = place.open().await;
    fill(&here).await;
    let folder = tempfile::tempdir().expect("a folder");
    let address = place.address().expect("an address");
    let there = GatewayState::connect(&address, folder.path())
        .await
        .expect("opened");
    let build = there.kept_builds("p", "d").await.expect("read").remove(0);
    assert!(!there.content("abc", BuildKind::Component).exists());
    let path = there.fetch_content(&build).await.expect("fetched");
    assert_eq!(fs::read(&path).expect("a file"), b"content");
    let signature = fs::read_to_string(path.with_extension("wasm.minisig"));
    assert_eq!(signature.expect("beside it"), "signature");
}

/// A change holds everywhere once each node has taken it over; one that does not answer is named.
async fn leases(place: &Place) {
    let one = place.open().await;
    let two = Arc::new(place.open().await);
    one.join(node("one")).await.expect("joined");
    two.join(node("two")).await.expect("joined");
    let following = two.clone();
    let follow = tokio::spawn(async move { following.follow(&FileWatcher::default()).await });
    let taking = two.clone();
    let take = tokio::spawn(async move {
        let mut changes = taking.changes();
        while changes.changed().await.is_ok() {
            let number = *changes.borrow_and_update();
            taking.note_taken(FeedPart::Keys, number);
            taking.note_taken(FeedPart::Contracts, number);
        }
    });
    one.add_key(&key("a")).await.expect("added");
    // The first one does not follow: its lease ends, and it is missing.
    let missing = one.await_everywhere().await.expect("asked");
    let ids: Vec<&str> = missing.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["one"]);
    assert!(missing[0].stops_ms() > missing[0].now_ms);
    one.leave().await.expect("left");
    one.add_key(&key("b")).await.expect("added");
    assert!(one.await_everywhere().await.expect("asked").is_empty());
    let nodes = one.nodes().await.expect("read");
    assert_eq!(
        (nodes.len(), nodes[0].is_live(), nodes[0].seen),
        (1, true, one.generation().await.expect("read"))
    );
    follow.abort();
    take.abort();
}

async fn there_and_back(place: &Place) {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let here = GatewayState::open(folders[0].path()).await.expect("opened");
    fill(&here).await;
    assert!(
        GatewayState::open_alone(folders[0].path()).await.is_err(),
        "it is open elsewhere"
    );
    drop(here);
    let here = loop {
        // The pool closes its connections a moment after.
        if let Ok(alone) = GatewayState::open_alone(folders[0].path()).await {
            break alone;
        }
    };
    let there = place.open().await;
    let copied = here.copy_to(&there).await.expect("copied");
    assert!(
        copied
            .iter()
            .any(|table| (table.name, table.rows) == ("keys", 2))
    );
    assert!(here.copy_to(&there).await.is_err(), "it is not empty");
    there.join(node("runs")).await.expect("joined");
    let back = GatewayState::open(folders[1].path()).await.expect("made");
    let error = there.copy_to(&back).await.expect_err("it runs").to_string();
    assert!(error.contains("stop it first"), "{error}");
    there.leave().await.expect("left");
    let returned = there.copy_to(&back).await.expect("copied");
    assert_eq!(
        (&copied, &back.sums().await.expect("summed")),
        (&returned, &copied)
    );
    assert_eq!(
        back.generation().await.expect("read"),
        here.generation().await.expect("read")
    );
    let content = folders[1].path().join("builds/abc.wasm");
    assert_eq!(fs::read(content).expect("a file"), b"content");
    assert!(folders[1].path().join(FILE).exists());
    back.add_key(&key("c")).await.expect("added");
    let newest = back.keys_after(3, 9).await.expect("read");
    assert_eq!(newest.iter().map(|key| key.change).collect::<Vec<_>>(), [4]);
}

async fn away(server: &Server, place: &Place) {
    let state = place.open().await;
    server.stop();
    for failed in [
        state.generation().await.map(drop),
        state.add_key(&key("a")).await,
    ] {
        let Err(StateError::Unreachable(_)) = failed else {
            panic!("{failed:?}");
        };
    }
    let folder = tempfile::tempdir().expect("a folder");
    let error = refused(&server.url(), folder.path()).await;
    assert!(error.contains("the server cannot be reached"), "{error}");
    server.start();
    state.add_key(&key("a")).await.expect("it is back");
}

/// A table that `copy.rs` does not name would be lost where a state is moved.
pub(crate) async fn every_table_is_copied(place: &Place) {
    let state = place.open().await;
    let (query, not_copied) = match place.address() {
        // The numbers of changes, the migrations, and the counter of accounts.
        None => ("SELECT count(*) FROM sqlite_master WHERE type = 'table'", 5),
        // Those numbers and the migrations, the nodes, the buckets of their rates, the content of builds, which is copied apart, and which of them were
        // uploaded; messages and their numbers, and which rights have ended and their number.
        Some(_) => (
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'",
            12,
        ),
    };
    let copied = state.sums().await.expect("summed").len() as i64;
    assert_eq!(place.run(query).await, Some(copied + not_copied));
}

pub(crate) async fn notes_of_sessions_move_a_feed_of_their_own(place: &Place) {
    let state = place.open().await;
    let before = state.generation().await.expect("read");
    let seen = state.session_number().await.expect("read");
    for (round, id) in (1..).zip(["a", "b"]) {
        let ids = [id.to_owned()];
        let merge = |_: &str, _: Option<&str>| "{}".to_owned();
        let written = state.write_client_sessions(&ids, merge, 0, 10);
        written.await.expect("written");
        let now = state.session_number().await.expect("read");
        assert_eq!(now, seen + round);
    }
    let noted = state.client_sessions_after(seen + 1, 0, 10).await;
    let noted = noted.expect("read");
    assert_eq!((noted.len(), noted[0].id.as_str()), (1, "b"));
    assert_eq!(state.generation().await.expect("read"), before);
}

/// However many sessions are ended in a day, the first are forgotten.
pub(crate) async fn notes_of_sessions_are_bounded(place: &Place) {
    let state = place.open().await;
    let many = "INSERT INTO client_sessions (id, note, expires_ms, change) \
                WITH RECURSIVE rows(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM rows WHERE i < 70000) \
                SELECT CAST(i AS TEXT), '{}', 1000, i - 100000 FROM rows";
    place.run(many).await;
    for round in 0..64 {
        let ids = [format!("new {round}")];
        let written = state.write_client_sessions(&ids, |_, _| "{}".to_owned(), 0, 1000);
        written.await.expect("written");
    }
    let kept = place.run("SELECT count(*) FROM client_sessions").await;
    assert!(
        kept.is_some_and(|kept| (60_000..=66_000).contains(&kept)),
        "{kept:?}"
    );
    let newest = "SELECT count(*) FROM client_sessions WHERE id LIKE 'new %'";
    assert_eq!(place.run(newest).await, Some(64));
}

/// A message for one node is taken once; those for all stay for each, in the order in which they were sent.
#[tokio::test]
async fn messages_reach_the_nodes_that_they_are_for() {
    let server = Server::started();
    let place = Place::database(&server);
    let [one, two] = [place.open().await, place.open().await];
    let message = |recipient: Option<&str>, content: &str| NewMessage {
        recipient: recipient.map(str::to_owned),
        content: content.into(),
    };
    let batch = [message(None, "first"), message(Some("two"), "own")];
    one.send_messages("one", &batch).await.expect("sent");
    let batch = [message(None, "second")];
    two.send_messages("two", &batch).await.expect("sent");
    let read = async |state: &GatewayState, node: &str, after: i64| -> Vec<(i64, String, String)> {
        let rows = state.take_messages(node, after).await.expect("read");
        let text = |row: MessageRow| {
            let content = String::from_utf8(row.content).expect("text");
            (row.number, row.sender, content)
        };
        rows.into_iter().map(text).collect()
    };
    let row = |number, sender: &str, content: &str| (number, sender.to_owned(), content.to_owned());
    let for_all = [row(1, "one", "first"), row(3, "two", "second")];
    assert_eq!(read(&one, "one", 0).await, for_all);
    let mut all = for_all.to_vec();
    // The number of a message for one node says nothing of those for all.
    all.push(row(0, "one", "own"));
    assert_eq!(read(&two, "two", 0).await, all);
    assert_eq!(read(&two, "two", 1).await, [row(3, "two", "second")]);
    let age = "UPDATE messages SET sent_ms = 0";
    place.run(age).await;
    one.send_messages("one", &[]).await.expect("sent");
    assert!(read(&two, "two", 0).await.is_empty(), "old ones are gone");
}
