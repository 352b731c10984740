"""What holds for every change of a step in a recipe's text: it does what was asked, and the rest stays."""

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings, strategies as st

import stretto
from stretto.documents.node import plain
from stretto.plan.draft import make_draft
from stretto.plan.edges import Edges, connect
from stretto.plan.step_changes import (
    AddStep,
    ConnectSteps,
    DisconnectSteps,
    DuplicateStep,
    RemoveStep,
    RenameStep,
    StepEdit,
    change_steps,
)
from stretto.problems.errors import InvalidUsage, NotFound, StepInUse
from stretto.recipe.model import Recipe
from stretto.recipe.read import read_recipe
from stretto.vocabulary.amounts import DEFAULT_LIMITS
from support.recipes import CATALOG, RECIPES

PACKAGE = Path(stretto.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [
    *sorted((PACKAGE / "bundled" / "templates").iterdir()),
    *sorted((PACKAGE / "bundled" / "workflows").iterdir()),
    *sorted(RECIPES.iterdir()),
    *(file for file in sorted(EXAMPLES.iterdir()) if ".script." not in file.name),
]
ODD = {
    "odd.yaml": """\
# What an author may write, and no tool may lose.
name: 'odd'   # its name
ui-less: [kept]
steps:
# about the first
- id: "one"      # in quotes
  subagent: writer
  prompt: |+
    Keep the lines below.

- id: two
  # depends_on: nothing yet
  subagent: writer
  prompt: >-
    Folded {{steps.one.output}}
    and once more {{ steps.one.output }}
  depends_on: [one]   # in brackets

  # a comment inside
- {id: three, subagent: writer, depends_on: one, prompt: "after {{steps.two.output}}"}
-   id: four
    subagent: writer
    depends_on:
      - one   # first
      # between
      - three
    when: steps.three.status == 'succeeded' and steps.one.output != "one"
    prompt: 'it''s {{steps.three.output}}'
    # the last words of four
- { "id" : "five" , "subagent":"writer", depends_on: [
      four,  # why
      two ], prompt: x }
- id: six
  subagent: writer
  depends_on:
  prompt: y
output: "{{steps.five.output}}"
""",
    "route.yaml": """\
workflow:
  name: route
  steps:
    - id: pick
      type: conditional
      condition: {eval: "1 < 2", true: yes-way, false: no-way}
    - id: yes-way
      agent: writer
      input: go
    - id: no-way
      agent: writer
      input: stay
    - id: note
      agent: writer
      depends_on: []
      input: "{{steps.yes-way.output}}"
    - id: all
      agent: writer
      input: all prior context
""",
    "compact.json": json.dumps(
        {
            "name": "compact",
            "steps": [
                {"id": "a", "subagent": "writer", "prompt": "x"},
                {"id": "b", "subagent": "writer", "depends_on": ["a"], "prompt": "{{steps.a.output}}"},
                {"id": "c", "subagent": "writer", "prompt": "é \U0001f389 {{steps.a.output}}"},
            ],
        },
        separators=(",", ":"),
    ),
    "tabs.json": json.dumps(
        {"name": "tabs", "steps": [{"id": i, "task": "x", "depends_on": []} for i in "abc"]},
        indent="\t",
    ),
    "blocks.yaml": """\
name: blocks
steps:
- id: one
  subagent: writer
  prompt: |2
     - id: fake      # this is text
       depends_on: [two]
    # and so is this

- id: two   # a comment
  subagent: writer
  prompt: >+

    folded: {{steps.one.output}}

    - and kept


# stands between two steps
- id: three
  prompt: |-

    {{steps.two.output}}
  # behind the text

  subagent: writer
- id: four
  subagent: writer
  depends_on:
  # before the first
  - one

  - three   # the first from behind
  prompt: "over
    several\\
    \\ lines {{steps.two.output}}

    of one text"
output: |+
  {{steps.four.output}}

""",
    "spellings.yaml": """\
%YAML 1.2
--- # where it starts
"name" : spellings
? description
: 'a key of its own line: # not a comment'
steps :
    -
        # before the first key
        id : one
        subagent : writer   # tab\tin a comment
        prompt:\t"x\ty"\t# after a tab
    -   ? id
        : two
        ? depends_on
        : - one
        prompt:
            # above the text
            plain words
            on two lines
        "subagent": 'writer'

    - { ? id : three, subagent: writer, # in braces
        'depends_on': [ 'two' , "one", ], prompt: "{{steps.two.output}}" , }
    - {id: four,subagent: writer,prompt: "x",depends_on: three}
... # where it ends
# and beyond
""",
    "words.yaml": """\
name: words   # \u00e9\u00e8 \u4e2d\u6587 \U0001f389
description: "\u202eright to left\u202c, e\u0301 combined, a\u00a0blank\u2028a line\u0085"
steps:
  - {id: one, subagent: writer, prompt: "\U0001f468\u200d\U0001f469\u200d\U0001f467 {{inputs.x}}"}   # \U0001f389 behind
  - id: two
    subagent: writer   # \u4e2d
    prompt: '\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \U0001f389 {{steps.one.output}} \u00fc'
  - id: 'y'
    subagent: writer
    depends_on: [one, two]
    prompt: >
      \U0001f389 {{steps.two.output}}
      {{steps.one.output}}
inputs:
  - name: x
""",
    "long.yaml": f"""\
name: long
steps:
  - {{id: one, subagent: writer, prompt: "{"long words, " * 4000}"}}   # {"so it is " * 500}
  - id: two
    subagent: writer
    prompt: {"plain words " * 3000}{{{{steps.one.output}}}}
  - {{id: three, subagent: writer, depends_on: [{", ".join(["one", *(f"s{n}" for n in range(120))])}], prompt: x}}
{"".join(f"  - {{id: s{n}, subagent: writer, prompt: x}}{chr(10)}" for n in range(120))}""",
    "brackets.yaml": """\
{name: brackets, steps: [ # the first
  {id: one, subagent: writer,
   prompt: "x, ]} "}, # one
  # two
  {
    id: two
    , subagent: writer
    , depends_on: [
        one # why
      ]
    , prompt: "{{steps.one.output}}"
  },
  { id: three, subagent: writer, depends_on: [], prompt: '{{ steps.two.output }}' }
] # the last
}
""",
    "line.yaml": "{name: line, steps: [{id: one, subagent: writer, prompt: x},"
    "{id: two, subagent: writer, depends_on: [one], prompt: y}]}",
    "mixed.yaml": "name: mixed\r\nsteps:\n  - id: one\r\n    subagent: writer\n    prompt: |\r\n"
    "      a\n      b\r\n\r\n  - id: two\r    subagent: writer\r    prompt: '{{steps.one.output}}'\r"
    "  # about three\n  - {id: three, subagent: writer, depends_on: one, prompt: z}\r\n\n\n",
}  # fmt: skip
# What a recipe must not have: each change is made beside it, or refused; it stays as it is.
REFUSED = {
    "anchors.yaml": """\
name: anchors
steps:
  - &first
    id: one
    subagent: writer
    prompt: &p hello   # said once
  - id: two
    subagent: writer
    prompt: *p
  - {id: three, subagent: writer, depends_on: [one], prompt: x}
""",
    "merged.yaml": """\
name: merged
common: &c {subagent: writer, prompt: x}
steps:
  - {<<: *c, id: one}
  - id: two
    <<: *c
    depends_on: [one]
  - {id: three, subagent: writer, prompt: x}
""",
    "twice.yaml": """\
name: twice
steps:
  - id: one
    subagent: writer
    prompt: x
    prompt: y   # the second one
  - id: two
    depends_on: [one]
    subagent: writer
    prompt: hi
    depends_on: []
  - id: three
    id: third
    prompt: z
    subagent: writer
  - {id: four, prompt: a, subagent: writer, prompt: b}
steps: []
""",
    "tagged.yaml": """\
name: !!str tagged
steps:
  - !!map
    id: one
    subagent: writer
    prompt: !!str x
  - {id: two, subagent: writer, depends_on: !!seq [one], prompt: y}
  - id: three
    subagent: writer
    prompt: z
""",
    "unknown.yaml": """\
name: unknown
steps:
  - id: one
    subagent: writer
    colour: [red, {deep: "{{steps.two.output}}"}]
    prompt: x
  - {id: two, subagent: nobody, prompt: y, depends_on: [nowhere, one]}
  - id: two
    prompt: again
  - just words
  - id: five
    subagent: writer
    prompt: "{{ steps.one.output"
  - id:
    subagent: writer
    prompt: z
""",
}
TEXTS = {**{file.name: file.read_text(encoding="utf-8") for file in FILES}, **ODD}
NEW = "zz_new"


def forms(name: str) -> list[str]:
    """One text as different editors would have saved it."""
    text = TEXTS[name]
    return [
        text,
        text.replace("\n", "\r\n"),
        text.rstrip("\n"),
        text.replace("\n", "\r\n").rstrip(),
    ]


def recipe_of(text: str, name: str) -> Recipe:
    return read_recipe(text, name)


def edges_of(recipe: Recipe) -> Edges:
    return connect(make_draft(recipe, CATALOG, DEFAULT_LIMITS))


def changed(text: str, name: str, change: StepEdit) -> str:
    return change_steps(recipe_of(text, name), change, CATALOG)


def ids_of(text: str, name: str) -> list[str]:
    return [str(step.id) for step in recipe_of(text, name).steps]


def goes_before(edges: Edges, first: str, then: str) -> bool:
    waiting, seen = [then], {then}
    while waiting:
        for before in edges[waiting.pop()]:  # type: ignore[index]
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return first in seen


def comments(text: str) -> list[str]:
    return re.findall(r"#[^\r\n]*", text)


def is_used(text: str, first: str, then: str) -> bool:
    """Whether a step names another one in a template, or a condition does that chooses it."""
    return re.search(rf"steps\.{re.escape(first)}\b", text) is not None or "condition" in text


def check_named(text: str, id: str, error: StepInUse) -> None:
    lines = re.split(r"\r\n|\n|\r", text)
    assert error.problems
    for problem in error.problems:
        assert problem.place is not None
        assert id in lines[problem.place.line - 1]


def is_part(line: str, of: str) -> bool:
    """Whether it is that line with some letters left out."""
    letters = iter(of)
    return all(letter in letters for letter in line)


def common_ends(before: str, after: str) -> tuple[str, str]:
    """What the one has between the first and the last difference, and the other."""
    shortest = min(len(before), len(after))
    start = next((n for n in range(shortest) if before[n] != after[n]), shortest)
    end = 0
    while end < shortest - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


texts = st.sampled_from(sorted(TEXTS)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(forms(name)))
)
thorough = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)  # fmt: skip


