//! Tests which callers share a session with a server, how many sessions there may be, and when a tool that only fails is no
//! longer called.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use weir_tests::{Events, Gateway, House, Modern, strangers::hostile, until};

use super::{code, descendants, entry, house, listed, processes, scraped, show, text};

/// Returns a client for each pair of an agent and a tenant.
fn clients<const N: usize>(
    house: &House,
    gateway: &Gateway,
    holders: [(&str, &str); N],
) -> [Modern; N] {
    holders.map(|(agent, tenant)| {
        let key = house.key(&["--agent", agent, "--tenant", tenant]);
        Modern::with_key(gateway.url(), &key)
    })
}

/// Returns the process that answers a caller, and the number of this call in it.
async fn counted(client: &Modern, server: &str) -> (u32, u32) {
    let result = client.succeed(&format!("{server}_count"), json!({})).await;
    let (process, count) = text(&result)
        .split_once(' ')
        .expect("a process and a count");
    (
        process.parse().expect("a process id"),
        count.parse().expect("a count"),
    )
}

fn is_alive(process: u32) -> bool {
    processes()
        .get(&process)
        .is_some_and(|(_, state)| state != "Z")
}

#[tokio::test]
async fn agents_of_one_tenant_share_a_session_where_that_is_asked_for_and_tenants_never_do() {
    let isolated = |name: &str, more: &str| {
        entry(
            name,
            &hostile(&["tools"]),
            &format!("first = \"publish\"\n{more}"),
        )
    };
    let house = house(&[
        isolated("default", ""),
        isolated("tenant", "isolation = \"tenant\""),
    ]);
    let gateway = house.serve();
    // Two tenants may each have an agent of one name.
    let holders = [("ann", "acme"), ("bob", "acme"), ("ann", "other")];
    let [ann, bob, other] = clients(&house, &gateway, holders);
    listed(&ann, "default_count").await;
    listed(&ann, "tenant_count").await;
    let mut by_agent = BTreeSet::new();
    for client in [&ann, &bob, &other] {
        let (process, count) = counted(client, "default").await;
        assert_eq!(count, 1, "no one called there before");
        by_agent.insert(process);
        assert_eq!(
            counted(client, "default").await,
            (process, 2),
            "the session is kept"
        );
    }
    assert_eq!(by_agent.len(), 3);
    let (of_acme, _) = counted(&ann, "tenant").await;
    assert_eq!(counted(&bob, "tenant").await, (of_acme, 2));
    let (of_other, count) = counted(&other, "tenant").await;
    assert!(
        of_other != of_acme && count == 1,
        "{of_other} {of_acme} {count}"
    );
    // The lookout's session is in addition to those of callers.
    assert_eq!(show(&house, "default")["sessions"], 4);
    assert_eq!(show(&house, "tenant")["sessions"], 3);
}

#[tokio::test]
async fn the_session_that_was_unused_longest_makes_room_and_its_process_ends() {
    let more = "first = \"publish\"\nsessions_max = 2";
    let house = house(&[entry("bad", &hostile(&["tools"]), more)]);
    let gateway = house.serve();
    let [ann, bob, eve] = clients(
        &house,
        &gateway,
        [("ann", "acme"), ("bob", "acme"), ("eve", "acme")],
    );
    listed(&ann, "bad_count").await;
    let (of_ann, _) = counted(&ann, "bad").await;
    let (of_bob, _) = counted(&bob, "bad").await;
    assert_eq!(counted(&ann, "bad").await, (of_ann, 2));
    let (of_eve, _) = counted(&eve, "bad").await;
    until(
        "the process of the session that was unused longest has ended",
        async || !is_alive(of_bob),
    )
    .await;
    assert_eq!(
        counted(&ann, "bad").await,
        (of_ann, 3),
        "hers was used since"
    );
    assert_eq!(counted(&eve, "bad").await, (of_eve, 2));
    assert!(
        descendants(gateway.process_id()).contains(&of_eve),
        "it is a child of the gateway"
    );
    assert_eq!(
        show(&house, "bad")["sessions"],
        3,
        "two of callers, and the lookout's"
    );

    // A session in which a call runs is not taken away from it.
    let mut open = Vec::new();
    for client in [&ann, &eve] {
        let wait = json!({"name": "bad_wait", "arguments": {}, "_meta": {"progressToken": "p"}});
        let mut events = Events::open(client.request("tools/call", wait)).await;
        let begun = events
            .next(Duration::from_secs(20))
            .await
            .expect("the call has begun");
        assert_eq!(begun["method"], "notifications/progress", "{begun}");
        open.push(events);
    }
    let full = bob.call("bad_count", json!({})).await;
    assert_eq!(code(&full), "unavailable", "{full}");
    assert!(is_alive(of_ann) && is_alive(of_eve));
    // Their callers disconnect, and there is room again.
    drop(open);
    until("there is room again", async || {
        bob.call("bad_count", json!({})).await["isError"] == false
    })
    .await;
}

