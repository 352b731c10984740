"""What this machine has and what it lacks. In: a Project. Out: Findings, each with its fix.

Nothing is changed, and nobody is asked but a server on this machine or the one that
OPENAI_BASE_URL names. Of keys only the names are shown.
"""

import platform
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal, TypeAlias, cast

from stretto.adapters.models.cli.names import CLI_NAMES, known_cli
from stretto.adapters.models.local.catalog import QWEN_CODER, SMOLLM2, Shelf, Weights
from stretto.adapters.models.model_names import ModelName, resolve_name
from stretto.adapters.models.provider_table import PROVIDERS
from stretto.adapters.stores.acknowledged import check, losses
from stretto.adapters.stores.sqlite_file import MIGRATIONS, connect
from stretto.assembly.local_models import LocalModels
from stretto.assembly.project import Project
from stretto.assembly.readiness import Machine
from stretto.config.settings import Settings
from stretto.config.trust import describe_files
from stretto.problems.errors import InvalidConfig, StrettoError
from stretto.processes.programs import find_program
from stretto.vocabulary.models import ModelSelection
from stretto.vocabulary.version import VERSION
from stretto.workspaces.sandbox.sandbox import NoSandbox, Setting, find_sandbox

_OLDEST_PYTHON = (3, 11)
_GIT_SECONDS = 10
# Reading every page of a journal larger than this takes longer than anybody would wait.
_MOST_CHECKED_BYTES = 256 * 1024 * 1024

# optional: not here, and missed only by who wants to use it.
FindingStatus: TypeAlias = Literal["ok", "warning", "missing", "optional"]


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    status: FindingStatus
    says: str
    fix: str = ""
    is_essential: bool = False  # nothing works without it


async def examine(project: Project) -> AsyncIterator[Finding]:
    settings = project.settings
    yield _python()
    yield _stretto(project)
    yield _home(settings.home)
    yield _journal(settings.home / "runs.db")
    yield _folder(settings)
    yield _git(settings)
    for finding in _sandbox(settings):
        yield finding
    model, finding = await _model(project)
    yield finding
    for finding in _models(project, model):
        yield finding


def _models(project: Project, model: str | None) -> Iterator[Finding]:
    yield _keys(project)
    yield from (_weights(weights, project) for weights in (SMOLLM2, QWEN_CODER))
    yield _package("xllamacpp", "local models", "local")
    yield _package("mcp", "MCP servers", "mcp")
    yield _search(project, model)
    yield from _clis(project)


def _python() -> Finding:
    says = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] >= _OLDEST_PYTHON:
        return Finding("python", "ok", says)
    return Finding(
        "python", "missing", says, "Stretto needs Python 3.11 or newer", is_essential=True
    )


def _stretto(project: Project) -> Finding:
    says = f"{VERSION}, in {Path(__file__).parents[1]}"
    try:
        unused = "; ".join(project.plugins.unused())
    except InvalidConfig as error:
        return Finding("stretto", "missing", error.message, error.hint, is_essential=True)
    if unused:
        return Finding("stretto", "warning", f"{says}; {unused}", "uninstall the package")
    return Finding("stretto", "ok", says)


def _home(home: Path) -> Finding:
    # One that is not there yet is made in the nearest folder above it that is.
    place = next((each for each in (home, *home.parents) if each.exists()), home)
    try:
        with TemporaryFile(dir=place):
            pass
    except OSError as error:
        fix = "make it writable, or set STRETTO_HOME to a folder that is"
        said = f"{home} cannot be written: {error.strerror or error}"
        return Finding("home", "missing", said, fix, is_essential=True)
    if place == home and home.stat().st_mode & 0o077:
        says = f"{home} can be read by others, with prompts and answers in it"
        return Finding("home", "warning", says, f"chmod 700 {home}")
    says = f"{home} is writable" if place == home else f"{home} will be made by the first run"
    return Finding("home", "ok", says)


def _journal(file: Path) -> Finding:
    if not file.exists():
        return Finding("journal", "ok", f"{file} will be made by the first run")
    try:
        check(file)
        with closing(connect(file)) as db:
            db.execute("BEGIN IMMEDIATE")  # fails where nothing can be written
            db.execute("ROLLBACK")
            (kept,) = db.execute("PRAGMA user_version").fetchone()
            (runs,) = db.execute("SELECT count(*) FROM runs").fetchone() if kept else (0,)
            is_small = file.stat().st_size <= _MOST_CHECKED_BYTES
            said = db.execute("PRAGMA quick_check(1)").fetchone()[0] if is_small else "ok"
    except (sqlite3.Error, OSError) as error:
        return _broken_journal(f"{file} cannot be opened: {error}")
    except StrettoError as error:
        return _broken_journal(error.message, error.hint)
    if kept > len(MIGRATIONS):
        says = f"{file} was written by a newer Stretto (version {kept})"
        return _broken_journal(says, "update Stretto, or set STRETTO_HOME to another folder")
    if said != "ok":
        return _broken_journal(f"{file} is damaged: {said}")
    if lost := losses(file):
        fix = "runs that lack events can be retried; move the folder away when it is not needed"
        return Finding("journal", "warning", "; ".join(loss.told for loss in lost), fix)
    return Finding("journal", "ok", f"{file}: version {kept}, {runs} runs")


def _broken_journal(says: str, fix: str = "") -> Finding:
    fix = fix or "move it away (runs in it are lost), or put back a copy of it"
    return Finding("journal", "missing", says, fix, is_essential=True)


