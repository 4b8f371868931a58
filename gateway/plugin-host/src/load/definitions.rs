//! Asks a build which tools it has, before it goes live.

use std::{sync::Arc, time::Instant};

use super::{Loader, Prepared, TRIAL_MAX};
use crate::{
    PluginConfig,
    guest::{Call, Purpose},
    instance::Instance,
    tools::Definitions,
};

/// The bound on definitions: more than four hundred tools of the usual size.
const DEFINITIONS_MAX_BYTES: usize = 1 << 20;

impl Loader {
    /// Asks for the definitions; `None` for a plugin without tools. Two instances without grants are asked, since what
    /// is published must not depend on which one was.
    pub(super) async fn ask_definitions(
        &self,
        name: &str,
        config: &PluginConfig,
        prepared: &Prepared,
    ) -> Result<Option<Arc<Definitions>>, String> {
        if !prepared.code.has_tools() {
            return Ok(None);
        }
        let text = self.defined(name, config, prepared).await?;
        if self.defined(name, config, prepared).await? != text {
            return Err("its `definitions` differ from one instance to the next: they must always be the same".into());
        }
        Ok(Some(Arc::new(Definitions::new(&text))))
    }

    async fn defined(
        &self,
        name: &str,
        config: &PluginConfig,
        prepared: &Prepared,
    ) -> Result<String, String> {
        let nothing_granted = PluginConfig {
            grants: Default::default(),
            ..config.clone()
        };
        let profile = self.profile("trial", &nothing_granted, prepared.size);
        let _running = self.engines.running();
        let trial = async {
            let call = Call::own(&profile, Purpose::Trial, Instant::now() + TRIAL_MAX);
            let mut instance = Instance::new(&prepared.code, prepared.size, &profile, call).await?;
            let defined = match instance.definitions().await {
                Ok(Ok(tools)) if prepared.code.has_items() => {
                    let items = instance.item_definitions().await;
                    items.map(|items| items.map(|items| Definitions::text(&tools, Some(&items))))
                }
                Ok(Ok(tools)) => Ok(Ok(Definitions::text(&tools, None))),
                refused => refused,
            };
            let memory_refused = instance.memory_refused();
            defined.map_err(|error| {
                wasmtime::Error::msg(crate::call::reason(
                    &error,
                    memory_refused,
                    profile.limits.memory_max,
                ))
            })
        };
        let defined = tokio::time::timeout(TRIAL_MAX, trial)
            .await
            .map_err(|_| {
                format!(
                    "`definitions` did not answer within {} s",
                    TRIAL_MAX.as_secs()
                )
            })?
            .map_err(|error| format!("asking it for its tools failed: {error:#}"))?;
        let text = defined.map_err(|error| {
            let message: String = error.message.chars().filter(|c| !c.is_control()).take(500).collect();
            format!(
                "it refuses to say what its tools are: {message} (its settings stand in `[plugins.{name}.settings]`)"
            )
        })?;
        if text.len() > DEFINITIONS_MAX_BYTES {
            return Err(format!(
                "its definitions take {} bytes; at most {DEFINITIONS_MAX_BYTES}",
                text.len()
            ));
        }
        Ok(text)
    }
}
