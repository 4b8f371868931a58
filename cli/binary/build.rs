//! Puts the adapters that are built in `plugins/` and the console that is built in `console/dist/` into the program, and the sources that `weir plugin new` begins with. A crate of its own, so that another build of an
//! adapter links the program again and compiles nothing of the gateway.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest as _, Sha256};

const ADAPTERS: [&str; 3] = ["rest", "sheet", "sql"];
/// Files and folders of the repository that the author of a plugin needs.
const SOURCES: [&str; 14] = [
    "Cargo.toml",
    "Cargo.lock",
    "plugin-sdk/Cargo.toml",
    "plugin-sdk/src",
    "plugin-sdk/wit",
    "plugin-sdk/macros/Cargo.toml",
    "plugin-sdk/macros/src",
    "plugin-sdk/js",
    "plugin-sdk/python",
    "plugin-sdk/c",
    "plugin-sdk/templates",
    "docs/matches.md",
    "docs/tools-from-code.md",
    "docs/values.md",
];

fn main() {
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let plugins = Path::new(&manifest).join("../../plugins");
    let mut list = String::from("&[\n");
    let mut missing = false;
    println!("cargo::rerun-if-changed=build.rs");
    for name in ADAPTERS {
        let file = plugins.join(format!("{name}.wasm"));
        match file.canonicalize() {
            Ok(file) => {
                println!("cargo::rerun-if-changed={}", file.display());
                let digest =
                    hex::encode(Sha256::digest(fs::read(&file).expect("it was just found")));
                list.push_str(&format!(
                    "    ({name:?}, {digest:?}, include_bytes!({file:?})),\n"
                ));
            }
            Err(_) => missing = true,
        }
    }
    // A file that is not there cannot be watched; the folder can, and is left alone once all are there.
    if missing {
        println!("cargo::rerun-if-changed={}", plugins.display());
    }
    list.push(']');
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("adapters.rs"), list)
        .expect("the build folder can be written to");
    fs::write(
        Path::new(&out).join("sources.rs"),
        sources(&Path::new(&manifest).join("../..")),
    )
    .expect("as above");
    fs::write(
        Path::new(&out).join("console.rs"),
        console(
            &Path::new(&manifest).join("../../console/dist"),
            &Path::new(&out).join("console"),
        ),
    )
    .expect("as above");
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=WEIR_BUILT_COMMIT={commit}");
    }
}

/// Returns the commit of the sources: `WEIR_COMMIT` where they are without their repository, as in a container, or the one
/// that git has checked out.
fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=WEIR_COMMIT");
    if let Some(commit) = env::var("WEIR_COMMIT").ok().filter(|it| !it.is_empty()) {
        return Some(commit);
    }
    // The log of `HEAD` grows with each commit and each checkout.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

/// Returns what git prints; `None` if it fails. The folder may belong to another user, as in CI.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*"])
        .args(words)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let printed = String::from_utf8(output.stdout).ok()?;
    Some(printed.trim().to_owned())
}

/// Returns the files of the console, each beside its compressed form; none where it was not built. The folder is always
/// there, so that a later build of the console is seen.
fn console(dist: &Path, copies: &Path) -> String {
    println!("cargo::rerun-if-changed={}", dist.display());
    // A build of the console that runs meanwhile deletes files. Cargo sees its end, and runs this again.
    let files = copy_console(dist, copies).unwrap_or_default();
    format!("&[\n{}]", files.concat())
}

/// Copies the files of the console to where no other build deletes them, and returns an entry for each.
fn copy_console(dist: &Path, copies: &Path) -> io::Result<Vec<String>> {
    let _ = fs::remove_dir_all(copies);
    let mut files = Vec::new();
    collect(dist, &mut files)?;
    files.sort();
    let is_compressed = |file: &&PathBuf| file.extension().is_some_and(|end| end == "br");
    files
        .iter()
        .filter(is_compressed)
        .map(|compressed| {
            let path = compressed.strip_prefix(dist).expect("it lies there");
            let copy = copies.join(path);
            fs::create_dir_all(copy.parent().expect("a file lies in a folder"))?;
            fs::copy(compressed, &copy)?;
            let content = fs::read(compressed.with_extension(""))?;
            fs::write(copy.with_extension(""), &content)?;
            Ok(format!(
                "    weir::web_files::WebFile {{ path: {:?}, digest: {:?}, content: include_bytes!({:?}), \
                 compressed: include_bytes!({copy:?}) }},\n",
                path.with_extension(""),
                hex::encode(Sha256::digest(&content)),
                copy.with_extension(""),
            ))
        })
        .collect()
}

/// Returns `(path, content)` of each file, in the order of their paths.
fn sources(repository: &Path) -> String {
    let repository = repository.canonicalize().expect("this crate lies in it");
    let mut files = Vec::new();
    for source in SOURCES {
        println!(
            "cargo::rerun-if-changed={}",
            repository.join(source).display()
        );
        collect(&repository.join(source), &mut files).expect("a folder of the repository");
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let path = file.strip_prefix(&repository).expect("it lies there");
        list.push_str(&format!("    ({path:?}, include_bytes!({file:?})),\n"));
    }
    list.push(']');
    list
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}
