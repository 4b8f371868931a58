//! C: clang for wasm32, and the linker that makes a component.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use super::{PluginProject, command, ended, output, run, run_and_read, work, world};

const INSTALL_CLANG: &str = "apt install clang-19 wasi-libc libclang-rt-19-dev-wasm32    (or the WASI SDK, with WASI_SDK_PATH set)";
const INSTALL_LINKER: &str =
    "cargo install wasm-component-ld    (Rust toolchains and the WASI SDK bring it along)";
const TARGET: &str = "--target=wasm32-wasi";
/// The newest first; distributions name each by its version.
const CLANGS: [&str; 8] = [
    "clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16",
];

pub(super) fn build(folder: &PluginProject) -> anyhow::Result<PathBuf> {
    let compiler = ClangCompiler::find(folder)?;
    let linker = ComponentLinker::find(folder)?;
    let work = work(folder)?;
    let mut objects = Vec::new();
    for source in sources(folder)? {
        let name = source.to_string_lossy().replace(['/', '\\'], "-");
        let object = work.join(name).with_extension("o");
        let mut compile = command(folder, &compiler.clang);
        compile
            .args(&compiler.flags)
            .args(["-O2", "-Wall", "-c"])
            .arg(&source)
            .arg("-o")
            .arg(&object);
        run(&mut compile, INSTALL_CLANG)?;
        objects.push(object);
    }
    let built = work.join("plugin.wasm");
    let mut link = command(folder, &linker.program);
    if let Some(wasm_ld) = &linker.wasm_ld {
        link.arg("--wasm-ld-path").arg(wasm_ld);
    }
    link.args(["--no-entry", "--strip-all", "-z", "stack-size=131072"])
        .args(&objects);
    let interface = format!("sdk/{}_component_type.o", world(folder, "sdk/weir.h"));
    link.arg(interface)
        .arg("-L")
        .arg(&compiler.libraries)
        .arg("-lc")
        .arg(&compiler.builtins);
    let (status, written) = run_and_read(link.arg("-o").arg(&built), INSTALL_LINKER)?;
    if !status.success() {
        if let Some(error) = undefined(&written) {
            bail!("{error}");
        }
        eprint!("{written}");
        bail!("{}", ended(&link, status));
    }
    eprint!("{written}");
    Ok(built)
}

/// Returns what no source defines, of the linker's words. It names each once for every use.
fn undefined(written: &str) -> Option<String> {
    let names: BTreeSet<&str> = written
        .lines()
        .filter_map(|line| Some(line.split_once("undefined symbol: ")?.1.trim()))
        .collect();
    if names.is_empty() {
        return None;
    }
    let instead = if names.contains("weir_this_plugin") {
        ": write `const weir_plugin weir_this_plugin = {\"deploys\", \"0.1.0\", TOOLS};` below the table of tools"
    } else if names
        .iter()
        .any(|name| name.starts_with("exports_weir_plugin_"))
    {
        ": the interface in sdk/adapter.h names each function that a plugin exports"
    } else {
        ""
    };
    let names: Vec<&str> = names.into_iter().collect();
    Some(format!(
        "no source of this folder defines `{}`{instead}",
        names.join("`, `")
    ))
}

/// Returns every C file of the folder itself, and those of the SDK, in a fixed order, so that they make the same
/// component.
fn sources(folder: &PluginProject) -> anyhow::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for place in ["", "sdk"] {
        let entries = fs::read_dir(folder.path.join(place))
            .with_context(|| format!("{place} cannot be read"))?;
        let names =
            entries.filter_map(|entry| Some(Path::new(place).join(entry.ok()?.file_name())));
        sources.extend(
            names.filter(|name| name.extension().is_some_and(|extension| extension == "c")),
        );
    }
    sources.sort();
    Ok(sources)
}

struct ClangCompiler {
    clang: PathBuf,
    flags: Vec<String>,
    /// The folder of the C library.
    libraries: PathBuf,
    /// The library that clang's code calls.
    builtins: PathBuf,
}

