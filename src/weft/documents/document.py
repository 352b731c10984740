"""Bytes into nodes, within limits. In: a file or a text. Out: Document, its problems inside.

Nothing here raises for bad input: a document that could not be read has problems and no root.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from weft.documents.node import Node
from weft.documents.source import Source
from weft.problems import Problem
from weft.vocabulary.limits import DEFAULT_LIMITS, Limits

# What YAML calls non-printable. A terminal would obey some of these, so none may pass.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]"
)


@dataclass(frozen=True, slots=True)
class Document:
    source: Source
    root: Node | None
    problems: tuple[Problem, ...] = field(default=())


def read_file(path: FilePath, limits: Limits = DEFAULT_LIMITS, shown_as: str = "") -> Document:
    file = shown_as or str(path)
    try:
        # Not a pipe or a device: reading one might never end.
        if path.exists() and not path.is_file():
            return _refused(file, "RCP001", f"{file} is not a regular file")
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            raw = b"" if size > limits.text_bytes else stream.read(limits.text_bytes + 1)
            size = max(size, len(raw))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _refused(file, "RCP001", f"{file} cannot be read: {reason}")
    if size > limits.text_bytes:
        return _too_large(file, size, limits)
    return read_bytes(raw, file, limits)


def read_bytes(raw: bytes, file: str = "", limits: Limits = DEFAULT_LIMITS) -> Document:
    if len(raw) > limits.text_bytes:
        return _too_large(file, len(raw), limits)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = Source(
            raw[: error.start].decode("utf-8", "replace") + "\N{REPLACEMENT CHARACTER}", file
        )
        place = good.place_of_index(len(good.text) - 1)
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        hint = "save the file as UTF-8"
        return Document(good, None, (good.problem("RCP003", place, message, hint),))
    return read_text(text, file, limits)


def read_text(text: str, file: str = "", limits: Limits = DEFAULT_LIMITS) -> Document:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > limits.text_bytes:
        return _too_large(file, size, limits)
    source = Source(text.removeprefix("\ufeff"), file)
    forbidden = _FORBIDDEN.search(source.text)
    if forbidden:
        place = source.place_of_index(forbidden.start())
        name = (
            "a NUL byte" if forbidden[0] == "\0" else f"control character U+{ord(forbidden[0]):04X}"
        )
        problem = source.problem("RCP004", place, f"{name} cannot stand in a recipe", "delete it")
        return Document(source, None, (problem,))
    # Imported on use: a JSON file does not need PyYAML, nor a YAML file the other reader.
    if _is_json(source):
        from weft.documents.json_text import compose
    else:
        from weft.documents.yaml_text import compose
    root, problems = compose(source, limits)
    return Document(source, root, tuple(problems))


def _is_json(source: Source) -> bool:
    if source.file.endswith((".yaml", ".yml", ".md")):
        return False
    return source.file.endswith(".json") or source.text.lstrip()[:1] in ("{", "[")


def _too_large(file: str, size: int, limits: Limits) -> Document:
    message = f"the text has {size:,} bytes; at most {limits.text_bytes:,} are read"
    return _refused(file, "RCP002", message, "move long material into files that agents read")


def _refused(file: str, code: str, message: str, hint: str = "") -> Document:
    source = Source("", file)
    return Document(source, None, (source.problem(code, None, message, hint),))
