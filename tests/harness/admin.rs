//! The admin API of a house's gateway, asked plainly.

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::{House, answer_to, http};

#[derive(Clone)]
pub struct Admin {
    pub url: String,
    /// The key; empty for none.
    pub key: String,
}

impl Admin {
    /// Reaches the admin API of a house with its first key, which is an operator's.
    pub fn of(house: &House) -> Self {
        let read = |name: &str| {
            std::fs::read_to_string(house.path().join("state").join(name)).expect("written")
        };
        Self {
            url: read("admin.url"),
            key: read("admin.token"),
        }
    }

    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method: Method = method.parse().expect("a method");
        let request = http()
            .request(method, format!("{}{path}", self.url))
            .header("content-type", "application/json");
        if self.key.is_empty() {
            request
        } else {
            request.bearer_auth(&self.key)
        }
    }

    /// Returns the status, and the JSON of the answer; null if it has none.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> (u16, Value) {
        let response = answer_to(self.request(method, path).body(body)).await;
        let status = response.status().as_u16();
        (
            status,
            serde_json::from_str(&response.text().await.expect("text")).unwrap_or_default(),
        )
    }

    /// Returns the JSON of an answer that must be OK.
    pub async fn succeed(&self, method: &str, path: &str, body: impl Into<reqwest::Body>) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }
}
