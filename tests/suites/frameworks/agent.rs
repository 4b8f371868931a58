//! Runs an agent of a framework whose tools are a view with the profile of its model's vendor. The model is a stand-in that
//! requests valid and invalid calls. The test checks which tools the vendor saw, what the model read of each call, and that
//! there was no warning.

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use weir_tests::{
    Gateway, House, Modern, foreign,
    vendor::{Declared, Vendor, Wanted},
    web::Web,
};

use crate::sample;

/// The hardest shapes that a form can express, behind a name of 58 characters.
const EXPENSES: &str = r##"
contract: expenses
collections:
  reports:
    adapter: rest
    settings:
      connection: web
      fields: { id: string, name: string }
      list: { path: /items }
      operations:
        file:
          method: POST
          path: /items
          effect: create
          params:
            id: { type: string, required: true }
            traveller: { type: json, required: true }
            receipts: { type: json, required: true }
            left_at: { type: datetime }
            returned_on: { type: date }
            tags: { type: json }
            per_diem: { type: number }
            priority: { type: json }
            approver: { type: json }
          returns: { id: string, name: string }
        plan:
          method: POST
          path: /items
          effect: create
          params: { id: { type: string, required: true }, route: { type: json, required: true } }
          returns: { id: string, name: string }
    write: true
tools:
  - tool: file_the_expense_report_of_a_journey_with_all_its_receipts
    description: Files what a journey has cost.
    verb: call
    operation: file
    collection: reports
    fields:
      - { name: id, type: text, required: true, pattern: "^r-[0-9]+$" }
      - name: traveller
        type: record
        required: true
        fields:
          - { name: name, type: text, required: true, min_length: 1 }
          - { name: email, type: email, required: true }
          - { name: cost_center, type: text, nullable: true }
          - name: address
            type: record
            fields:
              - { name: city, type: text, required: true }
              - { name: country, type: dropdown, choices: [NO, SE, IS] }
      - name: receipts
        type: list
        required: true
        min_items: 1
        max_items: 20
        of:
          type: record
          fields:
            - { name: date, type: date, required: true }
            - { name: kind, type: dropdown, required: true, choices: [hotel, train, meal] }
            - { name: amount, type: number, decimals: true, required: true, min: 0, max: 10000 }
            - { name: note, type: multiline }
      - { name: left_at, type: datetime }
      - { name: returned_on, type: date, nullable: true }
      - { name: tags, type: multi-choice, choices: [abroad, training], max_items: 2 }
      - { name: per_diem, type: number, nullable: true, min: 0, max: 200 }
      - { name: priority, type: json, schema: { type: integer, enum: [1, 2, 3] } }
      - name: approver
        type: json
        schema:
          oneOf:
            - type: object
              properties: { kind: { const: person }, id: { $ref: "#/$defs/number" } }
              required: [kind, id]
              additionalProperties: false
            - type: object
              properties: { kind: { const: team }, name: { type: [string, "null"] } }
              required: [kind, name]
              additionalProperties: false
          $defs: { number: { type: integer, exclusiveMinimum: 0 } }
  - tool: plan_route
    description: Plans a journey.
    verb: call
    operation: plan
    collection: reports
    fields:
      - { name: id, type: text, required: true }
      - name: route
        type: json
        required: true
        schema:
          $ref: "#/$defs/leg"
          $defs:
            leg:
              type: object
              properties: { to: { type: string }, then: { type: array, items: { $ref: "#/$defs/leg" } } }
              required: [to]
              additionalProperties: false
"##;

const LONG: &str = "file_the_expense_report_of_a_journey_with_all_its_receipts";
/// The tools with records as arguments.
const RECORDS: [&str; 2] = [LONG, "plan_route"];

/// A framework as `tests/clients/agent.py` or `agent.mjs` names it.
pub(crate) struct Agent {
    pub name: &'static str,
    /// The folder under `clients/` of the cache that it is installed in.
    pub environment: &'static str,
}

/// A view by its profile, and the vendor of the model that sees its tools.
#[derive(Clone, Copy)]
pub(crate) struct Door {
    profile: &'static str,
    vendor: &'static str,
    /// Whether the view has tools with records as arguments.
    has_records: bool,
}

impl Door {
    const fn new(profile: &'static str, vendor: &'static str) -> Self {
        Self {
            profile,
            vendor,
            has_records: true,
        }
    }

    /// Returns the door to tools whose arguments are single values.
    pub(crate) const fn flat(self) -> Self {
        Self {
            has_records: false,
            ..self
        }
    }
}

