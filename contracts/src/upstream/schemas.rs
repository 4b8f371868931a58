//! The published schemas of an upstream's tool, and those that its calls are checked against.

use serde_json::{Map, Value, json};
use weir_schema::{
    dialect, presets, renaming,
    rewrite::{self, RewriteReport},
};

use super::{RefusedEntry, ToolOverlay, offered::ParsedEntry};
use crate::{contract::OfferTarget, mirror};

/// Returns the published schema. If arguments are checked against another one, that goes into the target.
pub(super) fn input(
    item: &ParsedEntry,
    set: Option<&Map<String, Value>>,
    overlay: Option<&ToolOverlay>,
    target: &mut OfferTarget,
    report: &mut RewriteReport,
) -> Result<Value, RefusedEntry> {
    const PLACE: &str = "/detail/input";
    let refused = |why: String| RefusedEntry::new(PLACE, why);
    if let Some(error) = &item.input.error {
        return Err(refused(format!("its input schema cannot be used: {error}"))
            .hint("ask its maker for a valid one"));
    }
    for &what in &item.input.left_out {
        report.tell(what);
    }
    let mut schema = match &item.input.json {
        Some(schema) => dialect::translate(schema).map_err(refused)?,
        None => json!({}),
    };
    rewrite::plain_patterns(&mut schema, report);
    rewrite::root(&mut schema, report).map_err(refused)?;
    if !rewrite::has_few_alternatives(&schema) {
        return Err(refused(
            "too many alternatives are reached from the root of its input".to_owned(),
        ));
    }
    let mirrored = if set.is_some() {
        mirror::mirrored(&schema.clone().into())
    } else {
        Vec::new()
    };
    for (argument, value) in set.into_iter().flatten() {
        presets::bind(&mut schema, argument, value).map_err(|why| {
            let place = overlay
                .map(|overlay| format!("{}/set", overlay.place))
                .unwrap_or_default();
            let hint = "set only arguments that the tool has, to values that it takes";
            RefusedEntry {
                in_overlay: true,
                ..RefusedEntry::new(&place, why).hint(hint)
            }
        })?;
        target.set.insert(argument.clone(), value.clone());
    }
    if !mirrored.is_empty() {
        let set = Value::Object(target.set.clone());
        let repeated = mirrored
            .iter()
            .filter_map(|one| Some((one.header.clone(), one.value(&set)?)));
        target.set_headers = repeated.collect();
    }
    target.keys = renaming::publish(&mut schema).map_err(refused)?;
    rewrite::inside(&mut schema, report);
    let Some((plain, is_wider)) = rewrite::plain_root(&schema) else {
        return Ok(schema);
    };
    if is_wider {
        report.tell(
            "alternatives at the root of the input are published as one object, and arguments are checked against all of it",
        );
        target.input = Some(schema.into());
    } else {
        report.tell("`allOf` at the root of the input is written as one object");
    }
    Ok(plain)
}

/// Returns the published schema, if there is one. If results are checked against another one, that goes into the
/// target.
pub(super) fn output(
    item: &ParsedEntry,
    target: &mut OfferTarget,
    report: &mut RewriteReport,
) -> Result<Option<Value>, RefusedEntry> {
    let Some(output) = &item.output else {
        return Ok(None);
    };
    let hint = format!(
        "say `{{ from: {}, output: drop }}` under `tools:` in the overlay",
        json!(item.name)
    );
    let refused = |why: String| RefusedEntry::new("/detail/output", why).hint(hint.as_str());
    if let Some(error) = &output.error {
        return Err(refused(format!(
            "its output schema cannot be used: {error}"
        )));
    }
    let Some(schema) = &output.json else {
        return Ok(None);
    };
    for &what in &output.left_out {
        report.tell(what);
    }
    let mut schema = dialect::translate(schema).map_err(refused)?;
    rewrite::plain_patterns(&mut schema, report);
    rewrite::plain_properties(&mut schema, report);
    if schema.get("type").is_some_and(|kind| kind == "object") {
        return Ok(Some(schema));
    }
    if !rewrite::has_few_alternatives(&schema) || !rewrite::is_object(&schema, &schema, 0) {
        report.tell("results that are not objects are not described in lists, since clients refuse that; they are checked against their schema");
        target.output = Some(schema.into());
        return Ok(None);
    }
    report.tell("`\"type\": \"object\"` is added at the root of the output");
    let mut published = schema.clone();
    if let Value::Object(members) = &mut published {
        let at = usize::from(members.contains_key("$schema"));
        members.shift_insert(at, "type".to_owned(), "object".into());
    }
    Ok(Some(published))
}
