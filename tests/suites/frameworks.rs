//! Agent frameworks, each by what an agent of it sees: listing, calls and errors, over HTTP and stdio, with a key and
//! without. Larger ones are in `tests/frameworks.rs`; `docs/clients.md` has what held when.

mod drive;

use self::drive::Framework;

const MCP1: &str = "python-frameworks-mcp1";
const MCP2: &str = "python-frameworks-mcp2";
const NODE: &str = "node-frameworks";

#[test]
fn langchain() {
    Framework::new("langchain", MCP1).holds();
}

#[test]
fn mcp_use() {
    Framework::new("mcp_use", MCP1).holds();
}

#[test]
fn autogen() {
    Framework::new("autogen", MCP1).checks_arguments().holds();
}

#[test]
fn smolagents() {
    Framework::new("smolagents", MCP1).holds();
}

#[test]
fn openai_agents() {
    Framework::new("openai_agents", MCP2).says_key_is_needed().holds();
}

#[test]
fn agno() {
    Framework::new("agno", MCP2).holds();
}

#[test]
fn pydantic_ai() {
    Framework::new("pydantic_ai", MCP2).says_key_is_needed().holds();
}

#[test]
fn vercel_ai_sdk() {
    Framework::new("ai_sdk", NODE).says_key_is_needed().holds();
}

#[test]
fn langchain_on_node() {
    Framework::new("langchain_js", NODE).checks_arguments().holds();
}

#[test]
fn mcporter() {
    Framework::new("mcporter", NODE).holds();
}
