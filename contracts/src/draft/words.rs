//! Names of tools and fields, and the words of sentences, out of names of files, tables and columns.

use deunicode::deunicode;
use pluralizer::pluralize;

use crate::{
    name,
    shape::{ColumnReading, ValueType},
};

/// Longer names leave no room for what filters put around them.
const FIELD_LENGTH: usize = 50;
/// Short enough to follow `create_`.
const TOOL_PART_LENGTH: usize = 32;

/// The name of a source's records, taken from the source's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordNoun {
    /// `order item`
    pub one: String,
    /// `order items`
    pub many: String,
}

impl RecordNoun {
    /// Reads `Order-Items 2026-02` as order item, order items. Digits, dates and words such as `export` are about the file
    /// and not about its records. A name that is not an English plural, or not clearly English, becomes `… records`.
    pub(super) fn from_name(name: &str) -> Self {
        let ascii = deunicode(name);
        let mut words: Vec<String> = name::words(&ascii);
        words.retain(|word| !is_of_the_file(word));
        // Next to a year, months are the period of a file; on its own, `march` may be anything.
        if words.len() > 1 && ascii.bytes().any(|byte| byte.is_ascii_digit()) {
            let without: Vec<String> = words
                .iter()
                .filter(|word| !MONTHS.contains(&word.as_str()))
                .cloned()
                .collect();
            words = if without.is_empty() { words } else { without };
        }
        while words.len() > 1
            && words
                .last()
                .is_some_and(|last| FILE_WORDS.contains(&last.as_str()))
        {
            words.pop();
        }
        let joined = limited(&words.join(" "), TOOL_PART_LENGTH);
        let Some(last) = joined.rsplit(' ').next().filter(|last| !last.is_empty()) else {
            return Self {
                one: "record".to_owned(),
                many: "records".to_owned(),
            };
        };
        let before = &joined[..joined.len() - last.len()];
        let (one, many) = (singular(last), pluralize(last, 2, false));
        let (one, many) = if NO_NOUNS.contains(&last) {
            (format!("{last} record"), format!("{last} records"))
        } else if one != last {
            (one, last.to_owned())
        } else if many != last
            && name.is_ascii()
            && !MASS.contains(&last)
            && !FOREIGN.iter().any(|end| last.ends_with(end))
        {
            (one, many)
        } else {
            (format!("{last} record"), format!("{last} records"))
        };
        Self {
            one: format!("{before}{one}"),
            many: format!("{before}{many}"),
        }
    }

    /// Takes every word and number of a name, for a table that another one is too much like.
    pub(super) fn of_records(name: &str) -> Self {
        // Long names are distinguished by their end.
        let words = name::words(&deunicode(name)).join(" ");
        let long = words.chars().count().saturating_sub(TOOL_PART_LENGTH);
        let kept: String = words.chars().skip(long).collect();
        let kept = kept.trim();
        Self {
            one: format!("{kept} record"),
            many: format!("{kept} records"),
        }
    }

    pub(super) fn with_article(&self) -> String {
        let article = if self.one.starts_with(['a', 'e', 'i', 'o', 'u']) {
            "an"
        } else {
            "a"
        };
        format!("{article} {}", self.one)
    }
}

/// Joins words as a part of a tool's or a collection's name.
pub(super) fn joined(words: &str) -> String {
    words.replace(' ', "_")
}

const FILE_WORDS: &[&str] = &[
    "list", "table", "sheet", "export", "data", "file", "dump", "extract", "copy", "csv", "xlsx",
];
const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sep",
    "sept",
    "oct",
    "nov",
    "dec",
];
/// Nouns without a plural.
const MASS: &[&str] = &[
    "weather",
    "data",
    "inventory",
    "stock",
    "staff",
    "traffic",
    "feedback",
    "history",
    "revenue",
    "all",
    "misc",
];
/// Words that change their number without being nouns: the singular of `their` is not a name for a record.
const NO_NOUNS: &[&str] = &[
    "i",
    "we",
    "me",
    "us",
    "he",
    "she",
    "they",
    "them",
    "my",
    "our",
    "his",
    "her",
    "its",
    "their",
    "myself",
    "ourselves",
    "yourself",
    "yourselves",
    "himself",
    "herself",
    "itself",
    "themself",
    "themselves",
    "this",
    "these",
    "that",
    "those",
    "is",
    "are",
    "was",
    "were",
    "has",
    "have",
];
/// The endings of plurals in other languages to which English would add an s: Rechnungen, clienti.
const FOREIGN: &[&str] = &["en", "i", "ia"];
/// Singulars that end like plurals.
const SINGULAR: &[&str] = &[
    "status", "address", "news", "series", "species", "bus", "gas", "analysis", "gps", "process",
];

