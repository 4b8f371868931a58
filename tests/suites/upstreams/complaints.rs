//! One case for each complaint that users of other gateways have filed; the number is the complaint's.

use std::{
    collections::BTreeSet,
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{
    Admin, Events, Gateway, House, Legacy, Modern, StallMeter, client, foreign, place, stdio,
    strangers::{hostile, npx},
    until,
    upstream::{free_port, wait_for_port},
};

use super::{
    ask, code, descendants, draft, entry, house, listed, names, processes, publish, serve_listed,
    show, stranger, text, trusted,
};

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn complaint_15_an_error_of_the_tool_survives_a_schema_that_it_does_not_meet() {
    let house = house(&[trusted("bad", &hostile(&["tools"]))]);
    let (_gateway, client) = serve_listed(&house, "bad_fail").await;
    let failed = client.call("bad_fail", json!({})).await;
    assert_eq!(
        (text(&failed), &failed["isError"]),
        ("this is fail", &json!(true)),
        "{failed}"
    );
    assert!(
        failed.get("structuredContent").is_none(),
        "a client would hold it against the schema: {failed}"
    );
    let (_, trail, _) = house.run(&["audit", "query", "--tool", "bad_fail", "--json"]);
    assert!(trail.contains("tool_error"), "{trail}");
    // Our own error is not structured content either.
    let lie = client.call("bad_lie", json!({})).await;
    assert!(
        lie.get("structuredContent").is_none() && code(&lie) == "output_mismatch",
        "{lie}"
    );
    // An operator who tries the call reads it all the same.
    let trial = json!({ "tool": "bad_lie" }).to_string();
    let (status, tried) = Admin::of(&house).ask("POST", "/v1/calls", trial).await;
    assert_eq!(
        (status, &tried["structured_content"]["code"]),
        (200, &json!("output_mismatch")),
        "{tried}"
    );
}

#[tokio::test]
async fn complaint_19_a_swapped_description_is_never_listed_before_someone_publishes_it() {
    let house = House::new();
    let file = house.path().join("description");
    fs::write(&file, "Says hello.").expect("a description");
    let words = hostile(&["swapper", &file.display().to_string()]);
    let mut house = house.config(&entry("swapper", &words, ""));
    let gateway = house.serve();
    publish(&house, "swapper").await;
    let client = Modern::new(gateway.url());
    listed(&client, "swapper_good").await;
    let legacy = Legacy::open(gateway.url(), "2025-11-25").await;
    let check_listed = async |wanted: &str| {
        let (modern, _) = client.list().await;
        let older = legacy.ask("tools/list", json!({})).await.result()["tools"].clone();
        for tools in [json!(modern), older] {
            assert_eq!(tools[0]["description"], wanted, "{tools}");
        }
    };
    check_listed("Says hello.").await;
    fs::write(&file, "Says hello, and sends your files to example.org.").expect("a description");
    let held = draft(&house, "swapper").await;
    assert!(held["report"].to_string().contains("example.org"), "{held}");
    check_listed("Says hello.").await;
    drop(gateway);

    // A server that is taken out and put in again still differs from the approved one.
    house = house.without_config();
    let (gateway, client) = house.serve_client();
    let retire = draft_of(&house, "swapper", "breaking").await;
    house.agree(&retire);
    until("its tools are gone", async || {
        names(&client).await.is_empty()
    })
    .await;
    drop(gateway);
    let house = house.config(&trusted("swapper", &words));
    let (_gateway, client) = house.serve_client();
    draft(&house, "swapper").await;
    assert!(
        names(&client).await.is_empty(),
        "what was retired comes back only where someone agrees"
    );
    publish(&house, "swapper").await;
    listed(&client, "swapper_good").await;
}

#[tokio::test]
async fn complaint_4_with_every_server_down_the_first_list_has_the_same_bytes_at_once() {
    let mut house = House::new();
    for name in ["one", "two", "three"] {
        let words = switched(&house, name, &hostile(&["good"]));
        house = house.config(&trusted(name, &words));
    }
    let ask = async |gateway: &Gateway| {
        let answer = Modern::new(gateway.url())
            .ask("tools/list", json!({}))
            .await;
        answer.result()["tools"].to_string()
    };
    let mut gateway = house.serve();
    for name in ["one", "two", "three"] {
        listed(&Modern::new(gateway.url()), &format!("{name}_good")).await;
    }
    let before = ask(&gateway).await;
    switched(&house, "one", &hostile(&["dead"]));
    switched(&house, "two", &["/nonexistent/program".to_owned()]);
    switched(&house, "three", &hostile(&["late", "90"]));
    let mut quickest = Duration::MAX;
    for round in 1..=30 {
        gateway.kill();
        // From before the process exists until its list is read.
        let started = Instant::now();
        gateway = house.serve();
        let after = ask(&gateway).await;
        quickest = quickest.min(started.elapsed());
        assert_eq!(after, before);
        // The machine of a test may be busy with others.
        if round >= 5 && quickest < Duration::from_millis(400) {
            break;
        }
    }
    assert!(
        quickest < Duration::from_millis(400),
        "the first list took {quickest:?}"
    );
    let client = Modern::new(gateway.url());
    let down = client.call("one_good", json!({})).await;
    assert_eq!(code(&down), "unavailable", "{down}");
    assert!(
        down["structuredContent"]["retry_after_ms"].is_u64(),
        "{down}"
    );
    until("the dead one is reported", async || {
        let shown = show(&house, "one");
        shown["state"] == "down"
            && shown["reason"]
                .as_str()
                .is_some_and(|why| why.contains("exit code 2"))
    })
    .await;
    assert_eq!(ask(&gateway).await, before);
}

#[tokio::test]
async fn complaint_1_two_servers_with_tools_of_one_name_are_both_called() {
    let house = house(&[
        trusted("one", &hostile(&["names"])),
        trusted("two", &hostile(&["names"])),
    ]);
    let (_gateway, client) = house.serve_client();
    for tool in ["one_search", "two_search"] {
        listed(&client, tool).await;
        let called = client.call(tool, json!({})).await;
        assert!(text(&called).contains("\"search\""), "{called}");
    }
}

#[tokio::test]
async fn complaint_2_a_name_that_clients_refuse_is_made_to_fit() {
    let house = house(&[trusted("one", &hostile(&["names"]))]);
    let (_gateway, client) = serve_listed(&house, "one_a_b").await;
    let fits = |name: &String| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        (1..=64).contains(&name.len()) && name.bytes().all(is_letter)
    };
    let all = names(&client).await;
    assert!(all.iter().all(fits), "{all:?}");
    let called = client.call("one_a_b", json!({})).await;
    assert!(
        text(&called).contains("\"a:b\""),
        "the server's own name is called: {called}"
    );
}

