//! Tests what the gateway keeps of its own: secrets, recorded shapes, builds of plugins.

use std::{fs, os::unix::fs::PermissionsExt as _};

use weir_state::{
    AdminRow, AuditHeadRow, BegunCall, BuildKind, CallKey, GatewayState, NewBuild, PlanDecision,
    PlanRow, PlanStatus, RecordedShape, Role, SecretPurpose, SessionKind, SessionRow,
};

use crate::Place;

fn shape() -> RecordedShape {
    RecordedShape {
        contract: "desk".into(),
        collection: "rooms".into(),
        adapter: "sheet".into(),
        settings: "{}".into(),
        shape: "{\"columns\":[]}".into(),
    }
}

pub(crate) async fn a_secret_is_made_once_among_processes_that_start_together(place: &Place) {
    let one = place.open().await;
    let two = place.open().await;
    assert_eq!(
        two.known_secret(SecretPurpose::Cursors)
            .await
            .expect("read"),
        None
    );
    let (left, right) = tokio::join!(
        one.secret(SecretPurpose::Cursors),
        two.secret(SecretPurpose::Cursors)
    );
    let secret = left.expect("made");
    assert_eq!(secret, right.expect("the same"));
    assert_ne!(
        secret,
        one.secret(SecretPurpose::Arguments).await.expect("another"),
        "each purpose has its own"
    );
    let reading = place.open_to_read().await;
    let known = reading.known_secret(SecretPurpose::Cursors).await;
    assert_eq!(known.expect("read"), Some(secret));
    assert!(
        reading.secret(SecretPurpose::Arguments).await.is_ok()
            && reading.record_shape(&shape()).await.is_err(),
        "nothing is changed through it"
    );
}

pub(crate) async fn a_shape_takes_the_place_of_the_one_before_it_and_moves_the_feed_where_it_differs(
    place: &Place,
) {
    let state = place.open().await;
    let mut shape = shape();
    state.record_shape(&shape).await.expect("recorded");
    let first = state.generation().await.expect("read");
    state.record_shape(&shape).await.expect("the same again");
    assert_eq!(state.generation().await.expect("read"), first);
    shape.settings = "{\"file\":\"b.csv\"}".into();
    state.record_shape(&shape).await.expect("recorded");
    assert_eq!(state.generation().await.expect("read"), first + 1);
    assert_eq!(state.shapes("desk").await.expect("read"), [shape]);
    assert!(state.shapes("other").await.expect("read").is_empty());
}

/// Keys that an earlier version kept in files are used from then on, by every process that starts.
#[tokio::test(flavor = "multi_thread")]
async fn keys_in_files_are_taken_over_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cursors, arguments) = ([1; 32], [2; 32]);
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
        path
    };
    let files = [
        write("cursor.key", &cursors),
        write("audit.key", &arguments),
    ];
    let open = || {
        let folder = folder.path().to_owned();
        tokio::spawn(async move { GatewayState::open(&folder).await.expect("opened") })
    };
    let (one, two) = tokio::join!(open(), open());
    let (one, two) = (one.expect("no panic"), two.expect("no panic"));
    for state in [&one, &two] {
        let secret = state.secret(SecretPurpose::Cursors).await;
        assert_eq!(secret.expect("read"), cursors);
        let secret = state.secret(SecretPurpose::Arguments).await;
        assert_eq!(secret.expect("read"), arguments);
    }
    assert!(files.iter().all(|file| !file.exists()));

    // A process was stopped after the transaction and before the removal.
    let same = write("cursor.key", &cursors);
    let other = write("audit.key", &[3; 32]);
    let again = GatewayState::open(folder.path()).await.expect("opened");
    assert_eq!(
        again.secret(SecretPurpose::Arguments).await.expect("read"),
        arguments,
        "the key in the state is the one that was used"
    );
    assert!(!same.exists() && other.exists(), "another key is not lost");
}

