//! Paths as clients write them, and the answers to unknown paths.

use super::*;

#[tokio::test]
async fn endpoints_are_served_with_a_slash_behind_them() {
    let server = Running::start().await;
    for path in ["/mcp/", "/mcp/desk/"] {
        let got = server.modern(path, "1", "tools/list", "").await;
        assert_eq!(got.status, 200, "{path}: {got:?}");
        let without = server
            .modern(path.trim_end_matches('/'), "1", "tools/list", "")
            .await;
        assert_eq!(got.body, without.body, "{path}");
    }
    for path in [
        "/llms.txt/",
        "/mcp/desk/llms.txt/",
        "/healthz/",
        "/rest/desk/openapi.json/",
    ] {
        let get = format!("GET {path} HTTP/1.1\nHost: localhost");
        assert_eq!(server.raw(&get, b"").await.status, 200, "{path}");
    }
    let got = server.modern("/mcp//", "1", "tools/list", "").await;
    assert_eq!(got.status, 404, "{got:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_request_at_a_path_of_nothing_is_answered_with_its_id() {
    let server = Running::start().await;
    for path in ["/", "/sse", "/v1/mcp", "/mcp/desk/tools/more"] {
        let got = server.modern(path, "7", "tools/list", "").await;
        got.refused(404, -32600, json!(7));
        let message = got.json()["error"]["message"].to_string();
        assert!(message.contains("MCP is at /mcp."), "{message}");
    }
    server
        .modern("/mcp/none", "7", "tools/list", "")
        .await
        .refused(404, -32600, json!(7));
    let got = server.raw("GET /sse HTTP/1.1\nHost: localhost", b"").await;
    got.refused(404, -32600, json!(null));
    server.stop().await;
}

/// A key without its scheme, in quotes or with the scheme twice may be valid.
#[tokio::test]
async fn a_401_says_how_a_key_is_sent_that_came_in_another_form() {
    let server = Running::with(|config| config.identity.required = true).await;
    for sent in [
        "weir_0a",
        "Token weir_0a",
        "Bearer \"weir_0a\"",
        "Bearer Bearer weir_0a",
    ] {
        let head = format!("{}\nAuthorization: {sent}", post_head("/mcp", &[]));
        let got = server.raw(&head, b"{}").await;
        got.refused(401, -32600, json!(null));
        let message = got.json()["error"]["message"].to_string();
        assert!(
            message.contains("as `Authorization: Bearer weir_...`"),
            "{sent}: {message}"
        );
    }
    server.stop().await;
}

/// Clients show the body, the challenge, or only the reason phrase of the status.
#[tokio::test]
async fn a_401_says_why_wherever_a_client_looks() {
    let server = Running::with(|config| config.identity.required = true).await;
    for (key, expected) in [
        (None, "a key is needed"),
        (Some("weir_no_such_key"), "the key is not valid"),
    ] {
        for path in ["/mcp", "/rest/desk/lookup"] {
            let mut head = post_head(path, &[]);
            if let Some(key) = key {
                head.push_str(&format!("\nAuthorization: Bearer {key}"));
            }
            let mut stream = server.send(&head, b"{}").await;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let status = answer.lines().next().expect("a status");
            assert!(
                status.starts_with("HTTP/1.1 401 Unauthorized: "),
                "{answer}"
            );
            assert!(status.contains(expected), "{answer}");
            let challenge = answer
                .lines()
                .find(|line| line.to_lowercase().starts_with("www-authenticate: bearer"))
                .expect("a challenge");
            assert!(challenge.to_lowercase().contains(expected), "{answer}");
        }
    }
    server.stop().await;
}
