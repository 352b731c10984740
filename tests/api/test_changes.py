"""What a writer changed: shown, applied, settled."""

import asyncio
from pathlib import Path

import pytest

import stretto
from support.api import Open

WRITING = """
name: writing
steps:
  - id: make
    subagent: author
    prompt: Make it.
    posture: writer
    write_set: [notes/**]
    workspace_mode: isolated
    merge_back: manual
"""


def author(context: stretto.AgentContext) -> str:
    assert context.workspace is not None
    (context.workspace / "notes").mkdir(exist_ok=True)
    (context.workspace / "notes" / "a.txt").write_text("<b>new</b>\n")
    return "made"


def test_a_change_is_shown_as_a_patch_and_applied_once(open_stretto: Open, project: Path) -> None:
    (project / "notes").mkdir()
    (project / "notes" / "a.txt").write_text("old\n")

    async def main() -> None:
        async with open_stretto(model=None, agents={"author": author}) as w:
            run = await w.start(WRITING)
            report = await run.report()
            changes = report.steps["make"].changes
            assert changes is not None
            assert (changes.standing, changes.files) == ("to apply", 1)
            change = await w.open(run.id).diff("make")
            assert change.files == ("notes/a.txt",)
            assert "-old\n+<b>new</b>\n" in change.text
            assert "&lt;b&gt;new" in change._repr_html_()
            foreseen = await run.apply("make", dry_run=True)
            assert (foreseen.files, foreseen.is_dry_run) == (("notes/a.txt",), True)
            assert (project / "notes" / "a.txt").read_text() == "old\n"
            applied = await run.apply("make")
            assert applied.files == ("notes/a.txt",)
            assert (project / "notes" / "a.txt").read_text() == "<b>new</b>\n"
            assert (await run.apply("make")).was_merged
            after = (await run.report()).steps["make"].changes
            assert after is not None
            assert after.standing == "applied"

    asyncio.run(main())


def test_a_conflict_is_an_error_until_a_side_is_taken(open_stretto: Open, project: Path) -> None:
    (project / "notes").mkdir()
    (project / "notes" / "a.txt").write_text("old\n")

    async def main() -> None:
        async with open_stretto(model=None, agents={"author": author}) as w:
            run = await w.start(WRITING)
            await run.wait()
            (project / "notes" / "a.txt").write_text("mine\n")
            with pytest.raises(stretto.MergeConflict, match="conflict with the workspace"):
                await run.apply("make")
            with pytest.raises(stretto.InvalidUsage, match="exclude each other"):
                await run.apply("make", ours=True, theirs=True)
            applied = await run.apply("make", theirs=True)
            assert applied.files == ("notes/a.txt",)
            assert (project / "notes" / "a.txt").read_text() == "<b>new</b>\n"

    asyncio.run(main())


def test_where_only_reading_is_permitted_nothing_is_applied(
    open_stretto: Open, project: Path
) -> None:
    async def main() -> None:
        async with open_stretto(model=None, agents={"author": author}) as w:
            run = await w.start(WRITING)
            await run.wait()
        async with open_stretto(model=None, permission="read_only") as w:
            with pytest.raises(stretto.PermissionDenied, match="writes files"):
                await w.open(run.id).apply("make")
        assert not (project / "notes").exists()

    asyncio.run(main())
