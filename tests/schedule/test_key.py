"""What makes two attempts the same work: all that the runner is given, and who answers."""

import pytest
from msgspec import structs

from stretto.events.model import RunStarted
from stretto.plan.model import PlannedDelegation, PlannedPlaybook
from stretto.ports.runner import AttemptRequest
from stretto.schedule.advance import advance
from stretto.schedule.commands import StartAttempt
from stretto.schedule.places import OBEYED
from stretto.schedule.state import begin
from stretto.vocabulary.models import Setup
from support.recipes import Shelf
from support.scheduling import AGENTS, NO_PLAN, plan_of

SETUP = Setup({"": "openai:small at https://one", "big": "openai:big at https://one"})
TOOLS = "tools: [Read, Bash]"
BASE = {"agent": f"prompt: P, {TOOLS}", "step": "prompt: same"}


def key(
    agent: str = BASE["agent"],
    step: str = BASE["step"],
    setup: Setup | None = SETUP,
    workspace: str = "/home",
    run_id: str = "run-1",
) -> str:
    recipe = f"name: t\nagents: {{x: {{{agent}}}}}\nsteps: [{{id: a, subagent: x, {step}}}]\n"
    started = RunStarted(0.0, run_id, "t", "", NO_PLAN, {}, 0, workspace=workspace, setup=setup)
    _, commands = advance(begin(plan_of(recipe)), started)
    (start,) = (each for each in commands if isinstance(each, StartAttempt))
    return start.key


def test_equal_work_has_equal_keys_in_every_run() -> None:
    assert key(run_id="run-1") == key(run_id="run-2")


@pytest.mark.parametrize(
    "agent",
    [
        "prompt: Q, tools: [Read, Bash]",
        "prompt: P, tools: [Read]",
        "prompt: P, tools: [Read, 'Bash(git diff:*)']",
        f"prompt: P, {TOOLS}, max_turns: 3",
        f"prompt: P, {TOOLS}, fallback_models: [big]",
        f"prompt: P, {TOOLS}, model: big",
        f"prompt: P, {TOOLS}, posture: read_only",
        f"prompt: P, {TOOLS}, validation: {{rules: [Be short.]}}",
        f"prompt: P, {TOOLS}, validation: {{schema: {{type: object}}}}",
    ],
)
def test_another_agent_definition_is_other_work(agent: str) -> None:
    assert key(agent) != key()


@pytest.mark.parametrize(
    "more",
    [
        "",
        "tools: [Read]",
        "tools: [Read, Bash], max_turns: 3",
        "tools: [Read, Bash], fallback_models: [big]",
        "tools: [Read, Bash], model: big",
        "tools: [Read, Bash], validation: {rules: [Be short.]}",
        "tools: [Read, Bash], validation: {schema: {type: object}}",
        "tools: [Read, Bash], max_output_tokens: 7",
    ],
)
def test_a_namesake_in_another_recipe_is_another_agent(more: str) -> None:
    """The one has been asked before the other, in the same words."""
    inner = f"name: inner\nagents: {{x: {{prompt: P, {more}}}}}\nsteps: [{{id: a, subagent: x, prompt: same, posture: read_only}}]\n"
    outer = "name: t\nagents: {x: {prompt: P, tools: [Read, Bash]}}\nsteps:\n"
    first = "  - {id: a, subagent: x, prompt: same, posture: read_only}\n"
    last = "  - {id: b, workflow: inner}\n"
    started = RunStarted(0.0, "r", "t", "", NO_PLAN, {}, 0, workspace="/home", setup=SETUP)
    catalog = structs.replace(AGENTS, recipes=Shelf(inner=inner))
    found = []
    for steps in (first + last, last):
        _, commands = advance(begin(plan_of(outer + steps, catalog=catalog)), started)
        starts = [each for each in commands if isinstance(each, StartAttempt)]
        found.append({str(each.step): each.key for each in starts})
    assert found[0]["b/a"] == found[1]["b/a"], "who else was asked before does not matter"
    assert found[0]["a"] != found[0]["b/a"]


@pytest.mark.parametrize(
    "step",
    [
        "prompt: other",
        "prompt: same, model: big",
        "prompt: same, read_set: [src]",
        "prompt: same, write_set: [src]",
        "prompt: same, posture: read_only",
        "prompt: same, output: {format: json}",
        "prompt: same, output: {schema: {type: object}}",
    ],
)
def test_another_step_is_other_work(step: str) -> None:
    assert key(step=step) != key()


@pytest.mark.parametrize(
    "setup",
    [
        Setup({"": "openai:small at https://two"}),
        Setup({"": "openai:large at https://one"}),
        Setup({"": "scripted:5f3a"}),
        Setup(SETUP.models, {"Bash": "with the network"}),
    ],
)
def test_another_model_place_or_tool_configuration_is_other_work(setup: Setup) -> None:
    assert key(setup=setup) != key()


