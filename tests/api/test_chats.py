"""A chat with the lead agent: what it delegates, what it may, and what a crash or a person changes."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import stretto
from support.api import Open

LEAD: Any = "lead"
SHOUT = """name: shout
inputs: [{name: topic, required: true}]
steps:
  - {id: say, subagent: writer, prompt: "Shout about {{inputs.topic}}."}
"""
RUN_SHOUT = """
default: LOUD
replies:
  turn-1:
    calls: [{tool: run_workflow, arguments: {name: shout, inputs: {topic: tea}}}]
    reply: It was loud.
"""


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def calling(*calls: str, reply: str = "Done.", more: str = "") -> str:
    """A script whose lead agent makes these calls in its first turn, one after another."""
    return f"default: an answer\nreplies:\n  turn-1: {{calls: [{', '.join(calls)}], reply: {reply}}}\n{more}"


def told(turn: stretto.ChatTurn, call: int = 0) -> dict[str, Any]:
    """What the model was told about a call."""
    result = turn.calls[call].result
    assert result is not None
    found: dict[str, Any] = json.loads(result)
    return found


@pytest.fixture
def shout(project: Path) -> Path:
    (project / "workflows").mkdir()
    file = project / "workflows" / "shout.yaml"
    file.write_text(SHOUT, encoding="utf-8")
    return file


def test_a_turn_is_answered_and_recorded(open_stretto: Open) -> None:
    async def work() -> None:
        async with open_stretto("{replies: {turn-1: Hello., turn-2: Again.}}") as w:
            chat = w.chat()
            first, second = await chat.send("Hi"), await chat.send("Hi again")
            assert (first.text, second.text, first.status) == ("Hello.", "Again.", "complete")
            assert [each.said for each in await chat.turns()] == ["Hi", "Hi again"]
            [summary] = await w.chats()
            assert (summary.id, summary.turns, summary.title) == (chat.id, 2, "Hi")
            assert (await w.open(first.id).report()).output == "Hello."

    run(work)


def test_a_task_and_a_batch_are_runs_of_their_own_and_one_failure_loses_no_other(
    open_stretto: Open,
) -> None:
    script = calling(
        "{tool: task, arguments: {agent: writer, prompt: one, description: d}}",
        "{tool: task_batch, arguments: {tasks: [{agent: writer, prompt: a, description: bad},"
        " {agent: writer, prompt: b, description: good}]}}",
        more="  1-bad: {fail: it broke}",
    )

    async def work() -> None:
        async with open_stretto(script) as w:
            turn = await w.chat().send("Do it")
            assert turn.text == "Done."
            assert told(turn)["output"] == "an answer"
            batch = told(turn, 1)
            assert [each["index"] for each in batch["results"]] == [0, 1]
            assert [each["error"] for each in batch["results"]] == ["it broke", None]
            assert [each["output"] for each in batch["results"]] == [None, "an answer"]
            assert not batch["ok"]
            assert len(turn.run_ids) == 2
            reports = [await w.open(each).report() for each in turn.run_ids]
            assert [each.workflow for each in reports] == ["task", "batch"]
            assert turn.usage.model_calls == 3 + 3  # of the lead agent, and of what it started

    run(work)


BESIDE = """
default: {reply: an answer, delay: 0.8s}
replies:
  turn-1:
    calls:
      - - {tool: task, arguments: {agent: %(first)s, prompt: one, description: d1}}
        - {tool: task, arguments: {agent: researcher, prompt: two}}
        - {tool: task, arguments: {agent: nobody, prompt: three}}
        - {tool: task, arguments: {agent: researcher, prompt: four}}
    reply: Done.
