"""An approval is for what the person was shown; every decision is on record, and one counts."""

import asyncio
import json
from typing import cast

import pytest
from msgspec import structs

from stretto.events.model import (
    ApprovalRequested,
    Approved,
    AttemptStarted,
    Rejected,
    RunResumed,
    TimerFired,
)
from stretto.execution.reuse import downstream, reusable
from stretto.plan.model import Plan
from stretto.problems.errors import InvalidUsage
from stretto.report.gate import gate_as_json, gate_as_text, gate_of
from stretto.schedule.outputs import output_of
from stretto.schedule.state import RunState
from stretto.vocabulary.names import RunId, StepId
from stretto.vocabulary.statuses import RunStatus
from support.driven_runs import RUN, Counting, Stage, after_a_crash, statuses
from support.recipes import CATALOG, Shelf, flat, plan_of

G, AGAIN = StepId("g"), RunId("run-2")
SEND = '{id: g, subagent: writer, gate: human, prompt: "send to {{inputs.t}}"}'
AFTER = '{id: z, subagent: writer, prompt: "after {{steps.g.output}}"}'
GATED = flat(SEND, AFTER).replace("steps:", "inputs: [{name: t, default: Ann}]\nsteps:", 1)


def approved(recipe: str | Plan = GATED, **inputs: str) -> Stage:
    """A run whose gate a person has opened, to its end."""
    stage = Stage(recipe)
    stage.start(**{"t": "Ann", **inputs})
    stage.do(stage.runs().decide(RUN, G, True, "Ann"))
    stage.resume()
    return stage


def again(
    stage: Stage,
    plan: Plan | None = None,
    step: str = "",
    model: str = "a model",
    t: str = "Ann",
    script: str = "default: ok",
) -> RunState:
    history = stage.do(stage.runs().history(RUN))
    stage.plan = plan or stage.plan
    stage.runner = Counting(script, stage.clock, stage.log, model)
    anew = downstream(stage.plan, StepId(step)) if step else frozenset()
    earlier = reusable(history.state, anew, StepId(step) if step else None)
    return stage.do(stage.starting(stage.runs(), AGAIN, reusable=earlier, t=t))


def asked(stage: Stage, run_id: RunId = RUN) -> list[ApprovalRequested]:
    return [each for each in stage.journal(run_id) if isinstance(each, ApprovalRequested)]


# What an approval is for.


def test_an_approval_is_used_again_for_the_same_content() -> None:
    stage = approved()
    assert again(stage, step="z").status is RunStatus.COMPLETE
    (event,) = (each for each in stage.journal(AGAIN) if isinstance(each, Approved))
    assert event.by == "Ann, in run run-1"


BEFORE = '{id: a, subagent: reviewer, prompt: "of {{inputs.t}}"}'
LAST = '{id: g, subagent: writer, gate: human, prompt: "send {{steps.a.output}}"}'


def test_it_is_used_again_after_a_step_that_says_the_same_once_more() -> None:
    """`--from` names the step before it: what the person has seen is what will run."""
    head = "inputs: [{name: t, default: Ann}]\nsteps:"
    stage = approved(flat(BEFORE, LAST).replace("steps:", head, 1))
    assert again(stage, step="a").status is RunStatus.COMPLETE
    assert stage.runner.steps == ["a", "g"]


def test_it_is_not_once_the_step_before_it_says_something_else() -> None:
    head = "inputs: [{name: t, default: Ann}]\nsteps:"
    stage = approved(flat(BEFORE, LAST).replace("steps:", head, 1))
    assert again(stage, step="a", script="default: another").status is RunStatus.WAITING
    assert stage.runner.steps == ["a"]


def test_of_the_step_that_is_named_a_person_is_asked_again() -> None:
    assert again(approved(), step="g").status is RunStatus.WAITING


def test_an_approval_does_not_travel_to_another_input() -> None:
    stage = approved()
    assert again(stage, step="z", t="EVERYBODY").status is RunStatus.WAITING
    assert stage.runner.steps == []


