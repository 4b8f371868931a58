//! Rights that ended, in a database that forgets it: as one that took over from another, or that was restored.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use weir_state::{
    AccountRow, AdminRow, ConnectKind, ConnectRow, GatewayState, PlanDecision, PlanRow, PlanStatus,
    Role, SessionKind, SessionRow,
};
use weir_watch::FileWatcher;

use crate::{contracts::key, database::node, place::Place, server::Server};

/// Long after this test.
const LATER_MS: i64 = 9_000_000_000_000;

/// Grants a right of each kind.
async fn grant(state: &GatewayState) {
    state.add_key(&key("a")).await.expect("added");
    let admin = |id: &str| AdminRow {
        id: id.into(),
        secret_hash: vec![2; 32],
        name: id.into(),
        role: Role::Operator,
        approves: false,
        created_ms: 1,
        created_by: "test".into(),
        revoked_ms: None,
    };
    for id in ["ada", "bob"] {
        state.add_admin(&admin(id)).await.expect("added");
    }
    let session = SessionRow {
        id: "s".into(),
        secret_hash: vec![2],
        admin: "ada".into(),
        kind: SessionKind::Session,
        created_ms: 1,
        expires_ms: LATER_MS,
        used_ms: 1,
    };
    state.add_session(&session).await.expect("added");
    for id in ["used", "rejected", "asking"] {
        let added = state.add_plan(&plan(id)).await;
        added.expect("added");
    }
    for id in ["used", "asking"] {
        assert!(decide(state, id, PlanStatus::Approved).await);
    }
    let account = AccountRow {
        number: 0,
        upstream: "crm".into(),
        owner: "gateway".into(),
        label: "gateway".into(),
        server: "s".into(),
        issuer: "i".into(),
        sealed: vec![1],
        version: 1,
        renewing_until_ms: 0,
        created_ms: 1,
        renewed_ms: 1,
    };
    state.keep_account(&account).await.expect("kept");
    let link = ConnectRow {
        hash: vec![0xab, 0xcd],
        kind: ConnectKind::Ticket,
        upstream: "crm".into(),
        owner: "gateway".into(),
        label: "gateway".into(),
        sealed: vec![1],
        expires_ms: LATER_MS,
    };
    state.add_connect_link(&link, 1).await.expect("added");
}

fn plan(id: &str) -> PlanRow {
    PlanRow {
        id: id.into(),
        caller: "agent ann".into(),
        agent: "ann".into(),
        tenant: "home".into(),
        subject: None,
        contract: "desk@1.0.0".into(),
        tool: "remove".into(),
        change: id.into(),
        fingerprint: "f".into(),
        sealed: Some("s".into()),
        status: PlanStatus::Pending,
        created_ms: 1,
        expires_ms: LATER_MS,
        decided_ms: None,
        decided_by: None,
        reason: None,
    }
}

async fn decide(state: &GatewayState, id: &str, status: PlanStatus) -> bool {
    let decision = PlanDecision {
        status,
        by: "admin:eve",
        reason: None,
        at_ms: 2,
    };
    state.decide_plan(id, &decision).await.expect("decided")
}

/// Ends them all but one: a call gives its approval back, since it asks a question.
async fn end(state: &GatewayState) {
    state.revoke_admin("bob", 5).await.expect("revoked");
    assert!(state.remove_session("s").await.expect("removed"));
    for id in ["used", "asking"] {
        let taken = state.take_plan(id, None, 3).await.expect("asked");
        assert!(taken.is_some(), "{id}");
    }
    let given = state.give_plan_back("asking", "s", true, 4).await;
    given.expect("given back");
    assert!(decide(state, "rejected", PlanStatus::Rejected).await);
    let accounts = state.accounts(None).await.expect("read");
    let removed = state.remove_account(accounts[0].number, None).await;
    assert!(removed.expect("removed").is_some());
    let taken = state.take_connect_link(&[0xab, 0xcd], None, 5).await;
    assert!(taken.expect("asked"));
    state.revoke_key("a", 5).await.expect("revoked");
}

/// As it was before they ended, in a database that knows less.
const FORGET: &str = "DO $$ BEGIN \
    SET LOCAL session_replication_role = replica; \
    UPDATE keys SET revoked_ms = NULL; \
    UPDATE admins SET revoked_ms = NULL; \
    INSERT INTO sessions VALUES ('s', '\\x02', 'ada', 'session', 1, 9000000000000, 1); \
    UPDATE plans SET status = CASE id WHEN 'rejected' THEN 'pending' ELSE 'approved' END, sealed = 's'; \
    INSERT INTO accounts VALUES (1, 'crm', 'gateway', 'gateway', 's', 'i', '\\x01', 1, 0, 1, 1); \
    INSERT INTO connect_links VALUES ('\\xabcd', 'ticket', 'crm', 'gateway', 'gateway', '\\x01', 9000000000000); \
    DELETE FROM endings; \
    UPDATE ending_changes SET n = 0; \
    UPDATE generation SET n = 1; \
    END $$";

