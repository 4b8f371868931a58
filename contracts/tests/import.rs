//! Documents of HTTP APIs become contracts, and what does not is said.

use std::{collections::BTreeMap, fs, path::Path};

use weir_contracts::{
    compile, form,
    import::{Imported, Wanted, openapi},
};

fn import(text: &str, wanted: &Wanted<'_>) -> Result<Imported, String> {
    openapi("document", text, wanted)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn shown(imported: &Imported) -> String {
    let remarks = imported.remarks.iter().map(|remark| {
        let what = if remark.left_out { "left out" } else { "note" };
        format!("{what} {} | {} | {} | {}\n", remark.reason, remark.operation, remark.place, remark.message)
    });
    format!("{}---\n{}---\n{}", imported.contract, imported.connection, remarks.collect::<String>())
}

/// `UPDATE_GOLDENS=1` writes what came out; read the diff.
#[test]
fn a_document_with_everything() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    let text = fs::read_to_string(folder.join("shop.yaml")).expect("a document");
    let imported = import(&text, &Wanted::default()).expect("a contract");
    let golden = folder.join("shop.expected");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&golden, shown(&imported)).expect("written");
    }
    assert_eq!(shown(&imported), fs::read_to_string(&golden).unwrap_or_default());
    let again = import(&text, &Wanted::default()).expect("a contract");
    assert_eq!(shown(&again), shown(&imported), "same input, same bytes");
}

#[test]
fn only_what_is_wanted_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    let text = fs::read_to_string(folder.join("shop.yaml")).expect("a document");
    for (patterns, tools) in [
        (["listOrders"].as_slice(), 1),
        (&["POST /*"], 3),
        (&["Orders"], 4),
        (&["/categories", "add_*"], 1),
        (&["/crumbs", "login"], 2),
    ] {
        let only: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let imported = import(&text, &Wanted { only: &only, ..Wanted::default() }).expect("a contract");
        assert_eq!(imported.tools, tools, "{patterns:?}");
    }
    let none = ["nothing".to_owned()];
    let why = import(&text, &Wanted { only: &none, ..Wanted::default() }).expect_err("nothing is wanted");
    assert!(why.contains("no operation could be taken"), "{why}");
}

#[test]
fn what_is_no_document_is_refused() {
    for (text, why) in [
        ("", "empty"),
        ("[]", "3.0 or 3.1"),
        ("swagger: '2.0'", "Swagger 2.0"),
        ("openapi: 4.0.0\npaths: {}", "3.0 or 3.1"),
        ("openapi: 3.1.0", "no paths"),
        ("{\"openapi\":\"3.1.0\",\"paths\":{},\"paths\":{}}", "twice"),
        ("openapi: 3.1.0\ninfo: {title: x}\npaths: {}", "no operation"),
        (
            "openapi: 3.1.0\ninfo: {title: x}\npaths: { /a: { $ref: '#/paths/~1b' }, /b: { $ref: '#/paths/~1a' } }",
            "leads back to itself",
        ),
        (
            "openapi: 3.1.0\ninfo: {title: x}\npaths: { /a: { get: { parameters: [{$ref: '#/nowhere'}] } } }",
            "leads nowhere",
        ),
    ] {
        let found = import(text, &Wanted::default()).expect_err(text);
        assert!(found.contains(why), "{text}: {found}");
    }
}

/// Schemas that refer to ever more of each other end, whatever they are.
#[test]
fn a_document_that_explodes_is_bounded() {
    let mut schemas = String::new();
    for level in 0..40 {
        let next = format!("{{\"$ref\":\"#/components/schemas/S{}\"}}", level + 1);
        schemas
            .push_str(&format!("\"S{level}\":{{\"type\":\"object\",\"properties\":{{\"a\":{next},\"b\":{next}}}}},"));
    }
    let document = format!(
        r##"{{"openapi":"3.1.0","info":{{"title":"t"}},"paths":{{"/a":{{"post":{{"requestBody":{{"required":true,"content":
        {{"application/json":{{"schema":{{"oneOf":[{{"$ref":"#/components/schemas/S0"}}]}}}}}}}},"responses":{{"204":{{}}}}}}}}}},
        "components":{{"schemas":{{{schemas}"S40":{{"type":"string"}}}}}}}}"##
    );
    let imported = import(&document, &Wanted::default()).expect("each is one definition");
    assert!(imported.contract.len() < 20_000, "{}", imported.contract.len());
    let deep = format!("{}{}", "{\"not\":".repeat(70), "}".repeat(70));
    let document = document.replace("{\"type\":\"string\"}", &deep);
    assert!(import(&document, &Wanted::default()).is_err());
}

