"""From type hints to JSON Schema, and from JSON to values of those types. What has no honest schema is refused."""

import base64
import collections.abc
import dataclasses
import datetime
import enum
import inspect
import json
import pathlib
import re
import types
import typing

from . import markers
from .docs import Docs
from .instead import instead
from .markers import Alias, Metavar, Positional

_MISSING = inspect.Parameter.empty
# The types of the values that a `Literal` or an `Enum` may have.
_TYPES = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


# Names of a type, as `type Price = float` makes them from Python 3.12 on.
_ALIASES = (typing.TypeAliasType,) if hasattr(typing, "TypeAliasType") else ()
# What `typing` calls the types that hold others, where they are written without these.
_CONTAINERS = [
    (typing.List, list), (typing.Dict, dict), (typing.Tuple, tuple), (typing.Set, set), (typing.FrozenSet, frozenset),
    (typing.Sequence, collections.abc.Sequence), (typing.Mapping, collections.abc.Mapping),
]


def bare(hint):
    """Without its markers, and the type itself in place of a name for it."""
    while (inner := _named(hint)) is not hint:
        hint = inner
    return next((kind for name, kind in _CONTAINERS if hint is name), hint)


def markers_of(hint):
    """Those of the type and of each name for it: the outermost last."""
    found = ()
    while (inner := _named(hint)) is not hint:
        if typing.get_origin(hint) is typing.Annotated:
            found = (*typing.get_args(hint)[1:], *found)
        hint = inner
    return found


def _named(hint):
    """What a name or markers are for; any other type as it is."""
    if typing.get_origin(hint) in (typing.Annotated, typing.Final):
        return typing.get_args(hint)[0]
    if isinstance(hint, typing.NewType):
        return hint.__supertype__
    alias = typing.get_origin(hint) or hint
    if isinstance(alias, _ALIASES):
        return _filled(alias.__value__, dict(zip(alias.__type_params__, typing.get_args(hint))))
    return hint


def _filled(hint, types_by_variable):
    """The type with other types in place of its variables."""
    if isinstance(hint, typing.TypeVar):
        return types_by_variable.get(hint, hint)
    variables = () if inspect.isclass(hint) and not typing.get_args(hint) else getattr(hint, "__parameters__", ())
    return hint[tuple(types_by_variable.get(each, each) for each in variables)] if variables else hint


def arms(hint):
    """The types that a union is of; none of any other type."""
    return typing.get_args(bare(hint)) if _is_union(bare(hint)) else ()


def fault(error):
    """The words of an error about a type."""
    if isinstance(error, RecursionError):
        return "a type inside itself is a dataclass or a TypedDict: write `Any` in place of another"
    return str(error)


def _is_union(hint):
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def is_optional(hint):
    return _is_union(bare(hint)) and type(None) in typing.get_args(bare(hint))


def holds_none(hint):
    """Whether None is a value of the type as any other, and does not stand for nothing."""
    hint = bare(hint)
    return hint in (typing.Any, object) or typing.get_origin(hint) is typing.Literal and None in typing.get_args(hint)


def present(hint):
    """The type without the alternative None."""
    if not is_optional(hint):
        return hint
    kept = tuple(arm for arm in arms(hint) if arm is not type(None))
    inner = kept[0] if len(kept) == 1 else typing.Union[kept]
    return typing.Annotated[(inner, *markers_of(hint))] if markers_of(hint) else inner


def is_answer(hint, answer):
    return hint is answer or typing.get_origin(hint) is answer


def _is_model(hint):
    """A model of pydantic 1 or 2, without importing pydantic."""
    return inspect.isclass(hint) and (_is_model_2(hint) or hasattr(hint, "schema") and hasattr(hint, "parse_obj"))


def _is_model_2(hint):
    return hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


def _is_path(hint):
    return inspect.isclass(hint) and issubclass(hint, pathlib.PurePath)


def _is_uuid(hint):
    """Whether it is `uuid.UUID`, without importing it."""
    return inspect.isclass(hint) and (hint.__module__, hint.__name__) == ("uuid", "UUID")


def _is_flag(hint):
    return inspect.isclass(hint) and issubclass(hint, enum.Flag)


