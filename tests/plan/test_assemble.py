"""Defaults filled in, policies decided, postures and sets."""

import pytest

from stretto.plan.model import (
    Plan,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedStep,
    PlannedSwitch,
    briefs,
)
from support.recipes import catalog_of, flat, plan_of, problems_of, step_of

AGENTS = """\
agents:
  reader: {tools: [Read, Grep]}
  careful: {tools: [Read, Write], disallowed_tools: [Write]}
  editor: {tools: [Edit]}
  shell: {tools: ["Bash(git diff:*)"]}
  posed: {tools: [Read, Write], posture: read_only}
  trusted: {tools: [Read], posture: writer}
  skipping: {tools: [Read], retry: {max_attempts: 3, backoff: linear, on_failure: skip}}
  backed: {tools: [Read], retry: {on_failure: fallback:reader}}
  backed_by_writer: {tools: [Read], retry: {on_failure: fallback:editor}}
"""


def planned(step: str, head: str = AGENTS) -> Plan:
    return plan_of(flat(f"{{id: a, prompt: x, {step}}}", head=head))


def only(step: str, head: str = AGENTS) -> PlannedStep:
    return planned(step, head).steps[0]


# --- failure -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "policy", "fallback"),
    [
        ("agent: reader", "inline", None),
        ("agent: reader, on_failure: block", "block", None),
        ("agent: reader, on_failure: abort", "abort", None),
        ("agent: reader, retry: {on_failure: skip}", "skip", None),
        ("agent: reader, on_failure: block, retry: {on_failure: skip}", "block", None),
        ("agent: skipping", "skip", None),
        ("agent: skipping, retry: {on_failure: abort}", "abort", None),
        ("agent: skipping, on_failure: inline", "inline", None),
        # `fallback:` says who takes over; if that fails too, the step aborts.
        ("agent: reader, on_failure: fallback:skipping", "abort", "skipping"),
        ("agent: reader, retry: {on_failure: fallback:skipping}", "abort", "skipping"),
        ("agent: backed", "abort", "reader"),
        ("agent: backed, on_failure: skip", "skip", None),
        ("loop: {agent: skipping, until: 1 < 2}", "skip", None),
        ("loop: {agent: reader, validator: skipping}", "inline", None),
    ],
)
def test_the_policy_is_the_step_s_or_else_its_agent_s_or_else_the_dialect_s(step, policy, fallback):
    planned_step = only(step)
    assert planned_step.on_failure == policy
    work = planned_step.work
    brief = work.brief if isinstance(work, PlannedDelegation) else None
    assert (brief.fallback if brief else None) == fallback


@pytest.mark.parametrize(
    "step",
    [
        "parallel: [{agent: skipping}, {agent: reader}]",
        "map: {over: '[1]', agent: skipping}",
        "condition: {eval: 1 < 2, true: skipping}",
    ],
)
def test_an_agent_s_policy_is_its_own_where_a_step_asks_several(step):
    planned_step = only(step)
    assert planned_step.on_failure == "inline"
    assert briefs(planned_step.work)[0].on_failure == "skip"


def test_every_branch_of_a_step_with_a_fallback_has_it():
    work = only("on_failure: fallback:editor, parallel: [{agent: reader}, {agent: shell}]").work
    assert isinstance(work, PlannedParallel)
    assert [branch.brief.fallback for branch in work.branches] == ["editor", "editor"]


@pytest.mark.parametrize(
    ("step", "attempts", "backoff"),
    [
        ("agent: reader", 1, "none"),
        ("agent: skipping", 3, "linear"),
        ("agent: skipping, retry: {max_attempts: 5}", 5, "linear"),
        ("agent: skipping, retry: {backoff: exponential}", 3, "exponential"),
        ("agent: reader, retry: {max_attempts: 2, backoff: none}", 2, "none"),
    ],
)
def test_retries_are_the_step_s_or_else_the_agent_s(step, attempts, backoff):
    work = only(step).work
    assert isinstance(work, PlannedDelegation)
    assert (work.brief.retry.max_attempts, work.brief.retry.backoff) == (attempts, backoff)


def test_a_step_s_model_comes_before_its_agent_s():
    head = "agents: {own: {prompt: x, model: a:b}, bare: {prompt: x}}"
    models = {}
    for agent in ("own", "bare"):
        for step in (f"agent: {agent}", f"agent: {agent}, model: c:d"):
            work = only(step, head).work
            assert isinstance(work, PlannedDelegation)
            models[step] = work.brief.model
    assert list(models.values()) == ["a:b", "c:d", None, "c:d"]


def test_timeouts_are_kept_where_they_were_written():
    head = "timeout: 1h\nagents: {own: {prompt: x, timeout: 1m}}"
    plan = planned("agent: own, timeout: 500ms", head)
    assert plan.timeout_seconds == 3600
    assert plan.steps[0].timeout_seconds == 0.5
    assert plan.agents["own"].timeout_seconds == 60


