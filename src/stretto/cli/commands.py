"""All commands. A command's module is imported only when that command is called."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

_WORD = re.compile(r'(?:"[^"]*"|\S)+')  # of a command line
_MARGIN = 2  # what click puts before each line of a section
# Heading → name → what --help says of it; the module has the same name (`list` is list_.py).
GROUPS = {
    "Write recipes": {
        "init": "Make a project here: stretto.yaml, a first recipe, completion for editors.",
        "new": "Write a new recipe from one of the built-in templates.",
        "validate": "Check recipes and show every problem at once.",
        "plan": "Show what a run would do, without calling a model.",
        "explain": "Say in prose what a recipe does, or what a code such as RCP104 means.",
        "graph": "Draw a recipe: ascii, mermaid, dot or svg.",
        "list": "List the saved recipes.",
        "show": "Show a saved recipe, and its versions.",
        "restore": "Make an earlier version of a saved recipe the current one.",
        "capture": "Make a recipe of delegations that worked, in a chat or as tasks.",
        "schema": "Print the JSON Schema of recipes, for editors.",
    },
    "Run them": {
        "run": "Run a recipe to its answer.",
        "draft": "Turn words into a recipe, approve it, run it.",
        "task": "Give one agent one task, without a recipe.",
        "batch": "Give agents many tasks side by side, without a recipe.",
        "chat": "Talk with a lead agent that delegates to agents and workflows.",
        "goal": "Run again until a verifier passes: set, list, show, clear, resume.",
        "resume": "Continue a run that was interrupted.",
        "retry": "Run again, and reuse the steps that are unchanged.",
        "fork": "Start a new run that shares everything before a step.",
        "cancel": "Stop a run; steps that have ended keep their results.",
    },
    "See what happened": {
        "runs": "List the runs, newest first.",
        "watch": "Watch a run while another process drives it.",
        "report": "Show what a run did: md, json or html.",
        "logs": "Show the prompts, answers and tool calls of a run.",
        "output": "Print the output of a run, or of one of its steps.",
        "events": "Print a run's journal.",
        "diff": "Show what a step changed, or what differed between two runs.",
    },
    "Decide": {
        "approve": "Approve a step that awaits approval.",
        "reject": "Reject a step that awaits approval.",
        "apply": "Merge what a step changed, where the run did not.",
    },
    "Serve others": {
        "serve": "Serve the HTTP API and the console; tokens for others.",
        "mcp": "Serve MCP on stdin and stdout, for other agents.",
        "schedule": "Start workflows by themselves: at times, by webhooks, for files.",
    },
    "Set up this machine": {
        "doctor": "Report what this machine has and lacks; test the engine here.",
        "models": "List, pull, choose and test the models that run on this machine.",
        "agents": "List, show and check the agents that a recipe may name.",
        "playbooks": "List, search, add, pin, delete and curate the methods that steps are given.",
        "trust": "Trust the settings and agents that a folder brings along.",
        "prune": "Remove old runs, and what crashes have left behind.",
        "completion": "Print a script that completes words at Tab: bash, zsh or fish.",
        "help": "Show the help of a command.",
    },
}
# Shown under the help of each command. A test checks that each is accepted as it stands.
EXAMPLES = {
    "": (
        "stretto init                     make a project in this folder",
        "stretto list                     which recipes there are",
        "stretto run research-and-brief -i topic=tea",
        "stretto help run                 all options of a command, with examples",
        "stretto explain RCP104           what a problem's code means",
    ),
    "init": ("stretto init",),
    "new": (
        "stretto new                                list the templates",
        "stretto new digest --template map-reduce   write workflows/digest.yaml",
    ),
    "validate": (
        "stretto validate                 all recipes of the project",
        "stretto validate brief.yaml",
        "stretto validate --json          for scripts and editors",
    ),
    "plan": (
        "stretto plan brief.yaml -i topic=tea",
        "stretto plan brief.yaml --full   whole prompts",
    ),
    "explain": (
        "stretto explain brief.yaml       the recipe in prose",
        "stretto explain RCP104           what the code of a problem means",
    ),
    "graph": (
        "stretto graph brief.yaml",
        "stretto graph brief.yaml --format svg > brief.svg",
    ),
    "list": ("stretto list",),
    "show": (
        "stretto show research-and-brief",
        "stretto show NAME --versions     the versions that were kept",
    ),
    "restore": (
        "stretto restore NAME             the version before the current one",
        "stretto restore NAME --version 2",
    ),
    "capture": (
        "stretto capture last             the delegations of the newest turn or run",
        "stretto capture RUN RUN --save brief -i company=Acme",
    ),
    "schema": ("stretto schema > recipe.schema.json",),
    "run": (
        "stretto run brief.yaml -i topic=tea",
        "stretto run brief.yaml -i text=@notes.txt  an input from a file",
        "stretto run brief.yaml --permission ask    ask before files are changed",
        "stretto run brief.yaml --detach            in the background",
    ),
    "draft": (
        'stretto draft "first research Acme, then write a brief"',
        'stretto draft "…" --yes --save brief         without asking, and saved',
        "stretto draft --resume DRAFT                 go on with one that was kept",
    ),
    "task": (
        'stretto task researcher "What does Acme sell?"',
        "stretto task writer -                        the prompt from stdin",
    ),
    "batch": (
        "stretto batch tasks.yaml",
        "stretto batch tasks.jsonl --json             one answer, for scripts",
    ),
    "goal": (
        'stretto goal set "All tests pass" --verify test:tests --workflow fix',
        'stretto goal set "The brief is ready" --verify "command:test -s brief.md"',
        "stretto goal show",
        "stretto goal resume GOAL --max-iterations 20",
    ),
    "chat": (
        "stretto chat                                 at the terminal",
        'stretto chat -p "Compare these two offers"   one turn',
        "stretto chat --resume last                   where the last one was left",
    ),
    "resume": ("stretto resume RUN",),
    "retry": (
        "stretto retry RUN                what failed, and what depends on it",
        "stretto retry RUN --from review  everything from a step on",
    ),
    "fork": ("stretto fork RUN --from review -i tone=formal",),
    "cancel": ("stretto cancel RUN",),
    "runs": (
        "stretto runs --status failed --since 2d",
        "stretto runs tea                 whose inputs mention tea",
        "stretto runs --project .         of the project here",
    ),
    "watch": ("stretto watch RUN",),
    "report": (
        "stretto report RUN",
        "stretto report RUN --format html -o report.html",
    ),
    "logs": (
        "stretto logs RUN",
        "stretto logs RUN review -f       one step, as it goes",
    ),
    "output": (
        "stretto output RUN",
        "stretto output RUN review > review.md",
    ),
    "events": ("stretto events RUN --follow",),
    "diff": (
        "stretto diff RUN STEP            what a step changed",
        "stretto diff RUN RUN             what differed between two runs",
    ),
    "approve": (
        "stretto approve RUN STEP --show  what would run",
        "stretto approve RUN STEP",
    ),
    "reject": ('stretto reject RUN STEP --reason "too broad"',),
    "apply": (
        "stretto apply RUN STEP",
        "stretto apply RUN STEP --theirs  where both changed a line, the step's",
    ),
    "serve": (
        "stretto serve --port 0",
        "stretto serve token add ada --role operator",
    ),
    "schedule": (
        'stretto schedule add nightly digest --cron "0 2 * * *" --zone Asia/Tokyo',
        "stretto schedule add issues triage --webhook --map title={{body.title}}",
        "stretto schedule add inbox summarize --watch inbox --input-for-file file",
        "stretto schedule next nightly",
    ),
    "mcp": (
        "stretto mcp",
        "stretto mcp --permission ask     a person allows each run",
    ),
    "doctor": (
        "stretto doctor",
        "stretto doctor --smoke           prove that the engine works here",
    ),
    "models": (
        "stretto models list",
        "stretto models pull smollm2      fetch the weights of a small model",
        "stretto models use local:smollm2",
    ),
    "playbooks": (
        "stretto playbooks list",
        "stretto playbooks search review invoices",
        "stretto playbooks curate --dry-run",
    ),
    "agents": (
        "stretto agents list",
        "stretto agents show researcher",
    ),
    "trust": ("stretto trust",),
    "prune": (
        "stretto prune --keep 100 --older-than 90d",
        "stretto prune --keep 0 --dry-run  what would be removed",
        "stretto prune RUN                this one",
    ),
    "completion": ("stretto completion bash", "stretto completion zsh"),
    "help": (
        "stretto help                     all commands",
        "stretto help models pull",
    ),
}
COMMANDS = {name: said for group in GROUPS.values() for name, said in group.items()}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = import_module(f"stretto.cli.{name}_" if name == "list" else f"stretto.cli.{name}")
        command = module.command
        assert isinstance(command, click.Command)
        return _with_examples(command, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table, so that `stretto --help` imports no command.
        widest = max(map(len, COMMANDS))
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                rows = [(name.ljust(widest), said) for name, said in group.items()]
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _with_examples(self, "")
        super().format_epilog(ctx, formatter)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from stretto.text.short import did_you_mean

            hint = did_you_mean(name, COMMANDS) or "stretto --help lists the commands"
            raise click.UsageError(f"there is no command '{name}'; {hint}", ctx)
        return super().resolve_command(ctx, args)


def _with_examples(command: click.Command, name: str) -> click.Command:
    if lines := EXAMPLES.get(name, ()):
        # \b: click leaves the lines as they are.
        command.epilog = "\n".join(("\b", "Examples:", *_example_lines(lines)))
    return command


def _example_lines(lines: Sequence[str]) -> Iterator[str]:
    """What an example does stands beside it, or below it where the terminal has no room for that."""
    room = _terminal_columns() - 2 * _MARGIN
    pairs = [(each, does.strip()) for each, _, does in (line.partition("  ") for line in lines)]
    beside = max((len(each) for each, does in pairs if does), default=0) + 2
    fits = all(beside + len(does) <= room for _, does in pairs)
    for each, does in pairs:
        first, *more = _break_line(each, room - 2)
        yield f"  {f'{first:{beside}}{does}' if fits and not more else first}".rstrip()
        yield from (f"      {line}" for line in more)
        if does and (more or not fits):
            yield f"      {does}"


def _terminal_columns() -> int:
    """As click finds them for the rest of a help text; shutil, which it asks, takes long to load."""
    with suppress(KeyError, ValueError, OSError, AttributeError):
        return int(os.environ["COLUMNS"])
    with suppress(ValueError, OSError, AttributeError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    return 80


def _break_line(example: str, room: int) -> Iterator[str]:
    """A command that is too long for the terminal goes on in the next line, as a shell reads it."""
    line = ""
    for word in _WORD.findall(example):
        if line and len(line) + len(word) + 3 > room:
            yield f"{line} \\"
            line, room = word, room - _MARGIN * 2
        else:
            line = f"{line} {word}".lstrip()
    yield line


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stretto", message="stretto %(version)s")
def commands() -> None:
    """Stretto runs LLM subagents as workflows.

    A recipe is data: inputs, agents, steps. Stretto checks all of it before any model is called,
    runs the steps as soon as their edges and their files allow, and reports.

    With any command, --trust uses the settings and agents that the folder brings along, this once.
    """
