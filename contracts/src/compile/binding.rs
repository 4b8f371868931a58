//! Decides where every field of a bound tool goes. A field that goes nowhere is refused: an argument that is silently
//! ignored is a lie to the agent.

use super::{
    FileProblems,
    collection::{columns_hint, no_column},
    property::FieldSlot,
};
use crate::{
    contract::{
        BoundField, BoundSource, ContractCollection, FieldDestination, ToolVerb, ValueForm,
    },
    form::{self, FieldType, FormField},
    name,
    shape::{self, COMPARISONS, OperationParam, ShapeOperation, ValueType},
};

/// The destination of one field, and the column or parameter it must agree with.
pub(super) struct FieldBinding<'s> {
    pub to: FieldDestination,
    pub slot: FieldSlot<'s>,
    pub form: ValueForm,
}

/// The target that a tool is bound to.
pub(super) struct BindingTarget<'s> {
    pub collection: &'s ContractCollection,
    pub verb: ToolVerb,
    /// The operation; only for `call`.
    pub operation: Option<&'s ShapeOperation>,
}

impl<'s> BindingTarget<'s> {
    pub(super) fn bind(
        &self,
        field: &FormField,
        problems: &mut FileProblems,
    ) -> Option<FieldBinding<'s>> {
        if let (Some(_), Some(_)) = (&field.param, &field.column) {
            problems.add_hint(
                format!("{}/param", field.place),
                "a field goes to a column or to a parameter",
                "keep one",
            );
            return None;
        }
        let bound = match field.param.is_some() || self.verb == ToolVerb::Call {
            true => self.bind_param(field, problems),
            false => self.bind_column(field, problems),
        };
        check_spellings(field, bound.as_ref(), problems);
        bound
    }

    /// Checks the fields together: every field that a key column or parameter needs must be there.
    pub(super) fn check_whole(
        &self,
        form: &form::FormTool,
        bound: &[Option<FieldBinding<'s>>],
        fixed: &[(&form::FormBound, Option<BoundField>)],
        problems: &mut FileProblems,
    ) {
        for (index, here) in bound.iter().enumerate() {
            let Some(here) = here else { continue };
            let twice = bound[..index]
                .iter()
                .flatten()
                .any(|other| other.to == here.to);
            if twice {
                let message = format!(
                    "a second field for the same {} '{}'",
                    here.slot.what, here.slot.name
                );
                let hint = "drop one of the two, or say by `column`, `match` or `param` where the other goes";
                problems.add_hint(form.fields[index].place.clone(), message, hint);
            }
        }
        self.check_fixed(bound, fixed, problems);
        let fixed: Vec<&FieldDestination> = fixed
            .iter()
            .filter_map(|(_, field)| Some(&field.as_ref()?.to))
            .collect();
        if matches!(self.verb, ToolVerb::Update | ToolVerb::Delete) {
            self.check_key(form, bound, &fixed, problems);
        }
        if self.verb == ToolVerb::Create
            && bound.iter().all(Option::is_some)
            && fixed.len() == form.bound.len()
        {
            self.check_needed(form, bound, &fixed, problems);
        }
        for param in self.params().iter().filter(|param| param.required) {
            let to = FieldDestination::Param(param.name.clone());
            let is_sent = form.fields.iter().zip(bound).any(|(field, bound)| {
                field.required && bound.as_ref().is_some_and(|bound| bound.to == to)
            });
            if !is_sent && !fixed.contains(&&to) {
                let hint = format!("add a required field with `param: {}`", param.name);
                let message = format!("the parameter {} is required", name::quoted(&param.name));
                problems.add_hint(format!("{}/fields", form.place), message, hint);
            }
        }
    }

    /// Checks the bound fields, which no agent can influence.
    fn check_fixed(
        &self,
        bound: &[Option<FieldBinding<'s>>],
        fixed: &[(&form::FormBound, Option<BoundField>)],
        problems: &mut FileProblems,
    ) {
        for (index, (entry, here)) in fixed.iter().enumerate() {
            let Some(here) = here else { continue };
            let mut others = fixed[..index]
                .iter()
                .filter_map(|(_, other)| Some(&other.as_ref()?.to));
            let mut sent = bound.iter().flatten().map(|bound| &bound.to);
            if others.any(|other| *other == here.to) || sent.clone().any(|other| *other == here.to)
            {
                let what = if matches!(here.to, FieldDestination::Param(_)) {
                    "parameter"
                } else {
                    "column"
                };
                problems.add_hint(
                    entry.place.clone(),
                    format!("a second field for the same {what}"),
                    "drop one of the two fields",
                );
            }
            let FieldDestination::Guard { column, .. } = &here.to else {
                continue;
            };
            let is_caller = !matches!(here.source, BoundSource::Value(_));
            if is_caller
                && sent.any(
                    |other| matches!(other, FieldDestination::Column(written) if written == column),
                )
            {
                let message = format!(
                    "a field writes '{column}', so that a record could be given to another caller"
                );
                problems.add_hint(entry.place.clone(), message, "drop one of the two fields");
            }
        }
    }

    fn params(&self) -> &'s [OperationParam] {
        match self.verb {
            ToolVerb::Call => self.operation.map_or(&[], |operation| &operation.params),
            _ => &self.collection.shape.capabilities.params,
        }
    }

    fn bind_param(
        &self,
        field: &FormField,
        problems: &mut FileProblems,
    ) -> Option<FieldBinding<'s>> {
        for (key, given) in [
            ("column", field.column.is_some()),
            ("match", field.comparison.is_some()),
        ] {
            if given {
                problems.add_hint(
                    format!("{}/{key}", field.place),
                    format!("a field that goes to a parameter has no '{key}'"),
                    "name the parameter with `param:`",
                );
                return None;
            }
        }
        let wanted = field.param.as_deref().unwrap_or(&field.name);
        let params = self.params();
        let Some(param) = params.iter().find(|param| param.name == wanted) else {
            let place = if field.param.is_some() {
                "param"
            } else {
                "name"
            };
            let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
            let hint = match name::nearest(wanted, names.iter().copied()) {
                Some(near) => format!("did you mean `param: {near}`?"),
                None if names.is_empty() => "there are no parameters".to_owned(),
                None => format!("parameters: {}", names.join(", ")),
            };
            let message = format!(
                "the field goes nowhere: there is no parameter {}",
                name::quoted(wanted)
            );
            problems.add_hint(format!("{}/{place}", field.place), message, hint);
            return None;
        };
        let slot = FieldSlot {
            what: "parameter",
            name: &param.name,
            kind: param.kind,
            fields: &[],
            items: param.items.as_deref(),
        };
        Some(FieldBinding {
            to: FieldDestination::Param(param.name.clone()),
            slot,
            form: form_of(
                field,
                param.items.as_ref().map_or(param.kind, |items| items.kind),
            ),
        })
    }

    /// Reports a field whose column is not there.
    fn refuse_unbound(&self, field: &FormField, wanted: &str, problems: &mut FileProblems) {
        let shape = &self.collection.shape;
        if field.column.is_some() {
            no_column(format!("{}/column", field.place), wanted, shape, problems);
            return;
        }
        let mut params = shape.capabilities.params.iter();
        let hint = match params.any(|param| param.name == wanted) {
            true => format!("for the source's parameter write `param: {wanted}`"),
            false => format!(
                "name its column with `column:`; {}",
                columns_hint(wanted, &shape.fields)
            ),
        };
        let message = format!(
            "the field goes nowhere: there is no column {}",
            name::quoted(wanted)
        );
        problems.add_hint(format!("{}/name", field.place), message, hint);
    }

    fn bind_column(
        &self,
        field: &FormField,
        problems: &mut FileProblems,
    ) -> Option<FieldBinding<'s>> {
        let shape = &self.collection.shape;
        let wanted = field.column.as_deref().unwrap_or(&field.name);
        let Some(column) = shape.field(wanted) else {
            self.refuse_unbound(field, wanted, problems);
            return None;
        };
        let is_key = shape.key.iter().any(|key| key == wanted);
        match self.verb {
            verb if verb.is_query() => {
                self.check_published(field, column, problems);
                self.condition(field, column, problems)
            }
            ToolVerb::Delete if !is_key => {
                let message = format!(
                    "a delete takes only the key, and {} is not part of it",
                    name::quoted(wanted)
                );
                problems.add_hint(
                    field.place.clone(),
                    message,
                    format!("key: {}", shape.key.join(", ")),
                );
                None
            }
            ToolVerb::Update | ToolVerb::Delete if is_key => {
                if field
                    .comparison
                    .as_deref()
                    .is_some_and(|comparison| comparison != "equals")
                {
                    let place = format!("{}/match", field.place);
                    problems.add_hint(
                        place,
                        "a key field is always matched by equals",
                        "drop `match`",
                    );
                }
                if field.nullable {
                    problems.add_hint(
                        format!("{}/nullable", field.place),
                        "a key cannot be null",
                        "drop `nullable`",
                    );
                }
                let to = FieldDestination::Condition {
                    column: wanted.to_owned(),
                    comparison: "equals".to_owned(),
                };
                Some(FieldBinding {
                    to,
                    slot: FieldSlot::column(column),
                    form: form_of(field, column.kind),
                })
            }
            _ if column.read_only => {
                let message = format!(
                    "column '{wanted}' is set only by the source, and no {} can write it",
                    self.verb.word()
                );
                problems.add_hint(field.place.clone(), message, "drop the field");
                None
            }
            _ => {
                if field.comparison.is_some() {
                    let message = "'match' has no meaning for a value that is written";
                    problems.add_hint(format!("{}/match", field.place), message, "drop `match`");
                }
                if field.nullable && !column.nullable {
                    let message = format!("the field may be null, but column '{wanted}' may not");
                    problems.add_hint(
                        format!("{}/nullable", field.place),
                        message,
                        "drop `nullable`",
                    );
                }
                let to = FieldDestination::Column(wanted.to_owned());
                Some(FieldBinding {
                    to,
                    slot: FieldSlot::column(column),
                    form: form_of(field, column.kind),
                })
            }
        }
    }

    /// Checks the condition of a lookup or list: the comparison must make sense for the type, and the source must do it
    /// exactly.
    pub(super) fn condition(
        &self,
        field: &FormField,
        column: &'s shape::ShapeField,
        problems: &mut FileProblems,
    ) -> Option<FieldBinding<'s>> {
        let comparison = field.comparison.as_deref().unwrap_or("equals");
        let place = match field.comparison.is_some() {
            true => format!("{}/match", field.place),
            false => field.place.clone(),
        };
        if !COMPARISONS.contains(&comparison) {
            let hint = match name::nearest(comparison, COMPARISONS.iter().copied()) {
                Some(near) => format!("did you mean '{near}'? matches: {}", COMPARISONS.join(", ")),
                None => format!("matches: {}", COMPARISONS.join(", ")),
            };
            problems.add_hint(
                place,
                format!("unknown match {}", name::quoted(comparison)),
                hint,
            );
            return None;
        }
        if !makes_sense(comparison, column.kind) {
            let message = format!(
                "'{comparison}' has no meaning for column '{}', which is {}",
                column.key,
                column.kind.word()
            );
            let usable = COMPARISONS
                .iter()
                .copied()
                .filter(|known| makes_sense(known, column.kind));
            let hint = format!("matches there: {}", usable.collect::<Vec<_>>().join(", "));
            problems.add_hint(place, message, hint);
            return None;
        }
        self.check_source_can(comparison, column, &place, problems);
        if field.nullable {
            match comparison {
                // The gateway asks for a null as is-empty.
                "equals" | "not-equals" => {
                    self.check_source_can("is-empty", column, &place, problems)
                }
                _ => problems.add_hint(
                    format!("{}/nullable", field.place),
                    format!("'{comparison}' cannot be asked with null"),
                    "drop `nullable`; a checkbox with `match: is-empty` finds empty values",
                ),
            }
        }
        let slot = match comparison {
            "is-empty" => FieldSlot {
                kind: ValueType::Boolean,
                fields: &[],
                items: None,
                ..FieldSlot::column(column)
            },
            "one-of" => FieldSlot::list_of(column),
            _ => FieldSlot::column(column),
        };
        if let Some((message, hint)) = misfit(comparison, &field.kind) {
            problems.add_hint(format!("{}/type", field.place), message, hint);
            return None;
        }
        self.check_several(field, comparison, column, problems);
        let to = FieldDestination::Condition {
            column: column.key.clone(),
            comparison: comparison.to_owned(),
        };
        Some(FieldBinding {
            to,
            slot,
            form: form_of(field, column.kind),
        })
    }

    /// Checks that the source can be asked for one of several texts, if a choice means several.
    fn check_several(
        &self,
        field: &FormField,
        comparison: &str,
        column: &shape::ShapeField,
        problems: &mut FileProblems,
    ) {
        if let Some(at) = field.kind.first_spelled()
            && comparison == "equals"
            && let can = self.collection.shape.capabilities.compares(&column.key)
            && !can.iter().any(|known| known == "one-of")
        {
            problems.add_hint(
                format!("{}/choices/{at}/also", field.place),
                format!(
                    "the source cannot do 'one-of' on column '{}', as several texts need",
                    column.key
                ),
                "drop `also`",
            );
        }
    }

    /// Refuses comparisons of columns that are not published: an agent that may compare can find out every value piece
    /// by piece.
    fn check_published(
        &self,
        field: &FormField,
        column: &shape::ShapeField,
        problems: &mut FileProblems,
    ) {
        let Some(comparison) = &field.comparison else {
            return;
        };
        let is_published = self.collection.published.contains(&column.key)
            || self.collection.shape.key.contains(&column.key);
        let would_tell = !matches!(comparison.as_str(), "equals" | "one-of")
            && makes_sense(comparison, column.kind);
        if !is_published && would_tell {
            let message = format!(
                "'{comparison}' on column '{}', which is not published, would give its values away",
                column.key
            );
            let place = format!("{}/match", field.place);
            problems.add_hint(
                place,
                message,
                "use equals or one-of, or publish the column",
            );
        }
    }

    fn check_source_can(
        &self,
        comparison: &str,
        column: &shape::ShapeField,
        place: &str,
        problems: &mut FileProblems,
    ) {
        let can = self.collection.shape.capabilities.compares(&column.key);
        if can.iter().any(|known| known == comparison) {
            return;
        }
        let usable: Vec<&str> = can
            .iter()
            .map(String::as_str)
            .filter(|known| makes_sense(known, column.kind))
            .collect();
        let hint = match usable.is_empty() {
            true => format!("the source cannot be filtered by '{}'", column.key),
            false => format!("it can do {} there", usable.join(", ")),
        };
        let message = format!(
            "the source cannot do '{comparison}' on column '{}'",
            column.key
        );
        problems.add_hint(place.to_owned(), message, hint);
    }

    /// Refuses a create that lacks a column, since it would fail at the source whatever the arguments are.
    fn check_needed(
        &self,
        form: &form::FormTool,
        bound: &[Option<FieldBinding<'s>>],
        fixed: &[&FieldDestination],
        problems: &mut FileProblems,
    ) {
        let shape = &self.collection.shape;
        let is_given = |column: &shape::ShapeField| {
            let mut given = bound
                .iter()
                .flatten()
                .map(|bound| &bound.to)
                .chain(fixed.iter().copied());
            given.any(|to| matches!(to, FieldDestination::Column(bound) if *bound == column.key))
        };
        let needed = shape
            .fields
            .iter()
            .filter(|field| shape.needs(field, &self.collection.adapter));
        let lacking: Vec<String> = needed
            .filter(|column| !is_given(column))
            .map(|column| name::quoted(&column.key))
            .collect();
        if lacking.is_empty() {
            return;
        }
        let (columns, have) = if lacking.len() == 1 {
            ("column", "has")
        } else {
            ("columns", "have")
        };
        let message = format!(
            "a create needs a value for the {columns} {}, which {have} no field",
            lacking.join(", ")
        );
        let hint = "add a field, required or with a `default:`; if the source fills it in, write \
                    `nullable: true` under the collection's `shape:`";
        problems.add_hint(format!("{}/fields", form.place), message, hint);
    }

    /// Checks that an update or delete reaches one record, by a required field for every key column, and that an update
    /// changes something.
    fn check_key(
        &self,
        form: &form::FormTool,
        bound: &[Option<FieldBinding<'s>>],
        fixed: &[&FieldDestination],
        problems: &mut FileProblems,
    ) {
        let names = |to: &FieldDestination, key: &str| matches!(to, FieldDestination::Condition { column, .. } if column == key);
        let key = &self.collection.shape.key;
        let place = format!("{}/fields", form.place);
        if key.is_empty() {
            let message = format!(
                "collection '{}' has no key, so records cannot be distinguished",
                self.collection.name
            );
            problems.add_hint(
                format!("{}/collection", form.place),
                message,
                "give the collection `key: [column]`",
            );
            return;
        }
        for column in key
            .iter()
            .filter(|column| !fixed.iter().any(|to| names(to, column)))
        {
            let mut fields = form.fields.iter().zip(bound);
            let found = fields
                .find(|(_, bound)| bound.as_ref().is_some_and(|bound| names(&bound.to, column)));
            match found {
                None => {
                    let hint = format!("add a required field for column '{column}'");
                    problems.add_hint(
                        place.clone(),
                        format!("the key column '{column}' has no field"),
                        hint,
                    );
                }
                Some((field, _)) if !field.required => {
                    problems.add_hint(
                        field.place.clone(),
                        "a key field must be required",
                        "add `required: true`",
                    );
                }
                Some(_) => {}
            }
        }
        let changes = bound
            .iter()
            .flatten()
            .any(|bound| matches!(bound.to, FieldDestination::Column(_)));
        if self.verb == ToolVerb::Update && !changes && bound.iter().all(Option::is_some) {
            problems.add_hint(
                place,
                "the update has nothing to change",
                "add a field other than the key",
            );
        }
    }
}

/// Checks that choices have further texts only in a condition that can find several.
fn check_spellings(
    field: &FormField,
    bound: Option<&FieldBinding<'_>>,
    problems: &mut FileProblems,
) {
    let (Some(at), Some(bound)) = (field.kind.first_spelled(), bound) else {
        return;
    };
    let FieldSlot { kind, items, .. } = bound.slot;
    let is_text = items.map_or(kind, |items| items.kind) == ValueType::String;
    let finds_several = matches!(
        &bound.to,
        FieldDestination::Condition { comparison, .. } if matches!(&**comparison, "equals" | "one-of")
    );
    if !is_text || !finds_several {
        problems.add_hint(
            format!("{}/choices/{at}/also", field.place),
            "'also' is for a condition by equals or one-of on a column of text",
            "drop it",
        );
    } else if field.nullable {
        problems.add_hint(
            format!("{}/nullable", field.place),
            "a condition whose choices have 'also' cannot be asked with null",
            "drop `nullable`; a checkbox with `match: is-empty` finds empty values",
        );
    }
}

/// Returns `true` if values of such a column can be compared so.
pub(crate) fn makes_sense(comparison: &str, kind: ValueType) -> bool {
    match comparison {
        "is-empty" => true,
        "equals" | "not-equals" | "one-of" => {
            !matches!(kind, ValueType::Json | ValueType::Record | ValueType::List)
        }
        "at-least" | "at-most" => {
            matches!(
                kind,
                ValueType::String
                    | ValueType::Integer
                    | ValueType::Decimal
                    | ValueType::Number
                    | ValueType::Date
                    | ValueType::Datetime
            )
        }
        "contains" | "contains-ci" | "starts-with" => kind == ValueType::String,
        _ => false,
    }
}

/// Returns why a comparison cannot be asked with a type of field, and what to write instead.
fn misfit(comparison: &str, kind: &FieldType) -> Option<(&'static str, &'static str)> {
    match (comparison, kind) {
        ("is-empty", FieldType::Checkbox)
        | ("one-of", FieldType::MultiChoice { .. } | FieldType::List { .. }) => None,
        ("is-empty", _) => Some((
            "'is-empty' is asked with a checkbox: true finds the empty ones, false the others",
            "use type: checkbox",
        )),
        ("one-of", _) => Some((
            "'one-of' is asked with a multi-choice or a list",
            "use type: multi-choice or list",
        )),
        (_, FieldType::MultiChoice { .. } | FieldType::List { .. }) => Some((
            "a condition is asked with one value, unless it is by 'one-of'",
            "write `match: one-of`, or use a type of one value",
        )),
        _ => None,
    }
}

fn form_of(field: &FormField, kind: ValueType) -> ValueForm {
    let inner = match &field.kind {
        FieldType::List { of, .. } => &of.kind,
        other => other,
    };
    match (inner, kind) {
        (FieldType::Number { .. }, ValueType::Decimal) => ValueForm::Decimal,
        (FieldType::Datetime, ValueType::Datetime | ValueType::String) => ValueForm::Utc,
        _ => ValueForm::AsSent,
    }
}