@pytest.mark.parametrize(
    "edit",
    [
        ("send to", "send all to"),
        ("subagent: writer, gate", "subagent: reviewer, gate"),
        ("gate: human", "gate: human, write_set: [src], posture: writer"),
        ("gate: human", "gate: human, read_set: [src]"),
        ("gate: human", "gate: human, model: other"),
        ("gate: human", "gate: human, on_failure: 'fallback:worker'"),
        ("gate: human", "gate: human, output: {format: json}"),
    ],
)
def test_an_approval_does_not_travel_to_an_edited_step(edit: tuple[str, str]) -> None:
    stage = approved()
    assert again(stage, plan_of(GATED.replace(*edit))).status is RunStatus.WAITING
    assert stage.runner.steps == []


WRITES = SEND.replace("gate: human", "gate: human, posture: writer, write_set: [src]")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("workspace_mode: isolated", "workspace_mode: shared"),
        ("merge_back: manual", "merge_back: auto"),
        ("merge_back: after z", "merge_back: auto"),
        ("merge_back: after z, merge_when: 'false'", "merge_back: after z, merge_when: 'true'"),
    ],
)
def test_an_approval_does_not_travel_to_where_the_files_would_be_others(
    one: str, other: str
) -> None:
    """A person has let a step write in a copy, and not in the workspace."""
    stage = approved(GATED.replace(SEND, WRITES.replace("writer,", f"writer, {one},", 1)))
    plan = plan_of(GATED.replace(SEND, WRITES.replace("writer,", f"writer, {other},", 1)))
    assert again(stage, plan).status is RunStatus.WAITING


def test_an_approval_does_not_travel_to_another_model() -> None:
    stage = approved()
    assert again(stage, model="another model").status is RunStatus.WAITING


def test_a_later_stage_that_was_edited_is_asked_about_too() -> None:
    def piped(prompt: str) -> str:
        step = {
            "id": "g", "gate": "human",
            "map": {"over": "[1]", "stages": [
                {"agent": "writer", "prompt": "one"}, {"agent": "writer", "prompt": prompt}]},
        }  # fmt: skip
        return json.dumps({"name": "p", "steps": [step]})

    stage = approved(piped("two"))
    assert again(stage, plan_of(piped("three")), t="Ann").status is RunStatus.WAITING


AGENTS = {"w": {"prompt": "Write."}, "v": {"prompt": "Send it to {{inputs.t}}."}}
LATER: dict[str, dict[str, object]] = {
    "a stage": {"map": {"over": "[1]", "stages": [
        {"agent": "w", "input": "go"}, {"agent": "w", "input": "send {{item}} to {{inputs.t}}"}]}},
    "the reducer": {"map": {"over": "[1]", "agent": "w", "input": "go", "reduce": "v"}},
    "the validator": {"input": "go", "loop": {"agent": "w", "validator": "v"}},
    "the validator's command": {"input": "go", "posture": "read_only", "loop": {
        "agent": "w", "validator": {"run": "send $T", "env": {"T": "{{inputs.t}}"}}}},
    "the end of a loop": {"input": "go", "loop": {"agent": "w", "until": "inputs.t != 'x'"}},
    "the fallback": {"agent": "w", "input": "go", "on_failure": "fallback:v"},
    "the fallback of a branch": {"on_failure": "fallback:v", "parallel": [
        {"agent": "w", "input": "go"}, {"agent": "w", "input": "go"}]},
    "when it is merged": {"agent": "w", "input": "go", "posture": "writer", "write_set": ["src"],
        "merge_back": "after z", "merge_when": "inputs.t != 'x'"},
    "an earlier output": {"map": {"over": "[1]", "stages": [
        {"agent": "w", "input": "go"}, {"agent": "w", "input": "send {{steps.a.output}}"}]}},
}  # fmt: skip


