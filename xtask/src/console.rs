//! `cargo xtask console`: builds the console into `console/dist/`, which the program takes in when it is linked.
//!
//! It is built in the cache, next to its packages, so that the repository holds neither packages nor half a build.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
};

use crate::{
    clients,
    pages::{copy, files, node},
    step::StepFailure,
    workshop::{XtaskContext, write},
};

/// The sources, from `console/`.
const SOURCES: [&str; 8] = [
    "index.html",
    "openapi.json",
    "playwright.config.ts",
    "src",
    "tests",
    "tsconfig.json",
    "vite.config.ts",
    "vite.form.config.ts",
];
const BUILT: &str = "built.txt";

/// Checks the types and builds the page, unless nothing has changed since.
pub(crate) fn build(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let source = workshop.repository.join("console");
    let folder = clients::npm(workshop, &source, "console")?;
    // Clones share the cache, and checks run in it: it holds the sources of this one, built or not.
    for name in SOURCES {
        let target = folder.join(name);
        let _ = fs::remove_dir_all(&target);
        copy(&source.join(name), &target)?;
    }
    let dist = source.join("dist");
    let digest = digest(&source)?;
    let stamp = dist.join(BUILT);
    if fs::read_to_string(&stamp).is_ok_and(|built| built == digest) {
        return Ok(());
    }
    node(
        workshop,
        &folder,
        "console types",
        &[
            "openapi-typescript/bin/cli.js",
            "openapi.json",
            "--output",
            "src/api/schema.d.ts",
        ],
    )?;
    node(
        workshop,
        &folder,
        "console check",
        &["typescript/bin/tsc", "--noEmit"],
    )?;
    let _ = fs::remove_dir_all(folder.join("dist"));
    for config in ["vite.config.ts", "vite.form.config.ts"] {
        let words = [
            "vite/bin/vite.js",
            "build",
            "--logLevel",
            "warn",
            "--config",
            config,
        ];
        node(workshop, &folder, "console build", &words)?;
    }
    for name in ["assets", "form", "index.html", "index.html.br"] {
        let target = dist.join(name);
        let _ = fs::remove_dir_all(&target);
        copy(&folder.join("dist").join(name), &target)?;
    }
    write(&stamp, &digest)
}

/// Builds it, and runs its unit tests.
pub(crate) fn check(workshop: &XtaskContext) -> Result<(), StepFailure> {
    build(workshop)?;
    let folder = workshop.cache.join("clients/console");
    node(
        workshop,
        &folder,
        "console tests",
        &["vitest/vitest.mjs", "run"],
    )
}

/// Returns a number that changes with every source and every package.
fn digest(source: &Path) -> Result<String, StepFailure> {
    let mut hasher = DefaultHasher::new();
    for name in SOURCES
        .into_iter()
        .chain(["package.json", "package-lock.json"])
    {
        for file in files(&source.join(name))? {
            let content = fs::read(&file)
                .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            (file.strip_prefix(source).unwrap_or(&file), content).hash(&mut hasher);
        }
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}
