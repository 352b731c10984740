from textwrap import dedent

from stretto.report.diagrams import draw
from support.diagram_plans import example, flat, graph


def test_a_step_is_a_box_with_a_safe_id_and_a_gate_another_shape():
    plan = flat(
        """
        {id: end, agent: writer, prompt: x}
        {id: publish, agent: worker, prompt: x, depends_on: end, gate: human}
        """
    )
    assert draw(plan, "mermaid") == dedent(
        """\
        flowchart TD
            n1["1#46; end<br/>writer"]
            n2{{"2#46; publish<br/>worker<br/>(human gate)"}}
            n1 --> n2
        """
    )


def test_parallel_branches_are_a_subgraph():
    assert draw(example("multi-criteria-lead-scoring"), "mermaid") == dedent(
        """\
        flowchart TD
            subgraph n1["1#46; parallel_scoring"]
                direction TB
                n1p1["1a#46; firmographic<br/>firmographic_scorer"]
                n1p2["1b#46; technographic<br/>technographic_scorer"]
                n1p3["1c#46; intent<br/>intent_scorer"]
            end
            n2["2#46; aggregate<br/>aggregator"]
            n1 --> n2
        """
    )


def test_a_decision_is_a_diamond_with_labelled_links():
    plan = flat(
        """
        {id: check, condition: {eval: "{{inputs.score}} >= 80", true: hot, false: cold}}
        {id: hot, agent: worker, prompt: x}
        {id: cold, agent: worker, prompt: x}
        """,
        input="score",
    )
    drawn = draw(plan, "mermaid")
    assert 'n1{"1#46; check"}' in drawn
    assert 'n1 -->|"score #62;= 80"| n2' in drawn
    assert 'n1 -->|"else"| n3' in drawn


def test_a_loop_has_a_labelled_way_back():
    drawn = draw(example("research-to-proposal"), "mermaid")
    assert "n5p1 --> n5p2" in drawn
    assert 'n5p2 -.->|"FAIL: feedback, max 2 iterations"| n5p1' in drawn


def test_equal_stages_of_a_map_stay_apart():
    plan = flat(
        """
        {id: a, agent: worker, prompt: x, output: {format: json}}
        {id: m, map: {over: "{{steps.a.output}}", stages: [{agent: worker, input: x},
            {agent: worker, input: x}], reduce: writer}}
        """
    )
    assert "n2p1 --> n2p2 --> n2p3" in draw(plan, "mermaid")


def test_hostile_labels_are_escaped():
    drawn = draw(graph([[]], ['"]<script>`%%{init}']), "mermaid")
    assert 'n1["1#46; #34;#93;#60;script#62;#96;#37;#37;#123;init#125;<br/>worker"]' in drawn


def links_of(condition: str) -> list[str]:
    plan = flat(
        f"""
        {{id: route, {condition}}}
        {{id: hot, agent: writer, prompt: x}}
        {{id: cold, agent: writer, prompt: x}}
        {{id: end, agent: writer, prompt: "{{{{steps.route.output}}}}"}}
        """
    )
    return [line.strip() for line in draw(plan, "mermaid").splitlines() if "-->" in line]


def test_a_fork_is_left_through_its_ways():
    assert links_of("condition: {eval: 1 < 2, true: hot, false: cold}") == [
        'n1 -->|"1 #60; 2"| n2',
        'n1 -->|"else"| n3',
        "n2 --> n4",
        "n3 --> n4",
    ]


def test_a_fork_with_nothing_on_one_side_has_an_arrow_past_its_ways():
    assert "n1 --> n4" in links_of("switch: {value: run.id, cases: {a: hot, b: cold}}")
