//! The files to which the processes of other servers have no access.

use weir_upstream::KeptFiles;

use super::{FoldersConfig, GatewayConfig};

impl GatewayConfig {
    /// Returns the files that the processes of other servers must not reach. A reader of the state, the configuration or a
    /// secret can act as its operator. Files in the folders of contracts and plugins are served, so servers must not write
    /// there.
    pub fn kept_files(&self) -> KeptFiles {
        let base = &self.base;
        let mut hidden = vec![self.folders.state.clone(), self.places.file().into()];
        let of_connections = self.connections.values();
        hidden.extend(of_connections.flat_map(|connection| connection.secret_files(base)));
        let of_upstreams = self.upstreams.values();
        hidden.extend(of_upstreams.flat_map(|upstream| upstream.secret_files(base)));
        let state = self.state.url.iter();
        hidden.extend(state.flat_map(|url| weir_connections::config::secret_files(url, base)));
        let ledger = self.limits.ledger.iter().filter_map(|ledger| ledger.url());
        hidden.extend(ledger.flat_map(|url| weir_connections::config::secret_files(url, base)));
        let token = self.metrics.token.iter();
        hidden.extend(token.flat_map(|token| weir_connections::config::secret_files(token, base)));
        let traces = self.traces.headers.values();
        hidden.extend(traces.flat_map(|value| weir_connections::config::secret_files(value, base)));
        let secret = self
            .admin
            .oidc
            .iter()
            .filter_map(|oidc| oidc.client_secret.as_ref());
        hidden
            .extend(secret.flat_map(|secret| weir_connections::config::secret_files(secret, base)));
        let FoldersConfig {
            contracts,
            plugins,
            cache,
            ..
        } = &self.folders;
        let policies = self.policy.folder.clone();
        let mut read_only = vec![contracts.clone(), plugins.clone(), policies];
        // Gateways of this user run the code there, and so does this one if it had no processes of servers at its start.
        read_only.extend(cache.clone().or_else(super::compiled::folder_of_user));
        let overlays = self.upstreams.values().filter_map(|it| it.overlay.as_ref());
        read_only.extend(overlays.map(|overlay| base.join(overlay)));
        let issuers = self.identity.issuers.iter();
        let keys = issuers.filter_map(|issuer| issuer.jwks.as_ref()?.strip_prefix("file:"));
        read_only.extend(keys.map(|path| base.join(path))); // who writes it makes tokens
        for paths in [&mut hidden, &mut read_only] {
            let whole = |path: &mut std::path::PathBuf| {
                if let Ok(absolute) = std::path::absolute(&path) {
                    *path = absolute;
                }
            };
            paths.iter_mut().for_each(whole);
            paths.sort();
            paths.dedup();
        }
        KeptFiles { hidden, read_only }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_plugins_of_the_user_are_not_for_servers_to_write() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = GatewayConfig::bare(folder.path());
        config.folders.cache = None;
        let of_user = super::super::compiled::folder_of_user();
        let of_user = of_user.expect("the user has a cache");
        assert!(config.kept_files().read_only.contains(&of_user));
        config.folders.cache = Some(folder.path().join("cache"));
        let read_only = config.kept_files().read_only;
        assert!(
            read_only.contains(&folder.path().join("cache")),
            "{read_only:?}"
        );
    }
}
