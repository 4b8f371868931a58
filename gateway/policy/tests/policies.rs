//! Policies over compiled contracts: their types, what is wrong with them, what a change breaks, and what they decide.

use std::sync::Arc;

use serde_json::{Value, json};
use weir_contracts::{
    CompiledContract, ContractTool, ContractVersion,
    contract::{ArtifactFormat, CallTarget, ToolAnnotations},
};
use weir_policy::{
    DefaultDecision, PolicyFile, PolicyJudge, PolicyPrincipal, PolicyRules, PolicyVocabulary,
    broken_by, check_rules,
};

fn tool(name: &str, reads: bool, input: Value) -> Arc<ContractTool> {
    Arc::new(ContractTool {
        name: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema: input.into(),
        output_schema: None,
        annotations: ToolAnnotations {
            read_only_hint: Some(reads),
            ..ToolAnnotations::default()
        },
        target: CallTarget::Form,
        limits: Default::default(),
        audit_clear: Vec::new(),
        approval: None,
    })
}

fn contract(name: &str, tools: Vec<Arc<ContractTool>>) -> CompiledContract {
    CompiledContract {
        format: ArtifactFormat::default(),
        name: name.to_owned(),
        title: None,
        description: None,
        instructions: None,
        version: ContractVersion::FIRST,
        definitions: None,
        maker: None,
        collections: Vec::new(),
        tools,
        prompts: Vec::new(),
        resources: Vec::new(),
        templates: Vec::new(),
        live_resources: false,
    }
}

fn refund(amount: &str, kind: Value) -> Arc<ContractTool> {
    let input = json!({
        "type": "object",
        "properties": {
            amount: kind,
            "order": { "type": "string" },
            "lines": { "type": "array", "items": { "type": "object", "properties": {
                "count": { "type": "integer" }, "gift": { "type": ["boolean", "null"] },
            }, "required": ["count"] } },
            "tags": { "type": "array", "items": { "type": "string" } },
            "ratio": { "type": "number", "multipleOf": 0.000_01 },
            "either": { "type": ["string", "integer"] },
        },
        "required": [amount, "order"],
    });
    tool("refund_order", false, input)
}

fn desk() -> CompiledContract {
    let amount = json!({ "type": "number", "multipleOf": 0.01 });
    let find = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    contract(
        "desk",
        vec![refund("amount", amount), tool("find_orders", true, find)],
    )
}

fn read(text: &str, default: DefaultDecision) -> Arc<PolicyRules> {
    let file = PolicyFile {
        name: "policies/desk.cedar".to_owned(),
        text: text.to_owned(),
    };
    Arc::new(PolicyRules::read(&[file], default).expect("they can be read"))
}

fn problems(text: &str) -> Vec<String> {
    let file = PolicyFile {
        name: "desk.cedar".to_owned(),
        text: text.to_owned(),
    };
    let found = match PolicyRules::read(&[file], DefaultDecision::Permit) {
        Ok(rules) => check_rules(&rules, &PolicyVocabulary::new([&desk()])),
        Err(problems) => problems,
    };
    found.iter().map(ToString::to_string).collect()
}

const SMALL: &str = r#"
@id("small-refunds")
@message("Refunds above 100 need a person.")
forbid(principal, action == Weir::Action::"refund_order", resource)
when { context.args.amount.greaterThan(decimal("100")) };
"#;

#[test]
fn the_schema_has_the_types_of_the_contracts() {
    let schema = PolicyVocabulary::new([&desk()]).schema_text();
    let action = schema.split("// desk@1.0.0").nth(2).expect("two tools");
    let expected = r#"
  // either: it has several types
  // ratio: its step has more than four digits after the point
  action "refund_order" in ["call"] appliesTo {
    principal: [Agent, User],
    resource: [Tool],
    context: {
      args: {
        "amount": decimal,
        "lines"?: Set<{
          "count": Long,
          "gift"?: Bool,
        }>,
        "order": String,
        "tags"?: Set<String>,
      },
    },
  };
}
"#;
    let mut lines: Vec<&str> = action.lines().collect();
    lines[1..3].sort_unstable();
    assert_eq!(lines.join("\n") + "\n", expected);
    PolicyVocabulary::new([&desk()])
        .schema()
        .expect("it is one");
}

