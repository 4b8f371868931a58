//! The targets of `cargo xtask fuzz` over their corpora, in which each input that once failed is kept: they compile, and
//! what was found stays mended.

use std::{fs, path::Path};

/// Replaces the macro of the same name: a function that takes one input, instead of a program that looks for some.
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:block) => {
        pub(crate) fn run($bytes: &[u8]) {
            $body
        }
    };
    (|$text:ident: &str| $body:block) => {
        pub(crate) fn run(bytes: &[u8]) {
            let Ok($text) = std::str::from_utf8(bytes) else {
                return;
            };
            $body
        }
    };
}

macro_rules! targets {
    ($($name:ident: $path:literal),* $(,)?) => {
        $(
            #[path = $path]
            #[allow(unused_attributes, unused_imports, clippy::duplicate_mod, reason = "a target is a program of its own")]
            mod $name;
        )*

        #[test]
        fn every_kept_input_passes() {
            let targets: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::run)),*];
            let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the gateway lies in the repository");
            let programs = fs::read_dir(repository.join("fuzz/targets")).expect("the targets").count();
            assert_eq!(programs, targets.len(), "a target is not named here");
            for (name, run) in targets {
                let corpus = repository.join("fuzz/corpus").join(name);
                let inputs: Vec<_> = fs::read_dir(&corpus).expect("a corpus").map(|entry| entry.expect("an input").path()).collect();
                assert!(inputs.len() > 2, "{name} has no corpus");
                for input in inputs {
                    println!("{}", input.display());
                    run(&fs::read(&input).expect("an input"));
                }
            }
        }
    };
}

targets! {
    audit: "../../fuzz/targets/audit.rs",
    contract: "../../fuzz/targets/contract.rs",
    cursor: "../../fuzz/targets/cursor.rs",
    diff: "../../fuzz/targets/diff.rs",
    envelope: "../../fuzz/targets/envelope.rs",
    headers: "../../fuzz/targets/headers.rs",
    lock: "../../fuzz/targets/lock.rs",
    meta: "../../fuzz/targets/meta.rs",
    validate: "../../fuzz/targets/validate.rs",
    values: "../../fuzz/targets/values.rs",
}
