"""A problem stands at its very words, whatever style the file is written in."""

import pytest

from support.recipes import flat, problem_of, problems_of, under_caret

HEAD = "name: x\nsteps:\n  - id: a\n    subagent: writer\n"
UNKNOWN = "{{inputs.topc}}"


def place(text: str | bytes, file: str = "x.yaml") -> tuple[int, int, str]:
    problem = problem_of(text, file)
    assert problem.place is not None
    return problem.place.line, problem.place.column, under_caret(problem)


@pytest.mark.parametrize(
    ("prompt", "line", "column"),
    [
        ("prompt: About {{inputs.topc}} now", 5, 28),
        ("prompt: 'About {{inputs.topc}}'", 5, 29),
        ("prompt: 'It''s {{inputs.topc}}'", 5, 29),
        ('prompt: "About {{inputs.topc}}"', 5, 29),
        ('prompt: "A\\nB\\tC {{inputs.topc}}"', 5, 31),
        ('prompt: "\\u00e9 {{inputs.topc}}"', 5, 30),
        ('"prompt": "{{ inputs.topc }}"', 5, 26),
        ("prompt: |\n      One\n      {{inputs.topc}}", 7, 16),
        ("prompt: |2\n      One\n        {{inputs.topc}}", 7, 18),
        ("prompt: |-\n\n\n      {{inputs.topc}}", 8, 16),
        ("prompt: >\n      One\n      two {{inputs.topc}}\n      three", 7, 20),
        ("prompt: >-\n      One\n\n      two {{inputs.topc}}", 8, 20),
        ("prompt: One\n      two {{inputs.topc}}", 6, 20),
        ("prompt: 'One\n\n      two {{inputs.topc}}'", 7, 20),
        ('prompt: "One \\\n      two {{inputs.topc}}"', 6, 20),
        ("prompt:\n      {{inputs.topc}}", 6, 16),
    ],
)
def test_a_reference_is_found_in_a_scalar_of_any_style(prompt, line, column):
    if prompt.startswith("prompt:\n"):
        prompt = prompt.replace(UNKNOWN, f"About {UNKNOWN}")
        column += 6
    assert place(f"{HEAD}    {prompt}\n") == (line, column, "topc")


@pytest.mark.parametrize(
    ("prompt", "column"),
    [
        ("prompt: topc, {{inputs.topc}}", 28),
        ("prompt: '{{topic}} topc {{inputs.topc}} topc'", 38),
        ("prompt: inputs.topc {{ inputs.topc }}", 35),
    ],
)
def test_the_same_word_elsewhere_in_the_text_is_not_the_place(prompt, column):
    head = HEAD.replace("steps:", "inputs: [topic]\nsteps:").replace("[topic]", "[{name: topic}]")
    assert place(f"{head}    {prompt}\n") == (6, column, "topc")


def test_two_unknown_references_in_one_text_have_two_places():
    problems = problems_of(f"{HEAD}    prompt: |\n      {UNKNOWN}\n      x {UNKNOWN} {UNKNOWN}\n")
    assert [(each.place.line, each.place.column) for each in problems] == [
        (6, 16),
        (7, 18),
        (7, 34),
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "under"),
    [
        ("{name: x, steps: [{id: a, subagent: wirter, prompt: y}]}", 1, 37, "wirter"),
        ("{name: x,\n steps: [\n  {id: a, subagent: wirter,\n   prompt: y}]}", 3, 21, "wirter"),
        ('{"name": "x", "steps": [{"id": "a", "subagent": "wirter", "prompt": "y"}]}', 1, 49, '"wirter"'),
        ("name: x\nsteps: [{id: a, subagent: writer, prompt: '{{inputs.z}}'}]", 2, 53, "z"),
        ("name: x\nsteps: [{id: a, subagent: writer, prompt: y, depends_on: [a1, b]}, {id: b, subagent: writer, prompt: y}]", 2, 59, "a1"),
    ],
)  # fmt: skip
def test_flow_style_has_exact_places_too(text, line, column, under):
    assert place(text) == (line, column, under)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_counts_as_one(end):
    text = f"{HEAD}    prompt: |\n      One\n      two {UNKNOWN}\n".replace("\n", end)
    assert place(text) == (7, 20, "topc")
    assert problem_of(text).source_line == f"      two {UNKNOWN}"


def test_a_byte_order_mark_takes_no_column():
    assert place("\ufeff" + HEAD.replace("name:", "nme:") + "    prompt: y\nname: x\n") == (
        1,
        1,
        "nme",
    )
    assert place(b"\xef\xbb\xbfname: x\xc3\xa9: y\n") == (1, 9, ":")


@pytest.mark.parametrize("before", ["é", "日本語", "🎉🎉", "e\u0301", "ß→ü"])
def test_columns_count_characters_and_not_bytes(before):
    text = f"{HEAD}    prompt: '{before} {UNKNOWN}'\n"
    assert place(text) == (5, 14 + len(before) + 10, "topc")
    assert place(text.encode()) == (5, 14 + len(before) + 10, "topc")
    flow = flat(f"{{id: a, prompt: '{before}', subagent: wirter}}")
    assert place(flow) == (3, 22 + len(before) + 13, "wirter")


def test_non_ascii_text_on_earlier_lines_moves_nothing():
    text = f"# 日本語 🎉\nname: 日本\ndescription: |\n  é\n  🎉\n{HEAD[8:]}    prompt: {UNKNOWN[:0]}x {UNKNOWN}\n"
    assert place(text) == (9, 24, "topc")


