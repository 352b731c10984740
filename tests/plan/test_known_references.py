"""What is offered inside `{{ }}` is what the checker accepts at that place, and nothing is left out."""

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from properties.test_step_changes import TEXTS
from stretto.documents.node import ScalarNode, find
from stretto.plan.check import examine
from stretto.plan.known_references import ReferencesHere, references_at
from stretto.recipe.model import Recipe
from stretto.recipe.read import read_recipe
from stretto.vocabulary.amounts import DEFAULT_LIMITS
from support.recipes import CATALOG

RECIPE = """\
name: offer
inputs: [{name: topic, description: what about}, {name: rows, type: json, default: []}]
agents:
  lister: {prompt: "List {{inputs.topic}}", validation: {schema: {properties: {found: {items: {properties: {id: {}, "a b": {}}}}}}}}
steps:
  - {id: list, agent: lister}
  - {id: each, map: {over: "{{steps.list.output.found}}", agent: writer, input: "ITEM"}}
  - {id: sides, parallel: [{agent: writer, output_key: left, input: x}, {agent: writer, input: y}]}
  - {id: polish, prompt: "LOOP", loop: {agent: writer, validator: reviewer}}
  - {id: pick, condition: {eval: "steps.list.output.n > 1", true: yes-way, false: writer}, prompt: x}
  - {id: yes-way, agent: writer, prompt: "WAY"}
  - {id: last, agent: writer, depends_on: [sides], prompt: "LAST", write_set: ["{{inputs.topic}}"]}
output: "OUT"
"""


def offered(text: str, word: str) -> ReferencesHere:
    return references_at(text, text.index(word), "", CATALOG)


def texts(found: ReferencesHere) -> list[str]:
    return [each.text for each in found.references]


def test_a_prompt_is_offered_inputs_steps_and_their_known_fields() -> None:
    found = offered(RECIPE, "LAST")
    assert (found.where, found.is_expression) == ("prompt of step last", False)
    names = texts(found)
    assert names[:2] == ["inputs.topic", "inputs.rows"]
    assert {"steps.list.output.found[0].id", "steps.sides.outputs.left", "run.id"} <= set(names)
    assert {"steps.polish.validation", "steps.pick.chosen"} <= set(names)
    assert not any(name.startswith("steps.last") or "a b" in name for name in names)
    assert not {"item", "feedback", "candidate"} & set(names)


def test_a_step_is_not_offered_those_that_wait_for_it() -> None:
    names = texts(references_at(RECIPE, RECIPE.index("input: x}") + 7, "", CATALOG))
    assert "steps.list.output" in names
    assert not any(name.startswith(("steps.last", "steps.sides")) for name in names)


def test_a_map_offers_its_element_and_a_loop_its_candidate() -> None:
    assert {"item", "index", "item.id"} <= set(texts(offered(RECIPE, "ITEM")))
    assert {"candidate", "feedback", "iteration"} <= set(texts(offered(RECIPE, "LOOP")))


def test_a_step_that_a_condition_chooses_is_not_offered_its_output() -> None:
    names = texts(offered(RECIPE, "WAY"))
    assert "steps.pick.chosen" in names
    assert "steps.pick.output" not in names


def test_sets_are_offered_inputs_alone_and_the_result_every_step() -> None:
    assert texts(references_at(RECIPE, RECIPE.index('"{{inputs.topic}}"]') + 4, "", CATALOG)) == [
        "inputs.topic",
        "inputs.rows",
    ]
    assert {"steps.last.output", "steps.list.output"} <= set(texts(offered(RECIPE, "OUT")))


def test_an_expression_is_told_apart_and_other_places_offer_nothing() -> None:
    assert offered(RECIPE, "steps.list.output.n >").is_expression
    assert offered(RECIPE, "offer") == ReferencesHere("", False, ())
    assert references_at("a: [", 2).references == ()


@pytest.mark.parametrize(
    "unfinished", ['"Of {{', '"Of {{inp', "{{", "{{ steps.", "Of {{steps.a.output}} {{"]
)
def test_braces_that_are_being_written_are_no_hindrance(unfinished: str) -> None:
    text = f"name: x\nsteps:\n  - {{id: a, agent: writer, prompt: x}}\n  - id: b\n    agent: writer\n    prompt: {unfinished}"
    for rest in ("", "}}", "\n    timeout: 5m\n"):
        assert "steps.a.output" in texts(references_at(text + rest, len(text), "", CATALOG))


