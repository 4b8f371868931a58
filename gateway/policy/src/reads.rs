//! Finds the attributes that the conditions of a policy read.

use std::collections::BTreeSet;

use cedar_policy::Policy;
use serde_json::Value;

/// The attributes that the conditions of one policy read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyReads {
    /// Whether they look at the call: its arguments, or anything else of the context.
    pub context: bool,
    /// Whether they take the arguments as a whole.
    pub all_arguments: bool,
    /// Whether they read the caller, beyond the scope.
    pub principal: bool,
    /// The names that lead to each argument, or member of one.
    pub paths: BTreeSet<Vec<String>>,
}

impl PolicyReads {
    pub(crate) fn new(policy: &Policy) -> Self {
        let mut reads = Self::default();
        match policy.to_json() {
            Ok(json) => {
                for condition in json["conditions"].as_array().into_iter().flatten() {
                    reads.note(&condition["body"]);
                }
            }
            // What cannot be looked into may read everything.
            Err(_) => {
                reads.context = true;
                reads.all_arguments = true;
                reads.principal = true;
            }
        }
        reads
    }

    fn note(&mut self, expression: &Value) {
        if let Some(path) = path(expression) {
            self.context = true;
            match path.split_first() {
                Some((first, [])) if *first == "args" => self.all_arguments = true,
                Some((first, rest)) if *first == "args" => {
                    let rest = rest.iter().map(|name| (*name).to_owned()).collect();
                    self.paths.insert(rest);
                }
                _ => self.all_arguments = true,
            }
            return;
        }
        if expression.get("Var").and_then(Value::as_str) == Some("principal") {
            self.principal = true;
            return;
        }
        match expression {
            Value::Object(members) => {
                for (operator, operand) in members {
                    // A literal looks at nothing, and its texts are not expressions.
                    if operator != "Value" {
                        self.note(operand);
                    }
                }
            }
            Value::Array(operands) => operands.iter().for_each(|operand| self.note(operand)),
            _ => {}
        }
    }
}

/// Returns the names after `context`, if the expression is a path into it: of `context.args.amount` and
/// `context.args has amount`, `args` and `amount`.
fn path(expression: &Value) -> Option<Vec<&str>> {
    if expression.get("Var").and_then(Value::as_str) == Some("context") {
        return Some(Vec::new());
    }
    let step = expression.get(".").or_else(|| expression.get("has"))?;
    let mut names = path(step.get("left")?)?;
    match step.get("attr")? {
        Value::String(name) => names.push(name),
        Value::Array(more) => names.extend(more.iter().filter_map(Value::as_str)),
        _ => return None,
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(condition: &str) -> PolicyReads {
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        PolicyReads::new(&Policy::parse(None, text).expect("a policy"))
    }

    #[test]
    fn ways_into_the_arguments_are_found_wherever_they_are() {
        let found = reads(
            "context.args has amount && [context.args.amount].contains(1) || context.args.to.city == \"context.args.x\" \
             && context.args has \"odd name\" && context.args has from.city",
        );
        let mut paths: Vec<String> = found.paths.iter().map(|path| path.join("/")).collect();
        paths.retain(|path| path != "from"); // an extended `has` looks at each step
        assert_eq!(paths, ["amount", "from/city", "odd name", "to/city"]);
        assert!(found.context && !found.all_arguments);
        assert!(reads("context.args == {}").all_arguments);
        assert!(reads("{a: context}.a.args.b == 1").all_arguments);
        let nothing = PolicyReads::default();
        assert_eq!(reads("resource.read_only || \"context\" == \"a\""), nothing);
        assert!(reads("principal.name == \"a\"").principal);
    }
}