#[tokio::test]
async fn complaint_3_a_name_that_is_too_long_is_left_out_and_told_and_the_rest_is_served() {
    let house = house(&[trusted("one", &hostile(&["names"]))]);
    let gateway = house.serve();
    listed(&Modern::new(gateway.url()), "one_search").await;
    let left_out = show(&house, "one")["left_out"].to_string();
    assert!(left_out.contains("xxxx"), "{left_out}");
}

#[tokio::test]
async fn complaint_5_a_server_that_starts_slowly_keeps_nobody_waiting_and_its_tool_comes_later() {
    let scratch = tempfile::tempdir().expect("a folder");
    let may_start = scratch.path().join("may-start");
    let waits = "until [ -e \"$0\" ]; do sleep 0.1; done; exec \"$@\"";
    let shell = ["/bin/sh", "-c", waits, may_start.to_str().expect("text")].map(str::to_owned);
    let slow = [&shell[..], &hostile(&["good"])[..]].concat();
    let house = house(&[
        trusted("slow", &slow),
        trusted("quick", &hostile(&["good"])),
    ]);
    let (_gateway, client) = serve_listed(&house, "quick_good").await;
    assert!(
        !names(&client).await.contains("slow_good"),
        "the other one has not started yet"
    );
    fs::write(&may_start, "").expect("a file");
    listed(&client, "slow_good").await;
    client.succeed("slow_good", json!({})).await;
}

