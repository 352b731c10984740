from stretto.plan.composed_prompt import append_section, compose, under_headings


def nothing() -> str:
    return ""


def test_an_input_stands_under_its_heading_after_the_agent_s_own_words():
    assert compose("input", "Own.\n", "In", None, nothing).prompt == "Own.\n\n## Input\n\nIn"
    assert compose("input", "", "In", None, nothing).prompt == "## Input\n\nIn"
    assert compose("input", "Own", " ", None, nothing).prompt == "Own"


def test_results_stand_under_the_ids_of_their_steps():
    assert under_headings([]) == ""
    assert under_headings([("a", "1"), ("b", "2")]) == "### a\n1\n\n### b\n2"


def test_the_prompt_style_keeps_the_agent_s_own_prompt_apart():
    told = compose("prompt", "Be", "Do", None, nothing)
    assert (told.instructions, told.prompt) == ("Be", "Do")


def test_an_agent_who_is_told_nothing_gets_what_it_is_handed_after_its_own_prompt():
    told = compose("prompt", "Be", None, "that", nothing)
    assert (told.instructions, told.prompt) == ("", "Be\n\n## Input\n\nthat")
    assert compose("prompt", "Be", None, None, nothing).prompt == "Be"


def test_a_task_is_followed_by_what_was_found_before_it():
    assert compose("task", "Be", "Do", None, nothing).prompt == "Do"
    found = compose("task", "Be", "Do", None, lambda: "### a\n1")
    assert (found.instructions, found.prompt) == ("Be", "Do\n\n## Results so far\n\n### a\n1")


def test_a_section_stands_apart_from_what_is_before_it():
    assert append_section("a\n", "b") == "a\n\nb"
    assert append_section(" ", "b") == "b"
