"""Whatever was delegated in whatever words: the recipe that is captured asks what was asked."""

import re
from random import Random

from hypothesis import given, settings, strategies as st

from stretto.documents.document import read_text
from stretto.documents.node import plain
from stretto.lead.captures import (
    CapturedStep,
    CaptureSource,
    RecordedDelegation,
    capture,
    says_same,
)

WORDS = (
    "Acme", "looms", "{{inputs.x}}", "{{", "}}", "\\{{", "2024", "'q'", '"two words"', "é✓", "yes:",
    "https://a.example/b", "file.md", "\n\n", "\n- x", "# c", "- item", "null", "a@b.example", "|",
    "`code`", "\t", "Globex Ltd", "{{item}}", "steps.a.output", "100%",
)  # fmt: skip
_REFERENCE = re.compile(r"\\\{\{|\{\{([^{}]*)\}\}")


def text(chance: Random, most: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, most)))


def delegated(chance: Random) -> CaptureSource:
    """Tasks, batches and workflows, each of which may be told what those before it gave."""
    done: list[RecordedDelegation] = []
    for number in range(chance.randint(2, 5)):
        at = number * 2.0
        told = [each.output for each in done if chance.random() < 0.5]
        prompt = " ".join([text(chance, 8), *told, text(chance, 3)])
        match chance.choice(("batch", "workflow", "task", "task")):
            case "batch":
                before, after = text(chance, 4), text(chance, 3)
                done += [
                    RecordedDelegation(
                        "writer", f"{before} {item}{n} {after}", f"{text(chance, 6)} made {number}{n}",
                        at, at + 1, batch=f"b{number}",
                    )
                    for n, item in enumerate(chance.choices(("Acme", "a b", "é"), k=chance.randint(2, 5)))
                ]  # fmt: skip
            case "workflow":
                inputs = {"p": prompt, "c": 3}
                made = text(chance, 8)
                done.append(
                    RecordedDelegation("", "", made, at, at + 1, workflow="w", inputs=inputs)
                )
            case _:
                title = text(chance, 2) if chance.random() < 0.5 else ""
                done.append(
                    RecordedDelegation("writer", prompt, text(chance, 10), at, at + 1, title)
                )
    words = text(chance, 8) if chance.random() < 0.6 else ""
    gave = "\n".join(f"- {each.output}" for each in done if each.batch)
    done.append(RecordedDelegation("writer", f"All:\n{gave}", "The end of it all.", 90, 91))
    return CaptureSource(tuple(done), words, text(chance, 5))


def filled_in(template: str, steps: dict[str, str], inputs: dict[str, str], item: str = "") -> str:
    def value(found: "re.Match[str]") -> str:
        path = found[1]
        if path is None:
            return "{{"
        kind, _, name = path.partition(".")
        return {"item": item, "inputs": inputs.get(name, "")}.get(
            kind, steps.get(name.partition(".")[0], "")
        )

    return _REFERENCE.sub(value, template)


def asks(
    step: CapturedStep, template: object, steps: dict[str, str], inputs: dict[str, str]
) -> bool:
    """Whether the step, as it is written, is told what was told."""
    assert isinstance(template, dict)
    if step.done.workflow:
        assert template["inputs"]["c"] == 3
        return says_same(
            filled_in(template["inputs"]["p"], steps, inputs), str(step.done.inputs["p"])
        )
    items = step.done.items or ("",)
    prompts = [prompt for prompt, _ in step.done.parts.values()]
    return all(
        says_same(filled_in(template["prompt"], steps, inputs, item), prompt)
        for item, prompt in zip(items, prompts, strict=True)
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0, max_value=1 << 32))
def test_a_captured_recipe_asks_what_was_asked(seed: int) -> None:
    captured = capture(delegated(Random(seed)))
    document = read_text(captured.recipe)
    assert not document.problems, captured.recipe
    assert document.root is not None
    recipe = plain(document.root)
    assert isinstance(recipe, dict)
    steps = {each.id: each.done.output for each in captured.steps}
    written = recipe["steps"]
    assert isinstance(written, list)
    for step, template in zip(captured.steps, written, strict=True):
        assert step.is_told_more or asks(step, template, steps, dict(captured.inputs)), template
