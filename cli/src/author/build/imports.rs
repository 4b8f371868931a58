//! Says what to do about an import that a plugin in JavaScript cannot make.

use std::{fs, path::Path};

/// Modules of Node itself, which are imported without `node:` too.
const NODE: [&str; 24] = [
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "crypto",
    "dns",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "module",
    "net",
    "os",
    "path",
    "process",
    "readline",
    "stream",
    "timers",
    "tls",
    "url",
    "util",
    "worker_threads",
];

/// Returns other words for the error of a build, if it is of an import.
pub(super) fn explain(folder: &Path, error: &str) -> Option<String> {
    explain_not_found(folder, error)
        .or_else(|| explain_without_export(folder, error))
        .or_else(|| explain_common_js(error))
        .or_else(|| explain_data(error))
}

/// Explains a module that is not there.
fn explain_not_found(folder: &Path, error: &str) -> Option<String> {
    let (_, rest) = error.split_once("Error resolving module '")?;
    let (module, rest) = rest.split_once("' from '/")?;
    let (file, _) = rest.split_once('\'')?;
    if file.ends_with(".weir/build/entry.js") {
        return Some(
            "plugin.js does not exist: a plugin begins with this file, which `tsc` writes from plugin.ts if there is a tsconfig.json"
                .to_owned(),
        );
    }
    if module.starts_with(['.', '/']) {
        return Some(format!(
            "{file} imports `{module}`, and there is no such file"
        ));
    }
    let package = package(module);
    if module.starts_with("node:") || NODE.contains(&package) {
        return Some(format!(
            "{file} imports `{module}`, which is a part of Node: a plugin has no Node, and reaches files, services and databases through \
             `files`, `http` and `sql` of sdk/weir.js"
        ));
    }
    if folder.join("node_modules").join(package).exists() {
        return Some(format!(
            "{file} imports `{module}`, and the package `{package}` has no such file"
        ));
    }
    Some(format!(
        "{file} imports `{module}`, which is not in node_modules: run `npm install {package}`, and build again"
    ))
}

/// Explains a name that a module does not export. One in CommonJS exports none.
fn explain_without_export(folder: &Path, error: &str) -> Option<String> {
    let (_, rest) = error.split_once("Could not find export '")?;
    let (name, rest) = rest.split_once("' in module '/")?;
    let (file, _) = rest.split_once('\'')?;
    let source = fs::read_to_string(folder.join(file)).unwrap_or_default();
    if is_common_js(&source) {
        return Some(write_instead(file));
    }
    Some(match name {
        "default" => format!(
            "{file} has no default export: write `import {{ … }}` with the names that it exports"
        ),
        _ => format!("{file} does not export `{name}`"),
    })
}

/// Explains what a module in CommonJS looks for, where it was imported without a name.
fn explain_common_js(error: &str) -> Option<String> {
    let (first, _) = error.split_once('\n')?;
    let name = first.strip_suffix(" is not defined")?;
    if !["exports", "module", "require", "__dirname", "__filename"].contains(&name) {
        return None;
    }
    let (file, line) = place(error)?;
    Some(format!(
        "{file}, line {line}: {first}\n{}",
        write_instead(file)
    ))
}

/// Explains a file of data, which is read as a program.
fn explain_data(error: &str) -> Option<String> {
    let (file, _) = place(error)?;
    let name = file.strip_suffix(".json")?;
    Some(format!(
        "{file} is not JavaScript, and a plugin can import nothing else: write `export default` before the same text in {name}.js"
    ))
}

/// Returns the file of the first place in a stack, and its line.
fn place(error: &str) -> Option<(&str, &str)> {
    let (_, stack) = error.split_once("\n    at ")?;
    let line = stack.lines().next()?;
    let written = line.rsplit_once('(').map_or(line, |(_, place)| place);
    let (file, place) = written.strip_prefix('/')?.split_once(':')?;
    Some((file, place.split(':').next()?))
}

/// Says what is written in place of a module in CommonJS.
fn write_instead(file: &str) -> String {
    let Some((_, inside)) = file.rsplit_once("node_modules/") else {
        return format!(
            "{file} is an ES module: write `import` in place of `require`, and `export` in place of `module.exports`"
        );
    };
    let package = package(inside);
    let name = package.rsplit('/').next().unwrap_or(package);
    format!(
        "the package `{package}` is written in CommonJS, and a plugin imports only ES modules. Import a build of it that is one, or make one:\n\n  \
         npx esbuild {file} --bundle --format=esm --outfile={name}.js\n\n\
         and write `import it from \"./{name}.js\"`"
    )
}

/// Returns the name of the package that a module belongs to.
fn package(module: &str) -> &str {
    let of_a_scope = usize::from(module.starts_with('@'));
    match module.match_indices('/').nth(of_a_scope) {
        Some((end, _)) => &module[..end],
        None => module,
    }
}

fn is_common_js(source: &str) -> bool {
    let exports = ["module.exports", "exports.", "exports[", "require("];
    let is_module = |line: &str| line.starts_with("export ") || line.starts_with("import ");
    exports.iter().any(|words| source.contains(words)) && !source.lines().any(is_module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_with_its_scope() {
        for (module, expected) in [
            ("lodash", "lodash"),
            ("lodash/fp", "lodash"),
            ("@a/b/c.js", "@a/b"),
            ("@a", "@a"),
        ] {
            assert_eq!(package(module), expected);
        }
    }

    #[test]
    fn common_js_is_what_exports_without_the_word() {
        assert!(is_common_js("\"use strict\";\nexports.a = 1;\n"));
        assert!(is_common_js("module.exports = require(\"./lib\");"));
        assert!(!is_common_js(
            "export const exports = 1;\nmodule.exports = 2;"
        ));
        assert!(!is_common_js("const a = 1;"));
    }

    #[test]
    fn the_first_place_of_a_stack_is_that_of_the_error() {
        let stack = "require is not defined\n    at <anonymous> (/plugin.js:3:11)\n    at <anonymous> (/a.js:1:1)";
        assert_eq!(place(stack), Some(("plugin.js", "3")));
        assert_eq!(
            place("expecting ';'\n    at /a/data.json:1:5"),
            Some(("a/data.json", "1"))
        );
        assert_eq!(place("a word"), None);
    }
}
