//! Compares two versions of a contract by what the change does to callers: every difference by its rule, and the worst
//! one.
//!
//! An input breaks when arguments that were valid no longer are, an output when a result is possible that was not
//! valid before. If that can be shown, the item has a witness: whole arguments or a whole result, checked against
//! both schemas. What no rule decides is `undecided` and counts as breaking. `docs/contract-changes.md` lists the
//! rules.

mod binding;
mod consent;
mod include;
mod items;
mod returned;
mod rule;
mod tool;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_schema::{
    compare::{
        self, SchemaChange, SchemaRule, WitnessProver, digest, normal::NormalSchema, weight,
    },
    dialect,
    keyword::SCHEMA,
    schema::without_default_dialect,
    validate,
};

use crate::contract::{CompiledContract, ContractVersion};

pub use consent::ForeignChanges;
pub use returned::missing_tools;
use rule::ToolRule;
pub use rule::page;
pub use weir_schema::compare::{ChangeSeverity, SchemaSide};

/// The most bytes of JSON that a report shows of a value.
const VALUE_BYTES_MAX: usize = 4_096;
/// Witnesses that are looked for in one diff.
const WITNESSES_MAX: usize = 200;
/// Values of the schemas that these are looked for in: each is read again for each witness.
const WITNESS_VALUES_MAX: usize = 1_000_000;
/// The steps of all comparisons of schemas in one diff: what one step takes is some tenth of a microsecond.
const STEPS_MAX: usize = 20_000_000;

/// Every difference between two versions, as bad as the worst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractDiff {
    pub class: ChangeSeverity,
    /// Whether the class is breaking or undecided.
    pub breaking: bool,
    /// SHA-256 in hexadecimal over both sides and the items: what an approval binds to. The wording of reasons and the
    /// witnesses are not part of it.
    pub fingerprint: String,
    pub items: Vec<ContractChange>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractChange {
    /// Stable name of the rule.
    pub rule: String,
    /// JSON Pointer: into the schema of that side with its references inlined (of an output, its result arm); without a
    /// side into the tool; without a tool into the contract. For removed parts it points into the old one.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<SchemaSide>,
    /// The tool's old name, or its only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub class: ChangeSeverity,
    /// The value before and after; null means no value.
    pub old: Value,
    pub new: Value,
    /// The reason, in one sentence without a final stop.
    pub reason: String,
    /// Arguments that were valid and are not, or a result that is valid and was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Value>,
}

/// Compares two versions of a contract: schemas, texts, annotations, bindings, collections and limits. The versions'
/// numbers are not compared.
pub fn diff(old: &CompiledContract, new: &CompiledContract) -> ContractDiff {
    diff_since(old, &[], new)
}

/// Compares like [`diff`], and each of the [`missing_tools`] of `old` with the last version that had it, so that to remove a
/// tool and to add it again hides no change. `earlier` are published versions, newest first.
pub fn diff_since(
    old: &CompiledContract,
    earlier: &[CompiledContract],
    new: &CompiledContract,
) -> ContractDiff {
    let mut report = DiffReport::default();
    binding::contracts(old, new, &mut report);
    tool::compare(
        &tool::of_contract(old),
        &tool::of_contract(new),
        &mut report,
    );
    binding::tools(old, new, &mut report);
    items::compare(old, new, &mut report);
    returned::compare(old, earlier, new, &mut report);
    let unversioned = |contract: &CompiledContract| {
        let mut artifact = contract.to_artifact();
        artifact["version"] = Value::Null;
        digest(&artifact)
    };
    report.finish(unversioned(old), unversioned(new))
}

