//! Kills the gateway at each step of a sign-in: what was begun continues or is requested again, and nothing exists twice.

use std::{process::Stdio, time::Duration};

use reqwest::{StatusCode, header};
use serde_json::json;
use weir_tests::Modern;

use super::{
    Browser, Protected, ask_for_account, count_accounts, find_no_token, link, restart,
    resume_as_bob, serve, text, whoami,
};

/// How long the issuer holds an answer back, and when the gateway is killed meanwhile.
const HELD_MS: u64 = 1500;
const WITHIN_MS: u64 = 600;

/// Opens the page that the issuer leads back to, and kills the gateway within that time.
async fn kill_within(browser: &Browser, back: &str, wait: Duration, kill: impl FnOnce()) {
    let (_, cookies) = browser.cookies_for(back);
    let request = browser.client.get(back).header(header::COOKIE, cookies);
    let opened = tokio::spawn(async move {
        let _ = request.send().await; // the answer may be lost
    });
    tokio::time::sleep(wait).await;
    kill();
    opened.await.expect("it ends");
}

/// While the issuer's answer is on its way, and after each other time that a sign-in may have taken to get so far.
#[tokio::test]
async fn a_kill_while_a_sign_in_ends_leaves_one_account_or_none() {
    let server = Protected::start("modern", 600);
    let house = server.house();
    let mut gateway = serve(&house).await;
    let url = gateway.url();
    let times = [
        (HELD_MS, WITHIN_MS),
        (0, 0),
        (0, 4),
        (0, 10),
        (0, 20),
        (0, 40),
        (0, 100),
    ];
    for (number, (held, wait)) in times.into_iter().enumerate() {
        let agent = format!("agent-{number}");
        let key = house.key(&["--agent", &agent]);
        let mut browser = Browser::of_user("ann");
        let asked = link(&whoami(&url, &key).await);
        let (_, _, back) = browser.open("POST", &asked, "/callback").await;
        server.control(&format!("set?answer={held}")).await;
        let wait = Duration::from_millis(wait);
        kill_within(&browser, &back, wait, || restart(&house, &mut gateway)).await;
        server.control("set?answer=0").await;
        // Opening the same page again completes the sign-in, or reports that it is over.
        let (status, page, _) = browser.open("GET", &back, "").await;
        let is_over =
            status == StatusCode::OK || status.is_client_error() || status.is_server_error();
        assert!(is_over, "{status} {page}");
        let result = whoami(&url, &key).await;
        if result["isError"] == true {
            browser.connect(&link(&result)).await;
        }
        let result = whoami(&url, &key).await;
        assert!(text(&result).contains("you are ann"), "{wait:?}: {result}");
        assert_eq!(
            count_accounts(&house, &format!("agent {agent}")),
            1,
            "{wait:?}"
        );
        find_no_token(&server, &house).await;
    }
}

/// Wherever the gateway is killed, a caller has one account or none, and can continue.
#[tokio::test]
async fn a_kill_loses_and_doubles_no_account() {
    let server = Protected::start("modern", 8);
    let house = server.house();
    let mut gateway = serve(&house).await;
    let (url, key) = (gateway.url(), house.key(&["--agent", "ann"]));

    // After the link was given, and while the browser is at the issuer.
    let asked = link(&whoami(&url, &key).await);
    restart(&house, &mut gateway);
    let mut browser = Browser::of_user("ann");
    let (_, _, back) = browser.open("POST", &asked, "/callback").await;
    restart(&house, &mut gateway);
    let (status, page, _) = browser.open("GET", &back, "").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(text(&whoami(&url, &key).await).contains("you are ann"));
    restart(&house, &mut gateway);
    assert!(text(&whoami(&url, &key).await).contains("you are ann"));

    // While a token is renewed: the issuer has the request, and its answer is lost.
    tokio::time::sleep(Duration::from_secs(9)).await;
    server.control("set?hold=1500").await;
    let (at, with) = (url.clone(), key.clone());
    let call = tokio::spawn(async move {
        let request = Modern::with_key(at, &with);
        let call = json!({ "name": "notes_whoami", "arguments": {} });
        drop(request.request("tools/call", call).send().await);
    });
    tokio::time::sleep(Duration::from_millis(700)).await;
    restart(&house, &mut gateway);
    call.await.expect("it ends");
    server.control("set?hold=0").await;
    // The one that was killed had claimed the renewal for a while.
    let mut result = whoami(&url, &key).await;
    for _ in 0..30 {
        if result["structuredContent"]["code"] != "unavailable" {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        result = whoami(&url, &key).await;
    }
    if result["isError"] == true {
        // The issuer took the token to renew with for stolen, as it must, and refused it.
        Browser::of_user("ann").connect(&link(&result)).await;
    }
    assert!(text(&whoami(&url, &key).await).contains("you are ann"));
    assert_eq!(count_accounts(&house, "agent ann"), 1);
}

/// A question that was asked before the kill is answered after it.
#[tokio::test]
async fn a_question_outlives_a_kill() {
    let server = Protected::start("modern", 600);
    let house = server.house();
    let mut gateway = serve(&house).await;
    let key = house.key(&["--agent", "bob"]);
    let client =
        Modern::with_key(gateway.url(), &key).saying(json!({ "elicitation": { "url": {} } }));
    let result = ask_for_account(&client).await;
    let asked = result["inputRequests"]["account"]["params"]["url"].as_str();
    restart(&house, &mut gateway);
    Browser::of_user("bob")
        .connect(asked.expect("a link"))
        .await;
    restart(&house, &mut gateway);
    resume_as_bob(&client, &result).await;
    assert_eq!(count_accounts(&house, "agent bob"), 1);
}

/// The gateway's own account, whose command is killed while it registers the gateway, and while it waits for the browser.
#[tokio::test]
async fn a_killed_command_is_only_run_again() {
    let server = Protected::start("modern", 600);
    let house = server.house();
    for held in [HELD_MS, 0] {
        server.control(&format!("set?register={held}")).await;
        let mut command = house.weir(&["upstream", "connect", "notes"]);
        let command = command.stdout(Stdio::null()).stdin(Stdio::null());
        let mut child = command.spawn().expect("weir starts");
        tokio::time::sleep(Duration::from_millis(WITHIN_MS)).await;
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
    server.control("set?register=0").await;
    let gateway = serve(&house).await;
    assert_eq!(count_accounts(&house, "gateway"), 1);
    let key = house.key(&["--agent", "ann"]);
    let asked = link(&whoami(&gateway.url(), &key).await);
    Browser::of_user("ann").connect(&asked).await;
    let result = whoami(&gateway.url(), &key).await;
    assert!(text(&result).contains("you are ann"), "{result}");
    find_no_token(&server, &house).await;
}
