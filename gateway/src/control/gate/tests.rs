//! Tests the gate where several tasks and processes use one state at once.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
};

use super::*;
use crate::testing;

const API: VersionSource<'_> = VersionSource {
    origin: ContractOrigin::Api,
    owner: None,
};

/// Returns contracts that each have one tool, which has the same name in all of them.
async fn contracts(names: &[&str]) -> Vec<Arc<CompiledContract>> {
    let gateway = testing::gateway(|_| {}).await;
    let of: Vec<(&str, &[&str])> = names
        .iter()
        .map(|name| (*name, &["find_part"] as &[&str]))
        .collect();
    testing::publish(&gateway, &of);
    gateway.snapshot().contracts.clone()
}

fn submission(contract: &CompiledContract) -> Submission<'_> {
    let contract = contract.clone();
    Submission {
        contract,
        source: "",
        origin: ContractOrigin::Api,
        owner: None,
        by: "ann",
        hold: false,
        on: None,
    }
}

/// Opens the state again, like another process.
async fn gate(folder: &tempfile::TempDir) -> Gate {
    let state = GatewayState::open(&folder.path().join("state"))
        .await
        .expect("opened");
    Gate::new(
        Arc::new(state),
        Arc::new(AuditRecorder::none()),
        Arc::default(),
    )
}

/// Two processes check at the same moment, and both find the name free.
#[tokio::test]
async fn of_two_processes_one_gets_the_name_of_a_tool() {
    let contracts = contracts(&["depot", "desk"]).await;
    let (depot, desk) = (&contracts[0], &contracts[1]);
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (gate(&folder).await, gate(&folder).await);
    two.refresh().await.expect("read");
    one.submit(submission(depot)).await.expect("published");
    assert!(two.live().is_empty(), "it has not looked again");
    let lock = ContractLock {
        contract: CompiledContract::clone(desk),
        approvals: Vec::new(),
    };
    match two.restore(&lock, "desk", API).await {
        Err(GateError::Refused(problems)) => {
            let message = "the tool `find_part` is defined by the contract `depot` already";
            assert_eq!((problems.len(), problems[0].message.as_str()), (1, message));
        }
        other => panic!("two contracts have one tool: {other:?}"),
    }
    assert_eq!(one.state().live().await.expect("read").len(), 1);
}

