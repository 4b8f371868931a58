//! `weir audit`: lists calls and their callers, and proves that no record was changed since. Reads the trail in the state
//! folder; no gateway needs to run.

use std::{
    io::{self, BufWriter, ErrorKind, StdoutLock, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use rustix::fs::Access;
use serde_json::value::RawValue;
use tempfile::TempDir;
use weir::{
    config::{GatewayConfig, LogConfig},
    telemetry,
};
use weir_audit::{ArgumentsKey, AuditFilter, ExportFormat, RECORD_KINDS, command, parse_time};
use weir_state::{FILE, GatewayState, SecretPurpose};

use self::{collect::CollectArgs, verify::AuditVerifyArgs};
use super::{AppError, CliSettings, Done, block_on};

mod collect;
mod verify;

/// Copies of a state that are tried, where it changes meanwhile.
const COPIES_MAX: usize = 5;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Subcommand)]
enum AuditCommand {
    /// Check that no record was changed, deleted, moved or cut; with receipts also that those records are there
    Verify(AuditVerifyArgs),
    /// Print the digest that the trail records for arguments, to look for their calls: `weir audit query --text DIGEST`
    Digest {
        /// The JSON of the arguments, byte for byte as they were sent; `-` for stdin
        arguments: String,
        #[command(flatten)]
        settings: CliSettings,
    },
    /// Print the records that match
    Query {
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        bound: RecordBound,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: TrailArgs,
    },
    /// Print the latest records, and with --follow new ones as they are written
    Tail {
        /// The number of records
        #[arg(short = 'n', long, alias = "limit", default_value_t = 20)]
        lines: usize,
        /// Continue with records as they are written
        #[arg(short, long)]
        follow: bool,
        #[command(flatten)]
        filter: FilterArgs,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: TrailArgs,
    },
    Collect(CollectArgs),
    /// Write the records that match to stdout, for a spreadsheet or another system
    Export {
        /// How records are written
        #[arg(long, value_enum, default_value_t = AuditExportFormat::Jsonl)]
        format: AuditExportFormat,
        #[command(flatten)]
        filter: FilterArgs,
        #[command(flatten)]
        bound: RecordBound,
        #[command(flatten)]
        place: TrailArgs,
    },
}

#[derive(Args)]
struct TrailArgs {
    /// The folder of the trail; by default `audit` in the state folder
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    settings: CliSettings,
}

#[derive(Args)]
struct FilterArgs {
    /// Records from this time on: 2026-11-22, 2026-11-22T10:00:00Z, or 90s, 15m, 2h, 7d ago
    #[arg(long, value_parser = parse_time)]
    since: Option<jiff::Timestamp>,
    /// Records until this time
    #[arg(long, value_parser = parse_time)]
    until: Option<jiff::Timestamp>,
    /// Only records of this kind; may be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = RECORD_KINDS)]
    kinds: Vec<String>,
    /// Only calls of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only calls of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only calls of this contract, such as support, or one version of it, such as support@1.2.0
    #[arg(long, value_name = "NAME")]
    contract: Option<String>,
    /// The outcome of calls; the error itself is in `code`
    #[arg(long, value_parser = ["ok", "refused", "failed", "cancelled", "unknown"])]
    outcome: Option<String>,
    /// The call of this id, as errors and log lines name it
    #[arg(long, value_name = "ID")]
    call_id: Option<String>,
    /// Records that contain this text
    #[arg(long)]
    text: Option<String>,
}

#[derive(Args)]
struct RecordBound {
    /// The largest number of records: the oldest of those that match
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum AuditExportFormat {
    Jsonl,
    Csv,
}

impl AuditArgs {
    pub(super) fn run(self) -> Done {
        // The log names the chains that this user cannot read, whose records are left out.
        telemetry::check_variable()?;
        telemetry::start(&LogConfig {
            filter: Some("off,weir_audit=warn".to_owned()),
            ..LogConfig::default()
        })?;
        let mut out = BufWriter::new(AuditOutput(io::stdout().lock()));
        let done = match self.command {
            AuditCommand::Verify(verify) => match verify.run(&mut out)? {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            },
            AuditCommand::Collect(collect) => match collect.run()? {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            },
            AuditCommand::Digest {
                arguments,
                settings,
            } => {
                digest(&arguments, &settings, &mut out)?;
                ExitCode::SUCCESS
            }
            AuditCommand::Query {
                filter,
                bound,
                json,
                place,
            } => {
                let filter = filter.read(bound.limit)?;
                command::query(&place.folder()?, filter, json, &mut out)
                    .map_err(anyhow::Error::from)?;
                ExitCode::SUCCESS
            }
            AuditCommand::Tail {
                lines,
                follow,
                filter,
                json,
                place,
            } => {
                let (folder, filter) = (place.folder()?, filter.read(None)?);
                command::tail(&folder, filter, lines, follow, json, &mut out)
                    .map_err(anyhow::Error::from)?;
                ExitCode::SUCCESS
            }
            AuditCommand::Export {
                format,
                filter,
                bound,
                place,
            } => {
                let filter = filter.read(bound.limit)?;
                let format = match format {
                    AuditExportFormat::Jsonl => ExportFormat::JsonLines,
                    AuditExportFormat::Csv => ExportFormat::Csv,
                };
                command::export(&place.folder()?, filter, format, &mut out)
                    .map_err(anyhow::Error::from)?;
                ExitCode::SUCCESS
            }
        };
        out.flush()?;
        Ok(done)
    }
}

/// The output of a command, which ends where it cannot be written: the trail that it reads is not at fault.
struct AuditOutput(StdoutLock<'static>);

impl AuditOutput {
    fn end<T>(done: io::Result<T>) -> io::Result<T> {
        match done {
            // A write that was interrupted is tried again.
            Err(error)
                if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) =>
            {
                eprintln!("weir: the output cannot be written: {error}");
                std::process::exit(1);
            }
            done => done,
        }
    }
}

impl Write for AuditOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::end(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::end(self.0.flush())
    }
}

