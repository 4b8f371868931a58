//! The agent frameworks that take too much room for every run: `cargo xtask test --frameworks`.

#[expect(
    dead_code,
    reason = "more is known of the frameworks that every run has"
)]
#[path = "suites/frameworks/drive.rs"]
mod drive;
#[path = "suites/sample.rs"]
mod sample;

use drive::Framework;

const MCP1: &str = "python-frameworks-more-mcp1";
const MCP2: &str = "python-frameworks-more-mcp2";
const NODE: &str = "node-frameworks-more";

#[test]
fn crewai() {
    Framework::new("crewai", MCP1).checks_arguments().holds();
}

#[test]
fn semantic_kernel() {
    Framework::new("semantic_kernel", MCP1).holds();
}

#[test]
fn haystack() {
    Framework::new("haystack", MCP2).holds();
}

#[test]
fn strands() {
    Framework::new("strands", MCP2).holds();
}

#[test]
fn dspy() {
    Framework::new("dspy", MCP2).checks_arguments().holds();
}

#[test]
fn mastra() {
    Framework::new("mastra", NODE).checks_arguments().holds();
}

#[test]
fn openai_agents_on_node() {
    Framework::new("openai_agents_js", NODE).holds();
}
