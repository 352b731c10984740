import shutil
import subprocess

import pytest

from stretto.report.diagrams import draw
from support.diagram_plans import example, flat, graph

EXAMPLES = (
    "multi-criteria-lead-scoring",
    "research-and-brief",
    "research-to-proposal",
    "threat-brief",
)


def test_a_chain_leaves_out_what_goes_without_saying():
    drawn = draw(example("research-and-brief"), "dot")
    assert drawn.startswith('digraph "research-and-brief" {')
    assert 'n1 [label="1. gather\\nresearcher"];' in drawn
    assert [line.strip() for line in drawn.splitlines() if "->" in line] == [
        "n1 -> n2;",
        "n2 -> n3;",
    ]


def test_parts_are_a_cluster_and_links_end_at_its_border():
    drawn = draw(example("multi-criteria-lead-scoring"), "dot")
    assert "subgraph cluster_1 {" in drawn
    assert 'n1p2 -> n2 [ltail="cluster_1"];' in drawn


def test_a_route_leaves_from_the_decision_and_the_rest_from_its_border():
    plan = flat(
        """
        {id: check, condition: {eval: "{{inputs.score}} >= 80", true: hot, false: writer}}
        {id: hot, agent: worker, prompt: x}
        {id: send, agent: worker, prompt: x, depends_on: [check, hot]}
        """,
        input="score",
    )
    drawn = draw(plan, "dot")
    assert 'n1 -> n1p1 [label="else"];' in drawn
    assert 'n1 -> n2 [label="score >= 80"];' in drawn
    assert 'n1p1 -> n3 [ltail="cluster_1"];' in drawn


def test_hostile_labels_are_escaped():
    drawn = draw(graph([[]], ['"]<script>\\N&lt;']), "dot")
    assert r'label="1. \"]<script>\\N&amp;lt;\nworker"' in drawn


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("name", EXAMPLES)
def test_graphviz_draws_it(name: str):
    drawn = draw(example(name), "dot")
    done = subprocess.run(
        ["dot", "-Tsvg"], input=drawn, capture_output=True, check=True, encoding="utf-8"
    )
    assert done.stderr == ""
