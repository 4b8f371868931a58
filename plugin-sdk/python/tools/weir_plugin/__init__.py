"""What a plugin in Python imports: a function with type hints and a docstring is a tool.

    @tool(idempotent=True)
    def deploy(environment: Annotated[str, MinLen(1)], version: str = "latest", ctx: Context = None) -> dict[str, str]: ...

    About, Tools = plugin("deploys", "0.1.0", deploy)
"""

import builtins
import importlib
import inspect
import io
import json
import math
import os
import re
import sys
import traceback
import types
import typing

from . import schema, world
from .markers import (
    Alias, Description, Examples, Ge, Gt, Le, Lt, MaxLen, Metavar, MinLen, Pattern, Positional, Title,
)


class _Outside:
    """An interface of the gateway when there is no gateway: each of its functions raises an error about that."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse

    def _refuse(self, *_, **__):
        raise RuntimeError(
            f'`{self._name}` is the gateway\'s, and there is none here: replace it in a test, as by `unittest.mock.patch("app.{self._name}")`')


try:
    from componentize_py_types import Err
    from wit_world.exports import tools as _tools
    from wit_world.imports import answers as _answers, files, http, log as _log, progress as _progress, sql as _sql
    from wit_world.imports.types import Error as _Error
except ImportError:  # outside a component, as in the author's own unit tests
    _log = None
    files, http, _sql = _Outside("files"), _Outside("http"), _Outside("sql")

__all__ = [
    "Alias", "Answer", "Context", "Description", "Examples", "Ge", "Gt", "Le", "Lt", "MaxLen", "Metavar", "MinLen",
    "Pattern", "Positional", "Question", "Refusal", "Title", "files", "form", "http", "plugin", "sql", "tool",
]

HINTS = {"read_only": "readOnlyHint", "destructive": "destructiveHint", "idempotent": "idempotentHint",
         "open_world": "openWorldHint"}

# What Python's own library imports at its first use, which is too late in a component: `strptime`, and encodings of texts.
_LATE = (
    "_strptime", "encodings.ascii", "encodings.cp1252", "encodings.idna", "encodings.latin_1", "encodings.punycode", "encodings.utf_16",
    "encodings.utf_8_sig",
)
if _log:
    for _name in _LATE:
        importlib.import_module(_name)

# How many rows a query answers where its author names no limit.
ROWS_MAX = 1000
# A caller who listens to the log does not hear a line with this field.
LOG_ONLY = '{"weir.log_only":true}'


class Refusal(Exception):
    """Says no: a reason for programs, a sentence for the caller."""

    def __init__(self, reason, sentence, *, field=None, retry_after_ms=None, details=None):
        for name, text in (("reason", reason), ("sentence", sentence), ("field", "" if field is None else field)):
            if not isinstance(text, str):
                raise TypeError(f"the {name} of a refusal is a text, and not {text!r}")
        if retry_after_ms is not None:
            if not 0 <= retry_after_ms < 2**32:
                raise ValueError(f"`retry_after_ms` is from 0 to {2**32 - 1}, and not {retry_after_ms!r}")
            retry_after_ms = math.ceil(retry_after_ms)
        super().__init__(sentence)
        self.reason, self.sentence, self.field = reason, sentence, field
        self.retry_after_ms, self.details = retry_after_ms, details


class Answer:
    """MCP content blocks, with or without a value."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, value=None, content=None):
        self.value, self.content = value, content


class Question:
    """Asks the caller; the tool is called again with the answers, and with `state`."""

    def __init__(self, requests, state=None):
        self.requests, self.state = requests, state


def form(message, fields):
    """A question whose answer is a form: a dataclass or a TypedDict."""
    requested = schema.Writer("form").whole(fields)
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": requested}}


