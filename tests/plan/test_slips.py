"""Slips that once gave a traceback, a wrong place, no hint, or two problems instead of one."""

import warnings

import pytest

from stretto.agents.agent_files import read_agent_file
from stretto.assembly.project import finder_in
from stretto.config.settings import load_settings
from stretto.documents.document import read_bytes, read_text
from stretto.plan.inputs import bind
from stretto.problems import Place, Problem
from stretto.problems.errors import InvalidConfig
from stretto.problems.render import as_text
from stretto.recipe.model import Input
from stretto.vocabulary.amounts import parse_duration
from support.recipes import flat, plan_of, problem_of, problems_of, under_caret

S = "steps:\n  - {id: a, subagent: writer, prompt: x}\n"
GOOD = "name: t\n" + S


def test_an_alias_alone_is_one_problem():
    assert [p.code for p in problems_of("*a")] == ["RCP010"]


def test_a_number_no_float_can_hold_is_not_a_number():
    _, problems = bind((Input("n", (), "number"),), {"n": "1" + "0" * 400})
    assert [p.code for p in problems] == ["RCP303"]


def test_nor_is_it_a_default():
    assert [
        p.code
        for p in problems_of(
            "inputs:\n  - {name: n, type: number, default: '1" + "0" * 400 + "'}\n" + GOOD
        )
    ] == ["RCP306"]


@pytest.mark.parametrize("text", ["---\n", "null\n", "~\n"])
def test_an_empty_document_is_told_once(text):
    problem_of(text)


@pytest.mark.parametrize("letter", ["\u2028", "\u2029", "\x85"])
def test_unicode_line_separators_do_not_shift_later_lines(letter):
    p = problem_of(
        f'name: t\ndescription: "a{letter}b"\nsteps:\n  - {{id: a, subagent: nobody, prompt: x}}\n'
    )
    assert (p.place.line, under_caret(p)) == (4, "nobody")


def test_a_byte_order_mark_does_not_shift_the_bad_byte():
    (p,) = read_bytes(b"\xef\xbb\xbfname: \xff\n").problems
    assert (p.message, p.place.line, p.place.column) == ("byte 0xff is not UTF-8", 1, 7)


@pytest.mark.parametrize(
    ("prompt", "place"),
    [
        ("| # about topc\n      {{inputs.topc}}", (6, 16)),
        ('"\\x41 {{inputs.x}}"', (5, 28)),
        ('"a\\nb {{inputs.n}}"', (5, 28)),
        ('"aaa {{inputs.aa}}"', (5, 27)),
    ],
)
def test_comments_escapes_and_overlaps_do_not_fool_the_caret(prompt, place):
    p = problem_of(f"name: t\nsteps:\n  - id: a\n    subagent: writer\n    prompt: {prompt}\n")
    assert (p.place.line, p.place.column) == place


@pytest.mark.parametrize(
    ("line", "under"),
    [
        ("depends_on: ['b c', drafts]", ["'b c'", "drafts"]),
        ("read_set: [true, ../x]", ["true", "../x"]),
    ],
)
def test_an_unreadable_element_does_not_shift_the_places_of_later_ones(line, under):
    ps = problems_of(
        f"name: t\nsteps:\n  - id: a\n    subagent: writer\n    prompt: x\n    {line}\n"
    )
    assert [under_caret(p) for p in ps] == under


def test_nor_does_an_unreadable_tool():
    ps = problems_of(GOOD + "agents: {own: {tools: [true, Raed]}}\n")
    assert [under_caret(p) for p in ps] == ["true", "Raed"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("prompt", "prmpt"),
        ("subagent", "subagnt"),
        ("name:", "nmae:"),
        ("steps:", "stepps:"),
        ("steps:", "step:"),
        ("id: a", "idd: a"),
    ],
)
def test_a_misspelt_required_key_is_one_problem(old, new):
    assert [p.code for p in problems_of(GOOD.replace(old, new, 1))] == ["RCP101"]


