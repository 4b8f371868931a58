//! The files of a new plugin's folder, from what the program carries.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::ValueEnum;
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

use crate::sources;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TemplateKind {
    /// Functions, each of which is a tool
    Tools,
    /// An adapter: records of a source, which a contract turns into tools
    Collection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PluginLanguage {
    Rust,
    Js,
    Python,
    C,
}

impl TemplateKind {
    fn folder(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Collection => "collection",
        }
    }

    /// The generated header of the interface in C.
    fn c_header(self) -> &'static str {
        match self {
            Self::Tools => "plugin-sdk/c/tools/toolbox.h",
            Self::Collection => "plugin-sdk/c/collection/adapter.h",
        }
    }
}

impl PluginLanguage {
    fn folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Js => "js",
            Self::Python => "python",
            Self::C => "c",
        }
    }
}

const TEMPLATES: &str = "plugin-sdk/templates/";
/// The pages that the SDK in Rust and its errors name.
const CITED: [&str; 3] = [
    "docs/matches.md",
    "docs/tools-from-code.md",
    "docs/values.md",
];

/// Every file of a plugin of that name, by its path in the new folder.
pub(super) fn files(
    name: &str,
    kind: TemplateKind,
    language: PluginLanguage,
) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for (from, to) in rows(kind, language) {
        for (path, content) in sources().iter().filter(|(path, _)| path.starts_with(&from)) {
            let rest = &path[from.len()..];
            // The folder of a language has one folder for each kind, and each has its own row.
            let of_a_kind = ["tools/", "collection/"]
                .iter()
                .any(|kind| rest.starts_with(kind));
            if to.is_empty() && of_a_kind && !from.ends_with(&format!("{}/", kind.folder())) {
                continue;
            }
            files.push((
                PathBuf::from(format!("{to}{}", rest.replace("dot-", "."))),
                filled(content, name),
            ));
        }
    }
    if language == PluginLanguage::C {
        source(kind.c_header())?;
    }
    if language == PluginLanguage::Rust {
        files.push(("sdk/Cargo.toml".into(), alone("plugin-sdk/Cargo.toml")?));
        files.push((
            "sdk/macros/Cargo.toml".into(),
            alone("plugin-sdk/macros/Cargo.toml")?,
        ));
        for page in CITED {
            let text = std::str::from_utf8(source(page)?)?;
            files.push((page.into(), without_links(text).into_bytes()));
        }
        // The versions this program was made and tested with; cargo drops those that the plugin does not use.
        files.push(("Cargo.lock".into(), source("Cargo.lock")?.to_vec()));
    }
    anyhow::ensure!(
        !files.is_empty(),
        "this program was built without templates"
    );
    Ok(files)
}

/// Returns the files of a template and their targets. `to` is a folder with its slash, or nothing for the new folder itself.
fn rows(kind: TemplateKind, language: PluginLanguage) -> Vec<(String, &'static str)> {
    let mut rows = vec![
        (format!("{TEMPLATES}all/"), ""),
        (format!("{TEMPLATES}all/{}/", kind.folder()), ""),
        (format!("{TEMPLATES}{}/", language.folder()), ""),
        (
            format!("{TEMPLATES}{}/{}/", language.folder(), kind.folder()),
            "",
        ),
    ];
    // An adapter in another language than Rust is written against the interface itself.
    let interface = match (kind, language) {
        (TemplateKind::Tools, _) => "plugin-sdk/wit/0.1.1/",
        (TemplateKind::Collection, PluginLanguage::C) => "plugin-sdk/wit/0.1.2/",
        (TemplateKind::Collection, _) => "plugin-sdk/wit/0.1.0/",
    };
    match language {
        PluginLanguage::Rust => {
            rows.push(("plugin-sdk/src/".to_owned(), "sdk/src/"));
            rows.push(("plugin-sdk/macros/src/".to_owned(), "sdk/macros/src/"));
            rows.push(("plugin-sdk/wit/".to_owned(), "sdk/wit/"));
        }
        other => {
            rows.push((interface.to_owned(), "sdk/wit/"));
            rows.push((format!("plugin-sdk/{}/all/", other.folder()), "sdk/"));
            rows.push((
                format!("plugin-sdk/{}/{}/", other.folder(), kind.folder()),
                "sdk/",
            ));
        }
    }
    rows
}

