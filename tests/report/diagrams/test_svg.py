import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from stretto.plan.model import Plan
from stretto.report.diagrams import draw
from support.diagram_plans import example, flat, graph

TANGLED = graph(
    [[], [], [], [0, 1], [1, 2], [0], [3, 4], [3, 5], [6, 2], [7, 0], [8, 9], [4, 9], [10, 11]]
)


def svg(plan: Plan) -> ElementTree.Element:
    return ElementTree.fromstring(draw(plan, "svg"))


def named(root: ElementTree.Element, tag: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if element.tag.endswith("}" + tag)]


def test_a_picture_needs_nothing_else():
    drawn = draw(example("research-to-proposal"), "svg")
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "research-to-proposal"
    assert root.get("viewBox")
    assert "prefers-color-scheme: dark" in drawn
    assert not re.search(r"href|url\(|@import|<script", drawn)


def test_every_step_says_what_it_is():
    titles = [title.text for title in named(svg(example("research-to-proposal")), "title")]
    assert titles[1] == "1. research · sequential · researcher"
    assert titles[-1] == "5. review · loop · proposal_writer ⇄ reviewer · max 2 iterations"


def test_branches_stand_inside_their_step():
    group, *pills, _ = named(svg(example("multi-criteria-lead-scoring")), "rect")
    left, top, width, height = box(group)
    assert len(pills) == 3
    for pill in pills:
        x, y, w, h = box(pill)
        assert left < x < x + w < left + width
        assert top < y < y + h < top + height


def test_conditions_are_written_on_links():
    plan = flat(
        """
        {id: check, condition: {eval: "{{inputs.score}} >= 80", true: hot, false: cold}}
        {id: hot, agent: worker, prompt: x}
        {id: cold, agent: worker, prompt: x}
        """,
        input="score",
    )
    texts = [text.text for text in named(svg(plan), "text")]
    assert {"score >= 80", "else"} <= set(texts)


def test_hostile_names_stay_text():
    root = svg(graph([[]], ['"]<script>&'], name="<b>"))
    assert '1. "]<script>&' in [text.text for text in named(root, "text")]


@pytest.mark.parametrize("plan", [TANGLED, example("research-and-brief"), graph([[]] * 5)])
def test_no_two_boxes_overlap(plan: Plan):
    boxes = [box(rect) for rect in named(svg(plan), "rect")]
    assert len(boxes) == len(plan.steps)
    for (ax, ay, aw, ah), (bx, by, bw, bh) in combinations(boxes, 2):
        assert ax + aw < bx or bx + bw < ax or ay + ah < by or by + bh < ay


def test_no_link_runs_through_a_box():
    root = svg(TANGLED)
    boxes = [box(rect) for rect in named(root, "rect")]
    links = next(path for path in named(root, "path") if path.get("class") == "link")
    # The straight pieces are where a link passes a layer.
    for x, y, end in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", links.get("d") or ""):
        for left, top, width, height in boxes:
            is_beside = not left < float(x) < left + width
            assert is_beside or float(end) <= top + 0.2 or float(y) >= top + height - 0.2


def box(rect: ElementTree.Element) -> tuple[float, float, float, float]:
    x, y, width, height = (float(rect.get(key, "")) for key in ("x", "y", "width", "height"))
    return x, y, width, height
