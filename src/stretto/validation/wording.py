"""How values are shown in a reason: short, on one line, whatever they are."""

import json

from stretto.vocabulary.values import Json

_LONGEST = 80


def shortened(value: Json, longest: int = _LONGEST) -> str:
    try:
        written = json.dumps(_pruned(value, longest, 4), ensure_ascii=False)
    except (ValueError, RecursionError):  # a number too long to write
        written = "a value that cannot be shown"
    written = written.encode("utf-8", "replace").decode("utf-8")
    return written if len(written) <= longest else f"{written[: longest - 1]}…"


def _pruned(value: Json, longest: int, depth: int) -> Json:
    """No more of it than could be shown: a value of megabytes is not written out for a line."""
    if isinstance(value, str):
        return value[:longest]
    if depth == 0 and isinstance(value, dict | list):
        return "…"
    if isinstance(value, list):
        return [_pruned(inner, longest, depth - 1) for inner in value[:longest]]
    if isinstance(value, dict):
        some = list(value.items())[:longest]
        return {key[:longest]: _pruned(inner, longest, depth - 1) for key, inner in some}
    return value


def listed(names: list[str], most: int = 8) -> str:
    shown = ", ".join(f"'{name[:60]}'" for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
