//! The definitions of a plugin's tools: schemas, defaults and documentation.

use serde_json::Value;
use weir::config::GatewayConfig;
use weir_contracts::code;

use super::CheckReport;

pub(super) fn look(
    plugin: &str,
    definitions: &str,
    config: &GatewayConfig,
    report: &mut CheckReport,
) {
    let own = config.plugins.get(plugin).cloned().unwrap_or_default();
    let published = code::PluginOptions {
        name: plugin,
        contract: own.contract.as_deref().unwrap_or(plugin),
        prefix: own.prefix.as_deref().unwrap_or_default(),
        only: own.tools.as_deref(),
        approved: &own.approval,
        ..code::PluginOptions::default()
    };
    let problems = code::compile(&published, definitions)
        .err()
        .unwrap_or_default();
    for problem in &problems {
        let of_a_default = problem.place.ends_with("/default");
        report.fail(
            if of_a_default {
                "defaults fit"
            } else {
                "schemas compile"
            },
            problem.to_string(),
        );
    }
    let tools: Vec<Value> = serde_json::from_str(definitions).unwrap_or_default();
    if report.is_clean("schemas compile") {
        report.ok("schemas compile", "each one");
    }
    if report.is_clean("defaults fit") {
        report.ok("defaults fit", "each meets the schema of its own parameter");
    }
    for tool in &tools {
        documented(tool, report);
    }
    if report.is_clean("documented") {
        report.ok("documented", "every tool and every parameter");
    }
}

/// Checks for descriptions: without words an agent guesses.
fn documented(tool: &Value, report: &mut CheckReport) {
    let name = tool["name"].as_str().unwrap_or_default();
    let has_words = |value: &Value| {
        value["description"]
            .as_str()
            .is_some_and(|text| !text.trim().is_empty())
    };
    if !has_words(tool) {
        report.warn("documented", format!("{name}: the tool has no description"));
    }
    for (parameter, schema) in tool["inputSchema"]["properties"]
        .as_object()
        .into_iter()
        .flatten()
    {
        if !has_words(schema) {
            report.warn(
                "documented",
                format!("{name}: the parameter `{parameter}` has no description"),
            );
        }
    }
}
