import json

from stretto.plan.dry_run import dry_run
from stretto.plan.inputs import bind
from stretto.vocabulary.models import ModelSelection
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
                "format": None,
                "schema": None,
                "rules": [],
                "retry": {"max_attempts": 1, "backoff": "none"},
                "fallback": None,
                "timeout_seconds": None,
            }
        ],
        "decides": None,
        "when": None,
        "gate": None,
        "on_failure": "inline",
        "timeout_seconds": None,
        "store_as": None,
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


JUDGED = """\
name: t
inputs: [{name: rows, type: json}]
timeout: 10m
agents:
  critic:
    prompt: Judge it.
    timeout: 30s
    retry: {max_attempts: 3, backoff: linear, on_failure: "fallback:other"}
    validation:
      schema: {type: object, properties: {score: {type: number}}}
      rules: [must include a score field, must be kind]
  other: {prompt: x, retry: {max_attempts: 2}}
steps:
  - {id: one, agent: critic, prompt: x, timeout: 2m, output: {store_as: kept, schema: {required: [score]}}}
  - {id: fan, prompt: x, wait: 1, parallel: [{agent: critic}, {agent: other}]}
  - {id: loop, prompt: x, loop: {agent: other, validator: critic}, output: {format: json}}
  - {id: map, map: {over: "{{inputs.rows}}", agent: other, reduce: critic}, output: {format: text}}
  - {id: later, map: {over: "{{kept.list}}", agent: other}}
output: "{{kept.score}}"
"""


def asked(step: dict[str, object]) -> list[dict[str, object]]:
    found = step["delegations"]
    assert isinstance(found, list)
    return found


def test_expected_answers_retries_and_timeouts_are_shown():
    steps = steps_of(JUDGED.replace("kept.list", "inputs.rows"))
    (one,) = asked(steps["one"])
    assert one["schema"] == {
        "allOf": [
            {"type": "object", "properties": {"score": {"type": "number"}}},
            {"required": ["score"]},
        ],
    }
    assert one["retry"] == {"max_attempts": 3, "backoff": "linear"}
    assert one["fallback"] == {"agent": "other", "max_attempts": 2, "backoff": "none"}
    assert (one["timeout_seconds"], steps["one"]["timeout_seconds"]) == (30, 120)
    assert steps["one"]["store_as"] == "kept"
    assert (steps["fan"]["wait"], steps["fan"]["branches_needed"]) == (1, 1)
    assert steps["loop"]["max_iterations"] == 3
    # What a step says of its output is not said of a verdict, nor of elements that are reduced.
    assert [each["format"] for each in asked(steps["loop"])] == ["json", None]
    assert [each["format"] for each in asked(steps["map"])] == [None, "text"]


def deciders(**models: object) -> list[tuple[object, object]]:
    text = JUDGED.replace("kept.list", "inputs.rows")
    shown = dry_run(plan_of(text), {}, ModelSelection(**{"default": "", **models}))  # type: ignore[arg-type]
    (one,) = asked(shown["would_run"][0])  # type: ignore[index]
    return [(rule["decided_by"], rule["judge"]) for rule in one["rules"]]  # type: ignore[attr-defined]


def test_who_decides_a_rule_is_shown():
    who = "the model that answers"
    assert deciders() == [("code", who), ("judge", who)]
    assert deciders(default="openai:a") == [("code", "openai:a"), ("judge", "openai:a")]
    assert deciders(default="openai:a", judge="x:b") == [("code", "x:b"), ("judge", "x:b")]
    assert deciders(default="openai:a", judge="off") == [("code", None), ("nobody", None)]
    assert deciders(default="embedded") == [("code", None), ("nobody", None)]
    assert deciders(override="scripted:s.yaml") == [("code", None), ("nobody", None)]


def test_a_list_that_is_known_has_its_own_length():
    text = JUDGED.replace("kept.list", "steps.fan.output")
    plan = plan_of(text)
    steps = steps_of(text, rows=[1, 2, 3])
    assert (steps["map"]["elements"], steps["later"]["elements"]) == (3, None)
    less = dry_run(plan, {"rows": [1, 2, 3]})["summary"]["max_delegations"]  # type: ignore[index]
    more = dry_run(plan, {"rows": [0] * 10})["summary"]["max_delegations"]  # type: ignore[index]
    assert more - less == 7 * 2  # each may be tried twice


def test_a_list_may_be_written_in_the_recipe_or_be_named_without_its_prefix():
    text = flat(
        "{id: a, map: {over: '[1, 2]', agent: writer}}",
        "{id: b, map: {over: '{{t}}', agent: writer}}",
        head="inputs: [{name: t}]",
    )
    steps = steps_of(text, t="[1, 2, 3]")
    assert (steps["a"]["elements"], steps["b"]["elements"]) == (2, 3)


def test_a_prompt_that_is_too_long_is_told_to_be_so():
    many = "{{inputs.t}}" * 20
    text = flat(
        f"{{id: a, subagent: writer, prompt: '{many}'}}",
        f"{{id: b, run: cat, stdin: '{many}'}}",
        head="inputs: [{name: t}]",
    )
    steps = steps_of(text, t="T" * 1_000_000)
    for id in ("a", "b"):
        prompt = str(steps[id]["prompt"])
        assert "comes to more than 10,000,000 characters, so this step would fail" in prompt
        assert len(prompt) < 1_000