#[tokio::test]
async fn a_file_that_cannot_be_taken_over_stops_the_start_and_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.key");
    let refused = async || {
        let opened = GatewayState::open(folder.path()).await;
        opened.expect_err("refused").to_string()
    };
    fs::write(&path, [1; 32]).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("its mode");
    let error = refused().await;
    assert!(
        error.contains("audit.key") && error.contains("chmod 600"),
        "{error}"
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
    fs::write(&path, "short").expect("written");
    let error = refused().await;
    assert!(error.contains("this is not a key"), "{error}");
    assert!(path.exists());
}

#[tokio::test]
async fn shapes_in_files_are_taken_over_and_one_that_is_no_shape_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_contract = folder.path().join("shapes/desk");
    fs::create_dir_all(&of_contract).expect("a folder");
    let file = r#"{"adapter": "sheet", "settings": {}, "shape": {"columns": []}}"#;
    fs::write(of_contract.join("rooms.json"), file).expect("written");
    fs::write(of_contract.join("other.json"), "{").expect("written");
    let state = GatewayState::open(folder.path()).await.expect("opened");
    assert_eq!(state.shapes("desk").await.expect("read"), [shape()]);
    assert!(!of_contract.join("rooms.json").exists() && of_contract.join("other.json").exists());
    fs::remove_file(of_contract.join("other.json")).expect("removed");
    fs::write(of_contract.join("rooms.json"), file).expect("written");
    GatewayState::open(folder.path())
        .await
        .expect("opened again");
    assert!(!folder.path().join("shapes").exists(), "nothing is left");
}

pub(crate) async fn the_last_accepted_builds_are_remembered_in_order(place: &Place) {
    let state = place.open().await;
    let digests = async |state: &GatewayState| -> Vec<String> {
        let builds = state.accepted_builds("sql").await.expect("read");
        builds.into_iter().map(|build| build.digest).collect()
    };
    let before = state.last_acceptance().await.expect("read");
    for digest in ["one", "two", "one"] {
        state
            .accept_build("sql", digest, None, 1)
            .await
            .expect("accepted");
    }
    assert_eq!(
        digests(&state).await,
        ["two", "one"],
        "the newest is the last"
    );
    let after = state.last_acceptance().await.expect("read");
    assert!(after > before);
    state
        .accept_build("sql", "one", Some("ann"), 2)
        .await
        .expect("accepted");
    assert_eq!(
        state.last_acceptance().await.expect("read"),
        after,
        "it is the newest already"
    );
    for number in 0..40 {
        let digest = format!("b{number}");
        state
            .accept_build("sql", &digest, Some("ann"), 3)
            .await
            .expect("accepted");
    }
    let known = digests(&state).await;
    assert_eq!(
        (known.len(), known.first(), known.last()),
        (32, Some(&"b8".to_owned()), Some(&"b39".to_owned()))
    );
    let last = state.accepted_builds("sql").await.expect("read").pop();
    assert_eq!(last.expect("one").accepted_by.as_deref(), Some("ann"));
    assert!(
        state
            .accepted_builds("other")
            .await
            .expect("read")
            .is_empty()
    );
}

pub(crate) async fn the_last_used_builds_are_kept_and_a_shared_content_stays(place: &Place) {
    let state = place.open().await;
    let build = |plugin: &str, number: i64| NewBuild {
        plugin: plugin.to_owned(),
        definitions: format!("definitions{}", number % 2),
        digest: format!("d{number}"),
        kind: BuildKind::Component,
        bytes: format!("build {number}").into_bytes(),
        signature: (number == 0).then(|| "signature".to_owned()),
        at_ms: number,
    };
    let is_there = |number: i64| {
        state
            .content(&format!("d{number}"), BuildKind::Component)
            .exists()
    };
    for number in 0..8 {
        state.keep_build(build("p", number)).await.expect("kept");
    }
    state.keep_build(build("q", 1)).await.expect("kept");
    let first = state.kept_builds("p", "definitions0").await.expect("read");
    let first = first.last().expect("the oldest").clone();
    assert_eq!((first.digest.as_str(), first.size), ("d0", 7));
    let signature = state.content("d0", BuildKind::Component);
    let signature = signature.with_extension("wasm.minisig");
    assert_eq!(
        fs::read_to_string(&signature).expect("beside it"),
        "signature"
    );

    state.use_build(&first, 100).await.expect("noted");
    for number in 8..10 {
        state.keep_build(build("p", number)).await.expect("kept");
    }
    assert!(is_there(0), "it was used");
    assert!(is_there(1), "another plugin keeps it too");
    assert!(!is_there(2), "nothing names it");
    let digests = async |plugin| -> Vec<String> {
        let builds = state.kept_builds(plugin, "definitions0").await;
        let builds = builds.expect("read").into_iter();
        builds.map(|build| build.digest).collect()
    };
    assert_eq!(digests("p").await, ["d0", "d8", "d6", "d4"]);
    assert!(digests("q").await.is_empty());
}

