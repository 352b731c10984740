"""One slip is one problem, and doing what its hint says cures it.

Every row is a slip in a recipe, words of the hint, and the recipe with the hint applied.
"""

import pytest

from support.recipes import flat, plan_of, problem_of, problems_of

HEAD = """\
inputs: [{name: t}, {name: rows, type: json}]
agents:
  own: {prompt: Do it.}
  critic: {prompt: Judge it.}
"""


def whole(*steps: str, head: str = HEAD) -> str:
    return flat(*steps, head=head)


def step(written: str) -> str:
    return whole(f"{{id: a, {written}}}")


ASK = "subagent: own, prompt: x"
LOOP = "prompt: x, loop: {agent: own, validator: critic"
MAP = "map: {over: '{{inputs.rows}}', agent: own"
ROUTE = "prompt: x, condition: {eval: 1 < 2, true: own"


def agent(written: str) -> str:
    return whole(
        "{id: a, subagent: it, prompt: x}", head=f"agents: {{it: {{prompt: Do it., {written}}}}}"
    )


def inputs(written: str) -> str:
    return whole("{id: a, subagent: writer, prompt: x}", head=f"inputs: [{written}]")


def root(written: str) -> str:
    return f"name: t\n{written}\nsteps: [{{id: a, subagent: writer, prompt: x}}]\n"


