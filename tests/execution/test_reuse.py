"""What was done before is not done again: by content, in whatever order the steps now stand."""

from msgspec import structs

from stretto.adapters.models.scripted import ScriptedRunner, read_script
from stretto.events.model import AttemptStarted, RunStarted
from stretto.execution.reuse import downstream, reusable
from stretto.execution.runs import Start
from stretto.plan.model import Plan
from stretto.ports.runner import AttemptRequest, AttemptResult, Witness
from stretto.schedule.outputs import output_of
from stretto.schedule.state import RunState
from stretto.vocabulary.names import RunId, StepId
from stretto.vocabulary.statuses import RunStatus, StepStatus
from support.driven_runs import RUN, Counting, Stage, after_a_crash
from support.recipes import flat, plan_of

A = "{id: a, subagent: researcher, prompt: look}"
B = '{id: b, subagent: writer, prompt: "b {{steps.a.output}}"}'
C = "{id: c, subagent: researcher, prompt: aside}"
Z = '{id: z, subagent: writer, prompt: "{{steps.b.output}} {{steps.c.output}}"}'
RECIPE = flat(A, B, C, Z)
AGAIN = RunId("run-2")


class NoName:
    """A runner that cannot say who answers."""

    def __init__(self, inner: Counting) -> None:
        self._inner = inner

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        return await self._inner.run(request, witness)


def again(
    stage: Stage,
    plan: Plan | None = None,
    script: str = "default: ok",
    step: str | None = None,
    model: str = "a model",
    is_named: bool = True,
) -> tuple[list[str], RunState]:
    """The steps that ran, and how it ended."""
    plan = plan or stage.plan
    history = stage.do(stage.runs().history(RUN))
    anew = downstream(plan, StepId(step)) if step else frozenset()
    runner = Counting(script, stage.clock, stage.log, model)
    stage.plan, stage.runner = plan, runner if is_named else NoName(runner)  # type: ignore[assignment]
    earlier = reusable(history.state, anew, StepId(step) if step else None)
    state = stage.do(stage.starting(stage.runs(), AGAIN, reusable=earlier))
    return runner.steps, state


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
    assert [each.attempt.part.text for each in started] == ["quick"]


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


# Who answers is part of the work.


def test_another_model_makes_everything_anew() -> None:
    stage = Stage(RECIPE)
    stage.start()
    ran, state = again(stage, model="another model")
    assert sorted(ran) == ["a", "b", "c", "z"]
    assert {attempt.reused_from for step in state.order for attempt in step.attempts} == {None}


def test_what_was_made_by_nobody_knows_whom_is_not_reused() -> None:
    stage = Stage(RECIPE)
    stage.runner = NoName(stage.runner)  # type: ignore[assignment]
    stage.start()
    assert sorted(again(stage, is_named=False)[0]) == ["a", "b", "c", "z"]


def test_a_journal_without_a_setup_is_read_and_never_reused() -> None:
    stage = Stage(RECIPE)
    stage.start()
    rows = [
        structs.replace(row, setup=None) if isinstance(row, RunStarted) else row
        for row in stage.journal()
    ]
    old = after_a_crash(stage, rows, "default: ok", at=stage.clock.now())
    assert old.do(old.runs().history(RUN)).state.status is RunStatus.COMPLETE
    keys = {each.key for each in rows if isinstance(each, AttemptStarted)}
    fresh = Stage(RECIPE)
    fresh.runner = NoName(fresh.runner)  # type: ignore[assignment]
    fresh.do(fresh.starting(fresh.runs(), AGAIN))
    made = {each.key for each in fresh.journal(AGAIN) if isinstance(each, AttemptStarted)}
    assert not keys & made


def test_a_cached_answer_is_not_served_to_another_model_nor_to_another_script() -> None:
    recipe = flat("{id: a, subagent: researcher, cache: true, prompt: look}")
    stage = Stage(recipe)
    stage.start()
    stage.runner = Counting("default: ok", stage.clock, stage.log, model="another model")
    stage.do(stage.starting(stage.runs(), AGAIN))
    assert stage.runner.steps == ["a"]
    for number, script in enumerate(("default: tiny", "default: large", "default: tiny")):
        runner = ScriptedRunner(read_script(script), stage.clock)
        start = Start(stage.plan, {}, RunId(f"run-{number + 3}"))
        stage.do(stage.runs().start(start, runner))
    outputs = [
        output_of(stage.do(stage.runs().history(RunId(f"run-{n}"))).state) for n in (3, 4, 5)
    ]
    assert outputs == ["tiny", "large", "tiny"]


def test_a_run_that_another_model_goes_on_with_gives_its_answers_that_models_key() -> None:
    stage = Stage(flat("{id: a, subagent: researcher, prompt: look}"))
    stage.start()
    (first,) = (each for each in stage.journal() if isinstance(each, AttemptStarted))
    rows = [each for each in stage.journal() if isinstance(each, RunStarted)]
    resumed = after_a_crash(stage, rows, "default: ok", at=stage.clock.now())
    resumed.runner.model = "another model"
    resumed.resume()
    (second,) = (each for each in resumed.journal() if isinstance(each, AttemptStarted))
    assert first.key != second.key


