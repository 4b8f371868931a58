//! The guests that the tests load: a hostile one, and one small adapter in each language.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use super::{GUESTS, compile, guest_folder, place, place_all, toolchain::GuestToolchain};
use crate::{
    clients, debian,
    step::StepFailure,
    workshop::{XtaskContext, read, write},
};

/// The mark by which the hostile guest knows which build it is; its source has the same bytes.
const BUILD_MARKER: &[u8] = b"build=1       ";
/// Other builds of it, made by changing the marker: a newer one, one whose shape has lost a column, and two whose
/// `about` never comes back.
const OTHER_BUILDS: [&str; 4] = ["2", "lost", "trap", "spin"];
const WIT: &str = "plugin-sdk/wit/0.1.0";
const WIT_TOOLS: &str = "plugin-sdk/wit/0.1.1";
/// The interface of the bindings for C, which have summaries.
const WIT_SUMMARIES: &str = "plugin-sdk/wit/0.1.2";
/// Further builds of the guest with tools, by the word that makes each: see its source.
const TOOLS_BUILDS: [&str; 5] = ["renamed", "wider", "stable", "fix", "moody"];

/// Builds all guests. Cargo builds the Rust ones while the other languages' tools are fetched.
pub(super) fn build(
    workshop: &XtaskContext,
    toolchain: &GuestToolchain,
) -> Result<(), StepFailure> {
    let folder = &guest_folder(workshop);
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    std::thread::scope(|scope| {
        let script = scope.spawn(|| javascript(workshop, folder));
        let python = scope.spawn(|| python(workshop, folder));
        let c = scope.spawn(|| c(workshop, toolchain, folder));
        let rust = compile(workshop, toolchain)
            .and_then(|()| place_all(workshop, toolchain, &GUESTS, folder))
            .and_then(|()| other_builds(toolchain, workshop, folder));
        let others = [script, python, c].map(|language| language.join());
        others.into_iter().fold(rust, |so_far, other| {
            so_far.and(other.unwrap_or_else(|_| Err("building a guest panicked".into())))
        })
    })
}

fn other_builds(
    toolchain: &GuestToolchain,
    workshop: &XtaskContext,
    folder: &Path,
) -> Result<(), StepFailure> {
    let built = toolchain.built(workshop, "weir-guest-misbehaving");
    let bytes =
        fs::read(&built).map_err(|error| format!("cannot read {}: {error}", built.display()))?;
    let at: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(BUILD_MARKER))
        .collect();
    let [at] = at[..] else {
        return Err(format!(
            "{} has {} build markers, not one",
            built.display(),
            at.len()
        )
        .into());
    };
    for build in OTHER_BUILDS {
        let mut changed = bytes.clone();
        let marker = format!(
            "build={build:<width$}",
            width = BUILD_MARKER.len() - "build=".len()
        );
        changed[at..at + BUILD_MARKER.len()].copy_from_slice(marker.as_bytes());
        let temporary = folder.join(format!("misbehaving-{build}.wasm.new"));
        fs::write(&temporary, &changed)
            .map_err(|error| format!("cannot write {}: {error}", temporary.display()))?;
        place(
            &temporary,
            &folder.join(format!("misbehaving-{build}.wasm")),
        )?;
        let _ = fs::remove_file(&temporary);
    }
    Ok(())
}

