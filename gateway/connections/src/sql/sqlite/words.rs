//! Functions and collations of our own: what the `sql` adapter needs for exact semantics, and SQLite's own searches in
//! texts, which compare everywhere in one step that cannot be interrupted, for minutes where a value has megabytes.

use std::{collections::HashSet, sync::Arc};

use rusqlite::{
    Connection, Error, Result,
    ffi::{SQLITE_INTERRUPT, SQLITE_TOOBIG},
    functions::{Context, FunctionFlags},
    types::ValueRef,
};

use super::{
    super::{RECORDS_MAX_BYTES, datetime, decimal},
    guard::SqliteGuard,
};

pub(super) fn teach(connection: &Connection, guard: &Arc<SqliteGuard>) -> Result<()> {
    exact(connection)?;
    searches(connection, guard)
}

/// Adds exact comparisons: decimals by value, points in time by moment.
fn exact(connection: &Connection) -> Result<()> {
    connection.create_collation(c"weir_decimal", decimal::compare)?;
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function(c"weir_datetime", 2, flags, |context| {
        let ValueRef::Text(text) = context.get_raw(0) else {
            return Ok(None);
        };
        // The zone is looked up once a statement, not once a row.
        let zone = context.get_or_create_aux(1, |name| {
            let name = name.as_str().unwrap_or_default();
            datetime::zone(name).ok_or_else(|| format!("the time zone {name} is unknown"))
        })?;
        Ok(std::str::from_utf8(text)
            .ok()
            .and_then(|text| datetime::canonical(text, &zone)))
    })
}

/// Defines `instr`, `replace` and the trims by a set, with SQLite's results, in time that grows with their arguments'
/// length.
fn searches(connection: &Connection, guard: &Arc<SqliteGuard>) -> Result<()> {
    // Innocuous as the built-in ones are: views and indexes of the database may use them.
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    let clock = guard.clone();
    connection.create_scalar_function(c"instr", 2, flags, move |context| {
        if let (ValueRef::Blob(whole), ValueRef::Blob(part)) =
            (context.get_raw(0), context.get_raw(1))
        {
            // Each byte as a separate character.
            let [whole, part] = [whole, part]
                .map(|bytes| bytes.iter().copied().map(char::from).collect::<String>());
            return found(&clock, &whole, &part).map(Some);
        }
        match (text(context, 0), text(context, 1)) {
            (Some(whole), Some(part)) => found(&clock, &whole, &part).map(Some),
            _ => Ok(None),
        }
    })?;
    let clock = guard.clone();
    connection.create_scalar_function(c"replace", 3, flags, move |context| {
        let (Some(whole), Some(part), Some(other)) =
            (text(context, 0), text(context, 1), text(context, 2))
        else {
            return Ok(None);
        };
        if part.is_empty() {
            return Ok(Some(whole));
        }
        spend(&clock, whole.len())?;
        let times = whole.matches(&*part).count();
        // The length is checked first: the result may be far larger than its arguments.
        let length =
            (whole.len() - times * part.len()).saturating_add(times.saturating_mul(other.len()));
        if length > RECORDS_MAX_BYTES {
            return Err(failure(SQLITE_TOOBIG));
        }
        Ok(Some(whole.replace(&*part, &other)))
    })?;
    for (name, at_start, at_end) in [
        (c"trim", true, true),
        (c"ltrim", true, false),
        (c"rtrim", false, true),
    ] {
        let clock = guard.clone();
        connection.create_scalar_function(name, 2, flags, move |context| {
            let (Some(whole), Some(set)) = (text(context, 0), text(context, 1)) else {
                return Ok(None);
            };
            spend(&clock, whole.len() + set.len())?;
            let set: HashSet<char> = set.chars().collect();
            let mut rest = &*whole;
            if at_start {
                rest = rest.trim_start_matches(|character| set.contains(&character));
            }
            if at_end {
                rest = rest.trim_end_matches(|character| set.contains(&character));
            }
            Ok(Some(rest.to_owned()))
        })?;
    }
    Ok(())
}

/// Returns the place of the first character of `part`, counted from 1; 0 if it is not there.
fn found(clock: &SqliteGuard, whole: &str, part: &str) -> Result<i64> {
    spend(clock, whole.len() + part.len())?;
    let before = whole.find(part).map(|at| &whole[..at]);
    Ok(before.map_or(0, |before| before.chars().count() as i64 + 1))
}

/// Returns a value as SQLite reads it where it expects a text; `None` means NULL.
fn text(context: &Context<'_>, at: usize) -> Option<String> {
    match context.get_raw(at) {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(real(number)),
    }
}

/// Writes a real as SQLite does (`%!.15g`): 15 digits, always with a point.
fn real(number: f64) -> String {
    if !number.is_finite() {
        return if number > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:.14e}");
    let (digits, exponent) = scientific.split_once('e').expect("was written with one");
    let exponent: i32 = exponent.parse().expect("is a number");
    let trimmed = |digits: &str| {
        let digits = digits.trim_end_matches('0');
        if digits.ends_with('.') {
            format!("{digits}0")
        } else {
            digits.to_owned()
        }
    };
    match exponent {
        -4..15 => trimmed(&format!("{number:.*}", (14 - exponent).max(1) as usize)),
        _ => format!(
            "{}e{}{:02}",
            trimmed(digits),
            if exponent < 0 { '-' } else { '+' },
            exponent.abs()
        ),
    }
}

fn spend(clock: &SqliteGuard, bytes: usize) -> Result<()> {
    if clock.spend(bytes) {
        Ok(())
    } else {
        Err(failure(SQLITE_INTERRUPT))
    }
}

fn failure(code: i32) -> Error {
    Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
}
