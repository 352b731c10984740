"""`stretto completion`: scripts for shells, and the words that they ask for.

A shell waits for the words at every Tab, so nothing of the engine is imported: runs and steps are read
from the journal's file, recipes are found by their files, and options are in a table, which a test
compares with the commands themselves.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import click

from stretto.cli.commands import COMMANDS
from stretto.cli.terminal import print_for_program

_MOST_RUNS = 50
_HEAD_BYTES = 4096
_AGENT_FILES = (".md", ".yaml", ".yml")
_RECIPE_FILES = (".yaml", ".yml", ".json")
_NAME = re.compile(r"^(?:name|id):[ \t]*['\"]?([\w.-]+)", re.MULTILINE)
_DIR = re.compile(
    r"^workflows:[ \t]*\n(?:[ \t]+.*\n)*?[ \t]+dir:[ \t]*['\"]?([^'\"\s#]+)", re.MULTILINE
)
# Which kind of word stands where: those after the command, then those of options.
_ARGUMENTS = {
    **dict.fromkeys(("plan", "graph", "show", "restore", "run", "explain"), ("recipe",)),
    "validate": ("recipe",),
    **dict.fromkeys(
        ("resume", "retry", "fork", "cancel", "watch", "report", "events", "prune", "capture"),
        ("run",),
    ),
    **dict.fromkeys(("logs", "output", "approve", "reject", "apply"), ("run", "step")),
    "diff": ("run", "step or run"),
    "help": ("command",),
    "completion": ("shell",),
    **dict.fromkeys(("task", "agents show", "agents check"), ("agent",)),
    **dict.fromkeys(("models pull", "models use", "models test"), ("model",)),
}
_VALUES = {
    "--model": "model",
    "--from": "step",
    "--run": "run",
    "--resume": "run",
    "--recipe": "recipe",
}
_CHOICES = {
    "models": ("list", "pull", "use", "test"),
    "schedule": (
        *("add", "list", "show", "change", "next", "pause"),
        *("resume", "remove", "rotate", "run-now", "run"),
    ),
    "agents": ("list", "show", "check"),
    "serve": ("token", "link", "logout"),
    "serve token": ("add", "list", "revoke"),
    "goal": ("set", "list", "show", "clear", "resume"),
    "playbooks": (
        *("list", "search", "show", "add", "capture", "pin", "unpin"),
        *("delete", "restore", "audit", "curate"),
    ),
}
LOCAL_MODELS = ("local:smollm2", "local:qwen2.5-coder")
PROVIDERS = (
    "alibaba",
    "anthropic",
    "azure",
    "bedrock",
    "cerebras",
    "cohere",
    "deepseek",
    "fireworks",
    "github",
    "google",
    "google-cloud",
    "groq",
    "heroku",
    "huggingface",
    "litellm",
    "mistral",
    "moonshotai",
    "nebius",
    "ollama",
    "openai",
    "openai-responses",
    "openrouter",
    "ovhcloud",
    "sambanova",
    "snowflake",
    "together",
    "vercel",
    "vllm",
    "xai",
    "zai",
)
OPTIONS = {
    "init": "--help --json",
    "new": "--dir --force --help --json --template",
    "validate": "--help --json",
    "plan": "--full --help --input --input-json --json --run",
    "explain": "--help --json",
    "graph": "--expand --format --help --json --width",
    "list": "--help --json",
    "show": "--help --json --version --versions",
    "restore": "--help --json --version",
    "capture": "--help --input --json --save",
    "schema": "--help --json",
    "run": "--detach --dry-run --help --input --input-json --json --model --open --output --permission --quiet --report",
    "chat": "--approve --budget --help --json --list --model --permission --print --quiet --reason --reject --resume",
    "draft": "--allow-commands --help --input --input-json --json --max-repairs --model --open --output --permission --quiet --report --resume --save --yes",
    "task": "--help --json --model --open --output --permission --quiet --report",
    "batch": "--help --json --model --open --output --permission --quiet --report",
    "goal": "--help",
    "resume": "--accept-plan --help --json --model --open --output --quiet --report",
    "retry": "--accept-plan --failed --from --help --input --input-json --json --model --open --output --part --quiet --recipe --report",
    "fork": "--accept-plan --from --help --input --input-json --json --model --open --output --quiet --report",
    "cancel": "--help --json --reason",
    "runs": "--help --json --limit --project --since --status --workflow",
    "watch": "--help --json",
    "report": "--format --help --json --open --output",
    "logs": "--follow --help --json",
    "output": "--help --json",
    "events": "--after --follow --help --json",
    "diff": "--help --json",
    "approve": "--accept-plan --edit --help --json --key --model --no-resume --part --reason --show",
    "reject": "--accept-plan --help --json --model --no-resume --reason",
    "apply": "--allow-removals --allow-secrets --dry-run --help --json --ours --resolved --theirs --unfinished",
    "doctor": "--help --json --model --real --smoke",
    "schedule": "--help",
    "mcp": "--help --model --no-approvals --permission",
    "models": "--help",
    "agents": "--help",
    "playbooks": "--help",
    "trust": "--forget --help --json --list",
    "serve": "--allow-host --help --host --log-format --port --public --verbose --workers",
    "prune": "--dry-run --help --json --keep --older-than",
    "completion": "--help",
    "help": "--help",
    # Of the groups; those that are not here have --help and --json alone.
    "goal resume": "--budget --help --json --max-iterations --quiet --timeout",
    "goal set": "--budget --detach --evidence-input --help --input --input-json --json --max-iterations --model --permission --quiet --stall-after --timeout --verify --verify-timeout --workflow",
    "serve link": "--help --port",
    "serve logout": "--help --json",
    "serve token": "--help",
    "serve token add": "--expires --help --json --owner --role",
    "serve token list": "--help --json",
    "serve token revoke": "--help --json",
    "models pull": "--from --help --json",
    "playbooks audit": "--help --json --limit",
    "playbooks curate": "--dry-run --help --json",
    "playbooks search": "--help --json --limit",
    "schedule add": "--cron --existing --help --input --input-for-file --input-json --json --map --missed --overlap --pattern --permission --settle --watch --webhook --zone",
    "schedule change": "--cron --existing --help --input --input-for-file --input-json --json --map --missed --overlap --pattern --permission --settle --watch --workflow --zone",
    "schedule next": "--count --help --json",
    "schedule show": "--help --json --limit",
}
_SCRIPTS = {
    "bash": """\
