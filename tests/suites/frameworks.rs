//! Agent frameworks, each by what its agent sees: listing, calls and errors, over HTTP and stdio, with a key and without.
//! Larger ones are in `tests/frameworks.rs`; `docs/clients.md` has the results with their dates.

mod agent;
mod drive;

use std::{process::Command, time::Duration};

use serde_json::Value;
use weir_tests::{foreign, place};

use self::{
    agent::{ANTHROPIC, Agent, GEMINI, OPENAI, OPENAI_STRICT, OPENAI_WITHOUT_REFERENCES},
    drive::{
        Framework,
        ShownError::{ByTextAlone, Marked, Raised},
    },
};
use crate::sample;

const MCP1: &str = "python-frameworks-mcp1";
const MCP2: &str = "python-frameworks-mcp2";
const ADK: &str = "python-frameworks-adk";
const NODE: &str = "node-frameworks";

#[test]
fn langchain() {
    Framework::new("langchain", MCP1)
        .says_key_is_needed()
        .with_error(Marked("status=error"))
        .holds();
}

#[test]
fn mcp_use() {
    Framework::new("mcp_use", MCP1)
        .with_error(Marked("error=RuntimeError"))
        .holds();
}

#[test]
fn autogen() {
    Framework::new("autogen", MCP1)
        .says_key_is_needed()
        .checks_arguments()
        .with_error(Raised("Exception"))
        .holds();
}

#[test]
fn smolagents() {
    Framework::new("smolagents", MCP1)
        .with_error(ByTextAlone)
        .holds();
}

#[test]
fn openai_agents() {
    Framework::new("openai_agents", MCP2)
        .says_key_is_needed()
        .with_error(ByTextAlone)
        .holds();
}

#[test]
fn agno() {
    Framework::new("agno", MCP2)
        .says_key_is_needed()
        .with_error(ByTextAlone)
        .holds();
}

#[test]
fn pydantic_ai() {
    Framework::new("pydantic_ai", MCP2)
        .says_key_is_needed()
        .with_error(Raised("ModelRetry"))
        .holds();
}

#[test]
fn google_adk() {
    Framework::new("google_adk", ADK)
        .says_key_is_needed()
        .with_error(Marked("isError=True"))
        .holds();
}

#[test]
fn llama_index() {
    Framework::new("llama_index", ADK)
        .says_key_is_needed()
        .with_error(Marked("is_error=True"))
        .holds();
}

#[test]
fn vercel_ai_sdk() {
    Framework::new("ai_sdk", NODE)
        .says_key_is_needed()
        .with_error(Marked("isError=true"))
        .holds();
}

#[test]
fn langchain_on_node() {
    Framework::new("langchain_js", NODE)
        .says_key_is_needed()
        .checks_arguments()
        .with_error(Raised("ToolException"))
        .holds();
}

#[test]
fn mcporter() {
    Framework::new("mcporter", NODE)
        .with_error(Marked("isError=true"))
        .holds();
}

/// Google's own library writes each tool of a session for Gemini, and refuses the request if it cannot write one.
#[test]
fn google_genai_writes_every_tool_of_its_view() {
    let house = sample::house().config("[views.gemini]\nprofile = \"gemini\"\n");
    let gateway = house.serve();
    Framework::new("google_genai", ADK).lists_and_calls(&gateway.view_url("gemini"));
}

/// Programs that would sign in show what to send instead, and then list what others list.
#[test]
fn a_sign_in_ends_with_the_sentence_that_a_key_is_needed() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann"]);
    let url = &*gateway.url();
    let program = |path: &str| foreign::node_module_in(NODE, path);
    let (remote, porter) = (
        program("mcp-remote/dist/proxy.js"),
        program("mcporter/dist/cli.js"),
    );
    for (script, words) in [
        (&remote, [url, "--allow-http"].as_slice()),
        (&porter, &["auth", url, "--allow-http"]),
    ] {
        let mut command = foreign::node();
        command.arg(script).args(words).env("HOME", house.path());
        let output = foreign::run(command, Duration::from_secs(180));
        let printed =
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let sentence = "a key is needed. Send it with each request as the header `Authorization: Bearer weir_...`";
        assert!(
            !output.status.success() && printed.contains(sentence),
            "{}: {printed}",
            script.display()
        );
    }
    let node = foreign::node()
        .get_program()
        .to_str()
        .expect("a path")
        .to_owned();
    let header = format!("Authorization: Bearer {key}");
    let script = remote.to_str().expect("a path");
    let items = |words: &[&str]| {
        let mut command = Command::new(place::binary("weir"));
        command
            .args(["extract", "--era", "legacy"])
            .args(words)
            .env("HOME", house.path());
        let output = foreign::run(command, Duration::from_secs(180));
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice::<Value>(&output.stdout).expect("a document")["items"].clone()
    };
    let through = items(&[
        "--",
        &node,
        script,
        url,
        "--allow-http",
        "--header",
        &header,
    ]);
    assert!(
        through.as_array().is_some_and(|items| items.len() == 3),
        "{through}"
    );
    assert_eq!(through, items(&["--header", &header, url]));
}

#[test]
fn an_agent_of_langchain_through_profiles() {
    Agent {
        name: "langchain",
        environment: MCP1,
    }
    .holds_through(&[ANTHROPIC, OPENAI, GEMINI]);
}

#[test]
fn an_agent_of_mcp_use_through_profiles() {
    Agent {
        name: "mcp_use",
        environment: MCP1,
    }
    .holds_through(&[OPENAI_WITHOUT_REFERENCES, GEMINI]);
    Agent {
        name: "mcp_use",
        environment: MCP1,
    }
    .holds_through(&[ANTHROPIC]);
}

#[test]
fn an_agent_of_pydantic_ai_through_profiles() {
    Agent {
        name: "pydantic_ai",
        environment: MCP2,
    }
    .holds_through(&[ANTHROPIC, OPENAI, OPENAI_STRICT, GEMINI]);
}

#[test]
fn an_agent_of_openai_agents_through_profiles() {
    Agent {
        name: "openai_agents",
        environment: MCP2,
    }
    .holds_through(&[OPENAI, OPENAI_STRICT]);
}

#[test]
fn an_agent_of_google_adk_through_its_profile() {
    Agent {
        name: "google_adk",
        environment: ADK,
    }
    .holds_through(&[GEMINI]);
}

#[test]
fn an_agent_of_llama_index_through_profiles() {
    // It turns each record into an unrestricted object, which its own client of Gemini then refuses.
    Agent {
        name: "llama_index",
        environment: ADK,
    }
    .holds_through(&[OPENAI_WITHOUT_REFERENCES, GEMINI.flat()]);
}

#[test]
fn an_agent_of_the_vercel_ai_sdk_through_profiles() {
    Agent {
        name: "ai_sdk",
        environment: NODE,
    }
    .holds_through(&[ANTHROPIC, OPENAI, GEMINI]);
}
