//! ContextForge: a gateway, so the echo tool is behind it in a separate server, on the generator's core.

use std::process::Command;

use anyhow::{Context, bail};
use serde_json::json;

use crate::{
    place::{BenchPaths, free_port},
    process::{MeasuredProcess, START_MAX},
    rows::Start,
    weir::serve_upstream,
};

/// ContextForge's name for the tool `lookup_ticket` of the gateway `desk`.
pub(crate) const TOOL: &str = "desk-lookup-ticket";
const AGENT: &str = "bench@example.com";
/// A secret that is long enough: ContextForge refuses to start with short ones.
const SECRET: &str = "a-secret-of-a-measurement-on-loopback-0123456789";

/// The gateway with its tool registered, a token for it, and the server behind it.
pub(crate) struct ContextForge {
    pub(crate) start: Start,
    pub(crate) token: String,
    pub(crate) upstream: MeasuredProcess,
}

pub(crate) fn set_up(place: &BenchPaths) -> anyhow::Result<ContextForge> {
    let bin = place.peer("bench-contextforge").join("bin");
    let folder = place.peer_folder("contextforge")?;
    let database = format!("sqlite:///{}", folder.join("gateway.db").display());
    let program = bin.join("mcpgateway");
    if !program.exists() {
        bail!("{} is not installed", program.display());
    }
    let start: Start = Box::new(move |_, port| {
        let mut command = Command::new(&program);
        command
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .current_dir(&folder);
        for name in [
            "JWT_SECRET_KEY",
            "AUTH_ENCRYPTION_SECRET",
            "CSRF_SECRET_KEY",
        ] {
            command.env(name, SECRET);
        }
        for name in [
            "BASIC_AUTH_PASSWORD",
            "PLATFORM_ADMIN_PASSWORD",
            "DEFAULT_USER_PASSWORD",
        ] {
            command.env(name, format!("Bench-{SECRET}"));
        }
        // Its rates are those of a minute; as for Weir they are counted and not reached.
        for name in [
            "RATE_LIMIT_MEDIUM_RPM",
            "RATE_LIMIT_LOW_RPM",
            "RATE_LIMIT_HIGH_RPM",
            "TOOL_RATE_LIMIT",
        ] {
            command.env(name, "1000000000");
        }
        command
            .env("PLATFORM_ADMIN_EMAIL", AGENT)
            .env("DATABASE_URL", &database)
            .env("LOG_LEVEL", "ERROR");
        command
            .env("SSRF_ALLOW_LOCALHOST", "true")
            .env("SSRF_ALLOW_PRIVATE_NETWORKS", "true");
        command
    });
    let mut token = Command::new(bin.join("python"));
    token.args([
        "-m",
        "mcpgateway.utils.create_jwt_token",
        "--admin",
        "--exp",
        "10080",
        "--username",
        AGENT,
    ]);
    let made = token
        .args(["--secret", SECRET])
        .env("JWT_SECRET_KEY", SECRET)
        .output()?;
    let made = String::from_utf8_lossy(&made.stdout).into_owned();
    let token = made
        .lines()
        .last()
        .context("no token was made")?
        .trim()
        .to_owned();

    let (upstream, url) = serve_upstream(place)?;
    register(place, &start, &token, &url)?;
    Ok(ContextForge {
        start,
        token,
        upstream,
    })
}

/// Registers the server on a first start, which also makes the database.
fn register(place: &BenchPaths, start: &Start, token: &str, url: &str) -> anyhow::Result<()> {
    let port = free_port()?;
    let log = place.peer_folder("contextforge")?.join("first.log");
    let mut gateway = MeasuredProcess::start(&start(place, port), &place.server_core, &log)?;
    gateway.wait(START_MAX, || {
        ureq::get(&format!("http://127.0.0.1:{port}/health"))
            .call()
            .is_ok()
    })?;
    let body = json!({ "name": "desk", "url": url, "transport": "STREAMABLEHTTP" }).to_string();
    ureq::post(&format!("http://127.0.0.1:{port}/gateways"))
        .header("authorization", &format!("Bearer {token}"))
        .header("content-type", "application/json")
        .send(body)
        .context("the server behind it cannot be registered")?;
    gateway.stop()
}