@thorough
@given(texts, st.data())
def test_an_edge_is_added_in_one_place(given_text: tuple[str, str], data: st.DataObject) -> None:
    name, text = given_text
    ids = ids_of(text, name)
    first, then = (data.draw(st.sampled_from(ids)) for _ in "12")
    edges = edges_of(recipe_of(text, name))
    try:
        after = changed(text, name, ConnectSteps(first, then))
    except InvalidUsage:
        # Every refusal has a reason: it is there, it would go in a circle, or a route means more.
        routed = any("routed" in each.values() for each in edges.values())
        assert first in edges[then] or goes_before(edges, then, first) or routed  # type: ignore[index]
        return
    assert first in edges_of(recipe_of(after, name))[then]  # type: ignore[index]
    removed, added = common_ends(text, after)
    assert len(removed) <= 20, "what was there stays"
    assert comments(after) == comments(text)
    assert "\n" not in added.replace("\r\n", "") or "\r\n" not in text
    without = [{**each, "depends_on": None} for each in steps_of(text, name)]
    assert [{**each, "depends_on": None} for each in steps_of(after, name)] == without


def steps_of(text: str, name: str) -> list[dict[str, object]]:
    # The last line of a block means the same with a break behind it.
    content = plain(recipe_of(text + "\n", name).root)  # type: ignore[arg-type]
    assert isinstance(content, dict)
    body = content.get("workflow", content)
    return body["steps"]  # type: ignore[index,call-overload,return-value]


