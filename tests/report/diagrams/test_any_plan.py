"""Whatever the plan, it can be drawn."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from stretto.plan.model import (
    Plan,
    PlannedBranch,
    PlannedCondition,
    PlannedDelegation,
    PlannedLoop,
    PlannedMap,
    PlannedParallel,
    PlannedSwitch,
    PlannedWork,
    Target,
)
from stretto.report.diagrams import FORMATS, draw
from stretto.templates.expression import Expression, parse_expression
from stretto.templates.template import parse_template
from stretto.text.short import columns
from stretto.vocabulary.names import StepId
from support.diagram_plans import brief, graph
from support.operations import count_operations

HOSTILE = '"]<script>`end`&amp;\\N %%{init}%% #quot; --> | \x00\u202e\ud800 翻訳'
NAMES = st.one_of(st.text(max_size=12), st.just("n" * 200), st.just("a-b"), st.just(HOSTILE))


def expression(text: str) -> Expression:
    parsed = parse_expression(text)
    assert isinstance(parsed, Expression)
    return parsed


@st.composite
def works(draw_: st.DrawFn, later: list[str]) -> PlannedWork:
    """Some work, its routes leading to `later` steps or to an agent in place."""
    agents = NAMES.map(brief)
    targets = st.none() | agents.map(lambda b: Target(brief=b))
    if later:
        targets |= st.sampled_from(later).map(lambda id: Target(step=StepId(id)))
    condition = expression("{{steps.a.output.score}} >= 80")
    over, _ = parse_template("{{steps.a.output.items}}")
    kind = draw_(st.sampled_from(["sequential", "parallel", "route", "switch", "loop", "map"]))
    if kind == "sequential":
        return PlannedDelegation(draw_(agents))
    if kind == "parallel":
        branches = draw_(st.lists(st.builds(PlannedBranch, NAMES, agents), min_size=1, max_size=5))
        return PlannedParallel(tuple(branches), draw_(st.sampled_from(["all", "any"])))
    if kind == "route":
        return PlannedCondition(condition, draw_(targets), draw_(targets))
    if kind == "switch":
        cases = draw_(st.lists(st.tuples(NAMES, targets), max_size=3))
        chosen = tuple((case, target) for case, target in cases if target)
        return PlannedSwitch(condition, chosen, draw_(targets))
    if kind == "loop":
        validator = draw_(st.none() | agents)
        until = None if validator else condition
        return PlannedLoop(draw_(agents), validator, until, 3, None)
    stages = draw_(st.lists(agents, min_size=1, max_size=3))
    return PlannedMap(over, tuple(stages), draw_(st.none() | agents), 20, 1000, None)


@st.composite
def plans(draw_: st.DrawFn) -> Plan:
    count = draw_(st.integers(1, 14))
    ids = draw_(st.lists(NAMES, min_size=count, max_size=count, unique=True))
    waits = [
        sorted(draw_(st.sets(st.integers(0, i - 1), max_size=3)) if i else []) for i in range(count)
    ]
    steps = [draw_(works(ids[i + 1 :])) for i in range(count)]
    # A route is an edge, as `build` makes it one.
    for i, work in enumerate(steps):
        routes = [work.if_true, work.if_false] if isinstance(work, PlannedCondition) else []
        if isinstance(work, PlannedSwitch):
            routes = [*(target for _, target in work.cases), work.default]
        for target in routes:
            if target and target.step is not None:
                after = ids.index(target.step)
                waits[after] = sorted({*waits[after], i})
    return graph(waits, ids, steps, name=draw_(NAMES))


@given(plans(), st.integers(20, 120))
@settings(deadline=None)
def test_text_keeps_to_the_width_and_names_every_step(plan: Plan, width: int):
    drawn = draw(plan, "ascii", width)
    assert max(map(columns, drawn.splitlines())) <= width
    for step in plan.steps:
        assert f"[{step.index + 1}. " in drawn


@given(plans())
@settings(deadline=None)
def test_pictures_are_well_formed_and_run_nothing(plan: Plan):
    root = ElementTree.fromstring(draw(plan, "svg"))
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "style", "g", "path", "rect", "text"}
    titles = [element.text or "" for element in root.iter() if element.tag.endswith("title")]
    assert len(titles) == 1 + len(plan.steps)


@given(plans())
@settings(deadline=None)
def test_labels_never_leave_their_quotes(plan: Plan):
    dot = re.sub(r'"(?:[^"\\]|\\.)*"', "S", draw(plan, "dot"))
    assert re.fullmatch(r"[\w\s{}\[\]=,;>.-]*", dot)
    mermaid = re.sub(r'"[^"`%\\]*"', "S", draw(plan, "mermaid"))
    assert re.fullmatch(r"[\w\s{}\[\]|>.-]*", mermaid)


@given(plans())
@settings(deadline=None)
def test_the_same_plan_is_always_drawn_alike(plan: Plan):
    for format in FORMATS:
        assert draw(plan, format).encode() == draw(plan, format).encode()


LARGE = {
    "chain": [[i - 1] if i else [] for i in range(500)],
    "apart": [[] for _ in range(500)],
    "one waits for all": [*([] for _ in range(499)), list(range(499))],
    "all wait for all before": [list(range(i)) for i in range(500)],
    "ladder": [[j for j in (i - 2, i - 7) if j >= 0] for i in range(500)],
    "nested": [[] if i == 0 else [max(0, (i - 1) // 2 * 2 - 1)] for i in range(500)],
}


@pytest.mark.parametrize("shape", LARGE)
def test_five_hundred_steps_cost_no_more_than_their_edges(shape: str):
    plan = graph(LARGE[shape])
    for format in FORMATS:
        drawn = draw(plan, format)
        assert "500. s499" in drawn or "500#46; s499" in drawn
        # Five times the steps may have twenty-five times the edges; cubic work would be 125.
        small, large = (graph(LARGE[shape][:count]) for count in (40, 200))
        assert operations(large, format) < 40 * operations(small, format)


def operations(plan: Plan, format: str) -> int:
    return count_operations(lambda: draw(plan, format))
