"""Rows for large collections, and DuckDB asked for them.

large.py duckdb CSV DATABASE ROWS    prints the median of each question in milliseconds
large.py workbook XLSX ROWS          writes the rows into a workbook
"""
import json
import statistics
import sys
import time

ASKED = 200
ASKED_SLOWLY = 5


def questions(source, rows):
    """The questions of `bench/src/large.rs`, in their order."""
    status = ["open", "closed", "new"]
    columns = "id, name, status, amount"
    return [
        (f"SELECT {columns} FROM {source} WHERE id = ?", lambda number: [1 + number * 7919 % rows], ASKED),
        (f"SELECT {columns} FROM {source} LIMIT 50", lambda number: [], ASKED),
        (f"SELECT {columns} FROM {source} WHERE status = ? LIMIT 50", lambda number: [status[number % 3]], ASKED),
        (f"SELECT {columns} FROM {source} WHERE amount >= ? LIMIT 50", lambda number: [rows - 500], ASKED),
        (f"SELECT {columns} FROM {source} WHERE name LIKE ? LIMIT 50", lambda number: ["%of group 7%"], ASKED),
        (f"SELECT {columns} FROM {source} WHERE name LIKE ? LIMIT 50", lambda number: ["%nobody at all%"], ASKED_SLOWLY),
        (f"SELECT count(*) FROM {source} WHERE status = ?", lambda number: [status[number % 3]], ASKED_SLOWLY),
        (f"SELECT status, count(*), sum(amount) FROM {source} GROUP BY status", lambda number: [], ASKED_SLOWLY),
    ]


def medians(database, source, rows, most):
    found = []
    for statement, values, times in questions(source, rows):
        took = []
        for number in range(min(times, most)):
            began = time.perf_counter()
            database.execute(statement, values(number)).fetchall()
            took.append((time.perf_counter() - began) * 1e3)
        found.append(statistics.median(took))
    return found


def duckdb(csv, path, rows):
    import duckdb as engine

    database = engine.connect(path, config={"threads": 1})
    file = medians(database, f"read_csv('{csv}')", rows, ASKED_SLOWLY)
    began = time.perf_counter()
    database.execute(f"CREATE TABLE rows AS SELECT * FROM read_csv('{csv}')")
    database.execute("CREATE UNIQUE INDEX rows_id ON rows (id)")
    import_s = time.perf_counter() - began
    imported = medians(database, "rows", rows, ASKED)
    print(json.dumps({"file": file, "imported": imported, "import_s": import_s}))


def workbook(path, rows):
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    sheet.append(["id", "name", "status", "amount"])
    for number in range(1, rows + 1):
        status = ["open", "closed", "new"][number % 3]
        sheet.append([number, f"customer number {number} of group {number % 50}", status, number * 7 % rows + 0.5])
    book.save(path)


match sys.argv[1:]:
    case ["duckdb", csv, path, rows]:
        duckdb(csv, path, int(rows))
    case ["workbook", path, rows]:
        workbook(path, int(rows))
