//! W3C trace context, as far as it is taken over.

/// Returns the text if it is a well-formed `traceparent` (version, trace id, parent id, flags).
pub fn traceparent(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == b'0');
    // A later version may append members behind another dash; what is kept is bounded all the same.
    let length = match bytes.len() {
        55 => true,
        56..=256 => bytes[55] == b'-' && bytes[..2] != *b"00",
        _ => false,
    };
    let well_formed = length
        && bytes.iter().all(u8::is_ascii_graphic)
        && (bytes[2], bytes[35], bytes[52]) == (b'-', b'-', b'-')
        && [&bytes[..2], &bytes[3..35], &bytes[36..52], &bytes[53..55]]
            .into_iter()
            .all(hex)
        && bytes[..2] != *b"ff"
        && !zero(&bytes[3..35])
        && !zero(&bytes[36..52]);
    well_formed.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::traceparent;

    #[test]
    fn only_well_formed_text_is_taken() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(traceparent(good), Some(good));
        let later = format!("cc{}-what-the-future-will-bring", &good[2..]);
        assert_eq!(traceparent(&later), Some(later.as_str()));
        for bad in [
            String::new(),
            good[..54].to_owned(),
            format!("{good}-x"),
            format!("ff{}", &good[2..]),
            good.to_uppercase(),
            good.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            good.replace("b7ad6b7169203331", &"0".repeat(16)),
            good.replace('-', "_"),
            format!("cc{}-\n", &good[2..]),
            format!("cc{}-{}", &good[2..], "x".repeat(300)),
            "é".repeat(28),
        ] {
            assert_eq!(traceparent(&bad), None, "{bad}");
        }
    }
}
