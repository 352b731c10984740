"""Events as rows of a journal. In: an Event. Out: a JSON object on one line; and back.

    {"type":"timer_fired","v":1,"at":1767225600.0,"timer":"retry.review.2"}

Fields stand in the order of their dataclass. A row is read as its dataclass says: fields that
are not known are passed over, fields that are missing take their default if they have one.
"""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from hashlib import sha256
from json import JSONDecodeError, JSONDecoder, JSONEncoder
from json.encoder import encode_basestring_ascii as quoted
from math import inf, isfinite
from operator import attrgetter, call
from typing import Any, TypeAlias, cast, get_args

from stretto.events.model import AttemptStarted, AttemptSucceeded, Event, FailureKind
from stretto.vocabulary.ids import AgentId, StepId
from stretto.vocabulary.large import LARGE_BYTES, Large, loaded
from stretto.vocabulary.usage import Usage
from stretto.vocabulary.values import Json, JsonText

VERSION = 2  # the newest that is read; rows are written as old as they can be
_WRITTEN = 1
_WITH_OUTPUT_APART = 2


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A row that this Stretto cannot read: torn, foreign, or written by a newer one."""

    raw: str
    reason: str


def encode(event: Event) -> str:
    """Raises ValueError when the event holds something that is not JSON."""
    try:
        return _WRITES[type(event)](event)
    except RecursionError:
        raise ValueError(f"{event.type} is nested too deeply for JSON") from None


def encode_apart(event: Event) -> tuple[str, Large | None, str]:
    """The row; where its output lies, if that is large; and the output, if it lies nowhere yet."""
    if type(event) is not AttemptSucceeded:
        return encode(event), None, ""
    if isinstance(event.output, Large):
        return _write_apart(event, event.output), event.output, ""
    try:
        output = _encode_json(event.output)
    except RecursionError:
        raise ValueError(f"{event.type} is nested too deeply for JSON") from None
    if len(output) <= LARGE_BYTES:
        return _write_succeeded(event, output), None, ""
    digest = sha256(output.encode("ascii")).hexdigest()
    large = Large(digest, len(output), _read_nothing)
    return _write_apart(event, large), large, output


def _read_nothing(digest: str) -> Json:
    raise AssertionError("the store says who reads it")


def decode_value(text: str) -> Json:
    """What was kept apart. Raises ValueError."""
    return _decode_json(text)


def decode(text: str) -> Event | UnknownEvent:
    """Never raises."""
    try:
        row = _decode_json(text)
        event = cast(Event, _record_of(row).read(row))
        if not 0 <= event.at < _YEAR_10000:
            raise ValueError(f"has the time {event.at:g}, which is no date")
        return event
    except JSONDecodeError as error:
        return UnknownEvent(text, f"is not JSON: {error}")
    except RecursionError:
        return UnknownEvent(text, "is nested too deeply")
    except ValueError as error:
        return UnknownEvent(text, str(error))


def _record_of(row: Json) -> "_Record":
    if not isinstance(row, dict):
        raise ValueError("is not a JSON object")
    version, name = row.get("v"), row.get("type")
    if type(version) is not int or version < 1:
        raise ValueError("has no version 'v'")
    if version > VERSION:
        raise ValueError(f"has version {version}: this Stretto reads up to {VERSION}")
    if not isinstance(name, str) or name not in _RECORDS:
        raise ValueError(f"has the type {name!r}, which this Stretto does not know")
    return _RECORDS[name]


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"holds {name}, which is not JSON")


_YEAR_10000 = 253_402_300_800.0  # the first time that no date is made of
_encode_json = JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode_json: Callable[[str], Json] = JSONDecoder(parse_constant=_refuse_constant).decode

_Write: TypeAlias = Callable[[Any], str]
_Read: TypeAlias = Callable[[Json], Any]


class _Record:
    """How a dataclass is written and read: one template, and one form a field.

    A template filled field by field takes half the time of a dict given to the json module.
    """

    def __init__(self, kind: type, head: str = "") -> None:
        self._kind = kind
        keys = (f'"{field.name}":%s' for field in fields(kind))
        self._template = f"{{{','.join([head, *keys] if head else keys)}}}"
        self._values = _values_of([field.name for field in fields(kind)])
        self._writes = [_FORMS[field.type][0] for field in fields(kind)]
        self._read = [(field.name, _FORMS[field.type][1], field.default) for field in fields(kind)]

    def write(self, value: object) -> str:
        return self._template % tuple(map(call, self._writes, self._values(value)))

    def read(self, row: Json) -> Any:
        if not isinstance(row, dict):
            raise ValueError("is not an object")
        values = []
        for name, read, default in self._read:
            if name not in row:
                if default is MISSING:
                    raise ValueError(f"lacks '{name}'")
                values.append(default)
                continue
            try:
                values.append(read(row[name]))
            except ValueError as error:
                raise ValueError(f"'{name}' {error}") from None
        return self._kind(*values)


def _values_of(names: Sequence[str]) -> Callable[[object], tuple[Any, ...]]:
    if len(names) == 1:  # attrgetter would give the value itself
        return lambda value: (getattr(value, names[0]),)
    return attrgetter(*names)


def _write_float(value: float) -> str:
    if not isfinite(value):
        raise ValueError(f"{value} is not JSON")
    return repr(value)


# What starts together starts at one time, and digits take as long as all the rest of a row.
_write_shared_float = lru_cache(maxsize=8, typed=True)(_write_float)


def _write_optional_text(value: str | None) -> str:
    return "null" if value is None else quoted(value)


# Three by hand, since every attempt has them: the table would take more than twice as long.


def _write_started(event: AttemptStarted) -> str:
    return (
        f'{{"type":"attempt_started","v":{_WRITTEN},"at":{_write_shared_float(event.at)}'
        f',"step":{quoted(event.step)},"part":{quoted(event.part)},"attempt":{event.attempt}'
        f',"agent":{quoted(event.agent)},"key":{quoted(event.key)}}}'
    )


def _write_apart(event: AttemptSucceeded, large: Large) -> str:
    tail = f',"output_at":{quoted(large.digest)},"output_bytes":{large.size}}}'
    return _write_succeeded(event, "null", _WITH_OUTPUT_APART)[:-1] + tail


def _write_succeeded(
    event: AttemptSucceeded, output: str | None = None, version: int = _WRITTEN
) -> str:
    if output is None:
        output = _encode_json(loaded(event.output))
    return (
        f'{{"type":"attempt_succeeded","v":{version},"at":{_write_float(event.at)}'
        f',"step":{quoted(event.step)},"part":{quoted(event.part)},"attempt":{event.attempt}'
        f',"output":{output},"usage":{_write_usage(event.usage)}'
        f',"warnings":{_write_texts(event.warnings)},"model":{quoted(event.model)}'
        f',"reused_from":{_write_optional_text(event.reused_from)}}}'
    )


def _write_usage(usage: Usage) -> str:
    return (
        f'{{"input_tokens":{usage.input_tokens},"output_tokens":{usage.output_tokens}'
        f',"usd":{_write_float(usage.usd)},"model_calls":{usage.model_calls}}}'
    )


def _write_texts(values: tuple[str, ...]) -> str:
    return _encode_json(values) if values else "[]"


def _read_text(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError("is not text")
    return value


def _read_bool(value: Json) -> bool:
    if not isinstance(value, bool):
        raise ValueError("is not true or false")
    return value


def _read_int(value: Json) -> int:
    if type(value) is not int:
        raise ValueError("is not a whole number")
    return value


def _read_float(value: Json) -> float:
    if type(value) is not int and type(value) is not float:
        raise ValueError("is not a number")
    if not abs(value) < inf:  # the text may say 1e999
        raise ValueError("is too large")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("is too large") from None


def _read_object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise ValueError("is not an object")
    return value


def _read_object_text(value: Json) -> JsonText:
    return JsonText(_encode_json(_read_object(value)))


def _read_texts(value: Json) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("is not a list")
    return tuple(map(_read_text, value))


def _read_failure(value: Json) -> str:
    if value not in get_args(FailureKind):
        raise ValueError(f"is {value!r}, which this Stretto does not know")
    return cast(str, value)


def _read_json(value: Json) -> Json:
    return value


def _optional(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


_TEXT: tuple[_Write, _Read] = (quoted, _read_text)
# By annotation: a field of a new type fails at import, not in somebody's journal.
_FORMS: dict[object, tuple[_Write, _Read]] = {
    str: _TEXT,
    StepId: _TEXT,
    AgentId: _TEXT,
    bool: (_encode_json, _read_bool),
    int: (int.__repr__, _read_int),
    float: (_write_float, _read_float),
    FailureKind: (quoted, _read_failure),
    Json: (_encode_json, _read_json),
    Json | Large: (_encode_json, _read_json),
    dict[str, Json]: (_encode_json, _read_object),
    dict[str, Json] | None: (_encode_json, _optional(_read_object)),
    JsonText: (str, _read_object_text),  # it is JSON already
    tuple[str, ...]: (_write_texts, _read_texts),
    str | None: (_write_optional_text, _optional(_read_text)),
    float | None: (_encode_json, _optional(_read_float)),
}
_FORMS[Usage] = (_write_usage, _Record(Usage).read)
_RECORDS = {
    kind.type: _Record(kind, f'"type":"{kind.type}","v":{_WRITTEN}') for kind in get_args(Event)
}
_WRITES: dict[type, _Write] = {kind: _RECORDS[kind.type].write for kind in get_args(Event)} | {
    AttemptStarted: _write_started,
    AttemptSucceeded: _write_succeeded,
}