def test_a_tab_inside_a_line_counts_as_one_character():
    assert place(f"{HEAD}    prompt:\t'a\tb {UNKNOWN}'\n") == (5, 27, "topc")
    assert place("name: x\nsteps:\t[]\n") == (2, 8, "[]")


@pytest.mark.parametrize(
    ("text", "line", "column", "under"),
    [
        ('{\n  "name": "x",\n  "stepz": []\n, "steps": [{"id": "a", "subagent": "writer", "prompt": "y"}]}', 3, 3, '"stepz"'),
        ('{"name": "x",\r\n "steps": [\r\n  {"id": "a", "subagent": "writer",\r\n   "prompt": "é {{inputs.topc}}"}]}', 4, 26, "topc"),
        ('{"name": "x", "steps": [{"id": "a", "subagent": "writer", "prompt": "\\u00e9\\n{{inputs.topc}}"}]}', 1, 87, "topc"),
        ('\ufeff{"name": "x", "steps": [{"id": "a", "subagent": "writer", "prompt": "y", "timeout": "1w"}]}', 1, 85, '"1w"'),
        ('\t{"name": "x", "steps": [{"id": "a", "subagent": "writer", "prompt": 1, "cache": 1}]}', 1, 82, "1"),
    ],
)  # fmt: skip
def test_json_files_have_exact_places(text, line, column, under):
    assert place(text, "x.json") == (line, column, under)


def test_a_key_is_underlined_when_the_key_is_wrong_and_its_value_when_that_is():
    assert place(f"{HEAD}    prompt: y\n    tiemout: 3m\n") == (6, 5, "tiemout")
    assert place(f"{HEAD}    prompt: y\n    timeout: 3 m\n") == (6, 14, "3 m")
    assert place(f'{HEAD}    prompt: y\n    timeout: "3 m" # why\n') == (6, 14, '"3 m"')


def test_an_empty_value_is_pointed_at_behind_its_key():
    line, column, _ = place(f"{HEAD}    prompt: y\n    map:\n")
    assert (line, column) == (6, 9)


def test_a_single_dependency_is_pointed_at_like_one_of_a_list():
    assert place(f"{HEAD}    prompt: y\n    depends_on: b\n") == (6, 17, "b")
    assert place(f"{HEAD}    prompt: y\n    depends_on: [b]\n") == (6, 18, "b")
    assert place(f"{HEAD}    prompt: y\n    depends_on:\n      - b\n") == (7, 9, "b")


def test_a_reference_in_an_agent_s_prompt_is_pointed_at_there():
    head = "agents:\n  own:\n    prompt: |\n      Hello {{inputs.topc}}\n"
    assert place(f"{head}{HEAD}    prompt: y\n") == (4, 22, "topc")


def test_a_reference_that_closes_a_cycle_is_pointed_at():
    text = flat(
        "{id: a, subagent: writer, prompt: '{{steps.b.output}}'}",
        "{id: b, subagent: writer, prompt: x, depends_on: a}",
    )
    assert place(text) == (3, 42, "steps.b.output")


def test_every_problem_knows_its_path():
    text = flat(
        "{id: a, subagent: writer, prompt: x, depends_on: [b, zz]}",
        "{id: b, subagent: wirter, prompt: '{{inputs.x}}'}",
        head="agents: {own: {retry: {max_attempts: 0}}}",
    )
    assert [problem.path for problem in problems_of(text)] == [
        "agents.own.retry.max_attempts",
        "steps[0].depends_on[1]",
        "steps[1].subagent",
        "steps[1].prompt",
    ]


def test_paths_of_a_wrapped_recipe_start_at_workflow():
    text = "workflow:\n  name: x\n  steps:\n    - {id: a, agent: wirter}\n"
    assert problem_of(text).path == "workflow.steps[0].agent"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("inputs:\n  - {name: a}\n  - {name: a}\n", 3, 12),
        ("inputs:\n  - name: a\n  - description: y\n    name: a\n", 4, 11),
        ("inputs:\n  a: {type: nmber}\n", 2, 13),
        ("inputs:\n  a b: {}\n", 2, 3),
        ("inputs:\n  a: {name: b}\n", 2, 7),
        ("inputs: 5\n", 1, 9),
        ("inputs:\n  - topic\n", 2, 5),
    ],
)
def test_inputs_have_exact_places_as_a_list_and_as_a_mapping(text, line, column):
    assert place(f"{text}{HEAD}    prompt: y\n")[:2] == (line, column)


@pytest.mark.parametrize("key", ["agent", "subagent"])
@pytest.mark.parametrize("work", ["parallel", "stages"])
def test_an_unknown_agent_of_a_branch_or_a_stage_is_pointed_at_in_either_word(key, work):
    item = f"- prompt: x\n    {key}: nobody"
    if work == "parallel":
        text = flat(f"id: a\nparallel:\n  {item}")
    else:
        text = flat(
            f"id: a\nmap:\n  over: '[1]'\n  stages:\n    {item}".replace("\n    ", "\n      ")
        )
        text = text.replace("      - prompt", "    - prompt")
    line, column, under = place(text)
    assert under == "nobody"
    assert text.splitlines()[line - 1][: column - 1].strip() == f"{key}:"
