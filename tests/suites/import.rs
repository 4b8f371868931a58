//! Foreign documents of HTTP APIs become contracts, and their tools are called.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{House, Modern, foreign, gateway::read_output, place, upstream::Mock};

use crate::sample;

/// Name, file below `node_modules`, and the exit code: 3 where an operation has no tool.
const DOCUMENTS: [(&str, &str, i32); 4] = [
    ("galaxy", "@scalar/galaxy/dist/3.1.yaml", 3),
    ("figma", "@figma/rest-api-spec/openapi/openapi.yaml", 0),
    ("directus", "@directus/specs/dist/openapi.json", 3),
    (
        "github",
        "@octokit/openapi/generated/api.github.com.json",
        3,
    ),
];

/// Runs a command that reads no configuration, as `weir draft --openapi` does.
pub(crate) fn weir(house: &House, words: &[&str]) -> (i32, String, String) {
    let mut command = std::process::Command::new(place::binary("weir"));
    let output = command
        .current_dir(house.path())
        .args(words)
        .output()
        .expect("weir starts");
    read_output(output)
}

fn document(file: &str) -> PathBuf {
    foreign::node_module_in("openapi", file)
}

/// The reports for people are compared with `tests/fixtures/imported`: what was imported from each document and what was not.
#[test]
fn the_reports_are_fair_and_the_same_each_time() {
    let house = House::new();
    let mut differ = Vec::new();
    for (name, file, expected) in DOCUMENTS {
        let file = document(file);
        let words = [
            "draft",
            "--openapi",
            file.to_str().expect("a path"),
            "--name",
            name,
        ];
        let (code, contract, report) = weir(&house, &words);
        assert_eq!(code, expected, "{name}: {report}");
        assert_eq!(
            (code, contract.clone(), report.clone()),
            weir(&house, &words),
            "{name}"
        );
        assert!(
            contract.starts_with(&format!("contract: {name}\n")),
            "{name}"
        );
        let golden = place::repository().join(format!("tests/fixtures/imported/{name}.txt"));
        if std::env::var_os("WEIR_BLESS").is_some() {
            fs::write(&golden, format!("{report}\n")).expect("written");
        }
        if fs::read_to_string(&golden).unwrap_or_default().trim_end() != report {
            differ.push(format!("{name}:\n{report}"));
        }
    }
    assert!(
        differ.is_empty(),
        "not as in tests/fixtures/imported; WEIR_BLESS=1 accepts it: {}",
        differ.join("\n")
    );
}

const CYCLES: &str = r##"
openapi: 3.1.0
info: { title: Trees, version: "1" }
servers: [{ url: "https://trees.example.org" }]
paths:
  /trees:
    get:
      operationId: listTrees
      summary: Lists trees
      parameters: [{ name: after, in: query, schema: { type: [string, "null"] } }]
      responses: { "200": { description: Trees } }
    post:
      operationId: plantTree
      summary: Plants a tree
      requestBody: { required: true, content: { application/json: { schema: { $ref: "#/components/schemas/Node" } } } }
      responses: { "201": { description: The tree } }
  /nowhere:
    get:
      operationId: nowhere
      summary: Refers to nothing
      parameters: [{ $ref: "#/components/parameters/Nowhere" }]
      responses: { "200": { description: ok } }
  /round:
    get:
      operationId: round
      summary: Turns in a circle
      parameters: [{ name: x, in: query, schema: { $ref: "#/components/schemas/A" } }]
      responses: { "200": { description: ok } }
components:
  schemas:
    Node:
      type: object
      required: [name]
      properties:
        name: { type: string }
        height: { type: number, exclusiveMinimum: 0 }
        children: { type: array, items: { $ref: "#/components/schemas/Node" } }
    A: { $ref: "#/components/schemas/B" }
    B: { $ref: "#/components/schemas/A" }
"##;

/// Differences of 3.1 from 3.0, and schemas that contain themselves, do not cost the whole document.
#[tokio::test]
async fn complaint_20_a_document_of_3_1_with_cycles_is_imported_or_reported_by_operation() {
    let house = House::new().file("trees.yaml", CYCLES);
    let words = ["draft", "--openapi", "trees.yaml", "--name", "trees"];
    let (code, contract, report) = weir(&house, &words);
    assert_eq!(code, 3, "{report}");
    for part in [
        "3 tools; 1 operations left out, 1 notes",
        "GET /nowhere: the reference #/components/parameters/Nowhere leads nowhere",
        "GET /round: the parameter is dropped: a reference leads back to itself",
    ] {
        assert!(report.contains(part), "{part:?} is not in {report}");
    }
    let (_, connection, _) = weir(&house, &[&words[..], &["--print", "connection"]].concat());
    let house = house
        .config(&connection)
        .file("contracts/trees.yaml", contract);
    let gateway = house.serve();
    let (tools, _) = Modern::new(gateway.url()).list().await;
    let tool = |name: &str| {
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .expect("it is made a tool of")
    };
    let node = &tool("plant_tree")["inputSchema"]["properties"];
    assert_eq!(node["height"]["exclusiveMinimum"], 0, "{node}");
    assert!(
        node["children"].to_string().contains("$ref"),
        "a tree of trees: {node}"
    );
    assert!(tool("list_trees")["inputSchema"]["properties"]["after"].is_object());
}

