//! Reads from the syntax tree which module of a crate uses which, and compares that with `layers.txt`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Item, UseTree, visit::Visit};

/// A module, the modules it uses, and for each one a place that does.
pub(crate) type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// The rows of one crate: a module, and the modules it may use.
pub(crate) struct Layers(Vec<(String, BTreeSet<String>)>);

impl Layers {
    /// Reads rows such as `call: catalogue gateway`, from the lowest module to the highest.
    pub(crate) fn read(rows: &str) -> Self {
        let row = |line: &str| {
            let (module, allowed) = line.split_once(':').unwrap_or((line, ""));
            (
                module.trim().to_owned(),
                allowed.split_whitespace().map(str::to_owned).collect(),
            )
        };
        let lines = rows
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(lines.map(row).collect())
    }

    /// Returns everything in `uses` that the rows do not allow, and every row that allows an arrow back up.
    /// `in_circles` allows arrows both ways.
    pub(crate) fn problems(&self, place: &str, in_circles: bool, uses: &Uses) -> Vec<String> {
        let mut problems = Vec::new();
        let rows: BTreeMap<&str, &BTreeSet<String>> = self
            .0
            .iter()
            .map(|(module, allowed)| (module.as_str(), allowed))
            .collect();
        let mut lower = BTreeSet::new();
        for (module, allowed) in &self.0 {
            for higher in allowed
                .iter()
                .filter(|used| !in_circles && !lower.contains(used.as_str()))
            {
                problems
                    .push(format!("{place}: the row of `{module}` allows `{higher}`, which does not stand below it"));
            }
            if !uses.contains_key(module) {
                problems.push(format!("{place}: the row of `{module}` has no module"));
            }
            lower.insert(module.as_str());
        }
        for (module, used) in uses {
            let Some(allowed) = rows.get(module.as_str()) else {
                problems.push(format!(
                    "{place}: the module `{module}` has no row in tests/tidy/layers.txt"
                ));
                continue;
            };
            // A name that is not a module is an item of the crate's root.
            let is_module = |other: &str| uses.contains_key(other);
            for (other, at) in used
                .iter()
                .filter(|(other, _)| is_module(other) && !allowed.contains(*other))
            {
                problems.push(format!("{at}: `{module}` may not use `{other}`"));
            }
            for unused in allowed.iter().filter(|other| !used.contains_key(*other)) {
                problems.push(format!(
                    "{place}: the row of `{module}` allows `{unused}`, which it does not use"
                ));
            }
        }
        problems
    }
}

/// Adds what one file of a crate uses. `file` is its path below `src`; the crate's root is not a module.
pub(crate) fn add(uses: &mut Uses, file: &Path, shown: &str, text: &str) {
    let mut parts: Vec<String> = file
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let last = parts.pop().unwrap_or_default();
    let stem = last.trim_end_matches(".rs");
    if matches!(stem, "tests" | "testing") {
        return;
    }
    if stem != "mod" {
        parts.push(stem.to_owned());
    }
    let [module, ..] = parts.as_slice() else {
        return;
    };
    if parts.len() == 1 && matches!(module.as_str(), "lib" | "main") {
        return;
    }
    let own = uses.entry(module.clone()).or_default();
    let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let mut seen = Seen {
        module: parts.clone(),
        paths: Vec::new(),
    };
    file.items.iter().for_each(|item| seen.item(item));
    for used in seen.paths.into_iter().filter(|used| used != module) {
        own.entry(used).or_insert_with(|| shown.to_owned());
    }
}

/// Collects the top-level modules that paths lead to.
struct Seen {
    /// The module of the code.
    module: Vec<String>,
    paths: Vec<String>,
}