impl ClangCompiler {
    fn find(folder: &PluginProject) -> anyhow::Result<Self> {
        if let Some(sdk) = std::env::var_os("WASI_SDK_PATH").map(PathBuf::from) {
            let sysroot = sdk.join("share/wasi-sysroot");
            let flags = vec![
                TARGET.to_owned(),
                format!("--sysroot={}", sysroot.display()),
            ];
            return Self::with(
                folder,
                sdk.join("bin/clang"),
                flags,
                sysroot.join("lib/wasm32-wasi"),
            );
        }
        let libraries = PathBuf::from("/usr/lib/wasm32-wasi");
        let clang = CLANGS.iter().find(|clang| is_there(folder, clang));
        let Some(clang) = clang.filter(|_| libraries.join("libc.a").exists()) else {
            bail!(
                "there is no clang with a C library for wasm32 here; install them:\n\n  {INSTALL_CLANG}\n"
            );
        };
        let flags = [
            TARGET,
            "--sysroot=/usr",
            "-isystem",
            "/usr/include/wasm32-wasi",
        ]
        .map(str::to_owned)
        .to_vec();
        Self::with(folder, clang.into(), flags, libraries)
    }

    fn with(
        folder: &PluginProject,
        clang: PathBuf,
        flags: Vec<String>,
        libraries: PathBuf,
    ) -> anyhow::Result<Self> {
        let words = [TARGET, "--rtlib=compiler-rt", "--print-libgcc-file-name"];
        let builtins =
            PathBuf::from(output(command(folder, &clang).args(words), INSTALL_CLANG)?.trim());
        if !builtins.exists() {
            bail!(
                "{} has no builtins for wasm32 ({}); install them:\n\n  {INSTALL_CLANG}\n",
                clang.display(),
                builtins.display()
            );
        }
        Ok(Self {
            clang,
            flags,
            libraries,
            builtins,
        })
    }
}

struct ComponentLinker {
    program: PathBuf,
    /// The path of wasm-ld, if clang does not find it on its own.
    wasm_ld: Option<PathBuf>,
}

impl ComponentLinker {
    fn find(folder: &PluginProject) -> anyhow::Result<Self> {
        let name = "wasm-component-ld";
        if let Some(sdk) = std::env::var_os("WASI_SDK_PATH").map(PathBuf::from)
            && sdk.join("bin").join(name).exists()
        {
            return Ok(Self {
                program: sdk.join("bin").join(name),
                wasm_ld: Some(sdk.join("bin/wasm-ld")),
            });
        }
        if is_there(folder, name) {
            return Ok(Self {
                program: name.into(),
                wasm_ld: None,
            });
        }
        match rust_tools(folder).filter(|tools| tools.join(name).exists()) {
            Some(tools) => Ok(Self {
                program: tools.join(name),
                wasm_ld: Some(tools.join("gcc-ld/wasm-ld")),
            }),
            None => bail!("`{name}` is missing; install it:\n\n  {INSTALL_LINKER}\n"),
        }
    }
}

/// Returns the folder of a Rust toolchain's own linkers.
fn rust_tools(folder: &PluginProject) -> Option<PathBuf> {
    let ask = |words: &[&str]| output(command(folder, "rustc").args(words), "").ok();
    let version = ask(&["-vV"])?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))?;
    Some(
        Path::new(ask(&["--print", "sysroot"])?.trim())
            .join("lib/rustlib")
            .join(host)
            .join("bin"),
    )
}

fn is_there(folder: &PluginProject, program: &str) -> bool {
    let mut version: Command = command(folder, program);
    output(version.arg("--version"), "").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_defined_is_named_once() {
        let line = "rust-lld: error: /a/sdk-weir.o: undefined symbol: weir_this_plugin\n";
        let error = undefined(&line.repeat(5)).unwrap_or_default();
        assert!(
            error.starts_with("no source of this folder defines `weir_this_plugin`: write `const"),
            "{error}"
        );
        let other = "wasm-ld: error: a.o: undefined symbol: two\nwasm-ld: error: a.o: undefined symbol: one\n";
        assert_eq!(
            undefined(other).as_deref(),
            Some("no source of this folder defines `one`, `two`")
        );
        assert_eq!(undefined("error: unable to find library -lc\n"), None);
    }
}