/// One that is there again, of those that ended.
const THERE: &str = "SELECT (SELECT count(*) FROM keys WHERE revoked_ms IS NULL) \
    + (SELECT count(*) FROM admins WHERE revoked_ms IS NULL AND id = 'bob') + (SELECT count(*) FROM sessions) \
    + (SELECT count(*) FROM plans WHERE status IN ('pending', 'approved') AND id <> 'asking') \
    + (SELECT count(*) FROM accounts) + (SELECT count(*) FROM connect_links)";

/// Returns a node that has read which rights of this place have ended, and the task that goes on reading.
async fn node_that_knows(place: &Place) -> (Arc<GatewayState>, JoinHandle<()>) {
    let (here, there) = (place.open().await, Arc::new(place.open().await));
    there.join(node("there")).await.expect("joined");
    let following = there.clone();
    let follow = tokio::spawn(async move { following.follow(&FileWatcher::default()).await });
    grant(&here).await;
    assert_eq!(place.run(THERE).await, Some(7));
    end(&here).await;
    assert_eq!(place.run(THERE).await, Some(0));
    // The feed moves once it is known by then what has ended.
    let number = there.generation().await.expect("read");
    let mut changes = there.changes();
    let reached = changes.wait_for(|seen| *seen >= number).await;
    reached.expect("it follows");
    (there, follow)
}

async fn within(is_so: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not so");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn an_end_stays_where_the_database_forgets_it(place: &Place) {
    let (there, follow) = node_that_knows(place).await;
    place.run(FORGET).await;
    within(async || place.run(THERE).await == Some(0) && there.fail_overs() > 0).await;
    let asking = there.plan("asking", 5).await.expect("read");
    let status = asking.map(|plan| plan.status);
    assert_eq!(status, Some(PlanStatus::Approved), "it had not ended");
    assert_eq!(there.fail_overs(), 1);
    let ended =
        place.run("SELECT count(*) FROM endings WHERE status NOT IN ('pending', 'approved')");
    assert_eq!(ended.await, Some(7), "others read it there");
    let admins = there.admins().await.expect("read");
    assert!(
        admins
            .iter()
            .any(|admin| admin.id == "ada" && admin.revoked_ms.is_none())
    );
    follow.abort();
}

/// The last note is lost, and another one has its number. No number of a change is lower.
const FORGET_LAST: &str = "DO $$ BEGIN \
    SET LOCAL session_replication_role = replica; \
    UPDATE plans SET status = 'approved', sealed = 's' WHERE id = 'used'; \
    UPDATE plans SET status = 'pending', sealed = 's' WHERE id = 'rejected'; \
    DELETE FROM endings WHERE change = (SELECT n FROM ending_changes); \
    DELETE FROM endings WHERE id = 'used'; \
    UPDATE ending_changes SET n = n - 1; \
    SET LOCAL session_replication_role = origin; \
    UPDATE plans SET status = 'stale' WHERE id = 'rejected'; \
    END $$";

/// Neither the number of the last change nor that of the notes is lower than before.
pub(crate) async fn an_end_stays_where_its_note_alone_is_lost(place: &Place) {
    let (there, follow) = node_that_knows(place).await;
    let taken = "UPDATE plans SET status = 'applied' WHERE id = 'asking'";
    place.run(taken).await; // so that the last note is one of a plan
    let known = "SELECT n - (SELECT change FROM endings WHERE id = 'asking') FROM ending_changes";
    assert_eq!(place.run(known).await, Some(0));
    tokio::time::sleep(Duration::from_secs(4)).await; // four looks, of which one is enough
    let number = there.generation().await.expect("read");
    place.run(FORGET_LAST).await;
    within(async || place.run(THERE).await == Some(0) && there.fail_overs() == 1).await;
    let noted =
        "SELECT count(*) FROM endings WHERE id IN ('used', 'asking') AND status = 'applied'";
    assert_eq!(place.run(noted).await, Some(2), "others read it there");
    assert_eq!(there.generation().await.expect("read"), number);
    follow.abort();
}

/// What this process knows of the plan is older than what the database does.
const GIVE_BACK: &str = "DO $$ BEGIN \
    SET LOCAL session_replication_role = replica; \
    UPDATE plans SET status = 'approved', sealed = 's' WHERE id = 'used'; \
    UPDATE endings SET status = 'approved', at_ms = at_ms + 1 WHERE id = 'used'; \
    UPDATE generation SET n = 1; \
    END $$";

