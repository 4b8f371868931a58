//! Checks the sections of plugins.

use weir_plugin_host::PluginConfig;

/// The adapters that come with the gateway.
const ADAPTERS: [&str; 3] = ["rest", "sheet", "sql"];

/// Returns the problems of a plugin's section: the key, the message and the hint.
pub(super) fn check(
    plugin: &str,
    settings: &PluginConfig,
) -> Vec<(&'static str, &'static str, String)> {
    let mut problems = native(settings);
    if ADAPTERS.contains(&plugin) && !settings.approval.is_empty() {
        problems.push((
            "approval",
            "names tools that a plugin's code defines, and an adapter defines none",
            "write `approval: required` at the tool in the contract file".to_owned(),
        ));
    }
    problems
}

/// Checks native plugins. Native code is not run because it lies somewhere: the configuration says which.
fn native(settings: &PluginConfig) -> Vec<(&'static str, &'static str, String)> {
    let is_digest =
        |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut problems = Vec::new();
    if settings.in_process == Some(true) {
        problems.push((
            "in_process",
            "a native library always runs in processes of its own",
            "leave this out; to run in the process of the gateway, build a component instead: its `.wasm` file goes into \
             the plugins folder, and `native` goes"
                .to_owned(),
        ));
    }
    if let Some(library) = &settings.native
        && (settings.sha256.is_empty() || !settings.sha256.iter().all(is_digest))
    {
        problems.push((
            "native",
            "a native library needs the `sha256` of its file, 64 hexadecimal digits",
            format!(
                "`sha256sum {}` prints it; write it as `sha256`",
                library.display()
            ),
        ));
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config;

    #[test]
    fn an_adapter_has_no_tools_that_a_person_approves() {
        let read = |plugin: &str| {
            let text = format!("[plugins.{plugin}]\napproval = [\"remove\"]\n");
            config::read("weir.toml", &text, Path::new("."))
        };
        let problems = read("sql").expect_err("an adapter");
        assert_eq!(problems[0].place, "/plugins/sql/approval");
        read("orders").expect("tools from code");
    }
}
