"""What was done before is not done again: by content, in whatever order the steps now stand."""

from make import flat, plan_of
from run.stage import RUN, Counting, Stage
from weft.events.model import AttemptStarted
from weft.plan.model import Plan
from weft.run.reuse import downstream, reusable
from weft.schedule.result import output_of
from weft.schedule.state import RunState
from weft.vocabulary.ids import RunId, StepId
from weft.vocabulary.statuses import RunStatus

A = "{id: a, subagent: researcher, prompt: look}"
B = '{id: b, subagent: writer, prompt: "b {{steps.a.output}}"}'
C = "{id: c, subagent: researcher, prompt: aside}"
Z = '{id: z, subagent: writer, prompt: "{{steps.b.output}} {{steps.c.output}}"}'
RECIPE = flat(A, B, C, Z)
AGAIN = RunId("run-2")


def again(
    stage: Stage, plan: Plan | None = None, script: str = "default: ok", step: str | None = None
) -> tuple[list[str], RunState]:
    """The steps that ran, and how it ended."""
    plan = plan or stage.plan
    history = stage.do(stage.runs().history(RUN))
    anew = downstream(plan, StepId(step)) if step else frozenset()
    stage.plan, stage.runner = plan, Counting(script, stage.clock, stage.log)
    earlier = reusable(history.state, history.events, anew)
    state = stage.do(stage.starting(stage.runs(), AGAIN, reusable=earlier))
    return stage.runner.steps, state


def test_a_retry_runs_only_what_did_not_succeed_and_what_that_changes() -> None:
    stage = Stage(RECIPE, "default: ok\nreplies: {b: {fail: broken}}")
    assert stage.start().status is RunStatus.PARTIAL
    ran, state = again(stage)
    assert ran == ["b", "z"]
    assert state.status is RunStatus.COMPLETE


def test_a_retry_of_a_complete_run_runs_nothing() -> None:
    stage = Stage(RECIPE)
    stage.start()
    ran, state = again(stage)
    assert ran == []
    assert state.status is RunStatus.COMPLETE
    attempts = [attempt for step in state.order for attempt in step.attempts]
    assert {attempt.reused_from for attempt in attempts} == {RUN}


def test_a_retry_from_a_step_runs_it_and_everything_downstream() -> None:
    for step, expected in {"a": ["a", "b", "z"], "c": ["c", "z"], "z": ["z"]}.items():
        stage = Stage(RECIPE)
        stage.start()
        assert again(stage, step=step)[0] == expected


def test_downstream_follows_edges_that_point_back_in_the_listing() -> None:
    plan = plan_of(flat(Z, B, C, A))
    assert downstream(plan, StepId("a")) == {"a", "b", "z"}


def test_an_edited_recipe_reuses_the_unchanged_steps_in_whatever_order() -> None:
    stage = Stage(RECIPE)
    stage.start()
    edited = plan_of(flat(Z, C.replace("aside", "aside but well"), B, A))
    assert again(stage, edited)[0] == ["c"]  # it answers as before, so z is told the same


def test_what_an_edit_changes_downstream_is_done_again() -> None:
    stage = Stage(RECIPE)
    stage.start()
    edited = plan_of(flat(A.replace("look", "look twice"), B, C, Z))
    ran, _ = again(stage, edited, "default: ok\nreplies: {a: other words}")
    assert ran == ["a", "b"]


def test_another_agent_is_other_work() -> None:
    stage = Stage(RECIPE)
    stage.start()
    edited = plan_of(flat(A, B, C.replace("researcher", "reviewer"), Z))
    assert again(stage, edited)[0] == ["c"]


def test_a_step_by_another_name_is_the_same_work() -> None:
    stage = Stage(RECIPE)
    stage.start()
    renamed = plan_of(flat(A, B, C.replace("id: c", "id: renamed")))
    assert again(stage, renamed)[0] == []


def test_two_branches_of_equal_work_each_get_their_own_answer() -> None:
    recipe = flat(
        "id: p\nparallel:\n"
        "  - {agent: researcher, input: x, output_key: one}\n"
        "  - {agent: researcher, input: x, output_key: two}"
    )
    stage = Stage(recipe, "replies: {p/one: first, p/two: second}")
    stage.start()
    ran, state = again(stage)
    assert ran == []
    assert output_of(state) == {"one": "first", "two": "second"}


def test_a_branch_that_lost_is_not_begun_by_a_retry() -> None:
    recipe = flat(
        "id: p\nparallel:\n"
        "  - {agent: researcher, input: x, output_key: quick}\n"
        "  - {agent: writer, input: y, output_key: slow}\nwait: any"
    )
    stage = Stage(recipe, "replies: {p/quick: first, p/slow: {reply: late, delay: 1m}}")
    stage.start()
    ran, state = again(stage)
    assert ran == []
    assert state.status is RunStatus.COMPLETE
    started = [each for each in stage.journal(AGAIN) if isinstance(each, AttemptStarted)]
    assert [each.part for each in started] == ["quick"]


def test_what_a_person_allowed_stays_allowed() -> None:
    recipe = flat(
        "{id: g, subagent: writer, gate: human, prompt: x}",
        '{id: z, subagent: writer, prompt: "{{steps.g.output}}!"}',
    )
    stage = Stage(recipe, "replies: {g: ok, z: {fail: broken}}")
    stage.start()
    stage.do(stage.runs().decide(RUN, StepId("g"), True, "Ann"))
    assert stage.resume().status is RunStatus.PARTIAL
    ran, state = again(stage)
    assert ran == ["z"]
    assert state.status is RunStatus.COMPLETE


def test_from_a_gated_step_on_a_person_is_asked_again() -> None:
    stage = Stage(flat("{id: g, subagent: writer, gate: human, prompt: x}"))
    stage.start()
    stage.do(stage.runs().decide(RUN, StepId("g"), True, "Ann"))
    stage.resume()
    assert again(stage, step="g")[1].status is RunStatus.WAITING


def test_a_cached_step_is_done_once_for_all_runs() -> None:
    recipe = flat(
        "{id: a, subagent: researcher, cache: true, prompt: look}",
        '{id: b, subagent: writer, prompt: "{{steps.a.output}}"}',
    )
    stage = Stage(recipe)
    stage.start()
    state = stage.do(stage.starting(stage.runs(), AGAIN))
    assert stage.runner.steps == ["a", "b", "b"]
    assert [attempt.reused_from for attempt in state.steps[StepId("a")].attempts] == [RUN]


def test_a_failure_is_not_kept() -> None:
    recipe = flat("{id: a, subagent: researcher, cache: true, prompt: look}")
    stage = Stage(recipe, "replies: {a: {fail: broken}}")
    stage.start()
    stage.runner = Counting("default: ok", stage.clock, stage.log)
    assert stage.do(stage.starting(stage.runs(), AGAIN)).status is RunStatus.COMPLETE
    assert stage.runner.steps == ["a"]
