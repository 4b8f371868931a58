//! Policies about the holders of tokens: the same table in both modes, over real tokens and keys.

use serde_json::{Value, json};
use weir_tests::Modern;

use super::Issuer;
use crate::{audit::records, sample};

const POLICIES: &str = r#"
@id("machine-reads")
forbid(principal == Weir::User::"machine", action in Weir::Action::"call", resource)
unless { resource.read_only };

@id("no-sweden")
@message("Not Sweden.")
forbid(principal in Weir::Group::"airports", action == Weir::Action::"list_airports", resource)
when { context.args has country && context.args.country == "SE" };

@id("robots-call-nothing-twice")
@message("Not by robot.")
forbid(principal is Weir::User, action == Weir::Action::"lookup_airport", resource)
when { principal has client && principal.client == "robot" && context.args.iata == "KEF" };
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Allowed,
    Denied,
    Hidden,
}

use Expected::{Allowed, Denied, Hidden};

/// A tool, and the arguments of a call of it.
type ToolCall = (&'static str, &'static str);

const OSLO: ToolCall = ("lookup_airport", r#"{"iata":"OSL"}"#);
const KEFLAVIK: ToolCall = ("lookup_airport", r#"{"iata":"KEF"}"#);
const NORWAY: ToolCall = ("list_airports", r#"{"country":"NO"}"#);
const SWEDEN: ToolCall = ("list_airports", r#"{"country":"SE"}"#);
const NEW: ToolCall = (
    "create_airport",
    r#"{"iata":"BOO","name":"Bodo","country":"NO"}"#,
);

/// Who calls what, and which policy forbids it. `key` is an agent of the same name as a user.
const CASES: [(&str, ToolCall, Expected, &str); 11] = [
    ("machine", OSLO, Allowed, ""),
    ("machine", KEFLAVIK, Allowed, ""),
    ("machine", NEW, Hidden, "machine-reads"),
    ("machine", SWEDEN, Denied, "no-sweden"),
    ("machine", NORWAY, Allowed, ""),
    ("robot", SWEDEN, Denied, "no-sweden"),
    ("robot", KEFLAVIK, Denied, "robots-call-nothing-twice"),
    ("robot", OSLO, Allowed, ""),
    ("key", KEFLAVIK, Allowed, ""),
    ("key", SWEDEN, Allowed, ""),
    ("key", NEW, Allowed, ""),
];

#[tokio::test]
async fn policies_know_the_holders_of_tokens() {
    let issuer = Issuer::start("ES256");
    for mode in ["enforce", "audit"] {
        let house = sample::house()
            .config(&format!(
                "[policy]\nmode = \"{mode}\"\n[[identity.issuers]]\nissuer = \"{}\"\ngroups_claim = \"groups\"\n\
                 grants = [{{ claim = \"groups\", has = \"airports\", contracts = [\"airports\"] }}]",
                issuer.url
            ))
            .file("policies/holders.cedar", POLICIES);
        let gateway = house.serve();
        let url = gateway.contract_url("airports");
        let key = house.key(&["--agent", "machine"]);
        let scopes = "tools tools:write";
        let machine = issuer.token(&url, scopes).await;
        let robot = issuer.token_of("robot", &url, scopes).await;
        for (who, (tool, arguments), expected, policy) in CASES {
            let credential = match who {
                "machine" => &machine,
                "robot" => &robot,
                _ => &key,
            };
            let before = records(&house, &["--tool", tool]).len();
            let arguments: Value = serde_json::from_str(arguments).expect("JSON");
            let client = Modern::with_key(&url, credential);
            let call = json!({ "name": tool, "arguments": arguments });
            let answer = client.ask("tools/call", call).await;
            let found = match &answer.reply()["error"] {
                Value::Null if answer.result()["structuredContent"]["code"] == "forbidden" => {
                    Denied
                }
                Value::Null => Allowed,
                _ => Hidden,
            };
            let wanted = match mode {
                "enforce" => expected,
                _ => Allowed,
            };
            assert_eq!(found, wanted, "{mode} {who} {tool}: {}", answer.text);
            let (tools, _) = client.list().await;
            let is_listed = tools.iter().any(|listed| listed["name"] == tool);
            assert_eq!(is_listed, wanted != Hidden, "{mode} {who} {tool}");
            if wanted == Hidden {
                continue; // as if it had never been
            }
            let mut recorded = records(&house, &["--tool", tool]);
            recorded.retain(|record| record["kind"] == "call" && !record["policy"].is_null());
            let decision = match (mode, expected) {
                (_, Allowed) => continue,
                ("enforce", _) => "denied",
                _ => "audited",
            };
            let expected = json!({ "decision": decision, "policies": [policy] });
            let is_there = recorded.iter().any(|record| record["policy"] == expected);
            assert!(
                is_there && recorded.len() <= before + 1,
                "{mode} {who} {tool}: {recorded:?}"
            );
        }
    }
}
