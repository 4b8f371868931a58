//! Measures collections that are large: a CSV file of a million rows and one of five, against DuckDB and MCP Toolbox
//! with the same rows; a workbook and a REST service of a hundred thousand.

mod peers;
mod rows;

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{self, sleep},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::{
    machine::BenchMachine,
    place::{BenchPaths, free_port},
    postgres::PostgresServer,
    process::{MeasuredProcess, START_MAX},
    report::{BenchPart, Table, markdown, opening, within},
    weir::WeirInstance,
    wire::{self, BenchEndpoint, BenchQuestion},
};

const MILLION: usize = 1_000_000;
const HUNDRED_THOUSAND: usize = 100_000;
/// The bounds on the figures.
const LOOKUP_MS_MAX: f64 = 1.0;
const LOOKUP_GROWTH_MAX: f64 = 1.5;
const LIST_MS_MAX: f64 = 10.0;
const IMPORT_TIMES_MAX: f64 = 1.5;
const MEMORY_MB_MAX: f64 = 64.0;
const CREATE_TIMES_MAX: f64 = 2.0;
const PASS_TIMES_MAX: f64 = 1.2;
const DATABASE_TIMES_MAX: f64 = 1.1;
/// Questions of each kind.
const ASKED: usize = 200;
const ASKED_SLOWLY: usize = 5;
const CREATES: usize = 5;

/// The questions that are asked of everyone, in the order of the page.
pub(super) const QUESTIONS: [LargeQuestion; 8] = [
    LargeQuestion {
        what: "lookup by key",
        tool: "get_row",
        times: ASKED,
    },
    LargeQuestion {
        what: "list of 50, no condition",
        tool: "list_rows",
        times: ASKED,
    },
    LargeQuestion {
        what: "list of 50 by a status that a third has",
        tool: "list_by_status",
        times: ASKED,
    },
    LargeQuestion {
        what: "list of 50 by an amount that 500 reach",
        tool: "list_by_amount",
        times: ASKED,
    },
    LargeQuestion {
        what: "list of 50 by a part of a name, in one row of fifty",
        tool: "list_by_name",
        times: ASKED,
    },
    LargeQuestion {
        what: "the same by a part that no row has",
        tool: "list_by_no_name",
        times: ASKED_SLOWLY,
    },
    LargeQuestion {
        what: "how many have a status that a third has",
        tool: "count_by_status",
        times: ASKED_SLOWLY,
    },
    LargeQuestion {
        what: SUMMARY,
        tool: "sum_by_status",
        times: ASKED_SLOWLY,
    },
];
/// The question that reads every row.
const SUMMARY: &str = "the number and the sum of amounts of each status";

/// One question, asked with another value each time where it has one.
pub(super) struct LargeQuestion {
    what: &'static str,
    tool: &'static str,
    times: usize,
}

/// A server's figures: the median of each question, in milliseconds, in the order of [`QUESTIONS`].
type Answers = [Option<f64>; QUESTIONS.len()];

pub(crate) struct LargeResults {
    machine: BenchMachine,
    tables: Vec<(String, Table)>,
}

/// The measurements of a Weir over one CSV file.
struct LargeSheetFigures {
    answers: Answers,
    import_s: f64,
    memory_mb: f64,
    create_ms: f64,
    copy_ms: f64,
    pass_ms: f64,
}

pub(crate) fn measure(place: &BenchPaths, machine: BenchMachine) -> anyhow::Result<LargeResults> {
    let mut tables = Vec::new();
    let mut first_lookup = None;
    for rows in [MILLION, 5 * MILLION] {
        let csv = place.peer_folder("large")?.join("rows.csv");
        rows::csv(&csv, rows)?;
        let weir = sheet(place, &csv, rows).context("weir over a sheet")?;
        let sqlite = peers::sqlite(place, &csv)?;
        let said = |why: &anyhow::Error| eprintln!("    left out: {why:#}");
        let toolbox = peers::toolbox(place, rows).inspect_err(said).ok();
        let duckdb = peers::duckdb(place, &csv, rows).inspect_err(said).ok();
        let title = format!(
            "A CSV file of {rows} rows, {} MB",
            fs::metadata(&csv)?.len() / 1_000_000
        );
        tables.push((
            title,
            page_of(
                &weir,
                first_lookup,
                sqlite,
                toolbox.as_ref(),
                duckdb.as_ref(),
            ),
        ));
        first_lookup = first_lookup.or(weir.answers[0]);
    }
    for (title, rows, measured) in [
        ("A table in PostgreSQL", MILLION, table(place)),
        ("A workbook (XLSX)", HUNDRED_THOUSAND, workbook(place)),
        ("A REST service", HUNDRED_THOUSAND, service(place)),
    ] {
        let left_out = |why: anyhow::Error| vec![vec![format!("left out: {why:#}")]];
        tables.push((
            format!("{title} of {rows} rows"),
            measured.unwrap_or_else(left_out),
        ));
    }
    Ok(LargeResults { machine, tables })
}

