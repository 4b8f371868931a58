//! Shims between random neighbours, and what values become through them.

use serde_json::{Value, json};
use weir_contracts::{
    CompiledContract, ContractVersion,
    shim::{VersionShim, derive},
};

use super::{schemas, tape::Tape};

/// Two schemas, and a shim between them that is read off their difference or drawn.
pub(crate) struct Pair {
    pub(crate) old: Value,
    pub(crate) new: Value,
    pub(crate) shim: VersionShim,
    contracts: (CompiledContract, CompiledContract),
}

pub(crate) fn pair(tape: &mut Tape<'_>) -> Pair {
    let old = object(tape);
    let mut new = old.clone();
    let mut steps = Vec::new();
    for _ in 0..=tape.below(3) {
        change(tape, &mut new, &mut steps);
    }
    if tape.one_in(3) {
        new = schemas::neighbour(tape, &new);
    }
    let contracts = (contract(&old), contract(&new));
    let shim = match tape.one_in(2) {
        true => derive(&contracts.0, &contracts.1).unwrap_or_default(),
        false => {
            let shim = json!({ "tools": { "t": { "input": steps, "output": steps } } });
            VersionShim::read(&shim).unwrap_or_default()
        }
    };
    Pair {
        old,
        new,
        shim,
        contracts,
    }
}

fn object(tape: &mut Tape<'_>) -> Value {
    let mut members = serde_json::Map::new();
    for name in ["a", "b", "kind"] {
        let schema = match tape.below(4) {
            0 => json!({ "enum": ["a", "b", "open", 1] }),
            1 => json!({ "type": "object", "properties": { "a": schemas::schema(tape, 1) } }),
            _ => schemas::schema(tape, 2),
        };
        members.insert(name.to_owned(), schema);
    }
    let mut object = json!({ "type": "object", "properties": members });
    if tape.one_in(2) {
        object["required"] = json!([tape.pick(&["a", "b"])]);
    }
    if tape.one_in(2) {
        object["additionalProperties"] = false.into();
    }
    if tape.one_in(3) {
        object["minProperties"] = tape.below(4).into();
    }
    object
}

impl Pair {
    pub(crate) fn fits(&self) -> bool {
        self.shim.fits(&self.contracts.0, &self.contracts.1).is_ok()
    }

    pub(crate) fn converts(&self) -> bool {
        !self.shim.tools.is_empty()
    }
}

/// Gives a member another name, or a value, or demands one, at the root or one step inside.
fn change(tape: &mut Tape<'_>, schema: &mut Value, steps: &mut Vec<Value>) {
    let mut at = String::new();
    let mut place = schema;
    if tape.one_in(3) {
        let inner = place.get("properties").and_then(Value::as_object);
        let names: Vec<String> = inner
            .into_iter()
            .flatten()
            .filter(|(_, inner)| inner.get("properties").is_some())
            .map(|(name, _)| name.clone())
            .collect();
        if !names.is_empty() {
            let name = tape.pick(&names);
            at = format!("/{name}");
            place = &mut place["properties"][name];
        }
    }
    let Some(members) = place.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    let names: Vec<String> = members.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let name = tape.pick(&names).clone();
    let to = (*tape.pick(&["a", "b", "a2", "kind", "fresh"])).to_owned();
    match tape.below(3) {
        0 => {
            let listed = members[&name].get_mut("enum").and_then(Value::as_array_mut);
            let Some(text) = listed.and_then(|listed| listed.iter_mut().find(|it| it.is_string()))
            else {
                return;
            };
            let from = std::mem::replace(text, json!(to));
            steps
                .push(json!({ "value": { "at": format!("{at}/{name}"), "from": from, "to": to } }));
        }
        1 => {
            members.insert(to.clone(), json!({ "type": "integer", "default": 1 }));
            let required = place.get_mut("required").and_then(Value::as_array_mut);
            match required {
                Some(required) if !required.contains(&json!(to)) => required.push(json!(to)),
                Some(_) => {}
                None => place["required"] = json!([to]),
            }
            steps.push(json!({ "set": { "at": format!("{at}/{to}"), "value": 1 } }));
        }
        _ => {
            let Some(schema) = members.shift_remove(&name) else {
                return;
            };
            members.insert(to.clone(), schema);
            let required = place.get_mut("required").and_then(Value::as_array_mut);
            for entry in required.into_iter().flatten() {
                if *entry == json!(name) {
                    *entry = json!(to);
                }
            }
            steps.push(json!({ "rename": { "at": format!("{at}/{name}"), "to": to } }));
        }
    }
}

/// Makes a contract of one tool that takes and answers what the schema says.
fn contract(schema: &Value) -> CompiledContract {
    let tool = json!({
        "name": "t", "description": "", "input_schema": schema, "output_schema": schema, "annotations": {},
        "offer": { "maker": { "plugin": "p" }, "name": "t" },
    });
    let contract = json!({ "name": "c", "version": ContractVersion::FIRST, "collections": [], "tools": [tool] });
    serde_json::from_value(contract).expect("a contract")
}
