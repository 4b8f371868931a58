//! A changed cell is spelled as it was before: `TRUE`, `12,00` and `2026-02-28 14:30` are read as `true`, `12` and a time
//! in UTC, and another value in their place looks like them.

use weir_plugin_sdk::value::NumberText;
use weir_plugin_sdk::{Field, Value, Zone};

/// Returns the text for a value whose column would write `text`, in the spelling of the cell that it replaces, as far as
/// that reads back as the value.
pub(crate) fn spelled_as(
    text: String,
    before: &str,
    value: &Value<'_>,
    field: &Field,
    zone: &Zone,
) -> String {
    let reads_back = |text: &str| {
        let read = Value::from_text(text, field, zone);
        read == *value && read.to_json() == value.to_json()
    };
    if before.is_empty() || text.is_empty() {
        return text;
    }
    // The cell has this value already.
    if reads_back(before) {
        return before.to_owned();
    }
    let spelled = match value {
        Value::Boolean(value) => boolean(*value, before),
        Value::Datetime(value) if field.format.is_none() => value
            .to_local(zone)
            .and_then(|local| datetime(&local, before)),
        Value::Number(_) | Value::Decimal(_) | Value::Integer(_) if has_unit(field) => {
            with_unit(&text, before, field)
        }
        Value::Number(_) | Value::Decimal(_) => with_places(&text, before, field),
        _ => None,
    };
    spelled.filter(|text| reads_back(text)).unwrap_or(text)
}

fn boolean(value: bool, before: &str) -> Option<String> {
    let word = value.to_string();
    Some(match before {
        "0" | "1" => u8::from(value).to_string(),
        _ if before.bytes().all(|byte| byte.is_ascii_uppercase()) => word.to_ascii_uppercase(),
        _ if before.starts_with(|first: char| first.is_ascii_uppercase()) => {
            word[..1].to_ascii_uppercase() + &word[1..]
        }
        _ => return None,
    })
}

/// Writes a time without a zone, as `2026-02-28 14:30` is one.
fn datetime(local: &str, before: &str) -> Option<String> {
    let separator = before.get(10..11)?;
    let has_zone = before.ends_with(['Z', 'z']) || before.get(11..)?.contains(['+', '-']);
    if has_zone {
        return None;
    }
    let (date, clock) = local.split_once('T')?;
    let clock = match before.len() {
        16 => clock.strip_suffix(":00").unwrap_or(clock),
        _ => clock,
    };
    Some(format!("{date}{separator}{clock}"))
}

fn has_unit(field: &Field) -> bool {
    let format = field.format.as_deref();
    format.is_some_and(|format| format.unit.is_some())
}

/// Writes the unit with the blanks that the cell had, or none, and the number with its places.
fn with_unit(text: &str, before: &str, field: &Field) -> Option<String> {
    let (number, cell) = (NumberText::cut(text)?, NumberText::cut(before)?);
    let digits = with_places(number.digits, cell.digits, field);
    let digits = digits.as_deref().unwrap_or(number.digits);
    let minus = if number.is_negative { "-" } else { "" };
    let has_minus_inside = cell.is_negative && !before.starts_with('-');
    Some(match has_minus_inside {
        true => format!("{}{minus}{digits}{}", cell.before, cell.behind),
        false => format!("{minus}{}{digits}{}", cell.before, cell.behind),
    })
}

/// Writes as many places as the cell had: `0,50` if it was `12,00`.
fn with_places(text: &str, before: &str, field: &Field) -> Option<String> {
    let format = field.format.as_deref();
    let mark = match format {
        Some(format) => match (&format.decimal, format.grouping.as_deref()) {
            (Some(mark), _) => mark.as_str(),
            (None, Some(".")) => ",",
            (None, _) => ".",
        },
        None => ".",
    };
    let (_, wanted) = before.rsplit_once(mark)?;
    if wanted.is_empty() || !wanted.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let places = text.rsplit_once(mark).map_or("", |(_, places)| places);
    let missing = wanted.len().checked_sub(places.len())?;
    let mark = if places.is_empty() { mark } else { "" };
    let is_plain = text.bytes().all(|byte| !byte.is_ascii_alphabetic());
    is_plain.then(|| format!("{text}{mark}{}", "0".repeat(missing)))
}

