"""Values that functions in Python are given and answer: run with the SDK on the path and pydantic 1, outside a component."""

import datetime
import enum
import json
import typing
from dataclasses import dataclass
from typing import Any, Literal

import pydantic

import weir_plugin
from weir_plugin import Context, Refusal, form, sql, tool
from weir_plugin.schema import Invalid, Writer, plain, read


@dataclass
class Cat:
    kind: Literal["cat"]
    name: str


@dataclass
class Dog:
    kind: Literal["dog"]
    name: str


@dataclass
class Words:
    value: str


@dataclass
class Number:
    value: int


@dataclass
class Shelf:
    pets: list[Cat | Dog]
    note: str | None = None


class Owned(typing.TypedDict):
    owner: Dog


class Wild(typing.TypedDict):
    owner: None | Cat
    since: typing.NotRequired[datetime.date]


class Level(enum.IntEnum):
    LOW = 1


class Worded(pydantic.BaseModel):
    from_: str = pydantic.Field(..., alias="from")


REX, TOM = {"kind": "dog", "name": "Rex"}, {"kind": "cat", "name": "Tom"}
DAY = datetime.date(2026, 2, 28)

# A union is read as the type that the value is of.
for hint, given, expected in [
    (Cat | Dog, REX, Dog("dog", "Rex")),
    (Cat | Dog, TOM, Cat("cat", "Tom")),
    (Cat | Dog, {**REX, "age": 3}, Dog("dog", "Rex")),
    (Cat | Dog | None, None, None),
    (Words | Number, {"value": 5}, Number(5)),
    (Words | Number, {"value": "five"}, Words("five")),
    (Number | Shelf, {"pets": [REX, TOM]}, Shelf([Dog("dog", "Rex"), Cat("cat", "Tom")])),
    (list[Cat] | list[Dog], [REX], [Dog("dog", "Rex")]),
    (dict[str, Cat] | dict[str, Dog], {"a": REX}, {"a": Dog("dog", "Rex")}),
    (tuple[Cat, int] | tuple[Dog, int], [REX, 1], (Dog("dog", "Rex"), 1)),
    (list[int] | list[str], ["5"], ["5"]),
    (Owned | Wild, {"owner": TOM}, {"owner": Cat("cat", "Tom")}),
    (Owned | Wild, {"owner": None, "since": "2026-02-28"}, {"owner": None, "since": DAY}),
    (Literal[1, 2] | str, 2, 2),
    (Level | str, 1, Level.LOW),
    (int | str, 10**400, 10**400),
    (bool | int, True, True),
    (bytes | str, "Zm9v!", "Zm9v!"),
    (datetime.date | str, "2026-02-28", DAY),
    (Worded | int, {"from": "here"}, Worded.parse_obj({"from": "here"})),
]:
    got = read(hint, given)
    assert got == expected and type(got) is type(expected), f"{hint}: {got!r} instead of {expected!r}"


# What is no base64 and what is no date is the caller's fault.
for hint, given in [(bytes, "Zm9v!"), (bytes, "abc"), (bytes, "\u00e6"), (datetime.time, "25:00:00Z"), (bytes | int, "abc")]:
    try:
        got = read(hint, given)
    except Invalid as error:
        assert "it is not" in str(error), error
    else:
        raise AssertionError(f"{hint}: {given} is {got!r}")


@tool
def look(data: bytes, at: datetime.time = datetime.time(9, 0)) -> datetime.datetime:
    """Answers a time without a zone."""
    return datetime.datetime(2026, 2, 28, at.hour)


try:
    look.answer({"data": "abc"}, Context())
except Refusal as no:
    assert (no.reason, no.field, no.sentence) == ("invalid", "data", "`data` is wrong: it is not base64."), no.sentence
else:
    raise AssertionError("what is no base64 is read")

# The formats of times demand an offset.
assert look.definition["inputSchema"]["properties"]["at"] == {"type": "string", "format": "time", "default": "09:00:00Z"}
assert look.answer({"data": "", "at": "10:00:00+01:00"}, Context())[1] == '"2026-02-28T10:00:00Z"'
zone = datetime.timezone(datetime.timedelta(hours=2))
assert plain([datetime.time(9, tzinfo=zone), DAY]) == ["09:00:00+02:00", "2026-02-28"]


class Noted(typing.TypedDict):
    note: str | None
    more: typing.NotRequired[int | None]


# A TypedDict holds a None, and says so.
written = Writer("input").whole(Noted)
nullable = {"note": {"type": ["string", "null"]}, "more": {"type": ["integer", "null"]}}
assert written == {"type": "object", "properties": nullable, "required": ["note"]}, written
assert read(Noted, {"note": None}) == plain({"note": None}) == {"note": None}
assert form("Sure?", Noted)["params"]["requestedSchema"]["properties"]["note"] == {"type": "string"}


@dataclass
class Held:
    value: Any
    note: str | None
    size: int | None = None


# What must be there is there, also where it is None.
assert plain(Held(None, None)) == {"value": None}
assert plain(Held(1, "n", 2)) == {"value": 1, "note": "n", "size": 2}

# A model is answered by the names of its schema.
assert plain(Worded.parse_obj({"from": "here"})) == {"from": "here"}


# No row is missing without a word. The gateway's part is played here.
class Rows:
    records, truncated = '[{"a":9007199254740993}]', False


class Host:
    Statement = staticmethod(lambda *given: given)

    @staticmethod
    def query(statement):
        Host.asked = statement
        return Rows


weir_plugin._sql = Host
assert sql.query("db", "SELECT") == [{"a": 9007199254740993}] and Host.asked[3] == 1000
Rows.truncated = True
assert len(sql.query("db", "SELECT", (), 1)) == 1 and Host.asked[3] == 1
try:
    sql.query("db", "SELECT")
except ValueError as error:
    assert "more than 1000 rows" in str(error), error
else:
    raise AssertionError("rows are missing")


# Whatever is raised becomes an error of the interface, and its text goes to the log alone.
class Err(Exception):
    def __init__(self, value):
        self.value = value


class Log:
    lines = []

    @staticmethod
    def write(level, message, fields):
        Log.lines.append((message, fields))


weir_plugin.Err, weir_plugin._Error, weir_plugin._log = Err, lambda *given: given, Log
weir_plugin._answers = type("Answers", (), {"Answer": staticmethod(lambda *given: given)})


@tool
def leak() -> None:
    """Fails."""
    raise Exception("a secret")


@tool
def late(json_too: bool) -> None:
    """Refuses, with details that may be no JSON."""
    raise Refusal("busy", "Later.", details={"until": 10 if json_too else datetime.datetime.now()})


Tools = weir_plugin.plugin("p", "1.0.0", leak, late)[1]
for name, arguments, code, details, words in [
    ("leak", {}, "internal", None, "a secret"),
    ("late", {"json_too": False}, "internal", None, "not JSON serializable"),
    ("late", {"json_too": True}, "busy", '{"until":10}', None),
    ("nothing", {}, "unsupported", None, None),
]:
    Log.lines.clear()
    given = {"tool": name, "arguments": json.dumps(arguments), "context": "{}", "resumed": None}
    try:
        Tools().call(type("Invocation", (), given))
    except Err as error:
        assert (error.value[0], error.value[4]) == (code, details), error.value
    else:
        raise AssertionError(f"{name} answers")
    assert len(Log.lines) == (words is not None), Log.lines
    if words:
        assert words in Log.lines[0][0] and json.loads(Log.lines[0][1]) == {"weir.log_only": True}, Log.lines

print("values are right")
