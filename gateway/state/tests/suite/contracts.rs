//! Contracts, drafts and keys.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use weir_state::{
    AdminRow, ChangeClass, ContractBasis, ContractOrigin, DraftFilter, DraftStatus, GatewayState,
    IdempotencyState, KeyRow, NewDraft, NewestDraft, Role, StateError, VersionRow, VersionSource,
};
use weir_watch::FileWatcher;

use crate::Place;

pub(crate) const FILE: VersionSource<'_> = VersionSource {
    origin: ContractOrigin::File,
    owner: None,
};
const API: VersionSource<'_> = VersionSource {
    origin: ContractOrigin::Api,
    owner: None,
};

pub(crate) fn key(id: &str) -> KeyRow {
    KeyRow {
        id: id.into(),
        secret_hash: vec![1; 32],
        agent: id.into(),
        tenant: "t".into(),
        access: None,
        view: None,
        limits: None,
        created_ms: 1,
        created_by: "ann".into(),
        expires_ms: None,
        revoked_ms: None,
        change: 0,
    }
}

pub(crate) fn version(number: &str) -> VersionRow {
    VersionRow {
        contract: "desk".into(),
        version: number.into(),
        artifact: format!("{{\"version\":\"{number}\"}}"),
        source: format!("# {number}"),
        class: ChangeClass::Compatible,
        fingerprint: "f".into(),
        published_ms: 1,
        published_by: "ann".into(),
    }
}

pub(crate) async fn publish(
    state: &GatewayState,
    base: Option<&str>,
    source: VersionSource<'_>,
    version: &VersionRow,
    draft: Option<&str>,
) -> Result<(), StateError> {
    state
        .change_live()
        .await?
        .publish(base, source, version, draft)
        .await
}

async fn switch(
    state: &GatewayState,
    base: Option<&str>,
    to: Option<&str>,
    at_ms: i64,
) -> Result<(), StateError> {
    state
        .change_live()
        .await?
        .switch("desk", base, to, None, at_ms, "ann")
        .await
}

pub(crate) fn draft<'a>(id: &'a str, base: Option<&'a str>, source: &'a str) -> NewDraft<'a> {
    NewDraft {
        on: None,
        id,
        contract: "desk",
        base,
        version: Some("2.0.0"),
        artifact: Some("{}"),
        source,
        origin: ContractOrigin::File,
        owner: None,
        class: ChangeClass::Breaking,
        fingerprint: "f2",
        report: "{}",
        at_ms: 2,
        by: "file",
    }
}

pub(crate) async fn one_of_two_publishes_on_the_same_base_is_told_that_it_moved(place: &Place) {
    let one = place.open().await;
    let two = place.open().await;
    publish(&one, None, FILE, &version("1.0.0"), None)
        .await
        .expect("published");
    let (left, right) = (version("1.1.0"), version("1.0.1"));
    let (left, right) = tokio::join!(
        publish(&one, Some("1.0.0"), FILE, &left, None),
        publish(&two, Some("1.0.0"), FILE, &right, None)
    );
    let moved = |result: &Result<(), StateError>| matches!(result, Err(StateError::Moved(_)));
    assert!(
        left.is_ok() ^ right.is_ok() && (moved(&left) ^ moved(&right)),
        "{left:?} {right:?}"
    );
    let live = two.live().await.expect("read");
    assert_eq!(live.len(), 1);
    assert!(["1.1.0", "1.0.1"].contains(&live[0].version.as_str()));
    assert_eq!(one.versions("desk").await.expect("read").len(), 2);
}