#[test]
fn each_fault_of_a_policy_has_its_place() {
    let sound = SMALL.replace("\"100\"", "\"100.0\"");
    assert_eq!(problems(&sound), [""; 0]);
    for (text, wanted) in [
        ("forbid(principal, action, resource)", "desk.cedar:1"),
        (SMALL, "desk.cedar:5 at small-refunds"),
        (
            &sound.replace(".amount", ".amuont"),
            "did you mean `amount`?",
        ),
        (
            &sound.replace(
                "context.args.amount.greaterThan(decimal(\"100.0\"))",
                "context.args.amount > 5",
            ),
            "desk.cedar:5 at small-refunds",
        ),
        (
            &sound.replace(
                "context.args.amount.greaterThan(decimal(\"100.0\"))",
                "context.args.ratio == 5",
            ),
            "its step has more than four digits",
        ),
        (
            &sound.replace(
                "context.args.amount.greaterThan(decimal(\"100.0\"))",
                "context.args.tags.contains(\"x\")",
            ),
            "desk.cedar:5 at small-refunds",
        ),
        (
            &sound.replace("refund_order", "refund_orders"),
            "did you mean `refund_order`?",
        ),
        (
            "forbid(principal, action, resource == Weir::Tool::\"find\");",
            "names the tool `find`, which is not served",
        ),
        (
            "forbid(principal, action, resource in Weir::Contract::\"dsk\");",
            "did you mean `desk`?",
        ),
        (
            "forbid(principal == Weir::Robot::\"a\", action, resource);",
            "desk.cedar:1 at desk.cedar#1",
        ),
        (
            "\n\npermit(principal, action, resource);",
            "desk.cedar:3 at desk.cedar#1: permits what is permitted anyway",
        ),
        (
            &format!("{sound}{sound}"),
            "another policy has the id `small-refunds`, in desk.cedar line 2",
        ),
        (
            "forbid(principal == ?principal, action, resource);",
            "has a slot",
        ),
    ] {
        let found = problems(text);
        assert!(
            found.iter().any(|problem| problem.contains(wanted)),
            "{wanted}: {found:?}"
        );
    }
}

#[test]
fn a_change_that_a_policy_does_not_survive_is_found() {
    let before = PolicyVocabulary::new([&desk()]);
    let amount = || json!({ "type": "number", "multipleOf": 0.01 });
    let with = |tools| contract("desk", tools);
    let guarded = "@id(\"g\") forbid(principal, action in Weir::Action::\"call\", resource) when \
                   { context.args has amount && context.args.amount.greaterThan(decimal(\"100.0\")) };";
    let sound = SMALL.replace("\"100\"", "\"100.0\"");
    for text in [sound.as_str(), guarded] {
        let rules = read(text, DefaultDecision::Permit);
        assert!(check_rules(&rules, &before).is_empty());
        for (change, wanted) in [
            (with(vec![refund("amount", amount())]), None),
            (with(vec![refund("total", amount())]), Some("takes away")),
            (
                with(vec![refund("amount", json!({ "type": "integer" }))]),
                Some("another type"),
            ),
            (
                with(vec![
                    refund("amount", amount()),
                    tool("more", false, json!({ "type": "object" })),
                ]),
                None,
            ),
        ] {
            let found = broken_by(&rules, &before, &change);
            match wanted {
                None => assert!(found.is_empty(), "{found:?}"),
                Some(wanted) => {
                    let first = found.first().expect("it is found");
                    assert!(first.message.contains(wanted), "{found:?}");
                    assert!(first.message.contains("context.args.amount"), "{found:?}");
                    assert_eq!(first.file, "policies/desk.cedar");
                    assert!(first.line.is_some() && !first.place.is_empty());
                }
            }
        }
    }
    let rules = read(&sound, DefaultDecision::Permit);
    let gone = broken_by(&rules, &before, &with(Vec::new()));
    assert!(
        gone[0].message.contains("names the tool `refund_order`"),
        "{gone:?}"
    );
    // What was wrong before is no fault of the change: the contracts of a folder come one by one.
    let other = contract("other", Vec::new());
    assert!(broken_by(&rules, &PolicyVocabulary::default(), &other).is_empty());
}

fn verdict(judge: &PolicyJudge, agent: &str, tool: &str, args: Value) -> String {
    let principal = PolicyPrincipal::agent(agent, "acme");
    let verdict = judge.tool(&principal, tool, "desk");
    if let Some(denial) = verdict.denial {
        return format!("hidden by {}", denial.policies.join(","));
    }
    let Value::Object(args) = args else {
        panic!("an object")
    };
    match verdict.arguments.map(|rules| rules.decide(&args)) {
        None => "open".to_owned(),
        Some(Ok(())) => "allowed".to_owned(),
        Some(Err(denial)) => format!("{} ({})", denial.message, denial.policies.join(",")),
    }
}

