//! `weir-samples SOURCE TARGET`: lays out the demo's data that is generated or written to.
//!
//! Tracked files are only read. A file that the target folder already has is left as it is, unless its source is newer.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use rusqlite::{Connection, params};

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [source, target] = arguments.as_slice() else {
        bail!("usage: weir-samples SOURCE_FOLDER TARGET_FOLDER")
    };
    fs::create_dir_all(target).with_context(|| format!("cannot create {}", target.display()))?;
    build_once(
        &source.join("seattle-weather.csv"),
        &target.join("weather.sqlite"),
        weather_database,
    )?;
    copy_once(&source.join("tickets.csv"), &target.join("tickets.csv"))
}

/// Copies a file that is never replaced, since people write to it while the demo runs.
fn copy_once(source: &Path, target: &Path) -> Result<()> {
    if target.exists() {
        return Ok(());
    }
    fs::copy(source, target).with_context(|| format!("cannot copy {}", source.display()))?;
    Ok(())
}

/// Builds a file next to its place and moves it there whole, so that an interrupted run leaves nothing half done.
fn build_once(
    source: &Path,
    target: &Path,
    build: impl Fn(&Path, &Path) -> Result<()>,
) -> Result<()> {
    let written = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let source_time =
        written(source).with_context(|| format!("cannot read {}", source.display()))?;
    if written(target).is_ok_and(|time| time > source_time) {
        return Ok(());
    }
    let draft = target.with_extension("tmp");
    let _ = fs::remove_file(&draft);
    build(source, &draft).with_context(|| format!("cannot build {}", target.display()))?;
    fs::rename(&draft, target).with_context(|| format!("cannot place {}", target.display()))
}

fn weather_database(source: &Path, target: &Path) -> Result<()> {
    let mut database = Connection::open(target)?;
    database.execute_batch(
        "CREATE TABLE days (
            date             DATE PRIMARY KEY NOT NULL,
            precipitation_mm REAL NOT NULL,
            temp_max_c       REAL NOT NULL,
            temp_min_c       REAL NOT NULL,
            wind_ms          REAL NOT NULL,
            weather          TEXT NOT NULL
        )",
    )?;
    let transaction = database.transaction()?;
    for row in csv::Reader::from_path(source)?.deserialize() {
        let (date, rain, high, low, wind, weather): (String, f64, f64, f64, f64, String) = row?;
        let values = params![date, rain, high, low, wind, weather];
        transaction.execute("INSERT INTO days VALUES (?1, ?2, ?3, ?4, ?5, ?6)", values)?;
    }
    transaction.commit()?;
    Ok(())
}
