//! The mistakes an author makes, one a file, each with the compiler's message beside it.
//!
//! `TRYBUILD=overwrite cargo test` writes the files anew; read the diff.

use std::{fs, path::Path};

#[test]
fn each_mistake_is_told_at_its_place_and_says_what_to_write() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/mistakes/*.rs");
}

/// An author wrote a function: what they read is about it, and not about what this crate is made of.
#[test]
fn no_mistake_speaks_of_what_its_author_never_wrote() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let (mut sources, mut answer) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        sources += usize::from(path.extension().is_some_and(|extension| extension == "rs"));
        if path
            .extension()
            .is_none_or(|extension| extension != "stderr")
        {
            continue;
        }
        answer += 1;
        let text = fs::read_to_string(&path).unwrap();
        let errors = text
            .lines()
            .filter(|line| line.starts_with("error"))
            .count();
        assert_eq!(errors, 1, "{}: one mistake is one error", path.display());
        let source = fs::read_to_string(path.with_extension("rs")).unwrap();
        for word in [
            "Deserialize",
            "Serialize",
            "ToolSchema",
            "ToolOutput",
            "ToolFailure",
            "MapKey",
            "__weir",
            "__WEIR",
        ] {
            assert!(
                !text.contains(word) || source.contains(word),
                "{} names `{word}`:\n{text}",
                path.display()
            );
        }
        // An attribute of serde's is named where the author wrote it.
        assert!(
            !text.contains("serde") || source.contains("serde"),
            "{} names serde:\n{text}",
            path.display()
        );
    }
    assert_eq!(sources, answer, "each mistake has its file");
    assert!(answer >= 40, "{answer} mistakes");
}
