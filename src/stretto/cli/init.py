"""`stretto init`: a project here."""

import shlex
from pathlib import Path

import click

from stretto.assembly.project import Project
from stretto.cli.files import make_folder, write_new, write_recipe, write_schema
from stretto.cli.options import json_option
from stretto.cli.project import trust
from stretto.cli.terminal import print_json, say

_CONFIG = """\
# Settings of this project. Everything is optional; these are the defaults.

# model: anthropic:claude-sonnet-5     # for agents that name none
workflows:
  dir: workflows                        # where recipes are kept
subagents:
  max_concurrency: 4                    # how many subagents may work at once
"""
_FIRST = """\
# A first workflow: two views of a question, then one answer.
#   stretto explain first    what it does
#   stretto plan first -i question="Why is the sky blue?"
name: first
description: Look at a question from two sides, then answer it.
version: 1
inputs:
  - name: question
    required: true
    description: What you want to know.
steps:
  - id: pro
    subagent: analyst
    prompt: |
      Give the strongest case for the usual answer to this question, in five sentences.
      {{inputs.question}}
  - id: contra
    subagent: antagonist
    prompt: |
      Give the strongest case against the usual answer to this question, in five sentences.
      {{inputs.question}}
  - id: answer
    subagent: synthesizer
    depends_on: [pro, contra]
    prompt: |
      Answer the question in one paragraph. Say where the two views agree and where not.
      Question: {{inputs.question}}
      For: {{steps.pro.output}}
      Against: {{steps.contra.output}}
output: "{{steps.answer.output}}"
"""


def _is_all_our_own(folder: Path, wrote: list[str]) -> bool:
    """Agents that lay there before are not trusted along with what was just made."""
    ours = {Path(file).resolve() for file in wrote}
    steering = Project(folder).settings.steering
    return bool(steering) and all(file.resolve() in ours for file in steering)


@click.command("init")
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Make a project: stretto.yaml, a first recipe, completion for editors.

    What is there already is kept as it is.
    """
    wrote, kept = [], []
    workflows = folder / "workflows"
    make_folder(workflows)
    write_schema(workflows)
    for file in (folder / "stretto.yaml", workflows / "first.yaml"):
        if file.exists():
            kept.append(str(file))
            continue
        if file.name == "stretto.yaml":
            write_new(file, _CONFIG)
        else:
            write_recipe(workflows, "first", _FIRST)
        wrote.append(str(file))
    if _is_all_our_own(folder, wrote):
        trust(folder)
    if as_json:
        print_json({"ok": True, "wrote": wrote, "kept": kept})
        return
    for file_name in wrote:
        say(f"wrote {file_name}")
    for file_name in kept:
        say(f"kept  {file_name}")
    place = "" if folder.resolve() == Path.cwd() else f"  cd {shlex.quote(str(folder))}\n"
    question = '-i question="Why is the sky blue?"'
    say(f"\n{place}  stretto plan first {question}\n  stretto run first {question}")
