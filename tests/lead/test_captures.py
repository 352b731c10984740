"""Delegations that worked become a recipe: what flowed, what came from the person, and nothing else."""

import pytest

from stretto.documents.document import read_text
from stretto.documents.node import plain
from stretto.lead.captures import (
    CapturedRecipe,
    CaptureSource,
    RecordedDelegation,
    capture,
    differences,
)
from stretto.problems.errors import InvalidUsage

FOUND = "Acme sells looms to weavers.\n\nIt was founded in 1901 in Ghent, and has forty people.\n"
RIVALS = "Its rivals are Initech and Globex, who sell spindles."


def done(
    prompt: str,
    output: str,
    at: float,
    agent: str = "researcher",
    title: str = "",
    takes: float = 1,
) -> RecordedDelegation:
    return RecordedDelegation(agent, prompt, output, at, at + takes, title)


def chain(
    words: str = "Research Acme, then write a brief about Acme for investors.",
) -> CaptureSource:
    return CaptureSource(
        (
            done("Research the company Acme.", FOUND, 0, title="research"),
            done("Who are the rivals of Acme?", RIVALS, 0, title="rivals"),
            done(
                f"Write a brief about Acme. Research:\n\n> {FOUND.strip()}\n\nRivals: {RIVALS}",
                "Acme, the loom maker: a brief.",
                2,
                "writer",
                "brief",
            ),
        ),
        words,
        "Here it is:\n\nAcme, the loom maker: a brief.",
    )


def content(captured: CapturedRecipe) -> dict[str, object]:
    root = read_text(captured.recipe).root
    assert root is not None
    found = plain(root)
    assert isinstance(found, dict)
    return dict(found)


def test_outputs_that_were_handed_on_are_references_and_names_are_inputs() -> None:
    captured = capture(chain(), "acme")
    assert content(captured) == {
        "name": "acme",
        "description": "Research Acme, then write a brief about Acme for investors.",
        "inputs": [{"name": "name", "default": "Acme"}],
        "steps": [
            {
                "id": "research",
                "subagent": "researcher",
                "prompt": "Research the company {{inputs.name}}.",
            },
            {
                "id": "rivals",
                "subagent": "researcher",
                "prompt": "Who are the rivals of {{inputs.name}}?",
            },
            {
                "id": "brief",
                "subagent": "writer",
                "prompt": "Write a brief about {{inputs.name}}. Research:\n\n> {{steps.research.output}}\n\n"
                "Rivals: {{steps.rivals.output}}",
            },
        ],
    }
    assert [each.uses for each in captured.steps] == [(), (), ("research", "rivals")]


def test_blanks_between_the_words_of_an_output_do_not_matter() -> None:
    folded = "Acme sells looms\n   to weavers. It was founded in 1901 in Ghent,\n   and has forty people."
    source = CaptureSource((done("Look.", FOUND, 0), done(f"Sum up ({folded}) now.", "Short.", 2)))
    assert capture(source).steps[1].prompt == "Sum up ({{steps.researcher.output}}) now."


def test_what_began_before_another_ended_was_not_told_its_output() -> None:
    source = CaptureSource((done("Look.", FOUND, 0, takes=5), done(f"Sum up {FOUND}", "Short.", 2)))
    assert capture(source).steps[1].uses == ()


def test_the_longer_output_wins_where_one_quotes_another() -> None:
    both = f"All in all: {FOUND.strip()} And {RIVALS}"
    source = CaptureSource(
        (
            done("Look.", FOUND, 0),
            done(f"Add to {FOUND}", both, 2),
            done(f"Polish: {both}", "Done.", 4),
        )
    )
    assert [each.uses for each in capture(source).steps] == [(), ("researcher",), ("researcher-2",)]