# --- steps: keys of other tools
ROWS = [
    (step(f"{ASK}, needs: b").replace("steps:", "steps:\n  - {id: b, subagent: own, prompt: x}"), "write depends_on",
     step(f"{ASK}, depends_on: b").replace("steps:", "steps:\n  - {id: b, subagent: own, prompt: x}")),
    (whole("{id: b, subagent: own, prompt: x}", "{id: a, subagent: own, prompt: x, after: [b]}"), "write depends_on",
     whole("{id: b, subagent: own, prompt: x}", "{id: a, subagent: own, prompt: x, depends_on: [b]}")),
    (step(f"{ASK}, if: 1 < 2"), "write when", step(f"{ASK}, when: 1 < 2")),
    (step(f"{ASK}, run_if: 1 < 2"), "write when", step(f"{ASK}, when: 1 < 2")),
    (step("subagent: own, instructions: x"), "write prompt", step(ASK)),
    (step("subagent: own, message: x"), "write prompt", step(ASK)),
    (step("assignee: own, prompt: x"), "write agent", step("agent: own, prompt: x")),
    (step("worker: own, prompt: x"), "write agent", step("agent: own, prompt: x")),
    (step(f"{ASK}, on_error: skip"), "write on_failure", step(f"{ASK}, on_failure: skip")),
    (step(f"{ASK}, retries: 3"), "write retry: {max_attempts:", step(f"{ASK}, retry: {{max_attempts: 3}}")),
    (step(f"{ASK}, max_retries: 3"), "write retry: {max_attempts:", step(f"{ASK}, retry: {{max_attempts: 4}}")),
    (step(f"{ASK}, approval: true"), "write gate: human", step(f"{ASK}, gate: human")),
    (step(f"{ASK}, human_input: true"), "write gate: human", step(f"{ASK}, gate: human")),
    (step(f"{ASK}, response_format: json"), "write output: {format: json}", step(f"{ASK}, output: {{format: json}}")),
    (step(f"{ASK}, output_schema: {{type: object}}"), "write output: {schema:", step(f"{ASK}, output: {{schema: {{type: object}}}}")),
    (step(f"{ASK}, expected_output: a list"), "say it in the text", step("subagent: own, prompt: x as a list")),
    (step(f"{ASK}, name: first"), "its 'id'", step(ASK)),
    (step(f"{ASK}, tools: [Read]"), "under agents:", step(ASK)),
    (step(f"{ASK}, rules: [must not be empty]"), "in its validation", step(ASK)),
    (step(f"{ASK}, tags: [a, b]"), "remove it", step(ASK)),
    (step(f"{ASK}, description: what it does"), "write it as a comment", step(ASK)),
    (step(f"{ASK}, timeout_seconds: 30"), "write timeout", step(f"{ASK}, timeout: 30")),
    (step("prompt: x, branches: [{agent: own}, {agent: critic}]"), "write parallel", step("prompt: x, parallel: [{agent: own}, {agent: critic}]")),
    (step("foreach: '{{inputs.rows}}', agent: own"), "write map: {over:", step(MAP + "}")),
    (step("items: '{{inputs.rows}}', agent: own"), "write map: {over:", step(MAP + "}")),
    (step("while: 1 < 2, agent: own, prompt: x"), "with the opposite condition", step("prompt: x, loop: {agent: own, until: 2 < 1}")),
    # --- keys one level too high
    (step("agent: own, prompt: x, validator: critic, max_iterations: 2"), "put it under loop:", step(LOOP + ", max_iterations: 2}")),
    (step("agent: own, prompt: x, until: 1 < 2"), "put it under loop:", step("prompt: x, loop: {agent: own, until: 1 < 2}")),
    (step("agent: own, over: '{{inputs.rows}}', batch_size: 3"), "put it under map:", step(MAP + ", batch_size: 3}")),
    (step("prompt: x, eval: 1 < 2, 'true': own"), "put it under condition:", step(ROUTE + "}")),
    (step("prompt: x, cases: {a: own}, value: inputs.t"), "put it under switch:", step("prompt: x, switch: {value: inputs.t, cases: {a: own}}")),
    (step(f"{ASK}, max_attempts: 3, backoff: linear"), "put it under retry:", step(f"{ASK}, retry: {{max_attempts: 3, backoff: linear}}")),
    (step(f"{ASK}, store_as: facts, format: json"), "put it under output:", step(f"{ASK}, output: {{store_as: facts, format: json}}")),
    (agent("rules: [must not be empty]"), "put it under validation:", agent("validation: {rules: [must not be empty]}")),
    (agent("schema: {type: object}"), "put it under validation:", agent("validation: {schema: {type: object}}")),
    (agent("max_attempts: 2"), "put it under retry:", agent("retry: {max_attempts: 2}")),
    # --- agents
    (whole("{id: a, subagent: it, prompt: x}", head="agents: {it: {instructions: Do it.}}"), "write prompt", agent("name: It")),
    (whole("{id: a, subagent: it, prompt: x}", head="agents: {it: {system_prompt: Do it.}}"), "write prompt", agent("name: It")),
    (agent("llm: openai:gpt-4o"), "write model", agent("model: openai:gpt-4o")),
    (agent("goal: to do it"), "write role", agent("role: to do it")),
    (agent("allowed_tools: [Read]"), "write tools", agent("tools: [Read]")),
    (agent("max_iter: 4"), "write max_turns", agent("max_turns: 4")),
    # --- maps, loops, conditions, switches
    (step("map: {items: '{{inputs.rows}}', agent: own}"), "write over", step(MAP + "}")),
    (step("map: {for_each: '{{inputs.rows}}', agent: own}"), "write over", step(MAP + "}")),
    (step(MAP + ", concurrency: 3}"), "write batch_size", step(MAP + ", batch_size: 3}")),
    (step(MAP + ", reducer: critic}"), "write reduce", step(MAP + ", reduce: critic}")),
    (step("map: {over: [1, 2, 3], agent: own}"), "'[1, 2, 3]'", step("map: {over: '[1, 2, 3]', agent: own}")),
    (step("map: {over: [a, b], agent: own}"), '\'["a", "b"]\'', step("map: {over: '[\"a\", \"b\"]', agent: own}")),
    (step("prompt: x, loop: {agent: own, judge: critic}"), "write validator", step(LOOP + "}")),
    (step("prompt: x, loop: {agent: own, reviewer: critic, max_rounds: 2}"), "write validator and max_iterations", step(LOOP + ", max_iterations: 2}")),
    (step("prompt: x, loop: {agent: own, while: 1 < 2}"), "with the opposite condition", step("prompt: x, loop: {agent: own, until: 2 < 1}")),
    (step("loop: {agent: own, validator: critic, prompt: x}"), "beside loop:", step(LOOP + "}")),
    (step("prompt: x, loop: {agent: own, stop_when: 1 < 2}"), "write until", step("prompt: x, loop: {agent: own, until: 1 < 2}")),
    (step("prompt: x, condition: {if: 1 < 2, then: own, else: critic}"), "write eval and true and false", step(ROUTE + ", false: critic}")),
    (step("prompt: x, condition: {eval: 1 < 2, yes: own, no: critic}"), "write true and false", step(ROUTE + ", false: critic}")),
    (step("prompt: x, switch: {on: inputs.t, cases: {a: own}}"), "write value", step("prompt: x, switch: {value: inputs.t, cases: {a: own}}")),
    (step("prompt: x, switch: {value: inputs.t, cases: {a: own}, else: critic}"), "write default", step("prompt: x, switch: {value: inputs.t, cases: {a: own}, default: critic}")),
    (step("prompt: x, wait: '2', parallel: [{agent: own}, {agent: critic}]"), "write 2, without quotes", step("prompt: x, wait: 2, parallel: [{agent: own}, {agent: critic}]")),
    (step("prompt: x, parallel: [{agent: own, name: first}]"), "write output_key", step("prompt: x, parallel: [{agent: own, output_key: first}]")),
    (step(f"{ASK}, retry: {{attempts: 2}}"), "write max_attempts", step(f"{ASK}, retry: {{max_attempts: 2}}")),
    (step(f"{ASK}, output: {{save_as: facts}}"), "write store_as", step(f"{ASK}, output: {{store_as: facts}}")),
    (step(f"{ASK}, output: {{type: json}}"), "write format", step(f"{ASK}, output: {{format: json}}")),
    # --- inputs and the root
    (inputs("{name: t, options: [a, b]}"), "write enum", inputs("{name: t, enum: [a, b]}")),
    (inputs("{id: t}"), "write name", inputs("{name: t}")),
    (inputs("{name: t, help: what}"), "write description", inputs("{name: t, description: what}")),
    (inputs("{name: t, optional: true}"), "write required: false", inputs("{name: t, required: false}")),
    (root("params: [{name: t}]"), "write inputs", root("inputs: [{name: t}]")),
    (root("concurrency: 3"), "write max_concurrency", root("max_concurrency: 3")),
    (root("tags: [a]"), "remove it", root("")),
    (root("budget: {max_tokens: 5}"), "write tokens", root("budget: {tokens: 5}")),
    ("name: t\ntasks: [{id: a, subagent: writer, prompt: x}]\n", "write steps", root("")),
    ("title: t\nsteps: [{id: a, subagent: writer, prompt: x}]\n", "write name", root("")),
    # --- expressions
    (step(f"{ASK}, when: len(inputs.t) > 3"), "write size", step(f"{ASK}, when: size(inputs.t) > 3")),
    (step(f"{ASK}, when: length(inputs.rows) > 3"), "write size", step(f"{ASK}, when: size(inputs.rows) > 3")),
    (step(f"{ASK}, when: inputs.t == hot"), "quotes: 'hot'", step(f"{ASK}, when: \"inputs.t == 'hot'\"")),
    (step(f"{ASK}, when: inputs.t = 'a'"), "use '=='", step(f"{ASK}, when: inputs.t == 'a'")),
    (step(f"{ASK}, when: inputs.t === 'a'"), "use '=='", step(f"{ASK}, when: inputs.t == 'a'")),
    (step(f"{ASK}, when: inputs.t == 'a' AND 1 < 2"), "'and' in small letters", step(f"{ASK}, when: inputs.t == 'a' and 1 < 2")),
    (step(f"{ASK}, when: 1 < 2 < 3"), "write 1 < 2 and 2 < 3", step(f"{ASK}, when: 1 < 2 and 2 < 3")),
    (step("subagent: own, prompt: '{{input.t}}'"), "mean 'inputs'?", step("subagent: own, prompt: '{{inputs.t}}'")),
    # --- steps of one name
    (whole("{id: a, subagent: own, prompt: x}", "{id: a, subagent: own, prompt: x, depends_on: [a]}"), "step 1 is the other one",
     whole("{id: a, subagent: own, prompt: x}", "{id: b, subagent: own, prompt: x, depends_on: [a]}")),
    (whole("{id: a, subagent: it, prompt: x}", head="agents: {it: {prompt: y, retry: {on_failure: fallback:he}}, he: {prompt: y, retry: {on_failure: fallback:it}}}"), "another policy for 'he'",
     whole("{id: a, subagent: it, prompt: x}", head="agents: {it: {prompt: y, retry: {on_failure: fallback:he}}, he: {prompt: y, retry: {on_failure: skip}}}")),
]  # fmt: skip


