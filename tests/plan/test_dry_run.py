import json

from stretto.plan.dry_run import dry_run
from stretto.plan.inputs import bind
from support.recipes import RECIPES, flat, plan_of


def steps_of(text: str, **inputs: object) -> dict[str, dict[str, object]]:
    shown = dry_run(plan_of(text), inputs)["would_run"]
    assert isinstance(shown, list)
    return {step["id"]: step for step in shown}


def test_the_dry_run_of_a_printed_recipe():
    plan = plan_of((RECIPES / "research-and-brief.yaml").read_text())
    inputs, problems = bind(plan.inputs, {"topic": "tides"})
    assert problems == ()
    shown = dry_run(plan, inputs)
    assert json.loads(json.dumps(shown)) == shown
    assert {
        key: shown[key] for key in ("ok", "mode", "workflow", "inputs", "waves", "summary")
    } == {
        "ok": True,
        "mode": "dry_run",
        "workflow": "research-and-brief",
        "inputs": {"topic": "tides", "depth": "deep"},
        "waves": [["gather"], ["angles"], ["brief"]],
        "summary": {
            "steps": 3,
            "max_concurrency": 4,
            "max_model_calls": 75,
            "max_delegations": 3,
        },
    }
    gather = steps_of((RECIPES / "research-and-brief.yaml").read_text(), **inputs)["gather"]
    assert gather == {
        "id": "gather",
        "type": "sequential",
        "agent": "researcher",
        "depends_on": [],
        "posture": "read_only",
        "workspace_mode": "shared",
        "read_set": ["**/*"],
        "write_set": [],
        "prompt": "Research tides (deep). Find 3–5 strong sources.",
        "model": None,
        "delegations": [
            {
                "role": "agent",
                "agent": "researcher",
                "model": None,
                "tools": ["Read", "Glob", "Grep"],
                "prompt": "Research tides (deep). Find 3–5 strong sources.",
            }
        ],
        "decides": None,
        "when": None,
        "gate": None,
        "on_failure": "inline",
        "timeout_seconds": None,
    }


def test_what_only_a_run_can_know_stays_in_its_braces():
    text = flat(
        "{id: a, subagent: writer, prompt: x}",
        "{id: b, subagent: writer, prompt: '{{inputs.t}}: {{steps.a.output}} {{run.id}}'}",
        head="inputs: [{name: t}]",
    )
    assert steps_of(text, t="T")["b"]["prompt"] == "T: {{steps.a.output}} {{run.id}}"


def test_what_an_input_holds_is_not_a_template():
    text = flat("{id: a, subagent: writer, prompt: '{{inputs.t}}'}", head="inputs: [{name: t}]")
    assert steps_of(text, t="{{inputs.t}} {{x}}")["a"]["prompt"] == "{{inputs.t}} {{x}}"


def test_all_prior_context_is_shown_as_the_steps_that_it_will_hold():
    text = flat(
        "{id: a, subagent: writer, prompt: x}",
        "{id: b, subagent: writer, prompt: x}",
        "{id: c, subagent: writer, prompt: all prior context}",
    )
    assert steps_of(text)["c"]["prompt"] == (
        "Do it.\n\n## Input\n\n### a\n{{steps.a.output}}\n\n### b\n{{steps.b.output}}"
    )


def test_everyone_whom_a_step_may_ask_is_shown_in_a_role():
    text = flat(
        "{id: fan, prompt: x, parallel: [{agent: writer}, {agent: worker, output_key: k}]}",
        "{id: loop, prompt: x, loop: {agent: writer, validator: reviewer}}",
        "{id: map, map: {over: '[1]', agent: writer, reduce: reviewer}}",
        "{id: pipe, prompt: x, map: {over: '[1]', stages: [{agent: writer}, {agent: worker}]}}",
        "{id: if, prompt: x, condition: {eval: 1 < 2, true: writer, false: fan}}",
        "{id: pick, prompt: x, switch: {value: run.id, cases: {y: writer}, default: worker}}",
    )
    roles = {
        id: [(each["role"], each["agent"]) for each in step["delegations"]]
        for id, step in steps_of(text).items()
    }
    assert roles == {
        "fan": [("branch writer", "writer"), ("branch k", "worker")],
        "loop": [("producer", "writer"), ("validator", "reviewer")],
        "map": [("each element", "writer"), ("reducer", "reviewer")],
        "pipe": [("stage 1", "writer"), ("stage 2", "worker")],
        "if": [("when true", "writer")],
        "pick": [("case y", "writer"), ("case default", "worker")],
    }


def test_what_a_step_decides_is_shown():
    text = flat(
        "{id: if, condition: {eval: 1 < 2, true: a}}",
        "{id: pick, switch: {value: run.id, cases: {y: a}}}",
        "{id: a, subagent: writer, prompt: x, when: 2 < 3, gate: human, timeout: 90s}",
    )
    shown = steps_of(text)
    assert shown["if"]["decides"] == {"eval": "1 < 2", "true": "a", "false": None}
    assert shown["pick"]["decides"] == {"value": "run.id", "cases": {"y": "a"}, "default": None}
    assert shown["if"]["prompt"] is None
    a = shown["a"]
    assert (a["when"], a["gate"], a["timeout_seconds"]) == ("2 < 3", "human", 90)
    assert a["depends_on"] == ["if", "pick"]
