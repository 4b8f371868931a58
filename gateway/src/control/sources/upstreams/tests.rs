//! Tests the pace of the lookout.

use weir_state::{ChangeClass, GatewayState, NewDraft};

use super::*;
use crate::{control::ControlPlane, identity::now_ms, testing};

#[tokio::test]
async fn a_server_that_lists_something_else_again_and_again_is_looked_at_less_often() {
    let gateway = testing::gateway(|_| {}).await;
    let folder = tempfile::tempdir().expect("a folder");
    let state = Arc::new(GatewayState::open(folder.path()).await.expect("opened"));
    let control = ControlPlane::new(gateway.clone(), state.clone());
    let source = control.upstreams();
    let hold = async |contract: &str, number: u32, at_ms: i64| {
        let (id, source) = (format!("{contract}{number}"), format!("source {number}"));
        let draft = NewDraft {
            on: None,
            id: &id,
            contract,
            base: None,
            version: Some("1.0.0"),
            artifact: Some("{}"),
            source: &source,
            origin: ContractOrigin::Upstream,
            owner: None,
            class: ChangeClass::First,
            fingerprint: &source,
            report: "{}",
            at_ms,
            by: "upstream:restless",
        };
        state.hold(&draft).await.expect("held");
    };
    for number in 0..3 {
        hold("restless", number, now_ms()).await;
    }
    assert_eq!(
        (
            source.apart("restless").await,
            source.restless("restless").await
        ),
        (APART, None)
    );
    for number in 3..30 {
        hold("restless", number, now_ms()).await;
        hold("once", number, 1).await;
    }
    assert_eq!(source.apart("restless").await, RESTLESS_APART);
    assert_eq!(
        source.apart("once").await,
        APART,
        "it has come to rest since"
    );
    assert!(
        source
            .restless("once")
            .await
            .is_some_and(|note| note.starts_with("at least 20 drafts were replaced"))
    );
    let pending = state.pending(Some("restless")).await.expect("read");
    assert_eq!(
        pending
            .iter()
            .map(|head| head.id.as_str())
            .collect::<Vec<_>>(),
        ["restless29"]
    );
}
