//! `cargo xtask docs`: builds the documentation site into `site/dist/`, and fails on a dead link.
//!
//! Its pages are those of `docs/` and of the root of the repository. They are copied into the cache, next to the
//! packages that build them.

use std::{fs, path::PathBuf};

use crate::{
    clients,
    pages::{copy, node},
    step::StepFailure,
    workshop::XtaskContext,
};

/// The pages of the site, which link to each other as they lie here.
const PAGES: [&str; 6] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "docs",
];

/// Builds the site, and prints how to read it.
pub(crate) fn run(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let dist = build(workshop)?;
    println!("Open {}", dist.join("index.html").display());
    println!(
        "or, with its search: python3 -m http.server --directory {}",
        dist.display()
    );
    Ok(())
}

/// Builds the site and returns its folder.
pub(crate) fn build(workshop: &XtaskContext) -> Result<PathBuf, StepFailure> {
    let source = workshop.repository.join("site");
    let folder = clients::npm(workshop, &source, "site")?;
    for name in [".vitepress", "pages", "dist"] {
        let _ = fs::remove_dir_all(folder.join(name));
    }
    copy(&source.join(".vitepress"), &folder.join(".vitepress"))?;
    for name in PAGES {
        copy(
            &workshop.repository.join(name),
            &folder.join("pages").join(name),
        )?;
    }
    copy(
        &workshop.repository.join("console/src/icon.svg"),
        &folder.join("icon.svg"),
    )?;
    node(
        workshop,
        &folder,
        "documentation site",
        &["vitepress/bin/vitepress.js", "build"],
    )?;
    let dist = source.join("dist");
    let _ = fs::remove_dir_all(&dist);
    copy(&folder.join("dist"), &dist)?;
    Ok(dist)
}