/// Writes the digest of the arguments as they are given, and that of the same without spaces if it differs: only the client
/// can tell which one it sent.
fn digest(arguments: &str, settings: &CliSettings, out: &mut dyn Write) -> Result<(), AppError> {
    let mut text = arguments.to_owned();
    if arguments == "-" {
        text = std::io::read_to_string(std::io::stdin())?;
        let whole = text.trim_end_matches(['\r', '\n']).len();
        text.truncate(whole);
    }
    serde_json::from_str::<&RawValue>(&text)
        .map_err(|error| anyhow::anyhow!("the arguments are not JSON: {error}"))?;
    let config = settings.config().unwrap_or_else(|_| {
        let mut bare = GatewayConfig::bare(Path::new("."));
        bare.folders.state = settings.state_folder();
        bare
    });
    let key = block_on(arguments_key(&config))??;
    writeln!(out, "{}  as given", key.digest(text.as_bytes()))?;
    let shortest = without_spaces(&text);
    if shortest != text {
        writeln!(out, "{}  without spaces", key.digest(shortest.as_bytes()))?;
    }
    Ok(())
}

/// Returns JSON without the spaces between its tokens. Nothing else changes: `1.0` and `\u00e9` are kept as a client
/// writes them.
fn without_spaces(text: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let ends = *character == '"' && !is_escaped;
        is_escaped = is_text && *character == '\\' && !is_escaped;
        is_text ^= ends;
        is_text || !matches!(character, ' ' | '\t' | '\n' | '\r')
    };
    text.chars().filter(is_kept).collect()
}

/// Reads the key of the digests. Nothing is made: a state that has none has digested nothing.
async fn arguments_key(config: &GatewayConfig) -> anyhow::Result<ArgumentsKey> {
    let folder = &config.folders.state;
    let read = match config.open_state_to_read().await {
        Ok(state) => state.known_secret(SecretPurpose::Arguments).await,
        Err(error) => Err(error),
    };
    let key = match read {
        // SQLite makes a file next to the one it reads, which this folder does not allow.
        Err(_)
            if config.state.url.is_none()
                && rustix::fs::access(folder, Access::WRITE_OK).is_err() =>
        {
            let copy = copied_state(folder)?;
            let state = GatewayState::open_to_read(copy.path()).await?;
            state.known_secret(SecretPurpose::Arguments).await?
        }
        read => read?,
    };
    let shown = folder.display();
    let key = key.with_context(|| format!("the state of {shown} has no key for arguments yet"))?;
    Ok(ArgumentsKey::new(&key))
}

/// Copies a state, including the parts that are not in its main file yet, to a folder of this user's own.
fn copied_state(folder: &Path) -> anyhow::Result<TempDir> {
    let files = [&format!("{FILE}-wal"), FILE].map(|name| folder.join(name));
    let stamps = || {
        let stamp = |path: &PathBuf| {
            path.metadata()
                .and_then(|it| Ok((it.len(), it.modified()?)))
        };
        files.each_ref().map(|path| stamp(path).ok())
    };
    for _ in 0..COPIES_MAX {
        let (copy, before) = (tempfile::tempdir()?, stamps());
        for path in files.iter().filter(|path| path.exists()) {
            let name = path.file_name().context("a file has a name")?;
            std::fs::copy(path, copy.path().join(name))
                .with_context(|| format!("{} cannot be read", path.display()))?;
        }
        if stamps() == before {
            return Ok(copy);
        }
    }
    anyhow::bail!(
        "the state in {} changes too often to be read here",
        folder.display()
    )
}

impl TrailArgs {
    fn folder(&self) -> Result<PathBuf, AppError> {
        trail_folder(self.folder.as_deref(), &self.settings)
    }
}

/// Returns the folder of the trail, after a check that it exists.
fn trail_folder(folder: Option<&Path>, settings: &CliSettings) -> Result<PathBuf, AppError> {
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None => settings.state_folder().join("audit"),
    };
    std::fs::metadata(&folder)
        .with_context(|| format!("there is no audit trail in {}", folder.display()))?;
    Ok(folder)
}

impl FilterArgs {
    fn read(self, limit: Option<u32>) -> anyhow::Result<AuditFilter> {
        let filter = AuditFilter {
            since: self.since,
            until: self.until,
            kinds: self.kinds,
            agent: self.agent,
            tenant: self.tenant,
            tool: self.tool,
            contract: self.contract,
            outcome: self.outcome,
            call_id: self.call_id,
            text: self.text,
            limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            before: None,
        };
        anyhow::ensure!(
            !filter.has_no_time(),
            "--until must be later than --since: records of the time of --until are not among those that match"
        );
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_between_words_are_left_out_alone() {
        for (text, expected) in [
            (r#"{ "a" : 1.0, "b": [ 1e2 ] }"#, r#"{"a":1.0,"b":[1e2]}"#),
            (
                "{\n\t\"a b\": \"\\u00e9 \\\" \\\\\" ,\r\n \"c\": \"\\/\"}",
                "{\"a b\":\"\\u00e9 \\\" \\\\\",\"c\":\"\\/\"}",
            ),
        ] {
            assert_eq!(without_spaces(text), expected);
        }
    }
}
