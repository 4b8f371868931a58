//! Members of other servers that describe an item or a content block, as clients take them.
//!
//! Many clients refuse a whole list, or a whole result, for one such member of another type. It counts as absent.

use serde_json::{Map, Value};

const AUDIENCES: [&str; 2] = ["user", "assistant"];
const THEMES: [&str; 2] = ["light", "dark"];
const TASK_SUPPORT: [&str; 3] = ["forbidden", "optional", "required"];

/// Returns the annotations of a resource or a content block. `None` if they are not an object.
pub fn annotations(annotations: &Value) -> Option<Value> {
    let kept = members(annotations, |name, value| match name {
        "audience" => listed(value, |word| AUDIENCES.contains(&word)),
        "priority" => {
            let is_share = |number: f64| (0.0..=1.0).contains(&number);
            value.as_f64().is_some_and(is_share).then(|| value.clone())
        }
        "lastModified" => text(value, is_time),
        _ => Some(value.clone()),
    });
    Some(Value::Object(kept?))
}

/// Returns the icons that a client may fetch or show: those over HTTPS, and images in the text itself. Others could lead a client
/// to files of its machine, to hosts of its network, or run as a script.
pub fn icons(icons: &Value) -> Option<Value> {
    let is_safe = |icon: &&Value| {
        let source = icon["src"].as_str().unwrap_or_default();
        let begins = |with: &str| {
            source
                .get(..with.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(with))
        };
        begins("https://") || begins("data:image/")
    };
    let icons = icons.as_array()?.iter().filter(is_safe).filter_map(icon);
    let icons: Vec<Value> = icons.collect();
    (!icons.is_empty()).then(|| icons.into())
}

fn icon(icon: &Value) -> Option<Value> {
    let kept = members(icon, |name, value| match (name, value) {
        ("mimeType", value) => text(value, |_| true),
        // Servers of earlier drafts write the sizes as one text.
        ("sizes", Value::String(sizes)) => Some(sizes.split_whitespace().collect()),
        ("sizes", value) => listed(value, |_| true),
        ("theme", value) => text(value, |theme| THEMES.contains(&theme)),
        (_, value) => Some(value.clone()),
    });
    Some(Value::Object(kept?))
}

/// Returns whether a tool may run as a task, if that can be read.
pub fn execution(execution: &Value) -> Option<Value> {
    let kept = members(execution, |name, value| match name {
        "taskSupport" => text(value, |support| TASK_SUPPORT.contains(&support)),
        _ => Some(value.clone()),
    });
    let kept = kept?;
    (!kept.is_empty()).then_some(Value::Object(kept))
}

/// Returns the members of an object that `keep` keeps, as it writes them. `None` if the value is not an object.
fn members(
    object: &Value,
    keep: impl Fn(&str, &Value) -> Option<Value>,
) -> Option<Map<String, Value>> {
    let members = object.as_object()?.iter();
    let kept = members.filter_map(|(name, value)| Some((name.clone(), keep(name, value)?)));
    Some(kept.collect())
}

/// Returns a text that `is_taken` accepts.
fn text(value: &Value, is_taken: impl Fn(&str) -> bool) -> Option<Value> {
    value.as_str().is_some_and(is_taken).then(|| value.clone())
}

/// Returns the texts of a list that are taken.
fn listed(value: &Value, is_taken: impl Fn(&str) -> bool) -> Option<Value> {
    let words = value.as_array()?.iter().filter_map(Value::as_str);
    Some(words.filter(|word| is_taken(word)).collect())
}

/// Returns `true` for a time of RFC 3339, by its form: `2026-01-02T03:04:05Z`.
fn is_time(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let has_form = |(byte, form): (u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == *form,
    };
    let rest = text.get(FORM.len()..).unwrap_or_default();
    let zone = rest.trim_start_matches(|next: char| next == '.' || next.is_ascii_digit());
    let is_offset = zone.len() == 6 && zone.starts_with(['+', '-']);
    text.bytes().zip(FORM).all(has_form) && (zone == "Z" || is_offset)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_of_other_types_than_clients_take_count_as_absent() {
        let given = json!({ "audience": ["assistant", "system", 5], "priority": 7, "lastModified": "yesterday", "x": 1 });
        let expected = json!({ "audience": ["assistant"], "x": 1 });
        assert_eq!(annotations(&given), Some(expected));
        assert_eq!(
            annotations(&json!({ "audience": "user", "priority": "high", "lastModified": 5 })),
            Some(json!({}))
        );
        for kept in [
            json!({ "audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z" }),
            json!({ "priority": 1, "lastModified": "2025-01-12T15:00:58.123+01:00" }),
        ] {
            assert_eq!(annotations(&kept), Some(kept.clone()));
        }
        assert_eq!(annotations(&json!("x")), None);
        let source = "https://example.org/a.png";
        for (given, expected) in [
            (
                json!({ "src": source, "sizes": "48x48 any" }),
                json!({ "src": source, "sizes": ["48x48", "any"] }),
            ),
            (
                json!({ "src": source, "sizes": 48, "mimeType": null, "theme": "auto" }),
                json!({ "src": source }),
            ),
        ] {
            assert_eq!(icons(&json!([given, 5, null])), Some(json!([expected])));
        }
        assert_eq!(execution(&json!({ "taskSupport": 5 })), None);
        assert_eq!(
            execution(&json!({ "taskSupport": "maybe", "x": 1 })),
            Some(json!({ "x": 1 }))
        );
        let kept = json!({ "taskSupport": "optional" });
        assert_eq!(execution(&kept), Some(kept.clone()));
    }
}