def without(text: str, name: str, node: ScalarNode) -> set[str]:
    """What is said where the text refers to nothing: only what is put there counts."""
    tail = "\n" if text[node.start] in "|>" else ""
    plain = f'{text[: node.start]}"x"{tail}{text[node.end :]}'
    problems = examine(read_recipe(plain, name), CATALOG, DEFAULT_LIMITS).problems
    return {problem.message for problem in problems}


def new_problems(text: str, name: str, node: ScalarNode, words: str, known: set[str]) -> list[str]:
    """What the checker says to these words in the place of a text, and did not say before."""
    tail = "\n" if text[node.start] in "|>" else ""
    other = f'{text[: node.start]}"{words}"{tail}{text[node.end :]}'
    problems = examine(read_recipe(other, name), CATALOG, DEFAULT_LIMITS).problems
    about = ("RCP20", "RCP211", "RCP106", "RCP127")
    return [p.message for p in problems if p.message not in known and p.code.startswith(about)]


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_what_is_offered_passes_the_check_and_what_is_written_is_offered(name: str) -> None:
    text = TEXTS[name]
    recipe = read_recipe(text, name)
    examined = examine(recipe, CATALOG, DEFAULT_LIMITS)
    for drafted in examined.draft.steps:
        for site in (*drafted.sites, *drafted.later, *drafted.early):
            node = find(recipe.root, site.at)  # type: ignore[arg-type]
            if not isinstance(node, ScalarNode) or site.at[-1] == "feedback_path":
                continue
            found, known = references_at(text, node.start, name, CATALOG), without(text, name, node)
            for reference in site.references:
                words = reference.text.split("[")[0].split(".")
                path = words[: 3 if words[0] == "steps" else 2]
                assert ".".join(path) in texts(found)
            for each in found.references[:: 1 + len(found.references) // 10]:
                braced = each.text if found.is_expression else f"{{{{{each.text}}}}}"
                assert new_problems(text, name, node, braced, known) == [], each.text


def nameable(recipe: Recipe) -> list[str]:
    """What a text of some recipe could refer to, here or elsewhere."""
    loops = ["item", "index", "candidate", "feedback", "iteration", "run.id", "inputs.nowhere"]
    facets = ["output", "status", "error", "validation", "chosen", "diff", "files", "outputs"]
    steps = [*(str(each.id) for each in recipe.steps), "nowhere"]
    stored = [each.output.store_as for each in recipe.steps if each.output.store_as]
    names = [f"inputs.{each.name}" for each in recipe.inputs]
    return [*loops, *names, *stored, *(f"steps.{id}.{facet}" for id in steps for facet in facets)]


@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted({**TEXTS, "offer.yaml": RECIPE})), st.data())
def test_it_is_offered_exactly_if_the_checker_accepts_it(name: str, data: st.DataObject) -> None:
    text = {**TEXTS, "offer.yaml": RECIPE}[name]
    recipe = read_recipe(text, name)
    examined = examine(recipe, CATALOG, DEFAULT_LIMITS)
    drafted = data.draw(st.sampled_from(examined.draft.steps))
    sites = [*drafted.sites, *drafted.later, *drafted.early]
    assume(sites)
    site = data.draw(st.sampled_from(sites))
    node = find(recipe.root, site.at)  # type: ignore[arg-type]
    assume(isinstance(node, ScalarNode) and site.at[-1] != "feedback_path")
    assert isinstance(node, ScalarNode)
    found = references_at(text, node.start, name, CATALOG)
    word = data.draw(st.sampled_from(nameable(recipe)))
    known = without(text, name, node)
    braced = word if found.is_expression else f"{{{{{word}}}}}"
    refused = new_problems(text, name, node, braced, known)
    # Any step may be asked for its validation; it is offered where there ever is one, of loops.
    if not (word.endswith(".validation") and word not in texts(found)):
        assert (word in texts(found)) == (not refused), refused
