//! Documents of HTTP APIs become contracts, and what does not is listed.

use std::{collections::BTreeMap, fs, path::Path};

use weir_contracts::{
    compile, form,
    import::{ImportOptions, ImportedContract, openapi},
};

fn import(text: &str, wanted: &ImportOptions<'_>) -> Result<ImportedContract, String> {
    openapi("document", text, wanted).map_err(|problems| {
        problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    })
}

fn shown(imported: &ImportedContract) -> String {
    let remarks = imported.remarks.iter().map(|remark| {
        let what = if remark.left_out { "left out" } else { "note" };
        format!(
            "{what} {} | {} | {} | {}\n",
            remark.reason, remark.operation, remark.place, remark.message
        )
    });
    format!(
        "{}---\n{}---\n{}",
        imported.contract,
        imported.connection,
        remarks.collect::<String>()
    )
}

/// `UPDATE_GOLDENS=1` writes what came out; read the diff.
#[test]
fn a_document_with_everything() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    let text = fs::read_to_string(folder.join("shop.yaml")).expect("a document");
    let imported = import(&text, &ImportOptions::default()).expect("a contract");
    let golden = folder.join("shop.expected");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&golden, shown(&imported)).expect("written");
    }
    assert_eq!(
        shown(&imported),
        fs::read_to_string(&golden).unwrap_or_default()
    );
    let again = import(&text, &ImportOptions::default()).expect("a contract");
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
        let only: Vec<String> = patterns
            .iter()
            .map(|pattern| (*pattern).to_owned())
            .collect();
        let imported = import(
            &text,
            &ImportOptions {
                only: &only,
                ..ImportOptions::default()
            },
        )
        .expect("a contract");
        assert_eq!(imported.tools, tools, "{patterns:?}");
    }
    let none = ["nothing".to_owned()];
    let why = import(
        &text,
        &ImportOptions {
            only: &none,
            ..ImportOptions::default()
        },
    )
    .expect_err("nothing is wanted");
    assert!(why.contains("no operation could be imported"), "{why}");
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
        (
            "openapi: 3.1.0\ninfo: {title: x}\npaths: {}",
            "no operation",
        ),
        (
            "openapi: 3.1.0\ninfo: {title: x}\npaths: { /a: { $ref: '#/paths/~1b' }, /b: { $ref: '#/paths/~1a' } }",
            "leads back to itself",
        ),
        (
            "openapi: 3.1.0\ninfo: {title: x}\npaths: { /a: { get: { parameters: [{$ref: '#/nowhere'}] } } }",
            "leads nowhere",
        ),
    ] {
        let found = import(text, &ImportOptions::default()).expect_err(text);
        assert!(found.contains(why), "{text}: {found}");
    }
}

/// Schemas that refer to ever more of each other end, whatever they are.
#[test]
fn a_document_that_explodes_is_bounded() {
    let mut schemas = String::new();
    for level in 0..40 {
        let next = format!("{{\"$ref\":\"#/components/schemas/S{}\"}}", level + 1);
        schemas.push_str(&format!(
            "\"S{level}\":{{\"type\":\"object\",\"properties\":{{\"a\":{next},\"b\":{next}}}}},"
        ));
    }
    let document = format!(
        r##"{{"openapi":"3.1.0","info":{{"title":"t"}},"paths":{{"/a":{{"post":{{"requestBody":{{"required":true,"content":
        {{"application/json":{{"schema":{{"oneOf":[{{"$ref":"#/components/schemas/S0"}}]}}}}}}}},"responses":{{"204":{{}}}}}}}}}},
        "components":{{"schemas":{{{schemas}"S40":{{"type":"string"}}}}}}}}"##
    );
    let imported = import(&document, &ImportOptions::default()).expect("each is one definition");
    assert!(
        imported.contract.len() < 20_000,
        "{}",
        imported.contract.len()
    );
    let deep = format!("{}{}", "{\"not\":".repeat(70), "}".repeat(70));
    let document = document.replace("{\"type\":\"string\"}", &deep);
    assert!(import(&document, &ImportOptions::default()).is_err());
    // 20 parts of 20 parts, and so on, eight levels down.
    let schemas: String = (0..8)
        .map(|level| {
            let next = format!("{{\"$ref\":\"#/components/schemas/S{}\"}}", level + 1);
            format!(
                "\"S{level}\":{{\"allOf\":[{}]}},",
                [next.as_str(); 20].join(",")
            )
        })
        .collect();
    let whole =
        r##"{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S0"}}}}"##;
    let document = format!(
        r##"{{"openapi":"3.1.0","info":{{"title":"t"}},"paths":{{"/a":{{"put":{{"requestBody":{whole},"responses":{{"200":{whole}}}}}}}}},
        "components":{{"schemas":{{{schemas}"S8":{{"type":"object"}}}}}}}}"##
    );
    let answer =
        import(&document, &ImportOptions::default()).expect_err("the last part applies 20^8 times");
    assert!(answer.contains("PUT /a: checking one value at"), "{answer}");
    assert!(answer.contains("at most 200000 are accepted"), "{answer}");
}

