//! PostgreSQL's catalogue.

use serde::Deserialize;
use weir_plugin_sdk::serde_json::json;
use weir_plugin_sdk::{Error, Field, Type};

use super::{Described, ask, columns_of, no_table};
use crate::settings::{Settings, Source};

const TABLE: &str = "SELECT c.oid::int8 AS oid, c.relkind::text AS kind FROM pg_catalog.pg_class c \
    WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'f', 'v', 'm')";

/// Domains appear as the type they stand on, as they do in an answer. A time that is infinite unless it is given is one
/// that is shown as null.
const COLUMNS: &str = "SELECT a.attname::text AS name, \
    CASE WHEN b.typcategory = 'A' AND b.typelem <> 0 THEN e.typname || '[]' \
         WHEN b.typtype = 'b' AND b.typnamespace = 'pg_catalog'::regnamespace THEN b.typname::text \
         ELSE format_type(b.oid, NULL) END AS native, \
    (a.attnotnull OR t.typnotnull) AND NOT (b.typcategory = 'D' \
        AND coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE '%infinity%', false)) AS required, \
    (a.attidentity <> '' OR a.atthasdef OR t.typdefault IS NOT NULL) AS generated, \
    (coalesce(to_jsonb(a) ->> 'attgenerated', '') <> '' OR a.attidentity = 'a') AS computed, \
    col_description(a.attrelid, a.attnum::int4) AS description \
    FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    JOIN pg_catalog.pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END \
    LEFT JOIN pg_catalog.pg_type e ON e.oid = b.typelem \
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
    WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

/// An index may include columns that are not of the key; they stand behind those that are.
const KEY: &str = "SELECT a.attname::text AS name FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid \
    AND a.attnum = ANY((i.indkey::int2[])[0:i.indnkeyatts - 1]) \
    WHERE i.indrelid = $1::int8::oid AND i.indisprimary ORDER BY array_position(i.indkey::int2[], a.attnum)";

#[derive(Deserialize)]
struct Table {
    oid: i64,
    kind: String,
}

#[derive(Deserialize)]
struct Told {
    name: String,
    native: String,
    required: bool,
    generated: bool,
    computed: bool,
    description: Option<String>,
}

#[derive(Deserialize)]
struct KeyPart {
    name: String,
}

pub(super) fn describe(settings: &Settings) -> Result<Described, Error> {
    if let Source::Query(query) = settings.source() {
        let mut described = Described {
            read_only: Some("A query is read-only."),
            ..Described::default()
        };
        for (name, native) in columns_of(settings, query)? {
            described.add(
                &name,
                field(&name, native.unwrap_or_default(), false),
                |_| (),
            );
        }
        return Ok(described);
    }
    let tables: Vec<Table> = ask(settings, TABLE, vec![json!(settings.source().sql())])?;
    let table = tables
        .into_iter()
        .next()
        .ok_or_else(|| no_table(settings))?;
    let columns: Vec<Told> = ask(settings, COLUMNS, vec![json!(table.oid)])?;
    let key: Vec<KeyPart> = ask(settings, KEY, vec![json!(table.oid)])?;
    let mut described = Described {
        key: key.into_iter().map(|part| part.name).collect(),
        read_only: matches!(table.kind.as_str(), "v" | "m").then_some("A view is read-only."),
        ..Described::default()
    };
    for told in columns {
        described.add(
            &told.name,
            field(&told.name, told.native, told.required),
            |field| {
                field.generated = told.generated;
                field.read_only = told.computed;
                field.description = told.description;
            },
        );
    }
    Ok(described)
}

/// Returns the field of a column; `None` for columns of bytes, which have no place in the value table.
fn field(name: &str, native: String, required: bool) -> Option<Field> {
    let (kind, items) = match native.strip_suffix("[]") {
        Some(element) => (
            Type::List,
            Some(Box::new(Field::new("", kind(element)?).nullable(true))),
        ),
        None => (kind(&native)?, None),
    };
    let mut field = Field::new(name, kind).nullable(!required);
    field.native = Some(native);
    field.items = items;
    Some(field)
}

fn kind(native: &str) -> Option<Type> {
    Some(match native {
        "int2" | "int4" => Type::Integer,
        // The value may exceed 2^53; a contract that knows better says `integer`.
        "int8" | "numeric" => Type::Decimal,
        "float4" | "float8" => Type::Number,
        "bool" => Type::Boolean,
        "date" => Type::Date,
        "timestamp" | "timestamptz" => Type::Datetime,
        "json" | "jsonb" => Type::Json,
        "bytea" => return None,
        // Texts, enums, UUIDs, and whatever else has a spelling.
        _ => Type::String,
    })
}