def _folder(settings: Settings) -> Finding:
    if not settings.steering:
        return Finding("folder", "ok", f"{settings.project} brings nothing to trust")
    brings = describe_files(settings.steering, settings.project)
    if settings.is_trusted:
        return Finding("folder", "ok", f"{settings.project} is trusted: {brings}")
    return Finding("folder", "warning", f"{brings} of {settings.project} not used", "stretto trust")


def _git(settings: Settings) -> Finding:
    fix = "install git: without it what .gitignore and the index say is not known to copies"
    program = find_program("git", writable=settings.steps_write)
    if program is None:
        return Finding("git", "missing", "not on PATH", fix)
    try:
        words = [program, "--version"]
        done = subprocess.run(words, cwd="/", capture_output=True, text=True, timeout=_GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("git", "missing", f"{program} does not run: {error}", fix)
    return Finding("git", "ok", f"{done.stdout.strip()}, {program}")


def _sandbox(settings: Settings) -> Iterator[Finding]:
    """What Bash gets, and then each way by itself, with the reason where it does not work."""
    if settings.sandbox == "off":
        says = "switched off: Bash has all the rights of this user"
        works = True
        yield Finding("sandbox", "warning", says, "remove `sandbox: off` from stretto.yaml")
    else:
        found = find_sandbox(cast(Setting, settings.sandbox), settings.steps_write)
        works = not isinstance(found, NoSandbox)
        if isinstance(found, NoSandbox):
            yield Finding("sandbox", "missing", "none works here, so Bash is refused", "see below")
        else:
            yield Finding("sandbox", "ok", f"Bash runs in {found.name}")
    ways: tuple[Setting, ...] = ("bubblewrap", "landlock")
    for name in ways:
        found = find_sandbox(name, settings.steps_write)
        if isinstance(found, NoSandbox):
            (missing,) = found.missing
            yield Finding(name, "optional" if works else "missing", missing.says, missing.fix)
        else:
            yield Finding(name, "ok", "it confines a command here")


async def _model(project: Project) -> tuple[str | None, Finding]:
    """The model for agents that name none, and whether it can be asked."""
    try:
        resolved = await LocalModels(project).default_model()
    except StrettoError as error:
        return None, Finding("model", "missing", error.message, error.hint)
    name = resolved.default
    meant = resolve_name(name, project.environ)
    full = (meant.name if isinstance(meant, ModelName) else None) or name
    if name.startswith("scripted:"):
        is_there = Path(name.removeprefix("scripted:")).is_file()
        fix = "" if is_there else "name a script that is there"
        return full, Finding(
            "model", "ok" if is_there else "missing", " ".join(resolved.notes), fix
        )
    problems = [*Machine(project, ModelSelection(name)).model_problems(name)]
    if not problems:
        return full, Finding("model", "ok", " ".join(resolved.notes))
    said = "; ".join(problem.message for problem in problems)
    return full, Finding("model", "missing", f"{name}: {said}", problems[0].hint)


def _keys(project: Project) -> Finding:
    names = [*dict.fromkeys(key for provider in PROVIDERS for key in provider.keys)]
    names += [name for provider in PROVIDERS for name in provider.url_variables]
    given = [name for name in names if project.environ.get(name, "").strip()]
    if given:
        return Finding("keys", "ok", f"set: {', '.join(given)}")
    # Of the first provider that needs no further package.
    name = next(provider.keys[0] for provider in PROVIDERS if provider.is_lean and provider.keys)
    return Finding("keys", "optional", "no provider's key is set", f"export {name}=…")


def _weights(weights: Weights, project: Project) -> Finding:
    shelf, name = LocalModels(project).shelf, f"weights {weights.name}"
    state = shelf.state(weights)
    if state == "absent":
        # `make demo` keeps them in the environment from which it runs.
        fetched = Shelf(Path(sys.prefix) / "models")
        if fetched.state(weights) != "absent":
            says = f"{fetched.path(weights)} is there, fetched by make demo"
            return Finding(name, "optional", says, f"export STRETTO_MODELS_DIR={fetched.folder}")
        says = f"{weights.title} is not here ({weights.megabytes:,} MB)"
        return Finding(name, "optional", says, f"stretto models pull {weights.name}")
    where = shelf.path(weights)
    if state == "verified":
        return Finding(name, "ok", f"{where} is verified")
    return Finding(name, "ok", f"{where} is there; its first use checks its hash")


def _package(name: str, for_what: str, extra: str) -> Finding:
    if (found := _version(name)) is not None:
        return Finding(name, "ok", f"{found}, for {for_what}")
    return Finding(
        name, "optional", f"not installed: no {for_what}", f"pip install 'stretto[{extra}]'"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _search(project: Project, model: str | None) -> Finding:
    said = Machine(project, ModelSelection("")).search_fault(model)
    if said is not None:
        fix = "set search: {url: …} in stretto.yaml, or STRETTO_SEARCH_URL"
        return Finding("search", "optional", said, fix)
    search = project.settings.search
    by = f"WebSearch asks {search.kind}" if search else f"the provider of {model} searches"
    return Finding("search", "ok", by)


def _clis(project: Project) -> Iterator[Finding]:
    for cli in map(known_cli, CLI_NAMES):
        program = find_program(cli.name, project.environ.get("PATH"), project.settings.steps_write)
        if program is None:
            yield Finding(f"cli:{cli.name}", "optional", "not on PATH", cli.install)
        else:
            yield Finding(f"cli:{cli.name}", "ok", program)
