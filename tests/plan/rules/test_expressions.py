"""Near misses in expressions and templates: valid, and never what was meant (RECIPES §5)."""

import itertools

import pytest

from stretto.templates.evaluate import Undecided, decide
from stretto.templates.expression import Expression, parse_expression
from stretto.templates.scope import Scope, StepValue
from support.recipes import RECIPES, flat, plan_of

HEAD = """\
inputs: [{name: t}, {name: n, type: number}, {name: b, type: boolean}, {name: rows, type: array}, {name: any, type: json},
  {name: f, type: file_path}, {name: e, enum: [hot, cold]}, {name: some, type: json, default: [{id: 1}]}]
agents:
  own: {prompt: Do it.}
  says: {prompt: 'Answer as JSON, with a score.'}
  counts: {prompt: Do it., validation: {rules: [must include score field]}}
  typed: {prompt: Do it., validation: {schema: {type: object, properties: {score: {type: number}, maybe: {type: [number, "null"]},
    name: {type: string}, kind: {enum: [a, b]}, ok: {type: boolean}, rows: {type: array, items: {type: string}}}}}}
"""
BEFORE = (
    "{id: x, subagent: own, prompt: '{{inputs.t}}{{inputs.n}}{{inputs.b}}{{inputs.rows}}{{inputs.f}}{{inputs.e}}{{inputs.any}}{{inputs.some}}', output: {store_as: said}}",
    "{id: j, subagent: typed, prompt: go}",
    "{id: says, subagent: says, prompt: go}",
    "{id: counts, subagent: counts, prompt: go}",
    "{id: told, subagent: own, prompt: 'Answer with [\"a\", \"list\"]'}",
    "{id: format, subagent: own, prompt: go, output: {format: json}}",
    "{id: p, parallel: [{agent: own, output_key: left, input: go}, {agent: typed, output_key: right, input: go}]}",
    "{id: m, map: {over: '{{inputs.rows}}', agent: typed, input: '{{item}}'}}",
    "{id: plain, map: {over: '{{inputs.rows}}', agent: own, input: '{{item}}'}}",
    "{id: c, run: ls}",
    "{id: l, prompt: go, loop: {agent: typed, until: steps.l.output.score > 3}}",
    "{id: r, prompt: go, condition: {eval: inputs.b, true: own, false: typed}}",
)  # fmt: skip


def warned(step: str) -> list[tuple[str, str, str]]:
    plan = plan_of(flat(*BEFORE, step, head=HEAD))
    return [(each.code, each.message, each.hint) for each in plan.warnings]


def when(text: str) -> list[tuple[str, str, str]]:
    return warned(f'{{id: z, subagent: own, prompt: go, when: "{text}"}}')


