//! PostgreSQL's catalogue.

use std::collections::HashMap;

use serde::Deserialize;
use weir_plugin_sdk::serde_json::json;
use weir_plugin_sdk::{Error, Field, Type};

use super::{COLUMNS_A_PASS, SqlDescription, ask, columns_of, find_values, no_table};
use crate::native;
use crate::settings::{SqlSettings, SqlSource, quoted};

/// Rows in which arrays are looked at.
const ROWS_LOOKED_AT: u32 = 200;
/// The levels of composites within composites that are described; anything deeper is plain JSON.
const COMPOSITES_MAX: usize = 4;

/// The tables that inherit from a hypertable of TimescaleDB are its parts, for which its key holds as that of a partitioned one.
const TABLE: &str = "SELECT c.oid::int8 AS oid, c.relkind::text AS kind, \
    c.relkind <> 'p' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class h ON h.oid = i.inhrelid \
    WHERE i.inhparent = c.oid AND h.relnamespace IS DISTINCT FROM to_regnamespace('_timescaledb_internal')::oid) AS inherited \
    FROM pg_catalog.pg_class c WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'f', 'v', 'm')";

/// The columns of a table, or the members of a composite. Domains appear as their base type, through any other domains, as they
/// do in an answer; so do those that are elements of an array, except for domains of arrays: an array of arrays is spelled like
/// no other. `int2vector` is among the arrays of the catalogue but is spelled differently, so that the spelling determines what
/// an array is. A time whose default is infinite is shown as null. `members` is the composite type of the column, or of the
/// elements of its array.
const COLUMNS: &str = "SELECT a.attname::text AS name, \
    CASE WHEN b.typoutput = 'pg_catalog.array_out'::regproc AND b.typelem <> 0 \
         THEN (CASE WHEN e.typnamespace = 'pg_catalog'::regnamespace THEN e.typname::text \
               ELSE format_type(e.oid, NULL) END) || '[]' \
         WHEN b.typtype = 'b' AND b.typnamespace = 'pg_catalog'::regnamespace THEN b.typname::text \
         ELSE format_type(b.oid, NULL) END AS native, \
    CASE WHEN b.typoutput = 'pg_catalog.array_out'::regproc AND b.typelem <> 0 THEN e.typrelid ELSE b.typrelid END::int8 AS members, \
    greatest(a.attndims::int4, r.dimensions) AS dimensions, \
    (a.attnotnull OR r.required) AND NOT (b.typcategory = 'D' \
        AND coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE '%infinity%', false)) AS required, \
    (a.attidentity <> '' OR a.atthasdef OR t.typdefault IS NOT NULL) AS generated, \
    (coalesce(to_jsonb(a) ->> 'attgenerated', '') <> '' OR a.attidentity = 'a') AS computed, \
    col_description(a.attrelid, a.attnum::int4) AS description \
    FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    JOIN LATERAL (WITH RECURSIVE s AS (SELECT t.oid, t.typtype, t.typbasetype, t.typnotnull, t.typndims \
            UNION ALL SELECT n.oid, n.typtype, n.typbasetype, n.typnotnull, n.typndims \
            FROM s JOIN pg_catalog.pg_type n ON s.typtype = 'd' AND n.oid = s.typbasetype) \
        SELECT max(s.oid::int8) FILTER (WHERE s.typtype <> 'd') AS base, bool_or(s.typnotnull) AS required, \
            max(s.typndims)::int4 AS dimensions FROM s) r ON true \
    JOIN pg_catalog.pg_type b ON b.oid = r.base::oid \
    LEFT JOIN LATERAL (WITH RECURSIVE s AS (SELECT i.oid, i.typtype, i.typbasetype, i.typoutput, true AS is_first \
            FROM pg_catalog.pg_type i WHERE i.oid = b.typelem \
            UNION ALL SELECT n.oid, n.typtype, n.typbasetype, n.typoutput, false \
            FROM s JOIN pg_catalog.pg_type n ON s.typtype = 'd' AND n.oid = s.typbasetype) \
        SELECT s.oid FROM s WHERE s.is_first OR (s.typtype <> 'd' AND s.typoutput <> 'pg_catalog.array_out'::regproc) \
        ORDER BY s.is_first LIMIT 1) p ON true \
    LEFT JOIN pg_catalog.pg_type e ON e.oid = p.oid \
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
    WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

/// The composite that an array of a query holds, by the array's name.
const MEMBERS: &str = "SELECT e.typrelid::int8 AS members FROM pg_catalog.pg_type b \
    JOIN pg_catalog.pg_type e ON e.oid = b.typelem WHERE b.oid = to_regtype($1)";

/// An index may include columns that are not part of the key; they follow those that are.
const KEY: &str = "SELECT a.attname::text AS name FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid \
    AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1]) \
    WHERE i.indrelid = $1::int8::oid AND i.indisprimary ORDER BY array_position(i.indkey::int2[], a.attnum)";

