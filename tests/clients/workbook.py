"""Writes a workbook from a table in JSON: `workbook.py TABLE.json BOOK.xlsx`."""

import json
import sys
from datetime import datetime

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell


def cell(sheet, kind, value):
    if value is None:
        return None
    if kind in ("integer", "number", "boolean"):
        return value
    if kind == "date" and 1900 < int(value[:4]):
        made = WriteOnlyCell(sheet, datetime.strptime(value, "%Y-%m-%d").date())
        made.number_format = "yyyy-mm-dd"
        return made
    # Text remains text, whatever it looks like, and never becomes a formula.
    made = WriteOnlyCell(sheet, value)
    made.value, made.data_type = value, "s"
    return made


def main(source, target):
    with open(source, encoding="utf-8") as file:
        table = json.load(file)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("items")
    sheet.append(table["names"])
    for row in table["rows"]:
        sheet.append([cell(sheet, kind, value) for kind, value in zip(table["kinds"], row)])
    book.save(target)


main(*sys.argv[1:])