/// Every document's contract must compile, whoever made the document: the shapes are what the adapter describes.
#[test]
fn relative_servers_lie_beside_the_document() {
    let document = |url: &str| {
        format!(
            "openapi: 3.1.0\ninfo: {{title: t}}\nservers: [{{url: '{url}'}}]\npaths: {{ /a: {{ get: {{ responses: {{ '204': {{}} }} }} }} }}"
        )
    };
    for (url, base) in [
        ("/v1", "https://api.example/v1"),
        ("v1", "https://api.example/docs/v1"),
        ("./", "https://api.example/docs"),
        ("http://else.example/", "http://else.example"),
        ("//evil.example", "https://service.example"),
        ("../..", "https://service.example"),
        ("https://a.example/\"\\nheaders = 1", "https://service.example"),
    ] {
        let wanted = Wanted { url: Some("https://api.example/docs/openapi.yaml?x=1"), ..Wanted::default() };
        let imported = import(&document(url), &wanted).expect("a contract");
        assert!(imported.connection.contains(&format!("base_url = \"{base}\"")), "{url}: {}", imported.connection);
    }
}

#[test]
fn a_contract_is_a_form_like_any_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    let text = fs::read_to_string(folder.join("shop.yaml")).expect("a document");
    let imported = import(&text, &Wanted::default()).expect("a contract");
    let source = form::read("imported", &imported.contract).expect("a contract");
    let problems = compile(&source, &BTreeMap::new()).expect_err("no shapes");
    assert!(problems.iter().all(|problem| problem.message.starts_with("shape of ")), "{problems:?}");
}

/// Members that only answers have are not asked for, whether a reference stands beside the mark or an `allOf` above it.
#[test]
fn nobody_is_asked_for_what_only_answers_have() {
    let document = r##"{"openapi": "3.1.0", "info": {"title": "Hooks"}, "servers": [{"url": "http://127.0.0.1:1"}],
      "paths": {"/hooks": {
        "put": {"operationId": "putHook", "responses": {"204": {"description": "Done"}},
          "requestBody": {"required": true, "content": {"application/json": {"schema": {
            "type": "object", "required": ["id", "user"], "properties": {
              "id": {"$ref": "#/components/schemas/Key", "readOnly": true},
              "user": {"allOf": [{"$ref": "#/components/schemas/Person"}, {"required": ["id"]}], "required": ["id", "name"]}}}}}}}}},
      "components": {"schemas": {"Key": {"type": "string"}, "Person": {"type": "object", "properties": {
        "id": {"type": "string", "readOnly": true}, "name": {"type": "string"}}}}}}"##;
    let imported = import(document, &Wanted::default()).expect("a contract");
    let line = imported.contract.lines().find(|line| line.contains("name: user"));
    let line = line.unwrap_or_else(|| panic!("no such field: {}", imported.contract));
    assert!(line.contains("[name]") && !line.contains("id"), "{line}");
    assert!(!imported.contract.contains("name: id"), "{}", imported.contract);
}

/// A document may require a name of which it says nothing, or say nothing of the whole body. The service wants it all
/// the same.
#[test]
fn where_a_body_says_too_little_any_value_is_taken_and_the_report_says_so() {
    let document = r##"{"openapi": "3.1.0", "info": {"title": "Hooks"}, "servers": [{"url": "http://127.0.0.1:1"}],
      "paths": {"/hooks": {
        "put": {"operationId": "putHook", "responses": {"204": {"description": "Done"}},
          "requestBody": {"required": true, "content": {"application/json": {"schema": {
            "allOf": [{"required": ["url", "team_id", "seen"]}, {"$ref": "#/components/schemas/Hook"}]}}}}},
        "post": {"operationId": "addHook", "responses": {"204": {"description": "Done"}},
          "requestBody": {"content": {"application/json": {"schema": null}}}},
        "delete": {"operationId": "dropHooks", "responses": {"204": {"description": "Done"}},
          "requestBody": {"required": true, "content": {"application/json": {"schema":
            {"type": "object", "properties": {"urls": {"type": "string"}}}}}}}}},
      "components": {"schemas": {"Hook": {"type": "object", "properties": {
        "url": {"type": "string"}, "note": {"type": "string"}, "seen": {"type": "string", "readOnly": true}}}}}}"##;
    let imported = import(document, &Wanted::default()).expect("a contract");
    let remarks: Vec<String> =
        imported.remarks.iter().map(|remark| format!("{} {}", remark.place, remark.message)).collect();
    assert_eq!(
        remarks,
        [
            "/paths/~1hooks/put/requestBody/content/application~1json/schema/required \
             'team_id' is required and has no schema: any value is taken",
            "/paths/~1hooks/post/requestBody/content/application~1json/schema the schema of the body is null: any JSON is taken",
        ]
    );
    for line in [
        "put_hook: { method: PUT, path: \"/hooks\", effect: update, params: { url: { type: string, required: true }, \
         note: { type: string }, team_id: { type: json, required: true } } }",
        "drop_hooks: { method: DELETE, path: \"/hooks\", effect: destructive, params: { urls: { type: string } }, body_required: true }",
        "add_hook: { method: POST, path: \"/hooks\", effect: destructive, params: { body: { type: json, in: whole-body } } }",
    ] {
        assert!(imported.contract.contains(line), "{line}: {}", imported.contract);
    }
}
