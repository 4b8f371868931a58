//! Measures what a record costs: `cargo run --release -p weir-audit --example append -- FOLDER [THREADS]`.
//!
//! Appends 400,000 records of a usual length in total and prints how long one `append` took.

use std::{
    env,
    io::{Write as _, stdout},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use weir_audit::{AuditEvent, AuditOutcome, AuditTrail, AuditedCall, CallDetails, TrailSettings};

const RECORDS: usize = 400_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: append FOLDER [THREADS]")?);
    let threads: usize = arguments.next().map_or(Ok(1), |threads| threads.parse())?;
    let trail = AuditTrail::open(
        &folder,
        TrailSettings {
            process: "bench".into(),
            ..TrailSettings::default()
        },
    )?;
    let began = Instant::now();
    let mut times: Vec<Duration> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| append(&trail, RECORDS / threads)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no append panics"))
            .collect()
    });
    let total = began.elapsed();
    let bytes = trail.health().bytes / trail.health().records;
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let rate = times.len() as f64 / total.as_secs_f64();
    writeln!(
        stdout(),
        "{threads} threads, {bytes} bytes a record: {rate:.0} records/s"
    )?;
    writeln!(
        stdout(),
        "p50 {:?}  p99 {:?}  p99.9 {:?}  max {:?}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    )?;
    Ok(())
}

fn append(trail: &AuditTrail, count: usize) -> Vec<Duration> {
    let clear = json!({"iata": "ZRH"}).as_object().cloned();
    let about = CallDetails {
        call_id: "c_9f3c2a01b7d4e5f6",
        agent: "ada",
        tenant: "north",
        holder: None,
        tool: Some("airports_find"),
        contract: Some("airports@1.2.0"),
        arguments_digest: Some("4be1b9db9b6ad0c7e59f0a4bb2f7e8f2c7ac0a0b6f21c5d7a0d1c6f0f1d3a5b7"),
        clear: clear.as_ref(),
        trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        transport: "http",
        protocol: Some("2025-11-25"),
        upstream: None,
        item: None,
        asked: None,
        hidden: None,
        plugin: Some("7c1f0d5ad7b2b3b8f0b6a4e7f6f0b6a4e7f6f0b6a4e7f6f0b6a4e7f6f0b6a4e7"),
        policy: None,
        approval: None,
    };
    let event = AuditEvent::Call(AuditedCall {
        about,
        outcome: AuditOutcome::Ok,
        code: None,
        reason: None,
        ms: 1.234,
    });
    let one = |_| {
        let began = Instant::now();
        trail.append(&event).expect("the folder can be written");
        began.elapsed()
    };
    (0..count).map(one).collect()
}
