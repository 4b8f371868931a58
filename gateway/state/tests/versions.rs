//! Tests what is kept of versions that are served side by side.

use weir_state::{
    AgentPin, ChangeClass, ContractOrigin, GatewayState, KeptRow, StateError, VersionRow,
    VersionSource,
};

const FROM_API: VersionSource<'static> = VersionSource {
    origin: ContractOrigin::Api,
    owner: None,
};

#[tokio::test]
async fn a_version_is_kept_with_the_one_that_takes_its_place() {
    let (_folder, state) = state().await;
    publish(&state, None, "1.0.0").await;
    let mut change = state.change_live().await.expect("begun");
    change.keep(&kept(1, "1.0.0", Some(5))).await.expect("kept");
    drop(change);
    assert_eq!(
        state.kept().await.expect("read"),
        [],
        "nothing is committed"
    );

    let mut change = state.change_live().await.expect("begun");
    change.keep(&kept(1, "1.0.0", Some(5))).await.expect("kept");
    let two = version("2.0.0");
    let published = change.publish(Some("1.0.0"), FROM_API, &two, None);
    published.await.expect("published");
    assert_eq!(
        state.kept().await.expect("read"),
        [kept(1, "1.0.0", Some(5))]
    );

    let before = state.generation().await.expect("read");
    let mut change = state.change_live().await.expect("begun");
    change.keep(&kept(1, "1.0.0", None)).await.expect("kept");
    change.keep(&kept(0, "0.9.0", None)).await.expect("kept");
    let two = [kept(1, "1.0.0", None), kept(0, "0.9.0", None)];
    assert_eq!(change.kept_of("desk").await.expect("read"), two);
    change.forget_kept("desk", 0).await.expect("forgotten");
    change.end_kept("desk").await.expect("committed");
    assert_eq!(state.kept().await.expect("read"), two[..1]);
    assert!(state.generation().await.expect("read") > before);
    let head = state.head("desk").await.expect("read").expect("there");
    assert_eq!(head.live.as_deref(), Some("2.0.0"));
}

#[tokio::test]
async fn an_agent_has_one_pin_for_each_contract() {
    let (folder, state) = state().await;
    for (major, contract) in [(1, "desk"), (2, "desk"), (1, "depot")] {
        let before = state.generation().await.expect("read");
        state.pin(&pin(contract, major)).await.expect("pinned");
        assert!(state.generation().await.expect("read") > before);
    }
    let both = [pin("depot", 1), pin("desk", 2)];
    assert_eq!(state.pins().await.expect("read"), both);
    state.unpin("dana", "depot").await.expect("unpinned");
    let again = state.unpin("dana", "depot").await;
    assert!(matches!(again, Err(StateError::Unknown("pin"))));
    let other = GatewayState::open(&folder.path().join("state")).await;
    let pins = other.expect("opened").pins().await.expect("read");
    assert_eq!(pins, both[1..]);
}

async fn state() -> (tempfile::TempDir, GatewayState) {
    let folder = tempfile::tempdir().expect("a folder");
    let state = GatewayState::open(&folder.path().join("state"))
        .await
        .expect("opened");
    (folder, state)
}

async fn publish(state: &GatewayState, base: Option<&str>, number: &str) {
    let change = state.change_live().await.expect("begun");
    let version = version(number);
    let published = change.publish(base, FROM_API, &version, None);
    published.await.expect("published");
}

fn version(number: &str) -> VersionRow {
    VersionRow {
        contract: "desk".to_owned(),
        version: number.to_owned(),
        artifact: "{}".to_owned(),
        source: String::new(),
        class: ChangeClass::Breaking,
        fingerprint: "f".to_owned(),
        published_ms: 1,
        published_by: "ada".to_owned(),
    }
}

fn kept(major: i64, version: &str, sunset_ms: Option<i64>) -> KeptRow {
    KeptRow {
        contract: "desk".to_owned(),
        major,
        version: version.to_owned(),
        shim: sunset_ms.map(|_| "{}".to_owned()),
        sunset_ms,
        kept_ms: 1,
        kept_by: "ada".to_owned(),
    }
}

fn pin(contract: &str, major: i64) -> AgentPin {
    AgentPin {
        agent: "dana".to_owned(),
        contract: contract.to_owned(),
        major,
        created_ms: 1,
        created_by: "ada".to_owned(),
    }
}
