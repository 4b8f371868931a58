//! Checks that nothing one tenant leaves in a guest reaches another.

use weir_plugin_host::{PluginConfig, PluginIsolation};

use crate::workbench::Workbench;

const REMEMBER: &str = r#"{"do": "remember", "secret": "of one"}"#;
const RECALL: &str = r#"{"do": "recall"}"#;

#[tokio::test]
async fn an_instance_is_reused_by_its_own_tenant_only() {
    let bench = Workbench::plain().await;
    bench.read_as("one", REMEMBER).await;
    assert_eq!(
        bench.read_as("one", RECALL).await,
        r#"[{"secret":"of one","configured":"1"}]"#
    );
    assert_eq!(
        bench.read_as("two", RECALL).await,
        r#"[{"secret":"","configured":"1"}]"#
    );
    assert_eq!(bench.host.instances(), (2, 2));
}

#[tokio::test]
async fn isolation_per_call_keeps_nothing_at_all() {
    let config = PluginConfig {
        isolation: Some(PluginIsolation::Call),
        ..PluginConfig::default()
    };
    let bench = Workbench::with(config, Default::default()).await;
    bench.read_as("one", REMEMBER).await;
    assert_eq!(
        bench.read_as("one", RECALL).await,
        r#"[{"secret":"","configured":"1"}]"#
    );
    assert_eq!(bench.host.instances(), (0, 0));
}

#[tokio::test]
async fn a_shared_plugin_is_reused_by_everybody() {
    let config = PluginConfig {
        isolation: Some(PluginIsolation::Shared),
        ..PluginConfig::default()
    };
    let bench = Workbench::with(config, Default::default()).await;
    bench.read_as("one", r#"{"do": "calls"}"#).await;
    assert_eq!(
        bench.read_as("two", r#"{"do": "calls"}"#).await,
        r#"[{"calls":2}]"#
    );
}

#[tokio::test]
async fn an_instance_is_replaced_in_the_end() {
    let bench = Workbench::plain().await;
    for call in 1..=1_000 {
        assert_eq!(
            bench.read_as("one", r#"{"do": "calls"}"#).await,
            format!(r#"[{{"calls":{call}}}]"#)
        );
    }
    bench.read_as("one", r#"{"do": "calls"}"#).await;
    assert_eq!(
        bench.read_as("one", r#"{"do": "calls"}"#).await,
        r#"[{"calls":1}]"#,
        "the first one had served enough"
    );
}

#[tokio::test]
async fn parked_instances_make_room() {
    let bench = Workbench::plain().await;
    for tenant in 0..200 {
        bench.read_as(&format!("tenant-{tenant}"), "{}").await;
    }
    let (live, parked) = bench.host.instances();
    assert!(live <= 64 && parked == live, "{live} live, {parked} parked");
}