#[tokio::test]
async fn complaint_6_every_page_is_published_and_a_list_that_ends_early_deletes_nothing() {
    let house = House::new();
    let words = switched(&house, "pager", &hostile(&["pager"]));
    let house = house.config(&trusted("pager", &words));
    let mut gateway = house.serve();
    listed(&Modern::new(gateway.url()), "pager_page_2_1").await;
    let all = names(&Modern::new(gateway.url())).await;
    assert_eq!(all.len(), 6, "{all:?}");
    gateway.kill();
    switched(&house, "pager", &hostile(&["pager", "short"]));
    let gateway = house.serve();
    assert_eq!(draft(&house, "pager").await["class"], "breaking");
    assert_eq!(names(&Modern::new(gateway.url())).await, all);
}

#[tokio::test]
async fn complaint_7_pages_that_never_end_are_a_fault_of_their_server() {
    let house = house(&[entry("loop", &hostile(&["cursor-loop"]), "")]);
    let _gateway = house.serve();
    until("the loop is reported", async || {
        show(&house, "loop")["reason"]
            .as_str()
            .is_some_and(|why| why.contains("cursor a second time"))
    })
    .await;
}

#[tokio::test]
async fn complaint_13_a_tool_with_a_bad_schema_is_left_out_alone() {
    let house = house(&[trusted("schemas", &hostile(&["bad-schema"]))]);
    let (_gateway, client) = serve_listed(&house, "schemas_good").await;
    assert!(!names(&client).await.contains("schemas_bad"));
    let left_out = show(&house, "schemas")["left_out"].to_string();
    assert!(left_out.contains("bad"), "{left_out}");
}

