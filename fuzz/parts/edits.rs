//! Changes of a text, read from the bytes of one input.

/// Applies changes. Each five bytes are one change: where (two), how, with which byte, and how often.
pub(crate) fn edited(text: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for change in changes.chunks_exact(5).take(64) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % (text.len() + 1);
        let (byte, count) = (change[3], usize::from(change[4]));
        match change[2] % 6 {
            0 if at < text.len() => text[at] = byte,
            1 if at < text.len() => text[at] ^= 1 << (byte % 8),
            2 => text.insert(at, byte),
            3 => drop(text.drain(at..(at + count).min(text.len()))),
            4 => {
                let copy = text[at..(at + count).min(text.len())].to_vec();
                let to = usize::from(byte) * 31 % (text.len() + 1);
                drop(text.splice(to..to, copy));
            }
            _ => text.truncate(at),
        }
    }
    text
}
