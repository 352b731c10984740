"""Runs through the public API: start, watch, decide, stop, go on, run again."""

import asyncio
import gc
import re
import threading
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

import stretto
from support.api import BRIEF, GATED, Open, Scripted

SLOW = "name: slow\nsteps: [{id: wait, subagent: slow, prompt: Wait.}]"


async def _slow(prompt: str) -> str:
    await asyncio.sleep(60)
    return prompt


def test_a_run_gives_its_report(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("replies: {gather: sources, brief: a brief}") as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            report = await run.report()
            assert (report.status, report.output, report.is_ok) == ("complete", "a brief", True)
            assert report.steps["gather"].output == "sources"
            assert [step.id for step in report.steps] == ["gather", "brief"]
            assert "brief" in report.steps
            assert report.steps[0] in report.steps
            assert "brie" not in report.steps
            assert report.run_id == run.id

    asyncio.run(main())


def test_start_returns_once_the_start_is_durable_and_before_the_work_is_done(
    open_stretto: Open,
) -> None:
    async def main() -> None:
        async with open_stretto("default: {reply: x, delay: 5s}") as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            assert await run.status() == "running"
            assert [row.id for row in await w.runs()] == [run.id]
            await run.stop()

    asyncio.run(main())


def test_events_come_from_the_beginning_and_then_live(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("default: {reply: x, delay: 100ms}") as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            seen: list[stretto.Event] = []
            at: list[float] = []
            async for event in run.events():
                seen.append(event)
                at.append(time.monotonic())
            assert isinstance(seen[0], stretto.RunStarted)
            assert isinstance(seen[-1], stretto.RunEnded)
            answered = [e.step for e in seen if isinstance(e, stretto.AttemptSucceeded)]
            assert answered == ["gather", "brief"]
            assert at[-1] - at[0] > 0.05  # not all at once, after the end
            again = [event async for event in w.open(run.id).events()]
            assert again == seen

    asyncio.run(main())


def test_two_watchers_see_the_same_events(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("default: {reply: x, delay: 20ms}") as w:
            run = await w.start(BRIEF, {"topic": "looms"})

            async def watch() -> list[stretto.Event]:
                return [event async for event in run.events()]

            one, other = await asyncio.gather(watch(), watch())
            assert one == other
            assert isinstance(one[-1], stretto.RunEnded)

    asyncio.run(main())


def test_a_cancelled_run_keeps_what_had_ended(open_stretto: Open) -> None:
    async def main() -> None:
        script = "replies: {gather: sources, brief: {reply: x, delay: 60s}}"
        async with open_stretto(script) as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            async for event in run.events():
                if isinstance(event, stretto.AttemptSucceeded):
                    await run.cancel("enough")
            report = await run.report()
            assert report.status == "cancelled"
            assert report.steps["gather"].output == "sources"
            assert report.steps["brief"].status == "cancelled"
            with pytest.raises(stretto.InvalidUsage, match="has ended"):
                await run.cancel()

    asyncio.run(main())


def test_an_approved_step_goes_on_by_itself_inside_the_loop_that_watches(
    open_stretto: Open,
) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start(GATED)
            types = []
            async for event in run.events():
                types.append(event.type)
                if isinstance(event, stretto.ApprovalRequested):
                    await run.approve(event.step, "looks fine", by="Ada")
            assert types[-1] == "run_ended"
            report = await run.report()
            assert report.status == "complete"
            assert "approved by Ada" in str([issue.says for issue in report.issues])

    asyncio.run(main())


def test_a_run_that_waits_for_a_person_ends_its_events_with_the_question(
    open_stretto: Open,
) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start(GATED)
            seen = [event async for event in run.events()]
            assert isinstance(seen[-1], stretto.ApprovalRequested)
            assert await run.wait() == "waiting"
            assert (await run.report()).steps["send"].status == "awaiting approval"
            await run.reject("send", "not now")
            report = await run.report()
            assert report.status == "partial"
            assert "not now" in (report.steps["send"].error or report.steps["send"].reason)

    asyncio.run(main())


def test_an_edited_prompt_is_what_runs(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto(agents={"echo": lambda prompt: prompt}, model=None) as w:
            gated: dict[str, stretto.Json] = {
                "name": "gated",
                "steps": [{"id": "a", "subagent": "echo", "prompt": "old", "gate": "human"}],
            }
            run = await w.start(gated)
            await run.wait()
            await run.approve("a", edit="new")
            assert (await run.report()).output == "new"

    asyncio.run(main())


def test_a_stopped_run_is_resumed_where_it_was(open_stretto: Open) -> None:
    async def main() -> None:
        script = "replies: {gather: sources, brief: [{reply: x, delay: 60s}, {reply: done}]}"
        async with open_stretto(script) as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            async for event in run.events():
                if isinstance(event, stretto.AttemptSucceeded):
                    await run.stop()
            assert await run.status() == "interrupted"
            assert await run.resume() is run
            report = await run.report()
            assert (report.status, report.output) == ("complete", "done")
            started = [e async for e in run.events() if isinstance(e, stretto.AttemptStarted)]
            assert [e.step for e in started] == ["gather", "brief", "brief"]

    asyncio.run(main())


def test_leaving_the_block_stops_its_runs_and_another_instance_goes_on(open_stretto: Open) -> None:
    async def main() -> None:
        script = "replies: {gather: [{reply: x, delay: 60s}, {reply: y}], brief: z}"
        async with open_stretto(script) as w:
            run = await w.start(BRIEF, {"topic": "looms"})
        with pytest.raises(stretto.InvalidUsage, match="closed"):
            await w.start(BRIEF, {"topic": "looms"})
        async with open_stretto("default: unused") as other:
            opened = other.open(run.id)
            assert await opened.status() == "interrupted"
            report = await (await opened.resume()).report()
            assert (report.status, report.steps["gather"].output) == ("complete", "y")

    asyncio.run(main())


def test_a_run_is_retried_and_forked_and_reuses_what_need_not_be_done_again(
    open_stretto: Open,
) -> None:
    async def main() -> None:
        async with open_stretto("replies: {gather: sources, brief: a brief}") as w:
            first = await w.start(BRIEF, {"topic": "looms"})
            await first.wait()
            again = await first.retry()
            assert again.id != first.id
            report = await again.report()
            assert [step.attempts[0].status for step in report.steps] == ["reused", "reused"]
            assert report.parent == first.id
            forked = await w.open(first.id).fork("brief")
            statuses = [s.attempts[0].status for s in (await forked.report()).steps]
            assert statuses == ["reused", "succeeded"]
            changed = await first.retry(inputs={"topic": "threads"})
            assert (await changed.report()).inputs == {"topic": "threads"}
            edited = BRIEF.replace("Write about", "Write well about")
            other = await first.retry(recipe=edited)
            statuses = [s.attempts[0].status for s in (await other.report()).steps]
            assert statuses == ["reused", "succeeded"]
            with pytest.raises(stretto.InvalidUsage, match="has no step 'breif'") as caught:
                await first.retry(from_step="breif")
            assert caught.value.hint == "did you mean 'brief'?"

    asyncio.run(main())


EACH = """
name: each
inputs: [{name: list, type: json, default: [a, b, b]}]
steps:
  - id: views
    parallel: [{agent: writer, input: For., output_key: pro}, {agent: antagonist, input: Against., output_key: con}]
  - id: each
    cache: true
    depends_on: views
    map:
      over: "{{inputs.list}}"
      stages: [{agent: writer, input: "Draft {{item}}"}, {agent: editor, input: Mend it.}]
      reduce: synthesizer
  - {id: last, subagent: writer, prompt: "End with {{steps.each.output}}"}
"""


def asked(report: stretto.RunReport) -> list[str]:
    """The work that was done again, by step and part."""
    return [
        f"{step.id} {attempt.part}".strip()
        for step in report.steps
        for attempt in step.attempts
        if attempt.status != "reused"
    ]


def test_one_element_or_one_branch_is_done_again_alone(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("default: said") as w:
            first = await w.start(EACH)
            assert (await first.report()).status == "complete"

            async def again(**named: Any) -> list[str]:
                return asked(await (await first.retry(**named)).report())

            assert await again() == []
            element = ["each item.1.stage.0", "each item.1.stage.1"]
            rest = ["each reduce", "last"]
            assert sorted(await again(from_step="each", part="1")) == [*element, *rest]
            assert sorted(await again(from_step="each", part="item.1.stage.1")) == [*element, *rest]
            branch = await again(from_step="views", part="con")
            assert [each for each in branch if each.startswith("views")] == ["views con"]
            assert "last" in branch
            shorter = await again(from_step="each", part="2", inputs={"list": ["a", "b"]})
            assert not [each for each in shorter if "item" in each]  # that element is gone

    asyncio.run(main())


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"part": "1"}, "say of which"),
        ({"from_step": "last", "part": "1"}, "has no branches or elements"),
        ({"from_step": "each", "part": "7"}, "its parts: 0, 1, 2"),
        ({"from_step": "views", "part": "cno"}, "did you mean 'con'"),
        ({"from_step": "each", "part": 1}, "part must be"),
    ],
)
def test_a_part_that_cannot_be_done_alone_is_refused(
    open_stretto: Open, named: dict[str, Any], said: str
) -> None:
    async def main() -> None:
        async with open_stretto("default: said") as w:
            first = await w.start(EACH)
            await first.wait()
            with pytest.raises(stretto.InvalidUsage) as caught:
                await first.retry(**named)
            assert said in f"{caught.value} {caught.value.hint}"

    asyncio.run(main())


def test_two_instances_work_at_once_in_one_loop(open_stretto: Open) -> None:
    async def main() -> None:
        slow = "default: {reply: slow, delay: 200ms}"
        async with open_stretto(slow) as one, open_stretto("default: quick") as other:
            runs = [await w.start(BRIEF, {"topic": "looms"}) for w in (one, other)]
            reports = await asyncio.gather(*(run.report() for run in runs))
            assert [report.output for report in reports] == ["slow", "quick"]
            # Each sees the runs of the other: they are the runs of one user.
            assert {row.id for row in await one.runs()} == {run.id for run in runs}

    asyncio.run(main())


def test_one_instance_watches_and_decides_what_another_one_drives(open_stretto: Open) -> None:
    async def main() -> None:
        is_decided = asyncio.Event()

        async def look() -> str:
            await is_decided.wait()  # so that the run is driven until then
            return "seen"

        recipe = GATED.replace("depends_on: [look], ", "").replace("researcher", "looker")
        async with (
            open_stretto("default: sent", agents={"looker": look}) as driver,
            open_stretto() as other,
        ):
            run = await driver.start(recipe)
            watched = other.open(run.id)
            async for event in watched.events():
                if isinstance(event, stretto.ApprovalRequested):
                    await watched.approve("send")
                    is_decided.set()
            assert await watched.wait() == "complete"
            assert (await run.report()).steps["send"].output == "sent"

    asyncio.run(main())


def test_runs_are_listed_newest_first_and_filtered(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            done = await w.start(BRIEF, {"topic": "looms"})
            await done.wait()
            waiting = await w.start(GATED)
            await waiting.wait()
            assert [row.id for row in await w.runs()] == [waiting.id, done.id]
            assert [row.id for row in await w.runs(status="waiting")] == [waiting.id]
            assert [row.id for row in await w.runs(workflow="brief")] == [done.id]
            assert await w.runs(since=time.time() + 60) == []
            assert len(await w.runs(limit=1)) == 1
            row = (await w.runs(workflow="brief"))[0]
            assert (row.status, row.workflow) == ("complete", "brief")
            assert row.ended_at is not None

    asyncio.run(main())


def test_a_task_is_a_run_of_one_step_and_its_prompt_is_taken_as_it_is(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto(agents={"echo": lambda prompt: prompt}, model=None) as w:
            run = await w.task("echo", "keep {{these}} braces")
            assert (await run.report()).output == "keep {{these}} braces"

    asyncio.run(main())


def test_the_blocking_run_gives_the_report_and_is_refused_inside_a_loop(
    tmp_path: Path, scripted: Scripted
) -> None:
    options: dict[str, Any] = {
        "home": tmp_path / "home", "folder": tmp_path, "model": scripted("default: x")
    }  # fmt: skip
    report = stretto.run(BRIEF, {"topic": "looms"}, **options)
    assert (report.status, report.output) == ("complete", "x")

    async def main() -> None:
        with pytest.raises(stretto.StrettoError, match="running event loop") as caught:
            stretto.run(BRIEF, {"topic": "looms"}, **options)
        assert "w.start" in caught.value.hint

    asyncio.run(main())


def test_events_hold_large_outputs_as_values(open_stretto: Open) -> None:
    async def main() -> None:
        long = "word " * 100_000
        async with open_stretto(agents={"talker": lambda: long}, model=None) as w:
            run = await w.task("talker", "Talk.")
            events = [event async for event in run.events()]
            assert [e.output for e in events if isinstance(e, stretto.AttemptSucceeded)] == [long]
            assert (await run.report()).output == long

    asyncio.run(main())


def test_a_run_that_is_driven_cannot_be_taken_by_another_instance(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("default: {reply: x, delay: 1h}") as one, open_stretto() as other:
            run = await one.start(BRIEF, {"topic": "looms"})
            with pytest.raises(stretto.Leased, match="is driven by"):
                await other.open(run.id).resume()
            assert await run.status() == "running"
            await run.stop()

    asyncio.run(main())


def test_a_stored_plan_that_is_not_surely_the_same_must_be_accepted(
    open_stretto: Open, tmp_path: Path
) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start(GATED)
            await run.wait()
            await run.approve("send")
            await run.wait()
        (tmp_path / "home" / "secret").unlink()  # then no seal holds any more
        async with open_stretto() as w:
            with pytest.raises(stretto.PlanNotAccepted, match=run.id) as caught:
                await w.open(run.id).retry()
            mark = re.search(r"--accept-plan (\w+)", caught.value.hint)
            assert mark is not None
            again = await w.open(run.id).retry(accepted=mark[1])
            assert await again.wait() in ("waiting", "complete")
            # A recipe that you name yourself needs nothing of what is stored.
            other = await w.open(run.id).retry(recipe=GATED)
            assert "are not used" in other.notices[0]

    asyncio.run(main())


def test_a_run_goes_on_only_with_what_its_folder_brought_while_that_is_trusted(
    open_stretto: Open, project: Path
) -> None:
    (project / "stretto.yaml").write_text("subagents: {max_concurrency: 2}\n")

    async def main() -> None:
        async with open_stretto(trust=True) as w:
            run = await w.start(GATED)
            await run.wait()
            assert run.notices == ()
        async with open_stretto() as w:
            (notice,) = (await w.start(BRIEF, {"topic": "x"})).notices
            assert notice == f"stretto.yaml in {project}: not used until you trust it"
            with pytest.raises(stretto.NotTrusted, match="changed since you trusted them"):
                await w.open(run.id).resume()

    asyncio.run(main())


def test_what_is_no_text_never_reaches_the_journal(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run: Any = await w.start(GATED)
            assert await run.wait() == "waiting"
            for wrong in (
                lambda: run.approve("send", None),
                lambda: run.approve("send", by=3),
                lambda: run.approve(None),
                lambda: run.approve("send", edit=3),
                lambda: run.approve("send", edit={"": 3}),
                lambda: run.reject("send", None),
                lambda: run.cancel(None),
                lambda: run.diff(None),
                lambda: run.apply(None),
            ):
                with pytest.raises(stretto.InvalidUsage, match="must be text, not"):
                    await asyncio.wait_for(wrong(), 5)
            with pytest.raises(stretto.InvalidUsage, match="run_id must be text"):
                w.open(None)  # type: ignore[arg-type]
            await run.approve("send")
            assert await run.wait() == "complete"

    asyncio.run(main())


def test_calls_at_once_resume_a_run_once(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("default: {reply: x, delay: 100ms}") as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            await asyncio.gather(run.stop(), run.stop())
            await asyncio.gather(run.resume(), run.resume())
            assert await run.wait() == "complete"
            resumed = [e async for e in run.events() if isinstance(e, stretto.RunResumed)]
            assert len(resumed) == 1

    asyncio.run(main())


def test_of_decisions_at_once_one_counts_and_the_others_say_which(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start(GATED)
            await run.wait()
            said = await asyncio.gather(
                *(run.approve("send", by="Ada") for _ in range(3)), return_exceptions=True
            )
            refused = [each for each in said if each is not None]
            assert len(refused) == 2
            for each in refused:
                assert isinstance(each, stretto.InvalidUsage)
                assert "approved by Ada" in each.message
            assert await run.wait() == "complete"

    asyncio.run(main())


def test_a_closed_stretto_says_so_to_those_who_watch(open_stretto: Open) -> None:
    async def main() -> None:
        w = open_stretto("default: {reply: x, delay: 60s}")
        run = await w.start(BRIEF, {"topic": "looms"})

        async def watch() -> None:
            async for _ in run.events():
                pass

        watchers = [asyncio.create_task(each) for each in (watch(), run.wait(), run.report())]
        await asyncio.sleep(0.05)
        await w.close()
        await w.close()
        for said in await asyncio.gather(*watchers, run.status(), return_exceptions=True):
            assert isinstance(said, stretto.InvalidUsage)
            assert said.message == "this Stretto is closed"

    asyncio.run(main())


def test_a_stretto_that_is_closed_while_it_starts_a_run_leaves_nothing_behind(
    open_stretto: Open,
) -> None:
    async def main() -> None:
        for turns in range(0, 60, 3):
            w = open_stretto("default: {reply: x, delay: 60s}")
            starting = asyncio.create_task(w.start(BRIEF, {"topic": "looms"}))
            await asyncio.sleep(turns / 1000)
            await asyncio.wait_for(w.close(), 10)
            await asyncio.wait([starting])
            error = starting.exception()
            assert error is None or isinstance(error, stretto.InvalidUsage), error
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_stretto_is_refused_in_a_second_event_loop(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto(store="memory") as w:

            async def start() -> str:
                return await (await w.start(GATED)).wait()

            assert await start() == "waiting"
            for begin in (start(), w.start("not-even-a-recipe")):
                with pytest.raises(stretto.InvalidUsage, match="belongs to another event loop"):
                    await asyncio.to_thread(asyncio.run, asyncio.wait_for(begin, 10))

    asyncio.run(main())


def test_a_run_is_refused_in_a_second_event_loop_too(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            await run.wait()
            for ask in (run.report, run.wait, run.status, run.resume):
                with pytest.raises(stretto.InvalidUsage, match="another event loop"):
                    await asyncio.to_thread(asyncio.run, asyncio.wait_for(ask(), 5))

    asyncio.run(main())


def test_a_run_that_is_stopping_is_not_resumed_in_a_second_event_loop(
    open_stretto: Open,
) -> None:
    async def slow(prompt: str) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)  # as a tool that closes slowly
            raise
        return prompt

    async def main() -> None:
        recipe = "name: s\nsteps: [{id: a, subagent: slow, prompt: x}]\n"
        async with open_stretto(agents={"slow": slow}) as w:
            run = await w.start(recipe)
            await asyncio.sleep(0.1)
            stopping = asyncio.ensure_future(run.stop())
            await asyncio.sleep(0.1)
            with pytest.raises(stretto.InvalidUsage, match="another event loop"):
                await asyncio.to_thread(asyncio.run, asyncio.wait_for(run.resume(), 5))
            await stopping

    asyncio.run(main())


def test_a_run_that_is_cancelled_and_stopped_at_once_is_cancelled(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto("default: {reply: x, delay: 60s}") as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            await asyncio.gather(run.cancel("enough"), run.stop())
            assert await run.status() == "cancelled"

    asyncio.run(main())


def test_a_batch_gives_its_steps_in_the_order_of_the_tasks(open_stretto: Open) -> None:
    async def batch() -> stretto.RunReport:
        async with open_stretto(agents={"score": lambda prompt: f"{prompt}!"}) as w:
            run = await w.batch(
                [
                    {"agent": "score", "prompt": "{{a}}", "description": "first"},
                    {"agent": "score", "prompt": "b"},
                ]
            )
            return await run.report()

    report = asyncio.run(batch())
    assert [(step.id, step.output) for step in report.steps] == [
        ("1-first", "{{a}}!"),
        ("task-2", "b!"),
    ]


@pytest.mark.parametrize("tasks", ["writer", [], [{"agent": "score"}], [object()], None])
def test_a_bad_batch_is_refused(open_stretto: Open, tasks: object) -> None:
    async def batch() -> None:
        async with open_stretto(agents={"score": lambda prompt: prompt}) as w:
            with pytest.raises(stretto.InvalidUsage):
                await w.batch(tasks)  # type: ignore[arg-type]

    asyncio.run(batch())


def test_a_block_that_is_cancelled_again_and_again_is_closed_all_the_same(
    open_stretto: Open,
) -> None:
    async def main() -> None:
        with anyio.move_on_after(0.5):  # cancels every await until its end, as web servers do
            async with open_stretto(agents={"slow": _slow}) as w:
                run = await w.start(SLOW)
                await run.wait()
        async with asyncio.timeout(20):
            while journal_threads():
                await asyncio.sleep(0.01)
        async with open_stretto() as w:
            assert [each.status for each in await w.runs()] == ["interrupted"]

    asyncio.run(main())


def journal_threads() -> list[str]:
    names = [each.name for each in threading.enumerate()]
    return [each for each in names if each == "stretto-journal"]


def test_one_that_nobody_closes_warns_and_leaves_no_thread(open_stretto: Open) -> None:
    async def main() -> None:
        await (await open_stretto().start(BRIEF, {"topic": "looms"})).report()

    def forget() -> None:
        asyncio.run(main())
        gc.collect()

    gc.collect()
    before = len(journal_threads())
    with pytest.warns(ResourceWarning, match=r"unclosed stretto\.Stretto of .*project"):
        forget()
    until = time.monotonic() + 20
    while len(journal_threads()) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(journal_threads()) == before


def test_the_events_of_a_run_may_be_left_early(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.start(BRIEF, {"topic": "looms"})
            async with aclosing(run.events()) as events:
                async for _ in events:
                    break
            assert (await run.report()).status == "complete"

    asyncio.run(main())
