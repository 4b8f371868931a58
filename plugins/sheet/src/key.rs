//! Decides whether a column is named like one that distinguishes records. Cells of a small file that happen to differ
//! are no evidence: amounts and names differ too.

/// Words that a key's name is or ends with, the most telling first.
const WORDS: &[&[&str]] = &[
    &["id", "uuid", "guid", "key", "identifier"],
    &[
        "no", "nr", "num", "number", "nummer", "sku", "isbn", "ean", "gtin", "iata", "icao",
    ],
    &["code", "ref", "reference", "slug"],
    &["email", "mail"],
];
/// `phone_number` is the number of something else.
const NOT_BEFORE: &[&str] = &[
    "phone",
    "telephone",
    "tel",
    "mobile",
    "fax",
    "house",
    "street",
    "room",
    "post",
    "postal",
    "zip",
    "currency",
];

/// Returns how much a column's name is like a key's, the least first; `None` for a column that is not named like one.
pub(crate) fn rank(name: &str) -> Option<usize> {
    let words = words(name);
    if words.len() == 1 && words[0] == "id" {
        return Some(0);
    }
    let (last, before) = words.split_last()?;
    if before
        .iter()
        .any(|word| NOT_BEFORE.contains(&word.as_str()))
    {
        return None;
    }
    WORDS
        .iter()
        .position(|alike| alike.contains(&last.as_str()))
        .map(|at| at + 1)
}

/// Splits a name into words: `InvoiceNo`, `invoice_no` and `Invoice No.` are invoice, no.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    // `E-Mail` is one word.
    for character in name
        .replace("E-Mail", "Email")
        .replace("e-mail", "email")
        .chars()
    {
        let starts = character.is_uppercase() && last.is_lowercase();
        if character.is_alphanumeric() {
            if starts || !last.is_alphanumeric() || words.is_empty() {
                words.push(String::new());
            }
            words
                .last_mut()
                .expect("one was just pushed")
                .extend(character.to_lowercase());
        }
        last = character;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_by_their_names() {
        for name in [
            "id",
            "ID",
            "Id",
            "invoice_no",
            "Invoice No.",
            "InvoiceNo",
            "customerId",
            "Order ID",
            "SKU",
            "uuid",
            "E-Mail",
            "email",
            "Artikel-Nr.",
            "part number",
            "Kunden Nummer",
            "code",
            "key",
            "isbn",
        ] {
            assert!(rank(name).is_some(), "{name}");
        }
        for name in [
            "Amount (EUR)",
            "name",
            "Paid?",
            "paid",
            "grid",
            "Phone number",
            "zip code",
            "date",
            "",
            "№",
            "Notes",
            "valid",
            "keyboard",
            "number of seats",
        ] {
            assert_eq!(rank(name), None, "{name}");
        }
        assert!(rank("id") < rank("invoice_id") && rank("invoice_no") < rank("email"));
    }
}
