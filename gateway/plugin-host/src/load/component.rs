//! Turns the bytes of a file into code that can be instantiated: imports are checked, exports found.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use sha2::{Digest as _, Sha256};
use wasmtime::component::{Component, Linker};
use weir_files::embedded::EmbeddedFile;

use crate::{
    bindings::v0_1::exports::weir::plugin::{about, collections, items, summaries, tools},
    engine::{EnginePair, EngineSize},
    guest::GuestState,
    imports,
    plugin::{ComponentCode, PluginCode},
};

mod cache;
mod notice;

pub(super) use cache::ComponentCache;

const ABOUT: &str = "weir:plugin/about@0.1.0";
const COLLECTIONS: &str = "weir:plugin/collections@0.1.0";
const SUMMARIES: &str = "weir:plugin/summaries@0.1.2";
const TOOLS: &str = "weir:plugin/tools@0.1.1";
const ITEMS: &str = "weir:plugin/items@0.1.1";
/// The line of interface versions this gateway speaks.
const INTERFACE: &str = "0.1.";
const WASI: &str = "0.2.";
const WASI_PACKAGES: [&str; 5] = [
    "wasi:io/",
    "wasi:clocks/",
    "wasi:random/",
    "wasi:cli/",
    "wasi:filesystem/",
];
/// Above it there is an interpreter inside: such components need the large engine.
const SMALL_MAX_BYTES: usize = 2 << 20;

/// The bytes of a component.
pub(super) enum ComponentBytes {
    /// Those of a file.
    Read(Vec<u8>),
    /// Those inside the program.
    Embedded(EmbeddedFile),
}

impl ComponentBytes {
    fn len(&self) -> usize {
        match self {
            Self::Read(bytes) => bytes.len(),
            Self::Embedded(file) => file.len(),
        }
    }

    fn read(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Read(bytes) => bytes.into(),
            Self::Embedded(file) => file.read().into(),
        }
    }
}

/// A component that can be tried.
pub(super) struct PreparedComponent {
    pub(super) digest: String,
    pub(super) size: EngineSize,
    pub(super) code: Arc<PluginCode>,
    pub(super) notes: Vec<String>,
}

/// The settings for compiling and linking a component.
pub(super) struct CompileContext {
    pub(super) engines: &'static EnginePair,
    pub(super) is_serving: bool,
    pub(super) cache: Arc<ComponentCache>,
    pub(super) linkers: Arc<EngineLinkers>,
}

/// The imports of plugins, for each engine. They are made when a component needs them.
#[derive(Default)]
pub(super) struct EngineLinkers {
    small: OnceLock<Result<Linker<GuestState>, String>>,
    large: OnceLock<Result<Linker<GuestState>, String>>,
}

impl EngineLinkers {
    fn get(&self, engines: &EnginePair, size: EngineSize) -> Result<Linker<GuestState>, String> {
        let made = match size {
            EngineSize::Small => &self.small,
            EngineSize::Large => &self.large,
        };
        let make = || {
            imports::linker(engines, size)
                .map_err(|error| format!("linking what plugins import: {error:#}"))
        };
        made.get_or_init(make).clone()
    }
}

impl CompileContext {
    /// Compiles and links. `name` is what the log calls the plugin while it is compiled.
    pub(super) fn run(
        &self,
        name: &str,
        bytes: &ComponentBytes,
        digest: String,
    ) -> Result<PreparedComponent, String> {
        if let ComponentBytes::Read(bytes) = bytes {
            check_header(bytes)?;
        }
        let sizes: &[EngineSize] = if bytes.len() > SMALL_MAX_BYTES {
            &[EngineSize::Large]
        } else {
            &[EngineSize::Small, EngineSize::Large]
        };
        let (component, size) = match self.cache.get(&digest, sizes, self.engines) {
            Some(found) => found,
            None => {
                let compiler = self.engines.compiler(self.is_serving);
                let bytes = bytes.read();
                let code = notice::compile(name, || compiler.precompile_component(&bytes));
                let code = code.map_err(|error| format!("it does not compile: {error:#}"))?;
                self.cache.put(&digest, &code, sizes, self.engines)?
            }
        };
        link(component, size, digest, |size| {
            self.linkers.get(self.engines, size)
        })
    }
}