#[test]
fn references_in_a_circle_or_a_net_end_with_a_sentence() {
    let document = |schemas: &str| {
        let whole =
            r##"{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S0"}}}}"##;
        format!(
            r##"{{"openapi":"3.1.0","info":{{"title":"t"}},"paths":{{"/a":{{"put":{{"requestBody":{whole},"responses":{{"200":{whole}}}}}}}}},
            "components":{{"schemas":{{{schemas}}}}}}}"##
        )
    };
    let refers = |to: usize| format!("{{\"$ref\":\"#/components/schemas/S{to}\"}}");
    let circle = document(&format!(
        "\"S0\":{{\"allOf\":[{}]}},\"S1\":{{\"allOf\":[{}]}}",
        refers(1),
        refers(0)
    ));
    let error = import(&circle, &ImportOptions::default()).expect_err("it never ends");
    assert!(
        error.contains("a reference leads back to itself"),
        "{error}"
    );
    // A long chain leads to an end, yet is followed no further.
    let mut chain: Vec<String> = (0..100)
        .map(|number| format!("\"S{number}\":{}", refers(number + 1)))
        .collect();
    chain.push(r#""S100":{"type":"object"}"#.to_owned());
    let error = import(&document(&chain.join(",")), &ImportOptions::default());
    let error = error.expect_err("it is too long");
    assert!(
        error.contains("a reference leads through more than 32 others"),
        "{error}"
    );
    // Each member of the body refers to all of the net.
    let net: Vec<String> = (0..60)
        .map(|number| {
            let members: Vec<String> = (0..60)
                .map(|member| format!("\"p{member}\":{}", refers(member)))
                .collect();
            let members = members.join(",");
            format!("\"S{number}\":{{\"type\":\"object\",\"properties\":{{{members}}}}}")
        })
        .collect();
    let of_body = document(&net.join(","));
    let error = import(&of_body, &ImportOptions::default()).expect_err("too large");
    assert!(
        error.contains("all that they refer to are too large"),
        "{error}"
    );
    // So does each parameter.
    let mut of_parameters: serde_json::Value = serde_json::from_str(&of_body).expect("JSON");
    let put = &mut of_parameters["paths"]["/a"]["put"];
    put["parameters"] = (0..60)
        .map(|number| {
            let schema = serde_json::json!({ "$ref": format!("#/components/schemas/S{number}") });
            let content = serde_json::json!({ "application/json": { "schema": schema } });
            serde_json::json!({ "in": "query", "name": format!("q{number}"), "content": content })
        })
        .collect();
    put.as_object_mut().expect("members").remove("requestBody");
    let error = import(&of_parameters.to_string(), &ImportOptions::default()).expect_err("large");
    assert!(
        error.contains("the parameters with all that they refer to are too large"),
        "{error}"
    );
}

/// Every document's contract must compile, whatever its author: the shapes are what the adapter describes.
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
        (
            "https://a.example/\"\\nheaders = 1",
            "https://service.example",
        ),
    ] {
        let wanted = ImportOptions {
            url: Some("https://api.example/docs/openapi.yaml?x=1"),
            ..ImportOptions::default()
        };
        let imported = import(&document(url), &wanted).expect("a contract");
        assert!(
            imported
                .connection
                .contains(&format!("base_url = \"{base}\"")),
            "{url}: {}",
            imported.connection
        );
    }
    // Of a file only the host is missing.
    for (url, base) in [
        ("/api/v3", "https://service.example/api/v3"),
        ("/", "https://service.example"),
        ("v1", "https://service.example"),
        ("//evil.example/v1", "https://service.example"),
    ] {
        let imported = import(&document(url), &ImportOptions::default()).expect("a contract");
        let expected = format!("base_url = \"{base}\"\n");
        assert!(
            imported.connection.contains(&expected),
            "{url}: {}",
            imported.connection
        );
        let note = format!("`base_url` is {base}, to be replaced");
        assert!(
            remarks(&imported)[0].contains(&note),
            "{:?}",
            remarks(&imported)
        );
    }
}

#[test]
fn a_contract_is_a_form_like_any_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    let text = fs::read_to_string(folder.join("shop.yaml")).expect("a document");
    let imported = import(&text, &ImportOptions::default()).expect("a contract");
    let source = form::read("imported", &imported.contract).expect("a contract");
    let problems = compile(&source, &BTreeMap::new()).expect_err("no shapes");
    assert!(
        problems
            .iter()
            .all(|problem| problem.message.starts_with("shape of ")),
        "{problems:?}"
    );
}

/// Members that only answers have are not asked for, whether the mark is beside a reference or in an `allOf` above it.
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
    let imported = import(document, &ImportOptions::default()).expect("a contract");
    let line = imported
        .contract
        .lines()
        .find(|line| line.contains("name: user"));
    let line = line.unwrap_or_else(|| panic!("no such field: {}", imported.contract));
    assert!(line.contains("[name]") && !line.contains("id"), "{line}");
    assert!(
        !imported.contract.contains("name: id"),
        "{}",
        imported.contract
    );
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
    let imported = import(document, &ImportOptions::default()).expect("a contract");
    let remarks: Vec<String> = imported
        .remarks
        .iter()
        .map(|remark| format!("{} {}", remark.place, remark.message))
        .collect();
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
        assert!(
            imported.contract.contains(line),
            "{line}: {}",
            imported.contract
        );
    }
}