pub(crate) async fn a_name_keeps_its_history_when_it_is_retired(place: &Place) {
    let state = place.open().await;
    publish(&state, None, API, &version("1.0.0"), None)
        .await
        .expect("published");
    switch(&state, Some("1.0.0"), None, 5)
        .await
        .expect("retired");
    assert!(state.live().await.expect("read").is_empty());
    assert_eq!(state.heads().await.expect("read")[0].live, None);
    assert_eq!(state.versions("desk").await.expect("read").len(), 1);
    switch(&state, None, Some("1.0.0"), 6).await.expect("back");
    assert_eq!(state.live().await.expect("read")[0].version, "1.0.0");
    let unknown = switch(&state, Some("1.0.0"), Some("7.0.0"), 7).await;
    assert!(
        matches!(unknown, Err(StateError::Unknown("version"))),
        "{unknown:?}"
    );
    assert_eq!(
        state.live().await.expect("read")[0].version,
        "1.0.0",
        "nothing happened"
    );
}

pub(crate) async fn a_draft_is_held_once_and_decided_once(place: &Place) {
    let state = place.open().await;
    publish(&state, None, FILE, &version("1.0.0"), None)
        .await
        .expect("published");
    assert_eq!(
        state
            .hold(&draft("d1", Some("1.0.0"), "a"))
            .await
            .expect("held"),
        "d1"
    );
    assert_eq!(
        state
            .hold(&draft("d2", Some("1.0.0"), "a"))
            .await
            .expect("held"),
        "d1",
        "the same change again"
    );
    assert_eq!(
        state
            .hold(&draft("d3", Some("1.0.0"), "b"))
            .await
            .expect("held"),
        "d3"
    );
    let status = async |id: &str| {
        state
            .draft(id)
            .await
            .expect("read")
            .expect("there")
            .head
            .status
    };
    assert_eq!(
        (status("d1").await, status("d3").await),
        (DraftStatus::Superseded, DraftStatus::Pending)
    );
    publish(&state, Some("1.0.0"), FILE, &version("2.0.0"), Some("d3"))
        .await
        .expect("published");
    assert_eq!(status("d3").await, DraftStatus::Published);
    assert!(matches!(
        state.discard("d3", 9, "ann").await,
        Err(StateError::Moved(_))
    ));
    assert!(matches!(
        state.discard("d9", 9, "ann").await,
        Err(StateError::Unknown(_))
    ));
    let again = publish(&state, Some("2.0.0"), FILE, &version("2.0.1"), Some("d3")).await;
    assert!(matches!(again, Err(StateError::Moved(_))), "{again:?}");
    assert_eq!(
        state.live().await.expect("read")[0].version,
        "2.0.0",
        "nothing half done"
    );
}

pub(crate) async fn revoking_touches_one_key_and_keeps_its_row(place: &Place) {
    let state = place.open().await;
    state.add_key(&key("a")).await.expect("added");
    state.add_key(&key("b")).await.expect("added");
    assert!(
        state.add_key(&key("a")).await.is_err(),
        "an id is used once"
    );
    state.revoke_key("a", 7).await.expect("revoked");
    state.revoke_key("a", 9).await.expect("revoked before");
    assert!(matches!(
        state.revoke_key("c", 7).await,
        Err(StateError::Unknown("key"))
    ));
    let keys = state.keys().await.expect("read");
    let before = state.generation().await.expect("read");
    state.revoke_key("b", 8).await.expect("revoked");
    assert!(
        state.generation().await.expect("read") > before,
        "others see that something changed"
    );
    assert_eq!(
        keys.iter().map(|key| key.revoked_ms).collect::<Vec<_>>(),
        [Some(7), None]
    );
    let after = async |seen| {
        let keys = state.keys_after(seen, 10).await.expect("read");
        keys.iter()
            .map(|key| (key.id.clone(), key.change))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        after(0).await,
        [("a".to_owned(), 4), ("b".to_owned(), 5)],
        "each change has its number"
    );
    assert_eq!(after(4).await, [("b".to_owned(), 5)]);
    assert_eq!(after(5).await, []);
}