def _all_flags(hint):
    """The value in which all members of a `Flag` are combined."""
    combined = 0
    # An iteration leaves out members of several bits, one of which may be no member of its own.
    for member in hint.__members__.values():
        combined |= member.value
    return combined


def _is_scalar(hint):
    """Whether a value of the type is one of JSON without others inside it."""
    kinds = (str, bytes, int, float, bool, datetime.date, datetime.time, enum.Enum, pathlib.PurePath)
    return typing.get_origin(hint) is typing.Literal or _is_uuid(hint) or inspect.isclass(hint) and issubclass(hint, kinds)


def _unhashable(hint):
    """The name of a type whose values a set of Python does not take; None if it takes them."""
    hint = bare(present(hint))
    kind, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if _is_union(hint) or kind is tuple:
        return next(filter(None, (_unhashable(each) for each in arguments if each is not ...)), None)
    # What is read for a sequence is a list, and for a mapping a dict.
    is_other = kind in (collections.abc.Sequence, collections.abc.Mapping) or inspect.isclass(kind) and kind.__hash__ is None
    return kind.__name__ if is_other else None


class Invalid(ValueError):
    """A value meets its schema but not its type: the rules of its model refuse it, or it is not base64 or not a date."""


def _read_model(hint, value):
    try:
        return hint.model_validate(value) if _is_model_2(hint) else hint.parse_obj(value)
    except ValueError as error:
        found = getattr(error, "errors", None)
        if found is None:
            raise
        told = (": ".join([*([".".join(map(str, each["loc"]))] if each["loc"] else []), each["msg"]]) for each in found())
        raise Invalid("; ".join(told)) from error


class Parameter:
    """One parameter of a function."""

    def __init__(self, name, hint, default, documented):
        self.name, self.hint, self.default, self.documented = name, hint, default, documented
        self.cli = {}
        markers.refuse_field(name, default)
        for marker in markers_of(hint):
            if marker is Positional or isinstance(marker, Positional):
                self.cli["positional"] = True
            elif isinstance(marker, Alias):
                self.cli["aliases"] = marker.value
            elif isinstance(marker, Metavar):
                self.cli["metavar"] = marker.value

    def read(self, given):
        if self.name in given and not (given[self.name] is None and self.default is None):
            return read(present(self.hint), given[self.name])
        return None if self.default is _MISSING else self.default


