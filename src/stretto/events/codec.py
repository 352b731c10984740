"""Events as rows of a journal: a JSON object on one line, and back.

    {"type":"timer_fired","at":1767225600.0,"timer":{"kind":"step","step":"review"}}

A row is read as its class says: fields that are not known are passed over, fields that are missing
take their default if they have one.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import cast

import msgspec

from stretto.events.model import AttemptSucceeded, Event
from stretto.vocabulary.json_value import LARGE_BYTES, Json, Large, loaded, read_json

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A row that this Stretto cannot read: torn, foreign, or written by a newer one."""

    raw: str
    reason: str


def encode(event: Event) -> str:
    """Raises ValueError when the event holds something that is not JSON."""
    if isinstance(event, AttemptSucceeded) and isinstance(event.output, Large):
        event = msgspec.structs.replace(event, output=loaded(event.output))
    return _encode(event).decode()


def encode_ascii(event: Event) -> str:
    """The same in ASCII, which no terminal takes for a control sequence."""
    return json.dumps(json.loads(encode(event)), separators=(",", ":"))


def encode_apart(event: Event) -> tuple[str, Large | None, str]:
    """Out: the row; the digest and size of its output, if that is large; and the JSON of a large
    output that no store has yet."""
    if not isinstance(event, AttemptSucceeded):
        return _encode(event).decode(), None, ""
    large, output = event.output, b""
    if not isinstance(large, Large):
        row = _encode(event)
        if len(row) > LARGE_BYTES:
            output = _encode(event.output)
        if len(output) <= LARGE_BYTES:
            return row.decode(), None, ""
        large = Large(sha256(output).hexdigest(), len(output), _read_nothing)
    apart = msgspec.structs.replace(
        event, output=None, output_at=large.digest, output_bytes=large.size
    )
    return _encode(apart).decode(), large, output.decode()


def _read_nothing(digest: str) -> Json:
    raise AssertionError("the store puts its own reader in place of this one")


def decode(row: str | bytes) -> Event | UnknownEvent:
    """Never raises."""
    try:
        return _decode(row)
    except msgspec.ValidationError as error:
        reason = f"is no event that this Stretto knows: {error}"
    except (UnicodeDecodeError, msgspec.DecodeError, ValueError) as error:
        reason = f"is not JSON: {error}"
    except RecursionError:
        reason = "is nested too deeply"
    return UnknownEvent(row if isinstance(row, str) else row.decode(errors="replace"), reason)


def decode_value(text: str) -> Json:
    """An output that was kept apart. Raises ValueError."""
    try:
        return cast(Json, msgspec.json.decode(text))
    except msgspec.DecodeError:
        return read_json(text)


def _encode(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        # Half of a surrogate pair is no text in UTF-8, but models and file names bring some.
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
    except RecursionError:
        raise ValueError("this is nested too deeply for JSON") from None
    except TypeError as error:
        raise ValueError(f"this is not JSON: {error}") from None


def _decode(row: str | bytes) -> Event:
    try:
        return _decoder.decode(row)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Half of a surrogate pair again; or a torn row, which json cannot read either.
        return cast(Event, msgspec.convert(read_json(row), Event))
