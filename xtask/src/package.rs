//! `cargo xtask package`: the release as one archive, and what is in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    dist, plugins,
    step::{Failure, said},
    workshop::Workshop,
};

/// Files of the repository, and where they lie in the archive.
const FILES: [(&str, &str); 5] = [
    ("LICENSE", "LICENSE"),
    ("README.md", "README.md"),
    ("docs/run.md", "run.md"),
    ("packaging/weir.service", "weir.service"),
    ("packaging/weir.toml", "weir.toml"),
];

pub(crate) fn run(workshop: &Workshop) -> Result<(), Failure> {
    plugins::prepare(workshop)?;
    plugins::build(workshop)?;
    let binary = dist::build(workshop)?.join("weir");
    let version = version(&binary)?;
    let archive = archive(workshop, &binary, &version)?;
    show(&archive)
}

/// `VERSION`, from the program itself, which must have every adapter inside.
fn version(binary: &Path) -> Result<String, Failure> {
    let said = said(Command::new(binary).arg("--version"))?;
    let missing = plugins::ADAPTERS.iter().find(|(_, name)| !said.split([' ', ',', '\n']).any(|word| word == *name));
    if let Some((_, name)) = missing {
        return Err(format!("the program does not carry the adapter `{name}`; it says: {said}").into());
    }
    let version = said.lines().next().and_then(|line| line.strip_prefix("weir "));
    version.map(str::to_owned).ok_or_else(|| format!("`weir --version` says: {said}").into())
}

fn archive(workshop: &Workshop, binary: &Path, version: &str) -> Result<PathBuf, Failure> {
    let name = format!("weir-{version}-{}", dist::Machine::look()?.target);
    let dist = workshop.repository.join("dist");
    let folder = dist.join(&name);
    let archive = dist.join(format!("{name}.tar.gz"));
    workshop.steps.task("archive", || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        copy(binary, &folder.join("weir"))?;
        for (from, to) in FILES {
            copy(&workshop.repository.join(from), &folder.join(to))?;
        }
        // The same files make the same archive, whoever packs them and when.
        let mut tar = Command::new("tar");
        tar.current_dir(&dist).args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
        said(tar.args(["--create", "--use-compress-program=gzip -n", "--file"]).arg(&archive).arg(&name)).map(drop)
    })?;
    let _ = fs::remove_dir_all(&folder);
    Ok(archive)
}

fn show(archive: &Path) -> Result<(), Failure> {
    let size = |path: &Path| fs::metadata(path).map(|file| file.len()).unwrap_or_default() as f64 / f64::from(1 << 20);
    println!("\n{} ({:.1} MB), with", archive.display(), size(archive));
    print!("{}", said(Command::new("tar").args(["--list", "--verbose", "--file"]).arg(archive))?);
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(drop).map_err(|error| format!("cannot copy {}: {error}", from.display()).into())
}
