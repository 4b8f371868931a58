//! Lines in, lines out.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, BufReader, DuplexStream, Lines as TokioLines, ReadHalf, WriteHalf, split,
};

use super::*;
use crate::{config::GatewayConfig, testing};

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The time that a busy machine may take for something that is normally immediate.
const SOON: Duration = Duration::from_secs(30);

struct Client {
    gateway: testing::GatewayFixture,
    input: WriteHalf<DuplexStream>,
    output: TokioLines<BufReader<ReadHalf<DuplexStream>>>,
    served: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl Client {
    async fn start() -> Self {
        let gateway = testing::gateway(|config| config.http.body_max_bytes = 4096).await;
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (stdin, stdout) = split(theirs);
        let served = tokio::spawn(serve(
            gateway.clone(),
            None,
            CatalogueEndpoint::All,
            stdin,
            stdout,
            std::future::pending(),
        ));
        let (output, input) = split(ours);
        Self {
            gateway,
            input,
            output: BufReader::new(output).lines(),
            served,
        }
    }

    async fn send(&mut self, line: &str) {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(SOON, self.output.next_line())
            .await
            .expect("a line in time");
        serde_json::from_str(&line.unwrap().expect("not ended")).unwrap()
    }

    async fn ask(&mut self, line: &str) -> Value {
        self.send(line).await;
        self.next().await
    }

    /// Closes the input and returns the remaining answers.
    async fn end(mut self) -> Vec<Value> {
        self.input.shutdown().await.unwrap();
        tokio::time::timeout(SOON, self.served)
            .await
            .expect("ends at once")
            .unwrap()
            .unwrap();
        let mut rest = Vec::new();
        while let Ok(Some(line)) = self.output.next_line().await {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        rest
    }
}

#[tokio::test]
async fn both_eras_by_message() {
    let mut client = Client::start().await;
    let discover = format!(
        r#"{{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{{"_meta":{META}}}}}"#
    );
    assert_eq!(
        client.ask(&discover).await["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    assert_eq!(
        client.ask(initialize).await["result"]["protocolVersion"],
        "2024-11-05"
    );
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_ticket","arguments":{"id":"1"}}}"#;
    let called = client.ask(call).await;
    assert!(
        called["result"]["isError"] == true && called["result"].get("structuredContent").is_none()
    );
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"find_ticket","arguments":{{"id":"1"}},"_meta":{META}}}}}"#
    );
    assert_eq!(
        client.ask(&call).await["result"]["structuredContent"]["code"],
        "unavailable"
    );
    assert_eq!(
        client.ask(&call.replace("2026-07-28", "2031-01-01")).await["error"]["code"],
        -32022
    );
    assert_eq!(
        client
            .ask(&discover.replace("server/discover", "ping"))
            .await["error"]["code"],
        -32601
    );
    assert_eq!(
        client
            .ask(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#)
            .await,
        json!({"jsonrpc":"2.0","id":3,"result":{}})
    );
    assert!(client.end().await.is_empty());
}

