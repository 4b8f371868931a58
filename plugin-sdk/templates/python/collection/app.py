"""An adapter: the numbers up to a bound, as a collection."""

import functools
import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.collections import Change, Page, Query
from wit_world.imports import log
from wit_world.imports.types import Error

SHAPE = {
    "name": "numbers",
    "fields": [
        {"key": "number", "type": "integer", "nullable": False},
        {"key": "square", "type": "integer", "nullable": False},
    ],
    "key": ["number"],
    "capabilities": {"read": True, "matches": {"*": ["equals"]}, "order": ["number"]},
}
SETTINGS = {"type": "object", "properties": {"up_to": {"type": "integer"}}, "required": ["up_to"]}
# What a collection was opened with. An instance may be dropped at any time: this is a cache and nothing more.
opened: dict[str, int] = {}


def failure(code: str, message: str, field: str | None = None) -> Err:
    return Err(Error(code, message, field, None, None))


def guard(function):
    """An uncaught exception would trap, and a trap has no message: every export is guarded."""

    @functools.wraps(function)
    def guarded(*args):
        try:
            return function(*args)
        except Err:
            raise
        except Exception as error:
            # A traceback would look for source files, which a component does not have, and trap. The text may contain a secret:
            # with this field, callers who listen to the log do not get the line.
            log.write("error", f"{type(error).__name__}: {error}", '{"weir.log_only":true}')
            message = "The adapter failed; its operator finds the reason in the log."
            raise failure("internal", message) from None

    return guarded


def up_to(settings: str) -> int:
    bound = json.loads(settings).get("up_to")
    if not isinstance(bound, int) or bound < 1:
        raise failure("invalid", "`up_to` must be a whole number from 1 on.", "up_to")
    return bound


def holds(record: dict, condition) -> bool:
    if condition.comparison != "equals":
        raise failure("unsupported", f"The comparison {condition.comparison} is unknown.", condition.column)
    return record[condition.column] == json.loads(condition.value)


class About(exports.About):
    def about(self) -> str:
        adapter = {"name": "{{name}}", "settings": SETTINGS}
        return json.dumps({"name": "{{name}}", "version": "0.1.0", "adapters": [adapter], "requests": []})


class Collections(exports.Collections):
    @guard
    def describe(self, adapter: str, settings: str) -> str:
        up_to(settings)
        return json.dumps(SHAPE)

    @guard
    def configure(self, collection: str, adapter: str, settings: str, shape: str) -> None:
        opened[collection] = up_to(settings)

    @guard
    def read(self, collection: str, query: Query) -> Page:
        if collection not in opened:
            raise failure("not_configured", "The collection was never configured.")
        last = opened[collection]
        # "-number" asks for the largest first; the shape offers no other order.
        step = -1 if query.order and query.order[0] == "-number" else 1
        first = (1 if step > 0 else last) if query.cursor is None else int(query.cursor) + step
        records = []
        for number in range(first, last + 1 if step > 0 else 0, step):
            record = {"number": number, "square": number * number}
            if not all(holds(record, condition) for condition in query.conditions):
                continue
            if len(records) == query.limit:
                return Page(json.dumps(records), str(number - step))
            records.append(record)
        return Page(json.dumps(records), None)

    @guard
    def write(self, collection: str, change: Change) -> str:
        raise failure("unsupported", "{{name}} is read-only.")
