"""The marks after a type in `Annotated[…]`: bounds and words of a schema, and how `weir call` takes a parameter.

Those of `annotated_types` and of pydantic mean the same. Markers of other libraries say nothing of a schema: they are ignored, with
a warning.
"""

import dataclasses
import inspect
import warnings


@dataclasses.dataclass(frozen=True)
class _Marker:
    value: object


class MinLen(_Marker): ...
class MaxLen(_Marker): ...
class Gt(_Marker): ...
class Lt(_Marker): ...
class Ge(_Marker): ...
class Le(_Marker): ...
class Pattern(_Marker): ...
class Description(_Marker): ...
class Title(_Marker): ...


class Examples:
    def __init__(self, *values):
        self.value = list(values)


class Positional:
    """`weir call` takes the parameter without a flag."""


class Alias:
    """Further flags of `weir call`: `Alias("-e")`."""

    def __init__(self, *flags):
        self.value = list(flags)


class Metavar(_Marker):
    """The word for the value in the help of `weir call`."""


_OURS = {
    MinLen: "min_length", MaxLen: "max_length", Gt: "gt", Lt: "lt", Ge: "ge", Le: "le", Pattern: "pattern",
    Description: "description", Title: "title", Examples: "examples",
}
_OF_WEIR_CALL = (Positional, Alias, Metavar)

# By the names of their types: neither library need be installed.
_OTHERS = (
    "Doc", "DocInfo", "FieldInfo", "Ge", "Gt", "Interval", "Le", "Len", "Lt", "MaxLen", "MinLen", "MultipleOf",
    "Strict", "StringConstraints", "_PydanticGeneralMetadata",
)
_LENGTHS = {
    "string": ("minLength", "maxLength"), "array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties"),
}
_NUMBERS = {
    "gt": "exclusiveMinimum", "lt": "exclusiveMaximum", "ge": "minimum", "le": "maximum", "multiple_of": "multipleOf",
}
_WORDS = {"title": "title", "description": "description", "documentation": "description", "examples": "examples"}
_KNOWN = (
    *_NUMBERS, *_WORDS, "min_length", "max_length", "min_items", "max_items", "unique_items", "pattern", "regex")
# What these say of a value is in no schema.
_UNKNOWN = (
    "alias", "const", "decimal_places", "discriminator", "json_schema_extra", "max_digits", "strip_whitespace", "to_lower",
    "to_upper")


def mark(schema, found, place=""):
    """The schema with what the markers say. `place` begins a warning."""
    for marker in found:
        if not _is_known(marker):
            warnings.warn(f"{place}`{marker!r}` behind a type says nothing of its schema, and is ignored", stacklevel=2)
            continue
        for attribute, value in _said(marker):
            _apply(schema, attribute, value, _name(marker, attribute))
    return schema


def refuse_field(name, default):
    """pydantic treats a value after `=` as more than a default. A function would receive it as it is."""
    if type(default).__name__ == "FieldInfo":
        raise TypeError(f"`{name}`: write `Annotated[…, Field(…)]` for the type, and the default alone behind `=`")


def _name(marker, attribute):
    name = type(marker).__name__
    return name if _ours(marker) or name in ("Ge", "Gt", "Le", "Lt", "MaxLen", "MinLen", "MultipleOf") else attribute


def _ours(marker):
    """The attribute that a marker of the SDK sets, or one of a class made of it; None for any other marker."""
    return next((attribute for kind, attribute in _OURS.items() if isinstance(marker, kind)), None)


def _is_known(marker):
    kind = marker if inspect.isclass(marker) else type(marker)
    return kind.__name__ in _OTHERS or issubclass(kind, (*_OURS, *_OF_WEIR_CALL))


def _said(marker):
    """The content of a marker, as pairs of an attribute and its value."""
    if marker is Positional or isinstance(marker, _OF_WEIR_CALL):
        return []
    if ours := _ours(marker):
        return [(ours, marker.value)]
    if inspect.isclass(marker):
        raise TypeError(f"`{marker.__name__}` says nothing without its value: write `{marker.__name__}(…)`")
    name = type(marker).__name__
    members = {attribute: getattr(marker, attribute, None) for attribute in (*_KNOWN, *_UNKNOWN)}
    pairs = [*members.items(), *(getattr(marker, "extra", None) or {}).items()]
    if name == "FieldInfo":
        unset = type(marker.default).__name__ in ("UndefinedType", "PydanticUndefinedType") or marker.default is ...
        if not unset or marker.default_factory:
            raise TypeError("a default is written behind `=`, not in `Field(…)`")
    for inner in getattr(marker, "metadata", ()):
        pairs += _said(inner) if _is_known(inner) else []
    return [(attribute, value) for attribute, value in pairs if value is not None and value is not False]


def _apply(schema, attribute, value, name):
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if attribute in _WORDS:
        if attribute != "examples" and not isinstance(value, str):
            raise TypeError(f"`{name}` is a text, and not `{value!r}`")
        schema[_WORDS[attribute]] = value
    elif attribute in ("min_length", "max_length", "min_items", "max_items"):
        if kind not in _LENGTHS:
            raise TypeError(f"`{name}` is for texts, lists, sets and dicts, not for {schema}")
        if not isinstance(value, int) or value < 0:
            raise TypeError(f"`{name}` is a length, a whole number from 0, and not `{value!r}`")
        schema[_LENGTHS[kind][attribute.startswith("max")]] = _number(value, name)
    elif attribute in _NUMBERS:
        if kind not in ("integer", "number"):
            raise TypeError(f"`{name}` is for numbers, not for {schema}")
        schema[_NUMBERS[attribute]] = _number(value, name)
    elif attribute in ("pattern", "regex"):
        if kind != "string":
            raise TypeError(f"`{name}` is for texts, not for {schema}")
        schema["pattern"] = getattr(value, "pattern", value)
    elif attribute == "unique_items" and kind == "array":
        schema["uniqueItems"] = True
    else:
        raise TypeError(f"`{name}` has no place in the schema {schema}")


def _number(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"`{name}` is bounded by a number, not by `{value!r}`")
    return value
