import re
from html.parser import HTMLParser

import pytest

from stretto.report.html import as_html
from stretto.report.report import report_of
from support.reported_runs import CHAIN, EVIL, GATED, Fail, Give, driven, reported

_VOID = {"meta", "br"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MIXED = """
name: "mixed <b>"
inputs: {topic: {type: string}}
agents: {flaky: {prompt: "Do it.", retry: {max_attempts: 2}}}
steps:
  - {id: a, agent: flaky, prompt: "{{inputs.topic}}"}
  - {id: b, agent: worker, prompt: "{{steps.a.output}}"}
  - {id: c, agent: worker, prompt: "{{steps.b.output}}", on_failure: block}
  - {id: d, agent: worker, prompt: "{{steps.c.output}}"}
"""


class _Page(HTMLParser):
    """What a browser would make of it: every tag opened is closed, in its order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.ids = [], [], [], []
        self._open = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)


def _evil():
    run = driven(_MIXED, {"a": [Fail(EVIL), EVIL], "c": Fail(EVIL)}, topic=EVIL)
    return as_html(report_of(run.state), run.plan)


def test_it_is_one_page_that_asks_for_nothing():
    page = _Page(_evil())
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    assert all(not name.startswith("on") for _, name, _ in page.attributes)
    links = [value for _, name, value in page.attributes if name in ("href", "src", "xlink:href")]
    assert all(link.startswith("#") for link in links)
    assert "url(" not in _evil()


def test_the_policy_forbids_scripts_and_requests():
    page = _Page(_evil())
    (policy,) = [v for _, name, v in page.attributes if name == "content" and "default-src" in v]
    assert policy.startswith(_POLICY)


def test_what_models_say_is_text():
    page = _Page(_evil())
    assert "<script>alert(1)</script>" in page.text
    assert "<img src=x onerror=alert(2)>" in page.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page.text)
    _evil().encode()


def test_every_link_leads_somewhere_and_every_id_is_one():
    page = _Page(_evil())
    assert len(page.ids) == len(set(page.ids))
    targets = {value[1:] for _, name, value in page.attributes if name == "href"}
    labels = {value for _, name, value in page.attributes if name == "aria-labelledby"}
    assert targets | labels <= set(page.ids)


def test_it_can_be_found_around_without_seeing_it():
    page = _Page(_evil())
    assert {"header", "main", "footer", "h1", "h2", "caption", "figure"} <= set(page.tags)
    assert page.tags.count("h1") == 1
    assert page.tags.count("table") == page.tags.count("caption")
    scopes = [value for tag, name, value in page.attributes if (tag, name) == ("th", "scope")]
    assert len(scopes) == page.tags.count("th")
    regions = [value for _, name, value in page.attributes if name == "tabindex"]
    assert regions
    assert set(regions) == {"0"}


def test_the_timeline_is_a_table_too():
    text = _Page(_evil()).text
    assert "The timeline as a table" in text
    assert "When each attempt ran" in text


def test_all_that_a_person_must_know_is_on_the_page():
    run = driven(GATED)
    report = report_of(run.state)
    text = _Page(as_html(report, run.plan)).text
    assert "WAITING" in text
    assert all(issue.says in text for issue in report.issues)


def test_long_outputs_are_folded_and_complete():
    output = "\n".join(f"line {number}" for number in range(500))
    page = as_html(reported(CHAIN, {"c": output}))
    assert "<details><summary>Final output, 4.4KB</summary>" in page
    assert "line 499" in page


def test_the_graph_needs_the_plan_and_nothing_else_does():
    run = driven(CHAIN)
    report = report_of(run.state)
    assert "<svg" in as_html(report, run.plan)
    assert "<svg" not in as_html(report)


@pytest.mark.parametrize("count", [1, 500])
def test_any_number_of_steps_gives_a_page(count):
    steps = "\n".join(f"  - {{id: s{i}, agent: worker, prompt: x}}" for i in range(count))
    run = driven(f"name: many\nsteps:\n{steps}\n", {"s0": Give("x", after=3)})
    page = _Page(as_html(report_of(run.state), run.plan))
    assert {f"step-{i}" for i in range(count)} <= set(page.ids)


def test_the_same_run_gives_the_same_page():
    assert _evil() == _evil()


def test_a_page_of_large_outputs_is_cut_and_says_where_the_rest_is():
    recipe = "name: t\nsteps:\n" + "".join(
        f"  - {{id: s{n}, subagent: worker, prompt: go}}\n" for n in range(30)
    )
    report = reported(recipe, {f"s{n}": "y" * 400_000 for n in range(30)})
    page = as_html(report)
    assert len(page) < 6_000_000
    assert page.count("characters more: stretto output") == 31  # each step, and the final output