@pytest.mark.parametrize(("old", "new"), [("eval:", "evl:"), ("value:", "valu:")])
def test_so_it_is_inside_a_condition_and_a_switch(old, new):
    text = flat(
        "{id: a, condition: {eval: 1 < 2, true: writer}}",
        "{id: b, switch: {value: run.id, cases: {x: writer}}}",
    )
    assert [p.code for p in problems_of(text.replace(old, new))] == ["RCP101"]


@pytest.mark.parametrize(
    ("old", "new"), [("agent:", "agnet:"), ("over:", "ovr:"), ("validator:", "validater:")]
)
def test_and_inside_a_loop_and_a_map(old, new):
    loop, map_ = (
        flat("{id: a, prompt: x, loop: {agent: writer, validator: reviewer}}"),
        flat("{id: a, map: {over: '[1]', agent: writer}}"),
    )
    for text in (loop, map_):
        if old in text:
            assert [p.code for p in problems_of(text.replace(old, new))] == ["RCP101"]


def test_empty_steps_are_told_beside_other_problems():
    assert [p.code for p in problems_of("name: t\nfoo: 1\nsteps: []\n")] == ["RCP101", "RCP119"]


@pytest.mark.parametrize(
    "text",
    [
        'name: "t\\0x"\n' + S,
        '{"name": "t\\u0000x", "steps": [{"id": "a", "subagent": "writer", "prompt": "\\u001b[2J"}]}',
    ],
)
def test_control_characters_are_refused_as_escapes_too(text):
    assert {p.code for p in problems_of(text)} == {"RCP004"}


def test_a_pattern_that_python_only_warns_of_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problems_of(
            flat(
                "{id: a, subagent: writer, prompt: x, output: {schema: {type: string, pattern: '[[a]'}}}"
            )
        )


def test_a_version_has_no_line_break():
    assert [p.code for p in problems_of('version: "1.0\\n"\n' + GOOD)] == ["RCP103"]


def test_the_default_of_a_file_path_is_held_to_the_workspace(tmp_path):
    for default in ("../../etc/passwd", "no-such-file"):
        _, problems = bind(
            (Input("f", (), "file_path", has_default=True, default=default),),
            {},
            finder_in(tmp_path),
        )
        assert [p.code for p in problems] == ["RCP305"]


def test_an_agent_file_that_is_not_utf8_is_refused_and_not_cut_off(tmp_path):
    f = tmp_path / "a.md"
    f.write_bytes(b"---\nname: a\n---\nNever delete files. \xff Really never.\n")
    read = read_agent_file(f)
    assert read.agent is None
    assert [p.code for p in read.problems] == ["RCP003"]


def test_an_agent_file_with_control_characters_is_refused(tmp_path):
    f = tmp_path / "a.md"
    f.write_bytes(b"---\nname: a\n---\nx\0y\x1b[2J\n")
    assert [p.code for p in read_agent_file(f).problems] == ["RCP004"]


def test_front_matter_that_is_not_closed_is_no_prompt(tmp_path):
    f = tmp_path / "a.md"
    f.write_text("---\nname: a\ntools: Read\n\nYou judge.\n")
    assert read_agent_file(f).agent is None


def test_a_registered_agent_cannot_have_unknown_or_delegating_tools(tmp_path):
    for tool in ("Raed", "run_workflow"):
        f = tmp_path / "a.md"
        f.write_text(f"---\nname: a\ntools: {tool}\n---\nx\n")
        assert read_agent_file(f).agent is None, tool


def test_a_huge_width_in_the_environment_is_a_problem(tmp_path):
    with pytest.raises(InvalidConfig):
        load_settings(
            tmp_path, {"STRETTO_HOME": str(tmp_path), "STRETTO_MAX_CONCURRENCY": "9" * 5000}
        )


def test_the_caret_stands_right_behind_an_ideographic_space():
    lines = as_text(Problem("X", "x", place=Place(1, 3), source_line="\u3000:x")).split("\n")
    # It is shown as it is, and takes two columns of a terminal.
    assert lines[3] == " │    ^"


def test_a_json_number_that_is_too_large_is_pointed_at():
    (p,) = read_text('{"version": 1e999}', "a.json").problems
    assert (p.place.column) == 13


def test_a_bracket_that_the_file_never_closes_is_pointed_at():
    p = problem_of("name: x\nsteps: [\n")
    assert (p.place.line, p.place.column) == (2, 8)
    assert p.hint


