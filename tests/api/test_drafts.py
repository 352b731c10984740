"""Words become a recipe, from Python: nothing runs and nothing is saved before the caller does it."""

import asyncio
import json

import pytest

import stretto
from support.api import Open, Scripted

SOUND = "name: greet\nsteps:\n  - {id: greet, subagent: writer, prompt: Greet Ann.}\n"
COMMAND = "name: wipe\nsteps:\n  - {id: wipe, run: rm -rf build}\n"


def test_a_draft_is_text_until_somebody_starts_it(open_stretto: Open) -> None:
    script = json.dumps({"default": "Hello, Ann.", "draft": ["I will: steps", SOUND]})

    async def work() -> None:
        async with open_stretto(script) as w:
            draft = await w.draft("greet Ann")
            assert (draft.recipe, draft.rounds, draft.problems) == (SOUND, 2, ())
            assert draft.is_sound
            assert "greet" in draft.diagram
            assert [each.workflow for each in await w.runs()] == ["draft"]
            assert (await w.workflows.list())[0].name != "greet"
            report = await (await w.start(draft.recipe)).report()
            assert report.output == "Hello, Ann."
            assert (await w.open(draft.id).report()).output == SOUND

    asyncio.run(work())


def test_what_is_left_of_its_problems_and_what_must_be_read_is_told(
    open_stretto: Open, scripted: Scripted
) -> None:
    async def work() -> None:
        async with open_stretto() as w:
            broken = json.dumps({"draft": SOUND.replace("writer", "writr")})
            draft = await w.draft("greet Ann", model=scripted(broken), max_repairs=1)
            assert (draft.rounds, draft.is_sound) == (2, False)
            assert [each.code for each in draft.problems] == ["RCP108"]
            draft = await w.draft("tidy up", model=scripted(json.dumps({"draft": COMMAND})))
            assert draft.to_read == ("step 'wipe' runs a command: rm -rf build",)
            with pytest.raises(stretto.PermissionDenied, match="rm -rf build"):
                draft.check_read()
            failing = json.dumps({"draft": {"fail": "no model is there", "kind": "permanent"}})
            with pytest.raises(
                stretto.StrettoError, match="no recipe was drafted: no model is there"
            ):
                await w.draft("greet Ann", model=scripted(failing))
            for words, repairs in (("", 3), ("x", -1), ("x", 1000)):
                with pytest.raises(stretto.InvalidUsage):
                    await w.draft(words, max_repairs=repairs)

    asyncio.run(work())