fn page_of(
    weir: &LargeSheetFigures,
    first_lookup: Option<f64>,
    sqlite_s: f64,
    toolbox: Option<&Answers>,
    duckdb: Option<&peers::DuckDb>,
) -> Table {
    let head = [
        "",
        "Weir",
        "Toolbox over SQLite",
        "DuckDB, from the file",
        "DuckDB, imported",
        "the rule",
        "within it",
    ];
    let mut table: Table = vec![head.map(str::to_owned).to_vec()];
    let figure =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    for (at, ask) in QUESTIONS.iter().enumerate() {
        let max = match (ask.tool, first_lookup) {
            ("get_row", None) => LOOKUP_MS_MAX,
            ("get_row", Some(first)) => first * LOOKUP_GROWTH_MAX,
            ("count_by_status" | "sum_by_status", _) => weir.pass_ms * PASS_TIMES_MAX,
            _ => LIST_MS_MAX,
        };
        table.push(vec![
            format!("{}, p50 ms", ask.what),
            figure(weir.answers[at]),
            figure(toolbox.and_then(|answers| answers[at])),
            figure(duckdb.and_then(|duckdb| duckdb.file[at])),
            figure(duckdb.and_then(|duckdb| duckdb.imported[at])),
            format!("at most {max:.2}"),
            within(weir.answers[at].is_some_and(|found| found <= max)).to_owned(),
        ]);
    }
    let mut more = |what: &str, found: f64, peers: [String; 3], rule: String, holds: bool| {
        let [toolbox, file, imported] = peers;
        table.push(vec![
            what.to_owned(),
            format!("{found:.2}"),
            toolbox,
            file,
            imported,
            rule,
            within(holds).to_owned(),
        ]);
    };
    let none = || "–".to_owned();
    more(
        "from the first call to the index of its column; an import with an index on the key, s",
        weir.import_s,
        [
            format!("{sqlite_s:.2} (SQLite itself)"),
            none(),
            figure(duckdb.map(|duckdb| duckdb.import_s)),
        ],
        format!("at most {IMPORT_TIMES_MAX} times SQLite's"),
        weir.import_s <= IMPORT_TIMES_MAX * sqlite_s,
    );
    more(
        "memory over idle while indexes are built, MB",
        weir.memory_mb,
        [none(), none(), none()],
        format!("at most {MEMORY_MB_MAX}"),
        weir.memory_mb <= MEMORY_MB_MAX,
    );
    more(
        "a create, ms",
        weir.create_ms,
        [
            format!("{:.2} (the file copied and synced)", weir.copy_ms),
            none(),
            none(),
        ],
        format!("at most {CREATE_TIMES_MAX} times a copy"),
        weir.create_ms <= CREATE_TIMES_MAX * weir.copy_ms,
    );
    table.push(vec![
        format!(
            "one pass over the file, ms; a summary takes at most {PASS_TIMES_MAX} times as long"
        ),
        format!("{:.2}", weir.pass_ms),
    ]);
    table
}

/// Serves one file, and asks until its indexes exist; then measures.
fn sheet(place: &BenchPaths, csv: &Path, rows: usize) -> anyhow::Result<LargeSheetFigures> {
    let house = WeirInstance::empty(place, "weir")?;
    house.plugin(&place.repository.join("plugins/sheet.wasm"), "sheet")?;
    house.config(FILES)?;
    house.contract(
        "rows.json",
        &rows::contract(
            "sheet",
            &json!({ "connection": "data", "path": "rows.csv" }),
        ),
    )?;
    fs::copy(csv, house.data().join("rows.csv"))?;
    let (process, door) = serve(place, &house)?;
    let idle = process.memory();
    let peak = PeakMemory::default();
    let import_s = thread::scope(|scope| {
        scope.spawn(|| peak.watch(&process));
        let imported = import(&house, &door, rows);
        peak.ended.store(true, Ordering::Relaxed);
        imported
    })?;
    let answers = answers(LargeCaller::new(&door), rows, &QUESTIONS)?;
    let mut creates = Vec::new();
    for number in 0..CREATES {
        let arguments = json!({ "id": rows + 1 + number, "name": "somebody new", "status": "new", "amount": 1.5 });
        creates.push(timed(&mut LargeCaller::new(&door), "add_row", arguments)?);
    }
    process.stop()?;
    let memory_mb = peak.bytes.load(Ordering::Relaxed).saturating_sub(idle) as f64 / 1e6;
    Ok(LargeSheetFigures {
        answers,
        import_s,
        memory_mb,
        create_ms: median(creates),
        copy_ms: copies(&house, csv)?,
        pass_ms: passes(csv)?,
    })
}