def test_a_short_output_makes_no_edge_and_a_quoted_part_is_noted() -> None:
    source = CaptureSource((done("Rate it.", "yes", 0), done("Is yes an answer?", "It is one.", 2)))
    assert capture(source).steps[1].uses == ()
    long = "The first paragraph is the long one, with all that matters about looms and their makers in it."
    source = CaptureSource(
        (done("Look.", f"{long}\n\nBye.", 0), done(f"Use this: {long}", "Used.", 2))
    )
    captured = capture(source)
    assert captured.steps[1].prompt == "Use this: {{steps.researcher.output}}"
    assert "a part of what 'researcher' gave" in captured.notes[0]


@pytest.mark.parametrize(
    ("words", "prompts", "inputs"),
    [
        ("Compare 2019 with 2024.", ["Read 2019.", "Read 2024."], {"number": "2019", "number_2": "2024"}),
        ("look at https://a.example/x, please", ["Fetch https://a.example/x now.", "b"],
         {"url": "https://a.example/x"}),
        ('Translate "Guten Tag" into French', ["Translate Guten Tag.", "Check the French."],
         {"text": "Guten Tag", "name": "French"}),
        ("Research heat pumps and write a leaflet on heat pumps",
         ["Facts on heat pumps.", "A leaflet on heat pumps."], {"topic": "heat pumps"}),
        ("Check the invoices of the vendor Globex Ltd in notes/may.csv.",
         ["Read notes/may.csv.", "Is Globex Ltd right?"], {"vendor": "Globex Ltd", "file": "notes/may.csv"}),
        ("Write it. Then send it.", ["Write it well.", "Then send it."], {}),
        ("do the thing", ["a", "b"], {}),
    ],
)  # fmt: skip
def test_values_in_the_words_of_the_person_become_inputs(
    words: str, prompts: list[str], inputs: dict[str, str]
) -> None:
    made = tuple(done(prompt, "An answer.", number * 2) for number, prompt in enumerate(prompts))
    assert capture(CaptureSource(made, words)).inputs == inputs


def test_without_words_only_what_prompts_repeat_becomes_an_input() -> None:
    made = (
        done("Who is Ada Lovelace?", FOUND, 0),
        done("Where did Ada Lovelace meet Babbage?", "x", 2),
    )
    assert capture(CaptureSource(made)).inputs == {"name": "Ada Lovelace"}


def test_inputs_that_are_named_come_first_and_must_be_there() -> None:
    source = chain()
    named = CaptureSource(source.delegations, source.words, source.answer, {"company": "Acme"})
    assert capture(named).inputs == {"company": "Acme"}
    lost = CaptureSource(source.delegations, source.words, source.answer, {"company": "Umbrella"})
    with pytest.raises(InvalidUsage, match="no prompt holds 'Umbrella'"):
        capture(lost)


@pytest.mark.parametrize("value", ["", "  ", "Initech"])
def test_a_given_input_must_stand_where_a_reference_can(value: str) -> None:
    steps = (
        done("Look at C:\\Initech,  now, {Initech}", FOUND, 0),
        done("Check {Initech} and C:\\Initech", RIVALS, 2),
    )
    with pytest.raises(InvalidUsage, match="no prompt holds"):
        capture(CaptureSource(steps, given={"company": value}))


def test_behind_a_brace_or_a_backslash_a_value_stays_and_an_output_is_set_off() -> None:
    steps = (
        done("Research Acme, see C:\\Acme and {Acme}", FOUND, 0, title="one"),
        done(f"Check {{{FOUND.strip()}}} of Acme", RIVALS, 2, title="two"),
    )
    captured = capture(CaptureSource(steps, given={"company": "Acme"}))
    first, second = captured.steps
    assert first.prompt == "Research {{inputs.company}}, see C:\\Acme and {Acme}"
    assert second.prompt == "Check { {{steps.one.output}}} of {{inputs.company}}"
    assert not read_text(captured.recipe).problems


def test_braces_of_a_prompt_stay_text() -> None:
    source = CaptureSource((done("Explain {{inputs.x}}.", FOUND, 0), done("And {{ y }}?", "z", 2)))
    assert capture(source).steps[0].prompt == r"Explain \{{inputs.x}}."


