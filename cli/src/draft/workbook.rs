//! Selects the sheets of a workbook that are drafted: those that are named, or all with a header.

use std::collections::BTreeSet;

use serde_json::json;
use weir::{
    control::operations::{
        databases::{DatabaseRequest, WorkbookSheets, find_sheets},
        sources::{DataSource, SourceFailure},
    },
    serving::ServingGateway,
};
use weir_contracts::name::quoted;

/// The sheets of a file that are drafted; none if the file is a single table.
pub(super) struct ChosenSheets(WorkbookSheets);

/// Chooses the sheets of a file. Those that are named are taken as they are.
pub(super) async fn sheets(
    gateway: &ServingGateway,
    source: &DataSource,
    named: &[String],
) -> Result<ChosenSheets, SourceFailure> {
    if source.adapter != "sheet" {
        return Ok(ChosenSheets(WorkbookSheets::default()));
    }
    if named.is_empty() {
        return find_sheets(gateway, source).await.map(ChosenSheets);
    }
    let mut taken = BTreeSet::new();
    let table = |sheet: &String| {
        let mut settings = source.settings.clone();
        settings["sheet"] = json!(sheet);
        DataSource::new(sheet, source.adapter, settings)
    };
    Ok(ChosenSheets(WorkbookSheets {
        tables: named
            .iter()
            .filter(|sheet| taken.insert(*sheet))
            .map(table)
            .collect(),
        left_out: Vec::new(),
    }))
}

impl ChosenSheets {
    /// Returns what is needed to draft several sheets as one contract. If there is only one table, the error is its source,
    /// with a note for each sheet that is left out.
    pub(super) fn several(
        self,
        source: DataSource,
    ) -> Result<DatabaseRequest, Box<(DataSource, Vec<String>)>> {
        let WorkbookSheets {
            mut tables,
            left_out,
        } = self.0;
        if tables.len() > 1 {
            return Ok(DatabaseRequest {
                title: source.title,
                sources: tables,
                references: Vec::new(),
                changes: false,
                read_only: None,
                left_out,
            });
        }
        let settings = match tables.pop() {
            Some(table) => table.settings,
            None => return Err(Box::new((source, Vec::new()))),
        };
        let notes = left_out.iter().map(|sheet| {
            format!(
                "The sheet {} is left out: {}. `--sheet` names those that are to be drafted.",
                quoted(&sheet.table),
                sheet.why.trim_end_matches('.')
            )
        });
        let notes = notes.collect();
        Err(Box::new((DataSource { settings, ..source }, notes)))
    }
}
