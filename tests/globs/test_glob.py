from collections.abc import Callable

import pytest

from stretto.globs import intersection
from stretto.globs.glob import Glob, GlobFault, overlap, parse_glob, sets_overlap, text_of, witness
from stretto.globs.pattern import CharSet, Letters, intersect


def glob(text: str) -> Glob:
    parsed = parse_glob(text)
    assert isinstance(parsed, Glob), parsed
    return parsed


def fault(text: str) -> GlobFault:
    parsed = parse_glob(text)
    assert isinstance(parsed, GlobFault), parsed
    return parsed


@pytest.mark.parametrize(
    ("text", "covered", "not_covered"),
    [
        ("src", ["src", "src/a.py", "src/a/b"], ["srcx/a.py", "a/src", "."]),
        ("src/**", ["src", "src/a.py", "src/a/b"], ["srcx"]),
        ("src/*", ["src/a", "src/.env"], ["src", "src/a/b"]),
        ("*.py", ["a.py", ".py"], ["src/a.py", "a.pyc"]),
        ("**/*.py", ["a.py", "src/a.py", "a/b/c.py"], ["a.md", "a.py/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a", "a/x", "ab", "a/b/c"]),
        ("a**b", ["ab", "axb"], ["a/b", "a/x/b"]),
        ("***", ["a"], ["a/b"]),
        ("?.md", ["a.md", "é.md", "..md"], [".md", "ab.md"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x", "ax/y"]),
        ("[!a-c]x", ["dx", "-x"], ["ax", "/x", "x"]),
        ("[^a]", ["b"], ["a"]),
        ("[]a-]", ["]", "a", "-"], ["b"]),
        ("[+-9]", ["+", "0"], [".", "a"]),
        ("a]b}c,d", ["a]b}c,d", "a]b}c,d/e"], ["ab"]),
        ("[{]x[*]", ["{x*"], ["{xy"]),
        ("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.t", "a.tsxx"]),
        ("{a,b{c,d/e}}", ["a", "a/x", "bc", "bd/e"], ["b", "bd", "be"]),
        ("{[,],a}", [","], ["["]),
    ],
)
def test_a_glob_covers(text: str, covered: list[str], not_covered: list[str]) -> None:
    parsed = glob(text)
    assert [path for path in covered if not parsed.matches(path)] == []
    assert [path for path in not_covered if parsed.matches(path)] == []


@pytest.mark.parametrize("text", ["./src", "src/", "src//", ".//src/./", "src/**", "{src,src}"])
def test_spelling_does_not_change_what_a_path_means(text: str) -> None:
    assert glob(text).patterns == glob("src").patterns
    assert glob(text).text == text


@pytest.mark.parametrize("text", [".", "./", "**", "**/*", "**/**", "./**/"])
def test_the_whole_workspace_has_many_names(text: str) -> None:
    assert glob(text).patterns == glob("**").patterns
    assert all(glob(text).matches(path) for path in [".", "a", ".env", "a/b/c"])


def test_paths_are_compared_however_their_accents_are_composed() -> None:
    composed, decomposed = (
        "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
        "cafe\N{COMBINING ACUTE ACCENT}",
    )
    assert glob(composed).matches(decomposed)
    assert glob(decomposed).matches(composed)
    assert overlap(glob(composed), glob(f"{decomposed}/*"))
    assert glob("cafe{\N{COMBINING ACUTE ACCENT},s}").matches(composed)


@pytest.mark.parametrize("path", ["/etc/passwd", "../a", "a/../../b", ".."])
def test_no_glob_covers_a_path_outside_the_workspace(path: str) -> None:
    assert not glob("**").matches(path)


@pytest.mark.parametrize("path", ["./a/b", "a//b", "a/b/", "a/./b"])
def test_a_path_may_be_spelt_untidily(path: str) -> None:
    assert glob("a/?").matches(path)


@pytest.mark.parametrize(
    "text",
    [
        *("/", "/etc", "//a", "~", "~/x", "~root", "C:/x", "c:", "C:\\x"),
        *("..", "a/../b", "{a,/b}", "{..,a}", "a/{b,..}/c"),
    ],
)
def test_a_glob_must_stay_in_the_workspace(text: str) -> None:
    assert fault(text).code == "RCP121"
    assert "relative to the workspace" in fault(text).hint


@pytest.mark.parametrize(
    "text",
    [
        *("", "{,a}", "a\0", "a\nb", "a\x7f", "a\x85", "a\\b"),
        *("[", "[]", "[!]", "a[b/c]", "x/[a", "[z-a]", "{a", "{a,{b}", "{" * 500),
        *("a" * 1025, "a/" * 65, "{a,b}" * 7, "{" + "a," * 64 + "}"),
    ],
)
def test_what_is_no_glob_is_refused_with_a_hint(text: str) -> None:
    assert fault(text).code == "RCP122"
    assert fault(text).hint


@pytest.mark.parametrize("text", ["a" * 1024, "a/" * 64, "{a,b}" * 6, "{" * 500 + "}" * 500 + "a"])
def test_the_limits_themselves_are_allowed(text: str) -> None:
    assert glob(text).patterns


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        ("src/**", "src/a.py", "src/a.py"),
        ("src", "src/lib/**/x.py", "src/lib/x.py"),
        ("**/a/**", "b/**/c", "b/a/c"),
        ("a*", "*b", "ab"),
        ("?", "[!x]", "a"),
        ("[a-m]", "[m-z]", "m"),
        ("*.{ts,tsx}", "{a,b}.tsx", "a.tsx"),
        ("**", "**/*", "."),
        ("*", "*", "a"),
        # '.' and '..' would be shared here too, but they name no file.
        ("??", ".?", ".a"),
        (".*", "*.", "..."),
    ],
)
def test_overlapping_globs_show_a_path_they_share(a: str, b: str, shared: str) -> None:
    assert overlap(glob(a), glob(b))
    assert witness(glob(a), glob(b)) == shared


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("src", "srcx"),
        ("src/*.py", "src/*.md"),
        ("src/*", "src/a/b"),
        ("*", "*/*"),
        ("**/a", "**/b"),
        ("[a-c].py", "[!a-c].py"),
        ("[.-0]", "[!.0]"),  # '/' is between them, but in no class
        ("a?", "a"),
        ("*.{ts,tsx}", "*.{js,jsx}"),
        # Only '.' or '..' could match both.
        ("?", "[.]"),
        ("?.", ".?"),
        ("**/[.]", "**/[.]"),
    ],
)
def test_globs_without_a_common_path_do_not_overlap(a: str, b: str) -> None:
    assert not overlap(glob(a), glob(b))
    assert not overlap(glob(b), glob(a))


