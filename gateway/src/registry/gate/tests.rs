//! Tests the gate where several tasks and processes use one state at once.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
};

use super::*;
use crate::testing;

const API: Source<'_> = Source { origin: Origin::Api, owner: None };

/// Returns contracts that each have one tool, which has the same name in all of them.
async fn contracts(names: &[&str]) -> Vec<Arc<Contract>> {
    let gateway = testing::gateway(|_| {}).await;
    let of: Vec<(&str, &[&str])> = names.iter().map(|name| (*name, &["find_part"] as &[&str])).collect();
    testing::publish(&gateway, &of);
    gateway.snapshot().contracts.clone()
}

fn submission(contract: &Contract) -> Submission<'_> {
    let contract = contract.clone();
    Submission { contract, source: "", origin: Origin::Api, owner: None, by: "ann", hold: false, on: None }
}

/// Opens the state once more, as another process does.
async fn gate(folder: &tempfile::TempDir) -> Gate {
    let state = State::open(&folder.path().join("state")).await.expect("opened");
    Gate::new(Arc::new(state), Arc::new(Audit::none()))
}

/// Two processes look at the same moment, and both find the name free.
#[tokio::test]
async fn of_two_processes_one_gets_the_name_of_a_tool() {
    let contracts = contracts(&["depot", "desk"]).await;
    let (depot, desk) = (&contracts[0], &contracts[1]);
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (gate(&folder).await, gate(&folder).await);
    two.refresh().await.expect("read");
    one.submit(submission(depot)).await.expect("published");
    assert!(two.live().is_empty(), "it has not looked again");
    let lock = Lock { contract: Contract::clone(desk), approvals: Vec::new() };
    match two.restore(&lock, "desk", API).await {
        Err(GateError::Refused(problems)) => {
            let message = "the tool `find_part` is defined by the contract `depot` already";
            assert_eq!((problems.len(), problems[0].message.as_str()), (1, message));
        }
        other => panic!("two contracts have one tool: {other:?}"),
    }
    assert_eq!(one.state().live().await.expect("read").len(), 1);
}

/// One reading stands still wherever it waits for the state; meanwhile the contract is retired, and read again.
#[tokio::test]
async fn an_older_reading_never_takes_the_place_of_a_newer_one() {
    let contracts = contracts(&["desk"]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let first = gate(&folder).await;
    first.submit(submission(&contracts[0])).await.expect("published");
    let switch = async |base: Option<&str>, to: Option<&str>| {
        let change = first.state().change_live().await.expect("begun");
        change.switch("desk", base, to, None, 1, "ann").await.expect("switched");
    };
    for polls in 1..1000 {
        let gate = Gate::new(first.state().clone(), Arc::new(Audit::none()));
        let mut older = pin!(gate.refresh());
        if let Some(ended) = polled(older.as_mut(), polls).await {
            ended.expect("read");
            assert!(polls > 1, "it stood still at least once");
            return;
        }
        switch(Some("1.0.0"), None).await;
        // The newer reading either waits for the older one, or has ended before it goes on.
        let newer = tokio::time::timeout(std::time::Duration::from_millis(50), gate.refresh()).await;
        older.await.expect("read");
        match newer {
            Ok(newer) => newer.expect("read"),
            Err(_) => gate.refresh().await.expect("read"),
        }
        assert!(gate.live().is_empty(), "the older reading was stopped after {polls} polls");
        switch(None, Some("1.0.0")).await;
    }
    panic!("it never ended");
}

/// Polls a future so many times; `None` if it has not ended by then.
async fn polled<F: Future>(mut future: Pin<&mut F>, mut times: usize) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            times -= 1;
            if times == 0 { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}