pub(crate) const ANTHROPIC: Door = Door::new("anthropic", "anthropic");
pub(crate) const OPENAI: Door = Door::new("openai", "openai");
pub(crate) const OPENAI_STRICT: Door = Door::new("openai-strict", "openai");
pub(crate) const GEMINI: Door = Door::new("gemini", "gemini");
/// For frameworks that fail on a schema which refers to itself, although a model of OpenAI accepts it.
pub(crate) const OPENAI_WITHOUT_REFERENCES: Door = Door::new("anthropic", "openai");

impl Agent {
    /// Checks the agent at each of these doors.
    pub(crate) fn holds_through(&self, doors: &[Door]) {
        let runtime = Runtime::new().expect("a runtime");
        let web = runtime.block_on(Web::start());
        let house = house(&web, doors);
        let gateway = house.serve();
        for door in doors {
            self.check(&runtime, &gateway, *door);
        }
    }

    fn check(&self, runtime: &Runtime, gateway: &Gateway, door: Door) {
        let profile = door.profile;
        let calls: Vec<_> = calls()
            .into_iter()
            .filter(|(call, _)| door.has_records || !RECORDS.contains(&call.tool))
            .collect();
        let script: Vec<Wanted> = calls.iter().map(|(wanted, _)| wanted.clone()).collect();
        let vendor = runtime.block_on(Vendor::start(&script));
        let url = gateway.view_url(profile);
        let plan = json!({
            "url": url, "base": vendor.base, "vendor": door.vendor, "strict": profile.ends_with("-strict"),
        });
        let (report, noise) = foreign::report_and_noise(self.command(), &plan);
        let who = format!("{} of {} through {profile}", self.name, door.vendor);
        assert_eq!(noise, "", "{who}: a user is warned");
        assert_eq!(report["answer"], "done", "{who}: {report}");

        let (listed, _) = runtime.block_on(Modern::new(url).list());
        check_declared(&who, door, &listed, &vendor.declared());
        let read = vendor.read();
        assert_eq!(read.len(), calls.len(), "{who}: {read:#?}");
        for ((wanted, texts), read) in calls.iter().zip(&read) {
            for text in *texts {
                assert!(
                    read.contains(text),
                    "{who}: no {text} after {} {}: {read}",
                    wanted.tool,
                    wanted.arguments
                );
            }
        }
    }

    fn command(&self) -> std::process::Command {
        let mut command = match self.environment.starts_with("python") {
            true => foreign::python_script(self.environment, "agent.py"),
            false => foreign::node_script_in(self.environment, "agent.mjs"),
        };
        command.arg(self.name);
        command
    }
}

fn house(web: &Web, doors: &[Door]) -> House {
    let view = |door: &Door| {
        let contracts = if door.has_records {
            ""
        } else {
            "contracts = [\"airports\"]"
        };
        format!(
            "[views.{0}]\nprofile = \"{0}\"\n{contracts}\n",
            door.profile
        )
    };
    let views: String = doors.iter().map(view).collect();
    sample::house().file("contracts/expenses.yaml", EXPENSES).config(&views).config(&format!(
        "[connections.web]\nkind = \"http\"\nbase_url = \"{}\"\nwrite = true\n[plugins.rest.grants]\nweb = \"write\"",
        web.base
    ))
}

type Texts = &'static [&'static str];

fn call(tool: &'static str, arguments: Value, texts: Texts) -> (Wanted, Texts) {
    (Wanted { tool, arguments }, texts)
}

/// Returns the model's calls, and texts that it must read after each.
fn calls() -> Vec<(Wanted, Texts)> {
    let report = json!({
        "id": "r-7",
        "traveller": {"name": "Ann", "email": "ann@example.org", "address": {"city": "Oslo", "country": "NO"}},
        "receipts": [{"date": "2026-05-04", "kind": "train", "amount": 42.5, "note": "Window seat"}],
        "left_at": "2026-05-04T08:00:00Z",
        "tags": ["abroad"],
        "priority": 2,
        "approver": {"kind": "person", "id": 7},
    });
    let mut wrong = report.clone();
    wrong["traveller"]["email"] = "nobody".into();
    wrong["receipts"][0]["date"] = "yesterday".into();
    wrong["receipts"][0]["kind"] = "taxi".into();
    wrong["per_diem"] = 201.into();
    vec![
        call(
            "lookup_airport",
            json!({"iata": "OSL"}),
            &["Oslo Gardermoen Airport"],
        ),
        call(
            "lookup_airport",
            json!({"iata": "XXX"}),
            &["No record meets these conditions"],
        ),
        call(
            "create_airport",
            json!({"iata": "x", "name": "A field", "country": "DK", "elevation_ft": null}),
            &["/iata", "^[A-Z]{3}$", "/country"],
        ),
        // A model under a strict schema sends null for each omitted argument.
        call(
            "list_airports",
            json!({"country": "NO", "min_elevation_ft": null, "limit": null, "cursor": null}),
            &["Trondheim Airport Vaernes"],
        ),
        call(
            "plan_route",
            json!({"id": "r-8", "route": {"to": "Bergen", "then": [{"to": "Oslo"}]}}),
            &["Item r-8"],
        ),
        call(LONG, report, &["Item r-7"]),
        call(
            LONG,
            wrong,
            &[
                "/traveller/email",
                "/receipts/0/date",
                "/receipts/0/kind",
                "hotel",
                "/per_diem",
                "200",
            ],
        ),
    ]
}

