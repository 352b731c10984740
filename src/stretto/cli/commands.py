"""All commands. A command's module is imported only when that command is called."""

from importlib import import_module
from typing import Any

import click

# name → what --help says of it; the module has the same name (`list` is list_.py).
COMMANDS = {
    "init": "Make a project here: stretto.yaml, a first recipe, completion for editors.",
    "new": "Write a new recipe from one of the built-in templates.",
    "validate": "Check recipes and show every problem at once.",
    "plan": "Show what a run would do, without calling a model.",
    "run": "Run a recipe to its report.",
    "explain": "Say in prose what a recipe does.",
    "graph": "Draw a recipe: ascii, mermaid, dot or svg.",
    "list": "List the saved recipes.",
    "show": "Show a saved recipe.",
    "runs": "List the runs, newest first.",
    "watch": "Watch a run as it goes.",
    "report": "Show what a run did: md, json or html.",
    "logs": "Show prompts, words, tool calls and rejected answers of a run.",
    "output": "Print what a run, or one of its steps, gave.",
    "events": "Print a run's journal.",
    "resume": "Go on with a run that was cut off.",
    "retry": "Run again and reuse what is unchanged.",
    "fork": "A new run that parts ways at a step.",
    "diff": "Show what a step changed, or what differed between two runs.",
    "apply": "Merge what a step changed, where that was left to you.",
    "cancel": "Stop a run and keep what ended.",
    "approve": "Let a step go on that awaits approval.",
    "reject": "Refuse a step that awaits approval.",
    "prune": "Remove what crashes have left of writers' copies and merges.",
    "agents": "List, show and check the agents that a recipe may name.",
    "doctor": "Say what this machine has and lacks; prove the engine here.",
    "models": "The models that run on this machine: list, pull, use, test.",
    "trust": "Let a folder's own settings and agents count.",
    "schema": "Print the JSON Schema of recipes, for editors.",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = import_module(f"stretto.cli.{name}_" if name == "list" else f"stretto.cli.{name}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table, so that `stretto --help` imports no command.
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from stretto.text.names import did_you_mean

            hint = did_you_mean(name, COMMANDS) or "stretto --help lists the commands"
            raise click.UsageError(f"there is no command '{name}'; {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stretto", message="stretto %(version)s")
def commands() -> None:
    """Stretto runs LLM subagents as workflows.

    A recipe is data: inputs, agents, steps. Stretto checks all of it before any model is called,
    runs the steps as soon as their edges and their files allow, and reports.
    """