#[derive(Deserialize)]
struct PostgresTable {
    oid: i64,
    kind: String,
    /// Other tables inherit from it that are not its parts.
    inherited: bool,
}

#[derive(Default, Deserialize)]
struct PostgresColumnRow {
    name: String,
    native: String,
    /// 0 if there is no composite.
    members: i64,
    /// As declared, which PostgreSQL does not enforce: 0 if the table was made from a query.
    dimensions: usize,
    required: bool,
    generated: bool,
    computed: bool,
    description: Option<String>,
}

#[derive(Deserialize)]
struct KeyPart {
    name: String,
}

#[derive(Deserialize)]
struct CompositeType {
    members: i64,
}

pub(super) fn describe(settings: &SqlSettings) -> Result<SqlDescription, Error> {
    if let SqlSource::Query(query) = settings.source() {
        return describe_query(settings, query);
    }
    let tables: Vec<PostgresTable> = ask(settings, TABLE, vec![json!(settings.source().sql())])?;
    let table = tables
        .into_iter()
        .next()
        .ok_or_else(|| no_table(settings))?;
    let mut columns: Vec<PostgresColumnRow> = ask(settings, COLUMNS, vec![json!(table.oid)])?;
    let key: Vec<KeyPart> = ask(settings, KEY, vec![json!(table.oid)])?;
    find_dimensions(settings, &mut columns)?;
    // A view may be too much to read, and a foreign table far away.
    if matches!(table.kind.as_str(), "r" | "p") {
        find_infinite(settings, &mut columns)?;
    }
    let mut key: Vec<_> = key.into_iter().map(|part| part.name).collect();
    // A row whose key is shown as null cannot be named.
    if columns
        .iter()
        .any(|column| !column.required && key.contains(&column.name))
    {
        key.clear();
    }
    let mut notes = Vec::new();
    // A key holds for the rows of the table itself, and a list has the rows of the others too.
    let takes_given_key = table.inherited && !key.is_empty();
    if takes_given_key {
        notes.push(format!(
            "The key ({}) does not hold for the rows of the tables that inherit from this one, so that it is left out: say \
             `key:` if no two of all these rows have the same.",
            key.join(", ")
        ));
        key.clear();
    }
    let mut described = SqlDescription {
        key,
        takes_given_key,
        notes,
        read_only: matches!(table.kind.as_str(), "v" | "m").then_some("A view is read-only."),
        ..SqlDescription::default()
    };
    for column in columns {
        let field = field(settings, &column)?;
        described.add(&column.name, field, |field| {
            field.generated = column.generated;
            field.read_only = column.computed;
            field.description = column.description;
        });
    }
    Ok(described)
}

fn describe_query(settings: &SqlSettings, query: &str) -> Result<SqlDescription, Error> {
    let mut columns = prepared_columns(settings, columns_of(settings, query)?)?;
    find_dimensions(settings, &mut columns)?;
    let mut described = SqlDescription {
        read_only: Some("A query is read-only."),
        ..SqlDescription::default()
    };
    for column in columns {
        let field = field(settings, &column)?;
        described.add(&column.name, field, |_| ());
    }
    Ok(described)
}

/// Adds the fields of the columns that a statement answers.
pub(super) fn add_columns(
    settings: &SqlSettings,
    columns: Vec<(String, Option<String>)>,
    described: &mut SqlDescription,
) -> Result<(), Error> {
    for column in prepared_columns(settings, columns)? {
        let field = field(settings, &column)?;
        described.add(&column.name, field, |_| ());
    }
    Ok(())
}

fn prepared_columns(
    settings: &SqlSettings,
    prepared: Vec<(String, Option<String>)>,
) -> Result<Vec<PostgresColumnRow>, Error> {
    let mut columns = Vec::new();
    for (name, native) in prepared {
        let native = native.unwrap_or_default();
        let mut members = 0;
        if native::element(&native).is_some() {
            let found: Vec<CompositeType> = ask(settings, MEMBERS, vec![json!(native)])?;
            members = found.first().map_or(0, |found| found.members);
        }
        columns.push(PostgresColumnRow {
            name,
            native,
            members,
            ..PostgresColumnRow::default()
        });
    }
    Ok(columns)
}

/// Returns the type for a parameter that is compared with a column of this one. An index on an int8 serves no numeric.
pub(super) fn declared_type(native: &str) -> Option<Type> {
    match native {
        "int8" => Some(Type::Integer),
        _ => native::kind(native).filter(|kind| *kind != Type::Json),
    }
}