def later(kind: str) -> str:
    """What is approved begins alike for every input; only what follows in the step differs."""
    steps = [
        {"id": "a", "agent": "w", "input": "of {{inputs.t}}"},
        {"id": "g", "gate": "human", **LATER[kind]},
        {"id": "z", "agent": "w", "input": "after {{steps.g.output}}"},
    ]
    inputs = [{"name": "t", "default": "Ann"}]
    inner = {"name": "p", "inputs": inputs, "agents": AGENTS, "steps": steps}
    return json.dumps({"workflow": inner})


PASSES = "default: {reply: {passed: true}}\nreplies: {a: {reply: %s}}"


@pytest.mark.parametrize("kind", LATER)
def test_an_approval_does_not_travel_to_what_comes_later_in_the_step(kind: str) -> None:
    stage = Stage(later(kind), PASSES % "Ann")
    stage.start(t="Ann")
    (question,) = asked(stage)
    stage.do(stage.runs().decide(RUN, G, True, "Ann", key=question.key))
    stage.resume()
    again(stage, t="Ann", script=PASSES % "Ann")
    assert asked(stage, AGAIN)[0].key == question.key
    other = Stage(later(kind), PASSES % "EVERYBODY")
    other.start(t="EVERYBODY")
    assert asked(other)[0].key != question.key


@pytest.mark.parametrize("kind", ["a stage", "the validator's command", "the fallback"])
def test_a_gate_shows_what_comes_later_in_the_step(kind: str) -> None:
    stage = Stage(later(kind))
    stage.start(t="Ann")
    state = stage.do(stage.runs().history(RUN)).state
    gate = gate_of(state, state.steps[G])
    assert "Ann" not in "".join(part.prompt for part in gate.parts)
    (told,) = cast(list[dict[str, str]], gate_as_json(gate)["later"])
    assert told["when"] == ("if it fails" if "fallback" in kind else "later")
    assert "Ann" in told["prompt"]
    assert f"{told['when']}: " in gate_as_text(gate)


def test_an_approval_of_a_workflow_step_does_not_travel_to_another_model() -> None:
    shelf = Shelf(inner=flat("{id: i, subagent: writer, prompt: go}"))
    recipe = flat("{id: g, gate: human, workflow: inner}", "{id: z, subagent: writer, prompt: z}")
    plan = plan_of(recipe, catalog=structs.replace(CATALOG, recipes=shelf))
    stages = [approved(plan), approved(plan)]
    assert again(stages[0], step="z", t="Ann").status is RunStatus.COMPLETE
    assert again(stages[1], step="z", t="Ann", model="other").status is RunStatus.WAITING


def test_a_rejection_is_nothing_to_be_used_again() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    stage.do(stage.runs().decide(RUN, G, False, "Ann"))
    stage.resume()
    assert again(stage).status is RunStatus.WAITING


def test_a_run_that_goes_on_with_another_model_asks_again() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    stage.do(stage.runs().decide(RUN, G, True, "Ann"))
    stage.runner.model = "another model"
    assert stage.resume().status is RunStatus.WAITING
    assert stage.runner.steps == []
    first, second = asked(stage)
    assert first.key != second.key
    stage.do(stage.runs().decide(RUN, G, True, "Ann"))
    assert stage.resume().status is RunStatus.COMPLETE


def test_what_a_person_saw_is_not_what_is_asked_any_more() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    (first,) = asked(stage)
    stage.runner.model = "another model"
    stage.resume()
    with pytest.raises(InvalidUsage, match="something else than you were shown"):
        stage.do(stage.runs().decide(RUN, G, True, "Ann", key=first.key))


def test_an_approval_for_something_else_does_not_open_the_gate() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    late = Approved(stage.clock.now(), G, "Bob", key="of something else", decision="d")
    stage.do(stage.store.send(RUN, late))
    assert stage.resume().status is RunStatus.WAITING
    assert stage.runner.steps == []
    (decision,) = stage.do(stage.runs().history(RUN)).state.steps[G].decisions
    assert decision.void == "it was given for something else"


