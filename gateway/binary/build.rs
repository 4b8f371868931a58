//! Puts the adapters that are built in `plugins/` and the console that is built in `console/dist/` into the program, and the sources that `weir plugin new` begins with. A crate of its own, so that another build of an
//! adapter links the program again and compiles nothing of the gateway.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

const ADAPTERS: [&str; 3] = ["rest", "sheet", "sql"];
/// Files and folders of the repository that the author of a plugin needs.
const SOURCES: [&str; 11] = [
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
        console(&Path::new(&manifest).join("../../console/dist")),
    )
    .expect("as above");
}

/// Returns the files of the console, each beside its compressed form; none where it was not built. The folder is always
/// there, so that a later build of the console is seen.
fn console(dist: &Path) -> String {
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut list = String::from("&[\n");
    let Ok(dist) = dist.canonicalize() else {
        return list + "]";
    };
    let mut files = Vec::new();
    collect(&dist, &mut files);
    files.sort();
    for compressed in files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "br"))
    {
        let file = compressed.with_extension("");
        let path = file.strip_prefix(&dist).expect("it lies there");
        let digest = hex::encode(Sha256::digest(
            fs::read(&file).expect("it lies beside its compressed form"),
        ));
        list.push_str(&format!(
            "    weir::admin::ConsoleFile {{ path: {path:?}, digest: {digest:?}, content: include_bytes!({file:?}), \
             compressed: include_bytes!({compressed:?}) }},\n"
        ));
    }
    list + "]"
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
        collect(&repository.join(source), &mut files);
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

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        return files.push(path.to_owned());
    }
    for entry in fs::read_dir(path)
        .expect("a folder of the repository")
        .flatten()
    {
        collect(&entry.path(), files);
    }
}
