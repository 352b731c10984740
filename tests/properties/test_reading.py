"""What holds for every text: it is a recipe or says why it is none, and nothing ever raises."""

import json
import re
import unicodedata

from hypothesis import HealthCheck, example, given, settings, strategies as st
from msgspec import structs

from stretto.documents.document import read_bytes, read_text
from stretto.documents.node import plain
from stretto.plan.build import Problems, build
from stretto.plan.dry_run import dry_run
from stretto.plan.model import Plan
from stretto.problems import Place, Problem
from stretto.problems.render import as_json, as_text
from stretto.recipe.read import read_recipe
from stretto.vocabulary.amounts import parse_duration
from support.recipes import CATALOG, RECIPES

PRINTED = {file.stem: file.read_text(encoding="utf-8") for file in sorted(RECIPES.iterdir())}
# One of everything that has rules of its own.
RICH = """\
name: rich
timeout: 1h
inputs: {topic: {required: true}, rows: {type: json, default: [1, 2]}}
agents:
  own: {prompt: "About {{inputs.topic}}", tools: [Read], retry: {on_failure: fallback:writer}}
steps:
  - {id: a, agent: own, prompt: x, output: {store_as: found, schema: {properties: {n: {type: number}}}}}
  - {id: b, prompt: x, parallel: [{agent: own, output_key: k}, {agent: writer}], wait: 1}
  - {id: c, condition: {eval: "steps.a.output.n > 1 and not false", true: d, false: writer}, prompt: x}
  - {id: d, prompt: x, loop: {agent: own, validator: reviewer, feedback_path: "{{steps.d.output.why}}"}}
  - {id: e, map: {over: "{{inputs.rows}}", stages: [{agent: writer, input: "{{item}}"}], reduce: own}}
  - {id: f, switch: {value: "{{steps.b.outputs.k}}", cases: {x: g}, default: writer}, prompt: x}
  - {id: g, agent: worker, prompt: "{{found.n}}", write_set: ["src/**"], read_set: [docs], when: 1 < 2}
output: "{{steps.e.output}}"
"""
# How long an example takes says more about the machine than about us.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXTS = [*PRINTED.values(), RICH]
# Words that mean something to a reader, for mutations to be more than noise.
WORDS = [
    "{{", "}}", "{", "}", "[", "]", ":", ": ", "- ", "\n", "\r\n", "\t", "  ", "'", '"', "|", ">",
    "&a", "*a", "<<", "!!str", "---", "...", "#", "?", "%", "@", "~", "null", "true", "0", "-1",
    "1e999", "9" * 400, "[]", "{}", "all prior context", "steps", "inputs", "workflow", "task",
    "{{item}}", "{{steps.a.output}}", "fallback:", "..", "/", "\\", "é", "日本", "🎉", "\u2028",
    "\x85", "\ufeff", "\0", "\x1b", "\ud800", "id", "map", "loop", "parallel", "agent", "stages",
]  # fmt: skip


def outcome(text: str | bytes, file: str = "") -> Plan | Problems:
    """Reads and builds, shows whatever is wrong, and holds the result to what it promises."""
    recipe = read_recipe(text, file)
    result = build(recipe, CATALOG)
    if isinstance(result, Problems):
        assert result.problems
        assert list(result.problems) == sorted(result.problems, key=lambda each: each.sort_key)
        for problem in result.problems:
            check_problem(problem)
    else:
        assert recipe.problems == ()
        json.dumps(dry_run(result, {}))
    return result


def check_problem(problem: Problem) -> None:
    assert problem.code
    assert problem.message
    json.dumps(as_json(problem))
    check_shown(problem)


# Controls, lone surrogates and separators of lines; what turns the order of words around.
_STEERING = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def check_shown(problem: Problem) -> None:
    lines = as_text(problem).split("\n")
    letters = {letter for line in lines for letter in line} - {"\t"}
    assert not {letter for letter in letters if unicodedata.category(letter) in _STEERING}
    assert not letters & _TURNING
    if problem.place is None:
        return
    assert len(lines) == 4
    margin = len(str(problem.place.line)) + 2
    shown, caret = lines[2][margin:], lines[3][margin:]
    assert len(shown) <= 120
    marks = re.match(r"[ \t]*\^+(?= |$)", caret)
    assert marks
    # A wide letter takes two columns; past the end there is room for one caret and no more.
    assert marks.end() <= 2 * len(shown) + 1


@patient
@given(st.binary(max_size=300))
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe")
@example(b"%YAML 1.1\n---\n")
def test_any_bytes_are_a_recipe_or_a_problem(raw):
    outcome(raw)
    assert read_bytes(raw, "a.json").root is not None or read_bytes(raw, "a.json").problems


@patient
@given(st.text(max_size=300), st.sampled_from(["", "a.yaml", "a.json"]))
def test_any_text_is_a_recipe_or_a_problem(text, file):
    outcome(text, file)


@patient
@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join))
def test_any_jumble_of_meaningful_words_is_a_recipe_or_a_problem(text):
    outcome(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)
steps = st.fixed_dictionaries({"id": json_values, "prompt": json_values})