#[test]
fn forbids_narrow_what_keys_allow() {
    let text = SMALL.replace("\"100\"", "\"100.0\"")
        + r#"
        @id("intern-reads") forbid(principal == Weir::Agent::"intern", action in Weir::Action::"call", resource) unless { resource.read_only };
        @id("no-gifts") forbid(principal, action in Weir::Action::"call", resource in Weir::Contract::"desk")
        when { context.args has tags && context.args.tags.contains("gift") };
        "#;
    let rules = read(&text, DefaultDecision::Permit);
    let vocabulary = PolicyVocabulary::new([&desk()]);
    assert_eq!(check_rules(&rules, &vocabulary), []);
    let judge = PolicyJudge::new(rules, vocabulary);
    let order = |amount: Value| json!({ "amount": amount, "order": "o1" });
    for (agent, tool, args, wanted) in [
        ("clerk", "refund_order", order(json!(100)), "allowed"),
        (
            "clerk",
            "refund_order",
            order(json!(100.01)),
            "Refunds above 100 need a person. (small-refunds)",
        ),
        (
            "clerk",
            "refund_order",
            order(json!(0.000_01)),
            "The argument `amount` holds a number that policies cannot read: at most 4 digits after the point, and 14 before it. \
             (no-gifts,small-refunds)",
        ),
        (
            "clerk",
            "refund_order",
            json!({ "amount": 1, "order": "o1", "tags": ["gift"] }),
            "A policy does not allow this call with these arguments. (no-gifts)",
        ),
        (
            "intern",
            "refund_order",
            json!({}),
            "hidden by intern-reads",
        ),
        ("intern", "find_orders", json!({}), "allowed"),
        ("clerk", "unknown_one", json!({}), "allowed"),
    ] {
        assert_eq!(verdict(&judge, agent, tool, args), wanted, "{agent} {tool}");
    }
    let long = json!({ "amount": 1, "order": "o".repeat(1 << 20), "tags": ["x"] });
    assert_eq!(
        verdict(&judge, "clerk", "refund_order", long),
        "allowed",
        "an unread text costs nothing"
    );
    let long = json!({ "amount": 1, "order": "o", "tags": ["x".repeat(1 << 20)] });
    assert_eq!(
        verdict(&judge, "clerk", "refund_order", long),
        "The arguments that policies read are larger than 64 KiB. (no-gifts,small-refunds)"
    );
}

#[test]
fn with_deny_only_what_a_policy_permits_is_there() {
    let text = r#"
        @id("clerks") permit(principal in Weir::Tenant::"acme", action in Weir::Action::"call", resource)
        when { resource.read_only };
        @id("little") @message("Up to 20.") permit(principal == Weir::Agent::"clerk", action == Weir::Action::"refund_order", resource)
        when { context.args.amount.lessThanOrEqual(decimal("20.0")) };
        @id("night") forbid(principal == Weir::Agent::"night", action, resource);
    "#;
    let rules = read(text, DefaultDecision::Deny);
    let vocabulary = PolicyVocabulary::new([&desk()]);
    assert_eq!(check_rules(&rules, &vocabulary), []);
    let judge = PolicyJudge::new(rules, vocabulary);
    let order = |amount: i64| json!({ "amount": amount, "order": "o1" });
    for (agent, tool, args, wanted) in [
        ("clerk", "find_orders", json!({}), "open"),
        ("clerk", "refund_order", order(20), "allowed"),
        ("clerk", "refund_order", order(21), "Up to 20. (little)"),
        ("other", "refund_order", order(1), "hidden by "),
        ("night", "find_orders", json!({}), "hidden by night"),
    ] {
        assert_eq!(verdict(&judge, agent, tool, args), wanted, "{agent} {tool}");
    }
    let clerk = PolicyPrincipal::agent("clerk", "acme");
    assert!(
        judge.contract(&clerk, "desk").is_some(),
        "nothing permits its prompts"
    );
}

/// A policy that was sound when it was read can meet a contract of another type, by a way that no check is on: it denies.
#[test]
fn a_policy_that_cannot_be_decided_denies() {
    let rules = read(
        "@id(\"odd\") forbid(principal, action, resource) when { context.args.order > 5 };",
        DefaultDecision::Permit,
    );
    let judge = PolicyJudge::new(rules, PolicyVocabulary::new([&desk()]));
    let args = json!({ "amount": 1, "order": "o1" });
    assert_eq!(
        verdict(&judge, "clerk", "refund_order", args),
        "A policy cannot be decided for this call, so it is not allowed. (odd)"
    );
}

