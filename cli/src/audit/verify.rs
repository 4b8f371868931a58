//! `weir audit verify`: the trail of a folder, of a gateway that runs, or the proof of one record.

use std::{
    fs::File,
    io::{Read as _, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use reqwest::Method;
use serde_json::json;
use weir_audit::{AuditReceipt, PROOF_MAX_BYTES, RecordProof, TrailReport, command};

use super::trail_folder;
use crate::{AppError, admin::AdminTarget, block_on};

/// Check that no record was changed, deleted, moved or cut; with receipts also that those records are there
#[derive(Args)]
pub(super) struct AuditVerifyArgs {
    /// Receipts that agents kept: `_meta` → `dev.weir/receipt` of a result
    receipts: Vec<AuditReceipt>,
    /// The folder of the trail; by default `audit` in the state folder or, with --admin, the trail of that gateway
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// The proof of one record, checked without a trail. It is proven by a receipt: without a receipt the exit code is 1
    #[arg(long, value_name = "PROOF", conflicts_with = "folder")]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: AdminTarget,
}

impl AuditVerifyArgs {
    /// Returns `true` if nothing was found, and a proof is proven.
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<bool, AppError> {
        let (receipts, json) = (&self.receipts, self.target.json);
        if let Some(file) = &self.file {
            let proof = read_proof(file)?;
            let report = proof
                .check(receipts)
                .with_context(|| format!("{} proves nothing", file.display()))?;
            return Ok(command::report_proof(&report, json, out)?);
        }
        if self.folder.is_none() && self.target.is_elsewhere() {
            let api = self.target.api()?;
            let body = json!({ "receipts": receipts });
            let answer = block_on(api.ask(Method::POST, "/v1/audit/verify", Some(&body)))??;
            let report: TrailReport = serde_json::from_value(answer)
                .context("the gateway answered with no report of a trail")?;
            return Ok(command::report_answer(&report, json, out)?);
        }
        let folder = trail_folder(self.folder.as_deref(), self.target.settings())?;
        Ok(command::verify(&folder, receipts, json, out).map_err(anyhow::Error::from)?)
    }
}

fn read_proof(file: &Path) -> anyhow::Result<RecordProof> {
    let unread = || format!("{} cannot be read", file.display());
    let mut text = String::new();
    let opened = File::open(file).with_context(unread)?;
    let bytes = opened
        .take(PROOF_MAX_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(unread)?;
    if bytes as u64 > PROOF_MAX_BYTES {
        anyhow::bail!("{} is longer than any proof of a record", file.display());
    }
    RecordProof::parse(&text).with_context(|| format!("{} proves nothing", file.display()))
}
