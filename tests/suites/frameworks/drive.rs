//! Drives the real binary through an agent framework, and checks what its agents would see.

use std::process::Command;

use serde_json::{Value, json};
use weir_tests::foreign;

use crate::sample;

/// A framework as `tests/clients/frameworks.py` or `frameworks.mjs` names it.
pub(crate) struct Framework {
    pub name: &'static str,
    /// The folder under `clients/` of the cache that it is installed in.
    pub environment: &'static str,
    /// Whether the framework checks arguments by the schema itself, so that wrong ones do not reach the server.
    pub checks_arguments: bool,
    /// Whether a caller without a key reads the sentence of the 401, or of the sign-in that is not there.
    pub says_key_is_needed: bool,
    /// The form in which code gets an error; `None` if that was never found out.
    pub error: Option<ShownError>,
}

/// The form in which the code around a model sees a failed call, in addition to the text that the model reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ShownError {
    /// By an exception of this type.
    Raised(&'static str),
    /// By a member of the result.
    Marked(&'static str),
    /// Not at all: the framework hands on a text, which is the same thing for an error and a result.
    ByTextAlone,
}

impl Framework {
    pub(crate) const fn new(name: &'static str, environment: &'static str) -> Self {
        Self {
            name,
            environment,
            checks_arguments: false,
            says_key_is_needed: false,
            error: None,
        }
    }

    pub(crate) const fn with_error(self, error: ShownError) -> Self {
        Self {
            error: Some(error),
            ..self
        }
    }

    pub(crate) const fn checks_arguments(self) -> Self {
        Self {
            checks_arguments: true,
            ..self
        }
    }

    pub(crate) const fn says_key_is_needed(self) -> Self {
        Self {
            says_key_is_needed: true,
            ..self
        }
    }

    /// Checks HTTP and stdio: without keys, with a key, and with a required key missing.
    pub(crate) fn holds(&self) {
        let house = sample::house();
        let gateway = house.serve();
        self.check(&self.report(json!({ "url": gateway.url() })));
        let key = house.key(&["--agent", "ann"]);
        self.check(&self.report(json!({ "url": gateway.url(), "key": key })));
        let report = self.report(json!({ "command": house.stdio_command(), "key": key }));
        self.check(&report);
        // Weir exits on the signal that ends it, while its stdin is open: a framework that waits for it continues.
        assert!(
            report["closed_ms"].as_u64().is_none_or(|took| took < 5000),
            "{}: {report}",
            self.name
        );
        self.is_refused(&self.report(json!({ "url": gateway.url() })));
    }

    /// Checks one endpoint, without keys.
    pub(crate) fn lists_and_calls(&self, url: &str) {
        self.check(&self.report(json!({ "url": url })));
    }

    fn report(&self, mut plan: Value) -> Value {
        plan["calls"] = json!([
            {"tool": "lookup_airport", "arguments": {"iata": "OSL"}},
            {"tool": "lookup_airport", "arguments": {"iata": "XXX"}},
            {"tool": "lookup_airport", "arguments": {"iata": "osl"}},
            // Some add a null for each argument that is left out here.
            {"tool": "list_airports", "arguments": {"country": "NO"}},
            {"tool": "create_airport", "arguments": {"iata": "x", "name": "A field", "country": "DK"}},
        ]);
        foreign::report(self.command(), &plan)
    }

    fn command(&self) -> Command {
        let mut command = match self.environment.starts_with("python") {
            true => foreign::python_script(self.environment, "frameworks.py"),
            false => foreign::node_script_in(self.environment, "frameworks.mjs"),
        };
        command.arg(self.name);
        command
    }

    fn check(&self, report: &Value) {
        let name = self.name;
        let mut tools: Vec<&str> = report["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        tools.sort_unstable();
        assert_eq!(
            tools,
            ["create_airport", "list_airports", "lookup_airport"],
            "{name}: {report}"
        );
        let text = |call: usize| report["calls"][call]["text"].as_str().unwrap_or_default();
        assert!(
            text(0).contains("Oslo Gardermoen Airport"),
            "{name}: {report}"
        );
        // This is the server's answer about a call, as a model reads it there.
        assert!(
            text(1).contains("No record meets these conditions"),
            "{name}: {report}"
        );
        if !self.checks_arguments {
            assert!(
                text(2).contains("/iata") && text(2).contains("^[A-Z]{3}$"),
                "{name}: {report}"
            );
            let every = text(4).contains("/iata") && text(4).contains("/country");
            assert!(every, "a model reads every error: {name}: {report}");
        }
        assert!(
            text(3).contains("Trondheim Airport Vaernes"),
            "{name}: {report}"
        );
        if let Some(error) = self.error {
            self.check_errors(report, error);
        }
    }

    /// Checks that an agent's code distinguishes a failed call from another by more than its text, if the framework can.
    fn check_errors(&self, report: &Value, error: ShownError) {
        let answer = |call: usize| {
            let call = &report["calls"][call];
            (call["raised"].as_str(), call["marked"].as_str())
        };
        let expected = match error {
            ShownError::Raised(exception) => (Some(exception), None),
            ShownError::Marked(mark) => (None, Some(mark)),
            ShownError::ByTextAlone => (None, None),
        };
        for succeeded in [0, 3] {
            assert_eq!(
                answer(succeeded),
                (None, None),
                "{}: call {succeeded}: {report}",
                self.name
            );
        }
        assert_eq!(answer(1), expected, "{}: {report}", self.name);
        for refused in [2, 4] {
            match self.checks_arguments {
                // What the framework itself refuses is the framework's own error.
                true => assert!(
                    answer(refused) != (None, None),
                    "{}: call {refused}: {report}",
                    self.name
                ),
                false => assert_eq!(
                    answer(refused),
                    expected,
                    "{}: call {refused}: {report}",
                    self.name
                ),
            }
        }
    }

    /// Checks that a caller without a key learns that a key is needed, and how to send it.
    fn is_refused(&self, report: &Value) {
        assert!(
            report["tools"].as_array().is_none_or(Vec::is_empty),
            "{}: {report}",
            self.name
        );
        let printed = report.to_string();
        if self.says_key_is_needed {
            assert!(
                printed.contains("a key is needed") && printed.contains("Authorization: Bearer"),
                "{}: {printed}",
                self.name
            );
        }
    }
}
