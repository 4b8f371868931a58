//! Messy files as people have them: what `weir serve FILE` reports on its first screen as understood, and what not.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, foreign};

/// Serves a file without a configuration. Returns the gateway with its first screen.
fn serve(house: &House, file: &str) -> (Gateway, String) {
    let plugins = house.plugins().display().to_string();
    let words = [
        "serve",
        file,
        "--plugins",
        &plugins,
        "--state",
        "state",
        "--listen",
        "127.0.0.1:0",
    ];
    let gateway = Gateway::start(house.weir(&words));
    gateway.wait_for_log("Claude Code");
    let screen = gateway.log();
    (gateway, screen)
}

fn assert_lines(screen: &str, lines: &[&str]) {
    for line in lines {
        assert!(
            screen.lines().any(|known| known.trim() == *line),
            "{line}\n{screen}"
        );
    }
}

/// Returns the tokens of an answer, as `weir tools cost` counts them.
fn tokens(house: &House, answer: &Value) -> usize {
    house.write("answer.json", answer.to_string());
    let counted = house.succeed(&["tools", "cost", "--text", "answer.json"]);
    counted.trim().parse().expect("a number")
}

async fn answer(gateway: &Gateway, tool: &str, arguments: Value) -> Value {
    let result = Modern::new(gateway.url()).succeed(tool, arguments).await;
    result["structuredContent"].clone()
}

/// The export of a shop: amounts in euros, cells without a value, a choice in two cases, and a row of totals.
#[tokio::test]
async fn the_export_of_a_shop() {
    let mut text = "Order No;Ordered;Status;Total;Discount\r\n".to_owned();
    for at in 1..=60 {
        let status = ["paid", "open", "Paid"][if at == 7 { 2 } else { at % 2 }];
        let discount = ["5 %", "n/a"][usize::from(at % 20 == 0)];
        let day = at % 28 + 1;
        text += &format!("{at};{day:02}.10.2026;{status};{at}.000,50 €;{discount}\r\n");
    }
    text += "TOTAL;;;1.830.030,00 €;\r\n";
    let house = House::new().file("data/orders.csv", text);
    let (gateway, screen) = serve(&house, "data/orders.csv");
    assert_lines(
        &screen,
        &[
            "orders: 5 columns, key 'Order No'",
            "The column 'Status' has values that differ only in case or blanks, and a filter by one of these finds all: 'Paid', 'paid'.",
            "The column \"Total\" is read as numbers with their unit, `# €`.",
            "The column \"Discount\" is read as numbers with their unit, `# %`.",
            "The last row looks like a total (\"TOTAL\"). It is a record like the others.",
        ],
    );
    // What a person calls paid is found in both spellings.
    let tool = Modern::new(gateway.url()).tool("summarize_orders").await;
    let status = &tool["inputSchema"]["properties"]["status"];
    assert_eq!(status["enum"], json!(["paid", "open"]), "{status}");
    let paid = json!({ "status": "paid", "measures": ["count", "sum(Total)"] });
    let paid = answer(&gateway, "summarize_orders", paid).await;
    let found = &paid["records"][0];
    assert_eq!(
        (&found["count"], found["sum(Total)"].as_f64()),
        (&json!(31), Some(937_015.5)),
        "{paid}"
    );
}

/// The dump of a CRM: 50 columns, most of which hold little, and a number that two contacts share.
#[tokio::test]
async fn the_dump_of_a_crm() {
    const NAMED: [&str; 12] = [
        "contact_id",
        "first_name",
        "last_name",
        "company",
        "stage",
        "owner",
        "created_on",
        "amount",
        "rating",
        "fax",
        "photo_url",
        "notes",
    ];
    let more = (0..38).map(|at| format!("custom_{at}"));
    let names: Vec<String> = NAMED
        .iter()
        .map(|name| (*name).to_owned())
        .chain(more)
        .collect();
    let mut text = format!("{}\n", names.join(","));
    for at in 1..=200 {
        let id = if at == 200 { 1 } else { at };
        let (stage, owner, rating) = (
            ["won", "lost"][at % 2],
            ["mia", "tom"][at % 2],
            ["hot", "cold"][at % 2],
        );
        let created = ["2026-10-05", "05.10.2026"][usize::from(at % 9 == 0)];
        text += &format!(
            "{id},First{at},Last{at},Firm {at},{stage},{owner},{created},{}.5,{rating},,https://img.example/{at}.png,{}{}\n",
            at * 10,
            "Called twice about the offer of last spring. ".repeat(4),
            ",".repeat(38)
        );
    }
    let house = House::new().file("data/contacts.csv", text);
    let (gateway, screen) = serve(&house, "data/contacts.csv");
    assert_lines(
        &screen,
        &[
            "contacts: 50 columns, no key",
            "The column \"created_on\" has dates in several spellings, and stays text: write them in one, and say it by `date:` under `shape:`.",
            "The column \"notes\": 200 cells have blanks around the text, which are part of it when it is compared.",
            "The column \"contact_id\" is named like a key, but of 200 rows 1 cell is like an earlier one: once that is mended, a record is known by it.",
            "The list has 20 of 51 filters: those of its key, of columns with few values, times, names and amounts first.",
            "The list answers 12 of 50 columns; agents ask for the others by `columns`.",
        ],
    );
    let won = answer(&gateway, "summarize_contacts", json!({ "stage": "won" })).await;
    assert_eq!(won["records"][0]["count"], 100, "{won}");
    let listed = answer(&gateway, "list_contacts", json!({ "limit": 1 })).await;
    let columns = listed["records"][0]
        .as_object()
        .map_or(0, |record| record.len());
    assert!(columns <= 12, "{listed}");
    // A page has as many records as make an answer that a model reads.
    let listed = answer(&gateway, "list_contacts", json!({})).await;
    let records = listed["records"].as_array().map_or(0, Vec::len);
    let tokens = tokens(&house, &listed);
    assert!(
        (10..50).contains(&records) && tokens <= 2_200,
        "{records} records, {tokens} tokens"
    );
}

