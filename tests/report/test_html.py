import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from stretto.cli.progress.lines import SIGNS
from stretto.events.model import AttemptStarted, ToolEnded
from stretto.report.html import as_html
from stretto.report.model import ChangesReport, StepReports
from stretto.report.report import report_of
from stretto.report.text import MARKS, cost_of
from stretto.report.transcript import transcripts
from stretto.vocabulary.amounts import Usage
from support.reported_runs import CHAIN, EVIL, GATED, NEW_YEAR, Fail, Give, driven, reported
from support.scheduling import Driven, plan_of

_VOID = {"meta", "br", "hr"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'none'"
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
    assert {"nav", "section"} <= set(page.tags)
    assert page.tags.count("h1") == 1
    assert re.findall(r"<summary><h3>(\w)</h3>", _evil()) == ["a", "b", "c", "d"]
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
    output = {"lines": [f"line {number}" for number in range(500)]}
    page = as_html(reported(CHAIN, {"b": output}))
    assert "<details><summary>Output of b, " in page
    assert "line 499" in page


def test_the_answer_is_rendered_and_stands_first():
    page = as_html(reported(CHAIN, {"c": "# Tea\n\n- **less** caffeine"}))
    assert "<h3>Tea</h3>" in page
    assert "<li><strong>less</strong> caffeine</li>" in page
    assert page.index('id="answer"') < page.index('id="issues"') < page.index('id="steps"')
    assert "# Tea\n\n- **less** caffeine" in page  # as it was written


@pytest.mark.parametrize(
    "output",
    ['{"a": [1,   2]}', "def f():\n    return 1", "a   b   c\n1   2   3", "<p>x</p>", {"a": 1}],
)
def test_what_is_no_prose_is_shown_as_it_is(output):
    page = as_html(reported(CHAIN, {"c": output}))
    assert 'class="prose"' not in page.partition('id="issues"')[0]
    shown = output if isinstance(output, str) else '{\n  "a": 1\n}'
    assert escape(shown) in page


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
    found = re.findall(r'characters more: <code class="command">stretto output run-1', page)
    assert len(found) == 31  # each step, and the answer


_WORKED = """
name: worked
agents:
  reader: {prompt: "You read.", tools: [Read], retry: {max_attempts: 2},
           validation: {rules: ["Must include score field"]}}
steps:
  - {id: a, agent: reader, prompt: "Read it."}
  - {id: b, agent: worker, prompt: "Use {{steps.a.output}}", on_failure: block}
  - {id: c, agent: worker, prompt: "{{steps.b.output}}"}
"""


def _worked():
    """A run with tool calls, one of them refused, and a failed step."""
    plan = plan_of(_WORKED)
    run = Driven(plan, {"a": "fine", "b": Fail("no such file")}, now=NEW_YEAR).start()
    while run.step():
        started = run.journal[-1]
        if isinstance(started, AttemptStarted) and started.agent == "reader":
            read = {"file_path": "note.txt"}
            run.see(
                ToolEnded(run.now, started.attempt, 1, "Read", read, "ok", 9, 0.1, result="words")
            )
            asked = {"file_path": "/etc/passwd"}
            why = "Refused: it lies outside"
            run.see(ToolEnded(run.now, started.attempt, 2, "Read", asked, "refused", 0, 0.0, why))
    return run


def _worked_page():
    run = _worked()
    return as_html(report_of(run.state), run.plan, transcripts(run.plan, run.journal))


def _sections(page):
    return re.findall(r'<details class="(is-[a-z-]+)"( open)?>', page)


def test_the_failed_step_is_open_and_the_others_are_closed():
    assert _sections(_worked_page()) == [
        ("is-succeeded", ""),
        ("is-failed", " open"),
        ("is-held", ""),
    ]
    run = driven(GATED)
    page = as_html(report_of(run.state), run.plan)
    assert _sections(page) == [("is-succeeded", ""), ("is-awaiting-approval", " open")]
    asked = page.partition('id="step-1"')[2]
    assert "stretto approve run-1 publish --show" in asked


def test_the_error_comes_first():
    page = _worked_page()
    failed = page.partition('id="step-1"')[2].partition('id="step-2"')[0]
    assert failed.index("no such file") < failed.index("Agent") < failed.index("Use fine")


def test_tool_calls_have_their_verdicts():
    page = _worked_page()
    calls = page.partition("Tool calls of a</caption>")[2].partition("</table>")[0]
    assert re.search(r"note\.txt.*?is-ok.*?OK.*?words", calls)
    assert re.search(r"/etc/passwd.*?is-refused.*?REFUSED.*?it lies outside", calls)


def test_prompts_and_checks_are_shown():
    page = _worked_page()
    assert "Prompt, as it was sent" in page
    assert "rule: Must include score field" in page


def test_the_graph_shows_how_each_step_stands_and_leads_to_it():
    page = _Page(_worked_page())
    for number, state in enumerate(("✓ succeeded", "✗ failed", "- held")):
        assert state in page.text
        assert ("a", "href", f"#step-{number}") in page.attributes
    classes = [value for tag, name, value in page.attributes if (tag, name) == ("g", "class")]
    assert classes == ["stated is-succeeded", "stated is-failed", "stated is-held"]


def test_a_large_graph_is_folded():
    steps = "\n".join(f"  - {{id: s{i}, agent: worker, prompt: x}}" for i in range(41))
    run = driven(f"name: many\nsteps:\n{steps}\n")
    page = as_html(report_of(run.state), run.plan)
    assert "<details><summary>The graph of 41 steps</summary>" in page


def test_a_change_is_a_diff_whose_lines_are_told_apart():
    report = report_of(_worked().state)
    changes = ChangesReport(
        1, 1, 1, True, (), "kept", "merged", patch="@@ -1 +1 @@\n-<b>\n+two\n x"
    )
    step = replace(report.steps[0], changes=changes)
    page = as_html(replace(report, steps=StepReports((step, *report.steps[1:]))))
    assert '<span class="removed">-&lt;b&gt;\n</span><span class="added">+two\n</span>' in page


def test_local_models_are_free_and_others_have_an_unknown_price():
    used = Usage(input_tokens=5)

    def price(*models, total=used):
        return cost_of(total, [(model, used, False) for model in models])

    assert price("local:qwen", "embedded") == "free (local)"
    assert price("local:qwen", "openai:x") == "unknown"
    assert price() == "unknown"
    assert price("command", "python:rate", "local:qwen") == "free (local)"
    assert price("command", "scripted") == "free"


def test_a_sum_of_which_a_part_is_not_known_is_the_least_that_was_paid():
    paid, used, nothing = Usage(input_tokens=5, usd=0.5), Usage(input_tokens=5), Usage()
    assert cost_of(paid, [("openai:x", paid, False)]) == "$0.5000"
    assert cost_of(paid, [("openai:x", paid, False), ("local:q", used, False)]) == "$0.5000"
    assert cost_of(paid, [("openai:x", paid, False), ("own:y", used, False)]) == "at least $0.5000"
    assert cost_of(paid, [("openai:x", paid, False), ("", nothing, True)]) == "at least $0.5000"
    # A provider that refused the call was paid nothing; one that was cut short has not said.
    assert cost_of(nothing, [("", nothing, False)]) == "none"
    assert cost_of(nothing, [("openai:x", nothing, True)]) == "unknown"


def test_signs_are_those_of_the_terminal():
    assert {word: MARKS[word] for word in SIGNS} == dict(SIGNS)


def test_a_page_of_500_steps_with_large_outputs_and_transcripts_stays_small():
    steps = "".join(
        f"  - {{id: s{n}, agent: worker, prompt: '{n} {{{{inputs.x}}}}'}}\n" for n in range(500)
    )
    recipe = f"name: large\ninputs: {{x: {{type: string}}}}\nsteps:\n{steps}"
    run = driven(recipe, {f"s{n}": "word " * 13_000 for n in range(500)}, x="y" * 20_000)
    page = as_html(report_of(run.state), run.plan, transcripts(run.plan, run.journal))
    assert len(page) < 8_000_000
    assert page.count("stretto output run-1 s") == 500
    assert page.count("stretto logs run-1 s") >= 500


def test_the_transcripts_of_a_large_map_fit_into_memory():
    recipe = (
        "name: mapped\ninputs: {all: {type: array}}\n"
        "steps: [{id: m, map: {over: '{{inputs.all}}', agent: worker, prompt: '{{item}}'}}]\n"
    )
    run = driven(recipe, {"m": "y" * 4_000}, all=["x" * 4_000] * 1_000)
    logs = transcripts(run.plan, run.journal)
    kept = sum(len(entry.text) for entries in logs.values() for entry in entries)
    assert kept < 5_000_000
    page = as_html(report_of(run.state), run.plan, logs)
    assert len(page) < 1_000_000
    assert "980 more attempts" in page
