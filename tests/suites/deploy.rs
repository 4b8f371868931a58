//! Tests what a fleet is started with: the chart renders to the plain manifests, the schemas of Kubernetes and Compose accept
//! them, pods may do no more than they need, and HAProxy reads its configuration.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use serde_json::{Value, json};
use weir_tests::{foreign, place};

/// Values that turn every part of the chart the other way.
const OTHER_VALUES: &str = r#"
replicas: 5
image: { repository: images.example/weir, tag: "2" }
imagePullSecrets: [{ name: images }]
secret: other
env: [{ name: SHOP, valueFrom: { secretKeyRef: { name: shop, key: url } } }]
hosts: [weir.example.com]
publicUrl: https://weir.example.com
config: |
  [limits]
  timeout_ms = 5000
persistence: { enabled: true, storageClass: fast }
serviceMonitor: { labels: { release: monitoring } }
networkPolicy: { from: [{ namespaceSelector: { matchLabels: { name: agents } } }] }
nodeSelector: { disk: ssd }
tolerations: [{ key: agents, operator: Exists }]
"#;

fn deploy() -> PathBuf {
    place::repository().join("deploy")
}

/// Returns what a program prints; it must succeed.
fn printed(mut command: Command) -> String {
    let output = command.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let out = text(&output.stdout);
    assert!(
        output.status.success(),
        "{command:?}\n{out}{}",
        text(&output.stderr)
    );
    out
}

fn helm(words: &[&str]) -> Command {
    let program = place::cache().join("clients/deploy/helm/helm");
    let mut helm = Command::new(place::present(program, "cargo xtask test"));
    helm.args(words).arg(deploy().join("kubernetes/chart"));
    helm
}

/// Renders the chart as the release `weir` in the namespace `weir`.
fn render(values: Option<&str>) -> String {
    let mut template = helm(&["template", "--namespace", "weir", "weir"]);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    if let Some(values) = values {
        fs::write(file.path(), values).expect("the temporary file can be written");
        template.arg("--values").arg(file.path());
    }
    printed(template)
}

/// Returns YAML as JSON after the schemas of `kubernetes` or `compose` have taken it.
fn checked(by: &str, yaml: &str) -> Value {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), yaml).expect("the temporary file can be written");
    let mut check = foreign::python_script("python-deploy", "deploy.py");
    check.arg(by).arg(file.path());
    let output = foreign::run(check, Duration::from_secs(180));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{yaml}");
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

/// Returns the resource of one kind.
fn resource(resources: &Value, kind: &str) -> Value {
    let mut found = resources.as_array().expect("a list").iter();
    let found = found.find(|resource| resource["kind"] == kind);
    found
        .unwrap_or_else(|| panic!("no {kind} in {resources}"))
        .clone()
}

#[test]
fn the_manifests_are_what_the_chart_renders() {
    printed(helm(&["lint", "--strict", "--quiet"]));
    let rendered = render(None);
    let file = deploy().join("kubernetes/weir.yaml");
    let head = "# What `helm template weir chart --namespace weir` prints; the chart is beside it. Made by the tests with WEIR_BLESS=1.\n";
    let wanted = format!("{head}{rendered}");
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&file, &wanted).expect("the manifests can be written");
    }
    let there = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        there == wanted,
        "the chart renders to something else than {}; WEIR_BLESS=1 accepts it:\n{rendered}",
        file.display()
    );
}

#[test]
fn the_schemas_of_kubernetes_take_every_resource() {
    for values in [None, Some(OTHER_VALUES)] {
        let resources = checked("kubernetes", &render(values));
        let nodes = match values {
            None => resource(&resources, "Deployment"),
            Some(_) => resource(&resources, "StatefulSet"),
        };
        let spec = &nodes["spec"]["template"]["spec"];
        check_rights(spec);
        check_end(spec, &resource(&resources, "ConfigMap"));
        for kind in ["Service", "PodDisruptionBudget", "NetworkPolicy"] {
            assert_eq!(
                resource(&resources, kind)["metadata"]["namespace"],
                "weir",
                "{kind}"
            );
        }
        let service = resource(&resources, "Service");
        assert_eq!(service["spec"]["sessionAffinity"], "None");
        // No schema of Kubernetes has it: its parts are looked at here.
        let monitor = resource(&resources, "ServiceMonitor");
        let secret = &spec["containers"][0]["env"][1]["valueFrom"]["secretKeyRef"];
        assert_eq!(
            monitor["spec"]["endpoints"],
            json!([{"port": "http", "interval": "15s", "authorization": {"credentials": secret}}])
        );
        assert_eq!(
            monitor["spec"]["selector"]["matchLabels"],
            service["spec"]["selector"]
        );
        assert_eq!(
            service["metadata"]["labels"]["app.kubernetes.io/name"],
            "weir"
        );
        assert_eq!(monitor["spec"]["jobLabel"], "app.kubernetes.io/name");
    }
}

/// Checks that a pod has what Pod Security calls `restricted`, and a system that it cannot write.
fn check_rights(pod: &Value) {
    let context = &pod["securityContext"];
    assert_eq!(context["runAsNonRoot"], true);
    assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(pod["automountServiceAccountToken"], false);
    for name in ["runAsUser", "runAsGroup", "fsGroup"] {
        assert_eq!(context[name], 10001, "{name} is the image's");
    }
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        })
    );
    let probe = |name: &str| container[name]["httpGet"]["path"].clone();
    assert_eq!(probe("livenessProbe"), "/healthz");
    assert_eq!(probe("readinessProbe"), "/readyz");
}

/// Checks that a pod is not killed before the calls of its configuration may end: a minute and the longest default timeout
/// after the time in which load balancers leave it.
fn check_end(pod: &Value, config: &Value) {
    let text = config["data"]["weir.toml"].as_str().expect("a text");
    let config: toml::Table = text
        .parse()
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let drain = config["http"]["drain_s"].as_integer().expect("a number");
    let grace = pod["terminationGracePeriodSeconds"].as_i64();
    assert!(grace >= Some(drain + 120), "{grace:?} after {drain}");
}

#[test]
fn a_fleet_on_one_machine_is_what_compose_and_haproxy_take() {
    let text = fs::read_to_string(deploy().join("compose.yaml")).expect("the file is there");
    let services = &checked("compose", &text)["services"];
    let nodes = ["node1", "node2", "node3"].map(|name| &services[name]);
    for node in nodes {
        assert_eq!(node["read_only"], true);
        assert_eq!(node["cap_drop"], json!(["ALL"]));
        assert_eq!(node["ports"], Value::Null, "only HAProxy is reached");
    }
    let names = ["WEIR_NODE1", "WEIR_NODE2", "WEIR_NODE3"];
    let mut haproxy = Command::new(place::present(
        "/usr/sbin/haproxy".into(),
        "cargo xtask test",
    ));
    haproxy.envs(names.map(|name| (name, "127.0.0.1:8484")));
    haproxy
        .args(["-c", "-V", "-f"])
        .arg(deploy().join("haproxy.cfg"));
    let verdict = printed(haproxy);
    assert_eq!(verdict.trim(), "Configuration file is valid");
}
