"""What a chat or tasks did becomes a workflow: captured, replayed, saved, and run with other inputs."""

import asyncio
import json
from pathlib import Path

import pytest

import stretto
from support.api import Open, Scripted

FOUND = "Acme Corp sells looms to weavers, and has forty people in Ghent."
PAINS = "Weavers wait nine weeks for a loom."
PRICES = "A loom costs 4,000 euro; rivals ask 3,500."
BRIEF = "Buy now: a brief on looms."
SAID = "Research Acme Corp, find pains and prices, then write a brief on Acme Corp."


def batch(*tasks: tuple[str, str, str]) -> dict[str, object]:
    listed = [
        {"agent": agent, "prompt": prompt, "description": title} for agent, prompt, title in tasks
    ]
    return {"tool": "task_batch", "arguments": {"tasks": listed}}


def script() -> str:
    """A lead agent that delegates three times, and hands on what came back."""
    calls = [
        batch(("researcher", "Research the company Acme Corp.", "research")),
        batch(
            ("analyst", f"What hurts the customers of Acme Corp?\n\n{FOUND}", "pains"),
            ("analyst", f"Compare prices. Known so far: {FOUND}", "prices"),
        ),
        batch(
            ("writer", f"Write a brief on Acme Corp.\nPains: {PAINS}\nPrices: {PRICES}", "brief")
        ),
    ]
    replies = {
        "turn-1": {"calls": calls, "reply": f"Here it is:\n\n{BRIEF}"},
        "1-research": FOUND,
        "1-pains": PAINS,
        "2-prices": PRICES,
        "1-brief": BRIEF,
    }
    return json.dumps({"replies": replies})


def test_a_chat_turn_is_captured_replayed_and_reused_with_other_inputs(
    open_stretto: Open, scripted: Scripted
) -> None:
    async def work() -> None:
        async with open_stretto(script()) as w:
            chat = w.chat()
            turn = await chat.send(SAID)
            assert turn.text.endswith(BRIEF)
            captured = await w.workflows.capture(turn.id, name="company-brief")
            assert captured.is_proven, captured.differences
            assert captured.inputs == {"name": "Acme Corp"}
            plan = await w.plan(captured.recipe)
            assert plan.waves == (("research",), ("pains", "prices"), ("brief",))
            assert (await w.workflows.capture(chat.id)).recipe.partition("\n")[2] == (
                captured.recipe.partition("\n")[2]
            ), "the chat has this turn alone"
            newest = (await w.runs(limit=1))[0].id
            assert newest in turn.run_ids
            assert (await w.workflows.capture(newest, name="company-brief")) == captured
            saved = await w.workflows.save(captured.recipe, emitted=True)
            assert (saved.origin, saved.version) == ("emitted", 1)
            assert (await w.workflows.capture(turn.id, name="again")).same_as == "company-brief"

            model = scripted("replies: {research: R, pains: P, prices: Q, brief: B}")
            run = await w.start("company-brief", {"name": "Initech"}, model=model)
            report = await run.report()
            assert (report.output, report.status) == ("B", "complete")
            dry = await w.plan("company-brief", {"name": "Initech"})
            assert "Research the company Initech." in json.dumps(dry.json)

    asyncio.run(work())


def test_tasks_one_after_another_are_captured(open_stretto: Open, scripted: Scripted) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            first = await w.task(
                "researcher", "Research Acme Corp.", model=scripted(f"default: '{FOUND}'")
            )
            found = (await first.report()).output
            second = await w.task("writer", f"A line on Acme Corp, from: {found}",
                                  model=scripted("default: A line."))  # fmt: skip
            await second.report()
            captured = await w.workflows.capture(first.id, second.id, inputs={"firm": "Acme Corp"})
            assert captured.is_proven
            assert captured.inputs == {"firm": "Acme Corp"}
            assert "A line on {{inputs.firm}}, from: {{steps.researcher.output}}" in captured.recipe
            with pytest.raises(stretto.InvalidUsage, match="fewer than two"):
                await w.workflows.capture(first.id)
            with pytest.raises(stretto.NotFound):
                await w.workflows.capture("nothing")
            with pytest.raises(stretto.InvalidUsage, match="name a chat or runs"):
                await w.workflows.capture()

    asyncio.run(work())


def test_a_captured_recipe_leaves_out_no_gate(
    open_stretto: Open, scripted: Scripted, project: Path
) -> None:
    gated = "name: post\nsteps:\n  - {id: send, subagent: writer, prompt: Send the monthly letter to all customers of ours., gate: human}\n"
    (project / "workflows").mkdir()
    (project / "workflows" / "post.yaml").write_text(gated, encoding="utf-8")

    async def work() -> None:
        async with open_stretto() as w:
            model = scripted("default: It was sent to forty people.")
            for prompt in ("Send the monthly letter to all customers of ours.", "Now rest."):
                await (await w.task("writer", prompt, model=model)).report()
            ids = [each.id for each in await w.runs()]
            captured = await w.workflows.capture(*ids, name="letters")
            assert captured.is_proven
            with pytest.raises(stretto.PermissionDenied, match="waits for a person"):
                await w.workflows.save(captured.recipe, emitted=True)

    asyncio.run(work())


def test_what_is_no_plain_delegation_is_told(open_stretto: Open, scripted: Scripted) -> None:
    looped = """
name: looped
steps:
  - {id: try, loop: {agent: writer, validator: reviewer, max_iterations: 1}, prompt: Try.}
  - {id: end, subagent: writer, prompt: End.}
"""

    async def work() -> None:
        async with open_stretto() as w:
            run = await w.start(looped, model=scripted("default: {reply: {passed: true}}"))
            await run.report()
            with pytest.raises(stretto.InvalidUsage, match="step 'try' of looped is not one plain"):
                await w.workflows.capture(run.id)

    asyncio.run(work())