const FILES: &str = "[connections.data]\nkind = \"files\"\npath = \"data\"\nwrite = true\n\
                     [plugins.sheet.grants]\ndata = \"write\"\n";

/// Asks for the key, and returns how many seconds passed until its index existed; then asks for the others.
fn import(house: &WeirInstance, door: &BenchEndpoint, rows: usize) -> anyhow::Result<f64> {
    let mut caller = LargeCaller::new(door);
    let began = Instant::now();
    // The last row: one near the beginning is found before an index would pay off, so none is built.
    timed(&mut caller, "get_row", json!({ "id": rows }))?;
    wait_for_indexes(house)?;
    // The last look found nothing new for as long as it took to be sure.
    let took = began.elapsed().saturating_sub(QUIET * LOOK).as_secs_f64();
    for ask in &QUESTIONS[1..] {
        // Questions that take more than a plugin may are left out where they are measured.
        let _ = timed(&mut caller, ask.tool, arguments(ask.tool, 0, rows));
    }
    wait_for_indexes(house)?;
    Ok(took)
}

const LOOK: Duration = Duration::from_millis(20);
const QUIET: u32 = 20;

/// Waits until indexes exist and none is being built.
fn wait_for_indexes(house: &WeirInstance) -> anyhow::Result<()> {
    let (began, mut quiet) = (Instant::now(), 0);
    while quiet < QUIET {
        if began.elapsed() > Duration::from_secs(300) {
            bail!("the indexes are not built");
        }
        sleep(LOOK);
        let plugins = fs::read_dir(house.state().join("indexes"))
            .into_iter()
            .flatten()
            .flatten();
        let files: Vec<_> = plugins
            .flat_map(|plugin| fs::read_dir(plugin.path()).into_iter().flatten())
            .collect();
        let built = |file: &fs::DirEntry| file.file_name().to_string_lossy().ends_with(".index");
        quiet = if !files.is_empty() && files.iter().flatten().all(built) {
            quiet + 1
        } else {
            0
        };
    }
    Ok(())
}

/// The most memory that a process was seen to have.
#[derive(Default)]
struct PeakMemory {
    bytes: AtomicU64,
    ended: AtomicBool,
}

impl PeakMemory {
    fn watch(&self, process: &MeasuredProcess) {
        while !self.ended.load(Ordering::Relaxed) {
            self.bytes.fetch_max(process.memory(), Ordering::Relaxed);
            sleep(LOOK);
        }
    }
}

fn copies(house: &WeirInstance, csv: &Path) -> anyhow::Result<f64> {
    let target = house.data().join("copy.csv");
    let mut times = Vec::new();
    for _ in 0..CREATES {
        let began = Instant::now();
        fs::copy(csv, &target)?;
        fs::File::open(&target)?.sync_all()?;
        times.push(milliseconds(began));
    }
    Ok(median(times))
}

/// Returns how long it takes to read the file once, cut it into cells and read the numbers among them.
fn passes(csv: &Path) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..ASKED_SLOWLY {
        let began = Instant::now();
        let mut file = BufReader::new(fs::File::open(csv)?);
        let (mut line, mut sum) = (String::new(), 0.0);
        file.read_line(&mut line)?;
        loop {
            line.clear();
            if file.read_line(&mut line)? == 0 {
                break;
            }
            let amount = line.trim_end().split(',').nth(3);
            sum += amount.context("a row has four cells")?.parse::<f64>()?;
        }
        anyhow::ensure!(sum > 0.0, "the file has no amounts");
        times.push(milliseconds(began));
    }
    Ok(median(times))
}

