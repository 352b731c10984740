"""Globs against a matcher too plain to be wrong: every path tried, every segment a regex."""

import re
from functools import cache
from itertools import product

from hypothesis import assume, given, settings, strategies as st

from stretto.globs.glob import Glob, GlobFault, overlap, parse_glob, witness

ATOMS = ["a", "b", ".", "*", "?", "**", "[ab]", "[!a]", "[a.]", "[!.]", "[.]", "[a-b]", "{a,.b}"]


def names(longest: int) -> list[str]:
    words = ("".join(w) for n in range(1, longest + 1) for w in product("ab.", repeat=n))
    return [word for word in words if word not in (".", "..")]


def paths(longest_name: int, most_names: int) -> list[str]:
    some = names(longest_name)
    return ["/".join(p) for n in range(1, most_names + 1) for p in product(some, repeat=n)]


# Long names, and then deep paths: both at once would be too many.
ALL_PATHS = names(4) + paths(2, 3)


def expand(text: str) -> list[str]:
    brace = re.search(r"\{([^{}]*)\}", text)
    if brace is None:
        return [text]
    head, tail = text[: brace.start()], text[brace.end() :]
    return [path for one in brace[1].split(",") for path in expand(head + one + tail)]


def segment_regex(segment: str) -> str:
    regex = ""
    for atom in re.findall(r"\[.*?\]|\*+|.", segment):
        if atom[0] == "[":
            regex += atom.replace("[!", "[^")
        else:
            regex += {"*": ".*", "?": "."}.get(atom[0], re.escape(atom))
    return regex


@cache
def name_matches(segment: str, name: str) -> bool:
    return re.fullmatch(segment_regex(segment), name) is not None


def walk(segments: list[str], path: list[str]) -> bool:
    if not segments:
        return not path
    if segments[0] == "**":
        return any(walk(segments[1:], path[n:]) for n in range(len(path) + 1))
    return bool(path) and name_matches(segments[0], path[0]) and walk(segments[1:], path[1:])


def plainly_matches(text: str, path: str) -> bool:
    for one in expand(text):
        segments = [segment for segment in one.split("/") if segment not in ("", ".")]
        if not re.search(r"[*?[]", one):
            segments.append("**")
        if walk(segments, [] if path == "." else path.split("/")):
            return True
    return False


@cache
def covered(text: str) -> set[str]:
    return {path for path in ALL_PATHS if plainly_matches(text, path)}


def parsed(text: str) -> Glob:
    glob = parse_glob(text)
    assume(isinstance(glob, Glob))  # what leaves the workspace is no matter here
    assert isinstance(glob, Glob)
    return glob


segments = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4).map("".join)
globs = st.lists(segments | st.sampled_from(["**", "."]), min_size=1, max_size=4).map("/".join)
pairs = st.tuples(segments, segments) | st.tuples(globs, globs)
# Longer ones with more in common, for which trying every path would take too long.
words = st.lists(st.sampled_from(["a", "ab", "b.", "*", "?", "[ab]"]), min_size=1, max_size=9)
wild = st.lists(
    words.map("".join) | st.sampled_from(["**", "a", "ab"]), min_size=1, max_size=7
).map("/".join)
unhurried = settings(deadline=None)  # trying every path takes its time


@unhurried
@given(globs)
def test_a_glob_matches_what_the_plain_matcher_matches(text: str) -> None:
    glob = parsed(text)
    assert {path for path in ALL_PATHS if glob.matches(path)} == covered(text)


@unhurried
@given(pairs)
def test_globs_that_cover_a_common_path_overlap(pair: tuple[str, str]) -> None:
    a, b = map(parsed, pair)
    assume(covered(a.text) & covered(b.text))
    assert overlap(a, b)


def test_all_short_segments_are_decided_exactly_dots_included() -> None:
    atoms = ["a", ".", "?", "*", "[!.]", "[.]", "[a.]"]
    texts = [*atoms, *map("".join, product(atoms, repeat=2))]
    short = [glob for glob in map(parse_glob, texts) if isinstance(glob, Glob)]
    # What two of them share, they share within four characters.
    for a, b in product(short, repeat=2):
        assert overlap(a, b) == bool(covered(a.text) & covered(b.text)), (a.text, b.text)


@given(pairs)
def test_globs_that_overlap_show_a_path_that_both_cover(pair: tuple[str, str]) -> None:
    a, b = map(parsed, pair)
    path = witness(a, b)
    if path is None:
        return
    assert a.matches(path)
    assert b.matches(path)
    # The plain matcher wants a name for `**/*`, and the workspace itself has none.
    if path != ".":
        assert plainly_matches(a.text, path)
        assert plainly_matches(b.text, path)
        assert not {"", ".", ".."} & set(path.split("/"))


@given(pairs | st.tuples(wild, wild))
def test_whether_globs_overlap_is_decided_as_if_a_path_were_spelt(pair: tuple[str, str]) -> None:
    a, b = map(parsed, pair)
    assert overlap(a, b) == (witness(a, b) is not None)


@given(pairs)
def test_overlap_is_symmetric(pair: tuple[str, str]) -> None:
    a, b = map(parsed, pair)
    assert overlap(a, b) == overlap(b, a)


@given(globs)
def test_a_glob_that_covers_anything_overlaps_itself_and_the_workspace(text: str) -> None:
    glob = parsed(text)
    assert overlap(glob, glob) == overlap(glob, parsed("**")) == bool(glob.patterns)


@given(st.text(alphabet=st.sampled_from("ab*?[]!-{},/.~\\") | st.characters()))
def test_any_text_is_a_glob_or_a_fault(text: str) -> None:
    glob = parse_glob(text)
    assert isinstance(glob, GlobFault) or glob.text == text