class Writer:
    """Writes one schema. A type inside itself is written once, in place, and referred to from there."""

    def __init__(self, purpose, place=""):
        self.purpose, self.place = purpose, place
        self.open, self.referred, self.definitions = [], [], {}

    def whole(self, hint):
        return self._closed(self.of(hint))

    def parameters(self, parameters):
        properties, required = {}, []
        for parameter in parameters:
            place, self.place = self.place, f"{self.place}`{parameter.name}`: "
            try:
                schema = self._documented(self.of(present(parameter.hint)), parameter.documented)
                json.dumps(schema, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise TypeError(f"{self.place}{fault(error)}") from None
            self.place = place
            if parameter.default is _MISSING:
                required.append(parameter.name)
            else:
                # Only what is JSON can be said.
                default = _json_or_missing(parameter.default)
                if default is not _MISSING:
                    schema["default"] = default
            properties[parameter.name] = schema
        return self._closed(_object(properties, required))

    def of(self, hint):
        schema = markers.mark(self._plain(bare(hint)), markers_of(hint), self.place)
        if "examples" in schema:
            schema["examples"] = plain(schema["examples"])
        return schema

    def _closed(self, schema):
        if self.definitions:
            schema["$defs"] = self.definitions
        return schema

    def _plain(self, hint):
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        match hint:
            case _ if hint is str:
                return {"type": "string"}
            case _ if hint is bool:
                return {"type": "boolean"}
            case _ if hint is int:
                return {"type": "integer"}
            case _ if hint is float:
                return {"type": "number"}
            case _ if hint is bytes:
                return {"type": "string", "contentEncoding": "base64"}
            case _ if _is_path(hint):
                return {"type": "string"}
            case _ if hint is typing.Any or hint is object:
                return {}
            case _ if hint is datetime.datetime:
                return {"type": "string", "format": "date-time"}
            case _ if hint is datetime.date:
                return {"type": "string", "format": "date"}
            case _ if hint is datetime.time:
                return {"type": "string", "format": "time"}
            case _ if _is_uuid(hint):
                return {"type": "string", "format": "uuid"}
            case _ if hint in (list, collections.abc.Sequence, tuple):
                return {"type": "array"}
            case _ if hint in (set, frozenset):
                return {"type": "array", "uniqueItems": True}
            case _ if hint in (dict, collections.abc.Mapping):
                return {"type": "object"}
        if origin in (list, collections.abc.Sequence):
            return self._items({"type": "array"}, arguments[0])
        if origin in (set, frozenset):
            if unhashable := _unhashable(arguments[0]):
                raise TypeError(f"`{unhashable}` cannot be in a set of Python: write `list` in place of `{origin.__name__}`")
            return {**self._items({"type": "array"}, arguments[0]), "uniqueItems": True}
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is ...:
                return self._items({"type": "array"}, arguments[0])
            count = len(arguments)
            # A schema may not have an empty list of schemas.
            places = {"prefixItems": [self.of(each) for each in arguments]} if arguments else {}
            return {"type": "array", **places, "minItems": count, "maxItems": count}
        if origin in (dict, collections.abc.Mapping):
            schema = {"type": "object"}
            names = self.of(arguments[0]) if _is_scalar(bare(arguments[0])) else {}
            if names.get("type") != "string":
                raise TypeError(f"the keys of `{hint}` are not texts: a JSON object has only such keys")
            if names != {"type": "string"}:
                schema["propertyNames"] = names
            values = self._nullable(arguments[1])
            return {**schema, "additionalProperties": values} if values else schema
        if origin is typing.Literal:
            return self._choices(list(arguments), hint)
        if _is_union(hint):
            arms = [self.of(arm) for arm in arguments if arm is not type(None)]
            if type(None) not in arguments:
                return {"anyOf": arms}
            return _or_null(arms[0]) if len(arms) == 1 else {"anyOf": [*arms, {"type": "null"}]}
        if _is_flag(hint) and _all_flags(hint):
            # Members may be combined, and 0 is none of them.
            return {"type": "integer", "minimum": 0, "maximum": _all_flags(hint)}
        if inspect.isclass(hint) and issubclass(hint, enum.Enum):
            return self._choices([member.value for member in hint], hint)
        if _is_model(hint):
            return self._model(hint)
        if _record_class(hint):
            return self._record(hint)
        if isinstance(hint, typing.TypeVar):
            raise TypeError(f"`{hint.__name__}` is a variable: write the type that it has here, as `str`")
        if isinstance(hint, typing.ForwardRef):
            raise TypeError(f"`{hint.__forward_arg__}` is inside itself, as a dataclass or a TypedDict alone can be: write `Any` in its place")
        raise TypeError(f"`{getattr(hint, '__name__', hint)}` has no schema; {instead(hint)}")

    def _items(self, schema, items):
        inner = self._nullable(items)
        return {**schema, "items": inner} if inner else schema

    def _nullable(self, hint):
        """Inside a list or a map a value that may be None is null."""
        return _or_null(self.of(present(hint))) if is_optional(hint) else self.of(hint)

    def _choices(self, values, hint):
        words = []
        values = [_value(each) for each in values]
        if not values:
            raise TypeError(f"`{hint.__name__}` has no members, so that no value is one")
        for value in values:
            word = _TYPES.get(type(value)) or (
                "string" if isinstance(value, str) else "integer" if isinstance(value, int) else None)
            if word is None:
                raise TypeError(f"`{value!r}` of `{hint}` is not a text, whole number, True, False or None")
            if word not in words:
                words.append(word)
        return {"type": words[0] if len(words) == 1 else words, "enum": values}

    def _record(self, hint):
        kind, name = _record_class(hint), _record_name(hint)
        if hint in self.open:
            self.referred.append(hint)
            return {"$ref": f"#/$defs/{name}"}
        if hint is kind and getattr(kind, "__parameters__", ()):
            raise TypeError(f"`{name}` is generic: write a type behind its name, as `{name}[str]`")
        self.open.append(hint)
        if self.purpose != "output":
            _refuse_init_vars(kind)
        properties, required = {}, []
        docs = Docs(kind.__doc__ if not dataclasses.is_dataclass(kind) or not _made_doc(kind) else None)
        for field in fields(hint):
            if not field.is_sent and self.purpose != "output":
                continue
            # A TypedDict holds a None as it is, and a dataclass leaves it out. The fields of a form know no null.
            may_be_null = _is_typed_dict(kind) and self.purpose != "form"
            try:
                schema = self._nullable(field.hint) if may_be_null else self.of(present(field.hint))
            except TypeError as error:
                raise TypeError(f"`{field.name}`: {error}") from None
            schema = self._documented(schema, docs.parameters.get(field.name))
            if field.required:
                required.append(field.name)
            elif field.default not in (None, _MISSING):
                default = _json_or_missing(field.default)
                if default is not _MISSING:
                    schema["default"] = default
            properties[field.name] = schema
        self.open.pop()
        written = _object(properties, required)
        if hint in self.referred:
            self.definitions[name] = {**written}
        return written

    def _model(self, hint):
        """pydantic writes it; its definitions move to the root."""
        if _is_model_2(hint):
            written = hint.model_json_schema(mode="serialization" if self.purpose == "output" else "validation")
            definitions = written.pop("$defs", {})
        else:
            written = dict(hint.schema(ref_template="#/$defs/{model}"))
            definitions = written.pop("definitions", {})
        self.definitions.update({name: _without_titles(inner) for name, inner in definitions.items()})
        return _without_titles(written)

    def _documented(self, schema, words):
        if words and "description" not in schema:
            schema = {**schema, "description": words}
        return schema


@dataclasses.dataclass
class Field:
    name: str
    hint: object
    required: bool
    default: object
    # Whether a caller sends it: a dataclass may compute a field itself.
    is_sent: bool = True


# The default of a field that is computed for each value: the schema cannot promise it.
_MADE = object()


def _record_class(hint):
    """The dataclass or TypedDict that a type is, or that it fills the variables of; None for any other type."""
    kind = typing.get_origin(hint) or hint
    return kind if _is_typed_dict(kind) or inspect.isclass(kind) and dataclasses.is_dataclass(kind) else None


def _is_typed_dict(kind):
    """Whether it is a TypedDict, of `typing_extensions` too, whose own `typing` does not know."""
    return typing.is_typeddict(kind) or inspect.isclass(kind) and issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def _record_name(hint):
    """The name of a definition: `Page_int` for `Page[int]`."""
    names = (each.__name__ if inspect.isclass(each) and not typing.get_args(each) else str(each) for each in typing.get_args(hint))
    return re.sub(r"\W+", "_", "_".join((_record_class(hint).__name__, *names)))


def fields(hint):
    """Of a dataclass or a TypedDict."""
    kind = _record_class(hint)
    hinted = _filled_fields(hint, _hinted(kind))
    if _is_typed_dict(kind):
        for name, inner in hinted.items():
            yield Field(name, *_unqualified(inner, name in kind.__required_keys__), _MISSING)
        return
    for field in dataclasses.fields(kind):
        inner, default = hinted[field.name], field.default
        markers.refuse_field(field.name, default)
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory() if field.default_factory in (list, dict, set, frozenset, tuple) else _MADE
        default = _MISSING if default is dataclasses.MISSING else default
        yield Field(field.name, inner, default is _MISSING and not is_optional(inner), default, field.init)


def _filled_fields(hint, hinted):
    """The types of the fields without variables: with those of `Page[int]`, and of the generic classes that a class is made of."""
    kind = typing.get_origin(hint) or hint
    types_by_variable = dict(zip(getattr(kind, "__parameters__", ()), typing.get_args(hint)))
    filled = {}
    for base in getattr(kind, "__orig_bases__", ()) if "__orig_bases__" in vars(kind) else kind.__bases__:
        if _record_class(base):
            inherited = _filled(base, types_by_variable)
            filled.update(_filled_fields(inherited, _hinted(_record_class(base))))
    # A TypedDict has the fields of its bases as its own.
    own = () if _is_typed_dict(kind) or not filled else kind.__annotations__
    return {name: filled[name] if name in filled and name not in own else _filled(inner, types_by_variable)
            for name, inner in hinted.items()}


def _hinted(hint):
    """The types of the fields of a dataclass or a TypedDict, by name."""
    try:
        return typing.get_type_hints(hint, include_extras=True)
    except NameError as error:
        raise TypeError(f"`{hint.__name__}`: there is no `{error.name}`; write it above the tool, or import it") from None


def _refuse_init_vars(hint):
    """Refuses members that are given when a value is made but are not fields: what a caller sends is read into fields."""
    for name, inner in _hinted(hint).items():
        if isinstance(inner, dataclasses.InitVar):
            raise TypeError(f"`{name}` is sent and never answered: write a field in place of the `InitVar`")


def _unqualified(hint, required):
    """Without `Required` and `NotRequired`, which a class does not know of where annotations are texts."""
    if typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        return _unqualified(typing.get_args(hint)[0], typing.get_origin(hint) is typing.Required)
    if hasattr(typing, "ReadOnly") and typing.get_origin(hint) is typing.ReadOnly:
        return _unqualified(typing.get_args(hint)[0], required)
    if markers_of(hint):
        inner, required = _unqualified(bare(hint), required)
        return typing.Annotated[(inner, *markers_of(hint))], required
    return hint, required


def _made_doc(hint):
    """dataclasses write a docstring of their own where there is none."""
    return (hint.__doc__ or "").startswith(f"{hint.__name__}(")


def _object(properties, required):
    written = {"type": "object", "properties": properties}
    if required:
        written["required"] = required
    return written


def _or_null(schema):
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]} if schema else schema


