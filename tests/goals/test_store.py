"""The goals of one user in one file: durable, leased, and fenced."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stretto.goals.goal import GoalEnded, GoalSpec, GoalState, IterationStarted
from stretto.goals.store import LEASE_SECONDS, GoalFenced, GoalLeased, GoalOwner, GoalStore
from stretto.problems.errors import NotFound, PlanNotAccepted, StrettoError


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def opened(tmp_path: Path, time: Time) -> Callable[..., GoalStore]:
    def make(
        name: str = "one", boot: str = "boot", dead: frozenset[str] = frozenset()
    ) -> GoalStore:
        owner = GoalOwner(name, lambda each: each in dead, boot, time, time, lambda: b"secret")
        return GoalStore.open(tmp_path / "goals.db", owner)

    return make


SPEC = GoalSpec("x", "command:true", "/f")


def test_a_goal_is_driven_by_one_at_a_time(opened: Callable[..., GoalStore], time: Time) -> None:
    one, two = opened("one"), opened("two")
    one.add("g", SPEC, 0.0)
    fence = one.lease("g")
    assert two.get("g").is_driven
    for store in (one, two):
        with pytest.raises(GoalLeased, match="is driven by one"):
            store.lease("g")
    one.release("g", fence, 1.5)
    assert two.lease("g") > fence
    assert two.get("g").worked == 1.5


def test_a_goal_that_is_not_there_is_told_whatever_is_asked_of_it(
    opened: Callable[..., GoalStore],
) -> None:
    store = opened()
    store.add("goal-1", SPEC, 0.0)
    for ask in (store.get, store.lease):
        with pytest.raises(NotFound, match="there is no goal 'goal-2'") as told:
            ask("goal-2")
        assert told.value.hint == "did you mean 'goal-1'?"
    with pytest.raises(GoalFenced):
        store.renew("goal-2", 1, 0.0)


def test_who_slept_through_the_end_of_its_lease_writes_no_more(
    opened: Callable[..., GoalStore], time: Time
) -> None:
    one, two = opened("one"), opened("two")
    one.add("g", SPEC, 0.0)
    fence = one.lease("g")
    time.now += LEASE_SECONDS + 1
    two.lease("g")
    with pytest.raises(GoalFenced):
        one.append("g", fence, IterationStarted(0, 0, 1, "r"))
    with pytest.raises(GoalFenced):
        one.renew("g", fence, 0)
    assert two.get("g").standing.iterations == ()


def test_the_lease_of_a_dead_process_and_of_an_earlier_boot_is_over(
    opened: Callable[..., GoalStore], time: Time
) -> None:
    one = opened("one")
    one.add("g", SPEC, 0.0)
    one.lease("g")
    assert opened("two", dead=frozenset({"one"})).lease("g") == 2
    with pytest.raises(GoalLeased):
        opened("three", boot="another").lease("g")
    time.now += LEASE_SECONDS + 1
    assert opened("three", boot="another").lease("g") == 3


def test_a_renewed_lease_lasts_and_tells_who_wants_it_cleared(
    opened: Callable[..., GoalStore], time: Time
) -> None:
    one, two = opened("one"), opened("two")
    one.add("g", SPEC, 0.0)
    fence = one.lease("g")
    time.now += LEASE_SECONDS - 1
    assert one.renew("g", fence, 2.0) is None
    time.now += LEASE_SECONDS - 1
    assert two.get("g").is_driven
    two.ask_to_clear("g", "me")
    assert one.renew("g", fence, 2.0) == "me"
    one.append("g", fence, GoalEnded(0, 0, GoalState.CLEARED))
    assert one.renew("g", fence, 2.0) is None
    assert two.get("g").standing.state == GoalState.CLEARED


def test_a_goal_that_was_changed_behind_our_back_is_not_driven(
    opened: Callable[..., GoalStore],
) -> None:
    store = opened()
    store.add("g", SPEC, 0.0)
    store.check_seal("g")
    store._db.execute("UPDATE goals SET spec = replace(spec, 'command:true', 'command:rm -r .')")
    with pytest.raises(PlanNotAccepted, match="changed since"):
        store.check_seal("g")


def test_what_cannot_be_read_is_told(tmp_path: Path, opened: Callable[..., GoalStore]) -> None:
    store = opened()
    with pytest.raises(NotFound):
        store.get("g")
    store.add("g", SPEC, 0.0)
    store._db.execute("INSERT INTO goal_events VALUES ('g', 1, '{\"type\": \"later\"}')")
    with pytest.raises(StrettoError, match="cannot be read"):
        store.get("g")
    store.close()
    (tmp_path / "goals.db").write_bytes(b"no database at all, but long enough to be looked at" * 99)
    with pytest.raises(StrettoError, match="cannot be used"):
        opened()


def test_who_drives_a_goal_is_told_in_words_for_people() -> None:
    said = str(GoalLeased("g", "vm pid 259 (0f44a8c6:4026531836 410974) 5d7b78"))
    assert said.startswith("goal g is driven by vm pid 259"), said
    assert "(" not in said.partition("\n")[0]
