//! Text that others wrote, as it may go to a terminal.

/// Replaces the characters that control a terminal. Spaces are kept.
pub(crate) fn printable(text: &str) -> String {
    text.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}

/// Does the same to white space as well.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if is_plain(c) { c } else { '\u{fffd}' })
        .collect()
}

/// Escapes the characters that JSON leaves unescaped: control characters beyond ASCII, and those that change the
/// direction of the line.
pub(crate) fn plain_json(json: &str) -> String {
    json.chars()
        .map(|c| {
            if c == ' ' || is_plain(c) {
                c.to_string()
            } else {
                format!("\\u{{{:x}}}", c as u32)
            }
        })
        .collect()
}

fn is_plain(c: char) -> bool {
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let tag = matches!(c, '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !c.is_whitespace() && !turns && !tag
}