/// The name of a scheme is written into a comment, and no part of it may become a line of weir.toml.
#[test]
fn the_name_of_a_security_scheme_writes_no_line() {
    let hostile = "x\\n[upstreams.x]\\ncommand = [\\\"sh\\\"]\\r\\u2028";
    let document = format!(
        r#"{{"openapi": "3.1.0", "info": {{"title": "t"}}, "servers": [{{"url": "https://a.example"}}],
            "security": [{{"{hostile}": []}}], "paths": {{"/a": {{"get": {{"responses": {{"204": {{}}}}}}}}}},
            "components": {{"securitySchemes": {{"{hostile}": {{"type": "http", "scheme": "bearer"}},
                "other {hostile}": {{"type": "http", "scheme": "digest"}}}}}}}}"#
    );
    let imported = import(&document, &ImportOptions::default()).expect("a contract");
    let (comments, block) = imported
        .connection
        .split_once("[connections.t]")
        .expect("a connection");
    assert!(
        comments.lines().count() == 2 && comments.lines().all(|line| line.starts_with('#')),
        "{comments}"
    );
    assert!(!block.contains("upstreams"), "{block}");
}

/// A way in may be of several schemes. Cookies share one header, and no way in sets a header twice.
#[test]
fn schemes_that_go_together_are_sent_together() {
    let connection = |security: &str| {
        let document = format!(
            r#"{{"openapi": "3.1.0", "info": {{"title": "t"}}, "servers": [{{"url": "https://a.example"}}],
                "security": {security}, "paths": {{"/a": {{"get": {{"responses": {{"204": {{}}}}}}}}}},
                "components": {{"securitySchemes": {{
                    "session": {{"type": "apiKey", "in": "cookie", "name": "sid"}},
                    "csrf": {{"type": "apiKey", "in": "cookie", "name": "csrf.token"}},
                    "key": {{"type": "apiKey", "in": "header", "name": "X.Key"}},
                    "login": {{"type": "http", "scheme": "basic"}},
                    "token": {{"type": "http", "scheme": "bearer"}}}}}}}}"#
        );
        import(&document, &ImportOptions::default())
            .expect("a contract")
            .connection
    };
    for (security, headers) in [
        (
            r#"[{"session": [], "csrf": []}]"#,
            r#"{ "Cookie" = "sid=${env:T_SESSION}; csrf.token=${env:T_CSRF}" }"#,
        ),
        (r#"[{"key": []}]"#, r#"{ "X.Key" = "${env:T_SECRET}" }"#),
        (
            r#"[{"login": [], "token": []}, {"token": []}]"#,
            r#"{ "Authorization" = "Bearer ${env:T_SECRET}" }"#,
        ),
    ] {
        let connection = connection(security);
        assert!(
            connection.contains(&format!("headers = {headers}\n")),
            "{security}: {connection}"
        );
    }
}

/// Returns the document of one operation, of OpenAPI 3.1.
fn document_of(path: &str, method: &str, operation: &str) -> String {
    format!(
        r#"{{"openapi": "3.1.0", "info": {{"title": "t"}}, "servers": [{{"url": "https://a.example"}}],
            "paths": {{"/ok": {{"get": {{"responses": {{"204": {{}}}}}}}}, "{path}": {{"{method}": {operation}}}}}}}"#
    )
}

fn remarks(imported: &ImportedContract) -> Vec<String> {
    imported
        .remarks
        .iter()
        .map(|remark| format!("{} {}", remark.reason, remark.message))
        .collect()
}

/// A schema may be a boolean, also of a parameter.
#[test]
fn a_boolean_is_a_schema() {
    let parameters = r#"{"parameters": [{"name": "any", "in": "query", "schema": true}, {"name": "none", "in": "query", "schema": false}],
        "responses": {"204": {}}}"#;
    let imported = import(
        &document_of("/a", "get", parameters),
        &ImportOptions::default(),
    )
    .expect("a contract");
    assert!(
        imported
            .contract
            .contains("fields:\n      - { name: any, type: text }\n"),
        "{}",
        imported.contract
    );
    assert!(!imported.contract.contains("none"), "{}", imported.contract);
    assert_eq!(
        remarks(&imported),
        ["schema the parameter is dropped: no value is taken"]
    );
    let required = parameters.replace("\"schema\": false", "\"required\": true, \"schema\": false");
    let imported = import(
        &document_of("/a", "get", &required),
        &ImportOptions::default(),
    )
    .expect("the other tool");
    assert_eq!(
        (imported.tools, remarks(&imported)),
        (1, vec!["schema no value is taken".to_owned()])
    );
}

