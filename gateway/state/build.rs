//! A new migration is a new build.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
