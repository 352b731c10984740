from stretto.report.html import as_html
from stretto.report.step_section import group_alike
from support.reported_runs import Fail, Give, reported, step_of

TRIED = """
name: tried
agents: {flaky: {prompt: "Do it.", retry: {max_attempts: 5}}}
steps:
  - {id: a, agent: flaky, prompt: x}
"""
MAPPED = """
name: mapped
inputs: {all: {type: array}}
steps:
  - {id: m, map: {over: "{{inputs.all}}", agent: worker, prompt: "{{item}}"}}
"""


def names(report, step):
    groups = group_alike(step_of(report, step).attempts)
    return [(group.name, group.attempts[0].status) for group in groups]


def test_equal_failures_are_one_row_and_others_are_their_own():
    script = {"a": [Fail("slow"), Fail("slow"), Fail("bad", "validation"), Fail("slow"), "ok"]}
    report = reported(TRIED, script)
    assert names(report, "a") == [
        ("1, 2, 4", "failed"),
        ("3", "failed"),
        ("5", "succeeded"),
    ]
    page = as_html(report)
    assert "3 attempts failed alike: " in page
    assert page.count(">error: slow<") == 1


def test_equal_failures_in_a_row_are_a_range():
    report = reported(TRIED, {"a": Fail("slow")})
    assert names(report, "a") == [("1 to 5", "failed")]
    (group,) = group_alike(step_of(report, "a").attempts)
    assert group.seconds == 5.0


def test_a_map_of_many_elements_is_a_row_for_each_outcome():
    report = reported(MAPPED, {"m": Give("x")}, all=list(range(40)))
    assert names(report, "m") == [("40 of 40 parts", "succeeded")]


def test_few_parts_keep_their_rows():
    report = reported(MAPPED, {"m": Give("x")}, all=[1, 2])
    assert len(names(report, "m")) == 2
