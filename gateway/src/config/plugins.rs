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
    if settings.native.is_none() && !settings.sha256.iter().all(|text| is_digest(text.trim())) {
        problems.push((
            "sha256",
            "must be the SHA-256 of the plugin's file, 64 hexadecimal digits",
            "`sha256sum FILE` prints it; write only the digits".to_owned(),
        ));
    }
    let unset = PluginConfig::default();
    for (key, is_set) in [
        ("settings", settings.settings != unset.settings),
        ("contract", settings.contract != unset.contract),
        ("prefix", settings.prefix != unset.prefix),
        ("tools", settings.tools != unset.tools),
        ("limits", settings.limits != unset.limits),
        ("audit", settings.audit != unset.audit),
    ] {
        if ADAPTERS.contains(&plugin) && is_set {
            problems.push((
                key,
                "is for tools that a plugin's code defines, and an adapter defines none",
                "write it in the contract file, at the tool or at its collection".to_owned(),
            ));
        }
    }
    if ADAPTERS.contains(&plugin) && !settings.approval.is_empty() {
        problems.push((
            "approval",
            "names tools that a plugin's code defines, and an adapter defines none",
            "write `approval: required` at the tool in the contract file".to_owned(),
        ));
    }
    problems
}

/// Checks native plugins. Native code does not run because of where it lies: the configuration names it.
fn native(settings: &PluginConfig) -> Vec<(&'static str, &'static str, String)> {
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
        && (settings.sha256.is_empty() || !settings.sha256.iter().all(|text| is_digest(text)))
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

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
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

    #[test]
    fn settings_that_an_adapter_does_not_have_are_refused() {
        let digest = "0123456789abcdefABCDEF".repeat(3);
        for (key, value, is_for_tools) in [
            ("settings", "{ region = \"eu\" }", true),
            ("contract", "\"stock\"", true),
            ("prefix", "\"stock\"", true),
            ("tools", "[\"list_stock\"]", true),
            ("limits", "{ rate = \"60/min\" }", true),
            ("audit", "{ clear = [\"id\"] }", true),
            ("sha256", "\"12\"", false),
            ("sha256", "[\"sha256:12\"]", false),
        ] {
            let read = |plugin: &str| {
                let text = format!("[plugins.{plugin}]\n{key} = {value}\n");
                config::read("weir.toml", &text, Path::new("."))
            };
            let problems = read("sheet").expect_err(key);
            assert_eq!(problems[0].place, format!("/plugins/sheet/{key}"));
            assert_eq!(read("orders").is_ok(), is_for_tools, "{key}");
        }
        let text = format!("[plugins.sheet]\nsha256 = \" {}\"\n", &digest[..64]);
        config::read("weir.toml", &text, Path::new(".")).expect("a digest in any case");
    }
}