/// Builds guests with QuickJS. The host takes neither the asynchronous ABI nor ambient WASI: hence `--sync` and
/// `--stub-wasi`.
fn javascript(workshop: &XtaskContext, folder: &Path) -> Result<(), StepFailure> {
    let guests = workshop.repository.join("tests/guests");
    let tool = guests.join("tiny-js");
    let lock = tool.join("package-lock.json");
    let adapter = ScriptGuest {
        name: "tiny-js",
        source: tool.join("adapter.js"),
        world: "adapter",
        interface: WIT,
    };
    let tools = guests.join("tools-js/tools.js");
    let tools = ScriptGuest {
        name: "tools-js",
        source: tools,
        world: "toolbox",
        interface: WIT_TOOLS,
    };
    let original = ("", "");
    let builds = [(&adapter, "", original), (&tools, "", original)];
    let others = TOOLS_BUILDS.map(|build| (&tools, build, (r#"BUILD = "first""#, build)));
    for (script, build, (word, with)) in builds.into_iter().chain(others) {
        let target = folder.join(format!(
            "{}{}{build}.wasm",
            script.name,
            if build.is_empty() { "" } else { "-" }
        ));
        let inputs = [
            script.source.clone(),
            lock.clone(),
            interface(workshop, script.interface),
        ];
        make(&target, &inputs, || {
            let installed = clients::npm(workshop, &tool, "tiny-js")?;
            let work = work_folder(workshop, script.name, script.interface)?;
            let text = read(&script.source)?;
            let text = if word.is_empty() {
                text
            } else {
                text.replacen(word, &format!("BUILD = {with:?}"), 1)
            };
            write(&work.join("plugin.js"), &text)?;
            let node = clients::node(workshop)?;
            let mut command = workshop.command(node.join("node"));
            command.current_dir(&work).arg(
                installed
                    .join("node_modules")
                    .join(qjs_program(&installed)?),
            );
            command.args([
                "--wit",
                "wit",
                "--world",
                script.world,
                "--js",
                "plugin.js",
                "-o",
                "built.wasm",
            ]);
            command.args(["--sync", "--stub-wasi", "--opt-size", "-m"]);
            workshop.steps.command(
                &format!("JavaScript guest {} {build}", script.name),
                &mut command,
            )?;
            place(&work.join("built.wasm"), &target)
        })?;
    }
    Ok(())
}

/// A guest in JavaScript.
struct ScriptGuest {
    name: &'static str,
    source: PathBuf,
    world: &'static str,
    interface: &'static str,
}

/// Returns the program of componentize-qjs, as its package names it.
fn qjs_program(tool: &Path) -> Result<String, StepFailure> {
    let package = "componentize-qjs";
    let bin = tool.join("node_modules/.bin").join(package);
    let linked = fs::canonicalize(&bin)
        .map_err(|error| format!("cannot find {}: {error}", bin.display()))?;
    let modules =
        fs::canonicalize(tool.join("node_modules")).unwrap_or_else(|_| tool.join("node_modules"));
    let inside = linked
        .strip_prefix(&modules)
        .map_err(|_| format!("{} lies elsewhere", linked.display()))?;
    Ok(inside.display().to_string())
}

fn python(workshop: &XtaskContext, folder: &Path) -> Result<(), StepFailure> {
    let source = workshop.repository.join("tests/guests/tiny-python/app.py");
    let requirements = workshop.repository.join("tests/clients/tiny-python.txt");
    let target = folder.join("tiny-python.wasm");
    make(
        &target,
        &[source.clone(), requirements, interface(workshop, WIT)],
        || {
            let tool = clients::python(workshop, "tiny-python")?;
            let work = work_folder(workshop, "tiny-python", WIT)?;
            copy(&source, &work.join("app.py"))?;
            let mut build = workshop.command(tool.join("bin/componentize-py"));
            build.current_dir(&work).args([
                "-d",
                "wit",
                "-w",
                "adapter",
                "componentize",
                "--stub-wasi",
                "app",
                "-p",
                ".",
            ]);
            workshop
                .steps
                .command("Python guest", build.args(["-o", "built.wasm"]))?;
            place(&work.join("built.wasm"), &target)
        },
    )
}

/// Builds the guest with Debian's clang; the bindings that `wit-bindgen c` generates are those of the SDK.
fn c(
    workshop: &XtaskContext,
    toolchain: &GuestToolchain,
    folder: &Path,
) -> Result<(), StepFailure> {
    let source = workshop.repository.join("tests/guests/tiny-c");
    let target = folder.join("tiny-c.wasm");
    let generated = workshop.repository.join("plugin-sdk/c/collection");
    let generated_parts =
        ["adapter.c", "adapter.h", "adapter_component_type.o"].map(|part| generated.join(part));
    let inputs = [
        &[source.join("plugin.c")][..],
        &generated_parts,
        &[interface(workshop, WIT_SUMMARIES)],
    ]
    .concat();
    make(&target, &inputs, || {
        let packages = ["clang-19", "wasi-libc", "libclang-rt-19-dev-wasm32"];
        debian::ensure(workshop, &packages, clang_present)?;
        let work = work_folder(workshop, "tiny-c", WIT_SUMMARIES)?;
        for input in &inputs[..2] {
            let object = work
                .join(input.file_stem().expect("both are files"))
                .with_extension("o");
            let mut clang = workshop.command(CLANG);
            clang
                .args(CLANG_FLAGS)
                .arg("-I")
                .arg(&generated)
                .arg("-c")
                .arg(input)
                .arg("-o")
                .arg(object);
            let name = format!(
                "C guest {}",
                input.file_name().unwrap_or_default().to_string_lossy()
            );
            workshop.steps.command(&name, &mut clang)?;
        }
        let mut link = toolchain.linker(workshop);
        link.current_dir(&work).args([
            "--no-entry",
            "--strip-all",
            "-z",
            "stack-size=131072",
            "plugin.o",
            "adapter.o",
        ]);
        link.arg(generated.join("adapter_component_type.o")).args([
            "-L/usr/lib/wasm32-wasi",
            "-lc",
            BUILTINS,
        ]);
        workshop
            .steps
            .command("C guest link", link.args(["-o", "built.wasm"]))?;
        place(&work.join("built.wasm"), &target)
    })
}

const CLANG: &str = "clang-19";
const CLANG_FLAGS: [&str; 5] = [
    "--target=wasm32-wasi",
    "--sysroot=/usr",
    "-isystem",
    "/usr/include/wasm32-wasi",
    "-O2",
];
const BUILTINS: &str = "/usr/lib/llvm-19/lib/clang/19/lib/wasi/libclang_rt.builtins-wasm32.a";

fn clang_present() -> bool {
    debian::succeeds(std::process::Command::new(CLANG).arg("--version"))
        && Path::new("/usr/lib/wasm32-wasi/libc.a").exists()
        && Path::new(BUILTINS).exists()
}

fn interface(workshop: &XtaskContext, version: &str) -> PathBuf {
    workshop.repository.join(version).join("weir-plugin.wit")
}

/// Makes an empty folder with the interface in `wit/`: the tools expect it below the folder they run in.
fn work_folder(workshop: &XtaskContext, name: &str, version: &str) -> Result<PathBuf, StepFailure> {
    let folder = workshop.cache.join("guests").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("wit"))
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    copy(
        &interface(workshop, version),
        &folder.join("wit/weir-plugin.wit"),
    )?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> Result<(), StepFailure> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|error| format!("cannot copy {}: {error}", from.display()).into())
}

/// Makes a guest, unless the one in its place was made from the same inputs by the same recipe. Their times are meaningless,
/// since clones of different ages share the cache.
fn make(
    target: &Path,
    inputs: &[PathBuf],
    build: impl FnOnce() -> Result<(), StepFailure>,
) -> Result<(), StepFailure> {
    let mut hasher = DefaultHasher::new();
    include_str!("guests.rs").hash(&mut hasher);
    for input in inputs {
        fs::read(input)
            .map_err(|error| format!("cannot read {}: {error}", input.display()))?
            .hash(&mut hasher);
    }
    let (made_of, stamp) = (
        format!("{:016x}", hasher.finish()),
        target.with_extension("made-of"),
    );
    if target.exists() && fs::read_to_string(&stamp).is_ok_and(|before| before == made_of) {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp);
    build()?;
    write(&stamp, &made_of)
}
