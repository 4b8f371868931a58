//! `weir plugin install` and `verify`: install a component from a file, a URL or a registry into the plugins folder, and
//! compare the folder with what was installed. A gateway never fetches: it loads the files of the folder.

mod fetch;
mod oci;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use weir::config::GatewayConfig;
use weir_files::FilePermission;
use weir_plugin_host::signature::{read_signature, signature_path, signer};

use self::fetch::{FetchedComponent, fetch, fetch_signature};
use super::{
    super::{AppError, CliSettings, Done, block_on},
    run::{TrialGateway, refusal},
};

#[derive(Args)]
pub(in super::super) struct InstallArgs {
    /// A component: a file, an https URL or `oci://REGISTRY/REPOSITORY[:TAG]`. `@sha256:HEX` after it pins the
    /// digest: of the manifest in a registry, otherwise of the component
    source: String,
    /// A file or an https URL with its signature; by default `….minisig` next to the component, or in the manifest of
    /// a registry the annotation `dev.weir.minisig`
    #[arg(long, value_name = "FILE|URL")]
    signature: Option<String>,
    /// The name of its file in the plugins folder, without `.wasm`; by default the plugin's own name
    #[arg(long, value_parser = super::super::plugins::file_name)]
    name: Option<String>,
}

#[derive(Args)]
pub(in super::super) struct PluginVerifyArgs {}

/// The content of `NAME.origin.json`, which records where a component came from.
#[derive(Serialize, Deserialize)]
struct OriginFile {
    source: String,
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
}

impl InstallArgs {
    pub(in super::super) fn run(self, settings: &CliSettings, json: bool) -> Done {
        let config = settings.config()?;
        let fetched = block_on(self.fetch())?
            .map_err(|why| anyhow::anyhow!("{why:#}: nothing is installed"))?;
        let FetchedComponent {
            component,
            signature,
            source,
        } = fetched;
        let digest = hex::encode(Sha256::digest(&component));
        let plugin = plugin_name(&component, &config)?;
        let own = config.plugins.get(&plugin).cloned().unwrap_or_default();
        let signed_by = signer(&plugin, &own, &component, signature.as_deref())
            .map_err(|why| anyhow::anyhow!("{source}: {why}: nothing is installed"))?;
        let name = self.name.unwrap_or_else(|| plugin.clone());
        let origin = OriginFile {
            source,
            sha256: digest.clone(),
            signed_by: signed_by.clone(),
        };
        let target = place(
            &config.folders.plugins,
            &name,
            &component,
            signature.as_deref(),
            &origin,
        )?;
        let file = target.display().to_string();
        if json {
            println!(
                "{}",
                json!({ "plugin": plugin, "file": file, "sha256": digest, "signed_by": signed_by })
            );
            return Ok(ExitCode::SUCCESS);
        }
        let by = signed_by.map_or_else(
            || "no signature was asked for".to_owned(),
            |signer| format!("signed by {signer}"),
        );
        println!("{plugin}: {file} (sha256 {digest}; {by})");
        Ok(ExitCode::SUCCESS)
    }

    async fn fetch(&self) -> anyhow::Result<FetchedComponent> {
        let mut fetched = fetch(&self.source).await?;
        if let Some(signature) = &self.signature {
            fetched.signature = Some(fetch_signature(signature).await?);
        }
        Ok(fetched)
    }
}

/// Returns the plugin's own name; a component that does not load is not installed.
fn plugin_name(component: &[u8], config: &GatewayConfig) -> Result<String, AppError> {
    let trial = TrialGateway::of_bytes(component, config.clone(), false)?;
    block_on(async {
        let started = trial.load().await?;
        if let Some(reason) = refusal(&started) {
            return Err(AppError::from(anyhow::anyhow!(
                "it does not load: {reason}: nothing is installed"
            )));
        }
        let plugins = started.gateway.host().plugins();
        let loaded = plugins.into_iter().find(|plugin| !plugin.built_in);
        Ok(loaded
            .map(|plugin| plugin.name)
            .context("the program already contains this plugin")?)
    })?
}

