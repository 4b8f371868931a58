//! Paths: the repository, the cache that `cargo xtask test` fills, the binaries next to this test.

use std::{
    env,
    path::{Path, PathBuf},
};

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository")
}

/// Returns the cache by the same rule as `xtask`, which hands it down in `WEIR_CACHE`.
pub fn cache() -> PathBuf {
    if let Some(cache) = env::var_os("WEIR_CACHE") {
        return PathBuf::from(cache);
    }
    match env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache).join("weir"),
        None => PathBuf::from(env::var_os("HOME").expect("HOME is set")).join(".cache/weir"),
    }
}

/// Returns a program of the workspace, built by the same cargo run as this test.
pub fn binary(name: &str) -> PathBuf {
    let test = env::current_exe().expect("this test has a path");
    let folder = test
        .ancestors()
        .nth(2)
        .expect("tests lie in TARGET/PROFILE/deps");
    present(
        folder.join(name),
        "cargo build --workspace --all-targets --locked",
    )
}

/// Returns the folder of the built adapters.
pub fn plugins() -> PathBuf {
    let folder = repository().join("plugins");
    for adapter in ["sheet", "sql", "rest"] {
        present(
            folder.join(format!("{adapter}.wasm")),
            "cargo xtask plugins",
        );
    }
    folder
}

/// Returns a test guest built by `cargo xtask plugins --guests`.
pub fn guest(name: &str) -> PathBuf {
    present(
        cache().join("test-guests").join(format!("{name}.wasm")),
        "cargo xtask test",
    )
}

/// Returns a test guest as a native library.
pub fn native(name: &str) -> PathBuf {
    let file = format!("{name}{}", env::consts::DLL_SUFFIX);
    present(cache().join("test-guests").join(file), "cargo xtask test")
}

/// Returns `path`, which must exist.
pub fn present(path: PathBuf, brought_by: &str) -> PathBuf {
    assert!(
        path.exists(),
        "{} is missing: run `{brought_by}`",
        path.display()
    );
    path
}
