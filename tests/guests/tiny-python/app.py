"""The small adapter that every language writes the same, in Python."""

import functools
import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.collections import Change, Page, Query
from wit_world.imports import log, progress, sql
from wit_world.imports.types import Error

SHAPE = {
    "name": "tiny",
    "fields": [
        {"key": "id", "type": "integer", "nullable": False},
        {"key": "name", "type": "string", "nullable": False},
        {"key": "greeting", "type": "string", "nullable": False},
    ],
    "key": ["id"],
    "capabilities": {"read": True, "matches": {"*": ["equals"]}, "order": ["id"]},
}
NAMES = ["one", "two", "three"]
opened: dict[str, dict] = {}
calls = 0


def failure(code: str, message: str, field: str | None = None, retry_after_ms: int | None = None) -> Err:
    return Err(Error(code, message, field, retry_after_ms, None))


def guard(function):
    """An uncaught exception would trap without a message, so every export is guarded."""

    @functools.wraps(function)
    def guarded(*args):
        try:
            return function(*args)
        except Err:
            raise
        except Exception as error:
            # Only what needs no source lines: a component has no files, and looking for them would trap. The text was not
            # checked for secrets: callers who listen to the log do not receive a line with this field.
            log.write("error", f"{type(error).__name__}: {error}", '{"weir.log_only":true}')
            message = "The adapter failed; its operator finds the reason in the log."
            raise failure("internal", message) from None

    return guarded


def parse(settings: str) -> dict:
    try:
        parsed = json.loads(settings)
    except ValueError:
        raise failure("invalid", "The settings are not JSON.", "settings") from None
    if not isinstance(parsed, dict) or list(parsed) != ["greeting"] or not isinstance(parsed["greeting"], str):
        raise failure("invalid", "The settings are wrong: they are one greeting.", "settings")
    return parsed


def compact(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class About(exports.About):
    def about(self) -> str:
        adapter = {"name": "tiny-python", "settings": {"type": "object", "required": ["greeting"]}}
        return compact({"name": "tiny-python", "version": "0.1.0", "adapters": [adapter], "requests": ["sql"]})


class Collections(exports.Collections):
    @guard
    def describe(self, adapter: str, settings: str) -> str:
        parse(settings)
        return compact(SHAPE)

    @guard
    def configure(self, collection: str, adapter: str, settings: str, shape: str) -> None:
        opened[collection] = parse(settings)

    @guard
    def read(self, collection: str, query: Query) -> Page:
        log.write("info", "reading", None)
        progress.report(1.0, 3.0, "reading")
        if collection not in opened:
            raise failure("not_configured", "The collection was never configured.")
        word = json.loads(query.options or "{}").get("do")
        if word is not None:
            return Page(act(word), None)
        try:
            behind = int(query.cursor or "0")
        except ValueError:
            raise failure("invalid", "The cursor is not one of this list.", "cursor") from None
        records = []
        for index, name in enumerate(NAMES):
            record = {"id": index + 1, "name": name, **opened[collection]}
            if record["id"] <= behind or not all(holds(record, condition) for condition in query.conditions):
                continue
            if len(records) == query.limit:
                return Page(compact(records), str(index))
            records.append(record)
        return Page(compact(records), None)

    @guard
    def write(self, collection: str, change: Change) -> str:
        raise failure("unsupported", "tiny-python is read-only.")


def act(word: str) -> str:
    """What every language does alike when a test asks for it: `options` of `{"do": word}`."""
    global calls
    match word:
        case "refuse":
            raise failure("conflict", "Refused, as asked.", "name", 7)
        case "query":
            return sql.query(sql.Statement("db", "SELECT 'one' AS name", "[]", 1, None)).records
        case "count":  # what an instance remembers
            calls += 1
            return compact([{"calls": calls}])
        case "large":
            return compact([{"name": "x" * (5 << 20)}])
        case "too-large":
            return compact([{"name": "x" * (9 << 20)}])
        case "spin":
            while True:
                pass
    raise RuntimeError("as asked")


def holds(record: dict, condition) -> bool:
    if condition.column not in record:
        raise failure("invalid", "The collection has no such column.", condition.column)
    if condition.comparison != "equals":
        raise failure("unsupported", f"The comparison {condition.comparison} is unknown.", condition.column)
    wanted = json.loads(condition.value)
    return type(wanted) is type(record[condition.column]) and wanted == record[condition.column]