const TIME_SHEET: &str = "
import datetime, sys
from openpyxl import Workbook
book = Workbook()
cover = book.active
cover.title = 'Cover'
cover.append(['Hours of the team'])
cover.append(['as of 2026-11-01'])
for month in (10, 11):
    sheet = book.create_sheet(datetime.date(2026, month, 1).strftime('%B'))
    sheet.append(['Entry ID', 'Day', 'Person', 'Begin', 'Pause', 'Hours'])
    for at in range(1, 31):
        pause = datetime.timedelta(minutes=30 + at % 2 * 15)
        hours = 7.35 + 0.1 + 0.2 if at % 3 else 'ill'
        sheet.append([at, datetime.date(2026, month, at), ['Ann', 'Ben'][at % 2], datetime.time(8, at), pause, hours])
        sheet.cell(at + 1, 5).number_format = '[h]:mm:ss'
rates = book.create_sheet('Rates')
rates.append(['person', 'rate'])
rates.append(['Ann', 80])
rates.sheet_state = 'hidden'
book.save(sys.argv[1])
";

/// The workbook of a team's hours: a cover, a sheet for each month, times of day, durations, sick days, and a hidden sheet.
#[tokio::test]
async fn the_time_sheet_of_a_team() {
    let house = House::new();
    std::fs::create_dir_all(house.path().join("data")).expect("a folder");
    let mut script = foreign::python("python-current");
    script
        .args(["-c", TIME_SHEET])
        .arg(house.path().join("data/hours.xlsx"));
    let output = foreign::run(script, Duration::from_secs(180));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (gateway, screen) = serve(&house, "data/hours.xlsx");
    assert_lines(
        &screen,
        &[
            "hours: 2 of 4 sheets served by 6 tools, which only read.",
            "October: 6 columns, key 'Entry ID'; get_october, list_octobers, summarize_octobers",
            "November: 6 columns, key 'Entry ID'; get_november, list_novembers, summarize_novembers",
            "Cover: its first row has one cell, which is a title rather than a header.",
            "Rates: it is hidden.",
        ],
    );
    let entry = answer(&gateway, "get_october", json!({ "entry_id": 1 })).await;
    assert_eq!(
        entry,
        json!({ "Entry ID": 1, "Day": "2026-10-01", "Person": "Ben", "Begin": "08:01:00", "Pause": "00:45:00", "Hours": "7.65" })
    );
}

/// A folder or a pipe has taken the place of the file. No argument is at fault, the file is named, and no call waits.
#[tokio::test]
async fn a_folder_or_a_pipe_in_place_of_the_file() {
    let house = House::new().file("data/prices.csv", "id,price\n1,2.5\n");
    let (gateway, _) = serve(&house, "data/prices.csv");
    let client = Modern::new(gateway.url());
    let file = house.path().join("data/prices.csv");
    std::fs::remove_file(&file).expect("it was there");
    for program in ["mkdir", "mkfifo"] {
        let made = std::process::Command::new(program).arg(&file).status();
        assert!(made.expect(program).success());
        for (tool, arguments) in [
            ("list_prices", json!({})),
            ("get_price", json!({ "id": 1 })),
            ("summarize_prices", json!({ "measures": ["count"] })),
        ] {
            let call = client.call(tool, arguments);
            let result = tokio::time::timeout(Duration::from_secs(10), call).await;
            let result = result.unwrap_or_else(|_| panic!("{tool} waits: {program}"));
            let error = &result["structuredContent"];
            assert_eq!(error["code"], "unavailable", "{program}: {result}");
            assert_eq!(error["field"], Value::Null, "{program}: {result}");
            let message = error["message"].as_str().unwrap_or_default();
            assert!(message.contains("\"prices.csv\""), "{program}: {result}");
        }
        if program == "mkdir" {
            std::fs::remove_dir(&file).expect("it is empty");
        }
    }
}

/// Workbooks as no spreadsheet program saves them, which a few bytes make huge or unclear.
#[test]
fn workbooks_that_no_program_saves() {
    let repeated = include_bytes!("../../plugins/sheet/tests/repeated.ods");
    let twice = include_bytes!("../../plugins/sheet/tests/twice.xlsx");
    for (file, bytes, part) in [
        (
            "data/stock.ods",
            repeated.as_slice(),
            "The sheet \"S\" has cells behind row 1048576",
        ),
        (
            "data/stock.xlsx",
            twice.as_slice(),
            "several sheets named \"S\"",
        ),
    ] {
        let house = House::new().file(file, bytes);
        let (code, _, err) = house.run(&["draft", file]);
        assert!(code == 1 && err.contains(part), "{file}: {err}");
    }
}
