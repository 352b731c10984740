"""Lists of tasks: read with exact problems, and made into recipes that keep every prompt as it is."""

import pytest

from stretto.lead.tasks import AgentTask, batch_inputs, batch_recipe, read_tasks, step_ids
from stretto.problems.errors import InvalidUsage
from stretto.vocabulary.amounts import Limits

AGENTS = ("researcher", "writer")


@pytest.mark.parametrize(
    "text",
    [
        "- {agent: writer, prompt: Go., description: one}\n- {agent: writer, prompt: '2'}\n",
        '[{"agent": "writer", "prompt": "Go.", "description": "one"}, {"agent": "writer", "prompt": "2"}]',
        '{"agent": "writer", "prompt": "Go.", "description": "one"}\n\n{"agent": "writer", "prompt": "2"}\n',
    ],
    ids=["yaml", "json", "json lines"],
)
def test_a_list_is_read_in_each_form(text: str) -> None:
    read = read_tasks(text, "", AGENTS)
    assert read == (AgentTask("writer", "Go.", "one"), AgentTask("writer", "2"))


def problems(text: str) -> list[tuple[str, int | None]]:
    with pytest.raises(InvalidUsage) as caught:
        read_tasks(text, "tasks", AGENTS)
    return [(each.message, each.place and each.place.line) for each in caught.value.problems]


def test_every_mistake_is_told_with_its_line() -> None:
    found = problems(
        '{"agent": "writr", "prompt": "a"}\n{"agent": "writer"}\n{"agent": "writer", "prompt": " "}'
    )
    assert found == [
        ("task 1: agent 'writr' is not registered", 1),
        ("a task needs 'prompt'", 2),
        ("'prompt' is empty", 3),
    ]


def test_a_line_that_is_no_json_is_told_with_those_that_are_wrong_otherwise() -> None:
    text = '{"agent": "writer", "prompt": "a"}\n\n{"agent": "writer", "prompt":\noops\n{"agent": "writr", "prompt": "x"}'
    with pytest.raises(InvalidUsage) as caught:
        read_tasks(text, "tasks", AGENTS)
    found = [(each.place and each.place.line, each.source_line) for each in caught.value.problems]
    assert found == [(number, text.splitlines()[number - 1]) for number in (3, 4, 5)]
    assert caught.value.problems[2].message == "task 4: agent 'writr' is not registered"
    assert caught.value.problems[2].place is not None
    assert caught.value.problems[2].place.column == text.splitlines()[4].index('"writr"') + 1


def test_what_is_no_list_is_told() -> None:
    (found,) = problems("agent: writer\nprompt: a\n")
    assert found[0].startswith("a batch must be a list of tasks")


@pytest.mark.parametrize("text", ["", "[]", "\n\n"])
def test_an_empty_list_is_refused(text: str) -> None:
    with pytest.raises(InvalidUsage, match="no task"):
        read_tasks(text, "", AGENTS)


def test_more_tasks_than_a_run_may_have_steps_are_refused() -> None:
    with pytest.raises(InvalidUsage, match="2 tasks at the most, and this one has 3"):
        read_tasks("- {agent: writer, prompt: a}\n" * 3, "", AGENTS, Limits(steps=2))


def test_the_cards_are_named_by_the_descriptions() -> None:
    tasks = [
        AgentTask("writer", "a", "Prices & terms!"),
        AgentTask("writer", "b"),
        AgentTask("writer", "c", "…"),
    ]
    assert step_ids(tasks) == ["1-prices-terms", "task-2", "task-3"]


def test_a_prompt_is_no_template() -> None:
    tasks = [AgentTask("writer", "Keep {{this}}.", "{{that}}")]
    assert "this" not in str(batch_recipe(tasks))
    assert "{{that}}" not in str(batch_recipe(tasks)["output"])
    assert batch_inputs(tasks)["tasks"][0]["prompt"] == "Keep {{this}}."  # type: ignore[index,call-overload]


def test_a_line_of_json_ends_only_with_a_line_feed() -> None:
    text = (
        '{"agent": "writer", "prompt": "x\u2028y\x85z"}\r\n{"agent": "writer", "prompt": "z"}\r\n'
    )
    assert [each.prompt for each in read_tasks(text, "tasks", ["writer"])] == ["x\u2028y\x85z", "z"]
