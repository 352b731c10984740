"""Pages whose commands are run: each prints what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.doc_pages import DOCS, Block, blocks_of

DEFAULTS = {"saved-workflows.md": "Acme Corp sells looms to weavers, and has forty people."}
SCRIPT = """\
default: "DEFAULT"
draft: |
  name: company-brief
  inputs: [{name: company, default: Acme}]
  steps:
    - id: research
      subagent: researcher
      prompt: Research {{inputs.company}}.
    - id: brief
      subagent: writer
      prompt: "Write a brief: {{steps.research.output}}"
"""


PAGES = ("chat", "delegation", "drafts", "goals", "mcp-server", "triggers", "tutorial")


@pytest.mark.parametrize("page", [f"{name}.md" for name in PAGES])
def test_every_command_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    text = SCRIPT.replace("DEFAULT", DEFAULTS.get(page, "A line about looms."))
    (tmp_path / "script.yaml").write_text(text, encoding="utf-8")
    ran = 0
    for block in blocks_of(DOCS / page):
        if block.mark:
            (tmp_path / block.mark).parent.mkdir(exist_ok=True)
            (tmp_path / block.mark).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, shown in commands_of(block):
                printed = said(tmp_path, command)
                assert fits(printed, shown), f"$ {command}\n{printed}"
                ran += 1
    assert ran


def said(folder: Path, command: str) -> str:
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, words in {"stretto": "-m stretto ", "python3": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (programs / name).chmod(0o755)
    environ = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder / "user"),
        "STRETTO_HOME": str(folder / "home"),
        "PYTHONUTF8": "1",
    }
    ended = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    return ended.stdout


def commands_of(block: Block) -> list[tuple[str, list[str]]]:
    commands: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def fits(printed: str, shown: list[str]) -> bool:
    """Line by line; `…` stands for any words, and a line that is only `…` for any number of lines."""
    words = (re.escape(line).replace("…", "[^\n]*") for line in shown)
    lines = [".*" if line == "…" else word for line, word in zip(shown, words, strict=True)]
    return re.fullmatch("\n".join(lines), printed.rstrip("\n"), re.DOTALL) is not None