# --- postures and sets ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "posture"),
    [
        ("agent: reader", "read_only"),
        ("agent: careful", "read_only"),
        ("agent: editor", "writer"),
        ("agent: shell", "writer"),
        ("agent: posed", "read_only"),
        ("agent: trusted", "writer"),
        ("agent: editor, posture: read_only", "read_only"),
        ("agent: reader, posture: writer", "writer"),
        ("agent: backed_by_writer", "writer"),
        ("agent: reader, on_failure: fallback:shell", "writer"),
        ("parallel: [{agent: reader}, {agent: editor}]", "writer"),
        ("parallel: [{agent: reader}, {agent: reader}]", "read_only"),
        ("loop: {agent: reader, validator: editor}", "writer"),
        ("map: {over: '[1]', agent: reader, reduce: editor}", "writer"),
        ("map: {over: '[1]', stages: [{agent: reader}, {agent: shell}]}", "writer"),
        ("condition: {eval: 1 < 2, true: editor}", "writer"),
        ("condition: {eval: 1 < 2, true: reader}", "read_only"),
    ],
)
def test_a_step_may_write_when_anyone_it_asks_can(step, posture):
    assert only(step).posture == posture


@pytest.mark.parametrize("tool", ["Write", "Edit", "Bash", "MultiEdit", "NotebookEdit"])
def test_a_tool_that_can_change_files_makes_a_writer(tool):
    plan = plan_of(flat("{id: a, subagent: x, prompt: y}"), catalog=catalog_of({"x": [tool]}))
    assert plan.steps[0].posture == "writer"


@pytest.mark.parametrize("tool", ["Read", "Glob", "Grep", "WebFetch", "WebSearch", "mcp__x__y"])
def test_any_other_tool_does_not(tool):
    plan = plan_of(flat("{id: a, subagent: x, prompt: y}"), catalog=catalog_of({"x": [tool]}))
    assert plan.steps[0].posture == "read_only"


def test_a_reader_reads_everything_writes_nothing_and_shares_the_workspace():
    step = only("agent: reader")
    assert (step.read_set, step.write_set) == (("**/*",), ())
    assert (step.workspace_mode, step.merge_back, step.recovery) == ("shared", "auto", "rerun")
    assert not step.claims.is_writer
    assert not step.claims.is_isolated


def test_a_writer_without_a_write_set_claims_everything_on_its_own_copy():
    step = only("agent: editor")
    assert (step.read_set, step.write_set) == (("**/*",), ("**/*",))
    assert (step.workspace_mode, step.merge_back, step.recovery) == ("isolated", "auto", "ask")
    assert step.claims.is_writer
    assert step.claims.is_isolated


def test_sets_and_modes_that_are_written_are_kept():
    step = only(
        "agent: editor, read_set: [docs], write_set: [src, '*.md'], workspace_mode: shared, "
        "merge_back: never, recovery: rerun"
    )
    assert (step.read_set, step.write_set) == (("docs",), ("src", "*.md"))
    assert (step.workspace_mode, step.merge_back, step.recovery) == ("shared", "never", "rerun")
    assert [glob.text for glob in step.claims.writes] == ["src", "*.md"]


def test_a_reader_may_be_given_its_own_copy():
    assert only("agent: reader, workspace_mode: isolated").workspace_mode == "isolated"


def test_the_write_set_of_a_read_only_step_is_not_used():
    assert only("agent: editor, posture: read_only, write_set: [src]").write_set == ()


def test_denied_tools_are_taken_from_the_allowed_ones():
    assert planned("agent: careful").agents["careful"].tools == ("Read",)


# --- the kinds of work ---------------------------------------------------------------------


def test_a_branch_without_words_shares_those_of_its_step():
    work = only("parallel: [{agent: reader}, {agent: shell, input: own}]").work
    assert isinstance(work, PlannedParallel)
    assert [(b.brief.instruction.text, b.brief.style) for b in work.branches] == [
        ("x", "prompt"),
        ("own", "input"),
    ]


@pytest.mark.parametrize(
    ("branches", "keys"),
    [
        ("{agent: reader}", ["reader"]),
        ("{agent: reader}, {agent: reader}, {agent: reader}", ["reader", "reader_2", "reader_3"]),
        ("{agent: reader, output_key: k}, {agent: reader}", ["k", "reader"]),
        ("{agent: shell, output_key: reader}, {agent: reader}", ["reader", "reader_2"]),
        ("{agent: reader}, {agent: shell, output_key: reader}", ["reader_2", "reader"]),
    ],
)
def test_a_branch_is_called_by_its_key_or_its_agent_numbered_when_repeated(branches, keys):
    work = only(f"parallel: [{branches}]").work
    assert isinstance(work, PlannedParallel)
    assert [branch.key for branch in work.branches] == keys