/// Makes a house with the contract of a document, whose service is at `base`; lint looks over the contract too.
fn imported(name: &str, file: &str, base: &str) -> House {
    let house = House::new();
    let file = document(file);
    let words = [
        "draft",
        "--openapi",
        file.to_str().expect("a path"),
        "--name",
        name,
    ];
    let (_, contract, _) = weir(&house, &words);
    let (_, connection, _) = weir(&house, &[&words[..], &["--print", "connection"]].concat());
    let mut lines: Vec<String> = connection.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if line.starts_with("base_url = ") {
            *line = format!("base_url = \"{base}\"");
        }
        if let Some((before, after)) = line.split_once("${env:") {
            *line = format!(
                "{before}dGVzdDp0ZXN0{}",
                after.split_once('}').expect("a reference ends").1
            );
        }
    }
    let house = house
        .config(&lines.join("\n"))
        .file(&format!("contracts/{name}.yaml"), contract);
    house.succeed(&["lint", &format!("contracts/{name}.yaml")]);
    house
}

/// Calls a tool with arguments as an agent finds them: nothing at first, and then what each refusal asks for. A refusal
/// has no example of one of several objects: the agent has read their schemas.
async fn called(client: &Modern, tool: &str) -> Value {
    let mut arguments = match tool {
        "create_celestial_body" => json!({ "body": { "name": "Phobos", "diameter": 22.2 } }),
        _ => json!({}),
    };
    let mut result = Value::Null;
    for _ in 0..8 {
        result = client.call(tool, arguments.clone()).await;
        if result["structuredContent"]["code"] != "invalid_arguments" {
            break;
        }
        for error in result["structuredContent"]["errors"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let path = error["path"].as_str().unwrap_or_default();
            if let (Some(example), Some(place)) =
                (error.get("example"), place_at(&mut arguments, path))
            {
                *place = example.clone();
            }
        }
    }
    result
}

fn place_at<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let steps = path
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"));
    let mut steps = steps;
    steps.try_fold(value, |here, step| match here {
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        Value::Object(members) => Some(members.entry(step).or_insert(Value::Null)),
        _ => None,
    })
}

/// Tools that do not succeed behind the mock: whose fault that is, the error of the caller, and the tools.
const NOT_ANSWERED: [(&str, &str, &[&str]); 3] = [
    (
        "the mock refuses `1` in a path for `oneOf` a number and a text, being both",
        "The web service refuses the values.",
        &[
            "get_item",
            "update_item",
            "delete_item",
            "actions_create_workflow_dispatch",
            "actions_disable_workflow",
            "actions_enable_workflow",
            "actions_get_workflow",
            "actions_get_workflow_usage",
            "actions_list_workflow_runs",
            "repos_cancel_pages_deployment",
            "repos_get_pages_deployment",
        ],
    ),
    (
        "the document has no answer but 401, and the mock gives it",
        "The web service refuses the connection's credentials.",
        &["password_request", "password_reset"],
    ),
    (
        "the document has no answer but 302, and the mock gives it",
        "the web service redirects to somewhere else",
        &[
            "register_user_verify_email",
            "actions_download_artifact",
            "actions_download_job_logs_for_workflow_run",
            "actions_download_workflow_run_attempt_logs",
            "actions_download_workflow_run_logs",
            "migrations_download_archive_for_org",
            "migrations_get_archive_for_authenticated_user",
            "repos_download_tarball_archive",
            "repos_download_zipball_archive",
        ],
    ),
];

/// Serves the whole import, however large. A server that answers as the document describes is behind a real gateway: each
/// tool of it succeeds. Returns the failures.
async fn is_answered(name: &str, file: &str, mock: Mock, tools: usize) -> Vec<String> {
    let house = imported(name, file, &mock.base);
    let (_gateway, client) = house.serve_client();
    let (listed, _) = client.list().await;
    assert_eq!(listed.len(), tools, "{name}");
    let mut failed = Vec::new();
    for tool in &listed {
        let tool = tool["name"].as_str().expect("a name");
        let result = called(&client, tool).await;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        match (
            NOT_ANSWERED
                .iter()
                .find(|(.., names)| names.contains(&tool)),
            result["isError"] == true,
        ) {
            (Some((_, why, _)), true) if text.starts_with(*why) => {}
            (Some((fault, why, _)), true) => {
                failed.push(format!("{tool}: {text}, not {why}, although {fault}"))
            }
            (Some((fault, ..)), false) => failed.push(format!(
                "{tool} succeeds: take it out of the list ({fault})"
            )),
            (None, true) => failed.push(format!("{tool}: {text}")),
            (None, false) => {}
        }
    }
    failed
}

