//! Any change of a sealed cursor, and any text in its place: nothing opens but what was sealed, for whom it was sealed.
#![no_main]

#[path = "../parts/edits.rs"]
mod edits;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use weir::cursor::{CursorScope, CursorCipher};

const PLAIN: &str = r#"["2026-01-31",1001]"#;

struct Sealed {
    cursors: CursorCipher,
    text: String,
}

fn sealed() -> &'static Sealed {
    static SEALED: OnceLock<Sealed> = OnceLock::new();
    SEALED.get_or_init(|| {
        let cursors = CursorCipher::ephemeral().expect("random numbers");
        let text = cursors.seal(&bound("ann"), PLAIN).expect("sealed");
        Sealed { cursors, text }
    })
}

fn bound(agent: &str) -> CursorScope {
    CursorScope::new("list_tickets", 1, agent, "{}")
}

fuzz_target!(|bytes: &[u8]| {
    let Sealed { cursors, text } = sealed();
    let changed = edits::edited(text.as_bytes(), bytes);
    if let Ok(changed) = String::from_utf8(changed) {
        let opened = cursors.open_sealed(&bound("ann"), &changed);
        assert_eq!(
            opened.as_deref(),
            (changed == *text).then_some(PLAIN),
            "{changed}"
        );
        assert_eq!(cursors.open_sealed(&bound("bob"), &changed), None);
    }
    if let Ok(given) = std::str::from_utf8(bytes) {
        assert_eq!(cursors.open_sealed(&bound("ann"), given), None);
    }
});
