"""The page about Python: each block runs, in order, and prints what the page says."""

import ast
import asyncio
import contextlib
import io
import os
from pathlib import Path

import pytest

from support.doc_pages import DOCS, Block, blocks_of

SCRIPT = """
default: An answer.
replies: {brief: A brief about looms.}
"""
TASK = "default: A line about looms."


def test_every_block_runs_and_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, script in (("script.yaml", "default: An answer."), ("brief.yaml", SCRIPT)):
        (tmp_path / name).write_text(script, encoding="utf-8")
    (tmp_path / "task.yaml").write_text(TASK, encoding="utf-8")
    for name in [name for name in os.environ if name.startswith("STRETTO_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    blocks = [b for b in blocks_of(DOCS / "python.md") if b.language in ("python", "text")]
    names: dict[str, object] = {}
    ran = 0
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language == "text":
            continue
        script = "brief" if "research-and-brief" in block.text else "script"
        script = "task" if "w.task" in block.text else script
        monkeypatch.setenv("STRETTO_MODEL", f"scripted:{tmp_path / script}.yaml")
        expected = following.text if following and following.language == "text" else ""
        assert printed(block, names) == expected, f"docs/python.md:{block.line}"
        ran += 1
    assert ran > 8


def printed(block: Block, names: dict[str, object]) -> str:
    is_async = "await " in block.text
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if is_async else 0
    code = compile(block.text, f"docs/python.md:{block.line}", "exec", flags=flags)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if is_async:
            asyncio.run(eval(code, names))
        else:
            exec(code, names)
    return out.getvalue()
