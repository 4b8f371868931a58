//! `cargo xtask package`: the release as one archive, and as the packages people have: npm, a Python wheel, a `.deb`.

mod deb;
mod npm;
mod wheel;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    console, dist, docs, pages, plugins,
    step::{StepFailure, capture_output},
    workshop::XtaskContext,
};

/// Files of the repository, and where they lie in the archive.
const FILES: [(&str, &str); 5] = [
    ("LICENSE", "LICENSE"),
    ("README.md", "README.md"),
    ("docs/run.md", "run.md"),
    ("packaging/weir.service", "weir.service"),
    ("packaging/weir.toml", "weir.toml"),
];

/// Builds the program and packs it.
pub(crate) fn run(workshop: &XtaskContext) -> Result<(), StepFailure> {
    plugins::run(workshop, false)?;
    console::build(workshop)?;
    let binary = dist::build(workshop, dist::GATEWAY)?.join("weir");
    pack_release(workshop, &binary)
}

/// Packs a program that was built before.
pub(crate) fn pack_release(workshop: &XtaskContext, program: &Path) -> Result<(), StepFailure> {
    let binary = strip(program, &folder(&workshop.cache.join("release"))?)?;
    let version = version(&binary)?;
    let site = docs::build(workshop)?;
    let archive = archive(workshop, &binary, &site, &version)?;
    show(&archive, &site)?;
    let release = ReleaseParts {
        binary,
        version,
        folder: workshop.repository.join("dist"),
    };
    release.pack(workshop)
}

/// Makes the packages with the program as the tests have it, where the tests look for them: `packages/` in the cache.
pub(crate) fn for_tests(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let place = folder(&workshop.cache.join("packages"))?;
    let binary = strip(&workshop.binary("weir"), &place)?;
    let version = version(&binary)?;
    ReleaseParts {
        binary,
        version,
        folder: place,
    }
    .pack(workshop)
}

/// Copies the program into a folder, without the names of its functions: a tenth of a release is these.
fn strip(program: &Path, folder: &Path) -> Result<PathBuf, StepFailure> {
    let copy = folder.join("weir");
    let mut strip = Command::new("strip");
    capture_output(strip.arg("-o").arg(&copy).arg(program))?;
    Ok(copy)
}

/// The parts of the packages, and where they go.
struct ReleaseParts {
    binary: PathBuf,
    version: String,
    folder: PathBuf,
}

/// The names of one kind of processor.
struct PackageArchitecture {
    npm: &'static str,
    wheel: &'static str,
    debian: &'static str,
}

impl ReleaseParts {
    fn pack(&self, workshop: &XtaskContext) -> Result<(), StepFailure> {
        workshop
            .steps
            .task("npm package", || npm::pack(workshop, self).map(drop))?;
        workshop
            .steps
            .task("wheel", || wheel::pack(workshop, self).map(drop))?;
        workshop
            .steps
            .task("Debian package", || deb::pack(workshop, self).map(drop))
    }

    fn architecture(&self) -> Result<PackageArchitecture, StepFailure> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(PackageArchitecture {
                npm: "x64",
                wheel: "x86_64",
                debian: "amd64",
            }),
            "aarch64" => Ok(PackageArchitecture {
                npm: "arm64",
                wheel: "aarch64",
                debian: "arm64",
            }),
            other => Err(format!("packages are not made for {other}").into()),
        }
    }

    /// Returns the oldest version of the C library that can run the program, such as `2.34`. The version that it was linked
    /// with may be newer.
    fn glibc(&self) -> Result<String, StepFailure> {
        let symbols = capture_output(Command::new("objdump").arg("-T").arg(&self.binary))?;
        newest_glibc(&symbols)
            .ok_or_else(|| format!("{} names no version of glibc", self.binary.display()).into())
    }
}

/// Returns the newest version of glibc among symbols as `objdump -T` prints them, each with its version: `GLIBC_2.34`.
fn newest_glibc(symbols: &str) -> Option<String> {
    let parsed = |name: &str| {
        let parts: Option<Vec<u32>> = name.split('.').map(|part| part.parse().ok()).collect();
        Some((parts?, name.to_owned()))
    };
    let words = symbols
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '.');
    words
        .filter_map(|word| parsed(word.strip_prefix("GLIBC_")?))
        .max()
        .map(|(_, name)| name)
}