#[cfg(test)]
mod tests {
    use weir_plugin_sdk::Type;
    use weir_plugin_sdk::shape::TextFormat;

    use super::*;

    #[test]
    fn a_value_looks_like_the_one_that_it_replaces() {
        let vienna = Zone::parse("Europe/Vienna").expect("known");
        let euro = TextFormat {
            decimal: Some(",".to_owned()),
            grouping: Some(".".to_owned()),
            ..TextFormat::default()
        };
        let plain = TextFormat::default;
        let unit = |unit: &str, format: TextFormat| TextFormat {
            unit: Some(unit.to_owned()),
            ..format
        };
        let dollar = TextFormat {
            grouping: Some(",".to_owned()),
            ..unit("$#", plain())
        };
        for (kind, format, before, value, expected) in [
            (Type::Boolean, plain(), "TRUE", "false", "FALSE"),
            (Type::Boolean, plain(), "False", "true", "True"),
            (Type::Boolean, plain(), "1", "false", "0"),
            (Type::Boolean, plain(), "true", "false", "false"),
            (Type::Number, euro.clone(), "12,00", "0.5", "0,50"),
            (Type::Number, euro.clone(), "1234,50", "1234.5", "1234,50"),
            (Type::Number, euro.clone(), "1.234,50", "7000", "7.000,00"),
            (Type::Number, euro.clone(), "12,5", "0.125", "0,125"),
            (Type::Number, euro.clone(), "1.234", "2.5", "2,5"),
            (
                Type::Number,
                unit("# €", euro.clone()),
                "12,90 €",
                "7000.5",
                "7.000,50 €",
            ),
            (
                Type::Number,
                unit("# €", euro.clone()),
                "12,90€",
                "7",
                "7,00€",
            ),
            (
                Type::Number,
                unit("# €", euro.clone()),
                "12,90",
                "7",
                "7,00",
            ),
            (Type::Number, unit("# €", euro), "", "7.5", "7,5 €"),
            (Type::Number, dollar.clone(), "$1,200.00", "-5", "-$5.00"),
            (
                Type::Number,
                dollar.clone(),
                "$-3.50",
                "-1234",
                "$-1,234.00",
            ),
            (Type::Number, dollar, "-$3.50", "4", "$4.00"),
            (Type::Integer, unit("# kg", plain()), "7kg", "8", "8kg"),
            (Type::Integer, unit("#%", plain()), "7%", "8", "8%"),
            (Type::Number, plain(), "12.00", "7", "7.00"),
            (Type::Number, plain(), "12", "7", "7"),
            (
                Type::Datetime,
                plain(),
                "2026-02-28 14:30",
                "2026-03-01T08:00:00Z",
                "2026-03-01 09:00",
            ),
            (
                Type::Datetime,
                plain(),
                "2026-02-28 14:30:15",
                "2026-03-01T08:00:00Z",
                "2026-03-01 09:00:00",
            ),
            (
                Type::Datetime,
                plain(),
                "2026-02-28 14:30",
                "2026-03-01T08:00:07Z",
                "2026-03-01 09:00:07",
            ),
            (
                Type::Datetime,
                plain(),
                "2026-02-28T14:30:00Z",
                "2026-03-01T08:00:00Z",
                "2026-03-01T08:00:00Z",
            ),
            (Type::String, plain(), "TRUE", "false", "false"),
        ] {
            let mut field = Field::new("column", kind);
            let value = Value::from_text(value, &field, &vienna).into_owned();
            field.format = (format != plain()).then(|| Box::new(format));
            let text = value.to_text(&field, &vienna).expect("a text");
            let spelled = spelled_as(text, before, &value, &field, &vienna);
            assert_eq!(spelled, expected, "{value:?} over {before}");
        }
    }
}
