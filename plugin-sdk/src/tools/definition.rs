//! Defines one tool for the gateway: an MCP Tool object, plus `cli`.

use serde_json::Value;

use super::{Context, Reply};
use crate::error::{Error, Result};
use crate::schema::{Fields, Property, Writer, fits, write_object, write_text};

/// A function with the attribute `#[tool]`, which implements this for an empty enum of the function's name.
pub trait Tool {
    /// The tool's description of itself.
    const DEFINITION: Definition;

    /// Reads the arguments, calls the function and returns its outcome.
    fn call(arguments: Fields, context: &Context) -> Result<Reply>;
}

/// A tool's description of itself.
#[derive(Clone, Copy)]
pub struct Definition {
    /// The name: the function's, unless another is given.
    pub name: &'static str,
    /// The first paragraph of the documentation.
    pub title: Option<&'static str>,
    /// The rest of it, or else the first paragraph too.
    pub description: Option<&'static str>,
    /// `readOnlyHint` and its kin, those that were given.
    pub annotations: &'static [(&'static str, bool)],
    /// The imports that the operator is asked for: `sql`, `http`, `files`.
    pub requests: &'static [&'static str],
    /// Whether a call may continue as a task after its request was answered, as in `execution.taskSupport`: `optional` or
    /// `required`.
    pub task: Option<&'static str>,
    /// A schema of the arguments that was written by hand, JSON. `None`: it is derived from the parameters.
    pub input: Option<&'static str>,
    /// The `_meta` of the MCP Tool object, JSON.
    pub meta: Option<&'static str>,
    /// The parameters, contexts left out.
    pub parameters: &'static [Property],
    /// The schema of its answer; none if it has no answer.
    pub output: Option<fn(&mut Writer)>,
}

impl Definition {
    /// Returns the MCP Tool object as JSON; fails if a default does not meet its own schema.
    pub fn to_json(&self) -> Result<String> {
        let input = self.input_schema();
        self.check_defaults(&input)?;
        let mut out = String::from("{\"name\":");
        out.push_str(&write_text(self.name));
        let mut member = |name: &str, json: &str| {
            out.push_str(",\"");
            out.push_str(name);
            out.push_str("\":");
            out.push_str(json);
        };
        if let Some(title) = self.title {
            member("title", &write_text(title));
        }
        if let Some(description) = self.description {
            member("description", &write_text(description));
        }
        member("inputSchema", &input);
        if let Some(output) = self.output {
            member("outputSchema", &Writer::for_output().whole(output));
        }
        if !self.annotations.is_empty() {
            let hints = self
                .annotations
                .iter()
                .map(|(name, is)| format!("\"{name}\":{is}"))
                .collect::<Vec<_>>();
            member("annotations", &format!("{{{}}}", hints.join(",")));
        }
        if let Some(support) = self.task {
            member("execution", &format!("{{\"taskSupport\":\"{support}\"}}"));
        }
        if let Some(meta) = self.meta {
            member("_meta", meta);
        }
        if let Some(cli) = self.cli() {
            member("cli", &cli);
        }
        out.push('}');
        Ok(out)
    }

    fn input_schema(&self) -> String {
        if let Some(input) = self.input {
            return input.to_owned();
        }
        Writer::for_input().whole(|schema| write_object(self.parameters, false, schema))
    }

    fn check_defaults(&self, input: &str) -> Result<()> {
        if self
            .parameters
            .iter()
            .all(|parameter| parameter.default_json().is_none())
        {
            return Ok(());
        }
        let root: Value =
            serde_json::from_str(input).map_err(|error| self.wrong(None, &error.to_string()))?;
        for parameter in self.parameters {
            let Some(default) = parameter.default_json().filter(|default| default != "null") else {
                continue;
            };
            let name = parameter.name;
            let value: Value = serde_json::from_str(&default)
                .map_err(|error| self.wrong(Some(name), &error.to_string()))?;
            fits(&value, &root["properties"][name], &root).map_err(|mismatch| {
                let place = if mismatch.path.is_empty() {
                    String::new()
                } else {
                    format!("`{}` in it ", mismatch.path)
                };
                self.wrong(
                    Some(name),
                    &format!(
                        "the default {default} does not meet its schema: {place}{}",
                        mismatch.message
                    ),
                )
            })?;
        }
        Ok(())
    }

    fn wrong(&self, parameter: Option<&str>, why: &str) -> Error {
        match parameter {
            Some(parameter) => Error::internal(format!(
                "The parameter `{parameter}` of the tool `{}`: {why}.",
                self.name
            ))
            .field(parameter),
            None => Error::internal(format!("The tool `{}`: {why}.", self.name)),
        }
    }

    /// Returns `{"parameters": {"environment": {"positional": true}, "service": {"aliases": ["-s"], "metavar":
    /// "NAME"}}}`.
    fn cli(&self) -> Option<String> {
        let mut parameters = Vec::new();
        for (name, cli) in self
            .parameters
            .iter()
            .filter_map(|parameter| Some((parameter.name, parameter.cli?)))
        {
            let mut members = Vec::new();
            if cli.positional {
                members.push("\"positional\":true".to_owned());
            }
            if !cli.aliases.is_empty() {
                let aliases: Vec<String> =
                    cli.aliases.iter().map(|alias| write_text(alias)).collect();
                members.push(format!("\"aliases\":[{}]", aliases.join(",")));
            }
            if let Some(metavar) = cli.metavar {
                members.push(format!("\"metavar\":{}", write_text(metavar)));
            }
            parameters.push(format!("{}:{{{}}}", write_text(name), members.join(",")));
        }
        (!parameters.is_empty()).then(|| format!("{{\"parameters\":{{{}}}}}", parameters.join(",")))
    }
}