@thorough
@given(texts, st.data())
def test_a_new_edge_is_taken_away_again(given_text: tuple[str, str], data: st.DataObject) -> None:
    name, text = given_text
    first, then = (data.draw(st.sampled_from(ids_of(text, name))) for _ in "12")
    try:
        with_edge = changed(text, name, ConnectSteps(first, then))
    except InvalidUsage:
        assume(False)
    after = changed(with_edge, name, DisconnectSteps(first, then))
    recipe = recipe_of(text, name)
    had = next(each for each in recipe.steps if each.id == then).depends_on is not None
    if not had and not recipe.dialect.chains_steps and "all prior" not in text:
        assert after == text
    assert edges_of(recipe_of(after, name)) is not None
    assert first not in edges_of(recipe_of(after, name))[then]  # type: ignore[index]
    assert comments(after) == comments(text)


@thorough
@given(texts, st.data())
def test_an_edge_that_was_written_is_removed_from_its_line(
    given_text: tuple[str, str], data: st.DataObject
) -> None:
    name, text = given_text
    edges = edges_of(recipe_of(text, name))
    pairs = [(b, i) for i, befores in edges.items() for b in befores]
    assume(pairs)
    first, then = data.draw(st.sampled_from(pairs))
    try:
        after = changed(text, name, DisconnectSteps(first, then))
    except InvalidUsage:
        assert (
            edges[then][first] in ("reference", "routed")
            or "all prior" in text
            or is_used(text, first, then)
        )
        return
    assert first not in edges_of(recipe_of(after, name))[then]
    without = [{**each, "depends_on": None} for each in steps_of(text, name)]
    assert [{**each, "depends_on": None} for each in steps_of(after, name)] == without
    lost = set(comments(text)) - set(comments(after))
    assert all("first" in each for each in lost), "only what stands on the line of the item"