pub(crate) async fn the_first_admin_is_made_once(place: &Place) {
    let one = place.open().await;
    let two = place.open().await;
    let admin = |id: &str| AdminRow {
        id: id.into(),
        secret_hash: vec![2; 32],
        name: "first".into(),
        role: Role::Operator,
        approves: false,
        created_ms: 1,
        created_by: "start".into(),
        revoked_ms: None,
    };
    let (a, b) = (admin("a"), admin("b"));
    let (left, right) = tokio::join!(one.add_first_admin(&a), two.add_first_admin(&b));
    assert!(left.expect("asked") ^ right.expect("asked"));
    assert_eq!(one.admins().await.expect("read").len(), 1);
}

/// Two operators that revoke each other at the same moment do not lock everyone out.
pub(crate) async fn of_the_last_operators_that_are_revoked_at_once_one_stays(place: &Place) {
    let (one, two) = (place.open().await, place.open().await);
    let admin = |id: String, role| AdminRow {
        name: id.clone(),
        id,
        secret_hash: vec![2; 32],
        role,
        approves: false,
        created_ms: 1,
        created_by: "test".into(),
        revoked_ms: None,
    };
    one.add_admin(&admin("vic".into(), Role::Viewer))
        .await
        .expect("added");
    one.add_admin(&admin("op0".into(), Role::Operator))
        .await
        .expect("added");
    let mut last = "op0".to_owned();
    for number in 1..=20 {
        let next = format!("op{number}");
        one.add_admin(&admin(next.clone(), Role::Operator))
            .await
            .expect("added");
        let (left, right) = tokio::join!(
            one.revoke_spare_admin(&last, number),
            two.revoke_spare_admin(&next, number),
        );
        let (left, right) = (left.expect("asked"), right.expect("asked"));
        assert!(left ^ right, "{last}: {left}, {next}: {right}");
        if left {
            last = next;
        }
    }
    assert!(one.revoke_spare_admin("vic", 30).await.expect("asked"));
    assert!(!one.revoke_spare_admin(&last, 31).await.expect("asked"));
    let unknown = one.revoke_spare_admin("unknown", 32).await;
    assert!(unknown.is_err(), "{unknown:?}");
    let rows = one.admins().await.expect("read");
    let left: Vec<_> = rows.iter().filter(|row| row.revoked_ms.is_none()).collect();
    assert!(left.len() == 1 && left[0].id == last, "{left:?}");
}

/// An admin that makes a new draft every few seconds does not fill the disk with undecided drafts.
pub(crate) async fn of_superseded_drafts_the_newest_are_kept(place: &Place) {
    let state = place.open().await;
    let other = NewDraft {
        origin: ContractOrigin::Api,
        ..draft("api", None, "other")
    };
    state.hold(&other).await.expect("held");
    let no = draft("no", None, "no");
    state.hold(&no).await.expect("held");
    state.discard("no", 3, "ann").await.expect("discarded");
    for number in 0..60 {
        let (id, source) = (format!("d{number}"), format!("source {number}"));
        let new = NewDraft {
            at_ms: 10 + number,
            ..draft(&id, None, &source)
        };
        state.hold(&new).await.expect("held");
    }
    let rows = place.run("SELECT count(*) FROM drafts").await;
    assert_eq!(
        rows,
        Some(20 + 1 + 2),
        "superseded, the one that waits, and those of others"
    );
    let listed = state
        .drafts(DraftFilter::default(), 200)
        .await
        .expect("read");
    let ids: Vec<_> = listed
        .iter()
        .map(|listed| listed.head.id.as_str())
        .collect();
    assert_eq!(
        (&ids[..4], ids[22]),
        (&["d59", "api", "d58", "d57"][..], "no")
    );
    assert_eq!(
        state
            .superseded("desk", ContractOrigin::File, None, 0)
            .await
            .expect("counted"),
        20
    );
    assert_eq!(
        state
            .superseded("desk", ContractOrigin::File, None, 60)
            .await
            .expect("counted"),
        9,
        "since then"
    );
    assert_eq!(
        state
            .superseded("desk", ContractOrigin::File, Some("1.0.0"), 0)
            .await
            .expect("counted"),
        0
    );
}

