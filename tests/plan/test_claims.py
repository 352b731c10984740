from collections.abc import Callable
from itertools import product

import pytest

from stretto.globs.glob import Glob, parse_glob
from stretto.globs.intersection import PathWord, any_intersect
from stretto.plan import claims as claims_module
from stretto.plan.claims import Claims, ConflictIndex


def globs(*texts: str) -> tuple[Glob, ...]:
    parsed = [parse_glob(text) for text in texts]
    return tuple(glob for glob in parsed if isinstance(glob, Glob))


def reader(*reads: str) -> Claims:
    return Claims(globs(*reads), (), is_writer=False, is_isolated=False)


def shared_writer(*writes: str, reads: str = "**/*") -> Claims:
    return Claims(globs(reads), globs(*writes), is_writer=True, is_isolated=False)


def isolated_writer(*writes: str, reads: str = "**/*") -> Claims:
    return Claims(globs(reads), globs(*writes), is_writer=True, is_isolated=True)


MAKERS: tuple[Callable[[str], Claims], ...] = (reader, shared_writer, isolated_writer)


def test_writers_of_overlapping_sets_conflict_isolated_or_not() -> None:
    for one, other in product((shared_writer, isolated_writer), repeat=2):
        assert one("src/**").conflicts(other("src/a.py"))
        assert not one("src/*.py").conflicts(other("src/*.md"))


def test_a_shared_writer_conflicts_with_a_reader_of_what_it_writes() -> None:
    assert shared_writer("src").conflicts(reader("**/*"))
    assert reader("src/a.py").conflicts(shared_writer("src"))
    assert not shared_writer("src").conflicts(reader("docs"))


def test_an_isolated_writer_never_blocks_a_reader() -> None:
    assert not isolated_writer("src").conflicts(reader("src"))
    assert not reader("src").conflicts(isolated_writer("src"))


def test_readers_never_conflict() -> None:
    assert not reader("**/*").conflicts(reader("**/*"))


def test_what_a_writer_reads_blocks_nobody() -> None:
    assert not shared_writer("src", reads="docs").conflicts(shared_writer("docs", reads="src"))


def test_a_reader_that_is_called_isolated_still_reads_the_workspace() -> None:
    assert Claims(globs("src"), (), False, True).conflicts(shared_writer("src"))


def test_the_index_answers_as_the_claims_do() -> None:
    sets = ["**/*", ".", "a", "a/b", "a/*", "a/**/c", "{a,d}/b", "b/*.py", "b/*.md", "*/b", "[.]"]
    steps = [make(text) for make, text in product(MAKERS, sets)]
    steps += [shared_writer("a/x", "d"), isolated_writer(), reader(), shared_writer("a")]
    index = ConflictIndex(steps)
    for i, step in enumerate(steps):
        others = {j for j, other in enumerate(steps) if j != i and step.conflicts(other)}
        assert index.partners(i) == others
        assert {j for j in range(len(steps)) if index.conflicts(i, j)} == others


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every exact comparison of two sets, in the order they are made."""
    made: list[object] = []

    def count(a: tuple[PathWord, ...], b: tuple[PathWord, ...]) -> bool:
        made.append((a, b))
        return any_intersect(a, b)

    monkeypatch.setattr(claims_module, "any_intersect", count)
    return made


def test_building_an_index_decides_nothing(decisions: list[object]) -> None:
    ConflictIndex([shared_writer("**/*")] * 5000)
    assert decisions == []


def test_steps_with_equal_claims_are_compared_once(decisions: list[object]) -> None:
    spellings = ["src", "./src/", "src/**"]
    index = ConflictIndex([isolated_writer(spellings[i % 3]) for i in range(500)])
    assert all(len(index.partners(i)) == 499 for i in range(500))
    assert index.conflicts(0, 499)
    assert len(decisions) == 1


@pytest.mark.parametrize("count", [500, 5000])
def test_steps_that_begin_apart_are_never_compared(decisions: list[object], count: int) -> None:
    index = ConflictIndex([isolated_writer(f"packages/pkg_{i}/**") for i in range(count)])
    assert not any(index.partners(i) for i in range(count))
    assert not any(index.conflicts(0, i) for i in range(count))
    assert len(decisions) <= count  # each with itself at the most


def test_the_readers_of_everything_are_one_to_each_writer(decisions: list[object]) -> None:
    steps = [shared_writer(f"pkg_{i}") if i % 2 else reader("**/*") for i in range(500)]
    index = ConflictIndex(steps)
    assert all(len(index.partners(i)) == 250 for i in range(500))
    assert len(decisions) <= 500


def test_readers_cost_nothing_where_every_writer_is_isolated(decisions: list[object]) -> None:
    steps = [isolated_writer(f"pkg_{i}") if i % 2 else reader(f"pkg_{i}") for i in range(500)]
    index = ConflictIndex(steps)
    assert not any(index.partners(i) for i in range(0, 500, 2))
    assert decisions == []