/// Places the files. The signature and the origin come first, the component at once and last: a gateway never finds it
/// without them.
fn place(
    folder: &Path,
    name: &str,
    component: &[u8],
    signature: Option<&str>,
    origin: &OriginFile,
) -> anyhow::Result<PathBuf> {
    let target = folder.join(format!("{name}.wasm"));
    let put =
        |content: &[u8], path: &Path| weir_files::replace(path, content, FilePermission::Everyone);
    let placed = || {
        match signature {
            Some(signature) => put(signature.as_bytes(), &signature_path(&target))?,
            None => match fs::remove_file(signature_path(&target)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
        put(
            serde_json::to_string_pretty(origin)?.as_bytes(),
            &origin_path(&target),
        )?;
        put(component, &target)
    };
    placed().with_context(|| format!("{} cannot be written", target.display()))?;
    Ok(target)
}

fn origin_path(component: &Path) -> PathBuf {
    component.with_extension("origin.json")
}

impl PluginVerifyArgs {
    /// Checks for every file of the plugins folder that it is the installed one, with the required signature. The exit code
    /// is 1 if one fails.
    pub(in super::super) fn run(self, settings: &CliSettings, json: bool) -> Done {
        let config = settings.config()?;
        let folder = &config.folders.plugins;
        let entries =
            fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        });
        files.sort();
        let checked: Vec<VerifyOutcome> = files
            .iter()
            .map(|file| VerifyOutcome::from_file(file, &config))
            .collect();
        match json {
            true => println!("{}", json!(checked)),
            false => checked.iter().for_each(|checked| println!("{checked}")),
        }
        Ok(if checked.iter().all(|checked| checked.ok) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// The findings about one file.
#[derive(Serialize)]
struct VerifyOutcome {
    file: String,
    ok: bool,
    #[serde(flatten)]
    verified: Option<VerifiedComponent>,
    problem: Option<String>,
}

#[derive(Serialize)]
struct VerifiedComponent {
    plugin: String,
    sha256: String,
    /// The source from which it was installed; null if someone put it there by hand.
    source: Option<String>,
    /// The signer; null if no signature is required.
    signed_by: Option<String>,
}

impl VerifyOutcome {
    fn from_file(path: &Path, config: &GatewayConfig) -> Self {
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match verify(path, config) {
            Ok(verified) => Self {
                file,
                ok: true,
                verified: Some(verified),
                problem: None,
            },
            Err(why) => Self {
                file,
                ok: false,
                verified: None,
                problem: Some(format!("{why:#}")),
            },
        }
    }
}

impl fmt::Display for VerifyOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            verified,
            problem,
            ..
        } = self;
        match verified {
            Some(verified) => write!(f, "ok    {file}: {verified}"),
            None => write!(
                f,
                "fail  {file}: {}",
                problem.as_deref().unwrap_or_default()
            ),
        }
    }
}

impl fmt::Display for VerifiedComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "from {source}")?,
            None => f.write_str("put there by hand")?,
        }
        write!(f, "; sha256 {}; ", self.sha256)?;
        match &self.signed_by {
            Some(signer) => write!(f, "signed by {signer}"),
            None => f.write_str("no signature is asked for"),
        }
    }
}

fn verify(file: &Path, config: &GatewayConfig) -> anyhow::Result<VerifiedComponent> {
    let component = fs::read(file)?;
    let digest = hex::encode(Sha256::digest(&component));
    let origin: Option<OriginFile> = match fs::read_to_string(origin_path(file)) {
        Ok(text) => Some(serde_json::from_str(&text).context("its origin.json cannot be read")?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).context("its origin.json cannot be read"),
    };
    if let Some(origin) = &origin {
        ensure!(
            origin.sha256 == digest,
            "its sha256 is {digest}, and {} was installed",
            origin.sha256
        );
    }
    let plugin = plugin_name(&component, config).map_err(|failure| match failure {
        AppError::Other(error) => error,
        AppError::Problems(problems) => {
            anyhow::anyhow!(
                "{}",
                problems
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; ")
            )
        }
    })?;
    let own = config.plugins.get(&plugin).cloned().unwrap_or_default();
    if !own.allows(&digest) {
        bail!(
            "its sha256 is {digest}, and `[plugins.{plugin}] sha256` allows only {}",
            own.sha256.join(", ")
        );
    }
    let signature = read_signature(file).map_err(anyhow::Error::msg)?;
    let signed_by =
        signer(&plugin, &own, &component, signature.as_deref()).map_err(anyhow::Error::msg)?;
    Ok(VerifiedComponent {
        plugin,
        sha256: digest,
        source: origin.map(|origin| origin.source),
        signed_by,
    })
}