#[tokio::test]
async fn builds_in_files_are_taken_over_with_their_order_and_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let accepted = folder.path().join("plugins-accepted.json");
    fs::write(&accepted, r#"{"sql": ["zero", "one"], "a": ["two"]}"#).expect("written");
    let kept = folder.path().join("builds/tools");
    fs::create_dir_all(&kept).expect("a folder");
    fs::write(kept.join("aa-bb.wasm"), "content").expect("written");
    fs::write(kept.join("aa-bb.wasm.minisig"), "signature").expect("written");
    // Another process was stopped after it had linked the content.
    fs::hard_link(
        kept.join("aa-bb.wasm"),
        folder.path().join("builds/bb.wasm"),
    )
    .expect("linked");
    for _ in 0..2 {
        let state = GatewayState::open(folder.path()).await.expect("opened");
        let known = state.accepted_builds("sql").await.expect("read");
        let known: Vec<_> = known.iter().map(|build| build.digest.as_str()).collect();
        assert_eq!(known, ["zero", "one"]);
        let builds = state.kept_builds("tools", "aa").await.expect("read");
        let path = state.content(&builds[0].digest, builds[0].kind);
        assert_eq!(
            (
                builds.len(),
                builds[0].size,
                path.ends_with("builds/bb.wasm")
            ),
            (1, 7, true)
        );
        let read = |path| fs::read_to_string(path).expect("it is there");
        assert_eq!(read(path.clone()), "content");
        assert_eq!(read(path.with_extension("wasm.minisig")), "signature");
        assert!(!accepted.exists() && !kept.exists());
    }
    fs::write(&accepted, "{").expect("written");
    let error = GatewayState::open(folder.path())
        .await
        .expect_err("refused");
    assert!(error.to_string().contains("move it away"), "{error}");
    assert!(accepted.exists());
}

pub(crate) async fn sessions_move_the_feed_and_are_taken_away_once(place: &Place) {
    let state = place.open().await;
    let admin = AdminRow {
        id: "ada".into(),
        secret_hash: vec![1],
        name: "ada".into(),
        role: Role::Viewer,
        approves: false,
        created_ms: 0,
        created_by: "test".into(),
        revoked_ms: None,
    };
    state.add_admin(&admin).await.expect("added");
    let session = |id: &str, created_ms| SessionRow {
        id: id.into(),
        secret_hash: vec![2],
        admin: "ada".into(),
        kind: SessionKind::Session,
        created_ms,
        expires_ms: created_ms + 10,
        used_ms: created_ms,
    };
    let number = async || state.generation().await.expect("read");
    let before = number().await;
    state.add_session(&session("one", 1)).await.expect("added");
    assert_eq!(number().await, before + 1);
    state.touch_session("one", 5).await.expect("noted");
    assert_eq!(number().await, before + 1, "a use is of no interest");
    let known = state.session("one", SessionKind::Session).await;
    assert_eq!(known.expect("read").map(|row| row.used_ms), Some(5));
    let as_link = state.session("one", SessionKind::Link).await;
    assert_eq!(as_link.expect("read"), None);

    state.add_session(&session("two", 11)).await.expect("added");
    assert!(
        !state.remove_session("one").await.expect("asked"),
        "it has expired, and made room"
    );
    assert!(state.remove_session("two").await.expect("asked"));
    assert!(!state.remove_session("two").await.expect("asked"));
    state.revoke_admin("ada", 12).await.expect("revoked");
    assert!(state.add_session(&session("three", 13)).await.is_err());
}

