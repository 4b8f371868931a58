//! Puts the adapters that are built in `plugins/` into the program. A crate of its own, so that another build of an
//! adapter links the program again and compiles nothing of the gateway.

use std::{env, fs, path::Path};

use sha2::{Digest as _, Sha256};

const ADAPTERS: [&str; 3] = ["rest", "sheet", "sql"];

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
                let digest = hex::encode(Sha256::digest(fs::read(&file).expect("it was just found")));
                list.push_str(&format!("    ({name:?}, {digest:?}, include_bytes!({file:?})),\n"));
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
    fs::write(Path::new(&out).join("adapters.rs"), list).expect("the build folder can be written to");
}