pub(crate) async fn what_waits_and_what_was_discarded_is_found_however_much_was_decided_since(
    place: &Place,
) {
    let state = place.open().await;
    let waits = NewDraft {
        origin: ContractOrigin::Api,
        ..draft("waits", None, "waits")
    };
    state.hold(&waits).await.expect("held");
    state.hold(&draft("no", None, "no")).await.expect("held");
    state.discard("no", 3, "ann").await.expect("discarded");
    for number in 0..201 {
        let (id, source) = (format!("d{number}"), format!("source {number}"));
        let new = NewDraft {
            at_ms: 10 + number,
            fingerprint: &source,
            ..draft(&id, None, &source)
        };
        state.hold(&new).await.expect("held");
        state.discard(&id, 300, "ann").await.expect("discarded");
    }
    let pending = state.pending(None).await.expect("read");
    assert_eq!(
        pending
            .iter()
            .map(|head| head.id.as_str())
            .collect::<Vec<_>>(),
        ["waits"]
    );
    assert!(state.pending(Some("other")).await.expect("read").is_empty());
    let all = DraftFilter {
        contract: Some("desk"),
        ..DraftFilter::default()
    };
    let ids = async |of, most| {
        let listed = state.drafts(of, most).await.expect("read");
        listed
            .into_iter()
            .map(|listed| listed.head.id)
            .collect::<Vec<_>>()
    };
    let first = ids(all, 200).await;
    assert_eq!(
        (first.len(), first[0].as_str(), first[1].as_str()),
        (201, "waits", "d200")
    );
    assert_eq!(
        ids(
            DraftFilter {
                before: Some(&first[200]),
                ..all
            },
            200
        )
        .await,
        ["d0", "no"]
    );
    assert_eq!(
        ids(
            DraftFilter {
                status: Some(DraftStatus::Pending),
                ..all
            },
            200
        )
        .await,
        ["waits"]
    );
    assert_eq!(
        ids(
            DraftFilter {
                status: Some(DraftStatus::Discarded),
                ..all
            },
            1
        )
        .await,
        ["d200"]
    );
    assert!(
        ids(
            DraftFilter {
                contract: Some("other"),
                ..all
            },
            200
        )
        .await
        .is_empty()
    );
    let unknown = state
        .drafts(
            DraftFilter {
                before: Some("gone"),
                ..all
            },
            200,
        )
        .await;
    assert!(
        matches!(unknown, Err(StateError::Unknown("draft"))),
        "{unknown:?}"
    );

    let status = state
        .status_of_source("desk", None, "no")
        .await
        .expect("read");
    assert_eq!(
        status,
        Some(DraftStatus::Discarded),
        "no one is asked again"
    );
    assert_eq!(
        state
            .status_of_source("desk", Some("1.0.0"), "no")
            .await
            .expect("read"),
        None
    );
    let same = state
        .draft_of_change("desk", None, "source 0")
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        (same.id.as_str(), same.status),
        ("d0", DraftStatus::Discarded)
    );
    assert_eq!(
        state.newest_draft("desk").await.expect("read"),
        NewestDraft(Some("d200".to_owned()))
    );
}

/// Of two changes that rest on the same drafts, the second one is refused.
pub(crate) async fn a_draft_that_rests_on_an_earlier_one_is_refused(place: &Place) {
    let state = place.open().await;
    let on = ContractBasis {
        revision: 0,
        newest_draft: Some(state.newest_draft("desk").await.expect("read")),
    };
    let resting = |id, source| NewDraft {
        on: Some(&on),
        ..draft(id, None, source)
    };
    state.hold(&resting("d1", "a")).await.expect("held");
    let second = state.hold(&resting("d2", "b")).await;
    assert!(matches!(second, Err(StateError::Moved(_))), "{second:?}");
    let any = ContractBasis::from(0);
    let third = NewDraft {
        on: Some(&any),
        ..draft("d3", None, "c")
    };
    state.hold(&third).await.expect("held");
}