NEVER_DECIDED = [
    ("inputs.n == 'three'", "compare inputs.n with a number"),
    ("'three' == inputs.n", "compare inputs.n with a number"),
    ("inputs.n contains 'a'", "compare inputs.n with a number"),
    ("inputs.b == 'yes'", "write inputs.b, or not inputs.b"),
    ("inputs.b == 1", "write inputs.b, or not inputs.b"),
    ("inputs.rows > 3", "write size(inputs.rows)"),
    ("inputs.rows == 'a'", "write inputs.rows contains 'a'"),
    ("size(inputs.n) > 2", "write inputs.n by itself"),
    ("inputs.t contains 3", "put the number in quotes: '3'"),
    ("3 in inputs.t", "put the number in quotes: '3'"),
    ("steps.j.output.score > 'high'", "compare steps.j.output.score with a number"),
    ("steps.j.output.maybe == 'high'", "compare steps.j.output.maybe with a number"),
    ("steps.j.output.name contains 3", "put the number in quotes: '3'"),
    ("steps.j.output.ok == 'yes'", "write steps.j.output.ok, or not steps.j.output.ok"),
    ("steps.j.output.rows == 2", "write size(steps.j.output.rows)"),
    ("steps.j.output > 2", "write size(steps.j.output)"),
    ("steps.j.output == 'a'", "compare a field of it"),
    ("steps.m.output == 'a'", "write steps.m.output contains 'a'"),
    ("steps.p.output == 'a'", "compare a field of it"),
    ("steps.p.outputs.right.ok == 'no'", "write steps.p.outputs.right.ok"),
    ("not (inputs.t == 'a' and inputs.n == 'b')", "compare inputs.n with a number"),
]
NO_CONDITION = [
    ("inputs.n", "compare it, as in inputs.n > 0"),
    ("inputs.rows", "write size(inputs.rows) > 0"),
    ("inputs.t == 'a' and inputs.rows", "write size(inputs.rows) > 0"),
    ("not steps.j.output.score", "compare it, as in steps.j.output.score > 0"),
    ("steps.x.status", "as in steps.x.status == 'succeeded'"),
    ("steps.x.error", "write steps.x.error != null"),
    ("inputs.e", "as in inputs.e == 'hot'"),
]
NEVER_TRUE = [
    ("inputs.e == 'Hot'", "did you mean 'hot'?"),
    ("inputs.e == 'warm'", "it is one of hot, cold"),
    ("inputs.e in ['hot', 'tepid']", "it is one of hot, cold"),
    ("steps.j.output.kind == 'c'", "it is one of a, b"),
    ("steps.j.output.kind != 'c'", "it is one of a, b"),
    ("steps.r.chosen == 'owm'", "did you mean 'own'?"),
]
GOOD = [
    "inputs.t > 3",
    "inputs.n == '3'",
    "inputs.n in ['3', '4']",
    "inputs.any > 3",
    "inputs.any == 'a'",
    "inputs.b and not inputs.any",
    "inputs.t",
    "inputs.e == 'hot' or inputs.e in ['cold']",
    "inputs.t == null",
    "size(inputs.rows) > 3",
    "inputs.rows contains 3",
    "steps.j.output.name > 3",
    "steps.j.output.maybe > 3",
    "steps.j.output.kind == 'a'",
    "steps.x.output > 3",
    "steps.x.output == 'yes'",
    "steps.x.status == 'failed'",
    "steps.r.chosen == 'own'",
    "steps.m.output contains 'a'",
    "1 == 1",
]


@pytest.mark.parametrize(("text", "hint"), [*NEVER_DECIDED, *NO_CONDITION, *NEVER_TRUE])
def test_what_can_never_come_true_is_one_warning_with_a_way_out(text, hint):
    ((code, _, said),) = when(text)
    assert code == "RCP911"
    assert hint in said, said


@pytest.mark.parametrize("text", GOOD)
def test_what_may_come_true_is_not_warned_of(text):
    assert when(text) == []


@pytest.mark.parametrize("text", [text for text, _ in (*NEVER_DECIDED, *NO_CONDITION)])
def test_what_is_warned_of_is_indeed_not_decided(text):
    """Whatever values a run gives: the evaluator has the last word."""
    expression = parse_expression(text)
    assert isinstance(expression, Expression)
    typed = [
        {"score": score, "maybe": 3, "name": name, "kind": "a", "ok": True, "rows": ["a"]}
        for score, name in ((1, "a"), (0.5, "3"), (-2, "true"))
    ]
    for output, t, n, b, e in itertools.product(
        typed, ("a", "3", "true"), (0, 2.5), (True, False), ("hot", "cold")
    ):
        scope = Scope(
            inputs={"t": t, "n": n, "b": b, "e": e, "rows": ["a", 3]},
            steps={
                "j": StepValue(output),
                "x": StepValue("words", error="it broke"),
                "p": StepValue({"right": output}, {"right": output, "left": "a"}),
                "m": StepValue([output]),
            },
        )
        said = decide(expression, scope)
        is_shortened = " and " in text and t != "a"  # false without the other side
        assert isinstance(said, Undecided) or is_shortened, said