# A place takes its own answer.

VOTES = flat(*(f"{{id: v{n}, subagent: researcher, prompt: vote}}" for n in (1, 2, 3)))


def test_a_vote_that_failed_is_not_given_its_neighbours_answer() -> None:
    stage = Stage(VOTES, "replies: {v1: one, v2: {fail: broken}, v3: three}")
    stage.start()
    ran, state = again(stage, script="default: anew")
    assert ran == ["v2"]
    assert [step.output for step in state.order] == ["one", "anew", "three"]


def test_a_branch_that_failed_is_not_given_its_neighbours_answer() -> None:
    recipe = flat(
        "id: p\non_failure: inline\nparallel:\n"
        "  - {agent: researcher, input: x, output_key: one}\n"
        "  - {agent: researcher, input: x, output_key: two}"
    )
    stage = Stage(recipe, "replies: {p/one: first, p/two: {fail: broken}}")
    stage.start()
    ran, state = again(stage, script="default: anew")
    assert ran == ["p"]
    assert output_of(state) == {"one": "first", "two": "anew"}


def test_a_step_that_was_cancelled_is_not_given_its_neighbours_answer() -> None:
    recipe = VOTES.replace("name:", "timeout: 5\nname:", 1)
    stage = Stage(recipe, "default: quick\nreplies: {v2: {reply: slow, delay: 1m}}")
    assert stage.start().steps[StepId("v2")].status is StepStatus.CANCELLED
    ran, state = again(stage, script="default: anew")
    assert ran == ["v2"]
    assert state.steps[StepId("v2")].output == "anew"


def votes_of(elements: str) -> str:
    return (
        "name: m\nsteps:\n"
        "  - {id: m, map: {over: '" + elements + "', agent: researcher, on_item_failure: skip},"
        " prompt: 'vote {{item}}'}\n"
    )


def test_an_element_that_failed_is_not_given_the_answer_of_an_equal_one() -> None:
    script = "default: first\nreplies: {m/item.1.stage.0: {fail: broken}, m/item.2.stage.0: third}"
    stage = Stage(votes_of('["x", "x", "x"]'), script)
    stage.start()
    ran, state = again(stage, script="default: anew")
    assert ran == ["m"]
    assert output_of(state) == ["first", "anew", "third"]


def test_an_element_keeps_its_answer_when_others_come_before_it() -> None:
    script = "replies: {m/item.0.stage.0: b, m/item.1.stage.0: c, m/item.2.stage.0: second b}"
    stage = Stage(votes_of('["b", "c", "b"]'), script)
    stage.start()
    ran, state = again(stage, plan_of(votes_of('["a", "b", "c", "b", "b"]')), "default: anew")
    assert output_of(state) == ["anew", "b", "c", "second b", "anew"]
    assert len(ran) == 2


def test_the_answer_of_a_step_that_was_renamed_is_given_once() -> None:
    stage = Stage(flat("{id: v, subagent: researcher, prompt: vote}"), "default: then")
    stage.start()
    edited = flat(*(f"{{id: w{n}, subagent: researcher, prompt: vote}}" for n in (1, 2)))
    ran, state = again(stage, plan_of(edited), "default: anew")
    assert len(ran) == 1
    assert sorted(str(step.output) for step in state.order) == ["anew", "then"]


def test_a_new_step_is_not_given_the_answer_of_one_that_is_still_there() -> None:
    stage = Stage(flat("{id: v1, subagent: researcher, prompt: vote}"))
    stage.start()
    assert again(stage, plan_of(VOTES))[0] == ["v2", "v3"]


def test_the_branches_of_a_renamed_step_keep_their_own_answers() -> None:
    def fan(name: str) -> str:
        return flat(
            f"id: {name}\non_failure: inline\nparallel:\n"
            "  - {agent: researcher, input: x, output_key: one}\n"
            "  - {agent: researcher, input: x, output_key: two}"
        )

    stage = Stage(fan("p"), "replies: {p/one: {fail: broken}, p/two: second}")
    stage.start()
    _, state = again(stage, plan_of(fan("q")), "default: anew")
    assert output_of(state) == {"one": "anew", "two": "second"}


def test_equal_votes_that_are_cached_are_asked_apart() -> None:
    votes = (f"{{id: v{n}, subagent: researcher, cache: true, prompt: vote}}" for n in (1, 2))
    stage = Stage(flat(*votes), "replies: {v1: one, v2: two}")
    stage.start()
    assert stage.runner.steps == ["v1", "v2"]
    state = stage.do(stage.starting(stage.runs(), AGAIN))
    assert stage.runner.steps == ["v1", "v2"]
    assert [step.output for step in state.order] == ["one", "two"]