/// A number that readers do not hold exactly costs what says it, and the whole import never, in either notation.
#[test]
fn a_large_number_costs_what_says_it() {
    let document = document_of(
        "/a",
        "post",
        r#"{"summary": "SUMMARY", "responses": {"204": {}}, "parameters": [
            {"name": "p", "in": "query", "example": 18446744073709551615, "schema": {"type": "string", "maxLength": 9223372036854775807}},
            {"name": "q", "in": "query", "schema": {"type": "integer", "maximum": 99999999999999999999999999, "minimum": -1e400,
                "default": 9223372036854775807, "examples": [9223372036854775807]}},
            {"name": "r", "in": "query", "schema": {"type": "array", "maxItems": 1e300, "items": {}}},
            {"name": "s", "in": "query", "schema": {"type": "integer", "enum": [1, 9223372036854775807]}}]}"#,
    )
    .replace("SUMMARY", &"s".repeat(300));
    let yaml = document.replace("{\"openapi\"", "---\n{\"openapi\"");
    for text in [&document, &yaml] {
        let imported =
            import(text, &ImportOptions::default()).unwrap_or_else(|why| panic!("{why}"));
        for line in [
            "- { name: p, type: text }\n",
            "- { name: q, type: number }\n",
            "- { name: r, type: json, schema: { type: array, items: {} } }\n",
            &format!("title: \"{}…\"\n", "s".repeat(199)),
        ] {
            assert!(
                imported.contract.contains(line),
                "{line}: {}",
                imported.contract
            );
        }
        assert_eq!(
            remarks(&imported),
            [
                "schema the parameter is dropped: a schema names a number that is too large to be sent exactly"
            ]
        );
    }
    let refused = document.replace("\"name\": \"s\",", "\"name\": \"s\", \"required\": true,");
    assert_eq!(
        import(&refused, &ImportOptions::default())
            .expect("the other tool")
            .tools,
        1
    );
    let titled = document.replace(
        "\"title\": \"t\"",
        &format!("\"title\": \"{}\"", "t".repeat(300)),
    );
    import(&titled, &ImportOptions::default()).expect("a long title is cut");
}

