//! Puts the adapters that are built in `plugins/` and the console that is built in `console/dist/` into the program, and the
//! sources that `weir plugin new` begins with. It is a separate crate, so that a new build of an adapter only links the program
//! again and compiles nothing of the gateway.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use flate2::{Compression, write::ZlibEncoder};
use sha2::{Digest as _, Sha256};

/// The document of the admin API.
const DOCUMENT: &str = "openapi.json";
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
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let mut list = String::from("&[\n");
    let mut missing = false;
    println!("cargo::rerun-if-changed=build.rs");
    for name in ADAPTERS {
        let file = plugins.join(format!("{name}.wasm"));
        match file.canonicalize() {
            Ok(file) => {
                println!("cargo::rerun-if-changed={}", file.display());
                let component = fs::read(&file).expect("it was just found");
                let digest = hex::encode(Sha256::digest(&component));
                let embedded = embed(&component, &out.join(name));
                list.push_str(&format!("    ({name:?}, {digest:?}, {embedded}),\n"));
            }
            Err(_) => missing = true,
        }
    }
    // A missing file cannot be watched; its folder can, and is no longer watched once all files exist.
    if missing {
        println!("cargo::rerun-if-changed={}", plugins.display());
    }
    list.push(']');
    fs::write(out.join("adapters.rs"), list).expect("the build folder can be written to");
    let repository = Path::new(&manifest).join("../..");
    fs::write(out.join("sources.rs"), sources(&repository, &out)).expect("as above");
    let web_files = web_files(&repository.join("console"), &out.join("console"));
    fs::write(out.join("console.rs"), web_files).expect("as above");
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

/// Compresses a file to that path, and returns the expression that embeds it.
fn embed(content: &[u8], to: &Path) -> String {
    let file = fs::File::create(to).expect("the build folder can be written to");
    let mut encoder = ZlibEncoder::new(file, Compression::best());
    encoder
        .write_all(content)
        .and_then(|()| encoder.finish())
        .expect("the build folder has room");
    format!(
        "weir_files::embedded::EmbeddedFile::new({}, include_bytes!({to:?}))",
        content.len()
    )
}

/// Returns the document of the admin API and the files of the console, none if it was not built. Its folder always exists,
/// so that a later build of the console is noticed.
fn web_files(console: &Path, copies: &Path) -> String {
    let (document, dist) = (console.join(DOCUMENT), console.join("dist"));
    println!("cargo::rerun-if-changed={}", document.display());
    println!("cargo::rerun-if-changed={}", dist.display());
    // A build of the console that runs meanwhile deletes files. Cargo sees its end, and runs this again.
    let mut files = copy_console(&dist, copies).unwrap_or_default();
    let content = fs::read(document).expect("a file of the repository");
    fs::create_dir_all(copies).expect("the build folder can be written to");
    let to = copies.join(DOCUMENT);
    files.push(web_file(Path::new(DOCUMENT), &content, &to, None));
    format!("&[\n{}]", files.concat())
}

/// Returns the entry of a file, whose copy lies at `to`, and possibly that of a version compressed by npm.
fn web_file(path: &Path, content: &[u8], to: &Path, compressed: Option<&Path>) -> String {
    let compressed = match compressed {
        Some(file) => format!("Some(include_bytes!({file:?}))"),
        None => "None".to_owned(),
    };
    format!(
        "    weir::web_files::WebFile {{ path: {path:?}, digest: {:?}, content: {}, compressed: {compressed} }},\n",
        hex::encode(Sha256::digest(content)),
        embed(content, to),
    )
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
            let to = copy.with_extension("");
            Ok(web_file(
                &path.with_extension(""),
                &content,
                &to,
                Some(&copy),
            ))
        })
        .collect()
}

/// Returns the path and the length of each file, in the order of their paths, and the length of all files together.
fn sources(repository: &Path, out: &Path) -> String {
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
    let (mut list, mut all) = (String::new(), Vec::new());
    for file in files {
        let path = file.strip_prefix(&repository).expect("it lies there");
        let content = fs::read(&file).expect("it was just found");
        list.push_str(&format!("    ({path:?}, {}),\n", content.len()));
        all.extend(content);
    }
    let content = embed(&all, &out.join("sources"));
    format!("weir_cli::SourceArchive {{ files: &[\n{list}], content: {content} }}")
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
