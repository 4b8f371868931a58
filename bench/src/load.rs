//! Defines the input and the output of the generator: JSON in and out of `bench-load`.

use serde::{Deserialize, Serialize};

/// The calls that are to be made.
#[derive(Debug, Serialize, Deserialize)]
pub struct GeneratorPlan {
    pub path: String,
    pub connections: Vec<GeneratorConnection>,
    pub body: String,
    /// The calls over all connections.
    pub calls: u64,
    /// Calls a second, over all connections; without it as fast as answers come.
    pub rate: Option<u64>,
    /// The server needs the generator's core too: it sleeps for moments instead of asking without end.
    pub shares_its_core: bool,
}

/// A connection: the server, and the headers that go with each call.
#[derive(Debug, Serialize, Deserialize)]
pub struct GeneratorConnection {
    /// `127.0.0.1:8080`
    pub address: String,
    pub headers: Vec<(String, String)>,
}

/// The measurement: latencies in microseconds, and the bytes of all bodies together.
#[derive(Debug, Serialize, Deserialize)]
pub struct GeneratorReport {
    pub calls: u64,
    pub seconds: f64,
    pub body_bytes: u64,
    pub p50_us: f64,
    pub p99_us: f64,
}

/// Returns the median and the 99th percentile.
pub fn quantiles(times: &mut [u32]) -> (f64, f64) {
    times.sort_unstable();
    let last = times.len().saturating_sub(1) as f64;
    let quantile = |share: f64| {
        times
            .get((last * share) as usize)
            .copied()
            .map_or(f64::NAN, f64::from)
    };
    (quantile(0.50), quantile(0.99))
}
