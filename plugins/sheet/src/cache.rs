//! Tables this instance has read, by file and version. Bounded, for an instance has 64 MB for everything.

use std::cell::RefCell;
use std::rc::Rc;

use crate::settings::{SheetFormat, SheetSettings};
use crate::table::SheetTable;

/// The bound on all tables together; a larger file is streamed by every call.
pub(crate) const BYTES_MAX: usize = 24 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
struct TableKey {
    root: String,
    path: String,
    sheet: Option<String>,
    header_row: Option<u32>,
    format: SheetFormat,
}

struct CachedTable {
    key: TableKey,
    version: String,
    table: Rc<SheetTable>,
}

// The most recently used table is last.
thread_local! { static TABLES: RefCell<Vec<CachedTable>> = const { RefCell::new(Vec::new()) }; }

pub(crate) fn get(settings: &SheetSettings, version: &str) -> Option<Rc<SheetTable>> {
    TABLES.with_borrow_mut(|tables| {
        let key = key(settings);
        let at = tables.iter().position(|entry| entry.key == key)?;
        let entry = tables.remove(at);
        if entry.version != version {
            return None;
        }
        let table = entry.table.clone();
        tables.push(entry);
        Some(table)
    })
}

pub(crate) fn put(settings: &SheetSettings, version: &str, table: Rc<SheetTable>) {
    forget(settings);
    make_room(table.bytes());
    TABLES.with_borrow_mut(|tables| {
        tables.push(CachedTable {
            key: key(settings),
            version: version.to_owned(),
            table,
        });
    });
}

/// Drops a table that is about to be another.
pub(crate) fn forget(settings: &SheetSettings) {
    let key = key(settings);
    TABLES.with_borrow_mut(|tables| tables.retain(|entry| entry.key != key));
}

/// Drops the tables not used for longest until `bytes` more fit.
pub(crate) fn make_room(bytes: usize) {
    TABLES.with_borrow_mut(|tables| {
        let mut held = tables
            .iter()
            .map(|entry| entry.table.bytes())
            .sum::<usize>();
        while held + bytes > BYTES_MAX && !tables.is_empty() {
            held -= tables.remove(0).table.bytes();
        }
    });
}

fn key(settings: &SheetSettings) -> TableKey {
    TableKey {
        root: settings.connection.clone(),
        path: settings.path.clone(),
        sheet: settings.sheet.clone(),
        header_row: settings.header_row,
        format: settings.format,
    }
}
