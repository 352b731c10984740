"""Read a file or a text into nodes, within limits.

Nothing here raises for bad input: a document that could not be read has problems and no root.
"""

import re
from pathlib import Path as FilePath

from msgspec import Struct, field

from stretto.documents.node import FORBIDDEN, Node, Source, name_letter
from stretto.documents.regular_file import NotRegular, TooLarge, read_regular
from stretto.problems import Problem
from stretto.vocabulary.amounts import DEFAULT_LIMITS, Limits

_MARK = "\ufeff"
_NAME_A_FILE = "name a YAML or JSON file"


class Document(Struct, frozen=True):
    source: Source
    root: Node | None
    problems: tuple[Problem, ...] = field(default=())


def read_file(path: FilePath, limits: Limits = DEFAULT_LIMITS, shown_as: str = "") -> Document:
    source = load(path, limits, shown_as)
    return source if isinstance(source, Document) else compose(source, limits)


def read_bytes(raw: bytes, file: str = "", limits: Limits = DEFAULT_LIMITS) -> Document:
    source = _decode(raw, file, limits)
    return source if isinstance(source, Document) else compose(source, limits)


def read_text(text: str, file: str = "", limits: Limits = DEFAULT_LIMITS) -> Document:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > limits.text_bytes:
        return _too_large(file, size, limits)
    source = _clean(_source(text, file))
    return source if isinstance(source, Document) else compose(source, limits)


def load(path: FilePath, limits: Limits = DEFAULT_LIMITS, shown_as: str = "") -> Source | Document:
    """The text alone, or a Document that says why there is none."""
    file = shown_as or str(path)
    try:
        raw = read_regular(path, limits.text_bytes)
    except TooLarge as error:
        return _too_large(file, error.size, limits)
    except NotRegular:
        return _refusal(file, "RCP001", f"{file} is not a regular file", _NAME_A_FILE)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _refusal(file, "RCP001", f"{file} cannot be read: {reason}", _NAME_A_FILE)
    return _decode(raw, file, limits)


def compose(source: Source, limits: Limits = DEFAULT_LIMITS) -> Document:
    # Imported on use: a JSON file does not need PyYAML, nor a YAML file the other reader.
    if _is_json(source):
        from stretto.documents.json_text import compose as compose_text
    else:
        from stretto.documents.yaml_text import compose as compose_text
    root, problems = compose_text(source, limits)
    return Document(source, root, tuple(problems))


def _decode(raw: bytes, file: str, limits: Limits) -> Source | Document:
    if len(raw) > limits.text_bytes:
        return _too_large(file, len(raw), limits)
    try:
        return _clean(_source(raw.decode("utf-8"), file))
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8", "replace").removeprefix(_MARK)
        source = Source(good + "\N{REPLACEMENT CHARACTER}", file)
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        place = source.place_of_index(len(good))
        problem = source.problem("RCP003", place, message, "save the file as UTF-8")
        return Document(source, None, (problem,))


def _source(text: str, file: str) -> Source:
    mark = _MARK if text.startswith(_MARK) else ""
    return Source(text.removeprefix(mark), file, mark)


def _clean(source: Source) -> Source | Document:
    forbidden = FORBIDDEN.search(source.text)
    if forbidden is None:
        return source
    place = source.place_of_index(forbidden.start())
    message = f"{name_letter(forbidden[0])} cannot stand in a file"
    return Document(source, None, (source.problem("RCP004", place, message, "delete it"),))


def _is_json(source: Source) -> bool:
    if source.file.endswith((".yaml", ".yml", ".md")):
        return False
    # A text without a name that opens like JSON is JSON; `{name: x}` is YAML.
    return source.file.endswith(".json") or re.match(r'\s*[\[{]\s*["\]}]', source.text) is not None


def _too_large(file: str, size: int, limits: Limits) -> Document:
    message = f"the text has {size:,} bytes; at most {limits.text_bytes:,} are read"
    return _refusal(file, "RCP002", message, "move long material into files that agents read")


def _refusal(file: str, code: str, message: str, hint: str = "") -> Document:
    source = Source("", file)
    return Document(source, None, (source.problem(code, None, message, hint),))
