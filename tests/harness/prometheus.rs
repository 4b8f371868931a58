//! A Prometheus of one test, from Debian's package; killed and removed when dropped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{client::http, place, upstream::free_port, upstream::wait_for_port};

pub struct Prometheus {
    _folder: TempDir,
    child: Child,
    base: String,
    http: reqwest::Client,
}

impl Prometheus {
    /// Scrapes `target` (`host:port`) as the job `weir` each second with `token`, and evaluates `rules` as often.
    pub async fn start(target: &str, token: &str, rules: &Path) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("weir-prometheus-")
            .tempdir()
            .expect("a temporary folder");
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\n\
             rule_files: [\"{}\"]\n\
             scrape_configs:\n  - job_name: weir\n    authorization: {{ credentials: \"{token}\" }}\n    \
             static_configs: [{{ targets: [\"{target}\"] }}]\n",
            rules.display()
        );
        fs::write(folder.path().join("prometheus.yml"), config)
            .expect("a file in the temporary folder");
        let port = free_port();
        let log = fs::File::create(folder.path().join("prometheus.log"))
            .expect("a file in the temporary folder");
        let child = Command::new(program("prometheus"))
            .arg(format!(
                "--config.file={}",
                folder.path().join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("prometheus starts");
        wait_for_port(port, "prometheus");
        let started = Self {
            _folder: folder,
            child,
            base: format!("http://127.0.0.1:{port}"),
            http: http(),
        };
        // Prometheus listens before it answers.
        let ready = async || {
            let answer = started
                .http
                .get(format!("{}/-/ready", started.base))
                .send()
                .await;
            answer.is_ok_and(|response| response.status().is_success())
        };
        let listened = Instant::now();
        while !ready().await {
            assert!(
                listened.elapsed() < Duration::from_secs(60),
                "prometheus is not ready"
            );
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        started
    }

    /// Returns what an instant query finds now; an error of the query fails the test.
    pub async fn query(&self, expression: &str) -> Vec<Value> {
        let mut url = reqwest::Url::parse(&format!("{}/api/v1/query", self.base)).expect("a URL");
        url.query_pairs_mut().append_pair("query", expression);
        let response = self.http.get(url).send().await.expect("prometheus answers");
        let text = response
            .text()
            .await
            .expect("prometheus answers to the end");
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(answer["status"], "success", "{expression}\n{text}");
        answer["data"]["result"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `promtool`.
pub fn promtool(words: &[&str]) -> Output {
    Command::new(program("promtool"))
        .args(words)
        .output()
        .expect("promtool runs")
}

fn program(name: &str) -> PathBuf {
    place::present(Path::new("/usr/bin").join(name), "cargo xtask test")
}