def _without_titles(schema):
    """The titles that pydantic makes of names say nothing new."""
    if isinstance(schema, dict):
        return {
            key: {name: _without_titles(inner) for name, inner in value.items()} if key == "properties" else _without_titles(value)
            for key, value in schema.items()
            if key != "title"
        }
    return [_without_titles(inner) for inner in schema] if isinstance(schema, list) else schema


def _json_or_missing(value):
    try:
        value = plain(value)
        json.dumps(value, allow_nan=False)
        return value
    except (TypeError, ValueError):
        return _MISSING


def read(hint, value):
    """A value of the type, from JSON that meets its schema."""
    if value is None and is_optional(hint):
        return None
    hint = bare(present(hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is int:
        return int(value)
    if hint is float:
        return float(value)
    if hint is bytes:
        return _read_text(lambda text: base64.b64decode(text, validate=True), value, "it is not base64")
    if _is_path(hint):
        return hint(value)
    if origin is typing.Literal:
        return next((each for each in arguments if _is_same(_value(each), value)), value)
    if hint in (datetime.datetime, datetime.date, datetime.time):
        return _read_text(hint.fromisoformat, value, f"it is not a {hint.__name__}")
    if _is_uuid(hint):
        return _read_text(hint, value, "it is not a UUID")
    if origin in (list, collections.abc.Sequence):
        return [read(arguments[0], each) for each in value]
    if hint in (set, frozenset, tuple):
        return hint(value)
    if origin in (set, frozenset):
        return origin(read(arguments[0], each) for each in value)
    if origin is tuple:
        kinds = [arguments[0]] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(read(kind, each) for kind, each in zip(kinds, value))
    if origin in (dict, collections.abc.Mapping):
        return {read(arguments[0], key): read(arguments[1], each) for key, each in value.items()}
    if _is_flag(hint):
        return _read_flags(hint, int(value))
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return hint(value)
    if _is_model(hint):
        return _read_model(hint, value)
    if _is_union(hint):
        return _read_union(arguments, value)
    kind = _record_class(hint)
    if _is_typed_dict(kind):
        return {field.name: read(field.hint, value[field.name]) for field in fields(hint) if field.name in value}
    if kind:
        sent = [field for field in fields(hint) if field.is_sent]
        given = {field.name: read(field.hint, value[field.name]) for field in sent if field.name in value}
        for field in sent:
            if field.name not in given and field.default is _MISSING:
                given[field.name] = None
        return _read_record(kind, given)
    return value


def _read_flags(kind, value):
    if value & ~_all_flags(kind):
        raise Invalid(f"`{kind.__name__}` has no members that make {value}")
    return kind(value)


def _read_text(reader, value, fault):
    try:
        return reader(value)
    except ValueError:
        raise Invalid(fault) from None


def _read_record(kind, given):
    """A dataclass. What its `__post_init__` refuses is the caller's to repair, as is what a validator of a model refuses."""
    try:
        return kind(**given)
    except ValueError as error:
        raise Invalid(str(error).rstrip(".")) from error


def _read_union(arms, value):
    """Reads the value as the first arm that it is of. Members that no arm has a name for are passed over in a second round."""
    refused = None
    for is_closed in (True, False):
        for arm in arms:
            try:
                if _is_kind(arm, value, is_closed):
                    return read(arm, value)
            except Invalid as error:
                refused = refused or error
            except (TypeError, ValueError, KeyError):
                continue
    if refused:
        raise refused
    return value


def _is_kind(hint, value, is_closed):
    """Whether the value is of the type. `is_closed`: its objects have no other members than the type names."""
    if value is None and is_optional(hint):
        return True
    hint = bare(present(hint))
    kind, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind in (typing.Any, object):
        return True
    if _is_union(hint):
        return any(_is_kind(arm, value, is_closed) for arm in arguments)
    if kind is typing.Literal:
        return any(_is_same(_value(each), value) for each in arguments)
    if isinstance(value, bool):
        return kind is bool
    if _record_class(kind):
        return isinstance(value, dict) and _is_record(
            [field for field in fields(hint) if field.is_sent], value, is_closed)
    if kind is int:
        return isinstance(value, int) or isinstance(value, float) and value.is_integer()
    if kind is float:
        return isinstance(value, (int, float))
    if typing.get_origin(hint) is tuple and arguments[1:] != (...,):
        return (isinstance(value, list) and len(value) == len(arguments)
                and all(_is_kind(of, each, is_closed) for of, each in zip(arguments, value)))
    if kind in (list, tuple, set, frozenset, collections.abc.Sequence):
        return isinstance(value, list) and all(_is_kind(of, each, is_closed) for of in arguments[:1] for each in value)
    if kind in (dict, collections.abc.Mapping):
        return isinstance(value, dict) and all(_is_kind(of, each, is_closed) for of in arguments[1:] for each in value.values())
    if _is_model(kind):
        return isinstance(value, dict)
    if _is_flag(kind):
        return isinstance(value, int)
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return any(value == member.value for member in kind)
    if kind in (str, bytes, datetime.datetime, datetime.date, datetime.time) or _is_path(kind) or _is_uuid(kind):
        return isinstance(value, str)
    return False


def _value(each):
    """What a member of a `Literal` is in JSON: it may be one of an `Enum`."""
    return each.value if isinstance(each, enum.Enum) else each


def _is_same(one, other):
    """Whether the values of JSON are one. For Python `True` is 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _is_record(known, value, is_closed):
    """A union of records is told apart by what their members may be: by a `Literal` above all."""
    if is_closed and not set(value) <= {field.name for field in known}:
        return False
    return all(
        _is_kind(field.hint, value[field.name], is_closed) if field.name in value else not field.required for field in known)


def plain(value):
    """What `json` can write. A field that is None is left out where it may be."""
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if _is_model(type(value)):
        return json.loads(value.json(exclude_none=True, by_alias=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if any(inner is None for inner in members.values()):
            left_out = {field.name for field in fields(type(value)) if not field.required}
            members = {name: inner for name, inner in members.items() if inner is not None or name not in left_out}
        return {name: plain(inner) for name, inner in members.items()}
    if isinstance(value, collections.abc.Mapping):
        return {plain(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(inner) for inner in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (datetime.datetime, datetime.time)) and value.utcoffset() is None:
        # The formats of JSON Schema demand an offset, and a component has no zone other than UTC.
        return f"{value.isoformat()}Z"
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, pathlib.PurePath) or _is_uuid(type(value)):
        return str(value)
    return value