@patient
@given(json_values)
def test_json_is_read_as_the_standard_library_reads_it(value):
    text = json.dumps(value)
    document = read_text(text, "a.json")
    if document.root is None or document.problems:
        assert document.problems
    else:
        assert plain(document.root) == json.loads(text)


@settings(patient, max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(["name", "steps", "inputs", "agents", "output", "timeout", "workflow"]),
        json_values | st.lists(steps, max_size=2),
    )
)
def test_any_value_under_any_key_is_a_recipe_or_a_problem(value):
    outcome(json.dumps(value), "a.json")


# --- mutations of real recipes -------------------------------------------------------------


@st.composite
def mutated_lines(draw: st.DrawFn) -> str:
    lines = draw(st.sampled_from(TEXTS)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        if not lines:
            break
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["delete", "repeat", "swap", "replace", "indent"])):
            case "delete":
                del lines[at]
            case "repeat":
                lines.insert(draw(st.integers(0, len(lines))), lines[at])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "replace":
                lines[at] = draw(st.sampled_from(WORDS) | st.text(max_size=20)) + "\n"
            case "indent":
                lines[at] = " " * draw(st.integers(1, 4)) + lines[at]
    return "".join(lines)


@st.composite
def mutated_characters(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from([0, 0, 1, 2, 5, 20]))
        text = text[:at] + draw(st.sampled_from([*WORDS, ""])) + text[at + length :]
    return text


@settings(patient, max_examples=150)
@given(mutated_lines())
def test_recipes_with_lines_out_of_place_never_raise(text):
    outcome(text)


@settings(patient, max_examples=150)
@given(mutated_characters())
def test_recipes_with_characters_out_of_place_never_raise(text):
    outcome(text)


@settings(patient, max_examples=50)
@given(mutated_lines(), st.data())
def test_recipes_with_broken_bytes_never_raise(text, data):
    raw = text.encode("utf-8", "surrogatepass")
    at = data.draw(st.integers(0, len(raw)))
    outcome(raw[:at] + data.draw(st.binary(min_size=1, max_size=4)) + raw[at:])


@settings(patient, max_examples=50)
@given(st.sampled_from(TEXTS), st.data())
def test_recipes_that_were_cut_off_never_raise(text, data):
    outcome(text[: data.draw(st.integers(0, len(text)))])


@settings(patient, max_examples=100)
@given(mutated_lines())
def test_the_same_text_always_gives_the_same(text):
    assert outcome(text) == outcome(text)


@settings(patient, max_examples=100)
@given(st.sampled_from(TEXTS), st.data())
def test_line_ends_do_not_change_what_is_wrong(text, data):
    lines = text.splitlines(keepends=True)
    del lines[data.draw(st.integers(0, len(lines) - 1))]
    unix = "".join(lines)
    one, other = outcome(unix), outcome(unix.replace("\n", "\r\n"))
    assert type(one) is type(other)
    if isinstance(one, Problems) and isinstance(other, Problems):
        assert one == other


# --- json ----------------------------------------------------------------------------------


def meaning(plan: Plan) -> Plan:
    """The plan without what only says where it came from."""
    return structs.replace(plan, digest="", file="", warnings=())


@patient
@given(
    st.sampled_from(TEXTS),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_a_recipe_as_json_means_the_same_as_in_yaml(text, indent, is_ascii):
    root = read_text(text).root
    assert root is not None
    dumped = json.dumps(plain(root), indent=indent, ensure_ascii=is_ascii)
    in_yaml, in_json = outcome(text), outcome(dumped, "a.json")
    assert isinstance(in_yaml, Plan)
    assert isinstance(in_json, Plan)
    assert meaning(in_json) == meaning(in_yaml)


@settings(patient, max_examples=60)
@given(mutated_lines())
def test_what_is_wrong_in_yaml_is_wrong_in_json(text):
    document = read_text(text, "a.yaml")
    if document.root is None or document.problems:
        return
    dumped = json.dumps(plain(document.root))
    in_yaml, in_json = outcome(text, "a.yaml"), outcome(dumped, "a.json")
    if isinstance(in_yaml, Problems):
        assert isinstance(in_json, Problems)
        told = {(problem.code, problem.path) for problem in in_yaml.problems}
        assert {(problem.code, problem.path) for problem in in_json.problems} == told
    else:
        assert isinstance(in_json, Plan)
        assert meaning(in_json) == meaning(in_yaml)


# --- showing -------------------------------------------------------------------------------


@patient
@given(
    st.builds(
        Problem,
        code=st.just("RCP101"),
        message=st.text(max_size=80),
        file=st.text(max_size=20),
        place=st.none()
        | st.builds(Place, st.integers(1, 10**6), st.integers(1, 10**4), st.integers(1, 10**4)),
        path=st.text(max_size=20),
        hint=st.text(max_size=80),
        source_line=st.text(st.characters(exclude_characters="\r\n"), max_size=400),
    )
)
def test_any_problem_can_be_shown_and_its_caret_fits(problem):
    check_shown(problem)
    json.dumps(as_json(problem))


@patient
@given(st.text(max_size=12) | st.floats() | st.integers(-(10**300), 10**300) | st.booleans())
def test_a_duration_is_positive_or_none(written):
    seconds = parse_duration(written)
    assert seconds is None or 0 < seconds <= 366 * 86400