#[tokio::test]
async fn every_imported_tool_is_answered() {
    // The largest document is read for half a minute; the others are gone through meanwhile.
    let start = |name: &str| {
        let (name, file, _) = *DOCUMENTS
            .iter()
            .find(|(document, ..)| *document == name)
            .expect("a document");
        (
            name,
            file,
            tokio::task::spawn_blocking(move || Mock::start(&document(file))),
        )
    };
    let largest = start("github");
    let mut failed = Vec::new();
    for ((name, file, mock), tools) in [
        (start("galaxy"), 9),
        (start("figma"), 54),
        (start("directus"), 132),
        (largest, 1219),
    ] {
        failed.extend(is_answered(name, file, mock.await.expect("a server"), tools).await);
    }
    assert!(
        failed.is_empty(),
        "{} tools:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// Our own document, fetched from our own gateway, is a contract whose tools answer what the gateway's own tools
/// answer.
#[tokio::test]
async fn what_the_gateway_writes_it_reads() {
    let first = sample::house();
    let served = first.serve();
    let url = served.url().replace("/mcp", "/rest/airports/openapi.json");
    let house = House::new();
    let (code, contract, err) = weir(
        &house,
        &[
            "draft",
            "--openapi",
            &url,
            "--only",
            "POST /*",
            "--name",
            "mirror",
        ],
    );
    assert_eq!(code, 0, "{err}");
    let (_, connection, _) = weir(
        &house,
        &[
            "draft",
            "--openapi",
            &url,
            "--only",
            "POST /*",
            "--name",
            "mirror",
            "--print",
            "connection",
        ],
    );
    assert!(
        connection.contains(&format!("base_url = \"{}/rest/airports\"", served.base)),
        "{connection}"
    );
    let house = house
        .config(&connection)
        .file("contracts/mirror.yaml", contract);
    let gateway = house.serve();
    let (own, mirrored) = (Modern::new(served.url()), Modern::new(gateway.url()));
    let own =
        own.call("lookup_airport", json!({ "iata": "OSL" })).await["structuredContent"].clone();
    let through = mirrored
        .call("lookup_airport", json!({ "iata": "OSL" }))
        .await;
    assert_eq!(
        through["structuredContent"]["record"]["name"],
        own["name"],
        "{through}\n{}",
        gateway.log()
    );
    let created = json!({ "iata": "AAA", "name": "New", "country": "NO" });
    let created = mirrored.call("create_airport", created).await;
    assert_eq!(
        created["structuredContent"]["record"]["status"], "created",
        "{created}"
    );

    let (code, _, err) = weir(
        &house,
        &[
            "draft",
            "--openapi",
            &url.replace("openapi.json", "nothing.json"),
        ],
    );
    assert!(code == 1 && err.contains("answered 40"), "{err}");
    let (code, _, err) = weir(
        &house,
        &["draft", "--openapi", "http://127.0.0.1:1/openapi.json"],
    );
    assert!(code == 1 && err.contains("cannot be reached"), "{err}");
}

/// Operations whose schemas take exponentially many steps are refused, and a document that only looks like it is
/// accepted; neither takes long.
#[test]
fn a_document_that_explodes_is_refused_in_a_sentence() {
    let house = House::new();
    let refer = |level: usize| json!({ "$ref": format!("#/components/schemas/S{level}") });
    let document = |level: &dyn Fn(Value) -> Value| {
        let mut schemas: serde_json::Map<String, Value> = (0..30)
            .map(|number| (format!("S{number}"), level(refer(number + 1))))
            .collect();
        schemas.insert("S30".to_owned(), json!({ "type": "string" }));
        let body = json!({ "content": { "application/json": { "schema": { "type": "object", "properties": { "a": refer(0) } } } } });
        json!({
            "openapi": "3.1.0", "info": { "title": "Chain" }, "servers": [{ "url": "http://127.0.0.1:1" }],
            "paths": { "/a": { "put": { "operationId": "putChain", "requestBody": body, "responses": { "200": body } } } },
            "components": { "schemas": schemas },
        })
    };
    let import = |level: &dyn Fn(Value) -> Value| {
        house.write("chain.json", document(level).to_string());
        let started = Instant::now();
        let done = weir(&house, &["draft", "--openapi", "chain.json"]);
        let took = started.elapsed();
        assert!(took < Duration::from_secs(60), "it took {took:?}");
        done
    };
    let (code, contract, err) = import(&|next| json!({ "allOf": [next, next] }));
    assert_eq!((code, &*contract), (1, ""), "{err}");
    let bound = "with all references followed, and at most 200000 are accepted";
    for part in ["PUT /a: ", "checking one value at ", bound] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let (code, contract, err) =
        import(&|next| json!({ "type": "object", "properties": { "a": next, "b": next } }));
    assert!(code == 0 && contract.len() < 20_000, "{contract}{err}");
}

const NOTES: &str = r##"{"openapi": "3.1.0", "info": {"title": "Notes"}, "servers": [{"url": "http://127.0.0.1:1"}],
    "paths": {"/notes": {"post": {"operationId": "addNote", "summary": "Add a note",
      "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object",
        "properties": {"text": {"type": "string"}, "mark": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}, "required": ["text"]}}}},
      "responses": {"201": {"description": "It", "content": {"application/json": {"schema": {"type": "object",
        "properties": {"id": {"type": "integer"}}}}}}}}}}}"##;

