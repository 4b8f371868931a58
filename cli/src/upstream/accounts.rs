//! Accounts at servers that are called on behalf of a person: those of callers, and the gateway's own, which an operator
//! connects here.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context as _, anyhow, bail};
use reqwest::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, interval, timeout},
};
use toml_edit::{InlineTable, Table};
use weir::{
    accounts::{AccountRegistry, SignInPlan},
    app::GatewayApp,
};
use weir_oauth::SignInAnswer;
use weir_upstream::{find_challenge, find_server_issuer};

use super::{
    super::{
        Done,
        admin::{AdminTarget, cell, path, time},
        start,
        terminal::TerminalProgress,
    },
    BY, LOOK_MAX,
};

/// The path that a sign-in comes back to.
const BACK: &str = "/callback";
/// The time that a person has for it.
const SIGN_IN_MAX: Duration = Duration::from_secs(600);
const HEAD_MAX_BYTES: usize = 16 << 10;
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);
/// The name of the gateway's own account.
const GATEWAY: &str = "gateway";

pub(super) fn list(target: &AdminTarget, name: &str) -> Done {
    let place = path(&["v1", "upstreams", name, "accounts"]);
    let all = target.ask(Method::GET, &place, None)?;
    let row = |account: &Value| {
        vec![
            cell(&account["number"]),
            cell(&account["owner"]),
            cell(&account["issuer"]),
            time(&account["created_ms"]),
            time(&account["renewed_ms"]),
        ]
    };
    let head = ["NUMBER", "OWNER", "ISSUER", "CONNECTED", "RENEWED"];
    target.print_list(&all, &head, row);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn disconnect(target: &AdminTarget, name: &str, number: i64) -> Done {
    let number = number.to_string();
    let place = path(&["v1", "upstreams", name, "accounts", &number]);
    target.ask(Method::DELETE, &place, None)?;
    println!("the account has ended: the next call of its owner asks for another");
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn connect(target: &AdminTarget, name: &str) -> Done {
    let config = target.settings().config()?;
    let started = start::briefly(config, Some("upstream")).await?;
    sign_in(&started, name).await?;
    started.gateway.upstreams().close().await;
    if let Ok(api) = target.api() {
        let place = path(&["v1", "upstreams", name, "look"]);
        let _ = timeout(LOOK_MAX, api.ask(Method::POST, &place, None)).await; // it looks on its own later
    }
    Ok(ExitCode::SUCCESS)
}

/// Has a person sign in if the server refuses requests without a token and names its issuer.
pub(super) async fn choose_sign_in(entry: &mut Table) -> bool {
    let has_header = entry
        .get("headers")
        .and_then(|headers| headers.as_table_like());
    let has_header = has_header.is_some_and(|headers| {
        let mut names = headers.iter().map(|(name, _)| name);
        names.any(|name| name.eq_ignore_ascii_case("authorization"))
    });
    let Some(url) = entry.get("url").and_then(|url| url.as_str()) else {
        return false;
    };
    if has_header || find_challenge(url).await.is_none() {
        return false;
    }
    if let Err(fault) = find_server_issuer(url, None).await {
        eprintln!("weir: the server requires a token, and does not say where to get one: {fault}");
        return false;
    }
    let mut auth = InlineTable::new();
    auth.insert("kind", "oauth".into());
    entry.insert("auth", toml_edit::value(auth));
    true
}

/// Removes the account that was connected for a look without a result.
pub(super) async fn forget(started: &GatewayApp, name: &str, signed_in: bool) {
    let Some(accounts) = started.gateway.accounts().filter(|_| signed_in) else {
        return;
    };
    let all = accounts.list(Some(name)).await.unwrap_or_default();
    for account in all.iter().filter(|account| account.label == GATEWAY) {
        if let Err(fault) = accounts.disconnect(name, account.number, BY).await {
            eprintln!("weir: the account that was connected is still there: {fault}");
        }
    }
}

/// Prints a link, waits until a person has signed in, and keeps the account.
pub(super) async fn sign_in(started: &GatewayApp, name: &str) -> anyhow::Result<()> {
    let gateway = &started.gateway;
    let upstream = gateway.upstreams().get(name);
    let upstream = upstream.with_context(|| format!("there is no upstream `{name}`"))?;
    let server = upstream
        .oauth()
        .with_context(|| format!("`{name}` has no `auth` of the kind \"oauth\""))?;
    let accounts: &AccountRegistry = gateway
        .accounts()
        .context("this process keeps no accounts")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let redirect = format!("http://{}{BACK}", listener.local_addr()?);
    let plan = SignInPlan {
        redirect: &redirect,
        document: None,
        is_kept: false,
        scopes: &[],
    };
    let (begun, pending) = accounts.begin(server, plan).await?;
    println!("the server is called by those who sign in. Open this link on this machine:");
    println!("  {}", begun.url);
    let answer = timeout(
        SIGN_IN_MAX,
        wait_for_answer(&listener, begun.state.reveal()),
    );
    let answer = answer
        .await
        .map_err(|_| anyhow!("no sign-in came within ten minutes: nothing was written"))??;
    accounts.finish_own(server, &pending, answer).await?;
    println!("signed in");
    Ok(())
}

/// Waits for the browser that comes back with the answer to this sign-in.
async fn wait_for_answer(listener: &TcpListener, state: &str) -> anyhow::Result<SignInAnswer> {
    let progress = TerminalProgress::open();
    let (began, mut beat) = (Instant::now(), interval(Duration::from_secs(1)));
    loop {
        let visitor = tokio::select! {
            visitor = listener.accept() => visitor?.0,
            _ = beat.tick() => {
                if let Some(progress) = &progress {
                    let seconds = began.elapsed().as_secs() as f64;
                    progress.show(seconds, Some(SIGN_IN_MAX.as_secs_f64()), "waiting for the sign-in, s");
                }
                continue;
            }
        };
        let answer = timeout(HEAD_TIME_MAX, read_answer(visitor, state)).await;
        if let Ok(Ok(answer)) = answer {
            if let Some(progress) = &progress {
                progress.end();
            }
            return Ok(answer);
        }
    }
}

/// Reads a request, and answers it. Returns an error if it is another one than expected.
async fn read_answer(mut visitor: TcpStream, state: &str) -> anyhow::Result<SignInAnswer> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() > HEAD_MAX_BYTES || visitor.read_buf(&mut head).await? == 0 {
            bail!("no request");
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.split(' ').nth(1).unwrap_or_default();
    let query = target
        .strip_prefix(BACK)
        .and_then(|rest| rest.strip_prefix('?'));
    let answer = query.and_then(SignInAnswer::read);
    let answer = answer.filter(|answer| answer.state.reveal() == state);
    let (status, text) = match &answer {
        Some(_) => (
            "200 OK",
            "You can close this page, and continue in the terminal.\n",
        ),
        None => ("404 Not Found", "Nothing is here.\n"),
    };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    );
    visitor.write_all(response.as_bytes()).await?;
    visitor.shutdown().await?;
    answer.context("another request")
}
