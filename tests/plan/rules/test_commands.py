"""What is wrong with a command is found before it runs."""

import pytest

from stretto.plan.build import Problems, build
from stretto.plan.dry_run import max_delegations, max_model_calls
from stretto.plan.model import Plan, decode_plan, encode_plan
from stretto.recipe.read import read_recipe

HEADS = {
    "flat": "name: r\ninputs: {topic: {default: x}}\nsteps:\n",
    "wrapped": "workflow:\n  name: r\n  inputs: {topic: {default: x}}\n  steps:\n",
    "structural": "name: r\ninputs: {topic: {default: x}}\nsteps:\n"
    "  - {id: first, task: Look., agent: worker}\n",
}
AGENTS = "agents:\n  worker: {prompt: Work.}\n"


def built(steps: str, head: str = HEADS["flat"]) -> Plan | Problems:
    return build(read_recipe(head + steps))


def codes(steps: str) -> list[str]:
    found = built(steps)
    return [problem.code for problem in found.problems] if isinstance(found, Problems) else []


def planned(steps: str) -> Plan:
    found = built(steps)
    assert isinstance(found, Plan), found
    return found


def test_a_command_is_planned_as_a_writer_that_asks_after_a_crash() -> None:
    step = planned("  - {id: test, run: pytest -q}\n").steps[0]
    assert step.type == "command"
    assert step.posture == "writer"
    assert step.workspace_mode == "isolated"
    assert step.recovery == "ask"


def test_an_idempotent_command_is_repeated_after_a_crash() -> None:
    assert planned("  - {id: a, run: ls, effect: idempotent}\n").steps[0].recovery == "rerun"
    written = planned("  - {id: a, run: ls, effect: idempotent, recovery: ask}\n")
    assert written.steps[0].recovery == "ask"


def test_a_written_posture_and_sets_count() -> None:
    reader = planned("  - {id: a, run: ls, posture: read_only}\n").steps[0]
    assert (reader.posture, reader.write_set) == ("read_only", ())
    writer = planned("  - {id: a, run: make, write_set: [build/**]}\n").steps[0]
    assert writer.write_set == ("build/**",)


@pytest.mark.parametrize("dialect", HEADS)
def test_every_dialect_has_commands(dialect: str) -> None:
    indent = "  " if dialect == "wrapped" else ""
    step = '  - {id: a, type: command, run: "wc -c", stdin: "{{inputs.topic}}"}\n'
    agents = AGENTS if dialect == "structural" else ""
    plan = build(read_recipe(agents + HEADS[dialect] + indent + step))
    assert isinstance(plan, Plan), plan
    assert plan.dialect == dialect
    assert plan.steps[-1].is_command


def test_a_plan_with_commands_is_stored_and_read_back() -> None:
    plan = planned('  - {id: a, run: "echo $T", env: {T: "{{inputs.topic}}"}, stdin: "x"}\n')
    assert decode_plan(encode_plan(plan)) == plan


def test_a_reference_in_env_or_stdin_is_an_edge() -> None:
    plan = planned(
        '  - {id: b, run: "echo $A", env: {A: "{{steps.a.output}}"}}\n'
        '  - {id: c, run: cat, stdin: "{{steps.b.output}}"}\n'
        "  - {id: a, run: date}\n"
    )
    assert [step.depends_on for step in plan.steps] == [("a",), ("b",), ()]


def test_commands_cost_no_model_calls() -> None:
    plan = planned("  - {id: a, run: date, retry: {max_attempts: 3}}\n")
    assert (max_delegations(plan), max_model_calls(plan)) == (0, 0)


def test_a_template_in_a_command_is_a_problem_whose_hint_shows_env() -> None:
    found = built('  - {id: a, run: "echo {{ inputs.topic }}"}\n')
    assert isinstance(found, Problems)
    (problem,) = found.problems
    assert problem.code == "RCP141"
    assert problem.hint == 'write env: {TOPIC: "{{inputs.topic}}"}, and "$TOPIC" in the command'
    assert problem.place is not None
    assert problem.place.line == 4