pub(crate) async fn an_approval_that_was_given_back_stays(place: &Place) {
    let (there, follow) = node_that_knows(place).await;
    place.run(GIVE_BACK).await;
    within(async || there.fail_overs() > 0).await;
    let used = there.plan("used", 5).await.expect("read");
    let status = used.map(|plan| plan.status);
    assert_eq!(status, Some(PlanStatus::Approved));
    follow.abort();
}

/// A thousand sessions, of which the first one makes room for the next.
const SESSIONS: &str = "INSERT INTO sessions SELECT CAST(n AS TEXT), '\\x02', 'ada', 'session', n, 9000000000000, 1 \
    FROM generate_series(2, 1000) AS n";

pub(crate) async fn what_makes_room_has_not_ended(place: &Place) {
    let state = place.open().await;
    grant(&state).await;
    place.run(SESSIONS).await;
    let session = SessionRow {
        id: "new".into(),
        secret_hash: vec![2],
        admin: "ada".into(),
        kind: SessionKind::Session,
        created_ms: 1001,
        expires_ms: LATER_MS,
        used_ms: 1,
    };
    state.add_session(&session).await.expect("added");
    for number in 0..20 {
        let link = ConnectRow {
            hash: vec![number],
            kind: ConnectKind::Ticket,
            upstream: "crm".into(),
            owner: "gateway".into(),
            label: "gateway".into(),
            sealed: vec![1],
            expires_ms: LATER_MS + i64::from(number),
        };
        state.add_connect_link(&link, 1).await.expect("added");
    }
    let kept = "SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM connect_links)";
    assert_eq!(place.run(kept).await, Some(1016));
    let first = state.session("s", SessionKind::Session).await;
    assert_eq!(first.expect("read"), None, "the first one made room");
    let noted = "SELECT count(*) FROM endings WHERE kind IN ('session', 'connect_link')";
    assert_eq!(place.run(noted).await, Some(0));
}

/// As an earlier version left the tables.
const EARLIER: &str = "DO $$ BEGIN \
    DROP TRIGGER keys_ended ON keys; \
    DROP TRIGGER admins_ended ON admins; \
    DROP TRIGGER sessions_ended ON sessions; \
    DROP TRIGGER plans_ended ON plans; \
    DROP TRIGGER accounts_ended ON accounts; \
    DROP TRIGGER connect_links_ended ON connect_links; \
    DROP FUNCTION weir_ended; \
    DROP FUNCTION weir_note_ending; \
    DROP TABLE endings; \
    DROP TABLE ending_changes; \
    DELETE FROM _sqlx_migrations WHERE version = 26; \
    END $$";

pub(crate) async fn a_start_from_the_copy_comes_back_on_earlier_tables(
    server: &Server,
    place: &Place,
) {
    let address = place.address().expect("a database");
    let start = async || {
        let stale_max = Duration::from_secs(300);
        let state = GatewayState::connect_to_serve(&address, &place.folder(), stale_max).await;
        let state = Arc::new(state.expect("started"));
        state.join(node("one")).await.expect("joined");
        let (following, keeping) = (state.clone(), state.clone());
        let follow = async move { following.follow(&FileWatcher::default()).await };
        let keep = async move { keeping.keep_copy().await };
        (state, [tokio::spawn(follow), tokio::spawn(keep)])
    };
    let (state, tasks) = start().await;
    state.add_key(&key("a")).await.expect("added");
    state.revoke_key("a", 5).await.expect("revoked");
    let mark = place.folder().join("copy.json");
    let number = state.generation().await.expect("read");
    let marked = format!("\"number\":{number}");
    within(async || std::fs::read_to_string(&mark).is_ok_and(|mark| mark.contains(&marked))).await;
    for task in tasks {
        task.abort();
        let _ = task.await;
    }
    drop(state);
    place.run(EARLIER).await;
    server.stop();
    let (state, tasks) = start().await;
    assert!(state.reads_copy());
    server.start();
    within(async || !state.reads_copy()).await;
    state.revoke_key("a", 6).await.expect("asked");
    let there = "SELECT count(*) FROM _sqlx_migrations WHERE version = 26";
    assert_eq!(place.run(there).await, Some(1));
    // A restored backup may have the earlier tables while the node runs.
    place.run(EARLIER).await;
    state.add_key(&key("b")).await.expect("added");
    let number = state.generation().await.expect("read");
    let mut changes = state.changes();
    let reached = changes.wait_for(|seen| *seen >= number).await;
    reached.expect("it follows");
    tasks.iter().for_each(JoinHandle::abort);
}