def test_a_gate_of_permission_ask_and_work_in_doubt_have_keys_as_well() -> None:
    recipe = flat("{id: g, subagent: worker, prompt: go, write_set: [src], recovery: ask}")
    stage = Stage(recipe, "default: ok\nreplies: {g: {reply: ok, delay: 1m}}")

    async def crash() -> None:
        runs = stage.runs()
        drive = asyncio.ensure_future(stage.starting(runs))
        await asyncio.sleep(1)
        runs.stop()
        await drive

    stage.do(crash())
    assert stage.resume().status is RunStatus.WAITING
    (question,) = asked(stage)
    assert question.about == "again"
    stage.do(stage.runs().decide(RUN, G, True, "Ann", "it had done nothing"))
    assert stage.resume().status is RunStatus.COMPLETE
    narrowed = Stage(recipe)
    started = [each for each in stage.journal() if each.type == "run_started"]
    narrowed = after_a_crash(stage, started, "default: ok", at=stage.clock.now())
    resumed = narrowed.do(narrowed.runs().resume(RUN, narrowed.runner, permission="ask"))
    assert resumed.status is RunStatus.WAITING
    assert asked(narrowed)[0].key


# A second decision.


@pytest.mark.parametrize("first", [True, False])
def test_a_second_decision_is_refused_and_told_what_stands(first: bool) -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    stage.do(stage.runs().decide(RUN, G, first, "Ann", "because"))
    for second in (True, False):
        with pytest.raises(InvalidUsage) as refused:
            stage.do(stage.runs().decide(RUN, G, second, "Bob"))
        verb = "approved" if first else "rejected"
        assert f"was {verb} by Ann" in refused.value.message
        assert "because" in refused.value.message
        assert "that stands" in refused.value.message
    stage.resume()
    assert (statuses(stage.do(stage.runs().history(RUN)).state)["g"] == "succeeded") is first


@pytest.mark.parametrize("is_driven", [True, False])
def test_of_two_decisions_at_once_one_counts_and_the_other_is_refused(is_driven: bool) -> None:
    side = "{id: side, subagent: writer, prompt: aside}"
    recipe = GATED.replace("steps:", f"steps:\n  - {side}")
    stage = Stage(recipe, "default: ok\nreplies: {side: {reply: ok, delay: 1m}}")

    async def story() -> list[object]:
        drive = asyncio.ensure_future(stage.starting(stage.runs(), t="Ann"))
        if is_driven:
            await asyncio.sleep(5)
        else:
            await drive
        words = (
            stage.runs().decide(RUN, G, True, "Ann"),
            stage.runs().decide(RUN, G, False, "Bob"),
            stage.runs().decide(RUN, G, True, "Eve"),
        )
        said = await asyncio.gather(*words, return_exceptions=True)
        await drive
        return list(said)

    said = stage.do(story())
    refused = [each for each in said if isinstance(each, InvalidUsage)]
    assert said.count(None) == 1, said
    assert len(refused) == 2
    stands = ("approved by Ann", "rejected by Bob", "approved by Eve")[said.index(None)]
    assert all(f"was {stands}" in each.message for each in refused)


def test_a_decision_after_the_start_is_refused() -> None:
    stage = approved()
    with pytest.raises(InvalidUsage, match="was approved by Ann"):
        stage.do(stage.runs().decide(RUN, G, False, "Bob"))


def test_a_message_that_comes_twice_counts_once() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    stage.do(stage.runs().decide(RUN, G, True, "Ann"))
    (event,) = (each for each in stage.journal() if isinstance(each, Approved))
    stage.do(stage.store.send(RUN, event))
    assert stage.resume().status is RunStatus.COMPLETE
    assert len(stage.do(stage.runs().history(RUN)).state.steps[G].decisions) == 1


# What a person edits.


def test_an_edited_prompt_is_what_runs() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    prompts = {"": "send to nobody"}
    stage.do(stage.runs().decide(RUN, G, True, "Ann", "safer", prompts))
    assert stage.resume().status is RunStatus.COMPLETE
    assert stage.runner.prompts["g"] == "send to nobody"
    (start, _) = (each for each in stage.journal() if isinstance(each, AttemptStarted))
    other = approved()
    (plain, _) = (each for each in other.journal() if isinstance(each, AttemptStarted))
    assert start.key != plain.key
    assert again(stage, step="z").status is RunStatus.COMPLETE  # with the words of the person
    assert stage.runner.steps == ["z"]