def test_flow_yaml_without_a_file_name_is_not_taken_for_json():
    assert problems_of("{name: t, steps: [{id: a, subagent: writer, prompt: x}]}") == ()


def test_keys_count_as_values_in_json_and_in_yaml():
    text = "{" + ", ".join(f'"k{i}": 1' for i in range(30_000)) + "}"
    assert [p.code for p in read_text(text, "a.yaml").problems] == [
        p.code for p in read_text(text, "a.json").problems
    ]


def test_a_huge_int_is_no_duration():
    assert parse_duration(10**400) is None


def test_a_step_without_an_id_causes_no_unknown_dependency():
    text = "name: t\nsteps:\n  - {subagent: writer, prompt: x}\n"
    ps = problems_of(text + "  - {id: b, subagent: writer, prompt: x, depends_on: [a]}\n")
    assert [p.code for p in ps] == ["RCP102"]


def test_a_branch_a_target_and_a_producer_are_told_something():
    head = "agents: {mute: {tools: [Read]}}"
    for step in (
        "parallel: [{agent: mute}]",
        "condition: {eval: 1 < 2, true: mute}",
        "loop: {agent: mute, until: 1 < 2}",
    ):
        assert [p.code for p in problems_of(flat(f"{{id: a, {step}}}", head=head))] == ["RCP102"], (
            step
        )


@pytest.mark.parametrize("text", ["&a\n", "!!map\n"])
def test_an_anchor_or_tag_alone_is_one_problem(text):
    assert len(problems_of(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "max_concurrency: x\n",
        GOOD + "max_concurrency: 0\n",
        GOOD.replace("prompt: x", "prompt: [x]"),
        GOOD + "version: x\n",
        flat("{id: a, subagent: writer, prompt: x, depends_on: a}"),
        flat("{id: a, subagent: writer, prompt: x, wait: 1}"),
        flat("{id: a, map: {over: '[1]'}}"),
        "inputs: [{type: string}]\n" + GOOD,
        "inputs: [{name: a, type: number, default: x}]\n" + GOOD,
        flat("{id: a, subagent: writer, prompt: x, when: 1 <}"),
        '{"name": }',
        '{"name": "x"',
        "steps: [\n",
        flat("{id: a, subagent: writer, prompt: x, output: {schema: {type: float}}}"),
    ],
)
def test_every_problem_has_a_hint(text):
    assert all(p.hint for p in problems_of(text))


def test_size_can_be_called_in_a_recipe():
    plan_of(
        flat(
            "{id: a, subagent: writer, prompt: x, when: size(inputs.n) > 2}",
            head="inputs: [{name: n}]",
        )
    )


def test_a_step_that_names_its_route_in_depends_on_is_still_routed():
    plan = plan_of(
        flat(
            "{id: r, condition: {eval: 1 < 2, true: a, false: b}}",
            "{id: a, subagent: writer, prompt: x, depends_on: [r]}",
            "{id: b, subagent: writer, prompt: x, depends_on: [r]}",
        )
    )
    assert [step.is_routed for step in plan.steps] == [False, True, True]


LISTING = """\
agents:
  lister:
    prompt: List them.
    validation:
      schema:
        type: object
        properties: {rows: {type: array, items: {type: object, properties: {name: {}, size: {}}}}}
  reader:
    prompt: Read it.
    validation: {schema: {type: object, properties: {text: {type: string}}}}
"""


def mapped(work: str) -> str:
    return flat(
        "{id: list, subagent: lister, prompt: x}", f"{{id: each, map: {{{work}}}}}", head=LISTING
    )


@pytest.mark.parametrize(
    ("work", "under"),
    [
        ("over: '{{steps.list.output.rows}}', agent: reader, input: '{{item.nmae}}'", "nmae"),
        ("over: '{{steps.list.output.rows}}', agent: reader, input: '{{item.name}} {{item.sise}}'", "sise"),
        (
            "over: '{{steps.list.output.rows}}', stages: [{agent: reader, input: '{{item.name}}'},"
            " {agent: lister, input: '{{item.txet}}'}]",
            "txet",
        ),
    ],
)  # fmt: skip
def test_a_field_that_an_element_does_not_have_is_found(work, under):
    p = problem_of(mapped(work))
    assert (p.code, under_caret(p)) == ("RCP205", under)
    assert p.hint.startswith("did you mean")