class Context:
    """The call that a tool runs in. A parameter of this type, or named `ctx`, is not part of the schema."""

    def __init__(self, text="{}", resumed=None, settings=""):
        self._text, self._resumed, self._settings = text, resumed, settings

    @property
    def members(self):
        """Everything that the gateway passes about the call: agent, tenant, call_id, contract, deadline_ms."""
        return json.loads(self._text)

    @property
    def agent(self):
        return self.members.get("agent")

    @property
    def settings(self):
        """The operator's `[plugins.NAME.settings]`."""
        return json.loads(self._settings or "{}")

    @property
    def resumed(self):
        """`{"state", "responses"}` where this call answers a question of the last one."""
        return None if self._resumed is None else json.loads(self._resumed)

    @property
    def is_cancelled(self):
        return _progress.cancelled() if _log else False

    def log(self, message, level="info"):
        if _log:
            _log.write(level, _sendable(message), None)

    def progress(self, done, total=None, message=""):
        if _log:
            _progress.report(float(done), None if total is None else float(total), _sendable(message))


class sql:
    """A database, by the name of a connection. Parameters are always bound."""

    @staticmethod
    def query(connection, text, parameters=(), limit=None):
        """The rows. Without a limit there must be no more than 1000; with one the further rows are left out."""
        most = ROWS_MAX if limit is None else limit
        rows = _sql.query(_sql.Statement(connection, text, compact(list(parameters)), most, None))
        if rows.truncated and limit is None:
            raise ValueError(f"there are more than {ROWS_MAX} rows: name a limit, or ask for fewer")
        return json.loads(rows.records)

    @staticmethod
    def execute(connection, text, parameters=()):
        return _sql.execute(_sql.Statement(connection, text, compact(list(parameters)), 1, None))


class Tool:
    """A function as a tool. It can still be called as the function."""

    def __init__(self, function, name, title, description, requests, hints, task=False):
        _refuse_other_than_functions(function)
        self.function, self.requests = function, requests
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        docs = schema.Docs(function.__doc__)
        hinted = _hinted(function)
        self.context, self.parameters = None, []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"{function.__name__}: `*{parameter.name}` has no schema; name each parameter{_of_decorator(function)}")
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise TypeError(f"{function.__name__}: `{parameter.name}` is given by its name; leave the `/` out")
            hint = hinted.get(parameter.name, parameter.annotation)
            if _is_context(function, parameter, hint):
                if self.context:
                    raise TypeError(f"{function.__name__}: `{parameter.name}` is a second context: a tool has one; leave it out")
                self.context = parameter.name
                continue
            if hint is parameter.empty and parameter.name in ("self", "cls"):
                raise TypeError(f"{function.__name__}: a tool is a function outside of classes: leave `{parameter.name}` out")
            if hint is parameter.empty:
                raise TypeError(f"{function.__name__}: `{parameter.name}` has no type; write `{parameter.name}: str`")
            self.parameters.append(
                schema.Parameter(parameter.name, hint, parameter.default, docs.parameters.get(parameter.name)))
        self.returns = _value_hint(hinted.get("return"))
        self.definition = {"name": name or function.__name__}
        if title or docs.title:
            self.definition["title"] = title or docs.title
        if description or docs.description:
            self.definition["description"] = description or docs.description
        self.definition["inputSchema"] = schema.Writer("input", f"{function.__name__}: ").parameters(self.parameters)
        if self.returns is not None:
            writer = schema.Writer("output", f"{function.__name__}: the answer: ")
            try:
                self.definition["outputSchema"] = writer.whole(schema.present(self.returns))
            except (TypeError, RecursionError) as error:
                raise TypeError(f"{writer.place}{schema.fault(error)}") from None
        annotations = {HINTS[hint]: value for hint, value in hints.items() if value is not None}
        if annotations:
            self.definition["annotations"] = annotations
        if task not in (False, True, "required"):
            raise TypeError(f"{function.__name__}: `task` is True or \"required\"")
        if task:
            self.definition["execution"] = {"taskSupport": "optional" if task is True else task}
        cli = {parameter.name: parameter.cli for parameter in self.parameters if parameter.cli}
        if cli:
            self.definition["cli"] = {"parameters": cli}

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def answer(self, given, context):
        arguments = {}
        for parameter in self.parameters:
            try:
                arguments[parameter.name] = parameter.read(given)
            except schema.Invalid as error:
                raise Refusal("invalid", f"`{parameter.name}` is wrong: {error}.", field=parameter.name) from None
        if self.context:
            arguments[self.context] = context
        value = self.function(**arguments)
        if inspect.iscoroutine(value):
            value = world.run(value)
        if isinstance(value, Question):
            return "input-required", None, None, compact(value.requests), value.state
        content = compact(value.content) if isinstance(value, Answer) and value.content is not None else None
        answered, value = value, value.value if isinstance(value, Answer) else value
        if self.returns is None:
            if value is not None:
                hint = type(value).__name__
                self._leave_value_out(f"Answer[{hint}]" if isinstance(answered, Answer) else hint)
            return "complete", None, content or "[]", None, None
        if value is None and not schema.holds_none(self.returns):
            if schema.is_optional(self.returns):
                raise Refusal("not_found", "There is nothing of that kind.")
            raise TypeError(f"`{self.function.__name__}` returned None, against its annotation")
        try:
            return "complete", compact(schema.plain(value)), content, None, None
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"what `{self.function.__name__}` returned is not JSON: {error}") from None

    def _leave_value_out(self, hint):
        """Tells of a value that no type was declared for: a tool that only reads fails. Any other answers without the value: what
        it has written stays, and a caller who hears of a failure may call again."""
        fault = f"`{self.function.__name__}` returned a value and declares none: write `-> {hint}`"
        if self.definition.get("annotations", {}).get("readOnlyHint"):
            raise TypeError(fault)
        if _log:
            _log.write("error", f"The value is left out of the answer: {fault}", LOG_ONLY)