def test_one_delegation_is_no_workflow() -> None:
    with pytest.raises(InvalidUsage, match="fewer than two"):
        capture(CaptureSource((done("Look.", FOUND, 0),)))


def test_steps_that_nobody_used_are_all_given() -> None:
    source = CaptureSource(
        (done("Look.", FOUND, 0, title="one"), done("See.", RIVALS, 0, title="two"))
    )
    assert content(capture(source))["output"] == (
        "## one\n\n{{steps.one.output}}\n\n## two\n\n{{steps.two.output}}"
    )


def test_a_replay_that_differs_says_where() -> None:
    captured = capture(chain(), "acme")
    prompts = {each.id: each.done.prompt for each in captured.steps}
    edges = {each.id: list(each.uses) for each in captured.steps}
    assert differences(captured, prompts, edges) == ()
    assert differences(
        captured, {**prompts, "brief": "Something."}, {**edges, "rivals": ["brief"]}
    ) == (
        "step 'rivals' waits for brief, and was told nothing",
        "step 'brief' was asked something else",
    )


def batch(*prompts: str) -> tuple[RecordedDelegation, ...]:
    return tuple(
        RecordedDelegation("writer", prompt, f"It is about {number} things.", 2, 3, batch="b")
        for number, prompt in enumerate(prompts)
    )


def test_a_batch_over_what_a_step_gave_is_a_map_over_that() -> None:
    listed = done("List the makers.", '["Acme", "Initech", "Globex"]', 0, title="list")
    prompts = batch("Who is Acme, please?", "Who is Initech, please?", "Who is Globex, please?")
    captured = capture(CaptureSource((listed, *prompts)))
    assert content(captured)["steps"][1] == {  # type: ignore[index]
        "id": "who-is-please",
        "map": {"over": "{{steps.list.output}}", "agent": "writer"},
        "prompt": "Who is {{item}}, please?",
    }
    assert (captured.steps[1].uses, dict(captured.inputs)) == (("list",), {})


@pytest.mark.parametrize(
    "prompts",
    [
        ("Who is Acme?", "Who is Initech?"),
        ("Write a brief about Acme.", "Write to all of its rivals in Ghent.", "Write it up."),
        ("Who is Acme?", "Who is Acme?", "Who is Acme?"),
        ("Read it:\n- a\n- b\nNow.", "Read it:\n- c\n- d\nNow.", "Read it:\n- e\n- f\nNow."),
        ("Acme", "Initech", "Globex"),
    ],
    ids=["two", "no form", "equal", "long parts", "nothing in common"],
)
def test_tasks_without_one_form_stay_apart(prompts: tuple[str, ...]) -> None:
    captured = capture(CaptureSource(batch(*prompts)))
    assert [each.over for each in captured.steps] == [""] * len(prompts)


def test_an_item_that_another_step_gave_keeps_its_edge() -> None:
    first = done("Name the largest.", "Acme Corporation", 0, title="largest")
    prompts = batch(
        "Tell me who is Acme Corporation.", "Tell me who is Initech.", "Tell me who is Globex."
    )
    captured = capture(CaptureSource((first, *prompts)))
    assert captured.steps[1].uses == ("largest",)
    assert len(captured.steps) == 4


def test_a_workflow_is_told_outputs_and_inputs_as_an_agent_is() -> None:
    ran = RecordedDelegation(
        "", "", "A poster.", 2, 3, workflow="poster",
        inputs={"facts": f"Facts: {RIVALS}", "count": 3, "for": "Acme"},
    )  # fmt: skip
    captured = capture(
        CaptureSource((done("Rivals of Acme?", RIVALS, 0), ran), "A poster for Acme")
    )
    assert content(captured)["steps"][1] == {  # type: ignore[index]
        "id": "poster",
        "workflow": "poster",
        "inputs": {
            "facts": "Facts: {{steps.researcher.output}}", "count": 3, "for": "{{inputs.name}}",
        },
    }  # fmt: skip
    with pytest.raises(InvalidUsage, match="'poster' is a workflow already"):
        capture(CaptureSource((ran,)))