/// Looks at some rows, since an array of any number of dimensions fits a column of arrays.
fn find_dimensions(settings: &SqlSettings, columns: &mut [PostgresColumnRow]) -> Result<(), Error> {
    let mut arrays: Vec<_> = columns
        .iter_mut()
        .filter(|column| native::element(&column.native).is_some())
        .collect();
    for arrays in arrays.chunks_mut(COLUMNS_A_PASS) {
        let names: Vec<_> = arrays.iter().map(|column| quoted(&column.name)).collect();
        let found: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(at, name)| format!("max(array_ndims({name})) AS c{at}"))
            .collect();
        let text = format!(
            "SELECT {} FROM (SELECT {} FROM {} LIMIT {ROWS_LOOKED_AT}) AS looked_at",
            found.join(", "),
            names.join(", "),
            settings.source().sql()
        );
        let rows: Vec<HashMap<String, Option<usize>>> =
            match ask(settings, &text, settings.examples.clone()) {
                Ok(rows) => rows,
                // The account that describes the table may have fewer rights than the one that reads it.
                Err(error) if error.is("denied") => return Ok(()),
                Err(error) => return Err(error),
            };
        let Some(row) = rows.first() else {
            return Ok(());
        };
        for (at, column) in arrays.iter_mut().enumerate() {
            let found = row.get(&format!("c{at}")).copied().flatten().unwrap_or(0);
            column.dimensions = column.dimensions.max(found);
        }
    }
    Ok(())
}

/// Looks for values that are shown as null in columns that may not be null, which then may be.
fn find_infinite(settings: &SqlSettings, columns: &mut [PostgresColumnRow]) -> Result<(), Error> {
    let searched: Vec<(&str, String)> = columns
        .iter()
        .filter(|column| column.required)
        .filter_map(|column| {
            let odd = is_infinite(&quoted(&column.name), &column.native)?;
            Some((column.name.as_str(), odd))
        })
        .collect();
    let found = find_values(settings, &searched)?;
    for column in columns {
        column.required &= !found.contains(&column.name);
    }
    Ok(())
}

/// Returns the condition that a value is shown as null; `None` for types whose values are all shown.
fn is_infinite(name: &str, native: &str) -> Option<String> {
    Some(match native {
        // The difference of an infinity with itself is not a number.
        "float4" | "float8" | "numeric" => format!("NOT ({name} - {name} = 0)"),
        "date" | "timestamp" | "timestamptz" => format!(
            "NOT ({name} >= '0001-01-01 BC'::{native} AND {name} < '10000-01-01'::{native})"
        ),
        _ => return None,
    })
}

/// Returns the field of a column; `None` for columns of bytes, which have no place in the value table.
fn field(settings: &SqlSettings, column: &PostgresColumnRow) -> Result<Option<Field>, Error> {
    let Some((element, _)) = native::element(&column.native) else {
        let kind = native::kind(&column.native);
        return Ok(kind.map(|kind| {
            let mut field = Field::new(&column.name, kind).nullable(!column.required);
            field.native = Some(column.native.clone());
            field
        }));
    };
    let Some(kind) = native::kind(element) else {
        return Ok(None);
    };
    let mut field = Field::new(&column.name, Type::List).nullable(!column.required);
    field.native = Some(column.native.clone());
    if column.dimensions > 1 {
        field.kind = Type::Json;
        field.native = Some(format!("{element}{}", "[]".repeat(column.dimensions)));
        return Ok(Some(field));
    }
    let mut items = Field::new("", kind).nullable(true);
    if column.members != 0 {
        items.kind = Type::Record;
        items.fields = members(settings, column.members, 1)?;
    }
    field.items = Some(Box::new(items));
    Ok(Some(field))
}

/// Returns the members of a composite, all of which may be null.
fn members(settings: &SqlSettings, composite: i64, depth: usize) -> Result<Vec<Field>, Error> {
    let columns: Vec<PostgresColumnRow> = ask(settings, COLUMNS, vec![json!(composite)])?;
    let fields = columns.into_iter().map(|column| {
        let (element, is_array) = match native::element(&column.native) {
            Some((element, _)) => (element, true),
            None => (column.native.as_str(), false),
        };
        let mut field = Field::new("", native::kind(element).unwrap_or(Type::String));
        if column.members != 0 {
            field.kind = Type::Json;
            if depth < COMPOSITES_MAX {
                field.kind = Type::Record;
                field.fields = members(settings, column.members, depth + 1)?;
            }
        }
        field = field.nullable(true);
        if is_array {
            field = match column.dimensions {
                0 | 1 => Field {
                    kind: Type::List,
                    items: Some(Box::new(field)),
                    nullable: true,
                    ..Field::default()
                },
                _ => Field::new("", Type::Json).nullable(true),
            };
        }
        field.key = column.name;
        field.description = column.description;
        field.native = Some(column.native);
        Ok(field)
    });
    fields.collect()
}
