"""Goals from Python: `w.goals`."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import stretto
from support.api import Open

# The step `add` is a Python function, so the loop costs no process.
GROW = """name: grow
inputs: [{name: evidence, default: none}]
steps:
  - {id: think, subagent: writer, prompt: "So far: {{inputs.evidence}}"}
  - {id: add, subagent: adder, prompt: add, depends_on: think}
"""
PLAIN = """name: plain
inputs: [{name: topic, required: true}]
steps: [{id: think, subagent: writer, prompt: "{{inputs.topic}}"}]
"""
GATED = """name: gated
steps:
  - {id: think, subagent: writer, prompt: x}
  - {id: add, subagent: adder, gate: human, prompt: add, depends_on: think}
"""
THREE = "data:state.json#count >= 3"
NEVER = "data:state.json#count >= 1000"
SCRIPT = "default: {reply: ok, tokens: 10}"


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


@pytest.fixture
def state(project: Path) -> Path:
    file = project / "state.json"
    file.write_text('{"count": 0}')
    return file


@pytest.fixture
def counting(open_stretto: Open, state: Path) -> Callable[..., stretto.Stretto]:
    """A Stretto whose agent `adder` counts up in state.json."""

    def add() -> str:
        count = int(state.read_text().split(":")[1].strip(" }")) + 1
        state.write_text(f'{{"count": {count}}}')
        return f"now {count}"

    def make(script: str = SCRIPT, **options: object) -> stretto.Stretto:
        return open_stretto(script, agents={"adder": add}, **options)

    return make


def test_a_workflow_runs_until_the_verifier_passes(counting: Any, state: Path) -> None:
    async def work() -> None:
        async with counting() as w:
            goal = await w.goals.set("Three", THREE, workflow=GROW)
            report = await goal.wait()
            assert (report.status, report.iterations, report.is_ok) == ("achieved", 3, True)
            assert report.usage.tokens == 30
            assert [each.status for each in report.history] == ["complete"] * 3
            second = await w.open(report.history[1].run_id).report()
            assert "count is 1" in second.inputs["evidence"]
            assert [each.id for each in await w.goals.list()] == [goal.id]
            assert (await w.goals.show(goal.id)).json() == report.json()
            with pytest.raises(stretto.InvalidUsage, match="nothing to resume"):
                await goal.resume()

    run(work)


def test_the_goal_and_the_evidence_go_to_the_inputs_that_fit(
    open_stretto: Open, state: Path
) -> None:
    async def first_inputs(w: stretto.Stretto, **options: Any) -> dict[str, Any]:
        options.setdefault("workflow", PLAIN)
        goal = await w.goals.set("Do it", NEVER, max_iterations=1, **options)
        report = await goal.wait()
        return dict((await w.open(report.history[0].run_id).report()).inputs)

    async def work() -> None:
        async with open_stretto() as w:
            inputs = await first_inputs(w)
            assert inputs["topic"].startswith("Do it\n\nThe last check failed.")
            assert "count is 0" in inputs["topic"]
            inputs = await first_inputs(w, inputs={"topic": "tea"})
            assert inputs["topic"].startswith("tea\n\nThe last check failed.")
            both = PLAIN.replace("true}]", "true}, {name: notes, default: none}]")
            inputs = await first_inputs(w, workflow=both, evidence_input="notes")
            assert (inputs["topic"], inputs["notes"].splitlines()[-1]) == ("Do it", "count is 0")
            named = PLAIN.replace("topic", "goal")
            assert (await first_inputs(w, workflow=named))["goal"].startswith("Do it")

    run(work)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"max_iterations": 2}, "iterations"),
        ({"budget": {"tokens": 25}}, "tokens"),
        ({"budget": {"tokens": 20}}, "tokens"),
        ({"timeout": 0.3}, "time"),
    ],
)
def test_each_limit_ends_it_and_no_run_exceeds_the_budget(
    counting: Any, options: dict[str, Any], limit: str
) -> None:
    async def work() -> None:
        script = SCRIPT if limit != "time" else "default: {reply: ok, delay: 10m}"
        async with counting(script) as w:
            goal = await w.goals.set("x", NEVER, workflow=GROW, stall_after=0, **options)
            report = await goal.wait()
            assert (report.status, report.limit) == ("exhausted", limit), report
            assert report.usage.tokens <= 25
            assert report.why
            with pytest.raises(stretto.InvalidUsage, match="exhausted"):
                await goal.resume()

    run(work)


def test_an_exhausted_goal_goes_on_with_more_and_what_it_used_counts(counting: Any) -> None:
    async def work() -> None:
        async with counting() as w:
            goal = await w.goals.set("x", THREE, workflow=GROW, max_iterations=1)
            assert (await goal.wait()).status == "exhausted"
            again = await (await goal.resume(max_iterations=3)).wait()
            assert (again.status, again.iterations, again.usage.tokens) == ("achieved", 3, 30)

    run(work)


def test_iterations_that_change_nothing_are_a_standstill(open_stretto: Open, state: Path) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            goal = await w.goals.set("x", THREE, workflow=PLAIN, stall_after=2)
            report = await goal.wait()
            assert (report.status, report.iterations) == ("stalled", 2)
            again = await (await goal.resume()).wait()
            assert (again.status, again.iterations) == ("stalled", 4)

    run(work)


def test_the_agent_gives_up_with_a_reason_unless_the_verifier_passes(counting: Any) -> None:
    script = 'default: "I tried.\\n\\n**GOAL UNACHIEVABLE: the file is read-only**"'
    gives_up = GROW.replace("id: think", "id: last").replace("depends_on: think", "depends_on: []")
    given_up = f"{gives_up}\noutput: '{{{{steps.last.output}}}}'\n"

    async def work() -> None:
        async with counting(script) as w:
            report = await (await w.goals.set("x", THREE, workflow=given_up)).wait()
            assert (report.status, report.iterations) == ("unachievable", 1)
            assert report.why == "the file is read-only"
            # The function counts before the give-up is read: the verifier beats it.
            passes = await w.goals.set("x", "data:state.json#count >= 2", workflow=given_up)
            assert ((await passes.wait()).status) == "achieved"

    run(work)


def test_a_judge_decides_strictly(open_stretto: Open) -> None:
    verdicts = {
        "{reply: {passed: true, reason: it is there}}": "achieved",
        "{reply: {passed: false, reason: no title}}": "exhausted",
        '{reply: {passed: "true", reason: x}, raw: true}': "exhausted",
        "{reply: {passed: true, reason: ''}, raw: true}": "exhausted",
        "{reply: 'I would say yes', raw: true}": "exhausted",
        "{fail: no model, kind: permanent}": "exhausted",
    }

    async def work() -> None:
        for reply, status in verdicts.items():
            script = f"{{default: ok, replies: {{judge: {reply}}}}}"
            async with open_stretto(script) as w:
                goal = await w.goals.set(
                    "x", "llm:it has a title", workflow=PLAIN, max_iterations=1
                )
                report = await goal.wait()
                assert report.status == status, (reply, report)
                assert report.evidence

    run(work)


def test_what_a_judge_costs_counts(open_stretto: Open) -> None:
    script = "{default: {reply: ok, tokens: 5}, replies: {judge: {reply: {passed: false, reason: no}, tokens: 7}}}"

    async def work() -> None:
        async with open_stretto(script) as w:
            goal = await w.goals.set("x", "llm:words", workflow=PLAIN, budget={"tokens": 18})
            report = await goal.wait()
            assert (report.status, report.limit) == ("exhausted", "tokens")
            assert report.usage.tokens <= 18

    run(work)


def test_without_a_workflow_the_lead_agent_takes_a_turn(
    open_stretto: Open, project: Path, state: Path
) -> None:
    (project / "workflows").mkdir()
    (project / "workflows" / "grow.yaml").write_text(GROW)
    call = "{tool: run_workflow, arguments: {name: grow}}"
    turns = "".join(f"  turn-{n}: {{calls: [{call}], reply: Done.}}\n" for n in (1, 2, 3))

    def add() -> str:
        count = int(state.read_text().split(":")[1].strip(" }")) + 1
        state.write_text(f'{{"count": {count}}}')
        return "added"

    async def work() -> None:
        async with open_stretto(f"default: ok\nreplies:\n{turns}", agents={"adder": add}) as w:
            goal = await w.goals.set("Three", THREE)
            report = await goal.wait()
            assert (report.status, report.iterations) == ("achieved", 3), report
            chat = w.chat(goal.id)
            said = [turn.said for turn in await chat.turns()]
            assert len(said) == 3
            assert "count is 2" in said[2]
            assert (await chat.turns())[0].id == report.history[0].run_id

    run(work)


def test_the_lead_agent_may_give_up(open_stretto: Open, state: Path) -> None:
    async def work() -> None:
        async with open_stretto('default: "GOAL UNACHIEVABLE: nobody can"') as w:
            report = await (await w.goals.set("x", THREE)).wait()
            assert (report.status, report.why) == ("unachievable", "nobody can")

    run(work)


@pytest.mark.parametrize("verify", ["command:true", "test:", "ci:make", "ci:#1"])
def test_a_command_that_a_model_chose_needs_a_person_s_consent_to_exactly_it(
    open_stretto: Open, verify: str
) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            for consent in (None, "command:false", f"{verify} more"):
                with pytest.raises(stretto.PermissionDenied, match="no person has agreed"):
                    await w.goals.set("x", verify, asked_by="model", consent=consent)
            assert await w.goals.list() == ()

    run(work)


def test_with_consent_it_runs_and_other_verifiers_need_none(
    open_stretto: Open, state: Path
) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            given = await w.goals.set("x", "command:true", asked_by="model", consent="command:true")
            assert (await given.wait()).status == "achieved"
            harmless = await w.goals.set("x", "data:state.json#count == 0", asked_by="model")
            assert (await harmless.wait()).status == "achieved"

    run(work)


def test_a_gate_makes_the_goal_wait_and_resume_goes_on_with_the_same_run(counting: Any) -> None:
    async def work() -> None:
        async with counting() as w:
            goal = await w.goals.set("x", "data:state.json#count >= 1", workflow=GATED)
            report = await goal.wait()
            assert (report.status, report.state, report.iterations) == ("waiting", "active", 1)
            assert report.run_id
            still = await (await goal.resume()).wait()
            assert (still.status, still.iterations) == ("waiting", 1)
            await w.open(report.run_id).approve("add")
            await w.open(report.run_id).wait()
            done = await (await goal.resume()).wait()
            assert (done.status, done.iterations) == ("achieved", 1)
            assert done.history[0].run_id == report.run_id

    run(work)


def test_two_drivers_keep_each_other_out(counting: Any) -> None:
    async def work() -> None:
        async with counting("default: {reply: ok, delay: 10m}") as w, counting() as other:
            goal = await w.goals.set("x", NEVER, workflow=GROW)
            for each in (w, other):
                with pytest.raises(stretto.Leased, match="is driven by"):
                    await each.goals.resume(goal.id)
            assert (await other.goals.show(goal.id)).status == "active"
            await goal.stop()
            assert (await other.goals.show(goal.id)).status == "interrupted"

    run(work)


@pytest.mark.parametrize("is_driven", [True, False])
def test_clearing_ends_the_run_in_flight(counting: Any, is_driven: bool) -> None:
    async def work() -> None:
        async with (
            counting("default: {reply: ok, delay: 10m, tokens: 60}") as w,
            counting() as other,
        ):
            goal = await w.goals.set("x", NEVER, workflow=GROW, budget={"tokens": 100})
            run_id = await _in_flight(goal, w)
            await _asked(w, run_id)
            if not is_driven:
                await goal.stop()
            cleared = await other.goals.clear(goal.id)
            assert (cleared.status, cleared.iterations) == ("cleared", 1)
            assert cleared.usage.tokens == cleared.history[0].usage.tokens == 60
            assert await other.open(run_id).status() == "cancelled"
            assert (await other.goals.clear(goal.id)).status == "cleared"

    run(work)


async def _asked(w: stretto.Stretto, run_id: str) -> None:
    """Once what its call may take is on record."""
    async with asyncio.timeout(60):
        async for event in w.open(run_id).events():
            if event.type == "usage_noted":
                return


async def _in_flight(goal: stretto.Goal, w: stretto.Stretto) -> str:
    """The run of an iteration, once it has begun."""
    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at:
        report = await goal.report()
        if any(each.id == report.run_id for each in await w.runs()):
            assert report.run_id is not None
            return report.run_id
        await asyncio.sleep(0.02)
    raise AssertionError("no iteration began")


def test_leaving_the_block_leaves_a_goal_whose_run_another_block_resumes(
    counting: Any, scripted: Any, tmp_path: Path
) -> None:
    slow = scripted("default: {reply: ok, delay: 10m}")

    async def work() -> None:
        async with counting(model=slow) as w:
            goal = await w.goals.set("x", THREE, workflow=GROW)
            run_id = await _in_flight(goal, w)
        Path(slow.removeprefix("scripted:")).write_text(SCRIPT)
        async with counting(model=slow) as w:
            before = await w.goals.show(goal.id)
            assert (before.status, before.iterations) == ("interrupted", 1)
            done = await (await w.goals.resume(goal.id)).wait()
            assert (done.status, done.iterations) == ("achieved", 3)
            assert done.history[0].run_id == run_id
            assert done.worked_seconds > before.worked_seconds > 0

    run(work)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": " "}, "is empty"),
        ({"text": 3}, "must be text"),
        ({"verify": "nope:x"}, "no verifier"),
        ({"verify": "comand:x"}, "no verifier"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"max_iterations": True}, "max_iterations"),
        ({"stall_after": -1}, "stall_after"),
        ({"timeout": "soon"}, "no duration"),
        ({"timeout": float("nan")}, "duration"),
        ({"budget": {"agents": 3}}, "budget"),
        ({"budget": {"cents": 3}}, "budget"),
        ({"asked_by": "cat"}, "asked_by"),
        ({"inputs": {"a": 1}}, "workflow"),
    ],
)
def test_wrong_arguments_are_told_and_nothing_is_kept(
    open_stretto: Open, arguments: dict[str, Any], message: str
) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            with pytest.raises(stretto.InvalidUsage, match=message):
                await w.goals.set(**{"text": "x", "verify": "command:true", **arguments})
            assert await w.goals.list() == ()
            with pytest.raises(stretto.NotFound):
                await w.goals.show("nope")

    run(work)


def test_a_recipe_that_is_edited_meanwhile_changes_no_goal(
    counting: Any, project: Path, state: Path
) -> None:
    file = project / "grow.yaml"
    file.write_text(GROW)

    async def work() -> None:
        async with counting() as w:
            goal = await w.goals.set("x", THREE, workflow=file, max_iterations=1)
            await goal.wait()
            file.write_text(PLAIN)
            done = await (await goal.resume(max_iterations=5)).wait()
            assert (done.status, done.iterations) == ("achieved", 3)

    run(work)


def test_a_workflow_that_may_not_write_is_refused_before_the_goal_is_kept(
    open_stretto: Open, project: Path
) -> None:
    writes = "name: w\nsteps: [{id: a, subagent: worker, prompt: x, write_set: [a.txt]}]\n"

    async def work() -> None:
        async with open_stretto() as w:
            with pytest.raises(stretto.PermissionDenied):
                await w.goals.set("x", THREE, workflow=writes, permission="read_only")
            assert await w.goals.list() == ()

    run(work)


def test_a_judge_that_was_interrupted_goes_on_and_is_paid_once(
    open_stretto: Open, scripted: Any
) -> None:
    slow = (
        "{default: ok, replies: {judge: {reply: {passed: true, reason: y}, delay: 10m, tokens: 3}}}"
    )
    model = scripted(slow)

    async def work() -> None:
        async with open_stretto(model=model) as w:
            goal = await w.goals.set("x", "llm:words", workflow=PLAIN)
            judge = await _in_flight(goal, w)
            await goal.stop()
            assert (await goal.report()).status == "interrupted"
        Path(model.removeprefix("scripted:")).write_text(slow.replace("delay: 10m, ", ""))
        async with open_stretto(model=model) as w:
            done = await (await w.goals.resume(goal.id)).wait()
            assert (done.status, done.iterations, done.usage.tokens) == ("achieved", 0, 3)
            assert [each.id for each in await w.runs()] == [judge]

    run(work)


def test_the_budget_bounds_the_turns_of_the_lead_agent(open_stretto: Open, state: Path) -> None:
    async def work() -> None:
        async with open_stretto(SCRIPT) as w:
            goal = await w.goals.set("x", NEVER, stall_after=0, budget={"tokens": 25})
            report = await goal.wait()
            assert (report.status, report.limit) == ("exhausted", "tokens"), report
            assert report.usage.tokens <= 25

    run(work)


def test_a_turn_that_was_interrupted_goes_on_as_the_same_turn(
    open_stretto: Open, scripted: Any, state: Path
) -> None:
    model = scripted("default: {reply: ok, delay: 10m}")

    async def work() -> None:
        async with open_stretto(model=model) as w:
            goal = await w.goals.set("x", THREE, max_iterations=1)
            turn = await _in_flight(goal, w)
            await goal.stop()
        Path(model.removeprefix("scripted:")).write_text("default: ok")
        async with open_stretto(model=model) as w:
            done = await (await w.goals.resume(goal.id)).wait()
            assert (done.status, done.iterations) == ("exhausted", 1)
            assert [each.id for each in await w.runs()] == [turn]
            cleared = await w.goals.set("x", THREE)
            assert (await w.goals.clear(cleared.id)).state in ("cleared", "stalled")

    run(work)


def test_whoever_opens_a_goal_waits_for_the_process_that_drives_it(counting: Any) -> None:
    async def work() -> None:
        async with counting() as w, counting() as other:
            goal = await w.goals.set("x", THREE, workflow=GROW)
            assert (await other.goals.open(goal.id).wait()).status == "achieved"

    run(work)


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "begun before a crash"])
def test_a_turn_that_never_began_uses_up_no_iteration(
    open_stretto: Open, scripted: Any, state: Path, is_known: bool
) -> None:
    model = scripted("default: {reply: ok, delay: 10m}" if is_known else "default: ok")
    script = Path(model.removeprefix("scripted:"))

    async def work() -> None:
        async with open_stretto(model=model) as w:
            if not is_known:
                script.unlink()
            goal = await w.goals.set("x", THREE, max_iterations=1)
            if is_known:
                await _in_flight(goal, w)
                await goal.stop()
                script.unlink()
                goal = await w.goals.resume(goal.id)
            for _ in range(3):
                with pytest.raises(stretto.StrettoError, match=script.name):
                    await goal.wait()
                report = await w.goals.show(goal.id)
                assert (report.status, report.state) == ("interrupted", "active")
                goal = await w.goals.resume(goal.id)
            with pytest.raises(stretto.StrettoError, match=script.name):
                await goal.wait()
        script.write_text("default: ok")
        async with open_stretto(model=model) as w:
            done = await (await w.goals.resume(goal.id)).wait()
            assert (done.status, done.iterations, done.limit) == ("exhausted", 1, "iterations")
            [turn] = await w.chat(goal.id).turns()
            assert (turn.status, turn.id) == ("complete", done.history[0].run_id)

    run(work)