def test_a_template_in_a_validator_is_a_problem_too() -> None:
    step = '  - {id: a, prompt: x, loop: {agent: w, validator: {run: "echo {{steps.a.output}}"}}}\n'
    found = build(read_recipe("agents: {w: {prompt: x}}\n" + HEADS["flat"] + step))
    assert isinstance(found, Problems)
    assert [problem.code for problem in found.problems] == ["RCP141"]


def test_braces_of_other_languages_are_the_commands_own() -> None:
    plan = planned("""  - {id: a, run: "docker ps --format '{{.ID}}'"}\n""")
    brief = plan.steps[0].work.brief  # type: ignore[union-attr]
    assert brief.command.run == "docker ps --format '{{.ID}}'"


def test_escaped_braces_are_two_braces() -> None:
    plan = planned(r"""  - {id: a, run: 'echo \{{name}}'}""" + "\n")
    assert plan.steps[0].work.brief.command.run == "echo {{name}}"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "name",
    ["PATH", "LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "IFS", "PYTHONPATH", "NODE_OPTIONS",
     "GIT_SSH_COMMAND", "PERL5OPT", "PS4", "HOME", "Path", "BASH_FUNC_ls", "PYTHONSTARTUP",
     "TAR_OPTIONS", "MAKEFILES", "PYTHONUSERBASE", "XDG_CONFIG_HOME", "NPM_CONFIG_SCRIPT_SHELL"],
)  # fmt: skip
def test_a_name_that_decides_what_runs_is_a_problem(name: str) -> None:
    assert codes(f"  - {{id: a, run: ls, env: {{{name}: x}}}}\n") == ["RCP142"]


@pytest.mark.parametrize("name", ["A B", "1A", "A=B", "A-B", '"a\\nb"', "é", "BASH_FUNC_ls%%"])
def test_a_name_that_no_variable_can_have_is_a_problem(name: str) -> None:
    assert codes(f"  - {{id: a, run: ls, env: {{{name}: x}}}}\n") == ["RCP142"]


@pytest.mark.parametrize(
    "more",
    ["prompt: x", "input: x", "task: x", "agent: w", "model: m", "max_output_tokens: 5"],
)
def test_what_only_an_agent_obeys_is_a_problem(more: str) -> None:
    found = built(f"  - {{id: a, run: ls, {more}}}\n")
    assert isinstance(found, Problems)
    assert "RCP113" in [problem.code for problem in found.problems]


@pytest.mark.parametrize("more", ["env: {A: x}", "stdin: x", "effect: idempotent"])
def test_what_only_a_command_has_is_a_problem_elsewhere(more: str) -> None:
    found = build(
        read_recipe(
            "agents: {w: {prompt: x}}\n"
            + HEADS["flat"]
            + f"  - {{id: a, agent: w, prompt: x, {more}}}\n"
        )
    )
    assert isinstance(found, Problems)
    assert [problem.code for problem in found.problems] == ["RCP113"]


def test_a_command_has_no_fallback_agent() -> None:
    steps = "  - {id: a, run: ls, on_failure: 'fallback:w'}\n"
    found = build(read_recipe("agents: {w: {prompt: x}}\n" + HEADS["flat"] + steps))
    assert isinstance(found, Problems)
    assert [problem.code for problem in found.problems] == ["RCP113"]


def test_an_unknown_reference_in_env_is_pointed_at() -> None:
    assert codes('  - {id: a, run: ls, env: {A: "{{inputs.topik}}"}}\n') == ["RCP202"]


@pytest.mark.parametrize("run", ['""', '"  "', "[ls]", "~"])
def test_a_command_needs_text(run: str) -> None:
    assert codes(f"  - {{id: a, run: {run}}}\n") == ["RCP103"]