/// Other processes read a later text of the same version too.
pub(crate) async fn a_text_that_is_kept_moves_the_revision_once(place: &Place) {
    let state = place.open().await;
    publish(&state, None, FILE, &version("1.0.0"), None)
        .await
        .expect("published");
    let at = async || {
        let live = state.live_of("desk").await.expect("read").expect("live");
        (
            live.source,
            live.revision,
            state.generation().await.expect("read"),
        )
    };
    let (_, revision, generation) = at().await;
    state
        .keep("desk", "1.0.0", "# with a comment")
        .await
        .expect("kept");
    state
        .keep("desk", "1.0.0", "# with a comment")
        .await
        .expect("kept before");
    assert_eq!(
        at().await,
        ("# with a comment".to_owned(), revision + 1, generation + 1)
    );
}

/// An unknown word was written by another version: its permissions are not guessed.
pub(crate) async fn a_word_that_is_not_known_is_refused(place: &Place) {
    let state = place.open().await;
    publish(&state, None, FILE, &version("1.0.0"), None)
        .await
        .expect("published");
    state
        .hold(&draft("d1", Some("1.0.0"), "a"))
        .await
        .expect("held");
    place.run("UPDATE drafts SET class = 'harmless'").await;
    let refused = state
        .draft("d1")
        .await
        .expect_err("an unknown class")
        .to_string();
    assert!(
        refused.contains("`harmless` is not a word of ChangeClass"),
        "{refused}"
    );
}

/// Whatever waits for changes waits for the feed, also for those of other processes.
pub(crate) async fn the_feed_moves_with_what_another_process_changes(place: &Place) {
    for watched in [true, false] {
        let state = place.open().await;
        let watcher = match watched {
            true => FileWatcher::start(&place.folder()).await,
            false => FileWatcher::default(),
        };
        let other = place.open().await;
        let mut feed = state.changes();
        let state = Arc::new(state);
        let following = state.clone();
        let following = tokio::spawn(async move { following.follow(&watcher).await });
        let mut next = async || {
            let moved = timeout(Duration::from_secs(60), feed.changed()).await;
            moved.expect("it moves").expect("the state is there");
            *feed.borrow_and_update()
        };
        let before = next().await;
        let id = if watched { "a" } else { "b" };
        other.add_key(&key(id)).await.expect("added");
        assert!(next().await > before);
        following.abort();
    }
}

/// An admin that sends a new key with each request makes room for it with the oldest of its own answers.
pub(crate) async fn answers_for_retries_are_bounded_for_each_admin(place: &Place) {
    let state = place.open().await;
    let begin = async |admin: &str, key: String, at: i64| {
        state
            .begin_reply(admin, &key, "digest", at)
            .await
            .expect("begun")
    };
    begin("ann", "pending".into(), 1).await;
    begin("bob", "k".into(), 1).await;
    state
        .end_reply("bob", "k", 1, Some((200, "b")))
        .await
        .expect("kept");
    for at in 2..1_010 {
        begin("ann", format!("k{at}"), at).await;
        state
            .end_reply("ann", &format!("k{at}"), at, Some((200, "a")))
            .await
            .expect("kept");
    }
    assert!(matches!(
        begin("ann", "k1009".into(), 1_010).await,
        IdempotencyState::Answered(_)
    ));
    assert!(matches!(
        begin("ann", "pending".into(), 1_010).await,
        IdempotencyState::Pending(_)
    ));
    assert!(matches!(
        begin("bob", "k".into(), 1_010).await,
        IdempotencyState::Answered(_)
    ));
    assert!(matches!(
        begin("ann", "k2".into(), 1_010).await,
        IdempotencyState::First
    ));
    state
        .end_reply("ann", "k2", 2, None)
        .await
        .expect("there is another one");
    assert!(
        matches!(
            begin("ann", "k2".into(), 1_011).await,
            IdempotencyState::Pending(_)
        ),
        "it was begun since"
    );
}
