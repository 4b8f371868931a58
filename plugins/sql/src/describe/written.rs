//! The shape of a statement that writes: one operation, whose answer is what RETURNING has.

use weir_plugin_sdk::shape::{Effect, Operation};
use weir_plugin_sdk::{Error, Field, Shape, Type};

use super::{SqlDescription, check_names, mysql, postgresql, prepared_as, sqlite};
use crate::dialect::SqlDialect;
use crate::settings::SqlSettings;
use crate::written::{self, OPERATION, RECORDS, WrittenStatement};

pub(super) fn describe(
    settings: &SqlSettings,
    statement: &WrittenStatement,
    dialect: SqlDialect,
) -> Result<Shape, Error> {
    if let (SqlDialect::Mysql, Some(table)) = (dialect, &statement.table) {
        mysql::check_written(settings, table)?;
    }
    let text = match dialect {
        SqlDialect::Mysql => statement.template.described()?.0,
        SqlDialect::Postgresql | SqlDialect::Sqlite => statement.template.text.clone(),
    };
    let options = r#"{"describe":true,"statement":true}"#;
    let columns = prepared_as(settings, text, options)?;
    check_names(&columns, "statement")?;
    let mut described = SqlDescription::default();
    match dialect {
        SqlDialect::Sqlite => {
            let table = statement.table.as_ref().map(|table| &*table.name);
            sqlite::add_returned(settings, table, columns, &mut described)?;
        }
        SqlDialect::Postgresql => postgresql::add_columns(settings, columns, &mut described)?,
        // It has no RETURNING.
        SqlDialect::Mysql => {}
    }
    let mut shape = Shape::new(settings.name());
    shape.left_out = described.left_out;
    shape.capabilities.read_only =
        Some("a statement is run by the verb `call`, and nothing else".to_owned());
    shape.capabilities.operations = vec![Operation {
        name: OPERATION.to_owned(),
        effect: Effect::Destructive,
        params: statement.template.params(),
        returns: returns(described.fields, statement.returns, settings.rows_max()),
    }];
    Ok(shape)
}

/// Returns what the operation answers: the record of a statement for one, else how many rows were changed and the records of
/// them.
fn returns(columns: Vec<Field>, has_records: bool, rows_max: u32) -> Vec<Field> {
    match (has_records, rows_max) {
        (false, _) => vec![written::count_field()],
        (true, 1) => columns,
        (true, _) => {
            let mut items = Field::new("", Type::Record);
            items.fields = columns;
            let mut records = Field::new(RECORDS, Type::List);
            records.items = Some(Box::new(items));
            vec![written::count_field(), records]
        }
    }
}