pub(crate) async fn the_head_of_a_chain_moves_forward_alone(place: &Place) {
    let (one, two) = (place.open().await, place.open().await);
    let head = |chain: &str, seq| AuditHeadRow {
        chain: chain.to_owned(),
        node: "n1".to_owned(),
        segment: 1,
        seq,
        hash: format!("{seq:064}"),
        written_ms: seq,
    };
    for (state, head) in [
        (&one, head("b", 7)),
        (&two, head("a", 2)),
        (&one, head("a", 9)),
        (&two, head("a", 8)),
    ] {
        state.write_audit_head(&head).await.expect("written");
    }
    let heads = two.audit_heads().await.expect("read");
    assert_eq!(heads, [head("a", 9), head("b", 7)]);
    two.forget_audit_heads(&["a".to_owned()])
        .await
        .expect("gone");
    assert_eq!(one.audit_heads().await.expect("read"), [head("b", 7)]);
}

pub(crate) async fn a_plan_that_asked_is_found_first_and_taken_as_it_is(place: &Place) {
    let state = place.open().await;
    let plan = |id: &str, created_ms| PlanRow {
        id: id.to_owned(),
        caller: "agent ann".to_owned(),
        agent: "ann".to_owned(),
        tenant: "home".to_owned(),
        subject: None,
        contract: "desk@1.0.0".to_owned(),
        tool: "remove".to_owned(),
        change: "c".to_owned(),
        fingerprint: "f".to_owned(),
        sealed: Some("s".to_owned()),
        status: PlanStatus::Pending,
        created_ms,
        expires_ms: 100,
        decided_ms: None,
        decided_by: None,
        reason: None,
    };
    let decision = PlanDecision {
        status: PlanStatus::Approved,
        by: "admin:eve",
        reason: None,
        at_ms: 2,
    };
    state.add_plan(&plan("p1", 1)).await.expect("added");
    assert!(state.decide_plan("p1", &decision).await.expect("decided"));
    let take = async |reason| state.take_plan("p1", reason, 3).await.expect("read");
    assert!(take(None).await.is_some());
    state.add_plan(&plan("p2", 4)).await.expect("added");
    let find = async || state.find_plan("agent ann", "c", 5).await.expect("read");
    assert_eq!(find().await.expect("there").id, "p2");
    let give = async |at_ms| state.give_plan_back("p1", "s", true, at_ms).await;
    give(100).await.expect("it has expired");
    assert!(take(Some("asked")).await.is_none());
    give(5).await.expect("given back");
    let found = find().await.expect("there");
    assert_eq!((&*found.id, found.reason.as_deref()), ("p1", Some("asked")));
    assert!(take(None).await.is_none(), "a plain call found another one");
    assert!(take(Some("asked")).await.is_some());
}

pub(crate) async fn a_write_is_forgotten_by_the_lease_that_it_began_with(place: &Place) {
    let state = place.open().await;
    let key = CallKey {
        caller: "agent ann of home".to_owned(),
        tool: "orders create_order".to_owned(),
        key: "k".to_owned(),
    };
    let begin = async |now_ms: i64| {
        let begun = state.begin_call(&key, "digest", now_ms, now_ms + 10).await;
        begun.expect("begun")
    };
    let forget = async |lease_ms: i64| state.forget_call(&key, lease_ms).await;
    assert!(matches!(begin(1).await, BegunCall::First));
    forget(12).await.expect("there is another one");
    assert!(matches!(begin(2).await, BegunCall::Running));
    forget(11).await.expect("it is forgotten");
    assert!(matches!(begin(3).await, BegunCall::First));
}