/// Compares what clients see: `{tools: [{name, title?, description?, inputSchema, outputSchema?, annotations?}, …], prompts?,
/// resources?, resourceTemplates?}`, as `weir compile` prints it or any server lists. The other lists are compared if both
/// documents have them; a document that names its contract has them all. Returns an error if one is not such a document.
pub fn diff_documents(old: &Value, new: &Value) -> Result<ContractDiff, String> {
    let mut report = DiffReport::default();
    let read = |which: &str, document| {
        tool::of_document(document).map_err(|message| format!("the {which} document: {message}"))
    };
    let (was, is) = (read("old", old)?, read("new", new)?);
    let contract = |document: &Value| document.get("contract").cloned().unwrap_or_default();
    // A listing names no contract.
    let named = !contract(old).is_null() && !contract(new).is_null();
    if named && contract(old) != contract(new) {
        let reason = "another contract".to_owned();
        report.note(
            ToolRule::ContractRenamed,
            None,
            "/contract",
            (contract(old), contract(new)),
            reason,
        );
    }
    tool::compare(&was, &is, &mut report);
    items::compare_documents(old, new, &mut report);
    let compared = |document: &Value| {
        let mut parts = vec![document.get("contract"), document.get("tools")];
        let items = items::DOCUMENT_LISTS.map(|(list, _)| document.get(list));
        parts.extend(items.into_iter().filter(Option::is_some));
        digest(&json!(parts))
    };
    Ok(report.finish(compared(old), compared(new)))
}

/// Compares two bare schemas: JSON Schema 2020-12, or an older dialect that they name.
pub fn diff_schemas(old: &Value, new: &Value, side: SchemaSide) -> ContractDiff {
    let mut report = DiffReport::default();
    report.schemas(old, new, side, None);
    report.finish(digest(old), digest(new))
}

impl ContractDiff {
    /// Returns the version that follows the live one: a major for a breaking or undecided change, a minor for a
    /// compatible or reviewed one, a patch for a cosmetic one, and the same version for an identical one.
    pub fn next_version(&self, live: ContractVersion) -> ContractVersion {
        let ContractVersion {
            major,
            minor,
            patch,
        } = live;
        match self.class {
            ChangeSeverity::Breaking | ChangeSeverity::Undecided => ContractVersion {
                major: major.saturating_add(1),
                minor: 0,
                patch: 0,
            },
            ChangeSeverity::Review | ChangeSeverity::Compatible => ContractVersion {
                major,
                minor: minor.saturating_add(1),
                patch: 0,
            },
            ChangeSeverity::Cosmetic => ContractVersion {
                major,
                minor,
                patch: patch.saturating_add(1),
            },
            ChangeSeverity::Identical => live,
        }
    }
}

/// The items as they are found.
struct DiffReport {
    items: Vec<ContractChange>,
    witnesses_left: usize,
    values_left: usize,
    steps_left: usize,
}

impl Default for DiffReport {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            witnesses_left: WITNESSES_MAX,
            values_left: WITNESS_VALUES_MAX,
            steps_left: STEPS_MAX,
        }
    }
}

impl DiffReport {
    fn note(
        &mut self,
        rule: ToolRule,
        tool: Option<&str>,
        path: impl Into<String>,
        (old, new): (Value, Value),
        reason: String,
    ) {
        self.items.push(ContractChange {
            rule: rule.id().to_owned(),
            path: path.into(),
            side: None,
            tool: tool.map(str::to_owned),
            class: rule.class(),
            old: clipped(old),
            new: clipped(new),
            reason,
            witness: None,
        });
    }

    fn schemas(&mut self, old: &Value, new: &Value, side: SchemaSide, tool: Option<&str>) {
        // Clients read neither word, and it is the same dialect.
        let (old, new) = (without_default_dialect(old), without_default_dialect(new));
        let mut push = |rule: SchemaRule, reason: String| {
            self.items.push(ContractChange {
                rule: rule.id(side),
                path: String::new(),
                side: Some(side),
                tool: tool.map(str::to_owned),
                class: rule.class(side),
                old: Value::Null,
                new: Value::Null,
                reason,
                witness: None,
            });
        };
        if old == new {
            // Objects are equal in any order, bytes are not.
            if old.to_string() != new.to_string() {
                push(
                    SchemaRule::OrderChanged,
                    "only the order changed".to_owned(),
                );
            }
            return;
        }
        let translated = in_one_dialect(&old, &new);
        let (old, new) = match &translated {
            Ok(Some((old, new))) => (old, new),
            Ok(None) => (&*old, &*new),
            Err(message) => {
                push(
                    SchemaRule::UndecidedSchema,
                    format!("a schema cannot be read in the dialect that it names: {message}"),
                );
                (&*old, &*new)
            }
        };
        // Patterns of an upstream server's schemas may look around.
        let checked = |schema: &Value| {
            let schema = without_dialect(schema);
            validate::validator(&schema)
                .or_else(|message| validate::foreign_validator(&schema).map_err(|_| message))
        };
        for (which, schema) in [("old", old), ("new", new)] {
            if let Err(message) = checked(schema) {
                push(
                    SchemaRule::UndecidedSchema,
                    format!("the {which} schema cannot be checked with: {message}"),
                );
            }
        }
        match (NormalSchema::new(old), NormalSchema::new(new)) {
            (Ok(was), Ok(is)) => {
                let findings = compare::compare(&was, &is, &mut self.steps_left);
                if findings.is_empty() {
                    push(
                        SchemaRule::OrderChanged,
                        "only order or spelling changed".to_owned(),
                    );
                }
                self.findings((old, new), findings, side, tool);
            }
            (Err(message), _) | (_, Err(message)) => push(SchemaRule::UndecidedSchema, message),
        }
    }

