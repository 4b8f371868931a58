//! The floor: an axum route that reads the body, ignores it, and gives every caller the same bytes.

use axum::{Router, body::Bytes, http::header::CONTENT_TYPE, routing::post};
use weir_bench::ticket;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let port: u16 = std::env::args().nth(1).unwrap_or_default().parse()?;
    let text = ticket::record(ticket::ID).replace('"', "\\\"");
    let answer = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    ));
    let route = post(move |_unread: Bytes| {
        let answer = answer.clone();
        async move { ([(CONTENT_TYPE, "application/json")], answer) }
    });
    Ok(weir_bench::serve(port, Router::new().route("/mcp", route)).await?)
}
