//! One contract for many tables of one connection: what `weir serve shop.db` serves and `weir draft --all` prints.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    ContractDrafter, DraftInput, as_read,
    relations::{RelatedTable, TableReference},
    title,
    words::{self, RecordNoun},
    yaml::scalar,
};
use crate::shape::CollectionShape;

/// The tables of a database, or the sheets of a workbook.
pub struct DatabaseInput<'a> {
    /// The name of the contract.
    pub name: &'a str,
    /// The name of the database, as people wrote it.
    pub title: &'a str,
    /// In the order in which the contract has them; the title of each is its table's name.
    pub tables: &'a [DraftInput<'a>],
    /// The foreign keys between them, which become relations.
    pub references: &'a [TableReference],
    /// Whether records may be changed and deleted too, where the source can.
    pub changes: bool,
    /// The most tools of the contract: an agent reads them all.
    pub tools_max: usize,
}

/// The drafted contract over the tables of a database.
pub struct DatabaseDraft {
    /// The contract file, YAML; compiles unchanged with the shapes of the tables.
    pub contract: String,
    pub writes: bool,
    pub tables: Vec<TableDraft>,
    pub left_out: Vec<LeftOutTable>,
}

/// The part of the contract that comes from one table.
pub struct TableDraft {
    pub table: String,
    /// The name of its collection.
    pub collection: String,
    pub tools: Vec<String>,
    /// A sentence for each thing that was left out or guessed.
    pub notes: Vec<String>,
}

/// A table without anything in the contract.
pub struct LeftOutTable {
    pub table: String,
    pub why: String,
}

/// Drafts one contract. The error is for tables from which no tool can be made: each with the reason.
pub fn draft_database(input: &DatabaseInput<'_>) -> Result<DatabaseDraft, Vec<LeftOutTable>> {
    let read: Vec<(CollectionShape, Vec<String>)> = input
        .tables
        .iter()
        .map(|table| as_read(table.shape))
        .collect();
    let titles: Vec<&str> = input.tables.iter().map(|table| table.title).collect();
    let nouns = nouns(&titles);
    let drafter = |at: usize| {
        let (shape, notes) = &read[at];
        let mut drafter = ContractDrafter::new(&input.tables[at], shape);
        drafter.noun = nouns[at].clone();
        drafter.notes.extend(notes.iter().cloned());
        drafter.changes = input.changes;
        drafter
    };
    let (kept, left_out) = choose_tables(input, drafter);
    let related: Vec<RelatedTable<'_>> = kept
        .iter()
        .map(|&at| RelatedTable {
            title: titles[at],
            shape: &read[at].0,
            noun: &nouns[at],
        })
        .collect();
    let (mut collections, mut tools) = (String::new(), String::new());
    let (mut tables, mut writes) = (Vec::new(), false);
    for &at in &kept {
        let mut drafter = drafter(at);
        drafter.relate(input.references, &related);
        let own = drafter.tools();
        writes |= drafter.writes();
        drafter.collection_text(&mut collections);
        tools.push_str(&own);
        tables.push(TableDraft {
            table: titles[at].to_owned(),
            collection: drafter.collection(),
            tools: tool_names(&own),
            notes: drafter.notes,
        });
    }
    if tables.is_empty() {
        return Err(left_out);
    }
    let mut contract = String::new();
    let (name, title) = (
        scalar(input.name),
        title(input.title, &RecordNoun::from_name(input.title)),
    );
    let described = format!("Records of {title}: {}.", listed(&tables));
    let _ = writeln!(contract, "contract: {name}");
    let _ = writeln!(contract, "title: {}", scalar(&title));
    let _ = writeln!(contract, "description: {}", scalar(&described));
    let _ = write!(contract, "collections:\n{collections}tools:\n{tools}");
    Ok(DatabaseDraft {
        contract,
        writes,
        tables,
        left_out,
    })
}

/// Chooses the tables whose tools the contract has room for, in their order. The others are left out, each with the reason.
fn choose_tables<'d>(
    input: &DatabaseInput<'_>,
    drafter: impl Fn(usize) -> ContractDrafter<'d>,
) -> (Vec<usize>, Vec<LeftOutTable>) {
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    let mut count = 0;
    for (at, table) in input.tables.iter().enumerate() {
        let mut drafter = drafter(at);
        let more = tool_names(&drafter.tools()).len();
        let why = match more {
            0 => drafter.notes.join(" "),
            more if count + more > input.tools_max => format!(
                "the contract has {count} tools without it, and {} are the most",
                input.tools_max
            ),
            _ => {
                count += more;
                kept.push(at);
                continue;
            }
        };
        let table = table.title.to_owned();
        left_out.push(LeftOutTable { table, why });
    }
    (kept, left_out)
}

/// Names the first collections.
fn listed(tables: &[TableDraft]) -> String {
    const NAMED_MAX: usize = 20;
    let names = tables.iter().take(NAMED_MAX);
    let mut names: Vec<String> = names
        .map(|table| table.collection.replace('_', " "))
        .collect();
    if tables.len() > NAMED_MAX {
        names.push(format!("{} more", tables.len() - NAMED_MAX));
    }
    names.join(", ")
}

fn tool_names(tools: &str) -> Vec<String> {
    let names = tools
        .lines()
        .filter_map(|line| line.strip_prefix("  - tool: "));
    names.map(str::to_owned).collect()
}

/// Names the records of each table, no two alike. A table that is named like its records, and can be named without a
/// schema, gets a name first; others use more of their own name, and finally a number.
fn nouns(titles: &[&str]) -> Vec<RecordNoun> {
    let own: Vec<RecordNoun> = titles
        .iter()
        .map(|title| RecordNoun::from_name(table_of(title)))
        .collect();
    let mut order: Vec<usize> = (0..titles.len()).collect();
    order.sort_by_key(|&at| {
        let is_own = words::joined(&own[at].many) == titles[at].to_lowercase();
        (!is_own, titles[at].contains('.'))
    });
    let mut taken = BTreeSet::new();
    let mut nouns: Vec<Option<RecordNoun>> = titles.iter().map(|_| None).collect();
    for at in order {
        let whole = titles[at].replace('.', " ");
        let named = [
            own[at].clone(),
            RecordNoun::from_name(&whole),
            RecordNoun::of_records(&whole),
        ];
        let numbered = (2..).map(|number| RecordNoun::of_records(&format!("{whole} {number}")));
        let mut is_free = |noun: &RecordNoun| {
            let names = [&noun.one, &noun.many].map(|words| words::joined(words));
            let free = names.iter().all(|name| !taken.contains(name));
            if free {
                taken.extend(names);
            }
            free
        };
        nouns[at] = named.into_iter().chain(numbered).find(|noun| is_free(noun));
    }
    nouns
        .into_iter()
        .map(|noun| noun.expect("numbers do not end"))
        .collect()
}

/// Returns the name of a table without its schema.
fn table_of(title: &str) -> &str {
    title.rsplit_once('.').map_or(title, |(_, table)| table)
}