"""


@pytest.mark.parametrize(
    ("first", "budget", "is_beside"),
    [
        ("researcher", None, True),
        ("default", None, False),
        ("researcher", {"tokens": 90_000}, False),
    ],
)
def test_tasks_of_one_reply_run_side_by_side_and_are_told_in_the_order_of_the_calls(
    open_stretto: Open, first: str, budget: dict[str, float] | None, is_beside: bool
) -> None:
    async def work() -> None:
        async with open_stretto(BESIDE % {"first": first}) as w:
            turn = await w.chat(budget=budget).send("Do it")
            assert [each.arguments["prompt"] for each in turn.calls] == [
                "one",
                "two",
                "three",
                "four",
            ]
            assert [each.ok for each in turn.calls] == [True, True, False, True]
            ended = [await w.open(each.run_id).report() for each in turn.calls if each.ok]
            one, two, four = (each.steps[0] for each in ended)
            assert ((two.started_at or 0.0) < (one.ended_at or 0.0)) == is_beside
            assert ((four.started_at or 0.0) < (two.ended_at or 0.0)) == (budget is None)

    run(work)


def test_an_agent_whose_function_writes_files_runs_beside_no_other(
    open_stretto: Open, project: Path
) -> None:
    """The function makes its agent a writer, as Write does: for a chat and for a list of agents, too."""
    (project / "agents").mkdir()
    keeper = "---\ntools: [keep]\n---\nYou keep what you are told.\n"
    (project / "agents" / "keeper.md").write_text(keeper, encoding="utf-8")

    @stretto.tool
    def keep(text: str) -> str:
        """Keep a text in a file."""
        return text

    async def work() -> None:
        async with open_stretto(BESIDE % {"first": "keeper"}, tools=[keep], trust=True) as w:
            turn = await w.chat().send("Do it")
            ended = [await w.open(each.run_id).report() for each in turn.calls if each.ok]
            one, two, _ = (each.steps[0] for each in ended)
            assert (two.started_at or 0.0) >= (one.ended_at or 0.0)

    run(work)


def test_no_more_tasks_run_at_once_than_steps_of_a_recipe(
    open_stretto: Open, project: Path
) -> None:
    (project / "stretto.yaml").write_text("subagents: {max_concurrency: 2}", encoding="utf-8")
    script = (BESIDE % {"first": "researcher"}).replace("nobody", "researcher")

    async def work() -> None:
        async with open_stretto(script) as w:
            turn = await w.chat().send("Do it")
            steps = [(await w.open(each).report()).steps[0] for each in turn.run_ids]
            times = [(step.started_at or 0.0, step.ended_at or 0.0) for step in steps]
            most = max(sum(a <= at < b for a, b in times) for at, _ in times)
            assert (len(times), most) == (4, 2)

    run(work)


def test_the_lead_agent_cannot_be_given_a_task(open_stretto: Open) -> None:
    script = calling("{tool: task, arguments: {agent: lead, prompt: one}}")

    async def work() -> None:
        async with open_stretto(script) as w:
            turn = await w.chat().send("Do it")
            assert told(turn)["error"]["kind"] == "permission_denied"
            assert not any(each.workflow == "task" for each in await w.runs())

    run(work)


@pytest.mark.parametrize("permission", ["read_only", "ask", "auto"])
def test_a_dry_run_of_a_workflow_changes_nothing_and_is_always_allowed(
    open_stretto: Open, shout: Path, permission: str
) -> None:
    script = calling(
        "{tool: run_workflow, arguments: {name: shout, inputs: {topic: tea}, dry_run: true}}"
    )

    async def work() -> None:
        async with open_stretto(script) as w:
            turn = await w.chat(permission=permission).send("What would it do?")
            assert turn.ok
            assert told(turn)["would_run"][0]["id"] == "say"
            assert turn.run_ids == ()

    run(work)


def test_a_read_only_chat_runs_no_workflow_and_saves_none(open_stretto: Open, shout: Path) -> None:
    script = calling(
        "{tool: run_workflow, arguments: {name: shout, inputs: {topic: tea}}}",
        "{tool: save_workflow, arguments: {recipe: 'name: mine'}}",
        json.dumps({"tool": "save_workflow", "arguments": {"recipe": SHOUT.replace("shout", "x")}}),
    )

    async def work() -> None:
        async with open_stretto(script) as w:
            turn = await w.chat(permission="read_only").send("Do it")
            kinds = [told(turn, call)["error"]["kind"] for call in range(3)]
            assert kinds == ["permission_denied", "invalid_recipe", "permission_denied"]
            assert [each.workflow for each in await w.runs()] == ["chat"]
            assert not (shout.parent / "x.yaml").exists()

    run(work)


def test_an_allowing_chat_runs_the_workflow(open_stretto: Open, shout: Path) -> None:
    async def work() -> None:
        async with open_stretto(RUN_SHOUT) as w:
            turn = await w.chat(permission="auto").send("Shout")
            assert turn.text == "It was loud."
            assert told(turn)["output"] == "LOUD"

    run(work)


def test_an_asking_chat_waits_for_a_person_and_goes_on_once_they_approve(
    open_stretto: Open, shout: Path
) -> None:
    async def work() -> None:
        async with open_stretto(RUN_SHOUT) as w:
            chat = w.chat(permission="ask")
            waiting = await chat.send("Shout")
            assert waiting.status == "waiting"
            [awaited] = waiting.awaits
            assert "topic = tea" in awaited.shown
            assert [each.status for each in await w.runs(status="waiting")] == ["waiting"]
            assert await w.open(waiting.id).status() == "waiting"
            assert (await w.open(waiting.id).report()).status == "waiting"
            with pytest.raises(stretto.InvalidUsage, match="waits for a person"):
                await chat.send("Another")
            await chat.approve(awaited.key)
        async with open_stretto(RUN_SHOUT) as w:
            turn = await w.chat(chat.id).go_on()
            assert (turn.status, turn.text) == ("complete", "It was loud.")
            assert told(turn)["output"] == "LOUD"
            assert len(await w.runs()) == 2

    run(work)


def test_a_rejection_is_told_to_the_lead_agent_with_its_reason(
    open_stretto: Open, shout: Path
) -> None:
    async def work() -> None:
        async with open_stretto(RUN_SHOUT) as w:
            chat = w.chat(permission="ask")
            waiting = await chat.send("Shout")
            await chat.reject(waiting.awaits[0].key, "too loud")
            turn = await chat.go_on()
            assert turn.ok
            assert "too loud" in told(turn)["error"]["message"]
            assert len(await w.runs()) == 1

    run(work)


def test_a_second_word_about_a_call_is_told_what_stands(open_stretto: Open, shout: Path) -> None:
    async def work() -> None:
        async with open_stretto(RUN_SHOUT) as w:
            chat = w.chat(permission="ask")
            key = (await chat.send("Shout")).awaits[0].key
            await chat.reject(key, "too loud", by="Ann")
            for say in (w.chat(chat.id).approve, chat.reject):
                with pytest.raises(stretto.AlreadyDecided, match="has been rejected by Ann"):
                    await say(key, by="Bob")
            assert (await chat.go_on()).ok
            assert len(await w.runs()) == 1

    run(work)


def test_an_approval_counts_for_the_recipe_that_was_shown_and_for_no_other(
    open_stretto: Open, shout: Path
) -> None:
    async def work() -> None:
        async with open_stretto(RUN_SHOUT) as w:
            chat = w.chat(permission="ask")
            waiting = await chat.send("Shout")
            await chat.approve(waiting.awaits[0].key)
            shout.write_text(SHOUT.replace("Shout about", "Delete all of"), encoding="utf-8")
            again = await chat.go_on()
            assert again.status == "waiting"
            assert len(await w.runs()) == 1
            await chat.approve(again.awaits[0].key)
            assert (await chat.go_on()).ok
            assert len(await w.runs()) == 2

    run(work)


def test_what_the_lead_agent_saves_is_emitted(open_stretto: Open, shout: Path) -> None:
    text = SHOUT.replace("shout", "whisper").replace("Shout", "Whisper")
    script = calling(json.dumps({"tool": "save_workflow", "arguments": {"recipe": text}}))

    async def work() -> None:
        async with open_stretto(script) as w:
            turn = await w.chat().send("Save it")
            assert told(turn)["ok"]
            found = {each.name: each.origin for each in await w.workflows.list()}
            assert (found["whisper"], found["shout"]) == ("emitted", "written")

    run(work)


def test_nobody_is_asked_about_a_recipe_that_would_not_be_saved(
    open_stretto: Open, shout: Path
) -> None:
    other = SHOUT.replace("Shout", "Whisper")
    script = calling(
        json.dumps({"tool": "save_workflow", "arguments": {"recipe": other}}),
        json.dumps({"tool": "save_workflow", "arguments": {"recipe": other.replace("shout", "long")
                    + "# " + "word " * 4_000}}),
    )  # fmt: skip

    async def work() -> None:
        async with open_stretto(script) as w:
            turn = await w.chat(permission="ask").send("Save them")
            assert told(turn)["error"]["kind"] == "exists"
            [awaited] = turn.awaits
            assert awaited.shown.endswith("word word"), "all of it is shown"
            assert [each.name for each in await w.workflows.list()].count("long") == 0

    run(work)


def test_wrong_calls_are_told_with_what_is_wrong(open_stretto: Open) -> None:
    script = calling(
        "{tool: task, arguments: {agent: writr, prompt: x}}",
        "{tool: task, arguments: {agnt: writer}}",
        "{tool: task_batch, arguments: {tasks: []}}",
        "{tool: run_workflow, arguments: {name: ../../etc/passwd}}",
        "{tool: run_workflow, arguments: {name: research-and-brief}}",
    )

    async def work() -> None:
        async with open_stretto(script) as w:
            turn = await w.chat().send("Do it")
            assert turn.ok
            errors = [told(turn, call)["error"] for call in range(len(turn.calls))]
            assert [each["kind"] for each in errors] == [
                "not_found", "usage", "not_found", "invalid_inputs",
            ]  # fmt: skip
            assert "writer" in errors[0]["details"]["hint"]

    run(work)


def test_a_turn_that_fails_says_why_and_the_chat_goes_on(open_stretto: Open) -> None:
    async def work() -> None:
        async with open_stretto("{replies: {turn-1: {fail: no luck}, turn-2: Better.}}") as w:
            chat = w.chat()
            first = await chat.send("Hi")
            assert (first.status, first.text) == ("failed", "")
            assert "no luck" in first.error
            assert (await chat.send("Again")).text == "Better."

    run(work)


def test_a_cancelled_turn_cancels_what_it_has_started(open_stretto: Open) -> None:
    script = calling(
        "{tool: task, arguments: {agent: writer, prompt: x}}",
        more="  task: {reply: late, delay: 60s}",
    )

    async def work() -> None:
        async with open_stretto(script) as w:
            chat = w.chat()
            events = chat.events()
            sending = asyncio.create_task(chat.send("Do it"))
            async for each in events:
                started = isinstance(each.event, stretto.AttemptStarted)
                if started and each.event.step == "task":  # type: ignore[union-attr]
                    await chat.cancel("enough")
            turn = await sending
            assert turn.status == "cancelled"
            statuses = {each.workflow: each.status for each in await w.runs()}
            assert statuses == {"chat": "cancelled", "task": "cancelled"}

    run(work)


def test_what_a_cancelled_turn_has_started_is_spent_of_the_budget(open_stretto: Open) -> None:
    script = calling(
        "{tool: task_batch, arguments: {tasks: [{agent: writer, prompt: a, description: dear},"
        " {agent: writer, prompt: b, description: slow}]}}",
        more="  1-dear: {reply: much, tokens: 40000}\n  2-slow: {reply: late, delay: 60s}",
    )

    async def work() -> None:
        async with open_stretto(script) as w:
            chat = w.chat(budget={"tokens": 50_000})
            events = chat.events()
            sending = asyncio.create_task(chat.send("Do it"))
            async for each in events:
                if isinstance(each.event, stretto.AttemptSucceeded):
                    await chat.cancel("enough")
            turn = await sending
            assert (turn.status, turn.usage.output_tokens) == ("cancelled", 40_000)

    run(work)


def test_the_budget_of_a_chat_bounds_its_turns_and_what_they_start(open_stretto: Open) -> None:
    script = calling(
        "{tool: task, arguments: {agent: writer, prompt: x}}",
        "{tool: task, arguments: {agent: writer, prompt: y}}",
        more="  task: {reply: much, tokens: 20000}",
    )

    async def work() -> None:
        async with open_stretto(script) as w:
            chat = w.chat(budget={"tokens": 30_000})
            turn = await chat.send("Do it")
            assert told(turn)["ok"]
            assert "budget" in told(turn, 1)["error"]["message"]
            assert turn.usage.tokens <= 30_000

    run(work)


def test_the_agents_of_a_budget_are_counted_over_all_runs_of_a_chat(open_stretto: Open) -> None:
    task = "{tool: task, arguments: {agent: writer, prompt: x}}"

    async def work() -> None:
        async with open_stretto(calling(task, task, task)) as w:
            turn = await w.chat(budget={"agents": 3}).send("Do it")
            assert [each.ok for each in turn.calls] == [True, True, False]
            assert "agents" in told(turn, 2)["error"]["message"]

    run(work)


def test_a_chat_whose_budget_is_spent_takes_no_further_turn(open_stretto: Open) -> None:
    async def work() -> None:
        async with open_stretto("default: {reply: much, tokens: 5000}") as w:
            chat = w.chat(budget={"tokens": 4_000})
            await chat.send("Hi")
            with pytest.raises(stretto.StrettoError, match=r"budget .* is spent"):
                await chat.send("Again")
            assert (await w.chat(chat.id, budget={"tokens": 90_000}).send("Again")).ok

    run(work)


def test_a_turn_that_cannot_begin_leaves_no_trace(open_stretto: Open) -> None:
    async def work() -> None:
        async with open_stretto(model="scripted:none.yaml") as w:
            chat = w.chat()
            with pytest.raises(stretto.NotReady):
                await chat.send("Hi")
            assert await chat.turns() == ()

    run(work)


def test_the_lead_agent_is_given_playbooks_also_the_bundled_ones(open_stretto: Open) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            chat = w.chat()
            events = chat.events()
            await chat.send("How do I turn words about a process into a Stretto workflow recipe?")
            given = [
                e.event.playbooks
                async for e in events
                if isinstance(e.event, stretto.AttemptStarted)
            ]
            assert given == [("write-a-recipe",)]

    run(work)


def test_a_lead_agent_of_ones_own_keeps_the_tools_that_delegate(
    open_stretto: Open, project: Path
) -> None:
    (project / "agents").mkdir()
    (project / "agents" / "lead.md").write_text("---\ntools: []\n---\nBe brief.", encoding="utf-8")
    script = calling("{tool: task, arguments: {agent: writer, prompt: x}}")

    async def work() -> None:
        async with open_stretto(script, trust=True) as w:
            turn = await w.chat().send("Do it")
            assert told(turn)["ok"]
            shown = (await w.open(turn.id).report()).plan
            assert shown is not None
            assert shown.agents[LEAD].prompt.text == "Be brief."

    run(work)


def test_a_chat_is_found_by_a_part_of_its_id(open_stretto: Open) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            with pytest.raises(stretto.NotFound):
                w.chat("last")
            chat = w.chat()
            await chat.send("Hi")
            assert w.chat("last").id == w.chat(chat.id[-6:]).id == chat.id
            with pytest.raises(stretto.NotFound, match="no chat"):
                w.chat("zzz")
            with pytest.raises(stretto.InvalidUsage, match="empty"):
                await chat.send("  ")

    run(work)


GREET = "name: greet\ninputs: [{name: who, default: Ann}]\nsteps:\n  - {id: greet, subagent: writer, prompt: 'Greet {{inputs.who}}.'}\n"
WIPE = "name: wipe\nsteps:\n  - {id: wipe, run: touch wiped}\n"


async def drafted(open_stretto: Open, recipe: str, permission: str) -> tuple[str, dict[str, Any]]:
    """A chat whose lead agent has drafted this recipe: its id, and what the agent was told."""
    call = {"tool": "draft_workflow", "arguments": {"words": "first this, then that"}}
    broken = recipe.replace("steps:", "stepz:")
    replies = {"turn-1": {"calls": [call], "reply": "Here it is."}}
    async with open_stretto(json.dumps({"replies": replies, "draft": [broken, recipe]})) as w:
        chat = w.chat(permission=permission)
        turn = await chat.send("Draft it")
        assert [each.workflow for each in await w.runs()] == ["draft", "chat"]
        return chat.id, told(turn)


def running(draft: str, **inputs: str) -> str:
    call = {"tool": "run_draft", "arguments": {"draft": draft, "inputs": inputs}}
    replies = {"turn-2": {"calls": [call], "reply": "It ran."}}
    return json.dumps({"default": "Hello, Bob.", "replies": replies})


def test_the_lead_agent_drafts_and_runs_what_it_drafted(open_stretto: Open) -> None:
    async def work() -> None:
        chat, draft = await drafted(open_stretto, GREET, "auto")
        assert (draft["ok"], draft["recipe"], draft["rounds"]) == (True, GREET, 2)
        assert "greet" in draft["diagram"]
        async with open_stretto(running(draft["draft"], who="Bob")) as w:
            turn = await w.chat(chat).send("Run it")
            assert (told(turn)["output"], turn.text) == ("Hello, Bob.", "It ran.")
            assert len(await w.runs()) == 4

    run(work)


def test_a_read_only_chat_drafts_and_does_not_run_the_draft(open_stretto: Open) -> None:
    async def work() -> None:
        chat, draft = await drafted(open_stretto, GREET, "read_only")
        async with open_stretto(running(draft["draft"])) as w:
            turn = await w.chat(chat).send("Run it")
            assert told(turn)["error"]["kind"] == "permission_denied"
            assert len(await w.runs()) == 3

    run(work)


@pytest.mark.parametrize(
    ("recipe", "permission"), [(GREET, "ask"), (WIPE, "auto")], ids=["asking", "with a command"]
)
def test_a_draft_that_needs_a_person_waits_and_shows_all_of_itself(
    open_stretto: Open, recipe: str, permission: str
) -> None:
    async def work() -> None:
        chat_id, draft = await drafted(open_stretto, recipe, permission)
        async with open_stretto(running(draft["draft"])) as w:
            chat = w.chat(chat_id)
            [awaited] = (await chat.send("Run it")).awaits
            assert recipe.rstrip() in awaited.shown
            assert draft["diagram"] in awaited.shown
            assert all(each in awaited.shown for each in draft["to_read"])
            assert bool(draft["to_read"]) == (recipe == WIPE)
            assert len(await w.runs()) == 3
            await chat.approve(awaited.key)
            turn = await chat.go_on()
            assert len(turn.run_ids) == 1
            assert len(await w.runs()) == 4

    run(work)


def test_only_a_draft_of_the_same_chat_is_run(open_stretto: Open) -> None:
    async def work() -> None:
        _, draft = await drafted(open_stretto, GREET, "auto")
        for id in (draft["draft"], "../x", ""):
            script = running(id).replace("turn-2", "turn-1")
            async with open_stretto(script) as w:
                turn = await w.chat(permission="auto").send("Run it")
                assert told(turn)["error"]["kind"] == "not_found"

    run(work)


def test_a_draft_with_problems_is_told_with_them_and_does_not_run(open_stretto: Open) -> None:
    async def work() -> None:
        recipe = GREET.replace("writer", "writr")
        chat, draft = await drafted(open_stretto, recipe, "auto")
        assert (draft["error"]["kind"], draft["recipe"]) == ("invalid_recipe", recipe)
        assert "writr" in json.dumps(draft["error"])
        async with open_stretto(running(draft["draft"])) as w:
            turn = await w.chat(chat).send("Run it")
            assert told(turn)["error"]["kind"] == "invalid_recipe"

    run(work)


def test_saving_what_must_be_read_is_no_way_round_the_reading(open_stretto: Open) -> None:
    script = calling(
        json.dumps({"tool": "save_workflow", "arguments": {"recipe": WIPE}}),
        "{tool: run_workflow, arguments: {name: wipe}}",
    )

    async def work() -> None:
        async with open_stretto(script) as w:
            waiting = await w.chat(permission="auto").send("Save and run it")
            assert waiting.status == "waiting"
            assert "touch wiped" in waiting.awaits[0].shown
            assert [each.workflow for each in await w.runs()] == ["chat"]

    run(work)


def test_whoever_waits_for_the_events_of_a_chat_is_told_that_it_is_closed(
    open_stretto: Open,
) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            events = w.chat().events()
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)  # it asks for the first event
        with pytest.raises(stretto.InvalidUsage, match="this Stretto is closed"):
            await asyncio.wait_for(waiting, 10)

    run(work)


def test_events_that_nobody_reads_yet_are_only_kept_by_their_chat(open_stretto: Open) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            chat = w.chat()
            unread = [chat.events() for _ in range(3)]
            assert not w._engine.stoppable
            await chat.send("hello")
            assert [event async for event in unread[0]]  # and they can still be read
            late = chat.events()
        with pytest.raises(stretto.InvalidUsage, match="this Stretto is closed"):
            await asyncio.wait_for(anext(late), 10)

    run(work)