/// One reading waits for the state; meanwhile the contract is retired, and read again.
#[tokio::test]
async fn an_older_reading_never_takes_the_place_of_a_newer_one() {
    let contracts = contracts(&["desk"]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let first = gate(&folder).await;
    first
        .submit(submission(&contracts[0]))
        .await
        .expect("published");
    let switch = async |base: Option<&str>, to: Option<&str>| {
        let change = first.state().change_live().await.expect("begun");
        change
            .switch("desk", base, to, None, 1, "ann")
            .await
            .expect("switched");
    };
    let mut stops = 0;
    for _ in 0..1000 {
        let polls = stops + 1;
        let gate = Gate::new(
            first.state().clone(),
            Arc::new(AuditRecorder::none()),
            Arc::default(),
        );
        let mut older = pin!(gate.refresh());
        if let Some(ended) = polled(older.as_mut(), polls).await {
            ended.expect("read");
            if stops > 0 {
                return;
            }
            continue; // the state answered at once: another try
        }
        stops += 1;
        switch(Some("1.0.0"), None).await;
        // The newer read either waits for the older one, or has ended before the older one continues.
        let newer =
            tokio::time::timeout(std::time::Duration::from_millis(50), gate.refresh()).await;
        older.await.expect("read");
        match newer {
            Ok(newer) => newer.expect("read"),
            Err(_) => gate.refresh().await.expect("read"),
        }
        assert!(
            gate.live().is_empty(),
            "the older reading was stopped after {polls} polls"
        );
        switch(None, Some("1.0.0")).await;
    }
    panic!("it never ended");
}

/// Returns a contract with these tools.
async fn desk(tools: &[&str]) -> Arc<CompiledContract> {
    let gateway = testing::gateway(|_| {}).await;
    testing::publish(&gateway, &[("desk", tools)]);
    gateway.snapshot().contracts[0].clone()
}

/// Between the review of the difference and the change, another admin publishes a further version.
#[tokio::test]
async fn a_rollback_undoes_no_version_that_its_approval_never_saw() {
    let versions = [
        desk(&["a"]).await,
        desk(&["a", "b"]).await,
        desk(&["a", "b", "c"]).await,
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let gate = gate(&folder).await;
    gate.submit(submission(&versions[0]))
        .await
        .expect("published");
    gate.submit(submission(&versions[1]))
        .await
        .expect("published");
    let live = || gate.live()["desk"].contract.version.to_string();
    let on = ContractBasis::from(revision(gate.live().get("desk")));
    let back = gate
        .way_back("desk", "1.0.0", Some(&on))
        .await
        .expect("there");
    let fingerprint = back.change.fingerprint.clone();
    gate.submit(submission(&versions[2]))
        .await
        .expect("published");
    let approval = DraftApproval {
        by: "ann",
        role: Role::Operator,
        fingerprint: &fingerprint,
    };
    let undone = gate.go_back("desk", back, &approval, None).await;
    assert!(
        matches!(undone, Err(GateError::State(StateError::Moved(_)))),
        "{undone:?}"
    );
    let undone = gate.roll_back("desk", "1.0.0", &approval, Some(&on)).await;
    assert!(matches!(undone, Err(GateError::Changed(_))), "{undone:?}");
    let retired = gate.ask_to_retire("desk", "ann", Some(&on)).await;
    assert!(matches!(retired, Err(GateError::Changed(_))), "{retired:?}");
    assert_eq!(live(), "1.2.0");

    let on = ContractBasis::from(revision(gate.live().get("desk")));
    let back = gate
        .way_back("desk", "1.0.0", Some(&on))
        .await
        .expect("there");
    let approval = DraftApproval {
        fingerprint: &back.change.fingerprint.clone(),
        ..approval
    };
    gate.roll_back("desk", "1.0.0", &approval, Some(&on))
        .await
        .expect("it is what was looked at");
    assert_eq!(live(), "1.0.0");
}

/// A decision made while no version of a contract was live does not apply to a version that went live since.
#[tokio::test]
async fn what_was_made_on_a_retired_contract_is_refused_once_it_is_back() {
    let contract = desk(&["a"]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let gate = gate(&folder).await;
    let on = Some(ContractBasis::from(revision(gate.live().get("desk"))));
    gate.submit(Submission {
        on: on.clone(),
        ..submission(&contract)
    })
    .await
    .expect("nothing of it is live");
    let refused = gate
        .submit(Submission {
            on,
            ..submission(&contract)
        })
        .await;
    assert!(matches!(refused, Err(GateError::Changed(_))), "{refused:?}");
}

/// The shim of a draft is derived from the difference once, however often the draft is viewed.
#[tokio::test]
async fn what_keeping_a_version_would_be_is_derived_once_for_each_draft() {
    let (old, new) = (desk(&["a", "b"]).await, desk(&["a"]).await);
    let folder = tempfile::tempdir().expect("a folder");
    let gate = gate(&folder).await;
    gate.submit(submission(&old)).await.expect("published");
    let mut new = (*new).clone();
    new.version.major = 2;
    let look = |draft: &str| {
        gate.keep_preview(draft, Some("1.0.0"), &new)
            .expect("it breaks")
    };
    let first = look("d_1");
    assert!(Arc::ptr_eq(&first, &look("d_1")));
    assert!(!Arc::ptr_eq(&first, &look("d_2")), "it is of another draft");
    for draft in 0..20 {
        look(&format!("d_1{draft}"));
    }
    assert!(
        !Arc::ptr_eq(&first, &look("d_1")),
        "only the newest are kept"
    );
}

/// A comment in a form changes nothing that is served, but every process shows it.
#[tokio::test]
async fn a_later_text_of_the_same_version_is_known_to_every_process() {
    let contract = desk(&["a"]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (gate(&folder).await, gate(&folder).await);
    one.submit(submission(&contract)).await.expect("published");
    two.refresh().await.expect("read");
    let before = two.live()["desk"].contract.clone();
    let verdict = one
        .submit(Submission {
            source: "# later",
            ..submission(&contract)
        })
        .await
        .expect("kept");
    assert!(matches!(verdict, Verdict::Unchanged { .. }), "{verdict:?}");
    two.refresh().await.expect("read");
    for gate in [&one, &two] {
        assert_eq!(gate.live()["desk"].source, "# later");
    }
    assert!(
        Arc::ptr_eq(&before, &two.live()["desk"].contract),
        "what is served is not made anew"
    );
}

/// Polls a future a number of times; `None` if it has not ended by then.
async fn polled<F: Future>(mut future: Pin<&mut F>, mut times: usize) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            times -= 1;
            if times == 0 {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        }
    })
    .await
}
