from make import flat, plan_of
from weft.plan.brief_text import compose, under_headings, under_input
from weft.plan.model import Delegate


def test_an_input_stands_under_its_heading_after_the_agent_s_own_words():
    assert under_input("Own.\n", "In") == "Own.\n\n## Input\n\nIn"
    assert under_input("", "In") == "## Input\n\nIn"
    assert under_input("Own", " ") == "Own"


def test_results_stand_under_the_ids_of_their_steps():
    assert under_headings([]) == ""
    assert under_headings([("a", "1"), ("b", "2")]) == "### a\n\n1\n\n### b\n\n2"


def test_the_prompt_style_keeps_the_agent_s_own_prompt_apart():
    plan = plan_of(flat("{id: a, subagent: own, prompt: Do}", head="agents: {own: {prompt: Be}}"))
    work = plan.steps[0].work
    assert isinstance(work, Delegate)
    told = compose(work.brief, plan.agents["own"], lambda template: template.text, list)
    assert (told.instructions, told.prompt) == ("Be", "Do")


def test_a_task_without_results_is_the_task_alone():
    plan = plan_of("steps:\n  - {id: a, task: Do}\n")
    work = plan.steps[0].work
    assert isinstance(work, Delegate)
    told = compose(work.brief, plan.agents["default"], lambda template: template.text, list)
    assert told.prompt == "Do"
