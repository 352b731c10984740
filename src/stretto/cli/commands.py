"""All commands. A command's module is imported only when that command is called."""

from importlib import import_module
from typing import Any

import click

from stretto.cli.examples import EXAMPLES

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
        "show": "Show a saved recipe.",
        "schema": "Print the JSON Schema of recipes, for editors.",
    },
    "Run them": {
        "run": "Run a recipe to its answer.",
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
    "Set up this machine": {
        "doctor": "Report what this machine has and lacks; test the engine here.",
        "models": "List, pull, choose and test the models that run on this machine.",
        "agents": "List, show and check the agents that a recipe may name.",
        "trust": "Trust the settings and agents that a folder brings along.",
        "prune": "Remove copies and unfinished merges that crashes left behind.",
        "help": "Show the help of a command.",
    },
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
        command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
    return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stretto", message="stretto %(version)s")
def commands() -> None:
    """Stretto runs LLM subagents as workflows.

    A recipe is data: inputs, agents, steps. Stretto checks all of it before any model is called,
    runs the steps as soon as their edges and their files allow, and reports.
    """


_with_examples(commands, "")
