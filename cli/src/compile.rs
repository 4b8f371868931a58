//! `weir compile`: the tools an agent would see, as one JSON document.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use weir::control;
use weir_contracts::{
    CollectionShape, CompiledContract, FileProblem, compile, compiled_document, form,
    upstream::{self, ResourceMode, UpstreamOptions, UpstreamOverlay},
};

use super::{AppError, CliSettings, Done, block_on, start};

#[derive(Args)]
pub(super) struct CompileArgs {
    /// A contract, a form or a list of forms, JSON or YAML; `-` for stdin
    file: PathBuf,
    /// Print problems as JSON on stdout
    #[arg(long)]
    json: bool,
    /// The file is what another server offers, as `weir extract` prints it
    #[arg(long, conflicts_with = "shape")]
    offer: bool,
    /// The overlay: what is published of an offer, and what is changed
    #[arg(long, value_name = "FILE", requires = "offer")]
    overlay: Option<PathBuf>,
    /// The name of the server, instead of the overlay's or the file's name
    #[arg(long, value_name = "NAME", requires = "offer")]
    upstream: Option<String>,
    #[command(flatten)]
    shapes: ShapeArgs,
}

/// The sources of the shapes of collections.
#[derive(Args)]
pub(super) struct ShapeArgs {
    /// The shape of a collection, instead of asking its source: COLLECTION=SHAPE.json
    #[arg(long, value_name = "COLLECTION=FILE")]
    shape: Vec<String>,
    #[command(flatten)]
    pub(super) settings: CliSettings,
}

impl CompileArgs {
    pub(super) fn run(self) -> Done {
        match self.compile() {
            Ok(document) => {
                println!(
                    "{}",
                    serde_json::to_string_pretty(&document).expect("plain JSON")
                );
                Ok(ExitCode::SUCCESS)
            }
            Err(AppError::Problems(problems)) if self.json => {
                println!(
                    "{}",
                    serde_json::to_string_pretty(&json!({ "problems": problems }))
                        .expect("plain JSON")
                );
                Ok(ExitCode::FAILURE)
            }
            Err(failure) => Err(failure),
        }
    }

    fn compile(&self) -> Result<serde_json::Value, AppError> {
        let file = self.file.display().to_string();
        let text = text(&self.file)?;
        match self.offer {
            true => self.offered(&text),
            false => Ok(compiled_document(&self.shapes.contract(&file, &text)?)),
        }
    }

    /// Returns an agent's view of another server, and prints what was left out and what is published differently.
    fn offered(&self, document: &str) -> Result<serde_json::Value, AppError> {
        let overlay = match &self.overlay {
            Some(file) => Some(UpstreamOverlay::read(
                &file.display().to_string(),
                &text(file)?,
            )?),
            None => None,
        };
        let of_file = self
            .file
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let named = self
            .upstream
            .as_deref()
            .or(overlay.as_ref().map(|overlay| overlay.upstream.as_str()));
        let name = named.unwrap_or(if of_file == "-" { "upstream" } else { of_file });
        let upstream = UpstreamOptions {
            name,
            contract: name,
            overlay: overlay.as_ref(),
            resources: ResourceMode::Pinned,
            ..UpstreamOptions::default()
        };
        let compiled = upstream::compile(&upstream, document)?;
        let mut shown = compiled_document(&compiled.contract);
        for (member, problems) in [("left_out", &compiled.left_out), ("notes", &compiled.notes)] {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            if !problems.is_empty() {
                shown[member] = json!(problems);
            }
        }
        Ok(shown)
    }
}

fn text(file: &Path) -> Result<String, AppError> {
    let refused = |error: anyhow::Error| {
        FileProblem::new(&file.display().to_string(), "", format!("{error:#}"))
    };
    read(file).map_err(|error| AppError::Problems(vec![refused(error)]))
}

impl ShapeArgs {
    /// Compiles the text of a contract, with the shapes given and those of a configuration that can be asked.
    pub(super) fn contract(&self, file: &str, text: &str) -> Result<CompiledContract, AppError> {
        let source = form::read(file, text)?;
        let mut shapes = self.shapes()?;
        let missing: Vec<&form::FormCollection> = source
            .collections
            .iter()
            .filter(|collection| !shapes.contains_key(&collection.name))
            .collect();
        if !missing.is_empty() && self.settings.present() {
            let (described, mut problems) = block_on(self.describe(&source, &missing))??;
            shapes.extend(described);
            if !problems.is_empty() {
                // Problems of the file are reported in any case.
                problems.extend(
                    compile::compile_known(&source, &shapes)
                        .err()
                        .unwrap_or_default(),
                );
                return Err(problems.into());
            }
        }
        Ok(compile::compile(&source, &shapes)?)
    }