def test_another_judge_matters_where_there_are_rules() -> None:
    ruled = "prompt: P, validation: {rules: [Be short.]}"
    judged = Setup(SETUP.models, judge="openai:judge")
    assert key(ruled, setup=judged) != key(ruled)
    assert key(setup=judged) == key()


def test_where_nobody_knows_who_answers_no_run_is_equal_to_another() -> None:
    assert key(setup=None, run_id="run-1") != key(setup=None, run_id="run-2")
    unnamed = Setup({"big": "openai:big"})
    assert key(setup=unnamed, run_id="run-1") != key(setup=unnamed, run_id="run-2")


def test_another_workspace_matters_to_those_who_can_read_it() -> None:
    assert key(workspace="/elsewhere") != key()
    assert key("prompt: P", workspace="/elsewhere") == key("prompt: P")
    cli = Setup({"": "cli:claude 5f3a"})
    assert key("prompt: P", setup=cli, workspace="/x") != key("prompt: P", setup=cli)


def command_key(step: str, workspace: str = "/home") -> str:
    recipe = f"name: t\ninputs: {{v: {{default: {'x' * 600}}}}}\nsteps: [{{id: a, {step}}}]\n"
    given = {"v": "x" * 600}
    started = RunStarted(0.0, "r", "t", "", NO_PLAN, given, 0, workspace=workspace, setup=SETUP)
    _, commands = advance(begin(plan_of(recipe)), started)
    (start,) = (each for each in commands if isinstance(each, StartAttempt))
    return start.key


def test_another_command_or_another_value_is_other_work() -> None:
    long = "{{inputs.v}}"
    same = f'run: ls, env: {{A: "{long}"}}, stdin: "{long}"'
    assert command_key(same) == command_key(same)
    others = (
        f'run: ls -l, env: {{A: "{long}"}}, stdin: "{long}"',
        f'run: ls, env: {{A: "{long}y"}}, stdin: "{long}"',
        f'run: ls, env: {{B: "{long}"}}, stdin: "{long}"',
        f'run: ls, env: {{A: "{long}"}}, stdin: "{long}y"',
        f"{same}, write_set: [a]",
    )
    assert command_key(same) not in map(command_key, others)
    assert command_key(same, "/elsewhere") != command_key(same)


def test_every_field_of_a_request_is_in_the_key_or_says_where_it_is_asked() -> None:
    """A field that a runner obeys and the key leaves out would let wrong answers be reused."""
    # The workspace, and whether it is a copy of one, as the tests above say; how much time or money
    # is left changes no answer that came.
    place = {"run_id", "attempt", "workspace", "origin", "seconds_left", "allowance", "repeats"}
    told = {"agent", "instructions", "prompt", "arguments", "model", "fallback_models", "command"}
    methods = {"playbooks", "loadable"}  # as the test below says
    assert set(AttemptRequest.__struct_fields__) == place | told | methods | set(OBEYED)


def test_other_playbooks_are_other_work() -> None:
    plan = plan_of(
        "name: t\nagents: {x: {prompt: P}}\nsteps: [{id: a, subagent: x, prompt: same}]\n"
    )

    def equipped(digest: str = "d1", text: str = "Do it so.", given: bool = True) -> str:
        named = {"playbooks": ("how",)} if given else {"loadable": ("how",)}
        work = plan.steps[0].work
        assert isinstance(work, PlannedDelegation)
        brief = structs.replace(work.brief, **named)
        step = structs.replace(plan.steps[0], work=PlannedDelegation(brief))
        books = {"how": PlannedPlaybook("About it.", digest, text)}
        equipped = structs.replace(plan, steps=(step,), playbooks=books)
        started = RunStarted(0.0, "run-1", "t", "", NO_PLAN, {}, 0, setup=SETUP)
        _, commands = advance(begin(equipped), started)
        (start,) = (each for each in commands if isinstance(each, StartAttempt))
        return start.key

    keys = [
        key(agent="prompt: P"),
        equipped(),
        equipped(text="Do it otherwise."),
        equipped(given=False),
        equipped(given=False, digest="d2"),  # named only: what load_playbook gives is another
    ]
    assert len(set(keys)) == len(keys)
    assert equipped() == equipped()


def test_another_limit_of_a_step_is_other_work_though_all_else_is_shared() -> None:
    agents = "agents: {x: {prompt: P}}"
    steps = "{id: a, subagent: x, prompt: p}, {id: b, subagent: x, prompt: p, max_output_tokens: 9}"
    recipe = f"name: t\n{agents}\nsteps: [{steps}]\n"
    started = RunStarted(0.0, "run-1", "t", "", NO_PLAN, {}, 0, setup=SETUP)
    _, commands = advance(begin(plan_of(recipe)), started)
    keys = [each.key for each in commands if isinstance(each, StartAttempt)]
    assert len(set(keys)) == len(keys)