_stretto() {
    local line="${COMP_LINE:0:COMP_POINT}" word found=()
    while IFS= read -r word; do found+=("$word"); done < <(stretto completion --words "$line" 2>/dev/null)
    local current="${line##* }" prefix=""
    # bash takes a colon for the end of a word.
    [[ $current == *:* && $COMP_WORDBREAKS == *:* ]] && prefix="${current%"${current##*:}"}"
    COMPREPLY=()
    for word in "${found[@]}"; do COMPREPLY+=("$(printf %q "${word#"$prefix"}")"); done
    [[ ${#found[@]} == 1 && ${found[0]} == *[/:=] ]] && compopt -o nospace
}
complete -F _stretto stretto
""",
    "zsh": """\
#compdef stretto
_stretto() {
    local -a found open
    found=("${(@f)$(stretto completion --words "${words[1,CURRENT-1]} $PREFIX" 2>/dev/null)}")
    found=("${(@)found:#}")
    open=("${(@M)found:#*[/:=]}")
    found=("${(@)found:#*[/:=]}")
    (( $#open )) && compadd -S '' -- "${open[@]}"
    (( $#found )) && compadd -- "${found[@]}"
}
if [ "$funcstack[1]" = "_stretto" ]; then _stretto "$@"; else compdef _stretto stretto; fi
""",
    "fish": """\
complete -c stretto -f -a '(stretto completion --words (commandline -cp) 2>/dev/null)'
""",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SCRIPTS)), required=False)
@click.option("--words", metavar="LINE", hidden=True, help="Print what may follow in a line.")
def command(shell: str | None, words: str | None) -> None:
    """Print a script that completes commands, recipes, runs, steps and models at Tab.

    \b
    bash:
      stretto completion bash > \\
        ~/.local/share/bash-completion/completions/stretto
    zsh, in a folder of $fpath:
      stretto completion zsh > _stretto
    fish:
      stretto completion fish > \\
        ~/.config/fish/completions/stretto.fish
    """
    if words is not None:
        found = dict.fromkeys(words_for(words, Path.cwd(), os.environ.get))
        # A name from outside must not control the terminal, nor hold a line break.
        print_for_program("".join(f"{word}\n" for word in found if word.isprintable()))
    elif shell is not None:
        print_for_program(_SCRIPTS[shell])
    else:
        raise click.UsageError("name the shell: bash, zsh or fish")


def words_for(line: str, folder: Path, environ: Callable[[str], str | None]) -> list[str]:
    """What may stand where the line ends."""
    before, current = _split(line)
    places = _Places(folder, environ)
    found = [word for word in _candidates(before, current, places) if word.startswith(current)]
    return found or list(_files(folder, current))


def _split(line: str) -> tuple[list[str], str]:
    try:
        words = shlex.split(line)
    except ValueError:  # a quote that is still open
        words = line.split()
    current = "" if not words or line[-1:].isspace() else words.pop()
    return words[1:], current


def options_of(words: list[str]) -> list[str]:
    """Of the command that the words name, which may be one of a group's."""
    named = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
    is_inner = len(words) > 1 and words[1] in _CHOICES.get(words[0], ())
    known = (OPTIONS[each] for each in named if each in OPTIONS and (" " in each) == is_inner)
    return next(known, "--help --json" if is_inner else "--help").split()


def _candidates(before: list[str], current: str, places: "_Places") -> Iterable[str]:
    command = next((word for word in before if word in COMMANDS), None)
    if command is None:
        return [*COMMANDS, "--help", "--version"]
    given = before[before.index(command) + 1 :]
    if kind := _VALUES.get(given[-1] if given else ""):
        return places.of(kind, given)
    if current.startswith("-"):
        return options_of([command, *(word for word in given if not word.startswith("-"))])
    words = [word for word in given if not word.startswith("-")]
    while command in _CHOICES:
        if not words:
            return _CHOICES[command]
        command = f"{command} {words.pop(0)}"
    kinds = _ARGUMENTS.get(command, ())
    at = len(words) if command != "validate" else 0
    return places.of(kinds[at], words) if at < len(kinds) else ()


def _files(folder: Path, current: str, only: tuple[str, ...] = ()) -> Iterator[str]:
    head, slash, tail = current.rpartition("/")
    place = folder / os.path.expanduser(head + slash) if slash else folder
    with suppress(OSError):
        for entry in sorted(place.iterdir()):
            if entry.name.startswith(tail) and (tail or not entry.name.startswith(".")):
                if entry.is_dir():
                    yield f"{head}{slash}{entry.name}/"
                elif not only or entry.suffix in only:
                    yield f"{head}{slash}{entry.name}"


class _Places:
    """Where words are found: the folder, the user's own, the journal."""

    def __init__(self, folder: Path, environ: Callable[[str], str | None]) -> None:
        self._folder = folder
        self._environ = environ
        self._home = Path(environ("STRETTO_HOME") or Path.home() / ".stretto").expanduser()

    def of(self, kind: str, words: list[str]) -> Iterator[str]:
        if kind == "recipe":
            yield from self._recipes()
            yield from _files(self._folder, "", _RECIPE_FILES)
        elif kind == "run":
            yield from self._runs()
        elif kind in ("step", "step or run"):
            yield from self._steps(words)
            yield from self._runs() if kind == "step or run" else ()
        elif kind == "model":
            yield from self._models()
        elif kind == "agent":
            yield from self._agents()
        elif kind == "command":
            yield from COMMANDS
        elif kind == "shell":
            yield from _SCRIPTS

    def _recipes(self) -> Iterator[str]:
        ups = (self._folder, *self._folder.parents)
        project = next((up for up in ups if (up / "stretto.yaml").is_file()), self._folder)
        written = _DIR.search(_head_of(project / "stretto.yaml"))
        folder = self._environ("STRETTO_WORKFLOWS_DIR") or (written[1] if written else "workflows")
        bundled = Path(__file__).parent.parent / "bundled" / "workflows"
        for place in (project / folder, self._home / "workflows", bundled):
            with suppress(OSError):
                for file in sorted(place.iterdir()):
                    if file.suffix in _RECIPE_FILES:
                        named = _NAME.search(_head_of(file))
                        yield named[1] if named else file.stem

    def _agents(self) -> Iterator[str]:
        bundled = Path(__file__).parent.parent / "bundled" / "agents"
        places = (self._folder / "agents", self._folder / ".claude" / "agents")
        for place in (*places, self._home / "agents", bundled):
            with suppress(OSError):
                files = (file for file in sorted(place.iterdir()) if file.is_file())
                yield from (file.stem for file in files if file.suffix in _AGENT_FILES)

    def _runs(self) -> Iterator[str]:
        rows = self._ask(
            "SELECT run_id FROM runs WHERE started_at IS NOT NULL"
            f" ORDER BY started_at DESC LIMIT {_MOST_RUNS}"
        )
        yield from ("last", *(row[0] for row in rows)) if rows else ()

    def _steps(self, words: list[str]) -> Iterator[str]:
        """Of the run that the words name; of the newest where they name none."""
        known = [row for row in self._runs() if row != "last"]
        named = (run for word in words for run in known if word and run.startswith(word))
        run = next(named, known[0] if known else "")
        for (event,) in self._ask(
            "SELECT event FROM events WHERE seq = 1 AND run = (SELECT id FROM runs WHERE run_id = ?)",
            run,
        ):
            with suppress(ValueError, KeyError, TypeError):
                yield from (str(step["id"]) for step in json.loads(event)["plan"]["steps"])

    def _models(self) -> Iterator[str]:
        rows = self._ask(
            "SELECT DISTINCT json_extract(event, '$.model') FROM events WHERE seq = 1"
            f" ORDER BY run DESC LIMIT {_MOST_RUNS}"
        )
        yield from (row[0] for row in rows if row[0])
        yield from LOCAL_MODELS
        yield from (f"scripted:{file}" for file in _files(self._folder, "", _RECIPE_FILES))
        yield from (f"{name}:" for name in ("scripted", *PROVIDERS))

    def _ask(self, sql: str, *values: str) -> list[tuple[str, ...]]:
        import sqlite3  # most words need no journal

        file = self._home / "runs.db"
        if not file.is_file():
            return []
        with suppress(sqlite3.Error):
            # Read only, and at once: a shell waits.
            place = f"file:{file.as_posix().replace('%', '%25').replace('?', '%3f')}?mode=ro"
            with closing(sqlite3.connect(place, uri=True, timeout=0.2)) as db:
                return db.execute(sql, values).fetchall()
        return []


def _head_of(file: Path) -> str:
    with suppress(OSError), file.open("rb") as opened:
        return opened.read(_HEAD_BYTES).decode("utf-8", "replace")
    return ""
