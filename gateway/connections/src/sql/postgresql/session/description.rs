//! The description of a statement's rows, and the types that are not built in.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{Field, RowDescriptionBody};

use super::Row;
use crate::{ConnectionError, sql::rows::RowHeader};

const CHAR_OID: u32 = 18;
const BPCHAR_OID: u32 = 1042;
/// Types with a lower one are built in.
const FIRST_OWN_OID: u32 = 16384;

/// The columns of a statement's rows.
#[derive(Default)]
pub(in crate::sql::postgresql) struct RowDescription {
    pub(in crate::sql::postgresql) columns: Vec<PostgresqlColumn>,
    pub(super) header: OnceLock<Arc<RowHeader>>,
}

pub(in crate::sql::postgresql) struct PostgresqlColumn {
    pub(in crate::sql::postgresql) name: String,
    pub(in crate::sql::postgresql) type_oid: u32,
    pub(in crate::sql::postgresql) enumeration: bool,
}

impl PostgresqlColumn {
    /// Returns `true` for a type that is not built in.
    pub(super) fn is_own(&self) -> bool {
        self.type_oid >= FIRST_OWN_OID
    }
}

impl RowDescription {
    /// Returns the header, which is made with the first row.
    pub(in crate::sql::postgresql) fn header(&self) -> Result<Arc<RowHeader>, ConnectionError> {
        if let Some(header) = self.header.get() {
            return Ok(Arc::clone(header));
        }
        let header = RowHeader::new(
            self.columns
                .iter()
                .map(|column| column.name.clone())
                .collect(),
        )?;
        Ok(Arc::clone(self.header.get_or_init(|| Arc::new(header))))
    }
}

pub(in crate::sql::postgresql) struct PostgresqlType {
    pub(in crate::sql::postgresql) name: String,
    pub(super) enumeration: bool,
}

pub(super) fn described(body: &RowDescriptionBody) -> io::Result<Vec<PostgresqlColumn>> {
    let column = |field: Field<'_>| {
        Ok(PostgresqlColumn {
            name: field.name().to_owned(),
            type_oid: field.type_oid(),
            enumeration: false,
        })
    };
    body.fields().map(column).collect()
}

/// An array is named by its elements, and elements of a domain by its base type, through any other domains, unless that is an
/// array: an array of arrays is spelled like no other. `int2vector` does not count as an array, since it is spelled differently.
/// Built-in types have their short names (`int4`, not `integer`).
pub(super) const TYPES: &str = "SELECT kind.oid, named.oid, named.typname, named.oid::regtype, kind.typtype = 'e', \
    kind.is_array \
    FROM (SELECT oid, typtype, typelem, typtype = 'b' AND typoutput = 'pg_catalog.array_out'::regproc AS is_array \
        FROM pg_catalog.pg_type WHERE oid = ANY ($1::oid[])) AS kind \
    JOIN LATERAL (WITH RECURSIVE s AS (SELECT i.oid, i.typtype, i.typbasetype, i.typoutput, true AS is_first \
            FROM pg_catalog.pg_type AS i WHERE i.oid = CASE WHEN kind.is_array THEN kind.typelem ELSE kind.oid END \
            UNION ALL SELECT n.oid, n.typtype, n.typbasetype, n.typoutput, false \
            FROM s JOIN pg_catalog.pg_type AS n ON kind.is_array AND s.typtype = 'd' AND n.oid = s.typbasetype) \
        SELECT s.oid FROM s WHERE s.is_first OR (s.typtype <> 'd' AND s.typoutput <> 'pg_catalog.array_out'::regproc) \
        ORDER BY s.is_first LIMIT 1) AS base ON true \
    JOIN pg_catalog.pg_type AS named ON named.oid = base.oid";

pub(super) fn type_of(row: &Row) -> Option<(u32, PostgresqlType)> {
    let cells: Vec<&str> = row
        .ranges()
        .map(|range| Ok(range.and_then(|range| std::str::from_utf8(&row.buffer()[range]).ok())))
        .collect::<Vec<Option<&str>>>()
        .ok()?
        .into_iter()
        .collect::<Option<_>>()?;
    let &[oid, named, short, long, enumeration, array] = cells.as_slice() else {
        return None;
    };
    let named = match named.parse().ok()? {
        CHAR_OID => "\"char\"".to_owned(),
        BPCHAR_OID => "char".to_owned(),
        FIRST_OWN_OID.. => long.to_lowercase(),
        _ => short.to_owned(),
    };
    let enumeration = enumeration == "t";
    let name = match (enumeration, array) {
        (true, _) => "enum".to_owned(),
        (_, "t") => format!("{named}[]"),
        _ => named,
    };
    Some((oid.parse().ok()?, PostgresqlType { name, enumeration }))
}