def _is_context(function, parameter, hint):
    """Whether the parameter is the call's context: by its type, or by its name where it has none."""
    if schema.bare(schema.present(hint)) is Context:
        return True
    if parameter.name != "ctx":
        return False
    if hint not in (parameter.empty, typing.Any, object):
        raise TypeError(f"{function.__name__}: `ctx` is the name of the context: write `ctx: Context`, or name the parameter otherwise")
    return True


def _refuse_other_than_functions(function):
    if not inspect.isroutine(function) and not inspect.isclass(function):
        raise TypeError(f"`{function!r}` is not a function: `@tool` is written above one, with its options by their names")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__name__}: a tool answers once: `return` a list in place of each `yield`")


def _of_decorator(function):
    """The hint for a function whose parameters another decorator hides."""
    parameters = inspect.signature(function).parameters.values()
    hides = {parameter.kind for parameter in parameters} == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return ". If it is made by a decorator, write `@functools.wraps(…)` above it there" if hides else ""


def _value_hint(returned):
    """The type of the value that a tool answers: that of an `Answer`, and without the questions that it may ask; None if there is none."""
    if returned in (None, type(None), Question):
        return None
    if schema.is_answer(returned, Answer):
        return next(iter(typing.get_args(returned)), None)
    arms = schema.arms(returned)
    if not any(arm is Question or schema.is_answer(arm, Answer) for arm in arms):
        return returned
    values = [hint for hint in map(_value_hint, arms) if hint is not None]
    if values and type(None) in arms:
        values.append(type(None))
    return typing.Union[tuple(values)] if values else None