    /// Compiles the text as far as the shapes are known: those given, those a gateway recorded, and those its sources
    /// report now. Also returns the collections whose shape is not known.
    pub(super) fn contract_as_known(
        &self,
        file: &str,
        text: &str,
    ) -> Result<(CompiledContract, Vec<String>), AppError> {
        let source = form::read(file, text)?;
        let mut shapes = self.shapes()?;
        if self.settings.present() {
            let config = self.settings.config()?;
            let recorded = block_on(control::recorded_shapes(&config, &source))?
                .map_err(anyhow::Error::from)?;
            let mut known = shapes.clone();
            for (collection, shape) in recorded {
                known.entry(collection).or_insert(shape);
            }
            // A recorded shape has only what the tools needed at that time: new ones may need what only the source can tell.
            if compile::compile_known(&source, &known).is_ok() {
                shapes = known.clone();
            }
            let missing: Vec<&form::FormCollection> = source
                .collections
                .iter()
                .filter(|collection| !shapes.contains_key(&collection.name))
                .collect();
            // The collection of an unreachable source remains unknown; its contents are not checked here.
            if !missing.is_empty()
                && let Ok(Ok((described, _))) = block_on(self.describe(&source, &missing))
            {
                shapes.extend(described);
            }
            for (collection, shape) in known {
                shapes.entry(collection).or_insert(shape);
            }
        }
        Ok(compile::compile_known(&source, &shapes)?)
    }

    fn shapes(&self) -> Result<BTreeMap<String, CollectionShape>, AppError> {
        let mut shapes = BTreeMap::new();
        let mut problems = Vec::new();
        for argument in &self.shape {
            let Some((collection, file)) = argument.split_once('=') else {
                problems.push(FileProblem::new(argument, "", "is not COLLECTION=FILE"));
                continue;
            };
            let shape = read(Path::new(file))
                .and_then(|text| CollectionShape::read(&text).map_err(anyhow::Error::msg));
            match shape {
                Ok(shape) => {
                    shapes.insert(collection.to_owned(), shape);
                }
                Err(error) => problems.push(FileProblem::new(
                    file,
                    "",
                    format!("is not a shape: {error:#}"),
                )),
            }
        }
        if problems.is_empty() {
            Ok(shapes)
        } else {
            Err(problems.into())
        }
    }

    /// Asks the sources. Returns the known shapes, and the problems of the others.
    async fn describe(
        &self,
        source: &form::ContractSource,
        missing: &[&form::FormCollection],
    ) -> Result<(BTreeMap<String, CollectionShape>, Vec<FileProblem>), AppError> {
        let started = start::briefly(self.settings.config()?, None).await?;
        let (shapes, away, refused) =
            control::describe_all(&started.gateway, source, missing).await;
        let mut problems: Vec<FileProblem> =
            refused.into_iter().map(|source| source.in_full()).collect();
        problems.extend(away.iter().map(|away| away.problem(&source.file)));
        if problems.is_empty() {
            let trial = control::try_formats(&started.gateway, source, &shapes).await;
            trial
                .notes
                .iter()
                .for_each(|note| eprintln!("note: {note}"));
            problems = trial.problems;
        }
        Ok((shapes, problems))
    }
}

/// Reads a file of reasonable size, or stdin, without the mark that editors of Windows begin a text with.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    const MAX_BYTES: u64 = 16 << 20;
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin()
            .take(MAX_BYTES + 1)
            .read_to_string(&mut text),
        _ => std::fs::File::open(path)
            .with_context(|| format!("{} cannot be opened", path.display()))?
            .take(MAX_BYTES + 1)
            .read_to_string(&mut text),
    };
    let bytes = read.with_context(|| format!("{} cannot be read", path.display()))?;
    anyhow::ensure!(
        bytes as u64 <= MAX_BYTES,
        "{} is larger than {MAX_BYTES} bytes",
        path.display()
    );
    let marked = text.strip_prefix('\u{feff}').map(str::to_owned);
    Ok(marked.unwrap_or(text))
}