/// Returns the SHA-256 in hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn link(
    component: Component,
    size: EngineSize,
    digest: String,
    linker: impl Fn(EngineSize) -> Result<Linker<GuestState>, String>,
) -> Result<PreparedComponent, String> {
    let network = check_imports(&component)?;
    let mut linker = linker(size)?;
    imports::stub_network(&mut linker, &component, &network)
        .map_err(|error| format!("its network imports cannot be stubbed: {error:#}"))?;
    let notes = if network.is_empty() {
        Vec::new()
    } else {
        vec![format!(
            "it imports {}: those functions trap, since plugins have no direct network access",
            list(&network)
        )]
    };
    check_exports(&component)?;
    let linked = linker.instantiate_pre(&component).map_err(|error| {
        format!("its imports do not match what this gateway provides: {error:#}")
    })?;
    let mismatch = |error: wasmtime::Error| {
        format!("its exports do not match the plugin interface: {error:#}")
    };
    let about = about::GuestIndices::new(&linked).map_err(mismatch)?;
    let collections =
        exports(&component, COLLECTIONS).then(|| collections::GuestIndices::new(&linked));
    let summaries = exports(&component, SUMMARIES).then(|| summaries::GuestIndices::new(&linked));
    let tools = exports(&component, TOOLS).then(|| tools::GuestIndices::new(&linked));
    let items = exports(&component, ITEMS).then(|| items::GuestIndices::new(&linked));
    let code = ComponentCode {
        component: linked,
        about,
        collections: collections.transpose().map_err(mismatch)?,
        summaries: summaries.transpose().map_err(mismatch)?,
        tools: tools.transpose().map_err(mismatch)?,
        items: items.transpose().map_err(mismatch)?,
    };
    Ok(PreparedComponent {
        digest,
        size,
        code: Arc::new(PluginCode::Component(code)),
        notes,
    })
}

/// Recognizes the common mistakes and names them.
fn check_header(bytes: &[u8]) -> Result<(), String> {
    match bytes.get(..8) {
        Some([0, b'a', b's', b'm', 0x0d, 0, 1, 0]) => Ok(()),
        Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => {
            Err("it is a core module, not a component: link it with `wasm-component-ld` or build for wasm32-wasip2"
                .into())
        }
        Some([0, b'a', b's', b'm', ..]) => Err("it is a WebAssembly file of an unknown version".into()),
        // These are ELF, Mach-O and PE.
        Some([0x7f, b'E', b'L', b'F', ..] | [0xcf, 0xfa, 0xed, 0xfe, ..] | [b'M', b'Z', ..]) => {
            Err("it is native code, which is run only where `[plugins.NAME] native` and `sha256` name it".into())
        }
        _ => Err("it is not a WebAssembly component".into()),
    }
}

/// Returns the imports of `wasi:sockets` and `wasi:http`, which get stubs. Other unknown imports are refused.
fn check_imports(component: &Component) -> Result<Vec<String>, String> {
    let mut network = Vec::new();
    let mut problems = Vec::new();
    let ty = component.component_type();
    for (name, _) in ty.imports(component.engine()) {
        let version = name.split_once('@').map_or("", |(_, version)| version);
        if name.starts_with("weir:plugin/") {
            if !version.starts_with(INTERFACE) {
                problems.push(format!(
                    "it needs `{name}`; this gateway speaks version {INTERFACE}x of the interface"
                ));
            }
        } else if name.starts_with("wasi:sockets/") || name.starts_with("wasi:http/") {
            network.push(name.to_owned());
        } else if WASI_PACKAGES
            .iter()
            .any(|package| name.starts_with(package))
        {
            if !version.starts_with(WASI) {
                problems.push(format!(
                    "it needs `{name}`; this gateway provides WASI {WASI}x"
                ));
            }
        } else {
            problems.push(format!("it imports `{name}`, which no plugin is given"));
        }
    }
    if problems.is_empty() {
        Ok(network)
    } else {
        Err(problems.join("; "))
    }
}

/// Looks exports up by name, since a component that exports nothing would link too. It must describe itself, and be
/// able to do something.
fn check_exports(component: &Component) -> Result<(), String> {
    let mut missing = Vec::new();
    if !exports(component, ABOUT) {
        missing.push(format!("`{ABOUT}`"));
    }
    if !exports(component, COLLECTIONS) && !exports(component, TOOLS) {
        missing.push(format!("`{COLLECTIONS}` or `{TOOLS}`"));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let ty = component.component_type();
    let other: Vec<String> = ty
        .exports(component.engine())
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.starts_with("weir:plugin/"))
        .collect();
    let found = if other.is_empty() {
        "no interface of a plugin".to_owned()
    } else {
        list(&other)
    };
    Err(format!(
        "it does not export {}; it exports {found}",
        missing.join(", ")
    ))
}

/// Returns `true` if the component exports the interface, in any version of the same line.
fn exports(component: &Component, interface: &str) -> bool {
    component.get_export_index(None, interface).is_some()
}

fn list(names: &[impl AsRef<str>]) -> String {
    names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect::<Vec<_>>()
        .join(", ")
}