#[tokio::test]
async fn bad_lines_do_not_end_it() {
    let mut client = Client::start().await;
    assert_eq!(
        client.ask("nonsense").await,
        json!({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not valid JSON: expected ident at line 1 column 2"}})
    );
    assert_eq!(
        client.ask(&"x".repeat(100_000)).await["error"]["code"],
        -32600
    );
    assert_eq!(
        client
            .ask(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)
            .await["error"]["code"],
        -32600
    );
    client.input.write_all(b"\xff\n\n\r\n").await.unwrap();
    assert_eq!(client.next().await["error"]["code"], -32700);
    client
        .input
        .write_all(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#)
        .await
        .unwrap();
    assert_eq!(
        client.end().await,
        [json!({"jsonrpc":"2.0","id":"last","result":{}})]
    );
}

#[tokio::test]
async fn a_line_is_held_against_the_bound_that_is_in_effect() {
    let mut client = Client::start().await;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#,
        "x".repeat(5000)
    );
    let refused = client.ask(&long).await["error"]["message"].to_string();
    assert!(refused.contains("longer than 4096 bytes"), "{refused}");
    let mut config = GatewayConfig::clone(&client.gateway.config());
    config.http.body_max_bytes = 8192;
    client.gateway.reconfigure(config);
    assert_eq!(client.ask(&long).await["result"], json!({}));
}

#[tokio::test]
async fn what_was_asked_before_the_end_is_answered() {
    let mut client = Client::start().await;
    for id in 0..50 {
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"find_ticket","arguments":{{"id":"1"}}}}}}"#)).await;
    }
    let mut ids: Vec<u64> = client
        .end()
        .await
        .iter()
        .map(|answer| answer["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
}

#[tokio::test]
async fn batches_of_their_version() {
    let mut client = Client::start().await;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#;
    client.ask(initialize).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_ticket","arguments":{"id":"1"}}}"#;
    let answers = client
        .ask(&format!(
            r#"[{call},{{"jsonrpc":"2.0","id":2,"method":"ping"}},{{}}]"#
        ))
        .await;
    assert_eq!(
        (
            &answers[0]["id"],
            &answers[1]["id"],
            &answers[2]["error"]["code"]
        ),
        (&json!(1), &json!(2), &json!(-32600))
    );
    assert_eq!(
        client.ask(&format!("[{initialize}]")).await["error"]["code"],
        -32600
    );
    client.end().await;
}

#[tokio::test]
async fn subscriptions_interleave_and_end() {
    let mut client = Client::start().await;
    let listen = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},"_meta":{META}}}}}"#
        )
    };
    let id = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    };
    for subscription in ["1", "\"1\"", "0"] {
        let acknowledged = client.ask(&listen(subscription)).await;
        assert_eq!(
            acknowledged["method"],
            "notifications/subscriptions/acknowledged"
        );
        assert_eq!(id(&acknowledged).to_string(), subscription);
    }
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}"#)
        .await;
    assert_eq!(
        client
            .ask(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#)
            .await["id"],
        9
    );
    testing::publish(&client.gateway, &[("desk", &["find_ticket"])]);
    let mut answer = [
        id(&client.next().await).to_string(),
        id(&client.next().await).to_string(),
    ];
    answer.sort();
    assert_eq!(answer, ["0", "1"]);
    let mut ended: Vec<_> = client
        .end()
        .await
        .iter()
        .map(|result| result["id"].to_string())
        .collect();
    ended.sort();
    assert_eq!(ended, ["0", "1"]);
}

#[tokio::test]
async fn a_legacy_client_is_told_of_changes_once() {
    let mut client = Client::start().await;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    client.ask(initialize).await;
    client.ask(initialize).await;
    testing::publish(&client.gateway, &[("desk", &["find_ticket"])]);
    assert_eq!(
        client.next().await,
        json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})
    );
    assert_eq!(
        client
            .ask(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#)
            .await["id"],
        9
    );
    assert!(client.end().await.is_empty());
}

#[tokio::test]
async fn the_end_is_heard_although_the_client_does_not_read() {
    let gateway = testing::gateway(|_| {}).await;
    let (ours, theirs) = tokio::io::duplex(64);
    let (stdin, stdout) = split(theirs);
    let shutdown = CancellationToken::new();
    let stopped = shutdown.clone().cancelled_owned();
    let served = tokio::spawn(serve(
        gateway.clone(),
        None,
        CatalogueEndpoint::All,
        stdin,
        stdout,
        stopped,
    ));
    let (_unread, mut input) = split(ours);
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    // The answers fill the pipe and its queue, until no further line is read.
    while tokio::time::timeout(Duration::from_millis(200), input.write_all(ping))
        .await
        .is_ok()
    {}
    shutdown.cancel();
    tokio::time::timeout(SOON, served)
        .await
        .expect("ends soon")
        .unwrap()
        .unwrap();
}
