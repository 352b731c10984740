"""What comes from outside: deliveries to a webhook, and files in a watched folder. Out: inputs.

The sender of a delivery signs the time and the body with the secret of the hook:

    X-Stretto-Timestamp: 1763460000
    X-Stretto-Signature: sha256=HEX of HMAC-SHA256(secret, "1763460000." + body)
"""

import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

from stretto.problems.errors import InvalidUsage, PermissionDenied, StrettoError
from stretto.recipe.model import Input
from stretto.templates.render import TooLong, whole_value
from stretto.templates.scope import MISSING, Scope
from stretto.templates.template import parse_template
from stretto.text.short import did_you_mean, listed
from stretto.triggers.trigger import Trigger
from stretto.vocabulary.json_value import DEEPEST, Json, is_deeper, read_json

MOST_BODY_BYTES = 1_000_000
WINDOW_SECONDS = 300.0  # by which the sender's clock may differ
MOST_FILES = 10_000
NOT_TEXT = "not-text-"  # begins the version of a file whose name is no UTF-8
MOST_AT_ONCE = 100  # files that fire after one look at the folder; the rest wait for the next


def signature(secret: str, timestamp: str, body: bytes) -> str:
    signed = timestamp.encode("utf-8", "replace") + b"." + body
    return f"sha256={hmac.new(secret.encode(), signed, sha256).hexdigest()}"


def check_delivery(secret: str, timestamp: str, signed: str, body: bytes, now: float) -> str:
    """The key of a delivery, equal where it is sent again: its signature. Raises PermissionDenied.

    A sender that cannot sign gets one and the same error, whichever header is wrong."""
    refused = PermissionDenied(
        "the signature is not valid",
        hint="sign 'TIMESTAMP.BODY' with the hook's secret, and send it within five minutes",
    )
    # Compared whatever the timestamp is; as bytes, since a header may hold letters beyond ASCII.
    expected = signature(secret, timestamp, body)
    is_signed = hmac.compare_digest(expected.encode(), signed.strip().encode("utf-8", "replace"))
    is_number = timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12
    if not is_signed or not is_number:
        raise refused
    if abs(now - int(timestamp)) > WINDOW_SECONDS:
        raise refused
    return expected


def read_body(body: bytes) -> Json:
    """Raises InvalidUsage."""
    if len(body) > MOST_BODY_BYTES:
        raise InvalidUsage(f"the body has more than {MOST_BODY_BYTES:,} bytes")
    try:
        value = read_json(body.decode("utf-8"))
        if is_deeper(value):
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, ValueError) else "it is nested too deep"
        raise InvalidUsage(f"the body is not JSON: {said[:200]}") from None
    return value


def mapped_inputs(trigger: Trigger, inputs: Iterable[Input], body: Json) -> dict[str, Json]:
    """What a body says, as inputs. Without a mapping: the fields that have the names of inputs.

    Raises InvalidUsage."""
    if not trigger.mapping:
        if not isinstance(body, dict):
            raise InvalidUsage("the body must be a JSON object: its fields are the inputs")
        return {each.name: body[each.name] for each in inputs if each.name in body}
    scope = Scope(local={"body": body})
    found: dict[str, Json] = {}
    for name, text in trigger.mapping.items():
        try:
            value = whole_value(parse_template(text)[0], scope)
        except TooLong as error:
            raise InvalidUsage(f"input '{name}': {error}") from None
        if value is not MISSING and value is not None:
            found[name] = value
    return found


def check_mapping(trigger: Trigger, inputs: Iterable[Input]) -> None:
    """Raises InvalidUsage for templates and names that could never work."""
    declared = {each.name: each for each in inputs}
    for name in (*trigger.mapping, *trigger.inputs, *((trigger.input,) if trigger.input else ())):
        if name not in declared:
            hint = did_you_mean(name, declared) or f"its inputs: {listed(declared) or 'none'}"
            raise InvalidUsage(f"{trigger.workflow} has no input '{name}'", hint=hint)
    for name, text in trigger.mapping.items():
        template, faults = parse_template(text)
        if faults:
            raise InvalidUsage(f"input '{name}': {faults[0].message}", hint=faults[0].hint)
        for reference in template.references:
            if reference.path[0] != "body":
                said = f"input '{name}': {{{{{reference.text}}}}} is not known here"
                raise InvalidUsage(said, hint="a webhook has its body: {{body.title}}")
    given = {*trigger.mapping, *trigger.inputs, trigger.input}
    if trigger.kind == "webhook" and not trigger.mapping:
        given |= set(declared)  # each may be in the body
    lacking = [
        each.name
        for each in declared.values()
        if each.is_required and not each.has_default and each.name not in given
    ]
    if lacking:
        raise InvalidUsage(
            f"{trigger.workflow} needs the input {listed(lacking)}",
            hint=f"give it: -i {lacking[0]}=VALUE",
        )


def versions_in(folder: Path, pattern: str) -> dict[str, str]:
    """The version of each file of the folder itself, by its name. Links are not followed. A name that is
    no text stands there as text (`bad\\xff.txt`), and its version begins with NOT_TEXT.

    Raises StrettoError where the folder cannot be read, or holds too much."""
    found: dict[str, str] = {}
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= MOST_FILES:
                    raise StrettoError(f"{folder} has more than {MOST_FILES:,} entries")
                if entry.name.startswith(".") or not fnmatchcase(entry.name, pattern):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if S_ISREG(status.st_mode):
                    version = f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"
                    name = as_text(entry.name)
                    found[name] = version if name == entry.name else f"{NOT_TEXT}{version}"
    except OSError as error:
        raise StrettoError(f"{folder} cannot be watched: {error.strerror}") from None
    return found


def as_text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


@dataclass(slots=True)
class FolderWatch:
    """Files that may still be changing. Times are of a clock that nobody sets."""

    # By name: the version, and since when it has been seen.
    unsettled: dict[str, tuple[str, float]] = field(default_factory=dict)

    def settled(
        self, trigger: Trigger, found: Mapping[str, str], seen: Mapping[str, str], at: float
    ) -> dict[str, str]:
        """Files that are not as they were seen, and have not changed for a while."""
        ready: dict[str, str] = {}
        waiting: dict[str, tuple[str, float]] = {}
        for name, version in found.items():
            if seen.get(name) == version:
                continue
            before, since = self.unsettled.get(name, ("", at))
            since = since if before == version else at
            if at - since >= trigger.settle_seconds and len(ready) < MOST_AT_ONCE:
                ready[name] = version
            else:
                waiting[name] = (version, since)
        self.unsettled = waiting
        return ready


def check_folder(trigger: Trigger, project: Path) -> Path:
    """The absolute path of the folder. Raises InvalidUsage."""
    folder = (project / trigger.folder).resolve()
    if not folder.is_dir():
        raise InvalidUsage(f"there is no folder {folder}", hint="make it first")
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise InvalidUsage(f"the name of {str(folder)!a} is not UTF-8", hint="rename it") from None
    return folder