/// A plugin gets the defaults of its schema; policies decide by what it gets.
#[test]
fn a_default_of_a_plugin_is_decided_as_if_it_was_given() {
    let tool = |target| {
        let input = json!({ "type": "object", "properties": {
            "count": { "type": "integer", "default": 9 }, "note": { "type": "string", "default": null },
        } });
        let mut tool = Arc::unwrap_or_clone(tool("order_parts", false, input));
        tool.target = target;
        contract("desk", vec![Arc::new(tool)])
    };
    let offer = json!({ "maker": { "plugin": "parts" }, "name": "order_parts" });
    let offer = serde_json::from_value(offer).expect("an offer");
    let plugin = tool(CallTarget::Offer(Arc::new(offer)));
    let text = "@id(\"few\") forbid(principal, action == Weir::Action::\"order_parts\", resource) when { context.args.count > 5 };";
    let rules = read(text, DefaultDecision::Permit);
    let vocabulary = PolicyVocabulary::new([&plugin]);
    assert_eq!(check_rules(&rules, &vocabulary), []);
    let judge = PolicyJudge::new(rules.clone(), vocabulary);
    for (args, wanted) in [
        (json!({}), "(few)"),
        (json!({ "count": 2 }), "allowed"),
        (json!({ "count": 9 }), "(few)"),
    ] {
        let found = verdict(&judge, "clerk", "order_parts", args.clone());
        assert!(found.ends_with(wanted), "{args}: {found}");
    }
    // A form fills in its own defaults alone: here the argument may be absent.
    let form = PolicyVocabulary::new([&tool(CallTarget::Form)]);
    assert!(!check_rules(&rules, &form).is_empty());
    let note = "forbid(principal, action == Weir::Action::\"order_parts\", resource) when { context.args.note == \"x\" };";
    let note = read(note, DefaultDecision::Permit);
    assert!(
        !check_rules(&note, &PolicyVocabulary::new([&plugin])).is_empty(),
        "null is no default"
    );
}

/// Policies are checked with the tools that they can tell apart. What is wrong with them is found all the same.
#[test]
fn among_many_tools_each_fault_is_found() {
    let tools = (0..300).map(|number| {
        let schema = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        tool(&format!("tool_{number}"), false, schema)
    });
    let vocabulary = PolicyVocabulary::new([&contract("desk", tools.collect())]);
    let mut text = String::new();
    for number in 0..200 {
        let policy = match number % 4 {
            0 => format!("forbid(principal == Weir::Agent::\"a{number}\", action, resource);"),
            1 => format!(
                "forbid(principal, action == Weir::Action::\"tool_{number}\", resource) when {{ context.args has amount && \
                 context.args.amount > {number} }};"
            ),
            2 => "forbid(principal, action in Weir::Action::\"call\", resource) unless { resource.read_only };".to_owned(),
            _ => format!(
                "forbid(principal, action in [Weir::Action::\"tool_{number}\", Weir::Action::\"list\"], resource);"
            ),
        };
        text += &format!("@id(\"p{number}\") {policy}\n");
    }
    let first = "action == Weir::Action::\"tool_0\"";
    text += &format!(
        "@id(\"first\") forbid(principal, action in Weir::Action::\"call\", resource) unless {{ {first} }};\n"
    );
    let rules = read(&text, DefaultDecision::Permit);
    assert_eq!(check_rules(&rules, &vocabulary), []);
    for (fault, wanted) in [
        (
            "forbid(principal, action, resource) when { resource.read_only == 1 };",
            "types",
        ),
        (
            "forbid(principal, action == Weir::Action::\"tool_9\", resource) when { context.args has amount && \
             context.args.amount == \"1\" };",
            "types",
        ),
        (
            "forbid(principal, action in Weir::Action::\"call\", resource) when { action == Weir::Action::\"list\" };",
            "impossible",
        ),
        (
            "forbid(principal, action, resource) when { context.args.amount > 1 };",
            "amount",
        ),
        (
            "forbid(principal, action == Weir::Action::\"tool_300\", resource);",
            "names the tool `tool_300`",
        ),
    ] {
        let rules = read(
            &format!("{text}@id(\"bad\") {fault}"),
            DefaultDecision::Permit,
        );
        let found = check_rules(&rules, &vocabulary);
        let is_found = found.iter().any(|problem| problem.message.contains(wanted));
        assert!(is_found, "{fault}: {found:?}");
        assert!(
            found.iter().all(|problem| problem.place == "bad"),
            "{found:?}"
        );
    }
    let mentioned = "@id(\"m\") forbid(principal, action, resource) when { action == Weir::Action::\"tool_7\" };";
    let rules = read(mentioned, DefaultDecision::Permit);
    assert_eq!(check_rules(&rules, &vocabulary), []);
}
