"""What every store of journals must do, whatever it is made of."""

import asyncio
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from msgspec import Raw

from stretto.events.attempts import AttemptId, StepTimer
from stretto.events.model import (
    Approved,
    AttemptSucceeded,
    CancelRequested,
    Event,
    ModelSpoke,
    RunEnded,
    RunResumed,
    RunStarted,
    TimerFired,
)
from stretto.execution.leases import Store as Everything
from stretto.ports.journal import CachedOutput, Fenced, Journal, Leased, RunRow, StoredEvent
from stretto.problems.errors import RefusedToOverwrite
from stretto.vocabulary.names import RunId, StepId
from support.stores import Store

PORTS = (Journal,)

RUN = RunId("run-1")
OTHER = RunId("run-2")


def started(run_id: RunId = RUN, at: float = 1.0, workflow: str = "news") -> RunStarted:
    return RunStarted(
        at, run_id, workflow, "d1", Raw(b'{"steps":[]}'), {"topic": "weaving"}, seed=7
    )


def fired(name: str) -> TimerFired:
    return TimerFired(2.0, StepTimer(name))


async def events_of(journal: Journal, run_id: RunId = RUN, after: int = 0) -> list[object]:
    return [stored.event for stored in await journal.read(run_id, after)]


def test_what_is_appended_is_read_back_in_order_and_numbered_from_one(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        said = AttemptSucceeded(
            3.0, AttemptId(StepId("a"), 1), {"text": "„ü\x00\n", "list": [1, None]}
        )
        await journal.append(RUN, [started(), fired("a")], fence=fence)
        await journal.append(RUN, [said], fence=fence)
        stored = await journal.read(RUN)
        assert [(one.seq, one.event) for one in stored] == [
            (1, started()),
            (2, fired("a")),
            (3, said),
        ]

    store.run(story)


def test_reading_goes_on_after_the_last_event_seen(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        await journal.append(RUN, [fired("a"), fired("b"), fired("c")], fence=fence)
        assert [one.seq for one in await journal.read(RUN, after=2)] == [3]
        assert await journal.read(RUN, after=3) == []
        assert await journal.read(RUN, after=99) == []

    store.run(story)


def test_the_first_event_is_read_alone(store: Store) -> None:
    async def story(journal: Journal) -> None:
        assert await journal.first(RunId("nobody")) is None
        fence = await journal.lease(RUN, "me", 60)
        await journal.append(RUN, [started(), fired("a"), fired("b")], fence=fence)
        assert await journal.first(RUN) == started()

    store.run(story)


def test_a_run_that_is_not_known_has_no_events(store: Store) -> None:
    async def story(journal: Journal) -> None:
        assert await journal.read(RunId("nobody")) == []
        assert await journal.runs() == []

    store.run(story)


def test_runs_keep_their_journals_apart(store: Store) -> None:
    async def story(journal: Journal) -> None:
        one, two = await journal.lease(RUN, "me", 60), await journal.lease(OTHER, "me", 60)
        await asyncio.gather(
            journal.append(RUN, [fired("a")], fence=one),
            journal.append(OTHER, [fired("b")], fence=two),
        )
        assert await events_of(journal, RUN) == [fired("a")]
        assert await events_of(journal, OTHER) == [fired("b")]

    store.run(story)


def test_concurrent_appends_to_one_run_keep_the_order_they_were_made_in(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        pairs = [[fired(f"{n}.1"), fired(f"{n}.2")] for n in range(200)]
        await asyncio.gather(*(journal.append(RUN, pair, fence=fence) for pair in pairs))
        stored = await journal.read(RUN)
        assert [one.seq for one in stored] == list(range(1, 401))
        assert [one.event for one in stored] == [event for pair in pairs for event in pair]

    store.run(story)


def test_an_event_is_kept_as_it_was_when_it_was_appended(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        begun = started()
        await journal.append(RUN, [begun], fence=fence)
        begun.inputs["topic"] = "changed"
        assert await events_of(journal) == [started()]

    store.run(story)


def test_of_an_append_with_an_event_that_is_no_json_nothing_is_written(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        bad = AttemptSucceeded(1.0, AttemptId(StepId("a"), 1), object())  # type: ignore[arg-type]
        outcomes = await asyncio.gather(
            journal.append(RUN, [fired("a"), bad], fence=fence),
            journal.append(RUN, [fired("b")], fence=fence),
            return_exceptions=True,
        )
        assert isinstance(outcomes[0], ValueError)
        assert outcomes[1] == {}
        assert await events_of(journal) == [fired("b")]

    store.run(story)


def test_without_a_lease_nothing_is_appended(store: Store) -> None:
    async def story(journal: Journal) -> None:
        for fence in (0, 1):
            with pytest.raises(Fenced):
                await journal.append(RUN, [fired("a")], fence=fence)
        assert await journal.read(RUN) == []

    store.run(story)


def test_a_run_is_leased_to_one_owner_at_a_time(store: Store) -> None:
    async def story(journal: Journal) -> None:
        await journal.lease(RUN, "one", 60)
        with pytest.raises(Leased) as refused:
            await journal.lease(RUN, "two", 60)
        assert (refused.value.by, refused.value.seconds_left) == ("one", 60)
        assert await journal.lease(OTHER, "two", 60) == 1

    store.run(story)


def test_a_run_begins_with_its_lease_and_its_first_event_and_only_once(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.begin(RUN, "one", 60, started())
        assert await events_of(journal) == [started()]
        assert (await journal.runs())[0].leased_by == "one"
        await journal.append(RUN, [fired("a")], fence=fence)
        for owner in ("one", "two"):
            with pytest.raises(RefusedToOverwrite):
                await journal.begin(RUN, owner, 60, started())
        await journal.lease(OTHER, "two", 60)
        with pytest.raises(Leased):
            await journal.begin(OTHER, "one", 60, started())
        assert await events_of(journal) == [started(), fired("a")]
        await journal.forget(RUN, fence=fence)
        with pytest.raises(RefusedToOverwrite):
            await journal.begin(RUN, "one", 60, started())

    store.run(story)


def test_runs_that_begin_together_begin_once_each_and_are_listed(store: Store) -> None:
    async def story(journal: Journal) -> None:
        many = [RunId(f"run-{n}") for n in range(120)]
        begun = [journal.begin(id, "one", 60, started()) for id in (*many, many[0])]
        leased = journal.lease(many[1], "one", 60)  # in the same breath, and after it began
        *fences, again, fence = await asyncio.gather(*begun, leased, return_exceptions=True)
        assert fences == [1] * 120
        assert isinstance(again, RefusedToOverwrite)
        assert fence == 2
        with pytest.raises(Fenced):
            await journal.append(many[1], [fired("a")], fence=1)
        rows = await journal.runs(200)
        assert {row.run_id for row in rows} == set(many)
        assert {(row.workflow, row.status, row.leased_by) for row in rows} == {
            (started().workflow, "running", "one")
        }
        assert await journal.read(many[7]) == [StoredEvent(1, started())]

    store.run(story)


def test_runs_that_have_not_ended_are_found_behind_any_number_that_has(store: Store) -> None:
    async def story(journal: Journal) -> None:
        await journal.begin(RUN, "one", 60, started())
        for number in range(60):
            run = RunId(f"later-{number}")
            fence = await journal.begin(run, "one", 60, started(run))
            await journal.append(run, [RunEnded(3.0, "complete")], fence=fence)
        await journal.begin(OTHER, "one", 60, started(OTHER))
        assert [row.run_id for row in await journal.unended()] == [OTHER, RUN]

    store.run(story)


def test_a_lease_that_comes_before_a_beginning_in_one_breath_is_kept(store: Store) -> None:
    async def story(journal: Journal) -> None:
        leased = journal.lease(RUN, "two", 60)
        fence, refused = await asyncio.gather(
            leased, journal.begin(RUN, "one", 60, started()), return_exceptions=True
        )
        assert isinstance(refused, Leased)
        assert (await journal.run(RUN)) is None
        await journal.append(RUN, [started()], fence=fence)
        assert await events_of(journal) == [started()]

    store.run(story)


def test_a_lease_lasts_by_the_clock_of_leases_alone(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "one", 60)
        await journal.append(RUN, [started()], fence=fence)
        store.clock.at += 59
        assert (await journal.runs())[0].leased_by == "one"
        store.clock.at += 2
        assert (await journal.runs())[0].leased_by is None
        assert await journal.lease(RUN, "two", 60) > fence

    store.run(story)


def test_a_lease_of_another_boot_that_seems_to_last_for_days_is_over(tmp_path: Path) -> None:
    store = Store("sqlite", tmp_path)

    async def story(journal: Journal) -> None:
        await journal.lease(RUN, "one", 60)
        store.clock.at -= 3 * 86_400  # another clock now counts, and it is behind
        assert await journal.lease(RUN, "two", 60)

    store.run(story)


def test_fences_grow_with_every_lease_even_of_the_same_owner(store: Store) -> None:
    async def story(journal: Journal) -> None:
        first = await journal.lease(RUN, "me", 60)
        second = await journal.lease(RUN, "me", 60)
        await journal.release(RUN, fence=second)
        third = await journal.lease(RUN, "other", 60)
        assert 0 < first < second < third

    store.run(story)


def drive_elsewhere(kind: str, folder: Path) -> list[object]:
    """What another process finds that opens the same store and wants to drive the same run: now, and
    again once the lease of the first one is over."""
    store = Store(kind, folder)

    async def rival() -> list[object]:
        async with store.opened() as journal:
            found: list[object] = []
            for at in (1001.0, 1100.0):
                store.clock.at = at
                try:
                    fence = await journal.lease(RUN, "another process", 60)
                except Leased as refused:
                    found.append(refused.by)
                else:
                    found += [fence, len(await journal.read(RUN))]
            await journal.append(RUN, [fired("theirs")], fence=fence)
            await journal.send(RUN, CancelRequested(3.0))
            return found

    return asyncio.run(rival())


def test_a_store_of_several_processes_says_so_and_another_one_does_not(
    store: Store, tmp_path: Path
) -> None:
    async def story(journal: Everything) -> None:
        fence = await journal.begin(RUN, "this process", 60, started())
        with ProcessPoolExecutor(1, get_context("spawn")) as processes:
            found = processes.submit(drive_elsewhere, store.kind, tmp_path).result(60)
        if not journal.is_shared:
            assert found == [1, 0, 2, 0]  # it knows nothing of this run, and would drive it too
            return
        assert found == ["this process", 2, 1]
        with pytest.raises(Fenced):
            await journal.append(RUN, [fired("ours")], fence=fence)
        assert await events_of(journal) == [started(), fired("theirs")]
        assert [each.event for each in await journal.pending()] == [CancelRequested(3.0)]

    store.run(story)


def test_who_slept_through_the_end_of_a_lease_is_fenced_by_the_next_owner(store: Store) -> None:
    async def story(journal: Journal) -> None:
        old = await journal.lease(RUN, "one", 60)
        await journal.append(RUN, [fired("a")], fence=old)
        store.clock.at += 61
        await journal.append(RUN, [fired("b")], fence=old)  # nobody took it, so it is still held
        new = await journal.lease(RUN, "two", 60)
        with pytest.raises(Fenced):
            await journal.append(RUN, [fired("c")], fence=old)
        with pytest.raises(Fenced):
            await journal.renew(RUN, fence=old, seconds=60)
        await journal.append(RUN, [fired("d")], fence=new)
        assert await events_of(journal) == [fired("a"), fired("b"), fired("d")]

    store.run(story)


def test_a_renewed_lease_lasts_longer(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "one", 60)
        store.clock.at += 50
        await journal.renew(RUN, fence=fence, seconds=60)
        store.clock.at += 50
        with pytest.raises(Leased):
            await journal.lease(RUN, "two", 60)
        store.clock.at += 10
        assert await journal.lease(RUN, "two", 60) > fence

    store.run(story)


def test_a_released_run_can_be_leased_at_once_and_its_fence_is_worth_nothing(store: Store) -> None:
    async def story(journal: Journal) -> None:
        old = await journal.lease(RUN, "one", 60)
        await journal.release(RUN, fence=old)
        with pytest.raises(Fenced):
            await journal.append(RUN, [fired("a")], fence=old)
        new = await journal.lease(RUN, "two", 60)
        await journal.release(RUN, fence=old)  # too late to matter
        await journal.append(RUN, [fired("b")], fence=new)
        assert await events_of(journal) == [fired("b")]

    store.run(story)


def test_releasing_an_unknown_run_does_nothing(store: Store) -> None:
    async def story(journal: Journal) -> None:
        await journal.release(RUN, fence=1)
        assert await journal.lease(RUN, "me", 60) == 1

    store.run(story)


def test_of_many_who_want_a_run_at_once_one_gets_it(store: Store) -> None:
    async def story(journal: Journal) -> None:
        asked = (journal.lease(RUN, f"owner-{n}", 60) for n in range(20))
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes].count(int) == 1
        assert [type(outcome) for outcome in outcomes].count(Leased) == 19

    store.run(story)


def test_a_fenced_append_does_not_fail_those_beside_it(store: Store) -> None:
    async def story(journal: Journal) -> None:
        stale = await journal.lease(RUN, "me", 60)
        fence = await journal.lease(RUN, "me", 60)
        fences = [stale if n % 7 == 3 else fence for n in range(50)]
        outcomes = await asyncio.gather(
            *(journal.append(RUN, [fired(str(n))], fence=f) for n, f in enumerate(fences)),
            return_exceptions=True,
        )
        assert [isinstance(o, Fenced) for o in outcomes] == [f == stale for f in fences]
        written = [fired(str(n)) for n, f in enumerate(fences) if f == fence]
        assert await events_of(journal) == written
        assert [one.seq for one in await journal.read(RUN)] == list(range(1, len(written) + 1))

    store.run(story)


def test_leases_and_appends_made_together_take_effect_in_their_order(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        outcomes = await asyncio.gather(
            journal.append(RUN, [fired("a")], fence=fence),
            journal.lease(RUN, "me", 60),
            journal.append(RUN, [fired("b")], fence=fence),
            journal.append(RUN, [fired("c")], fence=fence + 1),
            journal.release(RUN, fence=fence + 1),
            journal.append(RUN, [fired("d")], fence=fence + 1),
            return_exceptions=True,
        )
        assert outcomes[1] == fence + 1
        assert [isinstance(outcome, Fenced) for outcome in outcomes] == [
            False,
            False,
            True,
            False,
            False,
            True,
        ]
        assert await events_of(journal) == [fired("a"), fired("c")]

    store.run(story)


def test_runs_are_listed_newest_first_as_their_events_tell(store: Store) -> None:
    async def story(journal: Journal) -> None:
        for number in range(3):
            run_id = RunId(f"run-{number}")
            fence = await journal.lease(run_id, "me", 60)
            await journal.append(run_id, [started(run_id, 10.0 + number)], fence=fence)
        ended: list[Event] = [Approved(20.0, StepId("a")), RunEnded(30.0, "partial")]
        await journal.append(RunId("run-1"), ended, fence=1)
        await journal.lease(RunId("leased-only"), "me", 60)
        assert await journal.runs() == [
            RunRow(RunId("run-2"), "news", "running", 12.0, None, "me", is_let_go=False),
            RunRow(RunId("run-1"), "news", "partial", 11.0, 30.0, "me", is_let_go=False),
            RunRow(RunId("run-0"), "news", "running", 10.0, None, "me", is_let_go=False),
        ]
        assert [row.run_id for row in await journal.runs(limit=1)] == ["run-2"]
        await journal.append(RunId("run-1"), [RunResumed(40.0)], fence=1)
        await journal.release(RunId("run-1"), fence=1)
        assert (await journal.runs())[1] == RunRow(RUN, "news", "running", 11.0, None)

    store.run(story)


def test_of_runs_that_started_together_the_later_one_is_newer(store: Store) -> None:
    async def story(journal: Journal) -> None:
        for run_id in (RUN, OTHER):
            fence = await journal.lease(run_id, "me", 60)
            await journal.append(run_id, [started(run_id)], fence=fence)
        assert [row.run_id for row in await journal.runs()] == [OTHER, RUN]

    store.run(story)


def test_an_append_of_nothing_still_shows_its_fence(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        await journal.append(RUN, [], fence=fence)
        with pytest.raises(Fenced):
            await journal.append(RUN, [], fence=fence - 1)
        assert await journal.read(RUN) == []

    store.run(story)


def test_who_is_cancelled_while_waiting_harms_nobody(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        given_up = asyncio.ensure_future(journal.append(RUN, [fired("a")], fence=fence))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await journal.append(RUN, [fired("b")], fence=fence)
        assert (await events_of(journal))[-1] == fired("b")

    store.run(story)


def test_a_closed_journal_takes_no_more_and_may_be_closed_again(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        await journal.close()
        await journal.close()
        with pytest.raises(RuntimeError, match="closed"):
            await journal.append(RUN, [fired("a")], fence=fence)
        with pytest.raises(RuntimeError, match="closed"):
            await journal.read(RUN)

    store.run(story)


def test_closing_waits_for_what_was_asked_before(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        asked = [
            asyncio.ensure_future(journal.append(RUN, [fired(str(n))], fence=fence))
            for n in range(20)
        ]
        await asyncio.sleep(0)
        await journal.close()
        assert await asyncio.gather(*asked) == [{}] * 20

    store.run(story)


def test_a_run_that_is_forgotten_leaves_nothing_but_its_fence(store: Store) -> None:
    async def story(journal: Everything) -> None:
        fence = await journal.lease(RUN, "me", 60)
        await journal.append(RUN, [started(), RunEnded(3.0, "complete")], fence=fence)
        await journal.send(RUN, Approved(4.0, StepId("a"), "ada"))
        await journal.put("key", CachedOutput("answer", RUN))
        await journal.put("other", CachedOutput("another", OTHER))
        with pytest.raises(Fenced):
            await journal.forget(RUN, fence=fence - 1)
        await journal.forget(RUN, fence=fence)
        await journal.compact()
        assert await journal.run(RUN) is None
        assert await journal.runs() == []
        assert await journal.read(RUN) == []
        assert await journal.pending() == []
        assert await journal.get("key") is None
        assert await journal.get("other") == CachedOutput("another", OTHER)
        with pytest.raises(Fenced):
            await journal.append(RUN, [fired("late")], fence=fence)
        assert await journal.lease(RUN, "another", 60) > fence

    store.run(story)


def test_the_other_runs_stay(store: Store) -> None:
    async def story(journal: Everything) -> None:
        fences = {run: await journal.lease(run, "me", 60) for run in (RUN, OTHER)}
        for run, fence in fences.items():
            await journal.append(run, [started(run), RunEnded(3.0, "complete")], fence=fence)
        await journal.forget(RUN, fence=fences[RUN])
        assert [row.run_id for row in await journal.runs()] == [OTHER]
        assert len(await journal.read(OTHER)) == 2
        await journal.append(OTHER, [fired("more")], fence=fences[OTHER])

    store.run(story)


def test_news_miss_no_run_that_came_after_one_was_forgotten(store: Store) -> None:
    third = RunId("run-3")

    async def story(journal: Everything) -> None:
        fences = {id: await journal.lease(id, "me", 60) for id in (RUN, OTHER, third)}
        await journal.append(RUN, [started()], fence=fences[RUN])
        await journal.append(OTHER, [fired(str(n)) for n in range(9)], fence=fences[OTHER])
        cursor = (await journal.news(None)).cursor
        await journal.forget(OTHER, fence=fences[OTHER])
        await journal.append(third, [fired(str(n)) for n in range(9)], fence=fences[third])
        news = await journal.news(cursor)
        assert third in news.run_ids or not news.is_whole
        assert OTHER not in news.run_ids
        assert await journal.read(OTHER) == []

    store.run(story)


def test_news_name_the_runs_that_have_new_events_and_no_others(store: Store) -> None:
    async def story(journal: Journal) -> None:
        mine, other = await journal.lease(RUN, "me", 60), await journal.lease(OTHER, "me", 60)
        await journal.append(RUN, [started()], fence=mine)
        first = await journal.news(None)
        assert first.run_ids == ()
        assert await journal.news(first.cursor) == first
        await journal.append(OTHER, [started(OTHER), fired("a")], fence=other)
        second = await journal.news(first.cursor)
        assert second.run_ids == (OTHER,)
        await journal.append(RUN, [fired("b")], fence=mine)
        assert (await journal.news(second.cursor)).run_ids == (RUN,)
        assert set((await journal.news(first.cursor)).run_ids) == {RUN, OTHER}
        assert (await journal.news(second.cursor)).is_whole

    store.run(story)


def test_the_words_of_a_model_are_no_news(store: Store) -> None:
    async def story(journal: Journal) -> None:
        fence = await journal.lease(RUN, "me", 60)
        await journal.append(RUN, [started()], fence=fence)
        first = await journal.news(None)
        spoken = ModelSpoke(2.0, AttemptId(StepId("a"), 1), "Once upon")
        await journal.append(RUN, [spoken], fence=fence)
        assert (await journal.news(first.cursor)).run_ids == ()
        await journal.append(RUN, [spoken, fired("b")], fence=fence)
        assert (await journal.news(first.cursor)).run_ids == (RUN,)

    store.run(story)


def test_news_from_a_cursor_that_the_store_no_longer_knows_say_so(store: Store) -> None:
    async def story(journal: Journal) -> None:
        found = await journal.news(1_000)
        assert not found.is_whole
        assert found.cursor == 0

    store.run(story)