    fn findings(
        &mut self,
        roots: (&Value, &Value),
        findings: Vec<SchemaChange<'_>>,
        side: SchemaSide,
        tool: Option<&str>,
    ) {
        let mut prover = None;
        let around = weight(roots.0) + weight(roots.1);
        for finding in findings {
            let mut class = finding.rule.class(side);
            let mut witness = None;
            if class.is_breaking() && self.takes_witness(&finding, around) {
                let prover =
                    prover.get_or_insert_with(|| WitnessProver::new(roots.0, roots.1, side));
                witness = prover.as_ref().and_then(|prover| prover.prove(&finding));
            }
            // A change with a witness is no longer undecided.
            if witness.is_some() {
                class = ChangeSeverity::Breaking;
            }
            self.items.push(ContractChange {
                rule: finding.rule.id(side),
                path: finding.path,
                side: Some(side),
                tool: tool.map(str::to_owned),
                class,
                old: clipped(finding.old),
                new: clipped(finding.new),
                reason: finding.reason,
                witness,
            });
        }
    }

    /// Takes what the search for a witness costs. `around` is the number of values in both whole schemas.
    fn takes_witness(&mut self, finding: &SchemaChange<'_>, around: usize) -> bool {
        let Some(left) = self.witnesses_left.checked_sub(1) else {
            return false;
        };
        self.witnesses_left = left;
        let pair = weight(finding.pair.0) + weight(finding.pair.1);
        let values = around + pair + finding.recursive_values(around);
        let left = self.values_left.checked_sub(values);
        self.values_left = left.unwrap_or(self.values_left);
        left.is_some()
    }

    fn finish(self, old: String, new: String) -> ContractDiff {
        let class = self
            .items
            .iter()
            .map(|item| item.class)
            .max()
            .unwrap_or(ChangeSeverity::Identical);
        let meant = self.items.iter().map(|item| {
            json!([
                item.rule, item.path, item.side, item.tool, item.class, item.old, item.new
            ])
        });
        let fingerprint = digest(&json!([old, new, meant.collect::<Vec<Value>>()]));
        ContractDiff {
            class,
            breaking: class.is_breaking(),
            fingerprint,
            items: self.items,
        }
    }
}

/// Returns both schemas in 2020-12 if one of them names another dialect, so that each keyword means the same in both. A dialect
/// that is not known here stays where both name it.
fn in_one_dialect(old: &Value, new: &Value) -> Result<Option<(Value, Value)>, String> {
    let named = (old.get(SCHEMA), new.get(SCHEMA));
    if named.0 == named.1 && (named.0.is_none() || !dialect::is_known(old)) {
        return Ok(None);
    }
    let translated = |schema: &Value| {
        let translated = dialect::translate(schema)?;
        Ok::<_, String>(without_default_dialect(&translated).into_owned())
    };
    Ok(Some((translated(old)?, translated(new)?)))
}

fn without_dialect(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, _)| *key != "$schema")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn clipped(value: Value) -> Value {
    let bytes = value.to_string().len();
    match bytes > VALUE_BYTES_MAX {
        true => format!("… {bytes} bytes of JSON").into(),
        false => value,
    }
}