@thorough
@given(texts, st.data())
def test_a_step_that_was_added_is_removed_without_a_trace(
    given_text: tuple[str, str], data: st.DataObject
) -> None:
    name, text = given_text
    ids = ids_of(text, name)
    beside = data.draw(st.sampled_from([None, *ids]))
    above = ids if beside is None else ids[: ids.index(beside) + 1]
    befores = data.draw(st.lists(st.sampled_from(above), max_size=2, unique=True))
    words = data.draw(st.sampled_from(["Do it.", "a: b # c", "two\nlines", '"', "", "{{run.id}}"]))
    after = changed(text, name, AddStep(NEW, "writer", words, tuple(befores), beside))
    assert comments(text) == [
        each for each in comments(after) if "# c" not in each or each in comments(text)
    ]
    assert ids_of(after, name).index(NEW) == (len(ids) if beside is None else ids.index(beside) + 1)
    removed, _ = common_ends(text, after)
    assert removed == ""
    if "all prior" not in text:
        assert changed(after, name, RemoveStep(NEW)) == text


@thorough
@given(texts, st.data())
def test_a_copy_of_a_step_is_removed_without_a_trace(
    given_text: tuple[str, str], data: st.DataObject
) -> None:
    name, text = given_text
    id = data.draw(st.sampled_from(ids_of(text, name)))
    after = changed(text, name, DuplicateStep(id, NEW))
    assert common_ends(text, after)[0] == ""
    before_copy, copy = steps_of(text, name), steps_of(after, name)
    index = ids_of(text, name).index(id)
    assert copy[: index + 1] + copy[index + 2 :] == before_copy
    assert copy[index + 1].keys() == before_copy[index].keys()
    assert changed(after, name, RemoveStep(NEW)) == text


@thorough
@given(texts, st.data())
def test_a_new_name_stands_everywhere_and_nothing_else_changes(
    given_text: tuple[str, str], data: st.DataObject
) -> None:
    name, text = given_text
    id = data.draw(st.sampled_from(ids_of(text, name)))
    after = changed(text, name, RenameStep(id, NEW))
    assert after.replace(NEW, id) == text
    recipe = recipe_of(after, name)
    assert make_draft(recipe, CATALOG, DEFAULT_LIMITS).problems == []
    assert changed(after, name, RenameStep(NEW, id)) == text


