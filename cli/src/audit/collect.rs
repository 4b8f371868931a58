//! `weir audit collect`: the chains of all machines in one folder, to be verified together.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use reqwest::Method;
use weir::{app::open_bucket, config::GatewayConfig};
use weir_audit::{
    ChainFiles, ChainName, CollectedHeads, CollectedSegment, CollectedTrail, SegmentFile,
};
use weir_copies::CopyError;

use crate::{
    AppError,
    admin::{AdminClient, AdminTarget, path},
    block_on,
};

/// Collect the chains of all machines into one folder, for `weir audit verify --folder FOLDER`
#[derive(Args)]
pub(super) struct CollectArgs {
    /// The folder, which is made if need be; chains that it has already are continued
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// The admin API of a machine; repeat it for each. By default that of --admin or of the state folder. Or s3://BUCKET/PREFIX, with
    /// copies, as `[audit]` of weir.toml has it
    #[arg(long, value_name = "URL")]
    from: Vec<String>,
    #[command(flatten)]
    target: AdminTarget,
}

impl CollectArgs {
    /// Returns `true` if every machine gave all of its data.
    pub(super) fn run(&self) -> Result<bool, AppError> {
        let own = [None];
        let named: Vec<Option<&str>> = self.from.iter().map(|url| Some(url.as_str())).collect();
        let machines = if named.is_empty() { &own[..] } else { &named };
        let trail = CollectedTrail::begin(&self.to)
            .with_context(|| format!("{} cannot be written", self.to.display()))?;
        // The heads come first: records that are written later go beyond what they require.
        let (mut reached, mut collected) = (Vec::new(), CollectionRun::new(&trail));
        let (buckets, machines): (Vec<_>, Vec<_>) = machines
            .iter()
            .partition(|machine| machine.is_some_and(|url| url.starts_with("s3://")));
        for machine in &machines {
            match block_on(self.collect_heads(&trail, *machine))? {
                Ok(api) => reached.push((machine, api)),
                Err(error) => collected.fail(*machine, &error),
            }
        }
        for url in buckets.iter().copied().flatten() {
            if let Err(error) = block_on(self.collect_copies(&mut collected, url))? {
                collected.fail(Some(url), &error);
            }
        }
        for (machine, api) in &reached {
            if let Err(error) = block_on(collected.collect_chains(api, **machine))? {
                collected.fail(**machine, &error);
            }
        }
        if reached.is_empty() && buckets.is_empty() {
            return Err(anyhow::anyhow!("no machine returned its chains").into());
        }
        collected.warn_of_gaps()?;
        eprintln!(
            "verify them together: weir audit verify --folder {}",
            self.to.display()
        );
        Ok(collected.is_whole)
    }

    async fn collect_copies(
        &self,
        collected: &mut CollectionRun<'_>,
        url: &str,
    ) -> anyhow::Result<()> {
        let mut config = self
            .target
            .settings()
            .config()
            .unwrap_or_else(|_| GatewayConfig::bare(Path::new(".")));
        config.audit.copies = Some(url.to_owned());
        let bucket = open_bucket(&config)?.context("it is not a bucket")?;
        for chain in bucket.chains().await? {
            // Its gaps are looked for even if a part of it cannot be read.
            collected.chains.insert(chain.clone());
            for segment in bucket.segments(&chain).await? {
                match bucket
                    .collect_segment(&chain, segment, collected.trail)
                    .await
                {
                    Err(CopyError::Collected(error)) => {
                        collected.refuse(Some(url), error)?;
                    }
                    done => done?,
                }
            }
        }
        Ok(())
    }

    async fn collect_heads(
        &self,
        trail: &CollectedTrail,
        machine: Option<&str>,
    ) -> anyhow::Result<AdminClient> {
        let api = self
            .target
            .api_at(machine)
            .map_err(|failure| match failure {
                AppError::Other(error) => error,
                AppError::Problems(_) => anyhow::anyhow!("the configuration has problems"),
            })?;
        let heads = api.ask(Method::GET, "/v1/audit/heads", None).await?;
        let mut heads: CollectedHeads =
            serde_json::from_value(heads).context("it answered with no list of heads")?;
        // A gateway that does not share its state has no name.
        for head in heads.heads.iter_mut().filter(|head| head.node.is_empty()) {
            head.node = machine.unwrap_or("this gateway").to_owned();
        }
        trail.put_heads(heads)?;
        Ok(api)
    }
}

/// What was collected in this run.
struct CollectionRun<'a> {
    trail: &'a CollectedTrail,
    chains: BTreeSet<ChainName>,
    /// Whether every machine gave all that it has.
    is_whole: bool,
}

impl<'a> CollectionRun<'a> {
    fn new(trail: &'a CollectedTrail) -> Self {
        Self {
            trail,
            chains: BTreeSet::new(),
            is_whole: true,
        }
    }

    fn fail(&mut self, machine: Option<&str>, error: &anyhow::Error) {
        self.is_whole = false;
        eprintln!("{}: {error:#}", machine.unwrap_or("this gateway"));
    }

    /// Goes on after a segment whose lines are refused. Another error, as of a full disk, ends it.
    fn refuse(&mut self, machine: Option<&str>, error: io::Error) -> io::Result<()> {
        if error.kind() != io::ErrorKind::InvalidData {
            return Err(error);
        }
        self.fail(machine, &error.into());
        Ok(())
    }

    async fn collect_chains(
        &mut self,
        api: &AdminClient,
        machine: Option<&str>,
    ) -> anyhow::Result<()> {
        let chains = api.ask(Method::GET, "/v1/audit/chains", None).await?;
        let chains: Vec<ChainFiles> =
            serde_json::from_value(chains).context("it answered with no list of chains")?;
        for ChainFiles {
            chain, segments, ..
        } in chains
        {
            self.chains.insert(chain.clone());
            for SegmentFile { number, .. } in segments {
                let mut segment = self.trail.begin_segment(&chain, number)?;
                let is_whole = read_segment(api, &chain, number, &mut segment).await?;
                if let Err(error) = segment.finish() {
                    self.refuse(machine, error)?;
                }
                if !is_whole {
                    let gone = format!(
                        "segment {number} of {chain} was listed and is missing: removed since, or the URL leads to several machines"
                    );
                    self.fail(machine, &anyhow::anyhow!(gone));
                }
            }
        }
        Ok(())
    }

    /// Names the records that are missing between others.
    fn warn_of_gaps(&mut self) -> anyhow::Result<()> {
        for chain in std::mem::take(&mut self.chains) {
            for missing in self.trail.missing_records(&chain)? {
                self.is_whole = false;
                let (first, last) = missing.into_inner();
                eprintln!("{chain}: the records {first} to {last} are missing");
            }
        }
        Ok(())
    }
}

/// Reads a segment to its end. Returns `false` if it does not exist.
async fn read_segment(
    api: &AdminClient,
    chain: &ChainName,
    number: u32,
    to: &mut CollectedSegment,
) -> anyhow::Result<bool> {
    let place = path(&["v1", "audit", "chains", chain.as_str(), &number.to_string()]);
    loop {
        let from = to.bytes();
        let Some(mut lines) = api.open(&format!("{place}?from={from}")).await? else {
            return Ok(false);
        };
        while let Some(part) = lines.chunk().await? {
            to.write(&part)?;
        }
        if to.bytes() == from {
            return Ok(true);
        }
    }
}
