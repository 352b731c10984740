"""Every text of the page and of its graph can be read: a contrast of 4.5 to 1 at least (WCAG AA)."""

import re
from importlib.resources import files

import pytest

from stretto.report.diagrams.svg import _STATE_STYLE, _STYLE

CSS = files("stretto.report").joinpath("page.css").read_text(encoding="utf-8")
LEAST = 4.5


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(each * 2 for each in digits) if len(digits) == 3 else digits
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def schemes() -> list[dict[str, str]]:
    """Light, dark and printed, in the order of the style sheet."""
    blocks = re.findall(r":root \{([^}]*)\}", CSS)
    found = [dict(re.findall(r"--([a-z]+): (#[0-9a-f]+)", block)) for block in blocks]
    return [scheme for scheme in found if "ground" in scheme]


SCHEMES = schemes()


def test_there_are_three_schemes_of_the_same_names():
    assert len(SCHEMES) == 3
    assert len({frozenset(scheme) for scheme in SCHEMES}) == 1


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark", "print"])
def test_words_can_be_read_on_every_ground(scheme: dict[str, str]):
    words = scheme.keys() - {"ground", "panel", "line", "on"}
    assert len(words) == 9
    for ground in ("ground", "panel"):
        poor = {word for word in words if contrast(scheme[word], scheme[ground]) < LEAST}
        assert poor == set()
    tones = words - {"ink", "quiet"}
    assert {tone for tone in tones if contrast(scheme["on"], scheme[tone]) < LEAST} == set()


@pytest.mark.parametrize(("place", "scheme"), [(0, SCHEMES[0]), (1, SCHEMES[1])])
def test_states_in_the_graph_can_be_read(place: int, scheme: dict[str, str]):
    for style in (_STYLE, _STATE_STYLE):
        part = style.partition("@media (prefers-color-scheme: dark)")[::2][place]
        colours = re.findall(r"#[0-9a-f]{6}", part)
        assert colours
        words = colours if style is _STATE_STYLE else colours[:1]
        assert {each for each in words if contrast(each, scheme["ground"]) < LEAST} == set()
