"""Print the page of all commands. In: the command line's own help. Out: Markdown, on stdout.

python scripts/commands.py > docs/commands.md
"""

import re
import sys
from collections.abc import Iterator
from textwrap import dedent

import click

from stretto.cli.commands import EXAMPLES, GROUPS, commands

_HEAD = """\
# Commands

Every command with its options, made from `stretto help` by `scripts/commands.py`; do not edit it by hand.

- Options may stand anywhere in a command line, and `stretto COMMAND --help` prints what stands here.
- `--json` makes a command print JSON and nothing else on stdout; its errors are JSON, too. It is not repeated in the
  tables. Only {without} have no `--json`.
- `--trust`, with any command, uses the settings and agents that this folder brings along, for this once
  ([Trust](safety.md#trust)).
- RUN is a whole id, the beginning or the end of one, or `last`; mostly it may be left out
  ([which run is meant](runs.md#which-run-is-meant)).
- What a command ends with is in [Exit codes](runs.md#exit-codes).
"""
# The page that explains a command, and its title.
_GUIDES = {
    "init": ("tutorial.md", "Tutorial"),
    "new": ("recipes.md", "Recipes"),
    "validate": ("problems/README.md", "Problems"),
    "plan": ("recipes.md#a-first-recipe", "Recipes"),
    "explain": ("problems/README.md", "Problems"),
    "graph": ("recipes.md#routing", "Recipes"),
    "list": ("saved-workflows.md", "Saved workflows"),
    "show": ("saved-workflows.md#versions", "Saved workflows"),
    "restore": ("saved-workflows.md#versions", "Saved workflows"),
    "capture": ("saved-workflows.md#workflows-that-are-learnt", "Saved workflows"),
    "schema": ("reference.md", "Reference"),
    "run": ("runs.md", "Runs"),
    "draft": ("drafts.md", "Drafts"),
    "task": ("delegation.md", "Delegation"),
    "batch": ("delegation.md#a-batch", "Delegation"),
    "chat": ("chat.md", "Chat"),
    "goal": ("goals.md", "Goals"),
    "resume": ("runs.md#after-a-crash-or-ctrl-c", "Runs"),
    "retry": ("runs.md#retry-and-fork", "Runs"),
    "fork": ("runs.md#retry-and-fork", "Runs"),
    "cancel": ("runs.md#approve-reject-or-cancel", "Runs"),
    "runs": ("runs.md#list-the-runs", "Runs"),
    "watch": ("runs.md#looking-into-a-run", "Runs"),
    "report": ("runs.md#the-report-as-a-page", "Runs"),
    "logs": ("runs.md#looking-into-a-run", "Runs"),
    "output": ("runs.md#looking-into-a-run", "Runs"),
    "events": ("runs.md#looking-into-a-run", "Runs"),
    "diff": ("workspaces.md#merging-back", "Workspaces"),
    "approve": ("runs.md#approve-reject-or-cancel", "Runs"),
    "reject": ("runs.md#approve-reject-or-cancel", "Runs"),
    "apply": ("workspaces.md#merging-back", "Workspaces"),
    "serve": ("http.md", "HTTP"),
    "mcp": ("mcp-server.md", "The MCP server"),
    "schedule": ("triggers.md", "Triggers"),
    "doctor": ("models.md", "Models"),
    "models": ("models.md#models-on-this-machine", "Models"),
    "agents": ("agents.md#stretto-agents", "Agents"),
    "playbooks": ("playbooks.md#managing-playbooks", "Playbooks"),
    "trust": ("safety.md#trust", "Safety"),
    "prune": ("runs.md#remove-old-runs", "Runs"),
}


def page() -> str:
    parts = [_HEAD.format(without=_without_json())]
    for heading, group in GROUPS.items():
        parts.append(f"## {heading}\n")
        parts += [section for name in group for section in _sections(name)]
    return "\n".join(parts)


def _without_json() -> str:
    """The commands that print no JSON, in words."""
    found = dict.fromkeys(
        f"`{name}`"
        for top in _names()
        for name, each in _leaves(top, commands)
        if not any("--json" in option.opts for option in each.params)
    )
    *most, last = found
    return f"{', '.join(most)} and {last}"


def _names() -> Iterator[str]:
    for group in GROUPS.values():
        yield from group


def _leaves(name: str, within: click.Group) -> Iterator[tuple[str, click.Command]]:
    """What can be called: the command, or those of a group, and the group where that can be."""
    found = within.get_command(click.Context(within), name.split()[-1])
    assert found is not None
    if not isinstance(found, click.Group) or found.params:
        yield name, found
    if isinstance(found, click.Group):
        for inner in found.list_commands(click.Context(found)):
            yield from _leaves(f"{name} {inner}", found)


def _sections(name: str) -> Iterator[str]:
    found = commands.get_command(click.Context(commands), name)
    if isinstance(found, click.Group) and not found.params:
        yield f"### `stretto {name}`\n\n{_words(found)}\n"
    for called, each in _leaves(name, commands):
        yield _section(called, each)
    if lines := EXAMPLES.get(name, ()):
        examples = (re.sub(r" {2,}(?=\S)", "   # ", line, count=1) for line in lines)
        yield "```sh\n" + "\n".join(examples) + "\n```\n"
    if name in _GUIDES:
        target, title = _GUIDES[name]
        yield f"More: [{title}]({target}).\n"


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    pieces = [each for each in command.collect_usage_pieces(context) if each != "[OPTIONS]"]
    pieces = [] if isinstance(command, click.Group) else pieces
    call = " ".join(["stretto", name, *pieces])
    rows = "".join(_row(each) for each in command.params if _is_shown(each))
    table = f"\n| option | what it does |\n|---|---|\n{rows}" if rows else ""
    return f"{'#' * (2 + len(name.split()[:2]))} `{call}`\n\n{_words(command)}\n{table}"


def _is_shown(parameter: click.Parameter) -> bool:
    is_hidden = isinstance(parameter, click.Option) and parameter.hidden
    return isinstance(parameter, click.Option) and not is_hidden and "--json" not in parameter.opts


def _row(option: click.Parameter) -> str:
    assert isinstance(option, click.Option)
    value = "" if option.is_flag else f" {_value(option)}"
    *short, last = sorted(option.opts, key=len)
    names = ", ".join([*(f"`{each}`" for each in short), f"`{last}{value}`"])
    default = f" Default: {option.default}." if option.show_default else ""
    return f"| {_cell(names)} | {_cell((option.help or '') + default)} |\n"


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(option.type.choices)
    return "N" if isinstance(option.type, click.types.IntParamType) else (option.name or "").upper()


def _words(command: click.Command) -> str:
    """The help, paragraph by paragraph; what click leaves as it is becomes a block."""
    paragraphs = re.split(r"\n\s*\n", (command.help or "").strip())
    return "\n\n".join(_paragraph(each) for each in paragraphs)


def _paragraph(text: str) -> str:
    if text.lstrip().startswith("\b"):
        kept = dedent(text.partition("\b")[2]).strip()
        return f"```text\n{kept}\n```"
    return re.sub(
        r"(?<!`)((?:stretto [a-z]+(?: [A-Z]+| (?:resume|run)\b)?)|--[a-z-]+)(?!`)",
        r"`\1`",
        " ".join(text.split()),
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(page(), end="")