/// A GET has no body: one that holds nothing is none, and one that may be absent is not sent.
#[test]
fn a_get_whose_body_need_not_be_sent_has_a_tool() {
    let get = |body: &str| {
        document_of(
            "/a",
            "get",
            &format!(r#"{{"requestBody": {body}, "responses": {{"204": {{}}}}}}"#),
        )
    };
    let form = |schema: &str, required: &str| {
        get(&format!(
            r#"{{"content": {{"application/x-www-form-urlencoded": {{"encoding": {{}}, "schema": {schema}}}}}{required}}}"#
        ))
    };
    let empty = r#"{"type": "object", "properties": {}, "additionalProperties": false}"#;
    let one = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#;
    for (document, tools, notes) in [
        (form(empty, ""), 2, vec![]),
        (form(empty, r#", "required": true"#), 2, vec![]),
        (
            form(one, ""),
            2,
            vec!["body the optional body is dropped: a GET with a body is not sent"],
        ),
        (
            form(one, r#", "required": true"#),
            1,
            vec!["body a GET with a body is not sent"],
        ),
        (
            get(r#"{"content": {"text/plain": {}}}"#),
            2,
            vec![
                "body the optional body is dropped: the body is sent as text/plain, and only JSON and forms are",
            ],
        ),
    ] {
        let imported = import(&document, &ImportOptions::default()).expect("a contract");
        assert_eq!(
            (imported.tools, remarks(&imported)),
            (tools, notes.into_iter().map(str::to_owned).collect()),
            "{document}"
        );
        assert!(
            !imported.contract.contains("name: a,"),
            "{}",
            imported.contract
        );
    }
}

/// A form writes lists and objects as `encoding` says.
#[test]
fn a_form_is_written_as_its_encoding_says() {
    let operation = r#"{"responses": {"204": {}}, "requestBody": {"required": true, "content": {"application/x-www-form-urlencoded": {
        "encoding": {
            "metadata": {"style": "deepObject", "explode": true}, "tags": {"explode": false}, "name": {"style": "form"},
            "odd": {"style": "matrix"}, "picture": {"contentType": "image/png"}, "plain": {"contentType": "application/json"}},
        "schema": {"type": "object", "properties": {
            "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
            "tags": {"type": "array", "items": {"type": "string"}}, "name": {"type": "string"},
            "odd": {"type": "array", "items": {"type": "string"}}, "picture": {"type": "string"}, "plain": {"type": "object"}}}}}}}"#;
    let imported = import(
        &document_of("/a", "post", operation),
        &ImportOptions::default(),
    )
    .expect("a contract");
    let line = "params: { metadata: { type: json, style: deepObject, explode: true }, tags: { type: json, style: form, explode: false }, \
                name: { type: string }, odd: { type: json }, picture: { type: string }, plain: { type: json } }, content_type";
    assert!(imported.contract.contains(line), "{}", imported.contract);
    assert_eq!(
        remarks(&imported),
        [
            "schema the style 'matrix' is not known here: lists repeat the name, and objects are JSON",
            "schema it is written as 'image/png' there, and here lists repeat the name, and objects are JSON",
        ]
    );
}

/// A pattern that JSON Schema does not know is the service's to check.
#[test]
fn a_pattern_of_another_dialect_is_dropped() {
    let map = r#"{"responses": {"204": {}}, "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "required": ["labels"], "properties": {"labels": {"type": "object", "patternProperties": {"(?i)^x-": {"type": "string"}, "^y-": {"type": "string"}}, "additionalProperties": false}}}}}}}"#;
    let imported =
        import(&document_of("/a", "post", map), &ImportOptions::default()).expect("a contract");
    assert!(
        imported.contract.contains("^y-") && !imported.contract.contains("additionalProperties"),
        "{}",
        imported.contract
    );
    assert_eq!(remarks(&imported).len(), 1, "{:?}", remarks(&imported));
    let operation = r#"{"responses": {"204": {}}, "parameters": [{"name": "p", "in": "query", "schema": {"type": "string", "pattern": "(?i)^ab"}}]}"#;
    let imported = import(
        &document_of("/a", "get", operation),
        &ImportOptions::default(),
    )
    .expect("a contract");
    assert!(
        imported.contract.contains("- { name: p, type: text }\n"),
        "{}",
        imported.contract
    );
    assert_eq!(
        remarks(&imported),
        ["pattern the pattern `(?i)^ab` is not one of JSON Schema; only the service checks it"]
    );
}

fn fields_of(path: &str, method: &str, operation: &str) -> Vec<serde_json::Value> {
    let document = document_of(path, method, operation);
    let imported =
        import(&document, &ImportOptions::default()).unwrap_or_else(|why| panic!("{why}"));
    let contract: serde_json::Value =
        serde_saphyr::from_str(&imported.contract).expect("a contract is YAML");
    contract["tools"][1]["fields"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// Names of headers ignore case, and the operation's own parameter replaces the path's.
#[test]
fn a_header_in_two_spellings_is_one_argument() {
    let document = r#"{"openapi": "3.1.0", "info": {"title": "t"}, "servers": [{"url": "https://a.example"}],
        "paths": {"/ws": {
            "parameters": [{"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                {"name": "X-Trace", "in": "query", "schema": {"type": "string"}}],
            "post": {"responses": {"204": {}},
                "parameters": [{"name": "x-trace", "in": "header", "required": true, "schema": {"type": "string"}}]}}}}"#;
    let contract = import(document, &ImportOptions::default())
        .expect("a contract")
        .contract;
    assert!(
        contract.contains("- { name: x_trace, type: text, required: true }\n"),
        "{contract}"
    );
    assert_eq!(contract.matches("in: header").count(), 1, "{contract}");
    assert!(
        contract.contains("- { name: X_Trace, type: text }\n"),
        "the query has its own: {contract}"
    );
}

#[test]
fn a_value_that_is_listed_twice_is_there_once() {
    let fields = fields_of(
        "/k",
        "post",
        r#"{"responses": {"204": {}}, "parameters": [
            {"name": "kind", "in": "query", "schema": {"type": "string", "enum": ["a", "b", "a"]}},
            {"name": "n", "in": "query", "schema": {"type": "integer", "enum": [1, 2, 1.0]}}],
            "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {
                "inner": {"type": "object", "properties": {"x": {}}, "required": ["x", "x"]}}}}}}}"#,
    );
    let dropdown = serde_json::json!({ "name": "kind", "type": "dropdown", "choices": ["a", "b"] });
    assert_eq!(fields[0], dropdown);
    assert_eq!(fields[1]["schema"]["enum"], serde_json::json!([1, 2]));
    assert_eq!(fields[2]["schema"]["required"], serde_json::json!(["x"]));
}

/// JavaScript rounds an integer of 64 bits, so its argument can be given as a text too.
#[test]
fn an_integer_of_64_bits_has_two_forms() {
    let integer = r#"{"type": "integer", "format": "int64"}"#;
    let fields = fields_of(
        "/o/{id}",
        "post",
        &r#"{"responses": {"200": {"content": {"application/json": {"schema": {"type": "object", "properties": {"id": INT}}}}}},
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": INT},
                {"name": "page", "in": "query", "schema": INT}],
            "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {
                "inner": {"type": "object", "properties": {"n": INT,
                    "owner": {"type": ["integer", "null"], "format": "int64"}}}}}}}}}"#
            .replace("INT", integer),
    );
    let both = serde_json::json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": "^-?[0-9]{1,19}$" }] });
    assert_eq!(fields[0]["schema"], both);
    assert_eq!(
        fields[1],
        serde_json::json!({ "name": "page", "type": "number" })
    );
    assert_eq!(fields[2]["schema"]["properties"]["n"], both);
    let or_null = serde_json::json!({ "anyOf": [both, { "type": "null" }] });
    assert_eq!(fields[2]["schema"]["properties"]["owner"], or_null);
}

