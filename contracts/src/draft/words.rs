//! Names of tools and fields out of names of files, tables and columns.

use crate::name;

/// Letters of other scripts that have a plain relative; everything else not ASCII becomes a gap.
pub(super) fn ascii(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            'ä' | 'à' | 'á' | 'â' | 'ã' | 'å' | 'Ä' | 'À' | 'Á' | 'Â' | 'Ã' | 'Å' => out.push('a'),
            'ö' | 'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'Ö' | 'Ò' | 'Ó' | 'Ô' | 'Õ' | 'Ø' => out.push('o'),
            'ü' | 'ù' | 'ú' | 'û' | 'Ü' | 'Ù' | 'Ú' | 'Û' => out.push('u'),
            'é' | 'è' | 'ê' | 'ë' | 'É' | 'È' | 'Ê' | 'Ë' => out.push('e'),
            'í' | 'ì' | 'î' | 'ï' | 'Í' | 'Ì' | 'Î' | 'Ï' => out.push('i'),
            'ç' | 'Ç' => out.push('c'),
            'ñ' | 'Ñ' => out.push('n'),
            'ß' => out.push_str("ss"),
            other if other.is_ascii() => out.push(other),
            _ => out.push(' '),
        }
    }
    out
}

/// `order-items` → `order_items`, short enough to stand behind `create_`.
pub(super) fn tool_part(name: &str) -> String {
    let made: String =
        name.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect();
    let made = limited(made.trim_matches('_'), 32);
    if made.is_empty() { "records".to_owned() } else { made }
}

/// A column's name as it is seen: nothing invisible, and every gap one space.
pub(super) fn visible(name: &str) -> String {
    let spaced = name.chars().filter(|next| next.is_whitespace() || !name::is_invisible(*next)).collect::<String>();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `Part No` → `Part_No`, in any script, and short enough for what filters put around it.
pub(super) fn field(name: &str) -> String {
    let made: String = visible(name).replace(' ', "_").chars().take(50).collect();
    if made.is_empty() { "column".to_owned() } else { made }
}

/// At most so many characters, and no gap at the end.
pub(super) fn limited(name: &str, most: usize) -> String {
    let cut: String = name.chars().take(most).collect();
    cut.trim_end_matches(['_', '-']).to_owned()
}

/// A good guess for English plurals; what is none gets `_record`, so that the names of two tools differ.
pub(super) fn singular(many: &str) -> String {
    const SAME: &[&str] = &["status", "address", "news", "series", "species", "bus", "gas", "analysis"];
    let last = many.rsplit('_').next().unwrap_or(many);
    let stem = &many[..many.len() - last.len()];
    let one = match last {
        "people" => "person".to_owned(),
        "children" => "child".to_owned(),
        "men" => "man".to_owned(),
        "women" => "woman".to_owned(),
        "movies" => "movie".to_owned(),
        _ if SAME.contains(&last) => format!("{last}_record"),
        _ if last.len() > 4 && last.ends_with("ies") => format!("{}y", &last[..last.len() - 3]),
        _ if ["sses", "shes", "ches", "xes", "zes"].iter().any(|end| last.ends_with(end)) => {
            last[..last.len() - 2].to_owned()
        }
        _ if last.len() > 2 && last.ends_with('s') && !last.ends_with("ss") && !last.ends_with("us") => {
            last[..last.len() - 1].to_owned()
        }
        _ => format!("{last}_record"),
    };
    format!("{stem}{one}")
}

pub(super) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        for (column, name) in [
            ("Part No", "Part_No"),
            (" In \t\n Stock\u{a0}", "In_Stock"),
            ("商品\u{3000}番号", "商品_番号"),
            ("a\u{200b}b", "ab"),
            ("\u{3000}", "column"),
        ] {
            assert_eq!(field(column), name);
        }
        assert_eq!(field(&"ü ".repeat(128)).chars().count(), 50);
    }

    #[test]
    fn one_of_many() {
        for (many, one) in [
            ("airports", "airport"),
            ("order_items", "order_item"),
            ("categories", "category"),
            ("addresses", "address"),
            ("boxes", "box"),
            ("people", "person"),
            ("movies", "movie"),
            ("status", "status_record"),
            ("weather", "weather_record"),
            ("houses", "house"),
        ] {
            assert_eq!(singular(many), one);
        }
    }
}