/// Checks that the vendor saw every tool and every argument that the view lists, in its own words.
fn check_declared(who: &str, door: Door, listed: &[Value], declared: &[Declared]) {
    let answer = sorted(declared.iter().map(|tool| tool.name.as_str()));
    assert_eq!(
        answer,
        sorted(listed.iter().filter_map(|tool| tool["name"].as_str())),
        "{who}"
    );
    let all = ["create_airport", "list_airports", "lookup_airport"];
    let all = sorted(
        all.into_iter()
            .chain(RECORDS.into_iter().filter(|_| door.has_records)),
    );
    assert_eq!(answer, all, "{who}: a tool is not in the view");
    for tool in declared {
        let full = &listed
            .iter()
            .find(|listed| listed["name"] == tool.name)
            .expect("it is listed")["inputSchema"];
        assert_eq!(
            arguments(&tool.schema),
            arguments(full),
            "{who}: {}: {}",
            tool.name,
            tool.schema
        );
        let mut broken = Vec::new();
        if tool.is_strict {
            open_objects(&tool.schema, "", &mut broken);
        }
        if door.profile == "gemini" {
            not_of_gemini(&tool.schema, "", &mut broken);
        }
        assert!(
            broken.is_empty(),
            "{who}: {}: {broken:#?}\n{:#}",
            tool.name,
            tool.schema
        );
        // OpenAI's SDK holds a model to no schema that leads back to itself.
        let may_be_open = door.profile != "openai-strict" || full.to_string().contains("$ref");
        assert!(
            tool.is_strict || may_be_open,
            "{who}: {} is not strict: {}",
            tool.name,
            tool.schema
        );
    }
}

fn sorted<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names
}

fn arguments(schema: &Value) -> Vec<String> {
    sorted(
        schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str()),
    )
}

/// The keys of `Schema` in Gemini's interface, which accepts either spelling.
const SCHEMA_OF_GEMINI: [&str; 25] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "properties",
    "required",
    "anyOf",
    "any_of",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "min_items",
    "max_items",
    "minLength",
    "maxLength",
    "min_length",
    "max_length",
    "pattern",
    "default",
    "propertyOrdering",
    "property_ordering",
];

fn not_of_gemini(schema: &Value, at: &str, broken: &mut Vec<String>) {
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            "type" if !value.is_string() => broken.push(format!("{at}: type {value}")),
            "enum" if !value.as_array().into_iter().flatten().all(Value::is_string) => {
                broken.push(format!("{at}: enum {value}"));
            }
            // The Vercel AI SDK closes objects again, in the form that is JSON Schema, where it may be written.
            "additionalProperties" if *value == false => {}
            key if !SCHEMA_OF_GEMINI.contains(&key) => broken.push(format!("{at}: {key}")),
            _ => {}
        }
    }
    inside(schema, at, &mut |schema, at| {
        not_of_gemini(schema, at, broken)
    });
}

/// Finds the objects that OpenAI refuses in a strict function: open ones, and ones with an optional member.
fn open_objects(schema: &Value, at: &str, broken: &mut Vec<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        if schema["additionalProperties"] != false
            || !properties
                .keys()
                .all(|name| required.contains(&json!(name)))
        {
            broken.push(format!("{at}: not closed"));
        }
    }
    inside(schema, at, &mut |schema, at| {
        open_objects(schema, at, broken)
    });
}

/// Visits the schemas inside one.
fn inside(schema: &Value, at: &str, visit: &mut dyn FnMut(&Value, &str)) {
    for key in ["properties", "$defs"] {
        for (name, schema) in schema[key].as_object().into_iter().flatten() {
            visit(schema, &format!("{at}/{key}/{name}"));
        }
    }
    for schema in schema["anyOf"].as_array().into_iter().flatten() {
        visit(schema, &format!("{at}/anyOf"));
    }
    if schema["items"].is_object() {
        visit(&schema["items"], &format!("{at}/items"));
    }
}