def test_a_field_that_an_element_may_have_is_none():
    good = (
        "over: '{{steps.list.output.rows}}', agent: reader, input: '{{item.name}} {{item}} {{index}}'",
        "over: '{{steps.list.output}}', agent: reader, input: '{{item.anything}}'",
        "over: '{{inputs.rows}}', agent: reader, input: '{{item.anything}}'",
        "over: '{{steps.list.output.rows}}', stages: [{agent: reader, input: '{{item.name}}'},"
        " {agent: lister, input: '{{item.text}}'}]",
    )
    for work in good:
        text = mapped(work).replace("agents:\n", "inputs: [{name: rows, type: json}]\nagents:\n", 1)
        assert [p for p in problems_of(text) if p.code == "RCP205" and "item" in p.message] == []


@pytest.mark.parametrize(
    "schema", ["{score: number}", "{score: int, why: text}", "{type: object, score: {type: number}}",
     "{title: string}", "{type: object, properties: {score: number}}", "{type: float}",
     "{type: array, items: {name: string}}", "{type: object, properties: {meta: {a: bool}}}",
     "{tags: [string], tier: [hot, cold]}"],
)  # fmt: skip
def test_a_schema_in_shorthand_is_a_problem_whose_hint_is_the_schema(schema):
    p = problem_of(flat(f"{{id: a, subagent: writer, prompt: x, output: {{schema: {schema}}}}}"))
    assert p.code == "RCP124"
    assert p.hint.startswith("write ")


def test_a_blank_value_means_the_default_or_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    declared = (
        Input("depth", (), has_default=True, default="deep"),
        Input("n", (), "number", has_default=True, default=3),
        Input("f", (), "file_path"),
        Input("g", (), "file_path", has_default=True, default="a.txt"),
        Input("h", (), "file_path", has_default=True, default=""),
        Input("free", ()),
    )
    given = {each.name: " " if each.name == "depth" else "" for each in declared}
    values, problems = bind(declared, given, finder_in(tmp_path))
    assert problems == ()
    assert values == {"depth": "deep", "n": 3, "f": None, "g": "a.txt", "h": None, "free": ""}


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "docs").mkdir()
    for written in (".", "docs", "docs/"):
        _, (p,) = bind((Input("f", (), "file_path"),), {"f": written}, finder_in(tmp_path))
        assert (p.code, "is a folder" in p.message) == ("RCP305", True)


@pytest.mark.parametrize(
    ("when", "hint"),
    [
        ("steps.a.status == 'success'", "write 'succeeded'"),
        ("'Succeeded' != steps.a.status", "write 'succeeded'"),
        ("steps.a.status in ['failed', 'error']", "write 'failed'"),
        ("not (steps.a.status == 'canceled') and 1 < 2", "write 'cancelled'"),
        ("steps.a.status == 'zzz'", "it is one of succeeded"),
    ],
)
def test_a_status_that_no_step_has_is_a_problem(when, hint):
    text = flat("{id: a, subagent: writer, prompt: x}", f'{{id: b, subagent: writer, prompt: x, when: "{when}"}}')  # fmt: skip
    p = problem_of(text)
    assert (p.code, p.hint[: len(hint)]) == ("RCP213", hint)


def test_nor_is_it_a_case():
    text = flat("{id: a, subagent: writer, prompt: x}", "{id: b, prompt: x, switch: {value: steps.a.status, cases: {success: writer, failed: worker}}}")  # fmt: skip
    assert (problem_of(text).code, under_caret(problem_of(text))) == ("RCP213", "writer")


def test_the_words_of_a_status_are_no_problem():
    for word in ("succeeded", "failed", "skipped", "held", "cancelled"):
        plan_of(flat("{id: a, subagent: writer, prompt: x}", f"{{id: b, subagent: writer, prompt: x, when: \"steps.a.status == '{word}'\"}}"))  # fmt: skip
