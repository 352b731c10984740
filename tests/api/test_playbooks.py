"""`Stretto.playbooks`: add, find, pin, delete, capture and curate from Python."""

import asyncio
from pathlib import Path

import pytest

import stretto
from support.api import Open

SKILL = "---\nname: review-invoices\ndescription: How to review invoices.\n---\nSort them first.\n"


def test_playbooks_are_managed_from_python(open_stretto: Open, tmp_path: Path) -> None:
    source = tmp_path / "new" / "review-invoices"
    source.mkdir(parents=True)
    (source / "SKILL.md").write_text(SKILL)

    async def main() -> None:
        async with open_stretto() as w:
            assert [each.layer for each in await w.playbooks.list()] == ["bundled"]
            added = await w.playbooks.add(source)
            assert (added.name, added.layer, added.is_pinned) == ("review-invoices", "user", True)
            (found,) = await w.playbooks.search("review an invoice")
            assert found.playbook.name == "review-invoices"
            block = await w.playbooks.block_for("Review the invoices.")
            assert "Sort them first." in block
            assert await w.playbooks.block_for("Sing.") == ""
            recipe = {
                "name": "r",
                "steps": [{"id": "a", "subagent": "writer", "prompt": "Review the invoices."}],
            }
            run = await w.start(recipe)
            report = await run.report()
            assert report.steps["a"].playbooks == ("review-invoices",)
            captured = await w.playbooks.capture(run.id, "a")
            assert (captured.source, captured.confidence) == ("emitted", 0.5)
            assert captured.origin["step"] == "a"
            assert not (await w.playbooks.unpin("review-invoices")).is_pinned
            await w.playbooks.delete("review-invoices")
            with pytest.raises(stretto.NotFound):
                await w.playbooks.show("review-invoices")
            await w.playbooks.restore("review-invoices")
            shown = await w.playbooks.show("review-invoices")
            assert shown.uses == 1
            assert await w.playbooks.curate(dry_run=True) == ()
            actions = [entry.action for entry in await w.playbooks.audit()]
            assert actions == ["restore", "delete", "unpin", "capture", "curate", "add"]

    asyncio.run(main())


def test_what_cannot_be_done_raises_with_a_reason(open_stretto: Open, tmp_path: Path) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            with pytest.raises(stretto.NotFound, match="there is no"):
                await w.playbooks.add(tmp_path / "nowhere")
            (tmp_path / "empty").mkdir()
            with pytest.raises(stretto.InvalidUsage, match="is no playbook"):
                await w.playbooks.add(tmp_path / "empty")
            with pytest.raises(stretto.InvalidUsage, match="must be text"):
                await w.playbooks.search(7)  # type: ignore[arg-type]
            with pytest.raises(stretto.InvalidUsage, match="limit"):
                await w.playbooks.search("x", limit=0)
            with pytest.raises(stretto.NotFound, match="no run"):
                await w.playbooks.capture("none", "a")

    asyncio.run(main())


def test_a_task_that_worked_is_captured_with_its_own_words(open_stretto: Open) -> None:
    async def main() -> None:
        async with open_stretto() as w:
            run = await w.task("writer", "Write a line about looms.")
            await run.report()
            kept = await w.playbooks.capture(run.id, "task")
            assert (kept.name, kept.description) == (
                "write-line-about-looms", "Write a line about looms.",
            )  # fmt: skip
            run = await w.batch(
                [{"agent": "writer", "prompt": "Praise spindles.", "description": "p"}]
            )
            await run.report()
            assert "Praise spindles." in (await w.playbooks.capture(run.id, "1-p")).body

    asyncio.run(main())