/// Makes an empty folder.
fn folder(place: &Path) -> Result<PathBuf, StepFailure> {
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(place)
        .map_err(|error| format!("cannot create {}: {error}", place.display()))?;
    Ok(place.to_owned())
}

/// Installs a file with its folders and its mode.
fn install(from: &Path, to: &Path, mode: &str) -> Result<(), StepFailure> {
    capture_output(
        Command::new("install")
            .args(["-D", "--mode", mode])
            .arg(from)
            .arg(to),
    )
    .map(drop)
}

/// Returns `VERSION` from the program itself, which must have every adapter inside.
fn version(binary: &Path) -> Result<String, StepFailure> {
    let printed = capture_output(Command::new(binary).arg("--version"))?;
    let missing = plugins::ADAPTERS
        .iter()
        .find(|(_, name)| !printed.split([' ', ',', '\n']).any(|word| word == *name));
    if let Some((_, name)) = missing {
        return Err(
            format!("the program does not carry the adapter `{name}`; it says: {printed}").into(),
        );
    }
    let version = printed
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("weir "));
    version
        .map(str::to_owned)
        .ok_or_else(|| format!("`weir --version` says: {printed}").into())
}

fn archive(
    workshop: &XtaskContext,
    binary: &Path,
    site: &Path,
    version: &str,
) -> Result<PathBuf, StepFailure> {
    let name = format!("weir-{version}-{}", dist::host_target()?);
    let dist = workshop.repository.join("dist");
    let folder = dist.join(&name);
    let archive = dist.join(format!("{name}.tar.gz"));
    workshop.steps.task("archive", || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        copy(binary, &folder.join("weir"))?;
        for (from, to) in FILES {
            copy(&workshop.repository.join(from), &folder.join(to))?;
        }
        pages::copy(site, &folder.join("docs"))?;
        // The same files always make the same archive.
        let mut tar = Command::new("tar");
        tar.current_dir(&dist).args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mtime=@0",
        ]);
        capture_output(
            tar.args(["--create", "--use-compress-program=gzip -n", "--file"])
                .arg(&archive)
                .arg(&name),
        )
        .map(drop)
    })?;
    let _ = fs::remove_dir_all(&folder);
    Ok(archive)
}

/// Prints the entries of the archive, with the site as one line.
fn show(archive: &Path, site: &Path) -> Result<(), StepFailure> {
    let megabytes = |files: &[PathBuf]| {
        let sizes = files.iter().filter_map(|file| fs::metadata(file).ok());
        sizes.map(|file| file.len()).sum::<u64>() as f64 / f64::from(1 << 20)
    };
    let size = megabytes(&[archive.to_owned()]);
    println!("\n{} ({size:.1} MB), with", archive.display());
    let listed = capture_output(
        Command::new("tar")
            .args(["--list", "--verbose", "--file"])
            .arg(archive),
    )?;
    for line in listed.lines().filter(|line| !line.contains("/docs/")) {
        println!("{line}");
    }
    let pages = pages::files(site)?;
    println!(
        "docs/: {} files of the documentation site, {:.1} MB",
        pages.len(),
        megabytes(&pages)
    );
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), StepFailure> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|error| format!("cannot copy {}: {error}", from.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_asks_for_the_newest_glibc_among_its_symbols() {
        let symbols = "\
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.2.5) memcpy
0000000000000000  w   DF *UND*  0000000000000000 (GLIBC_2.34) pthread_create
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.4) __stack_chk_fail
0000000000000000      DF *UND*  0000000000000000 (GCC_3.0) _Unwind_Resume
0000000000000000      DO *UND*  0000000000000000 (GLIBC_PRIVATE) _rtld_global
0000000000000000      DF *UND*  0000000000000000  Base        GLIBC_2.9 written_without_brackets
";
        assert_eq!(newest_glibc(symbols).as_deref(), Some("2.34"));
        assert_eq!(newest_glibc("a.out:     file format elf64-x86-64"), None);
    }
}
