//! The envelope of a document: its version, and where references within it lead.

use serde_json::{Map, Value};
use weir_schema::reference::stated;
use weir_text::shorten;

use super::ImportRemark;
use crate::{form, json::percent_decoded, problem::FileProblem};

/// References followed one after another.
const REFERENCES_MAX: usize = 32;

/// Keywords that define more about an object's members than the target of the reference next to them.
const OF_MEMBERS: &[&str] = &[
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "required",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "not",
];

pub(super) struct ImportDocument {
    root: Value,
    /// Schemas are of OpenAPI 3.0's own dialect.
    pub(super) is_3_0: bool,
}

impl ImportDocument {
    pub(super) fn read(file: &str, text: &str) -> Result<Self, Vec<FileProblem>> {
        // Documents have bounds that are larger than readers hold exactly.
        let root = form::text::read_any_numbers(file, text)?;
        let version = root
            .get("openapi")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_3_0 = match version.split('.').collect::<Vec<_>>().as_slice() {
            ["3", "0", ..] => true,
            ["3", "1", ..] => false,
            _ if root.get("swagger").is_some() => {
                let problem = FileProblem::new(
                    file,
                    "/swagger",
                    "the document is of Swagger 2.0, and 3.0 and 3.1 are read",
                );
                return Err(vec![
                    problem.hint("convert it, for instance with `npx swagger2openapi`"),
                ]);
            }
            _ => {
                let problem = FileProblem::new(
                    file,
                    "/openapi",
                    "the document does not say that it is OpenAPI 3.0 or 3.1",
                );
                return Err(vec![
                    problem.hint("it begins with `openapi: 3.1.0`, or with 3.0"),
                ]);
            }
        };
        if !root.get("paths").is_some_and(Value::is_object) {
            return Err(vec![FileProblem::new(
                file,
                "/paths",
                "the document has no paths",
            )]);
        }
        Ok(Self { root, is_3_0 })
    }

    pub(super) fn get(&self, member: &str) -> &Value {
        self.root.get(member).unwrap_or(&Value::Null)
    }

    pub(super) fn title(&self) -> &str {
        self.get("info")
            .get("title")
            .and_then(Value::as_str)
            .unwrap_or("api")
    }

    pub(super) fn paths(&self) -> &Map<String, Value> {
        self.get("paths")
            .as_object()
            .expect("checked when it was read")
    }

    /// Returns remarks about the parts that are of no use for tools that are called.
    pub(super) fn remarks(&self) -> Vec<ImportRemark> {
        let count = self.get("webhooks").as_object().map_or(0, Map::len);
        let remark = ImportRemark {
            left_out: false,
            place: "/webhooks".to_owned(),
            operation: String::new(),
            reason: "webhook",
            message: format!(
                "{count} webhooks are requests to a client, so there is no tool for them"
            ),
        };
        if count > 0 { vec![remark] } else { Vec::new() }
    }

    /// Follows references to their targets, as far as they remain in the document.
    pub(super) fn resolved<'d>(&'d self, mut value: &'d Value) -> Result<&'d Value, String> {
        let mut targets: Vec<&Value> = Vec::new();
        while let Some(reference) = stated(value) {
            value = self.target(reference)?;
            if targets.iter().any(|target| std::ptr::eq(*target, value)) {
                return Err("a reference leads back to itself".to_owned());
            }
            if targets.len() == REFERENCES_MAX {
                return Err(format!(
                    "a reference leads through more than {REFERENCES_MAX} others"
                ));
            }
            targets.push(value);
        }
        Ok(value)
    }

    /// Returns `true` if a reference has rules for members next to it: from 3.1 on both apply.
    pub(super) fn has_more_members(&self, schema: &Value) -> bool {
        !self.is_3_0
            && stated(schema).is_some()
            && OF_MEMBERS.iter().any(|key| schema.get(*key).is_some())
    }

    /// Returns `true` if only answers have this member. From 3.1 on that may be next to a reference.
    pub(super) fn is_read_only(&self, member: &Value) -> Result<bool, String> {
        let says_so = |schema: &Value| schema.get("readOnly") == Some(&Value::Bool(true));
        Ok((!self.is_3_0 && says_so(member)) || says_so(self.resolved(member)?))
    }

    pub(super) fn target(&self, reference: &str) -> Result<&Value, String> {
        let shown = shorten(reference, 100);
        match reference.strip_prefix('#') {
            Some(pointer) => self
                .root
                .pointer(&percent_decoded(pointer))
                .ok_or_else(|| format!("the reference {shown} leads nowhere")),
            None => Err(format!(
                "the reference {shown} leads to another document, which is never fetched"
            )),
        }
    }
}