/// Measures a table in PostgreSQL, next to the time that the database itself reports.
fn table(place: &BenchPaths) -> anyhow::Result<Table> {
    let database = PostgresServer::start(&place.load_core)?;
    database.sql(&format!(
        "CREATE TABLE rows (id bigint PRIMARY KEY, name text NOT NULL, status text NOT NULL, amount float8 NOT NULL);
         INSERT INTO rows SELECT n, 'customer number ' || n || ' of group ' || n % 50,
             (ARRAY['open', 'closed', 'new'])[n % 3 + 1], n::bigint * 7 % {MILLION} + 0.5 FROM generate_series(1, {MILLION}) n;
         CREATE INDEX ON rows (status); ANALYZE rows"
    ))?;
    let house = WeirInstance::empty(place, "weir")?;
    house.plugin(&place.repository.join("plugins/sql.wasm"), "sql")?;
    house.config(&format!(
        "[connections.data]\nkind = \"postgresql\"\nurl = \"postgresql://weir@127.0.0.1:{}/postgres\"\n\
         [plugins.sql.grants]\ndata = \"read\"\n",
        database.port
    ))?;
    let settings = json!({ "connection": "data", "table": "rows" });
    house.contract("rows.json", &rows::contract("sql", &settings))?;
    let (process, door) = serve(place, &house)?;
    let answers = answers(LargeCaller::new(&door), MILLION, &QUESTIONS)?;
    process.stop()?;
    let mut table: Table = vec![
        ["", "Weir", "psql", "the rule", "within it"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (ask, found) in QUESTIONS.iter().zip(answers) {
        let Some(found) = found else { continue };
        let statement = match ask.tool {
            "count_by_status" => "SELECT count(*) FROM rows WHERE status = 'open'",
            "sum_by_status" => "SELECT status, count(*), sum(amount) FROM rows GROUP BY status",
            _ => {
                table.push(vec![format!("{}, p50 ms", ask.what), format!("{found:.2}")]);
                continue;
            }
        };
        let own = median(database.times(statement, ASKED_SLOWLY)?);
        table.push(vec![
            format!("{}, p50 ms", ask.what),
            format!("{found:.2}"),
            format!("{own:.2}"),
            format!("at most {DATABASE_TIMES_MAX} times psql's"),
            within(found <= DATABASE_TIMES_MAX * own).to_owned(),
        ]);
    }
    Ok(table)
}

/// Measures a workbook: it is not indexed, but read whole once and then kept.
fn workbook(place: &BenchPaths) -> anyhow::Result<Table> {
    let house = WeirInstance::empty(place, "weir")?;
    house.plugin(&place.repository.join("plugins/sheet.wasm"), "sheet")?;
    house.config(FILES)?;
    house.contract(
        "rows.json",
        &rows::contract(
            "sheet",
            &json!({ "connection": "data", "path": "rows.xlsx" }),
        ),
    )?;
    peers::workbook(place, &house.data().join("rows.xlsx"), HUNDRED_THOUSAND)?;
    let (process, door) = serve(place, &house)?;
    let measured = alone(&process, &door, &QUESTIONS);
    process.stop()?;
    measured
}

/// Measures a service that pages by offset and answers single records: each page is a request.
fn service(place: &BenchPaths) -> anyhow::Result<Table> {
    let port = free_port()?;
    let mut command = std::process::Command::new(place.binary("bench-records"));
    command.args([port.to_string(), HUNDRED_THOUSAND.to_string()]);
    let _records = MeasuredProcess::start(
        &command,
        &place.load_core,
        &place.peer_folder("large")?.join("records.log"),
    )?;
    let house = WeirInstance::empty(place, "weir")?;
    house.plugin(&place.repository.join("plugins/rest.wasm"), "rest")?;
    house.config(&format!(
        "[connections.data]\nkind = \"http\"\nbase_url = \"http://127.0.0.1:{port}\"\n\
         [plugins.rest.grants]\ndata = \"read\"\n"
    ))?;
    house.contract("rows.json", &rows::contract("rest", &rows::rest()))?;
    let (process, door) = serve(place, &house)?;
    // A condition that the service does not support is evaluated over all pages, of which there are too many.
    let measured = alone(&process, &door, &QUESTIONS[..3]);
    process.stop()?;
    measured
}

/// Measures a server that has no peer: the time of its first call, and the median of each question.
fn alone(
    process: &MeasuredProcess,
    door: &BenchEndpoint,
    asked: &[LargeQuestion],
) -> anyhow::Result<Table> {
    let idle = process.memory();
    let first = timed(
        &mut LargeCaller::new(door),
        "get_row",
        arguments("get_row", 0, HUNDRED_THOUSAND),
    )?;
    let answers = answers(LargeCaller::new(door), HUNDRED_THOUSAND, asked)?;
    let memory_mb = process.memory().saturating_sub(idle) as f64 / 1e6;
    let head = ["", "Weir"].map(str::to_owned).to_vec();
    let line = |what: String, value: f64| vec![what, format!("{value:.2}")];
    let questions = asked.iter().zip(answers);
    let medians =
        questions.filter_map(|(ask, found)| Some(line(format!("{}, p50 ms", ask.what), found?)));
    let first = line("the first call, ms".to_owned(), first);
    let memory = line("memory over idle afterwards, MB".to_owned(), memory_mb);
    Ok([head, first]
        .into_iter()
        .chain(medians)
        .chain([memory])
        .collect())
}

/// Starts a house with a key, as any gateway that is reached by others has.
fn serve(
    place: &BenchPaths,
    house: &WeirInstance,
) -> anyhow::Result<(MeasuredProcess, BenchEndpoint)> {
    let (process, port) = house.start(&place.server_core, START_MAX)?;
    Ok((process, house.door(port, "bench")?))
}

/// Returns the median of each question, in milliseconds.
fn answers(
    mut caller: LargeCaller<'_>,
    rows: usize,
    asked: &[LargeQuestion],
) -> anyhow::Result<Answers> {
    let mut answers = Answers::default();
    for (answer, ask) in answers.iter_mut().zip(asked) {
        let mut ask_all = || {
            let numbers = 0..ask.times;
            numbers
                .map(|number| timed(&mut caller, ask.tool, arguments(ask.tool, number, rows)))
                .collect::<anyhow::Result<Vec<f64>>>()
        };
        match ask_all() {
            Ok(times) => *answer = Some(median(times)),
            Err(error) => eprintln!("    left out: {error:#}"),
        }
    }
    Ok(answers)
}

/// Returns the arguments of a tool, for one of many calls.
fn arguments(tool: &str, number: usize, rows: usize) -> Value {
    match tool {
        // A prime step, so that the keys lie all over the file.
        "get_row" => json!({ "id": 1 + number * 7_919 % rows }),
        "list_by_status" => json!({ "status": rows::STATUS[number % 3], "limit": 50 }),
        "count_by_status" => json!({ "status": rows::STATUS[number % 3] }),
        "sum_by_status" => json!({ "group_by": ["status"], "measures": ["count", "sum(amount)"] }),
        "list_by_amount" => json!({ "min_amount": rows - 500, "limit": 50 }),
        "list_by_name" => json!({ "name": "of group 7", "limit": 50 }),
        "list_by_no_name" => json!({ "name": "nobody at all", "limit": 50 }),
        _ => json!({ "limit": 50 }),
    }
}

/// A caller with one connection.
struct LargeCaller<'a> {
    door: &'a BenchEndpoint,
    agent: ureq::Agent,
    /// A text in this server's answer when no row is found.
    none_found: &'static str,
}

impl<'a> LargeCaller<'a> {
    fn new(door: &'a BenchEndpoint) -> Self {
        Self {
            door,
            agent: wire::agent(),
            none_found: r#""records":[]"#,
        }
    }
}

/// Asks once, and returns how many milliseconds it took.
fn timed(caller: &mut LargeCaller<'_>, tool: &str, arguments: Value) -> anyhow::Result<f64> {
    let mark = match tool {
        "list_by_no_name" => caller.none_found,
        "count_by_status" => "count",
        _ => "status",
    };
    let question = BenchQuestion::call(tool, arguments, mark);
    let began = Instant::now();
    question
        .ask_over(&caller.agent, caller.door)
        .with_context(|| tool.to_owned())?;
    Ok(milliseconds(began))
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn median(times: Vec<f64>) -> f64 {
    crate::measure::FigureSpread::from_values(times).median
}

impl BenchPart for LargeResults {
    const FILE: &'static str = "large.md";

    fn page(&self) -> String {
        let mut page = opening("Large collections", HOW, &self.machine);
        for (title, table) in &self.tables {
            let _ = write!(page, "\n## {title}\n\n{}", markdown(table));
        }
        page
    }
}

const HOW: &str = "\
`cargo xtask bench -- --only sheet --write docs/benchmarks` writes this page. Weir (one `weir serve`, with a key, limits and audit)
and MCP Toolbox are asked over HTTP by one client, so their figures are whole requests; DuckDB is asked in its own process, with
one thread, and has neither a protocol nor a caller to check. Each server has the same core. The rows are an id, a name, a status of
three, and an amount; Toolbox has them in SQLite with an index on the id. The record's key and every requested column
are indexed before the medians are taken; while an index is built, calls are answered from the file.
";