#[tokio::test]
async fn a_tool_that_failed_five_times_in_a_row_is_left_alone_for_its_tenant_until_it_answers() {
    let more = "first = \"publish\"\ntimeout_ms = 1000";
    let house = house(&[entry("bad", &hostile(&["tools"]), more)]);
    let gateway = house.serve();
    let [acme, other] = clients(&house, &gateway, [("ann", "acme"), ("ann", "other")]);
    listed(&acme, "bad_stall").await;
    // A start takes longer than a call may.
    for client in [&acme, &other] {
        until("its session is open", async || {
            client.call("bad_count", json!({})).await["isError"] == false
        })
        .await;
    }
    let backing_off = async || {
        let scraped = scraped(&house).await;
        let line = scraped
            .lines()
            .find_map(|line| line.strip_prefix("weir_upstream_backing_off{upstream=\"bad\"} "));
        let counted = line
            .and_then(|count| count.parse::<u64>().ok())
            .expect("a number");
        [Some(counted), show(&house, "bad")["backing_off"].as_u64()]
    };
    let fail = async || {
        let late = acme.call("bad_stall", json!({})).await;
        assert_eq!(code(&late), "timeout", "{late}");
    };
    let held = async || {
        let held = acme.call("bad_stall", json!({"answer": true})).await;
        if held["isError"] == false {
            return None;
        }
        assert_eq!(code(&held), "unavailable", "{held}");
        let wait = held["structuredContent"]["retry_after_ms"].as_u64();
        Some(wait.expect("when to try again"))
    };
    let mut retry_after = 0;
    for _ in 0..10 {
        for failed in 1..=4 {
            fail().await;
            assert_eq!(backing_off().await, [Some(0); 2], "after {failed}");
        }
        fail().await;
        // A machine that stops may be at it again when the wait is over: then the answer ends it.
        if let Some(wait) = held().await {
            retry_after = wait;
            break;
        }
    }
    assert!((1..=1_000).contains(&retry_after), "{retry_after}");
    // Its other tools, and other tenants, do not wait.
    let answers = async |client: &Modern, tool: &str, arguments: Value| {
        // A machine that stops may take the second that a call has.
        for _ in 0..10 {
            let result = client.call(tool, arguments.clone()).await;
            if code(&result) != "timeout" {
                return result;
            }
        }
        panic!("{tool} never answers");
    };
    let counted = answers(&acme, "bad_count", json!({})).await;
    assert_eq!(counted["isError"], false, "{counted}");
    let free = answers(&other, "bad_stall", json!({"answer": true})).await;
    assert_eq!(free["isError"], false, "{free}");
    // Each further failure doubles the wait, until all looks at it fit in.
    loop {
        let (seen, (_, out, _)) = (backing_off().await, house.run(&["upstream", "show", "bad"]));
        let is_told =
            out.contains("backing off: 1, the number of tools whose last calls all failed");
        if seen == [Some(1); 2] && is_told {
            break;
        }
        assert!(retry_after < 8_000, "{seen:?}: {out}");
        tokio::time::sleep(Duration::from_millis(retry_after)).await;
        fail().await;
        retry_after = held().await.expect("it waits for longer each time");
    }
    tokio::time::sleep(Duration::from_millis(retry_after)).await;
    let answered = acme.call("bad_stall", json!({"answer": true})).await;
    assert_eq!(answered["isError"], false, "{answered}");
    assert_eq!(backing_off().await, [Some(0); 2]);
    // It is counted from nothing.
    fail().await;
}