def test_sets_overlap_when_any_two_of_their_globs_do() -> None:
    assert sets_overlap([glob("a"), glob("b/*")], [glob("c"), glob("b/x")])
    assert not sets_overlap([glob("a"), glob("b")], [glob("c")])
    assert not sets_overlap([], [glob("**")])


def test_hostile_globs_cost_a_row_for_each_letter_and_a_look_at_each_kind_of_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, rows = 0, 0
    search = intersection._reachable

    def look(a: CharSet, b: CharSet) -> str | None:
        nonlocal looks
        looks += 1
        return "a" if intersect(a, b) else None

    def count_rows(a: Letters, b: Letters, meet: Callable[..., str | None]) -> list[int]:
        nonlocal rows
        found = search(a, b, meet)
        rows += len(found)
        return found

    monkeypatch.setattr(intersection, "shared_char", look)
    monkeypatch.setattr(intersection, "_reachable", count_rows)
    assert witness(glob("*a" * 500), glob("*a" * 500 + "b")) is None
    assert looks == 2  # 'a' at 'a', and 'a' at 'b'
    assert rows == 2 + 1001  # of segments, and of letters


@pytest.mark.parametrize(
    ("a", "b", "looks_at_most"),
    [
        ("*a" * 500, "*a" * 500 + "b", 1),  # where both have a star, only their ends count
        ("*" + "a" * 500 + "b*", "a" * 1000, 2),  # a long plain name: found without a retry
        ("*" + "a" * 20 + "b*", "a" * 50, 1000),  # a short one: every place may be tried
    ],
)
def test_hostile_globs_are_decided_without_much_looking(
    monkeypatch: pytest.MonkeyPatch, a: str, b: str, looks_at_most: int
) -> None:
    looks = 0

    def look(x: CharSet, y: CharSet) -> str | None:
        nonlocal looks
        looks += 1
        return "a" if intersect(x, y) else None

    monkeypatch.setattr(intersection, "shared_char", look)
    assert not overlap(glob(a), glob(b))
    assert not overlap(glob(b), glob(a))
    assert looks <= 2 * looks_at_most


def test_runs_of_double_stars_are_one() -> None:
    assert glob("**/" * 60 + "a").patterns == glob("**/a").patterns


@pytest.mark.parametrize("name", ["a.txt", "docs/a.txt", ".eslintrc.json", "v1.2", "a.tar.gz"])
def test_a_plain_path_that_ends_like_a_file_is_a_file(name: str) -> None:
    glob = parse_glob(name)
    assert isinstance(glob, Glob)
    assert glob.matches(name)
    assert not glob.matches(f"{name}/below.py")
    below = parse_glob("**/*.py")
    assert isinstance(below, Glob)
    assert not overlap(glob, below)
    assert [text_of(pattern) for pattern in glob.patterns] == [name]


@pytest.mark.parametrize("name", ["src", ".github", "a.", "..a", "docs/README", "v1.2/**"])
def test_any_other_plain_path_is_all_that_is_below_it(name: str) -> None:
    glob = parse_glob(name)
    assert isinstance(glob, Glob)
    assert glob.matches(f"{name.removesuffix('/**')}/below.py")
    assert [text_of(pattern) for pattern in glob.patterns] == [name]
