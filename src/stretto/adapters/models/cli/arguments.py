"""The arguments of a call, as the journal keeps them. In: whatever a model wrote. Out: little of it."""

from collections.abc import Mapping

from stretto.vocabulary.values import Json

_LONGEST = 2_000
_LONGEST_NAME = 200
_MOST_ELEMENTS = 100
_DEEPEST = 8


def shortened(text: str, longest: int) -> str:
    left_out = len(text) - longest
    return text if left_out <= 0 else f"{text[:longest]} … ({left_out} characters more)"


def short_arguments(arguments: Mapping[str, Json]) -> dict[str, Json]:
    some = list(arguments.items())[:_MOST_ELEMENTS]
    return {shortened(key, _LONGEST_NAME): _short(each, 1) for key, each in some}


def _short(value: Json, depth: int) -> Json:
    if isinstance(value, str):
        return shortened(value, _LONGEST)
    if isinstance(value, list | dict) and depth >= _DEEPEST:
        return "…"
    if isinstance(value, list):
        return [_short(each, depth + 1) for each in value[:_MOST_ELEMENTS]]
    if isinstance(value, dict):
        some = list(value.items())[:_MOST_ELEMENTS]
        return {shortened(key, _LONGEST_NAME): _short(each, depth + 1) for key, each in some}
    return value