/// A newer document is a change like any other: what may break an agent waits.
#[tokio::test]
async fn a_newer_document_goes_through_the_gate() {
    let house = House::new();
    let import = |document: String| {
        house.write("notes.json", document);
        let (code, contract, err) = weir(&house, &["draft", "--openapi", "notes.json"]);
        assert_eq!(code, 0, "{err}");
        contract
    };
    let first = import(NOTES.to_owned());
    let optional =
        import(NOTES.replace(r#""mark": {"#, r#""tone": {"type": "string"}, "mark": {"#));
    let narrower = import(NOTES.replace(
        r#"{"oneOf": [{"type": "string"}, {"type": "integer"}]}"#,
        r#"{"type": "integer"}"#,
    ));
    let house = house
        .config("[connections.notes]\nkind = \"http\"\nbase_url = \"http://127.0.0.1:1\"\nwrite = true\n[plugins.rest.grants]\nnotes = \"write\"")
        .file("notes.yaml", &first);
    let _gateway = house.serve();
    let submit = |contract: &str| {
        house.write("notes.yaml", contract);
        house.run(&["contracts", "submit", "notes.yaml"])
    };
    let (code, _, err) = submit(&first);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = submit(&optional);
    assert_eq!(
        code, 3,
        "the operation sends something else now, which someone looks at: {out} {err}"
    );
    assert!(
        format!("{out}{err}").contains("settings-changed")
            && !format!("{out}{err}").contains("breaking"),
        "{out} {err}"
    );
    let (code, out, err) = submit(&narrower);
    assert_eq!(code, 3, "what is narrower is held: {out} {err}");
    assert!(format!("{out}{err}").contains("mark"), "{out} {err}");
}

/// A client whose types are generated from the document compiles as strict TypeScript, and makes calls.
#[tokio::test]
async fn a_generated_client_compiles_and_calls() {
    let house = sample::house();
    let gateway = house.serve();
    let base = gateway.url().replace("/mcp", "/rest/airports");
    let modules = document("");
    std::os::unix::fs::symlink(&modules, house.path().join("node_modules")).expect("a link");
    let script = place::repository().join("tests/clients/generated.ts");
    house.write(
        "client.ts",
        fs::read(script).expect("a script of this repository"),
    );
    let run = |words: &[&str]| {
        let mut command = foreign::node();
        command.current_dir(house.path()).args(words);
        let output = foreign::run(command, Duration::from_secs(120));
        let text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{words:?}: {text:?}");
        text[0].clone()
    };
    run(&[
        "node_modules/openapi-typescript/bin/cli.js",
        &format!("{base}/openapi.json"),
        "-o",
        "schema.d.ts",
    ]);
    let strict = [
        "--strict",
        "--noEmitOnError",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--skipLibCheck",
    ];
    house.write("package.json", r#"{"type": "module"}"#);
    run(&[
        &["node_modules/typescript/bin/tsc", "client.ts"][..],
        &strict,
    ]
    .concat());
    let answered: Value = serde_json::from_str(&run(&["client.js", &base])).expect("JSON");
    assert_eq!(
        answered,
        json!({ "name": "Oslo Gardermoen Airport", "listed": 2, "refused": "invalid_arguments" })
    );

    // The compiler sees what the contract asks for.
    let wrong = fs::read_to_string(house.path().join("client.ts"))
        .expect("a script")
        .replace("iata: \"OSL\"", "iata: 7");
    house.write("client.ts", wrong);
    let mut command = foreign::node();
    command
        .current_dir(house.path())
        .args(["node_modules/typescript/bin/tsc", "client.ts"])
        .args(strict);
    let output = foreign::run(command, Duration::from_secs(120));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success()
            && (printed.contains("iata") || printed.contains("not assignable")),
        "{printed}"
    );
}
