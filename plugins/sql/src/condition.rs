//! Conditions as SQL, with the meaning `weir_plugin_sdk::matches` gives them.

use weir_plugin_sdk::matches::{self, Matcher};
use weir_plugin_sdk::serde_json;
use weir_plugin_sdk::{Comparison, Condition, Error, Shape, Value, Zone};

use crate::SqlAdapter;
use crate::column::SqlColumn;
use crate::dialect::SqlDialect;
use crate::sqlite;
use crate::statement::StatementBuilder;

/// Returns ` WHERE …` for conditions that all must hold, or nothing.
pub(crate) fn all(
    collection: &SqlAdapter,
    conditions: &[Condition],
    builder: &mut StatementBuilder,
) -> Result<String, Error> {
    let SqlAdapter { shape, zone, .. } = collection;
    let mut all = of_records(shape, builder.dialect);
    for given in conditions {
        let column = SqlColumn::find(shape, builder.dialect, &given.column)?;
        all.push(condition(given, &column, zone, builder)?);
    }
    Ok(match all.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", all.join(" AND ")),
    })
}

/// Returns the conditions for rows that are records.
pub(crate) fn of_records(shape: &Shape, dialect: SqlDialect) -> Vec<String> {
    match dialect {
        SqlDialect::Sqlite => sqlite::has_key(shape),
        SqlDialect::Postgresql | SqlDialect::Mysql => Vec::new(),
    }
}

/// Returns the condition that a column which may not be null has a value that a record can contain. Values that a change of the
/// contract makes readable are not left out but refused: a null of a column that was altered, and a time that only the zone puts
/// outside the calendar. MySQL takes a date of zeros for a null, but not its text.
pub(crate) fn has_value(column: &SqlColumn<'_>, dialect: SqlDialect) -> Option<String> {
    if column.field.nullable {
        return None;
    }
    match dialect {
        SqlDialect::Sqlite => sqlite::has_value(column.field),
        SqlDialect::Postgresql | SqlDialect::Mysql => column
            .finite_in_utc()
            .map(|finite| format!("(CAST({} AS CHAR) IS NULL OR {finite})", column.name())),
    }
}

pub(crate) fn condition(
    condition: &Condition,
    column: &SqlColumn<'_>,
    zone: &Zone,
    builder: &mut StatementBuilder,
) -> Result<String, Error> {
    // Refuses what has no meaning, in the words every adapter uses.
    Matcher::new(condition, column.field, zone)?;
    let operand = || matches::operand(&condition.value, column.field, zone);
    let text = || condition.value.as_str().unwrap_or_default();
    Ok(match condition.comparison {
        Comparison::Equals => equals(column, &operand()?, builder),
        Comparison::NotEquals => compared(column, "<>", &operand()?, builder),
        Comparison::AtLeast => compared(column, ">=", &operand()?, builder),
        Comparison::AtMost => compared(column, "<=", &operand()?, builder),
        Comparison::OneOf => {
            let values = condition
                .value
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let any = values
                .iter()
                .map(|value| {
                    Ok(equals(
                        column,
                        &matches::operand(value, column.field, zone)?,
                        builder,
                    ))
                })
                .collect::<Result<Vec<_>, Error>>()?;
            any_of(&any)
        }
        Comparison::Contains => {
            partial(
                column,
                builder,
                text(),
                |whole, part, dialect| match dialect {
                    SqlDialect::Sqlite => format!("instr({whole}, {part}) > 0"),
                    SqlDialect::Postgresql => format!("strpos({whole}, {part}) > 0"),
                    SqlDialect::Mysql => format!("LOCATE({part}, {whole}) > 0"),
                },
            )
        }
        // ASCII letters only, as everywhere: SQLite's lower() and PostgreSQL's under "C" do just that.
        Comparison::ContainsCi => {
            partial(
                column,
                builder,
                text(),
                |whole, part, dialect| match dialect {
                    SqlDialect::Sqlite => format!("instr(lower({whole}), lower({part})) > 0"),
                    SqlDialect::Postgresql => {
                        format!("strpos(lower({whole}), lower({part} COLLATE \"C\")) > 0")
                    }
                    SqlDialect::Mysql => format!("LOCATE({}, {}) > 0", lower(part), lower(whole)),
                },
            )
        }
        Comparison::StartsWith => {
            partial(
                column,
                builder,
                text(),
                |whole, part, dialect| match dialect {
                    SqlDialect::Sqlite => format!("substr({whole}, 1, length({part})) = {part}"),
                    SqlDialect::Postgresql => format!("starts_with({whole}, {part})"),
                    SqlDialect::Mysql => format!("LEFT({whole}, LENGTH({part})) = {part}"),
                },
            )
        }
        Comparison::IsEmpty => {
            let empty = empty(column, builder);
            if condition.value == serde_json::Value::Bool(true) {
                empty
            } else {
                format!("NOT ({empty})")
            }
        }
    })
}

const NEVER: &str = "1 = 0";

/// Joins conditions in halves, since SQLite bounds how deep an expression is, and a chain is as deep as it is long.
fn any_of(conditions: &[String]) -> String {
    match conditions {
        [] => NEVER.to_owned(),
        [one] => one.clone(),
        _ => {
            let (left, right) = conditions.split_at(conditions.len() / 2);
            format!("({} OR {})", any_of(left), any_of(right))
        }
    }
}

/// Returns a condition that is `=`, or that never holds.
pub(crate) fn equals(
    column: &SqlColumn<'_>,
    value: &Value<'_>,
    builder: &mut StatementBuilder,
) -> String {
    column
        .equals(value, builder)
        .unwrap_or_else(|| NEVER.to_owned())
}

fn compared(
    column: &SqlColumn<'_>,
    operator: &str,
    value: &Value<'_>,
    builder: &mut StatementBuilder,
) -> String {
    if value.is_null() {
        return NEVER.to_owned();
    }
    match column.compares(operator, value, builder) {
        Some(condition) => condition,
        // A text with a NUL, which PostgreSQL cannot hold: everything differs from it.
        None if operator == "<>" => format!("{} IS NOT NULL", column.compared(builder)),
        None => NEVER.to_owned(),
    }
}

fn partial(
    column: &SqlColumn<'_>,
    builder: &mut StatementBuilder,
    part: &str,
    sql: impl Fn(&str, &str, SqlDialect) -> String,
) -> String {
    if builder.dialect == SqlDialect::Postgresql && part.contains('\0') {
        return NEVER.to_owned();
    }
    let whole = column.compared(builder);
    let mut place = builder.bind(part);
    if builder.dialect == SqlDialect::Mysql {
        place = format!("CAST({place} AS BINARY)");
    }
    sql(&whole, &place, builder.dialect)
}

/// Returns bytes of MySQL with small ASCII letters. This character set has one byte a letter, and no other letters of two
/// kinds.
fn lower(bytes: &str) -> String {
    format!("CAST(LOWER(CONVERT({bytes} USING tis620)) AS BINARY)")
}

fn empty(column: &SqlColumn<'_>, builder: &mut StatementBuilder) -> String {
    let compared = column.compared(builder);
    if column.is_text() {
        format!("({compared} IS NULL OR {compared} = '')")
    } else {
        format!("{compared} IS NULL")
    }
}