/// The columns that a document requires of an answer may be missing: the service has already acted.
#[test]
fn every_column_of_an_answer_may_be_null() {
    let operation = r#"{"responses": {"200": {"content": {"application/json": {"schema": {"type": "object", "required": ["id", "name"],
        "properties": {"id": {"type": "integer", "format": "int64"}, "name": {"type": "string"}}}}}}}}"#;
    let imported = import(
        &document_of("/a", "post", operation),
        &ImportOptions::default(),
    )
    .expect("a contract");
    assert!(
        imported
            .contract
            .contains("returns: { id: decimal, name: string }"),
        "{}",
        imported.contract
    );
}

#[test]
fn a_parameter_of_json_may_name_its_charset() {
    let operation = r#"{"responses": {"204": {}}, "parameters": [{"name": "k", "in": "query", "required": true,
        "content": {"application/json; charset=utf-8": {"schema": {"type": "object", "properties": {"x": {"type": "integer"}}}}}}]}"#;
    let document = document_of("/a", "get", operation);
    let imported = import(&document, &ImportOptions::default()).expect("a contract");
    let params = "params: { k: { type: json, required: true, in: query } }";
    assert!(imported.contract.contains(params), "{}", imported.contract);
}

/// Only the first answer had columns, so that what the others say was lost.
#[test]
fn each_answer_of_success_has_its_columns() {
    let content =
        |schema: &str| format!(r#"{{"content": {{"application/json": {{"schema": {schema}}}}}}}"#);
    let done = content(
        r#"{"type": "object", "properties": {"id": {"type": "integer"}, "state": {"type": "string"}}}"#,
    );
    let begun = content(
        r#"{"type": "object", "properties": {"job": {"type": "string"}, "state": {"type": "boolean"}}}"#,
    );
    let list = content(r#"{"type": "array", "items": {}}"#);
    for (answers, returns) in [
        (
            format!(r#"{{"201": {done}, "202": {begun}, "204": {{}}}}"#),
            "returns: { id: integer, state: json, job: string }",
        ),
        (
            format!(r#"{{"200": {done}, "201": {done}}}"#),
            "returns: { id: integer, state: string }",
        ),
        (
            format!(r#"{{"200": {done}, "201": {list}}}"#),
            r#"returns: { result: { type: json, nullable: true, at: "" } }"#,
        ),
    ] {
        let operation = format!(r#"{{"responses": {answers}}}"#);
        let document = document_of("/a", "post", &operation);
        let imported = import(&document, &ImportOptions::default()).expect("a contract");
        assert!(imported.contract.contains(returns), "{}", imported.contract);
    }
}

/// The answer was thrown away, and an agent that asked for something was answered `{}`.
#[test]
fn a_get_of_whose_answer_nothing_is_said_answers_what_comes() {
    let whole = r#"returns: { result: { type: json, nullable: true, at: "" } }"#;
    for (method, answers, is_whole) in [
        ("get", r#"{"200": {"description": "ok"}}"#, true),
        ("get", r#"{"default": {"description": "ok"}}"#, true),
        ("get", "{}", true),
        ("get", r#"{"200": {}, "204": {}}"#, true),
        ("get", r#"{"204": {}, "404": {}}"#, false),
        ("get", r#"{"205": {}}"#, false),
        ("post", r#"{"200": {}}"#, false),
    ] {
        let operation = format!(r#"{{"responses": {answers}}}"#);
        let document = document_of("/a", method, &operation);
        let imported = import(&document, &ImportOptions::default()).expect("a contract");
        let settings = imported
            .contract
            .lines()
            .find(|line| line.contains("\"/a\""));
        let settings = settings.expect("the operation");
        assert_eq!(
            settings.contains(whole),
            is_whole,
            "{method} {answers}: {settings}"
        );
    }
}

/// Kubernetes names the list of steps first, with the schema of an object, and refused what was sent.
#[test]
fn a_list_of_steps_is_sent_where_there_is_no_other_patch() {
    for (content, sent) in [
        (
            r#"{"application/json-patch+json": {"schema": {}}, "application/merge-patch+json": {"schema": {}}}"#,
            "application/merge-patch+json",
        ),
        (
            r#"{"application/json-patch+json": {"schema": {}}, "application/x-www-form-urlencoded": {"schema": {}}}"#,
            "application/json-patch+json",
        ),
    ] {
        let operation = format!(
            r#"{{"responses": {{"204": {{}}}}, "requestBody": {{"required": true, "content": {content}}}}}"#
        );
        let document = document_of("/a", "patch", &operation);
        let imported = import(&document, &ImportOptions::default()).expect("a contract");
        let expected = format!("content_type: \"{sent}\"");
        assert!(
            imported.contract.contains(&expected),
            "{expected}: {}",
            imported.contract
        );
    }
}

/// Such an argument took no value, and bounds that cross or a type of another language cost the whole operation.
#[test]
fn what_no_value_meets_is_mended_or_left_to_the_service() {
    let operation = r#"{"responses": {"204": {}}, "parameters": [
        {"name": "count", "in": "query", "schema": {"type": "integer", "enum": ["1", "2"]}},
        {"name": "flag", "in": "query", "schema": {"type": "boolean", "enum": ["true", "maybe"]}},
        {"name": "odd", "in": "query", "schema": {"type": "integer", "enum": ["x"]}},
        {"name": "empty", "in": "query", "schema": {"type": "string", "enum": []}},
        {"name": "most", "in": "query", "schema": {"type": "integer", "minimum": 5, "maximum": 2}},
        {"name": "text", "in": "query", "schema": {"type": "string", "minLength": 5, "maxLength": 2}},
        {"name": "file", "in": "query", "schema": {"type": "file"}}]}"#;
    let document = document_of("/a", "get", operation);
    let imported = import(&document, &ImportOptions::default()).expect("a contract");
    for field in [
        "- { name: count, type: json, schema: { type: integer, enum: [1, 2] } }\n",
        "- { name: flag, type: json, schema: { type: boolean, enum: [true] } }\n",
        "- { name: odd, type: number }\n",
        "- { name: empty, type: text }\n",
        "- { name: most, type: number }\n",
        "- { name: text, type: text }\n",
        "- { name: file, type: text }\n",
    ] {
        assert!(
            imported.contract.contains(field),
            "{field}{}",
            imported.contract
        );
    }
    assert_eq!(
        remarks(&imported),
        [
            "schema 1 of the listed values are not of the type boolean, and are left out",
            "schema no listed value is of the type integer, and is left out; only the service checks it",
            "schema a list of values has none, and is left out; only the service checks it",
            "schema `minimum` is greater than `maximum`, and both are left out; only the service checks it",
            "schema `minLength` is greater than `maxLength`, and both are left out; only the service checks it",
            r#"schema the type "file" is not one of JSON Schema, and is left out; only the service checks it"#,
        ]
    );
    let nothing = r#"{ type: string, nullable: true, enum: [null] }"#;
    let body = format!("{{ type: array, items: {nothing} }}");
    let check = body_check("3.0.3", &body, "    Any: {}");
    assert_eq!(check("[null]"), Ok(()));
}

/// Without its pattern a `not` refused everything, and a value fitted two alternatives.
#[test]
fn no_more_is_refused_without_a_pattern_of_another_dialect() {
    for (body, sent) in [
        (
            r"{ type: array, items: { type: string, not: { pattern: '(?i)^x' } } }",
            r#"["a"]"#,
        ),
        (
            r"{ type: array, items: { oneOf: [{ type: string, pattern: '(?i)^x' }, { type: string, pattern: '^a' }] } }",
            r#"["a"]"#,
        ),
        (
            r"{ type: array, items: { not: { $ref: '#/components/schemas/X' } } }",
            r#"["a"]"#,
        ),
    ] {
        let check = body_check("3.1.0", body, "    X: { type: string, pattern: '(?i)^x' }");
        assert_eq!(check(sent), Ok(()), "{body}");
    }
}

/// Returns the check of the only argument of the only tool of a document with this body and these schemas.
fn body_check(
    dialect: &str,
    body: &str,
    schemas: &str,
) -> impl Fn(&str) -> Result<(), String> + use<> {
    let document = format!(
        "openapi: {dialect}\ninfo: {{ title: t }}\nservers: [{{ url: 'https://api.example' }}]\npaths:\n  /pets:\n    post:\n      \
         requestBody: {{ required: true, content: {{ application/json: {{ schema: {body} }} }} }}\n      responses: {{ '204': {{}} }}\n\
         components:\n  schemas:\n{schemas}"
    );
    let imported = import(&document, &ImportOptions::default()).expect("a contract");
    let source = weir_contracts::form::read("pets.yaml", &imported.contract).expect("a contract");
    let (contract, _) = weir_contracts::compile::compile_known(&source, &Default::default())
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<String>())
        .expect("it compiles");
    let arguments = contract.tools[0].argument_validator().expect("a schema");
    move |body: &str| {
        let sent = format!("{{\"body\":{body}}}");
        arguments
            .validate(&sent)
            .map(drop)
            .map_err(|refused| refused.text())
    }
}

/// The example of OpenAPI itself, in which every cat is a dog and a lizard too, and one type that only the mapping names.
const PETS: &str = "
    Pet: { type: object, required: [petType], properties: { petType: { type: string } } }
    Cat: { allOf: [{ $ref: '#/components/schemas/Pet' }, { type: object, properties: { name: { type: string } } }] }
    Dog: { allOf: [{ $ref: '#/components/schemas/Pet' }, { type: object, properties: { bark: { type: string } } }] }
    Lizard: { allOf: [{ $ref: '#/components/schemas/Pet' }, { type: object, properties: { lovesRocks: { type: boolean } } }] }
";

#[test]
fn a_discriminator_selects_among_alternatives() {
    let body = "{ oneOf: [{ $ref: '#/components/schemas/Cat' }, { $ref: '#/components/schemas/Dog' }], \
                discriminator: { propertyName: petType, mapping: { dog: '#/components/schemas/Dog', lizard: Lizard } } }";
    for dialect in ["3.0.3", "3.1.0"] {
        let check = body_check(dialect, body, PETS);
        for valid in [
            r#"{"petType":"Cat","name":"misty"}"#,
            r#"{"petType":"dog","bark":"woof"}"#,
            r#"{"petType":"lizard","lovesRocks":true}"#,
        ] {
            assert_eq!(check(valid), Ok(()), "{dialect}: {valid}");
        }
        let text = check(r#"{"petType":"dog","bark":7}"#).expect_err("a number");
        assert!(
            text.contains("\n/body/bark: must be of type string"),
            "{text}"
        );
        let text = check(r#"{"petType":"lizard","lovesRocks":1}"#).expect_err("a number");
        assert!(
            text.contains("\n/body/lovesRocks: must be of type boolean"),
            "{text}"
        );
        let text = check(r#"{"petType":"lizzard"}"#).expect_err("no such type");
        let expected = "\n/body/petType: must be one of Cat, dog, lizard. Did you mean \"lizard\"?";
        assert!(text.contains(expected), "{text}");
        let text = check(r#"{"name":"misty"}"#).expect_err("no type");
        assert!(text.contains("\n/body/petType: is required"), "{text}");
    }
}

/// Documents list alternatives of which one value fits several: `oneOf` refused what their services take.
#[test]
fn alternatives_without_a_discriminator_may_overlap() {
    let schemas = "
    Image: { type: object, required: [type, src], properties: { type: { type: string }, src: { type: string } } }
    Video: { type: object, required: [type, src], properties: { type: { type: string }, src: { type: string }, volume: { type: number } } }
";
    let assets = "{ oneOf: [{ $ref: '#/components/schemas/Image' }, { $ref: '#/components/schemas/Video' }] }";
    let numbers = "{ oneOf: [{ type: number }, { type: integer }] }";
    // With fewer refused below it, a `not` would refuse more.
    let none = "{ type: array, items: { not: { oneOf: [{ type: string }, { type: string, minLength: 3 }] } } }";
    for dialect in ["3.0.3", "3.1.0"] {
        for (body, sent, is_taken) in [
            (assets, r#"{"type":"image","src":"a.jpg"}"#, true),
            (assets, r#"{"type":"image"}"#, false),
            (numbers, "7", true),
            (numbers, r#""seven""#, false),
            (none, r#"["abc"]"#, true),
            (none, r#"["a"]"#, false),
        ] {
            let check = body_check(dialect, body, schemas);
            assert_eq!(check(sent).is_ok(), is_taken, "{dialect}: {body}: {sent}");
        }
    }
}

#[test]
fn a_discriminator_adds_nothing_to_what_schemas_say_themselves() {
    let schemas = "
    Card: { type: object, required: [kind, number], properties: { kind: { type: string, enum: [CARD] }, number: { type: string } } }
    Cash: { type: object, required: [kind], properties: { kind: { type: string, enum: [CASH] } } }
    Gift: { type: object, properties: { code: { type: string } } }
";
    let one_of = |names: &[&str]| {
        let arms = names
            .iter()
            .map(|name| format!("{{ $ref: '#/components/schemas/{name}' }}"));
        let arms = arms.collect::<Vec<_>>().join(", ");
        format!("{{ oneOf: [{arms}], discriminator: {{ propertyName: kind }} }}")
    };
    let check = body_check("3.0.3", &one_of(&["Card", "Cash"]), schemas);
    assert_eq!(check(r#"{"kind":"CASH"}"#), Ok(()));
    let text = check(r#"{"kind":"CARD"}"#).expect_err("no number");
    assert!(text.contains("\n/body/number: is required"), "{text}");
    // Where the property may be absent, a value without it is still checked against all of them.
    let check = body_check("3.0.3", &one_of(&["Cash", "Gift"]), schemas);
    assert_eq!(check(r#"{"code":"x"}"#), Ok(()));
    assert_eq!(check(r#"{"kind":"Gift","code":"x"}"#), Ok(()));
}

#[test]
fn a_body_of_a_type_with_subtypes_takes_their_members() {
    let pet = "
    Pet: { type: object, required: [petType], properties: { petType: { type: string } },
           discriminator: { propertyName: petType, mapping: { dog: Dog } } }
    Dog: { allOf: [{ $ref: '#/components/schemas/Pet' }, { type: object, properties: { bark: { type: string } } }] }
";
    // Without a mapping each schema that builds on it is a subtype.
    let unmapped = pet.replace(", mapping: { dog: Dog }", "");
    for (pet, dog) in [(pet, "dog"), (unmapped.as_str(), "Dog")] {
        let check = body_check("3.0.3", "{ $ref: '#/components/schemas/Pet' }", pet);
        assert_eq!(
            check(&format!(r#"{{"petType":"{dog}","bark":"woof"}}"#)),
            Ok(())
        );
        assert!(check(r#"{"bark":"woof"}"#).is_err());
    }
}