@thorough
@given(texts, st.data())
def test_what_others_use_is_removed_only_when_it_is_asked_for_twice(
    given_text: tuple[str, str], data: st.DataObject
) -> None:
    name, text = given_text
    ids = ids_of(text, name)
    assume(len(ids) > 1)
    id = data.draw(st.sampled_from(ids))
    try:
        after = changed(text, name, RemoveStep(id))
    except StepInUse as error:
        check_named(text, id, error)
        after = changed(text, name, RemoveStep(id, is_forced=True))
    assert ids_of(after, name) == [each for each in ids if each != id]
    kept = {
        id_: {**each, "depends_on": None}
        for id_, each in zip(ids, steps_of(text, name), strict=True)
    }
    for left in steps_of(after, name):
        assert {**left, "depends_on": None} == kept[str(left["id"])]
    if name == "compact.json":
        return  # one line
    lines = set(re.split(r"\r\n|\n", text))
    new = [each for each in re.split(r"\r\n|\n", after) if each not in lines]
    assert all("depends_on" in each or any(is_part(each, line) for line in lines) for each in new)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_an_edge_that_closes_a_circle_is_refused_with_the_way(name: str) -> None:
    text = TEXTS[name]
    edges = edges_of(recipe_of(text, name))
    for then, befores in edges.items():
        for first in befores:
            with pytest.raises(InvalidUsage) as refused:
                changed(text, name, ConnectSteps(then, first))
            assert "→" in refused.value.hint or "→" in refused.value.message


def written(text: str) -> list[object]:
    """Everything that a text says, as nobody else reads it: keys that stand twice, anchors, tags."""

    def said(node: yaml.Node | None) -> object:
        if isinstance(node, yaml.MappingNode):
            return (node.tag, [(said(key), said(value)) for key, value in node.value])
        if isinstance(node, yaml.SequenceNode):
            return (node.tag, [said(item) for item in node.value])
        return (node.tag, node.value) if isinstance(node, yaml.ScalarNode) else None

    composed = said(yaml.compose(text, Loader=yaml.SafeLoader))
    assert isinstance(composed, tuple)
    return [value for key, value in composed[1] if key[1] != "steps"] + [
        item for key, value in composed[1] if key[1] == "steps" for item in value[1]
    ]


@thorough
@given(st.sampled_from(sorted(REFUSED)), st.data())
def test_what_a_recipe_must_not_have_stays_where_it_is(name: str, data: st.DataObject) -> None:
    text = REFUSED[name]
    ids = [*ids_of(text, name), "one", "third"]
    first, then = (data.draw(st.sampled_from(ids)) for _ in "12")
    edits = [ConnectSteps(first, then), DisconnectSteps(first, then), RenameStep(then, NEW),
             AddStep(NEW, "writer", "Do it.", (), then), DuplicateStep(then, NEW), RemoveStep(then, True)]  # fmt: skip
    edit = data.draw(st.sampled_from(edits))
    try:
        after = changed(text, name, edit)
    except (InvalidUsage, NotFound):
        return
    before, now = written(text), written(after)
    match edit:
        case AddStep() | DuplicateStep():
            assert common_ends(text, after)[0] == ""
            new = [item for item in now if NEW in str(item)]
            assert len(new) == 1
            assert [item for item in now if item is not new[0]] == before
        case RemoveStep():
            lines = re.split(r"\r\n|\n|\r", text)
            assert all(line in lines or "depends_on" in line for line in after.splitlines())
            assert len(now) == len(before) - 1
            left = [item for item in before if item in now or "depends_on" in str(item)]
            assert len(left) >= len(now)
        case RenameStep():
            assert after.replace(NEW, then) == text
        case _:
            same = [item for item, was in zip(now, before, strict=True) if item == was]
            assert len(same) == len(before) - 1, "one step, and nothing else"


def test_a_step_whose_id_stands_under_another_key_is_left_to_its_author() -> None:
    text = "name: x\nsteps:\n  - step_id: a\n    run: echo a\n  - id: b\n    run: echo b\n"
    with pytest.raises(InvalidUsage, match="step 'a' has no key 'id'"):
        change_steps(recipe_of(text, "guessed.yaml"), ConnectSteps("b", "a"), CATALOG)
