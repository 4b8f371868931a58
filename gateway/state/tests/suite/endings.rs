//! Rights that ended, in a database that forgets it: as one that took over from another, or that was restored.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use weir_state::{
    AccountRow, AdminRow, ConnectKind, ConnectRow, GatewayState, PlanDecision, PlanRow, PlanStatus,
    Role, SessionKind, SessionRow,
};
use weir_watch::FileWatcher;

use crate::{contracts::key, database::node, place::Place};

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

pub(crate) async fn an_end_stays_where_the_database_forgets_it(place: &Place) {
    let (here, there) = (place.open().await, Arc::new(place.open().await));
    there.join(node("there")).await.expect("joined");
    let following = there.clone();
    let follow = tokio::spawn(async move { following.follow(&FileWatcher::default()).await });
    grant(&here).await;
    assert_eq!(place.run(THERE).await, Some(7));
    end(&here).await;
    assert_eq!(place.run(THERE).await, Some(0));
    drop(here);
    // The feed moves once it is known by then what has ended.
    let number = there.generation().await.expect("read");
    let mut changes = there.changes();
    let reached = changes.wait_for(|seen| *seen >= number).await;
    reached.expect("it follows");
    place.run(FORGET).await;
    let began = Instant::now();
    while place.run(THERE).await != Some(0) || there.fail_overs() == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "it is forgotten");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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