@pytest.mark.parametrize(("slip", "hint", "cured"), ROWS, ids=[f"{n}" for n in range(len(ROWS))])
def test_a_slip_is_one_problem_whose_hint_cures_it(slip, hint, cured):
    assert hint in problem_of(slip).hint, problem_of(slip)
    assert problems_of(cured) == ()


def test_there_are_many_slips():
    assert len(ROWS) >= 80


def test_two_slips_are_two_problems():
    text = step(f"{ASK}, tags: [a, {{b: c}}], description: [what]")
    assert [p.code for p in problems_of(text)] == ["RCP101", "RCP101"]


@pytest.mark.parametrize(
    "text",
    [
        step(f"{ASK}, if: 'inputs.t == hot'"),
        step(f"{ASK}, outputs: {{schema: {{score: number}}}}"),
        step("subagent: own, promt: '{{inputs.nobody}}'"),
        step(f"{ASK}, depends_onn: [nobody]"),
        step("prompt: x, lop: {agent: nobody, until: DONE}"),
        step(f"{ASK}, write_sets: [../outside]"),
        agent("tool: [Raed, Wirte]"),
        "name: t\nstep: [{id: a, subagent: nobody, prompt: '{{x.y}}', depends_on: b}]\n",
    ],
)
def test_what_stands_behind_a_guessed_key_is_not_checked(text):
    assert problem_of(text).code == "RCP101"


def test_all_prior_context_is_meant_in_any_case():
    plan = plan_of(
        whole("{id: a, subagent: own, prompt: x}", "{id: b, agent: own, input: All Prior  Context}")
    )
    assert dict(plan.steps[1].edges)