impl Seen {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Mod(inner) if inner.content.is_some() => {
                if is_for_tests(&inner.attrs) {
                    return;
                }
                self.module.push(inner.ident.to_string());
                let items = inner.content.iter().flat_map(|(_, items)| items);
                items.for_each(|item| self.item(item));
                self.module.pop();
            }
            item => self.visit_item(item),
        }
    }

    fn path(&mut self, segments: &[String]) {
        let mut base = self.module.clone();
        let mut rest = segments;
        match rest.first().map(String::as_str) {
            Some("crate") => (base, rest) = (Vec::new(), &rest[1..]),
            Some("self") => rest = &rest[1..],
            Some("super") => {}
            _ => return,
        }
        while let [first, others @ ..] = rest
            && first == "super"
        {
            base.pop();
            rest = others;
        }
        base.extend(rest.iter().cloned());
        // A type or a function of the crate's root is not a module.
        if let Some(top) = base
            .first()
            .filter(|top| top.starts_with(|c: char| c.is_lowercase()) && base.len() > 1)
        {
            self.paths.push(top.clone());
        }
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
            UseTree::Name(name) => self.leaf(before, &name.ident.to_string()),
            UseTree::Rename(rename) => self.leaf(before, &rename.ident.to_string()),
            UseTree::Glob(_) => self.leaf(before, "*"),
        }
    }

    fn leaf(&mut self, before: &[String], name: &str) {
        let mut path = before.to_vec();
        path.push(name.to_owned());
        // `use crate::registry;` names the module itself.
        path.push("*".to_owned());
        self.path(&path);
    }

    /// Reads paths from the tokens of a macro's input, which is not parsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons < 2 {
                        self.path(&std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.path(&std::mem::take(&mut path));
                    self.tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.path(&std::mem::take(&mut path))
                }
            }
        }
        self.path(&path);
    }
}

impl<'ast> Visit<'ast> for Seen {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.path(&segments);
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        syn::visit::visit_macro(self, call);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .meta
                .require_list()
                .is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(file: &str, text: &str) -> Vec<String> {
        let mut uses = Uses::new();
        add(&mut uses, Path::new(file), file, text);
        uses.into_values().flat_map(BTreeMap::into_keys).collect()
    }

    #[test]
    fn a_use_is_seen_however_it_is_written() {
        assert_eq!(
            uses(
                "call.rs",
                "use crate::{catalogue::{Tool, Other as O}, gateway};"
            ),
            ["catalogue", "gateway"]
        );
        assert_eq!(
            uses("call/limits.rs", "use super::super::identity::Caller;"),
            ["identity"]
        );
        assert_eq!(
            uses(
                "call/limits.rs",
                "use super::CallError; use self::inner::A;"
            ),
            [""; 0]
        );
        assert_eq!(
            uses(
                "call.rs",
                "fn f(a: &crate::wire::Id) -> super::era::Era { todo() }"
            ),
            ["era", "wire"]
        );
        assert_eq!(
            uses(
                "call.rs",
                "fn f() { println!(\"{}\", crate::wire::name(1)); }"
            ),
            ["wire"]
        );
        assert_eq!(
            uses("call.rs", "mod inner { use super::super::admin::A; }"),
            ["admin"]
        );
        assert_eq!(
            uses(
                "call.rs",
                "#[cfg(test)] mod tests { use crate::testing::gateway; }"
            ),
            [""; 0]
        );
    }

    #[test]
    fn what_no_row_allows_is_a_problem() {
        let mut uses = Uses::new();
        add(
            &mut uses,
            Path::new("low.rs"),
            "low.rs",
            "use crate::high::A;",
        );
        add(&mut uses, Path::new("high.rs"), "high.rs", "");
        let problems = |rows: &str| Layers::read(rows).problems("here", false, &uses);
        assert_eq!(
            problems("low:\nhigh:"),
            ["low.rs: `low` may not use `high`"]
        );
        assert_eq!(
            problems("low: high\nhigh:"),
            ["here: the row of `low` allows `high`, which does not stand below it"]
        );
        assert_eq!(
            Layers::read("low: high\nhigh:").problems("here", true, &uses),
            [""; 0]
        );
        assert_eq!(problems("high:\nlow: high"), [""; 0]);
        assert_eq!(problems("low:").len(), 2, "no module without a row");
        assert_eq!(
            problems("high: low\nlow: high\nother:").len(),
            3,
            "and no row without a module"
        );
    }
}