/// Returns a page in which links to pages that are not included are plain text.
fn without_links(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find("](") {
        let (before, link) = rest.split_at(at);
        let end = link.find(')').map_or(link.len(), |end| end + 1);
        let target = link[2..end].trim_end_matches(')');
        let file = target.split('#').next().unwrap_or_default();
        let comes_along = |page: &&str| page.strip_prefix("docs/") == Some(file);
        match before.rfind('[').filter(|_| !CITED.iter().any(comes_along)) {
            Some(open) => {
                text.push_str(&before[..open]);
                text.push_str(&before[open + 1..]);
            }
            None => {
                text.push_str(before);
                text.push_str(&link[..end]);
            }
        }
        rest = &link[end..];
    }
    text.push_str(rest);
    text
}

fn filled(content: &[u8], name: &str) -> Vec<u8> {
    match std::str::from_utf8(content) {
        Ok(text) => text.replace("{{name}}", name).into_bytes(),
        Err(_) => content.to_vec(),
    }
}

/// Returns a file of this repository that the program has inside.
pub(super) fn source(path: &str) -> anyhow::Result<&'static [u8]> {
    let found = sources().iter().find(|(source, _)| *source == path);
    found
        .map(|(_, content)| content.as_slice())
        .with_context(|| format!("this program was built without {path}; `cargo xtask plugins`, then another build, adds it"))
}

fn document(path: &str) -> anyhow::Result<DocumentMut> {
    Ok(std::str::from_utf8(source(path)?)?.parse()?)
}

/// Returns a manifest of our workspace without the workspace: inherited keys are written out.
fn alone(path: &str) -> anyhow::Result<Vec<u8>> {
    let workspace = document("Cargo.toml")?;
    let mut manifest = document(path)?;
    manifest.remove("lints");
    manifest.remove("dev-dependencies");
    let package = manifest["package"]
        .as_table_mut()
        .context("a manifest has a package")?;
    let inherited: Vec<String> = package
        .iter()
        .filter(|(_, item)| inherits(item))
        .map(|(key, _)| key.to_owned())
        .collect();
    for key in inherited {
        package.insert(&key, workspace["workspace"]["package"][&key].clone());
    }
    let versions = workspace["workspace"]["dependencies"]
        .as_table()
        .context("the workspace names versions")?;
    for table in dependency_tables(&mut manifest) {
        let names: Vec<String> = table
            .iter()
            .filter(|(_, item)| inherits(item))
            .map(|(key, _)| key.to_owned())
            .collect();
        for name in names {
            let mut written = match versions.get(&name).and_then(Item::as_value) {
                Some(Value::InlineTable(written)) => written.clone(),
                Some(version) => InlineTable::from_iter([("version", version.clone())]),
                None => anyhow::bail!("{path}: the workspace names no version of {name}"),
            };
            if name == "weir-plugin-sdk-macros" {
                written.insert("path", "macros".into());
            }
            if let Some(optional) = table[&name].get("optional").and_then(Item::as_value) {
                written.insert("optional", optional.clone());
            }
            table.insert(&name, Item::Value(Value::InlineTable(written)));
        }
    }
    Ok(manifest.to_string().into_bytes())
}

fn inherits(item: &Item) -> bool {
    item.get("workspace").and_then(Item::as_bool) == Some(true)
}

/// `[dependencies]`, and those of a target.
fn dependency_tables(manifest: &mut DocumentMut) -> Vec<&mut Table> {
    let mut tables = Vec::new();
    for (key, item) in manifest.iter_mut() {
        match key.get() {
            "dependencies" => tables.extend(item.as_table_mut()),
            "target" => {
                for (_, target) in item.as_table_mut().into_iter().flat_map(Table::iter_mut) {
                    tables.extend(target.get_mut("dependencies").and_then(Item::as_table_mut));
                }
            }
            _ => {}
        }
    }
    tables
}
