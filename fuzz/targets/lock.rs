//! Any text as a lock file, and any change of a right one: it is refused at a place, or written again as it means.
#![no_main]

#[path = "../parts/edits.rs"]
mod edits;

use libfuzzer_sys::fuzz_target;
use weir_contracts::lock::ContractLock;

const RIGHT: &str = include_str!("../parts/desk.lock.json");

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&edits::edited(RIGHT.as_bytes(), bytes));
});

fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match ContractLock::read("desk.lock.json", text) {
        Ok(lock) => {
            let written = lock.to_text();
            let again =
                ContractLock::read("desk.lock.json", &written).expect("what is written can be read");
            assert!(again == lock && again.to_text() == written);
        }
        Err(problems) => assert!(
            !problems.is_empty() && problems.iter().all(|problem| !problem.message.is_empty())
        ),
    }
}