def test_only_a_prompt_that_is_there_can_be_edited() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    for prompts, said in (({"x": "other"}, "no prompt 'x'"), ({"": "  "}, "is empty")):
        with pytest.raises(InvalidUsage, match=said):
            stage.do(stage.runs().decide(RUN, G, True, "Ann", prompts=prompts))


# Time.


def test_a_timeout_of_the_step_covers_its_gate_and_says_so() -> None:
    recipe = GATED.replace("gate: human", "gate: human, timeout: 60, on_failure: inline")
    stage = Stage(recipe)
    assert stage.start(t="Ann").status is RunStatus.WAITING
    late = after_a_crash(stage, stage.journal(), "default: ok", at=stage.clock.now() + 61)
    with pytest.raises(InvalidUsage, match="ran out"):
        late.do(late.runs().decide(RUN, G, True, "Ann"))
    state = late.resume()
    assert state.steps[G].error == "the step timed out after 1m, while it awaited approval"
    assert "g" not in late.runner.steps


def test_a_gate_without_a_timeout_never_lapses() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    late = after_a_crash(stage, stage.journal(), "default: ok", at=stage.clock.now() + 10**8)
    assert late.resume().status is RunStatus.WAITING
    late.do(late.runs().decide(RUN, G, True, "Ann"))
    assert late.resume().status is RunStatus.COMPLETE


def test_after_the_deadline_of_the_run_an_approval_starts_nothing() -> None:
    recipe = GATED.replace("name:", "timeout: 60\nname:", 1)
    stage = Stage(recipe)
    stage.start(t="Ann")
    (question,) = asked(stage)
    late = after_a_crash(stage, stage.journal(), "default: ok", at=stage.clock.now() + 61)
    # Left by somebody who was in time, and taken too late.
    word = Approved(stage.clock.now(), G, "Ann", key=question.key, decision="d")
    late.do(late.store.send(RUN, word))
    assert late.resume().has_ended
    assert late.runner.steps == []
    assert not any(isinstance(each, AttemptStarted) for each in late.journal())
    kinds = [type(each) for each in late.journal() if isinstance(each, RunResumed | TimerFired)]
    assert kinds == [RunResumed, TimerFired]


def test_a_deadline_that_passes_while_the_step_waits_for_a_place_ends_it() -> None:
    busy = "{id: busy, subagent: writer, prompt: aside}"
    recipe = GATED.replace("steps:", f"max_concurrency: 1\nsteps:\n  - {busy}")
    recipe = recipe.replace("gate: human", "gate: human, timeout: 30, on_failure: inline")
    stage = Stage(plan_of(recipe), "default: ok\nreplies: {busy: {reply: ok, delay: 1m}}")

    async def story() -> RunState:
        drive = asyncio.ensure_future(stage.starting(stage.runs(), t="Ann"))
        await asyncio.sleep(5)
        await stage.runs().decide(RUN, G, True, "Ann")
        return await drive

    state = stage.do(story())
    assert statuses(state) == {"busy": "succeeded", "g": "failed", "z": "succeeded"}
    assert "g" not in stage.runner.steps


def test_decisions_that_did_not_count_are_in_the_journal() -> None:
    stage = Stage(GATED)
    stage.start(t="Ann")
    (question,) = asked(stage)
    for by in ("Ann", "Bob"):
        kind = Approved if by == "Ann" else Rejected
        event = kind(stage.clock.now(), G, by, key=question.key, decision=by)
        stage.do(stage.store.send(RUN, event))
    state = stage.resume()
    assert [(each.event.by, bool(each.void)) for each in state.steps[G].decisions] == [
        ("Ann", False),
        ("Bob", True),
    ]
    assert output_of(state) == "ok"