def test_cases_that_are_never_chosen_are_told():
    ((code, message, hint),) = warned(
        "{id: z, prompt: go, switch: {value: inputs.e, cases: {hot: own, warm: typed}, default: own}}"
    )
    assert (code, hint) == ("RCP911", "it is one of hot, cold")
    assert "'warm'" in message
    ((_, message, _),) = warned(
        "{id: z, prompt: go, switch: {value: inputs.rows, cases: {a: own}, default: own}}"
    )
    assert "is a list" in message


PROSE = [
    ("{{steps.x.output.score}}", "write steps.x.output, or give the step output: {format: json}"),
    ("{{steps.x.output.length}}", "write size(steps.x.output), in an expression"),
    ("{{steps.x.output.text}}", "write steps.x.output"),
    ("{{said.score}}", "write said, or"),
    ("{{steps.x.output[0]}}", "write steps.x.output, or"),
    ("{{steps.p.outputs.left.score}}", "write steps.p.outputs.left, or"),
    ("{{steps.p.output.left.score}}", "write steps.p.output.left, or"),
    ("{{steps.plain.output[0].score}}", "write steps.plain.output[0], or"),
    ("{{steps.c.output.stdout}}", "write steps.c.output"),
    ("{{steps.c.output.length}}", "write size(steps.c.output)"),
    ("{{steps.x.validation}}", "write steps.x.status"),
    ("{{steps.j.validation.passed}}", "write steps.j.status"),
    ("{{inputs.some.length}}", "write size(inputs.some)"),
    ("{{inputs.rows.first}}", "write size(inputs.rows)"),
]


@pytest.mark.parametrize(("text", "hint"), PROSE)
def test_a_field_of_free_text_is_warned_of(text, hint):
    ((code, _, said),) = warned(f"{{id: z, subagent: own, prompt: '{text}'}}")
    assert code == "RCP910"
    assert said.startswith(hint)


def test_a_field_of_free_text_is_warned_of_in_every_place_that_is_filled_in():
    field = "steps.x.output.score"
    braced = f"{{{{{field}}}}}"
    for step in (
        f"{{id: z, subagent: own, prompt: go, when: {field} > 3}}",
        f"{{id: z, prompt: go, condition: {{eval: {field} > 3, true: own}}}}",
        f"{{id: z, prompt: go, switch: {{value: {field}, cases: {{a: own}}}}}}",
        f"{{id: z, map: {{over: '{braced}', agent: own, input: '{{{{item}}}}'}}}}",
        f"{{id: z, map: {{over: '{{{{inputs.rows}}}}', agent: own, input: '{{{{item}}}}{braced}'}}}}",
        f"{{id: z, parallel: [{{agent: own, input: '{braced}'}}]}}",
        f"{{id: z, run: ls, env: {{A: '{braced}'}}}}",
        f"{{id: z, run: ls, stdin: '{braced}'}}",
        f"{{id: z, prompt: go, loop: {{agent: own, until: {field} > 3}}}}",
        "{id: z, prompt: go, loop: {agent: own, until: steps.z.output.done}}",
    ):
        assert [code for code, *_ in warned(step)] == ["RCP910"], step
    plan = plan_of(flat(*BEFORE, head=f"{HEAD}output: '{braced}'\n"))
    assert [each.code for each in plan.warnings] == ["RCP910"]


@pytest.mark.parametrize(
    "text",
    [
        "{{steps.says.output.score}}",
        "{{steps.counts.output.score}}",
        "{{steps.told.output[0]}}",
        "{{steps.format.output.score}}",
        "{{steps.j.output.score}}",
        "{{steps.c.output.score}}",
        "{{steps.l.validation.feedback}}",
        "{{steps.r.output.score}}",
        "{{inputs.any.length}}",
        "{{inputs.some[0].id}}",
    ],
)
def test_a_field_that_may_well_be_there_is_not_warned_of(text):
    assert warned(f"{{id: z, subagent: own, prompt: '{text}'}}") == []


@pytest.mark.parametrize("file", sorted(RECIPES.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_printed_recipes_have_no_near_misses(file):
    warnings = plan_of(file.read_text(), file.name).warnings
    assert [each.code for each in warnings if each.code in ("RCP910", "RCP911")] == []
