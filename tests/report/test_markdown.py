import re

from stretto.report.markdown import as_markdown
from stretto.report.model import Issue
from stretto.report.text import issue_lines
from support.reported_runs import CHAIN, EVIL, GATED, Fail, Give, priced, reported


def _section(text, title):
    after = text.split(f"\n### {title}\n", 1)[1]
    return re.split(r"\n\n### ", after, maxsplit=1)[0]


def _outside_fences(text):
    return re.sub(r"^(`{3,})\w*\n.*?\n\1$", "", text, flags=re.MULTILINE | re.DOTALL)


def test_it_has_the_sections_of_the_report_in_their_order():
    text = as_markdown(reported(CHAIN))
    assert text.startswith("## Workflow Execution Report: chain\n")
    assert re.findall(r"^### (.+)$", text, re.MULTILINE) == [
        "Execution Summary",
        "Step-by-Step Results",
        "Critical Path",
        "Final Output",
        "Issues and Warnings",
    ]
    assert text.endswith("### Issues and Warnings\n- None")


def test_the_summary_counts():
    recipe = CHAIN.replace("id: b,", "id: b, on_failure: block,")
    summary = _section(as_markdown(reported(recipe, {"b": Fail()})), "Execution Summary")
    assert summary.splitlines()[:8] == [
        "- Status: PARTIAL",
        "- Total steps: 3",
        "- Steps completed: 1",
        "- Steps failed: 1",
        "- Steps skipped: 1 (1 held)",
        "- Total agents deployed: 2",
        "- Total time: 2s",
        "- Retries used: 0",
    ]


def test_the_table_says_one_row_a_step():
    text = as_markdown(reported(CHAIN, {"c": "x" * 2100}))
    assert _section(text, "Step-by-Step Results").splitlines() == [
        "| Step | Agent  | Status    | Duration | Retries | Output Size |",
        "|------|--------|-----------|----------|---------|-------------|",
        "| a    | worker | SUCCEEDED | 1s       | 0       | 1B          |",
        "| b    | worker | SUCCEEDED | 1s       | 0       | 1B          |",
        "| c    | worker | SUCCEEDED | 1s       | 0       | 2.1KB       |",
    ]


def test_a_run_that_waits_says_so():
    text = as_markdown(reported(GATED))
    assert "- Status: WAITING" in text
    assert "- Steps not ended: 1" in text
    assert "- publish: awaits approval: stretto approve run-1 publish" in text


def test_cost_is_unknown_unless_somebody_said_it():
    assert "- Cost: unknown" in as_markdown(reported(CHAIN))
    assert "- Cost: at least $0.2500" in as_markdown(reported(CHAIN, {"a": priced("x", 0.25)}))


def test_plain_text_stays_as_it_is():
    output = "**Bold**, a list:\n\n- one\n- two [1]\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    assert _section(as_markdown(reported(CHAIN, {"c": output})), "Final Output") == output


def test_an_output_that_looks_like_the_report_is_fenced():
    text = as_markdown(reported(CHAIN, {"c": EVIL}))
    assert "\n````text\n" in text
    outside = _outside_fences(text)
    assert outside.count("### Issues and Warnings") == 1
    assert "<script>" not in outside


def test_json_is_fenced_and_can_be_read():
    text = as_markdown(reported(CHAIN, {"c": {"score": 7}}))
    assert _section(text, "Final Output") == '```json\n{\n  "score": 7\n}\n```'


def test_what_a_model_says_in_an_error_stays_in_its_line():
    text = as_markdown(reported(CHAIN, {"b": Fail(EVIL)}))
    (line,) = [line for line in text.splitlines() if line.startswith("- b: failed")]
    assert "\\<script>alert(1)\\</script>" in line
    assert "\\| pipe" in line
    assert "!\\[x\\](http" in line


def test_no_control_character_survives_and_the_text_can_be_encoded():
    text = as_markdown(reported(CHAIN, {"b": Fail(EVIL), "c": EVIL + "\x9b\x07\r\x7f"}))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    text.encode()


def test_a_long_error_keeps_its_beginning_and_its_end():
    error = "Traceback\n" + "  in a call\n" * 1000 + "RuntimeError: no canvas"
    text = as_markdown(reported(CHAIN, {"b": Fail(error)}))
    (line,) = [line for line in text.splitlines() if line.startswith("- b: failed")]
    assert line.startswith("- b: failed: Traceback in a call")
    assert line.endswith("RuntimeError: no canvas")
    assert len(line) < 1100


def test_an_empty_output_is_said():
    assert _section(as_markdown(reported(GATED)), "Final Output") == "(none)"
    assert _section(as_markdown(reported(CHAIN, {"c": Give(" ")})), "Final Output") == "(empty)"


def test_what_is_said_of_many_steps_in_the_same_words_is_one_line():
    issues = [Issue("warning", "no file changed", f"s{i}") for i in range(8)]
    issues += [Issue("warning", "cut", "s1"), Issue("stopped", "the deadline passed")]
    assert issue_lines(issues) == [
        "s0, s1, s2, s3, s4 and 3 more: no file changed",
        "s1: cut",
        "the deadline passed",
    ]