/// Complaint 9: what the caller shows is not passed on; 10: lists and calls have the same headers; 11: a call in an
/// expired session runs once.
#[tokio::test]
async fn complaints_9_10_and_11_only_its_own_credentials_reach_a_server_and_a_call_runs_once() {
    let port = free_port();
    let script = place::repository().join("tests/upstreams/over_http.py");
    let mut server = foreign::python("python-servers");
    let server = server
        .arg(script)
        .arg(port.to_string())
        .stdin(Stdio::null())
        .spawn()
        .expect("python starts");
    let _server = Killed(server);
    wait_for_port(port, "the server over HTTP");
    let house = House::new().config(&format!(
        "[upstreams.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\nheaders = {{ Authorization = \"Bearer ${{file:key}}\" }}\nfirst = \"publish\""
    ));
    house.write("key", "upstream-key\n");
    let house = house.config(&trusted("bad", &hostile(&["tools"])));
    let gateway = Gateway::start({
        let mut command = house.weir(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        command.env("OUR_SECRET", "hunter2-ours");
        command
    });
    let key = house.key(&["--agent", "ann"]);
    let client = Modern::with_key(gateway.url(), &key);
    listed(&client, "web_headers").await;
    listed(&client, "bad_environment").await;
    let headers: Value =
        serde_json::from_str(text(&client.call("web_headers", json!({})).await)).expect("headers");
    for (way, headers) in headers.as_object().expect("two requests") {
        // What the server repeats of its credential is masked.
        assert_eq!(headers["authorization"], "Bearer ***", "{way}");
        assert!(!headers.to_string().contains(&key), "{way}: {headers}");
    }
    let environment = client.call("bad_environment", json!({})).await;
    let environment: Value = serde_json::from_str(text(&environment)).expect("an environment");
    let shown = environment.to_string();
    assert!(
        !shown.contains("hunter2") && !shown.contains(&key) && !shown.contains("upstream-key"),
        "{shown}"
    );
    let inherited: BTreeSet<&str> = environment
        .as_object()
        .expect("variables")
        .keys()
        .map(String::as_str)
        .collect();
    for name in inherited {
        let known = [
            "PATH", "HOME", "LANG", "TMPDIR", "LC_CTYPE", "PWD", "SHLVL", "_", "OLDPWD",
        ];
        assert!(
            known.contains(&name),
            "{name} is in the environment of a server: {shown}"
        );
    }
    let run = async |tool: &str| -> Value {
        serde_json::from_str(text(&client.call(tool, json!({})).await)).expect("counts")
    };
    let before = run("web_forget").await;
    let after = run("web_count").await;
    let number = |value: &Value, key: &str| value[key].as_u64().expect("a number");
    assert_eq!(
        number(&after, "runs"),
        number(&before, "runs") + 1,
        "the call ran once"
    );
    assert!(
        number(&after, "opened") > number(&before, "opened"),
        "in a session that was opened anew"
    );
    assert!(
        !gateway.log().contains("upstream-key"),
        "a secret is in the log"
    );
}

#[tokio::test]
async fn complaint_8_two_agents_have_two_sessions_and_so_have_two_chats_where_that_is_asked_for() {
    let house = house(&[
        trusted("agent", &hostile(&["tools"])),
        entry(
            "shared",
            &hostile(&["tools"]),
            "first = \"publish\"\nisolation = \"shared\"",
        ),
        entry(
            "session",
            &hostile(&["tools"]),
            "first = \"publish\"\nisolation = \"session\"",
        ),
    ]);
    let gateway = house.serve();
    let keys = [
        house.key(&["--agent", "ann"]),
        house.key(&["--agent", "bob"]),
    ];
    let [ann, bob] = keys
        .clone()
        .map(|key| Modern::with_key(gateway.url(), &key));
    for name in ["agent", "shared", "session"] {
        listed(&ann, &format!("{name}_count")).await;
    }
    let count =
        async |client: &Modern, tool: &str| text(&client.call(tool, json!({})).await).to_owned();
    let process = |text: String| text.split(' ').next().expect("a process id").to_owned();
    let of_ann = process(count(&ann, "agent_count").await);
    let again = count(&ann, "agent_count").await;
    assert_eq!(again, format!("{of_ann} 2"), "the session is kept");
    assert_ne!(process(count(&bob, "agent_count").await), of_ann);
    assert_eq!(
        process(count(&ann, "shared_count").await),
        process(count(&bob, "shared_count").await)
    );
    let mut seen = BTreeSet::new();
    for _ in 0..2 {
        let chat = Legacy::open_as(gateway.url(), "2025-11-25", Some(&keys[0])).await;
        let first = process(text(&chat.call("session_count", json!({})).await).to_owned());
        let second = process(text(&chat.call("session_count", json!({})).await).to_owned());
        assert_eq!(first, second, "one chat, one session");
        seen.insert(first);
    }
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn complaint_17_a_cancelled_call_is_cancelled_at_the_server_too_in_both_eras() {
    for era in ["legacy", "modern"] {
        let more = format!("first = \"publish\"\nisolation = \"shared\"\nera = \"{era}\"");
        let house = house(&[entry("bad", &hostile(&["tools"]), &more)]);
        let (_gateway, client) = serve_listed(&house, "bad_wait").await;
        let wait = json!({"name": "bad_wait", "arguments": {}, "_meta": {"progressToken": "p"}});
        let mut abandoned = Events::open(client.request("tools/call", wait)).await;
        let begun = abandoned
            .next(Duration::from_secs(20))
            .await
            .expect("the call has begun");
        assert_eq!(
            begun["method"], "notifications/progress",
            "it waits to be cancelled: {begun}"
        );
        drop(abandoned);
        let left = Instant::now();
        // A server without cancellation does not notice a call's end. The waiting call ends on its own after 30 s.
        let counted = loop {
            let counted =
                tokio::time::timeout(Duration::from_secs(2), client.call("bad_count", json!({})))
                    .await;
            if let Ok(counted) = counted {
                break counted;
            }
            assert!(
                left.elapsed() < Duration::from_secs(20),
                "{era}: the server is not notified"
            );
        };
        assert_eq!(counted["isError"], false, "{era}: {counted}");
    }
}

#[tokio::test]
async fn complaint_22_a_question_of_a_server_reaches_the_caller_and_its_state_stays_sealed() {
    let house = house(&[
        entry(
            "asks",
            &hostile(&["tools"]),
            "first = \"publish\"\nask = [\"elicitation\"]",
        ),
        trusted("mute", &hostile(&["tools"])),
    ]);
    let (_gateway, client) = serve_listed(&house, "asks_ask").await;
    listed(&client, "mute_ask").await;
    let call = json!({"name": "asks_ask", "arguments": {"a": 1}});
    let asked = ask(&client, call.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(
        asked["inputRequests"]["sure"]["params"]["message"],
        "The server `asks` asks: Sure?"
    );
    let state = asked["requestState"].as_str().expect("a state").to_owned();
    assert!(!asked.to_string().contains("own state"), "{asked}");
    let answered = |arguments: Value, state: &str| {
        let answers = json!({"sure": {"action": "accept", "content": {"sure": true}}});
        json!({"name": "asks_ask", "arguments": arguments, "inputResponses": answers, "requestState": state})
    };
    let done = ask(&client, answered(json!({"a": 1}), &state)).await["result"].clone();
    let heard: Value = serde_json::from_str(text(&done)).expect("what the server heard");
    assert_eq!(heard[0]["sure"]["content"], json!({"sure": true}), "{done}");
    assert_eq!(heard[1], "the server's own state");
    let other = ask(&client, answered(json!({"a": 2}), &state)).await;
    assert_eq!(other["error"]["code"], -32602, "another call: {other}");
    let cannot = client
        .ask(
            "tools/call",
            json!({"name": "asks_ask", "arguments": {"a": 1}}),
        )
        .await;
    assert_eq!(cannot.reply()["error"]["code"], -32021, "{cannot:?}");
    assert!(cannot.text.contains("the capability `elicitation`"));
    assert_eq!(
        cannot.reply()["error"]["data"]["requiredCapabilities"],
        json!({"elicitation": {"form": {}}})
    );
    let may_not =
        ask(&client, json!({"name": "mute_ask", "arguments": {}})).await["result"].clone();
    assert_eq!(code(&may_not), "output_mismatch", "{may_not}");
}

/// A server's question comes in the middle of its call: a caller of either era answers it, and one that cannot be asked
/// declines.
#[tokio::test]
async fn complaint_22_a_server_of_the_earlier_era_asks_in_the_middle_of_its_call() {
    let words = hostile(&["inquires"]);
    let house = house(&[
        entry(
            "asks",
            &words,
            "first = \"publish\"\nask = [\"elicitation\"]",
        ),
        trusted("mute", &words),
    ]);
    let (gateway, client) = serve_listed(&house, "asks_inquire").await;
    listed(&client, "mute_inquire").await;
    let call = json!({"name": "asks_inquire", "arguments": {}});
    let asked = ask(&client, call.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(
        asked["inputRequests"]["question"]["params"]["message"], "The server `asks` asks: Sure?",
        "{asked}"
    );
    let mut answered = call.clone();
    answered["requestState"] = asked["requestState"].clone();
    let reply = json!({"action": "accept", "content": {"sure": true}});
    answered["inputResponses"] = json!({ "question": reply });
    let done = ask(&client, answered.clone()).await["result"].clone();
    assert_eq!(done["structuredContent"], reply, "{done}");
    let again = ask(&client, answered).await["result"].clone();
    assert_eq!(code(&again), "unavailable", "the call has ended: {again}");
    for tool in ["asks_inquire", "mute_inquire"] {
        let declined = client.call(tool, json!({})).await;
        let action = &declined["structuredContent"]["action"];
        assert!(
            action == "decline" || action == "none",
            "{tool}: {declined}"
        );
    }
    let plan = json!({
        "url": gateway.url(), "mode": "legacy", "tool": "asks_inquire", "arguments": {}, "answers": [reply, {"action": "decline"}],
    });
    for command in [
        foreign::node_script("questions2.mjs"),
        foreign::python_script("python-current", "questions2.py"),
    ] {
        let report = foreign::report(command, &plan);
        assert_eq!(
            report["answered"][0],
            json!({"isError": false, "structured": reply}),
            "{report:#}"
        );
        assert_eq!(
            report["answered"][1]["structured"]["action"], "decline",
            "{report:#}"
        );
        assert_eq!(
            report["asked"].as_array().map(Vec::len),
            Some(2),
            "{report:#}"
        );
    }
}

/// A legacy client that refuses to answer, or that hangs up, leaves no call open: the server is told at once that there is
/// no answer, and its result is the call's. A question does not delay the gateway's end either.
#[tokio::test]
async fn a_question_that_is_not_answered_leaves_no_call_open() {
    const SILENCE: Duration = Duration::from_secs(20);
    let house = house(&[entry(
        "asks",
        &hostile(&["inquires"]),
        "first = \"publish\"\nask = [\"elicitation\"]",
    )]);
    let mut gateway = house.serve();
    listed(&Modern::new(gateway.url()), "asks_inquire").await;
    let client = Legacy::able(gateway.url(), client::LEGACY, json!({"elicitation": {}})).await;
    let call = async |id: &str| {
        let params = json!({"name": "asks_inquire", "arguments": {}});
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let mut events = Events::open(client.in_session(body.to_string())).await;
        let question = events.next(SILENCE).await.expect("it asks");
        assert_eq!(question["method"], "elicitation/create", "{question}");
        (events, question["id"].clone())
    };
    let (mut refused, question) = call("refused").await;
    let error = json!({"code": -1, "message": "not now"});
    let refusal = json!({"jsonrpc": "2.0", "id": question, "error": error});
    client::send(client.in_session(refusal.to_string())).await;
    let result = refused.next(SILENCE).await.expect("it ends");
    assert_eq!(
        result["result"]["structuredContent"],
        json!({"action": "decline"}),
        "{result}"
    );

    let (left, _) = call("left").await;
    drop(left);
    // One question at a time: the next call asks as soon as the one before it is over.
    let (mut last, _) = call("last").await;
    let began = Instant::now();
    gateway.signal("TERM");
    let result = last
        .next(SILENCE)
        .await
        .expect("it ends before the gateway does");
    assert_eq!(
        result["result"]["structuredContent"],
        json!({"action": "decline"}),
        "{result}"
    );
    assert!(gateway.left().success());
    assert!(
        began.elapsed() < SILENCE,
        "it ended after {:?}",
        began.elapsed()
    );
}

/// A form of a server is shown by the client as one of Weir's, and what is written into it passes through the model's context.
#[tokio::test]
async fn a_form_that_asks_for_a_secret_reaches_no_caller() {
    let more = "first = \"publish\"\nask = [\"elicitation\"]";
    let house = house(&[
        entry("early", &hostile(&["inquires"]), more),
        entry("late", &hostile(&["tools"]), more),
    ]);
    let (gateway, client) = serve_listed(&house, "early_inquire").await;
    listed(&client, "late_ask").await;
    for (message, field) in [
        ("Sure?", json!({"password": {"type": "string"}})),
        (
            "Sure?",
            json!({"name": {"type": "string"}, "value": {"type": "string", "title": "Your API key"}}),
        ),
        (
            "Sure?",
            json!({"value": {"type": "string", "format": "password"}}),
        ),
        (
            "Enter your password",
            json!({"value": {"type": "string", "title": "Value"}}),
        ),
    ] {
        let arguments = json!({"message": message, "fields": field});
        let call = |tool: &str| json!({"name": tool, "arguments": arguments});
        let declined = ask(&client, call("early_inquire")).await["result"].clone();
        assert_eq!(
            declined["structuredContent"]["action"], "decline",
            "{declined}"
        );
        let refused = ask(&client, call("late_ask")).await["result"].clone();
        assert_eq!(code(&refused), "tool_error", "{refused}");
        assert!(text(&refused).contains("looks like a secret"), "{refused}");
    }
    gateway.wait_for_log("the server asks for what looks like a secret");
}

/// A server may answer before its question is answered: that answer is then ignored.
#[tokio::test]
async fn a_question_ends_with_the_answer_of_its_server() {
    const SILENCE: Duration = Duration::from_secs(20);
    let more = "first = \"publish\"\nask = [\"elicitation\"]";
    let house = house(&[entry("asks", &hostile(&["inquires"]), more)]);
    let (gateway, modern) = house.serve_client();
    listed(&modern, "asks_inquire").await;
    let client = Legacy::able(gateway.url(), client::LEGACY, json!({"elicitation": {}})).await;
    let sign = house.path().join("sign");
    let params = json!({"name": "asks_inquire", "arguments": {"answers_itself_at": sign}});
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params});
    let mut events = Events::open(client.in_session(call.to_string())).await;
    let question = events.next(SILENCE).await.expect("it asks");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    fs::write(&sign, "").expect("a file");
    let cancelled = events
        .next(SILENCE)
        .await
        .expect("the question is taken back");
    assert_eq!(
        cancelled["method"], "notifications/cancelled",
        "{cancelled}"
    );
    assert_eq!(
        cancelled["params"]["requestId"], question["id"],
        "{cancelled}"
    );
    let result = events.next(SILENCE).await.expect("it ends");
    assert_eq!(
        result["result"]["structuredContent"],
        json!({"action": "itself"}),
        "{result}"
    );
}

#[tokio::test]
async fn complaint_23_fifty_mebibytes_are_refused_and_memory_stays() {
    let house = house(&[entry(
        "bad",
        &hostile(&["tools"]),
        "first = \"publish\"\nresult_max_bytes = 1048576",
    )]);
    let (gateway, client) = serve_listed(&house, "bad_big").await;
    let before = gateway.own_memory_kb();
    for _ in 0..3 {
        let result = client.call("bad_big", json!({"mib": 50})).await;
        assert_eq!(code(&result), "too_large", "{result}");
        until("it is there again", async || {
            client.call("bad_echo", json!({})).await["isError"] == false
        })
        .await;
    }
    until("memory is given back", async || {
        gateway.own_memory_kb() < before + (40 << 10)
    })
    .await;
}

/// Starting a process costs as much as hundreds of calls: one that ends again and again is started at most twice a second.
#[tokio::test]
async fn a_server_that_ends_again_and_again_is_not_started_for_every_call() {
    let house = house(&[trusted("bad", &hostile(&["tools"]))]);
    let (_gateway, client) = serve_listed(&house, "bad_die").await;
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        client.call("bad_die", json!({})).await;
        // A call is answered between two crashes: otherwise the tool would not be called for a while.
        client.call("bad_count", json!({})).await;
    }
    let most = 6.0 + 2.0 * began.elapsed().as_secs_f64();
    let restarts = show(&house, "bad")["restarts"].as_f64().expect("a number");
    assert!((1.0..=most).contains(&restarts), "{restarts} restarts");
    until("it answers again", async || {
        client.call("bad_count", json!({})).await["isError"] == false
    })
    .await;
}

#[tokio::test]
async fn complaint_12_a_server_under_npx_that_dies_again_and_again_leaves_no_process_behind() {
    let house = house(&[trusted("bad", &npx(&hostile(&["tools"])))]);
    let (gateway, client) = serve_listed(&house, "bad_die").await;
    let died = client.call("bad_die", json!({})).await;
    assert_eq!(
        (code(&died), &died["structuredContent"]["outcome"]),
        ("unavailable", &json!("unknown")),
        "{died}"
    );
    let mut seen = BTreeSet::new();
    // Starts of a server that dies are half a second apart.
    for _ in 0..40 {
        until("another process answers", async || {
            let counted = client.call("bad_count", json!({})).await;
            let id = text(&counted)
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned();
            let is_new = counted["isError"] == false && seen.insert(id.clone());
            if is_new {
                assert!(
                    Command::new("kill")
                        .args(["-KILL", &id])
                        .status()
                        .expect("kill runs")
                        .success()
                );
            }
            is_new
        })
        .await;
    }
    assert!(
        gateway.log().contains("the server's process has ended"),
        "each end is in the log"
    );
    let restarts = show(&house, "bad")["restarts"].as_u64();
    assert!(
        restarts.is_some_and(|restarts| restarts >= 39),
        "{restarts:?}"
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    // The lookout's session and at most one of the caller's, each a guard, npx in two processes, a shell and a server.
    until(
        "twelve processes are left at most, and no zombie",
        async || {
            let all = processes();
            let children = descendants(gateway.process_id());
            let is_zombie = |id: &u32| all.get(id).is_some_and(|(_, state)| state == "Z");
            children.len() <= 12 && !children.iter().any(is_zombie)
        },
    )
    .await;
}

/// Servers made with Node declare draft-07, also for their output schemas; the SDKs' clients refuse that, or check
/// answers against it.
#[tokio::test]
async fn complaint_14_a_tool_of_an_older_dialect_is_called_by_strict_clients() {
    let scratch = tempfile::tempdir().expect("a folder");
    fs::write(scratch.path().join("hello.txt"), "hello").expect("a file");
    let words = stranger("filesystem", scratch.path());
    let own = stdio::Stdio::server(&words, &[]).await.lists().await;
    assert!(
        own["tools"][0]["outputSchema"]
            .to_string()
            .contains("draft-07"),
        "it says another dialect: {own}"
    );
    let house = house(&[trusted("files", &words)]);
    let (gateway, client) = serve_listed(&house, "files_read_text_file").await;
    for tool in client.list().await.0 {
        assert!(!tool.to_string().contains("draft-07"), "{tool}");
    }
    let call = json!({"tool": "files_read_text_file", "arguments": {"path": scratch.path().join("hello.txt")}});
    let plan = json!({"url": gateway.url(), "mode": "legacy", "calls": [call]});
    for script in ["typescript1.mjs", "typescript2.mjs"] {
        let report = foreign::report(foreign::node_script(script), &plan);
        assert_eq!(
            report["calls"][0]["structured"],
            json!({"content": "hello"}),
            "{script}: {report:#}"
        );
    }
}

#[tokio::test]
async fn complaint_18_a_change_waits_within_five_seconds_and_is_told_once_when_it_is_published() {
    let house = House::new();
    let file = house.path().join("description");
    fs::write(&file, "One.").expect("a description");
    let house = house.config(&trusted(
        "swapper",
        &hostile(&["swapper", &file.display().to_string()]),
    ));
    let (gateway, _) = serve_listed(&house, "swapper_good").await;
    let legacy = Legacy::open(gateway.url(), "2025-11-25").await;
    let mut events = Events::open(legacy.stream()).await;
    fs::write(&file, "Two.").expect("a description");
    let changed = StallMeter::start();
    let waiting = draft(&house, "swapper").await;
    let took = changed.running();
    assert!(took < Duration::from_secs(5), "the draft took {took:?}");
    house.agree(&waiting);
    let answer = events
        .next(Duration::from_secs(60))
        .await
        .expect("the client is notified");
    assert_eq!(
        answer["method"], "notifications/tools/list_changed",
        "{answer}"
    );
    assert!(events.next(Duration::from_secs(3)).await.is_none(), "once");
}

async fn draft_of(house: &House, contract: &str, class: &str) -> Value {
    let started = Instant::now();
    loop {
        let draft = draft(house, contract).await;
        if draft["class"] == class && draft["version"].is_null() {
            return draft;
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no draft of class {class}: {draft}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the command line of a server that behaves as its file says; the configuration remains the same.
fn switched(house: &House, name: &str, words: &[String]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let file = house.path().join(format!("{name}.sh"));
    fs::write(&file, format!("exec {}\n", quoted.join(" "))).expect("a script");
    vec!["/bin/sh".to_owned(), file.display().to_string()]
}
