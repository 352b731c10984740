"""The `stretto` command. In: argv. Out: an exit code; errors as text or, with --json, as JSON."""

import os
import sys

from stretto.cli import streams

TYPE_CHECKING = False  # mypy takes it for True; typing itself would be slow to import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.problems.errors import StrettoError


_PATIENCE_SECONDS = 1.0  # longer silence looks as if the command hung


def main(argv: "Sequence[str] | None" = None) -> None:
    arguments = list(sys.argv[1:] if argv is None else argv)
    streams.make_safe()
    if arguments in (["--version"], ["-V"]):
        # Answered before anything else is imported, because scripts ask for it often.
        from stretto.vocabulary.version import VERSION

        print(f"stretto {VERSION}")
        sys.exit(streams.finish(None))
    try:
        streams.end_on_signals()
        if not {"-q", "--quiet", "--json", "--words"} & set(_before_dashes(arguments)):
            streams.tell_if_loading(_PATIENCE_SECONDS)
        code = _run(arguments)
    except KeyboardInterrupt as error:  # at any moment, also while modules are loaded
        code = _say_interrupted(error)
    finally:
        streams.stop_telling()
    sys.exit(streams.finish(code))


def _run(arguments: list[str]) -> int | None:
    """The exit code; None for a command that only prints."""
    import gc

    # Imports make many objects and drop few, so collecting garbage among them is wasted time.
    gc.set_threshold(50_000)
    import click

    from stretto.cli.commands import commands
    from stretto.cli.terminal import print_traceback
    from stretto.problems.errors import InvalidUsage, StrettoError

    sys.excepthook = print_traceback
    wants_json = "--json" in _before_dashes(arguments)
    try:
        words = _take_trust(_flags_last(arguments)) or ["--help"]
        code = commands.main(words, prog_name="stretto", standalone_mode=False)
        return code if isinstance(code, int) else None
    except StrettoError as error:
        return _say(error, wants_json)
    except click.UsageError as error:
        usage = error.ctx.get_usage() if error.ctx else ""
        return _say(InvalidUsage(error.format_message(), hint=usage), wants_json)
    except click.ClickException as error:
        return _say(InvalidUsage(error.format_message()), wants_json)
    except click.Abort as error:  # click makes one of every interruption
        return _say_interrupted(error.__cause__)


def _say_interrupted(error: BaseException | None) -> int:
    # Nothing is imported for this message: an import may be what was interrupted.
    said = f"ended by {error}" if isinstance(error, streams.Terminated) else "interrupted"
    print(said, file=sys.stderr)
    return 130


def _before_dashes(arguments: list[str]) -> list[str]:
    """The words that may be options: after `--` none is."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _take_trust(words: list[str]) -> list[str]:
    """The words without --trust, which counts for every command, and for the processes that the
    command starts. Where it is the value of another option, or stands after `--`, it is a text like
    any other, and whoever wrote that text must not decide what is trusted."""
    options = _before_dashes(words)
    if "--trust" not in options:
        return words
    with_value = _options_with_value(options)
    kept: list[str] = []
    is_value = False
    for word in options:
        if word == "--trust" and not is_value:
            os.environ["STRETTO_TRUST"] = "1"
            continue
        kept.append(word)
        is_value = not is_value and _takes_next(word, with_value)
    return kept + words[len(options) :]


def _takes_next(word: str, with_value: set[str]) -> bool:
    """Whether the next word is the value of this one. `-qi` is `-q` and `-i`; `-ia=b` has its value."""
    if word[:1] != "-" or word[:2] == "--":
        return word in with_value
    first = next((i for i, letter in enumerate(word) if f"-{letter}" in with_value), 0)
    return first > 0 and first == len(word) - 1


def _options_with_value(words: list[str]) -> set[str]:
    """Those options of the command that the words name which take the next word as their value."""
    import click

    from stretto.cli.commands import commands

    found: set[str] = set()
    ctx = click.Context(commands)
    for word in words:
        group = ctx.command
        command = group.get_command(ctx, word) if isinstance(group, click.Group) else None
        if command is not None:
            ctx = click.Context(command, parent=ctx)
            options = (each for each in command.params if isinstance(each, click.Option))
            found |= {name for each in options if not each.is_flag for name in each.opts}
    return found


def _flags_last(arguments: list[str]) -> list[str]:
    """`stretto --json validate x` means `stretto validate --json x`: flags are accepted anywhere."""
    from stretto.cli.commands import COMMANDS

    known = [i for i, word in enumerate(arguments) if word in COMMANDS]
    words = [i for i, word in enumerate(arguments) if not word.startswith("-")]
    # The first word is the command. If a flag stands before it, that word may be the flag's value:
    # then the command is the first word that names one.
    at = next(iter(words if words[:1] == known[:1] or words[:1] == [0] else known or words), None)
    if at is None or any(word in ("--help", "-h", "--version") for word in arguments[:at]):
        return arguments
    return [arguments[at], *arguments[:at], *arguments[at + 1 :]]


def _say(error: "StrettoError", wants_json: bool) -> int:
    from stretto.cli.terminal import print_json, say, terminal_columns
    from stretto.problems.render import error_as_json, error_as_text

    if wants_json:
        print_json(error_as_json(error))
    else:
        say(error_as_text(error, terminal_columns(err=True)), err=True)
    return error.exit_code


if __name__ == "__main__":
    main()
