"""What a writer changed is in the report, and can do its reader no harm."""

from dataclasses import replace

from stretto.report.markdown import as_markdown
from stretto.report.model import ChangesReport, Report
from stretto.report.report import report_of, with_patches
from stretto.schedule.state import begin
from support.recipes import plan_of

PATCH = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two \x1b[2J```\n"


def changed() -> Report:
    state = begin(plan_of("name: t\nsteps: [{id: a, subagent: worker, prompt: go}]"))
    report = report_of(state)
    changes = ChangesReport(1, 1, 1, True, (), "kept")
    return replace(report, steps=(replace(report.steps[0], changes=changes),))


def test_the_patch_stands_in_its_own_fence_without_control_codes() -> None:
    text = as_markdown(with_patches(changed(), lambda step: PATCH))
    assert "### Changes of a\n````diff\n" in text
    assert "+two" in text
    assert "\x1b" not in text


def test_a_long_patch_is_cut_and_says_so() -> None:
    text = as_markdown(with_patches(changed(), lambda step: b"+x\n" * 5_000))
    assert text.count("+x") == 200
    assert "lines more: stretto diff shows them" in text


def test_a_patch_that_is_gone_is_left_out() -> None:
    assert "### Changes" not in as_markdown(with_patches(changed(), lambda step: None))