fn singular(last: &str) -> String {
    match SINGULAR.contains(&last) || last.ends_with("ss") {
        true => last.to_owned(),
        false => pluralize(last, 1, false),
    }
}

/// Returns `true` for `2026`, `20260131`, `q1`, `fy26`, `v2`, and for anything that is not a word.
fn is_of_the_file(word: &str) -> bool {
    let digits = word.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    let letters = &word[..word.len() - digits.len()];
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    !word.bytes().any(|byte| byte.is_ascii_alphabetic())
        || (is_number
            && matches!(
                letters,
                "q" | "h" | "fy" | "kw" | "w" | "wk" | "v" | "rev" | "t"
            ))
}

/// Makes a name of plain letters and digits, with one `-` in every gap.
pub(super) fn dashed(name: &str) -> String {
    let mut made = String::new();
    for character in deunicode(name).chars() {
        match character.is_ascii_alphanumeric() {
            true => made.push(character.to_ascii_lowercase()),
            false if character == '\'' || made.is_empty() || made.ends_with('-') => {}
            false => made.push('-'),
        }
    }
    made
}

/// Returns a column's name as it is seen: without invisible characters, and with one space in every gap.
pub(super) fn visible(name: &str) -> String {
    let spaced = name
        .chars()
        .filter(|next| next.is_whitespace() || !name::is_invisible(*next))
        .collect::<String>();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a column's name as people say it: `customer_name` and `customerName` become `customer name`.
pub(super) fn spoken(name: &str) -> String {
    let words = name::words(name).join(" ");
    match words.is_empty() || !name.is_ascii() {
        true => visible(name),
        false => words,
    }
}

/// Makes the name of a property: `Amount (EUR)` becomes `amount_eur`. Names of any script become what every model's
/// interface takes.
pub(super) fn field(column: &str) -> String {
    let plain = deunicode(&visible(column)).replace(['\'', '`'], "");
    let made = limited(&name::words(&plain).join("_"), FIELD_LENGTH);
    let made: String = made
        .chars()
        .filter(|next| next.is_ascii_alphanumeric() || *next == '_')
        .collect();
    match made.as_str() {
        "" => "column".to_owned(),
        // Clients that make a function of a tool take no word of Python, and no digit first.
        word if name::is_python_name(word) => made,
        digits if digits.starts_with(|first: char| first.is_ascii_digit()) => {
            format!("column_{digits}")
        }
        word => format!("{word}_value"),
    }
}

/// Cuts a name to at most this many characters, with no gap at the end.
pub(super) fn limited(name: &str, most: usize) -> String {
    let cut: String = name.chars().take(most).collect();
    cut.trim_end_matches(['_', '-', ' ']).to_owned()
}

pub(super) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Describes how values are written, using an unambiguous one: `dates such as 31/12/2026 (day, month, year)`.
pub(super) fn reading_words(reading: &ColumnReading) -> String {
    let format = &reading.format;
    let unit = |number: String| match &format.unit {
        Some(unit) => unit.replace('#', &number),
        None => number,
    };
    match (&format.date, &format.datetime) {
        (Some(pattern), _) => format!("dates such as {}", last_day(pattern)),
        (_, Some(pattern)) => format!("times such as {}", last_day(pattern)),
        _ if reading.kind == ValueType::String && format.keys().next().is_none() => {
            "text as it is written".to_owned()
        }
        _ => {
            let grouping = format.grouping.as_deref().unwrap_or_default();
            let decimal = format.decimal.as_deref();
            let decimal = decimal.unwrap_or(if grouping == "." { "," } else { "." });
            let fraction = match reading.kind {
                ValueType::Integer => String::new(),
                _ => format!("{decimal}5"),
            };
            let number = unit(format!("1{grouping}234{fraction}"));
            format!("numbers such as {number} (one thousand and more)")
        }
    }
}

/// Writes the last day of a year by a pattern of strftime, with the order of its parts.
fn last_day(pattern: &str) -> String {
    const PARTS: [(char, &str, &str); 7] = [
        ('d', "31", "day"),
        ('m', "12", "month"),
        ('Y', "2026", "year"),
        ('y', "26", "year"),
        ('H', "14", ""),
        ('M', "30", ""),
        ('S', "05", ""),
    ];
    let (mut text, mut order, mut rest) = (String::new(), Vec::new(), pattern);
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let letter = rest[at + 1..].trim_start_matches('-');
        let part = PARTS.iter().find(|(known, ..)| letter.starts_with(*known));
        let Some((_, written, name)) = part else {
            break;
        };
        text.push_str(written);
        order.extend((!name.is_empty()).then_some(*name));
        rest = &letter[1..];
    }
    text.push_str(rest);
    format!("{text} ({})", order.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::ColumnFormat;

    #[test]
    fn fields() {
        for (column, name) in [
            ("Amount (EUR)", "amount_eur"),
            ("Paid?", "paid"),
            ("Part No", "part_no"),
            ("partNo", "part_no"),
            ("Customer's name", "customers_name"),
            (" In \t\n Stock\u{a0}", "in_stock"),
            ("Größe", "grosse"),
            ("Сумма", "summa"),
            ("商品\u{3000}番号", "shang_pin_fan_hao"),
            ("a\u{200b}b", "ab"),
            ("\u{3000}", "column"),
            ("%", "column"),
            ("already_plain", "already_plain"),
            ("no", "no"),
            ("from", "from_value"),
            ("Class", "class_value"),
            ("2024", "column_2024"),
        ] {
            assert_eq!(field(column), name, "{column}");
        }
        let long = field(&"ü ".repeat(128));
        assert_eq!(
            long.chars().count(),
            49,
            "cut at 50, and the mark at its end is left out"
        );
        assert_eq!(name::check_field(&long), Ok(()));
    }

    #[test]
    fn readings_are_told_apart_by_a_value() {
        let written = |format: ColumnFormat| {
            reading_words(&ColumnReading {
                kind: ValueType::String,
                format,
                null_words: Vec::new(),
            })
        };
        let date = |pattern: &str| {
            written(ColumnFormat {
                date: Some(pattern.to_owned()),
                ..ColumnFormat::default()
            })
        };
        assert_eq!(
            date("%-d.%-m.%y"),
            "dates such as 31.12.26 (day, month, year)"
        );
        assert_eq!(
            date("%m/%d/%Y"),
            "dates such as 12/31/2026 (month, day, year)"
        );
        let time = written(ColumnFormat {
            datetime: Some("%Y-%d-%m %H:%M:%S".to_owned()),
            ..ColumnFormat::default()
        });
        assert_eq!(time, "times such as 2026-31-12 14:30:05 (year, day, month)");
        let number = |grouping: Option<&str>, unit: Option<&str>| {
            written(ColumnFormat {
                grouping: grouping.map(str::to_owned),
                unit: unit.map(str::to_owned),
                ..ColumnFormat::default()
            })
        };
        assert_eq!(
            number(Some("."), None),
            "numbers such as 1.234,5 (one thousand and more)"
        );
        let unmarked = |kind: ValueType| {
            reading_words(&ColumnReading {
                kind,
                format: ColumnFormat::default(),
                null_words: Vec::new(),
            })
        };
        assert_eq!(unmarked(ValueType::String), "text as it is written");
        assert_eq!(
            unmarked(ValueType::Integer),
            "numbers such as 1234 (one thousand and more)"
        );
        assert_eq!(
            number(None, Some("# €")),
            "numbers such as 1234.5 € (one thousand and more)"
        );
    }

    #[test]
    fn nouns() {
        for (name, one, many) in [
            ("airports", "airport", "airports"),
            ("invoices 2026", "invoice", "invoices"),
            ("invoices-2026-01-31", "invoice", "invoices"),
            ("Invoices_January_2026 (1)", "invoice", "invoices"),
            ("sales q3 fy26", "sale", "sales"),
            ("order_items", "order item", "order items"),
            ("OrderItems", "order item", "order items"),
            ("categories", "category", "categories"),
            ("addresses", "address", "addresses"),
            ("boxes", "box", "boxes"),
            ("people", "person", "people"),
            ("movies", "movie", "movies"),
            ("houses", "house", "houses"),
            ("customer", "customer", "customers"),
            ("customers export", "customer", "customers"),
            ("price list", "price", "prices"),
            ("status", "status", "statuses"),
            ("news", "news record", "news records"),
            ("my data (1)", "my record", "my records"),
            ("their data", "their record", "their records"),
            ("this", "this record", "this records"),
            ("he", "he record", "he records"),
            ("what is", "what is record", "what is records"),
            ("my orders", "my order", "my orders"),
            (
                "seattle-weather",
                "seattle weather record",
                "seattle weather records",
            ),
            ("Rechnungen 2026", "rechnungen record", "rechnungen records"),
            ("Счета", "scheta record", "scheta records"),
            ("2026", "record", "records"),
            ("", "record", "records"),
        ] {
            assert_eq!(
                RecordNoun::from_name(name),
                RecordNoun {
                    one: one.to_owned(),
                    many: many.to_owned()
                },
                "{name}"
            );
        }
    }
}