def _hinted(function):
    """The types by name. Where they are texts, as after `from __future__ import annotations`, their names are looked up now."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        names = getattr(inspect.unwrap(function), "__globals__", {})
        for name, hint in _annotations(function).items():
            place = f"{function.__name__}: {'the answer' if name == 'return' else f'`{name}`'}"
            try:
                typing.get_type_hints(types.SimpleNamespace(__annotations__={name: hint}), names, include_extras=True)
            except NameError as error:
                raise TypeError(f"{place}: there is no `{error.name}`; import it, and not for type checkers alone") from None
            except Exception as error:
                raise TypeError(f"{place}: `{hint}` is no type: {error}") from None
        raise


def _annotations(function):
    """The annotations as they are written. From Python 3.14 on they are read late, and a name that there is not is met here."""
    try:
        return function.__annotations__
    except Exception:
        import annotationlib

        return annotationlib.get_annotations(function, format=annotationlib.Format.STRING)


def tool(function=None, *, name=None, title=None, description=None, read_only=None, destructive=None, idempotent=None,
         open_world=None, task=False, requests=()):
    """Makes a tool of a function: `@tool`, or `@tool(read_only=True, requests=["sql"])`.

    `task=True`: a call may go on as a task after its request was answered. `task="required"`: modern clients that know no
    tasks are refused.
    """
    hints = {"read_only": read_only, "destructive": destructive, "idempotent": idempotent, "open_world": open_world}

    def make(function):
        return Tool(function, name, title, description, [requests] if isinstance(requests, str) else list(requests), hints, task)

    return make if function is None else make(function)


def plugin(name, version, *tools):
    """The two exports of a component: `About, Tools = plugin("deploys", "0.1.0", deploy)`."""
    if not isinstance(name, str) or not isinstance(version, str):
        raise TypeError('a plugin has a name and a version: write `plugin("deploys", "0.1.0", deploy)`')
    by_name = {}
    for each in tools:
        if isinstance(each, (list, tuple)):
            raise TypeError('tools are given one after the other: write `plugin("deploys", "0.1.0", deploy, remove)`')
        if isinstance(inspect.unwrap(each), Tool) and not isinstance(each, Tool):
            raise TypeError(f"`{inspect.unwrap(each).__name__}` is a tool no more: write `@tool` above its other decorators")
        if not isinstance(each, Tool):
            raise TypeError(f"`{getattr(each, '__name__', each)}` is not a tool; write `@tool` above the function")
        if by_name.setdefault(each.definition["name"], each) is not each:
            raise TypeError(f"two tools have the name `{each.definition['name']}`")
    if _log:
        world.prepare()
    requests = sorted({request for each in tools for request in each.requests})
    about = compact({"name": name, "version": version, "adapters": [], "requests": requests})
    definitions = compact([each.definition for each in tools])
    settings = {"text": ""}

    class About:
        def about(self):
            return about

    class Tools:
        def configure(self, given):
            settings["text"] = given

        def definitions(self):
            return definitions

        def call(self, invocation):
            # An uncaught exception would trap, and a trap has no message. `sys.exit` raises one too.
            try:
                with _printed():
                    return self.answer(invocation)
            except Err:
                raise
            except BaseException as error:
                # The text may contain a secret, so it is only logged.
                _log.write("error", _sendable(f"The tool failed: {described(error)}"), LOG_ONLY)
                message = "The tool failed; its operator finds the reason in the log."
                raise Err(_Error("internal", message, None, None, None)) from None

        def answer(self, invocation):
            called = by_name.get(invocation.tool)
            try:
                if called is None:
                    raise Refusal("unsupported", f"This plugin has no tool `{invocation.tool}`.")
                context = Context(invocation.context, invocation.resumed, settings["text"])
                kind, value, content, requests, state = called.answer(json.loads(invocation.arguments), context)
                return _answers.Answer(kind, value, content, requests, state, None)
            except Refusal as no:
                # Details that are not JSON are a fault of the tool, which `call` answers.
                details = None if no.details is None else compact(no.details)
                raise Err(_Error(no.reason, no.sentence, no.field, no.retry_after_ms, details)) from None

    return About, Tools


class _Printed(io.TextIOBase):
    """Writes what is printed to the log, a line at a time. What libraries print may hold a secret, so that no caller hears it."""

    def __init__(self, level):
        self.level, self.rest = level, ""

    def writable(self):
        return True

    def write(self, text):
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.log(line)
        return len(text)

    def finish(self):
        self.log(self.rest)
        self.rest = ""

    def log(self, line):
        if line.strip():
            _log.write(self.level, _sendable(line), LOG_ONLY)


class _Stream(io.TextIOBase):
    """The standard output or error of a plugin: the log while a tool runs, and before that the stream of whatever builds it. It takes the
    place of the stream at once, since a handler of `logging` keeps the one that it finds."""

    def __init__(self, stream, level):
        self.stream, self.level, self.printed = stream, level, None

    def writable(self):
        return True

    def write(self, text):
        return (self.printed or self.stream).write(text)

    def flush(self):
        if not self.printed:
            self.stream.flush()


class _printed:
    """Redirects printed output to the log while it is entered."""

    def __enter__(self):
        for stream in _streams:
            stream.printed = _Printed(stream.level)

    def __exit__(self, *_):
        for stream in _streams:
            stream.printed.finish()


_streams = []
if _log:
    _streams = [_Stream(sys.stdout, "info"), _Stream(sys.stderr, "warn")]
    sys.stdout, sys.stderr = _streams


# How many exceptions a failure names, and how many functions of each, the last ones.
EXCEPTIONS_MAX = 8
FRAMES_MAX = 4
# Functions of the SDK, and of Python's own library.
_FOREIGN = tuple(os.path.join(os.path.dirname(file), "") for file in (__file__, traceback.__file__))
# Python 3.10 has no groups of exceptions.
_GROUP = getattr(builtins, "BaseExceptionGroup", ())


def described(error):
    """The exception with what led to it: its causes, and the members of a group."""
    texts, waiting, seen = [], [("", error)], []
    while waiting and len(texts) < EXCEPTIONS_MAX:
        words, error = waiting.pop(0)
        if any(error is each for each in seen):
            continue
        seen.append(error)
        texts.append(f"{words}{_placed(error)}")
        waiting[:0] = _reasons(error)
    return "; ".join(texts)


def _reasons(error):
    """What led to the exception, each with the words that lead to it."""
    found = [("with ", each) for each in error.exceptions] if isinstance(error, _GROUP) else []
    if error.__cause__ is not None:
        found.append(("caused by ", error.__cause__))
    elif error.__context__ is not None and not error.__suppress_context__:
        found.append(("raised while handling ", error.__context__))
    return found


def _placed(error):
    """The exception, and the author's functions that it came through. Their lines are not read: a component has no files."""
    frames = [
        f"{os.path.basename(frame.f_code.co_filename)}, line {line}, in {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith((*_FOREIGN, "<frozen"))
    ]
    try:
        text = "; ".join([str(error), *getattr(error, "__notes__", ())])
    except Exception:
        text = "its text cannot be made"
    if without := _without_files(error):
        text = f"{text}: there are no files when a tool runs, so {without}"
    way = f" ({' > '.join(frames[-FRAMES_MAX:])})" if frames else ""
    return f"{type(error).__name__}: {text}{way}"


def _without_files(error):
    """What to do about an exception of Python's own library, if it was raised because there are no files."""
    if isinstance(error, ImportError):
        return "a module is imported at the head of `app.py`"
    if isinstance(error, FileNotFoundError):
        return "one is read at the head of `app.py`, or by `files.read` of a root that the operator grants"
    if type(error).__name__ == "ZoneInfoNotFoundError":
        return "a zone is made at the head of `app.py`, with `tzdata` in requirements.txt"
    return None


def _sendable(text):
    """As a text that the gateway takes: half of a character would trap."""
    return str(text).encode("utf-8", "replace").decode()


def compact(value):
    """JSON without spaces. Numbers that JSON cannot hold and half characters are refused here: in the gateway they would trap."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if not written.isascii():
        written.encode()
    return written
