//! `weir audit collect`: the chains of all machines in one folder, to be verified together.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use reqwest::Method;
use weir::{app::open_bucket, config::Config};
use weir_audit::{ChainFiles, CollectedHeads, CollectedTrail, SegmentFile};

use crate::{
    Failure,
    admin::{Api, Target, path},
    block_on,
};

/// The bytes of one segment that are taken from a machine, at most.
const SEGMENT_MAX_BYTES: usize = 1 << 30;

/// Collect the chains of all machines into one folder, for `weir audit verify --folder FOLDER`
#[derive(Args)]
pub(super) struct Collect {
    /// The folder, which is made if need be; what lies in it stays and is gone on with
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// The admin API of a machine; repeat it for each. By default that of --admin or of the state folder. Or s3://BUCKET/PREFIX, with
    /// copies, as `[audit]` of weir.toml has it
    #[arg(long, value_name = "URL")]
    from: Vec<String>,
    #[command(flatten)]
    target: Target,
}

impl Collect {
    /// Returns `true` if every machine gave all of its data.
    pub(super) fn run(&self) -> Result<bool, Failure> {
        let own = [None];
        let named: Vec<Option<&str>> = self.from.iter().map(|url| Some(url.as_str())).collect();
        let machines = if named.is_empty() { &own[..] } else { &named };
        let trail = CollectedTrail::begin(&self.to)
            .with_context(|| format!("{} cannot be written", self.to.display()))?;
        // The heads come first: records written after them are more than the heads demand.
        let (mut reached, mut whole) = (Vec::new(), true);
        let (buckets, machines): (Vec<_>, Vec<_>) = machines
            .iter()
            .partition(|machine| machine.is_some_and(|url| url.starts_with("s3://")));
        for machine in &machines {
            match block_on(self.collect_heads(&trail, *machine))? {
                Ok(api) => reached.push((machine, api)),
                Err(error) => warn(*machine, &error),
            }
        }
        whole &= reached.len() == machines.len();
        for url in buckets.iter().copied().flatten() {
            if let Err(error) = block_on(self.collect_copies(&trail, url))? {
                whole = false;
                warn(Some(url), &error);
            }
        }
        for (machine, api) in &reached {
            if let Err(error) = block_on(collect_chains(&trail, api))? {
                whole = false;
                warn(**machine, &error);
            }
        }
        if reached.is_empty() && buckets.is_empty() {
            return Err(anyhow::anyhow!("no machine gave its chains").into());
        }
        eprintln!(
            "verify them together: weir audit verify --folder {}",
            self.to.display()
        );
        Ok(whole)
    }

    async fn collect_copies(&self, trail: &CollectedTrail, url: &str) -> anyhow::Result<()> {
        let mut config = self
            .target
            .settings()
            .config()
            .unwrap_or_else(|_| Config::bare(Path::new(".")));
        config.audit.copies = Some(url.to_owned());
        let bucket = open_bucket(&config)?.context("it is no bucket")?;
        for chain in bucket.chains().await? {
            for (segment, lines) in bucket.segments(&chain).await? {
                trail.put_segment(&chain, segment, &lines)?;
            }
        }
        Ok(())
    }

    async fn collect_heads(
        &self,
        trail: &CollectedTrail,
        machine: Option<&str>,
    ) -> anyhow::Result<Api> {
        let api = self
            .target
            .api_at(machine)
            .map_err(|failure| match failure {
                Failure::Other(error) => error,
                Failure::Problems(_) => anyhow::anyhow!("the configuration has problems"),
            })?;
        let heads = api.ask(Method::GET, "/v1/audit/heads", None).await?;
        let heads: CollectedHeads =
            serde_json::from_value(heads).context("it answered with no list of heads")?;
        trail.put_heads(heads)?;
        Ok(api)
    }
}

fn warn(machine: Option<&str>, error: &anyhow::Error) {
    eprintln!("{}: {error:#}", machine.unwrap_or("this gateway"));
}

async fn collect_chains(trail: &CollectedTrail, api: &Api) -> anyhow::Result<()> {
    let chains = api.ask(Method::GET, "/v1/audit/chains", None).await?;
    let chains: Vec<ChainFiles> =
        serde_json::from_value(chains).context("it answered with no list of chains")?;
    for ChainFiles {
        chain, segments, ..
    } in &chains
    {
        for SegmentFile { number, .. } in segments {
            let place = path(&["v1", "audit", "chains", chain.as_str(), &number.to_string()]);
            let mut lines = Vec::new();
            loop {
                let part = api.read(&format!("{place}?from={}", lines.len())).await?;
                if part.is_empty() {
                    break;
                }
                if lines.len() + part.len() > SEGMENT_MAX_BYTES {
                    anyhow::bail!("its segment {chain}/{number} is longer than any");
                }
                lines.extend_from_slice(&part);
            }
            trail.put_segment(chain, *number, &lines)?;
        }
    }
    Ok(())
}