@pytest.mark.parametrize(("wait", "needed"), [("all", 3), ("any", 1), ("2", 2), ("3", 3)])
def test_a_wait_says_how_many_branches_must_succeed(wait, needed):
    work = only(
        f"parallel: [{{agent: reader}}, {{agent: shell}}, {{agent: posed}}], wait: {wait}"
    ).work
    assert isinstance(work, PlannedParallel)
    assert work.needed == needed


def test_all_branches_are_waited_for_when_nothing_is_said():
    work = only("parallel: [{agent: reader}, {agent: shell}]").work
    assert isinstance(work, PlannedParallel)
    assert work.wait == "all"


def test_a_condition_leads_to_steps_and_agents_or_nowhere():
    text = flat(
        "{id: a, prompt: x, condition: {eval: 1 < 2, true: b, false: writer}}",
        "{id: b, subagent: writer, prompt: x}",
        "{id: c, condition: {eval: '{{steps.b.output.n}} > 1', true: writer}}",
    )
    plan = plan_of(text)
    first, last = plan.steps[0].work, plan.steps[2].work
    assert isinstance(first, PlannedCondition)
    assert isinstance(last, PlannedCondition)
    assert first.if_true is not None
    assert first.if_false is not None
    assert (first.if_true.step, first.if_true.brief, first.if_true.name) == ("b", None, "b")
    assert (first.if_false.step, first.if_false.name) == (None, "writer")
    assert last.if_false is None


def test_a_switch_keeps_the_order_of_its_cases():
    text = flat(
        "{id: a, switch: {value: run.id, cases: {z: writer, 1: worker}, default: reviewer}}"
    )
    work = plan_of(text).steps[0].work
    assert isinstance(work, PlannedSwitch)
    assert [(case, target.name) for case, target in work.cases] == [
        ("z", "writer"),
        ("1", "worker"),
    ]
    assert work.default is not None
    assert work.default.name == "reviewer"


def test_a_loop_has_three_iterations_unless_it_says_otherwise():
    for written, iterations in (("", 3), (", max_iterations: 5", 5)):
        work = only(f"loop: {{agent: reader, validator: posed{written}}}").work
        assert isinstance(work, PlannedLoop)
        assert work.max_iterations == iterations
        assert work.feedback is None


@pytest.mark.parametrize(
    "path", ["feedback.points", "'{{ feedback.points }}'", "'{{steps.a.output.why}}'"]
)
def test_a_feedback_path_stands_in_braces_or_without(path):
    work = only(f"loop: {{agent: reader, validator: posed, feedback_path: {path}}}").work
    assert isinstance(work, PlannedLoop)
    assert work.feedback is not None
    assert work.feedback.text == path.strip("'{} ")


def test_a_map_has_its_defaults():
    work = only("map: {over: '[1, 2]', agent: reader}").work
    assert isinstance(work, PlannedMap)
    assert (work.batch_size, work.max_items, work.on_item_failure, work.reducer) == (
        20,
        1000,
        None,
        None,
    )
    assert [brief.agent for brief in work.stages] == ["reader"]


def test_the_stages_of_a_map_are_its_pipeline():
    stages = "[{agent: reader, input: one}, {agent: shell}]"
    work = only(f"map: {{over: '[1]', stages: {stages}, reduce: posed, batch_size: 2}}").work
    assert isinstance(work, PlannedMap)
    assert [(brief.agent, brief.instruction.text) for brief in work.stages] == [
        ("reader", "one"),
        ("shell", "x"),
    ]
    assert work.reducer is not None
    assert (work.reducer.agent, work.reducer.instruction) == ("posed", None)


# --- the plan ------------------------------------------------------------------------------


def test_a_plan_holds_only_the_agents_that_some_step_uses():
    assert list(planned("agent: backed").agents) == ["backed", "reader"]


def test_a_plan_keeps_the_budget_gates_caches_and_conditions():
    plan = planned(
        "agent: reader, gate: human, cache: true, when: 1 < 2", f"budget: {{usd: 3}}\n{AGENTS}"
    )
    step = step_of(plan, "a")
    assert plan.budget.usd == 3
    assert (step.is_gated, step.is_cached) == (True, True)
    assert step.when is not None
    assert step.when.text == "1 < 2"


def test_the_digest_changes_with_the_text_and_only_with_it():
    text = flat("{id: a, subagent: writer, prompt: x}")
    assert plan_of(text, "a.yaml").digest == plan_of(text, "b.yaml").digest
    assert plan_of(text).digest != plan_of(text + "\n").digest


def test_building_twice_gives_equal_plans():
    text = flat("{id: a, subagent: writer, prompt: 'x {{inputs.t}}'}", head="inputs: [{name: t}]")
    assert plan_of(text) == plan_of(text)
    assert problems_of(text) == ()
