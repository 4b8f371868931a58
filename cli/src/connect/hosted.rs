//! Clients that their vendors host: prints what a person enters there.

use std::{process::ExitCode, time::Duration};

use weir::{
    client_entry::{HostedClient, HostedServer},
    config,
};
use weir_upstream::{UpstreamFailure, UpstreamFailureKind};

use super::{ConnectOptions, view_url};
use crate::{AppError, Done, block_on, call};

impl ConnectOptions {
    /// Prints what a person enters at a client that its vendor hosts.
    pub(super) fn describe(&self, client: HostedClient) -> Done {
        let name = client.name();
        let has_file_options = self.key_env.is_some()
            || !self.headers.is_empty()
            || self.project
            || self.print
            || self.undo;
        if has_file_options {
            let failure = UpstreamFailure::new(
                UpstreamFailureKind::Start,
                "options of a client with a file",
                format!("`{name}` has no file on this machine: its vendor hosts it"),
            )
            .step("leave out all but --url, --view and --config");
            return Err(anyhow::Error::new(failure).into());
        }
        let (url, issuers) = match &self.url {
            Some(url) => (url.clone(), issuers_at(url)?),
            None => self.configured(name)?,
        };
        let url = match &self.view {
            Some(view) => view_url(&url, view).map_err(anyhow::Error::new)?,
            None => url,
        };
        let server = HostedServer {
            url: &url,
            issuers: &issuers,
        };
        if let Some(lacking) = client.lacking(&server) {
            return Err(anyhow::anyhow!(lacking).into());
        }
        for (number, step) in client.steps(&server).iter().enumerate() {
            println!("{}. {step}", number + 1);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the endpoint and the issuers of the configuration.
    fn configured(&self, client: &str) -> Result<(String, Vec<String>), AppError> {
        let config = config::load(&self.config)?;
        let base = config.http.public_base().ok_or_else(|| {
            let expected = format!("`[http] public_url` in {}", self.config.display());
            let cause = format!("it is not there, and `{client}` reaches no other address");
            anyhow::Error::new(UpstreamFailure::new(
                UpstreamFailureKind::Start,
                expected,
                cause,
            ))
        })?;
        let issuers = config.identity.issuers.iter();
        let issuers = issuers.map(|issuer| issuer.issuer.clone());
        Ok((format!("{base}/mcp"), issuers.collect()))
    }
}

/// Returns the issuers that an endpoint names in its metadata.
fn issuers_at(url: &str) -> Result<Vec<String>, AppError> {
    call::check_url(url)?;
    let url = reqwest::Url::parse(url).map_err(anyhow::Error::new)?;
    let mut place = url.clone();
    place.set_query(None);
    place.set_path(&format!(
        "/.well-known/oauth-protected-resource{}",
        url.path()
    ));
    let metadata = block_on(async move {
        weir_connections::http::install_tls();
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(5))
            .build()?;
        let answer = client.get(place).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        let text = answer.map_err(reqwest::Error::without_url)?.text().await?;
        let metadata: serde_json::Value = serde_json::from_str(&text)?;
        anyhow::Ok(metadata)
    })?;
    let metadata =
        metadata.map_err(|error| {
            let expected = format!("{url} to name the issuers of its tokens");
            let failure =
                UpstreamFailure::new(UpstreamFailureKind::Start, expected, format!("{error:#}"));
            anyhow::Error::new(failure.step(
                "add `[[identity.issuers]]` there, and let the paths below /.well-known pass",
            ))
        })?;
    let issuers = metadata["authorization_servers"].as_array();
    let issuers = issuers
        .into_iter()
        .flatten()
        .filter_map(|issuer| issuer.as_str());
    Ok(issuers.map(str::to_owned).collect())
}
