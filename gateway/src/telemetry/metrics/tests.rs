//! The number of series is bounded for any requests; calls are counted where they belong.

use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    call::{CallRequest, CatalogueEndpoint, call_tool},
    identity::CallerIdentity,
    scrape::text,
    serving::ServingGateway,
    testing,
};

async fn call(gateway: &ServingGateway, tool: &str, arguments: &str) {
    let snapshot = gateway.snapshot();
    let cancel = CancellationToken::new();
    let request = CallRequest {
        arguments: Some(arguments),
        ..CallRequest::new(&snapshot, &CatalogueEndpoint::All, tool, "http", &cancel)
    };
    call_tool(gateway, &CallerIdentity::local(), &request).await;
}

fn series(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#')).count()
}

fn value(text: &str, series: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no series {series} in\n{text}"))
}

#[tokio::test]
async fn a_hundred_thousand_random_names_leave_no_series_behind() {
    let gateway = testing::gateway(|config| config.limits.agent_rate.0 = None).await;
    call(&gateway, "none", "{}").await;
    let before = series(&text(&gateway));
    for number in 0..100_000_u64 {
        let name = format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        call(&gateway, &name, "{}").await;
    }
    let after = text(&gateway);
    assert_eq!(series(&after), before);
    let unknown =
        "weir_calls_total{contract=\"\",outcome=\"unknown_tool\",tool=\"_unknown\",version=\"\"}";
    assert_eq!(value(&after, unknown), 100_001.0);
}

#[tokio::test]
async fn a_published_tool_counts_from_zero_and_a_refusal_by_its_reason() {
    let gateway = testing::gateway(|_| {}).await;
    let of = |outcome: &str| {
        format!(
            "weir_calls_total{{contract=\"depot\",outcome=\"{outcome}\",tool=\"find_part\",version=\"1.0.0\"}}"
        )
    };
    let before = text(&gateway);
    for outcome in ["ok", "invalid_arguments", "unavailable"] {
        assert_eq!(value(&before, &of(outcome)), 0.0);
    }
    call(&gateway, "find_part", r#"{"colour":"red"}"#).await;
    call(&gateway, "find_part", r#"{"id":"1"}"#).await;
    let after = text(&gateway);
    assert_eq!(value(&after, &of("invalid_arguments")), 1.0);
    assert_eq!(
        value(&after, &of("unavailable")),
        1.0,
        "there is no adapter"
    );
    assert_eq!(
        value(
            &after,
            "weir_invalid_arguments_total{reason=\"missing_required\"}"
        ),
        1.0
    );
    assert_eq!(
        value(
            &after,
            "weir_invalid_arguments_total{reason=\"unknown_argument\"}"
        ),
        1.0
    );
    assert_eq!(
        value(
            &after,
            "weir_agent_calls_total{agent=\"local\",result=\"refused\"}"
        ),
        1.0
    );
    assert_eq!(
        value(&after, "weir_call_stage_seconds_count{stage=\"adapter\"}"),
        1.0
    );
    assert_eq!(value(&after, "weir_call_overhead_seconds_count"), 2.0);
}

/// The bound applies across publishes, and removed tools make room.
#[tokio::test]
async fn tools_beyond_the_bound_share_a_series() {
    let gateway = testing::gateway(|config| config.metrics.tools_max = 4).await;
    let before = series(&text(&gateway));
    let names: Vec<String> = (0..40).map(|number| format!("get_{number}")).collect();
    for chunk in names.chunks(4) {
        let tools: Vec<&str> = chunk.iter().map(String::as_str).collect();
        testing::publish(&gateway, &[("desk", &tools)]);
        let after = text(&gateway);
        assert!(
            series(&after) <= before,
            "{} series, {before} before",
            series(&after)
        );
        assert!(
            after.contains(&format!("tool=\"{}\"", tools[0])),
            "{} has no series",
            tools[0]
        );
    }
    let tools: Vec<&str> = names.iter().map(String::as_str).collect();
    testing::publish(&gateway, &[("desk", &tools)]);
    let snapshot = gateway.snapshot();
    snapshot.catalogue.tools().for_each(|tool| {
        gateway
            .metrics()
            .tools
            .series_for(&tool.meter)
            .outcome(None)
            .inc()
    });
    let after = text(&gateway);
    assert!(
        series(&after) <= before,
        "{} series, {before} before",
        series(&after)
    );
    assert_eq!(
        value(
            &after,
            "weir_calls_total{contract=\"\",outcome=\"ok\",tool=\"_other\",version=\"\"}"
        ),
        36.0
    );
    assert_eq!(
        value(&after, "weir_series_folded_total{label=\"tool\"}"),
        36.0
    );
}

#[test]
fn a_scraper_shows_the_token_or_goes_away() {
    let guarded = GatewayMetrics::new(1, Some("s3cret"));
    assert!(guarded.are_guarded());
    assert!(guarded.admit(RequestCredential::Key("s3cret")));
    for wrong in [
        RequestCredential::None,
        RequestCredential::Malformed,
        RequestCredential::Key("s3cre"),
        RequestCredential::Key(""),
    ] {
        assert!(!guarded.admit(wrong));
    }
}

/// Every metric that `docs/metrics.md` promises exists, and no other does.
#[tokio::test]
async fn every_row_of_the_table_is_scraped() {
    let gateway = testing::gateway(|_| {}).await;
    let text = text(&gateway);
    let named: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    for name in &named {
        let known =
            table::TABLE.iter().any(|row| row.name == *name) || name.starts_with("process_");
        assert!(known, "{name} is not in the table");
    }
    for row in table::TABLE {
        // This gateway has no plugins, no upstreams, no trail, no kept versions and no state, and traces nothing.
        let absent = (row.name.starts_with("weir_plugin_") && row.labels.contains(&"plugin"))
            || row.labels.contains(&"upstream")
            || row.name.starts_with("weir_kept_version_")
            || row.name.starts_with("weir_audit_")
            || row.name.starts_with("weir_state_")
            || row.name == table::TRACED_CALLS.name
            || row.name == "weir_agent_calls_total";
        assert!(
            absent || named.contains(&row.name),
            "{} is not scraped",
            row.name
        );
    }
}
