"""What an author writes in place of a type that has no schema."""

import inspect
import sys

# What to write in place of a type without a schema, by its name.
_INSTEAD = {
    "Decimal": "write `str`, which keeps every digit, and make the `Decimal` of it",
    "timedelta": "write a number whose name has its unit, as `wait_seconds: float`",
    "OrderedDict DefaultDict defaultdict Counter MutableMapping": "write `dict[str, int]`",
    "AsyncGenerator AsyncIterable AsyncIterator Collection Deque Generator Iterable Iterator MutableSequence deque": "write `list[str]`",
    "AbstractSet MutableSet Set": "write `set[str]`",
    "complex": "write `tuple[float, float]`",
    "bytearray memoryview": "write `bytes`",
    "IPv4Address IPv6Address LiteralString Pattern ZoneInfo": "write `str`",
    "Callable Coroutine Future type": "an agent sends JSON: write the value that comes of it",
    "Never NoReturn": "write `None`",
    "ClassVar Final Self TypeVarTuple Unpack": "write the type itself",
}


def instead(hint):
    """The advice about a type that has no schema."""
    name = getattr(hint, "__name__", None) or getattr(hint, "_name", None) or str(hint)
    for names, words in _INSTEAD.items():
        if name in names.split():
            return words
    made_of = next((kind for kind in (str, int, float) if inspect.isclass(hint) and issubclass(hint, kind)), None)
    if made_of:
        return f"write `{made_of.__name__}`"
    if inspect.isclass(hint) and hint.__module__ not in sys.stdlib_module_names:
        return "write a dataclass in its place, with a type for each field"
    return "use str, int, float, bool, a list, set, tuple or dict of these, an Enum, a Literal, a dataclass, a TypedDict, a date or a pydantic model"
