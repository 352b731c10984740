"""Find and read the settings. In: a folder and an environment. Out: Settings.

Precedence: flag > environment (STRETTO_…) > project > user > default. Flags are the caller's.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from stretto.config.grammar import CONFIG
from stretto.config.home import path_named
from stretto.config.programs import Programs, programs_of
from stretto.config.trust import (
    TrustStore,
    digest_of,
    files_of_playbooks,
    files_that_steer,
)
from stretto.documents.document import read_file
from stretto.documents.node import Node
from stretto.documents.shapes import Fields, Reading
from stretto.problems import Problem
from stretto.problems.errors import InvalidConfig, InvalidUsage
from stretto.problems.render import count
from stretto.processes.programs import NOWHERE, Writable, find_command
from stretto.processes.python import own_places
from stretto.recipe.model import Budget
from stretto.text.short import relative_path, shorten
from stretto.vocabulary.amounts import DEFAULT_LIMITS, KEEP_ALL, Limits, Retention
from stretto.vocabulary.json_value import Json

CONFIG_FILE = "stretto.yaml"
_NAME_HOME = "name another one: STRETTO_HOME, or home= in Python"
_USERS_OWN = ("limits", "retention", "notify", "store")  # keys that a project may not have
_USERS_SERVER = ("host", "public", "allow_hosts")  # and of `server`: who can reach this machine
_PERMISSIONS = ("auto", "ask", "read_only")  # each narrower than the one before


class Search(Struct, frozen=True):
    url: str
    kind: str = "searxng"
    key_variable: str = ""


class BashSettings(Struct, frozen=True):
    environment: tuple[str, ...] = ()
    network: bool = False


class WorkspaceSettings(Struct, frozen=True):
    """Of the copies that isolated writers work in."""

    carry: tuple[str, ...] = ()  # folders of the workspace that Bash sees there, read-only
    max_files: int = 50_000
    max_mib: int = 2_048
    max_file_mib: int = 256


DEFAULT_COPIES = WorkspaceSettings()


class PlaybookSettings(Struct, frozen=True):
    dirs: tuple[Path, ...] = ()  # besides the user's own folder and the project's
    project_dir: Path | None = None
    is_enabled: bool = True
    top: int = 3
    named: int = 8
    max_characters: int = 8_000
    half_life_days: int = 30

    @property
    def folders(self) -> tuple[Path, ...]:
        """All but the user's own folder; a later one counts before an earlier one."""
        return (*self.dirs, *((self.project_dir,) if self.project_dir else ()))


DEFAULT_PLAYBOOKS = PlaybookSettings()


class NotifySettings(Struct, frozen=True):
    """Who is told when a step awaits a person."""

    url: str = ""
    secret_variable: str = ""
    command: tuple[str, ...] = ()
    remind_seconds: float = 3600.0

    @property
    def channels(self) -> tuple[str, ...]:
        return (*(("webhook",) if self.url else ()), *(("command",) if self.command else ()))


NOBODY = NotifySettings()


class ServerSettings(Struct, frozen=True):
    """What `stretto serve` does without options."""

    host: str = "127.0.0.1"
    port: int = 7317
    is_public: bool = False
    hosts: tuple[str, ...] = ()
    workers: int = 1


DEFAULT_SERVER = ServerSettings()


class Settings(Struct, frozen=True):
    project: Path  # the folder that relative paths start from: the workspace
    home: Path  # the user's own: ~/.stretto
    workflows_dir: Path
    agents_dirs: tuple[Path, ...]
    are_workflows_served: bool = True  # to agents and over HTTP
    max_concurrency: int = 4
    model_retries: int = 3  # of one request, where a provider fails for a moment
    model: str | None = None
    judge: str | None = None  # None: the model that did the step; or JUDGE_OFF
    permission: str = "auto"
    budget: Budget = Budget()
    search: Search | None = None
    mcp_servers: Mapping[str, Json] = field(default_factory=dict)
    sandbox: str = "auto"
    bash: BashSettings = BashSettings()
    workspace: WorkspaceSettings = DEFAULT_COPIES
    playbooks: PlaybookSettings = DEFAULT_PLAYBOOKS
    web_allow_private: tuple[str, ...] = ()
    cli_commands: tuple[str, ...] = ()  # commands that `cli:COMMAND` in a recipe may start
    limits: Limits = DEFAULT_LIMITS
    retention: Retention = KEEP_ALL
    notify: NotifySettings = NOBODY
    store: str = "sqlite"
    server: ServerSettings = DEFAULT_SERVER
    # The project's own settings, agents and playbooks, and the programs that its servers run.
    steering: tuple[Path, ...] = ()
    digest: str = ""  # of those
    is_trusted: bool = True  # and whether they are used
    offered: "Settings | None" = None  # as they would be if the folder were trusted
    programs: Programs | None = None  # what its MCP servers run from inside it
    protected: tuple[str, ...] = ()  # what no writer may change, relative to the project
    hidden: tuple[str, ...] = ()  # and what no tool may read: our own folder, if it lies there
    may_shadow: bool = True  # whether its recipes come before the user's own of the same name

    @property
    def is_in_home(self) -> bool:
        """Whether the workspace is the user's home folder, or holds it, or is our own folder."""
        with suppress(RuntimeError):  # a user without a home
            if Path.home().is_dir() and Path.home().resolve().is_relative_to(self.project):
                return True
        return self.home.resolve() == self.project

    @property
    def steps_write(self) -> Writable:
        """Where steps may write: no program that runs on the host is taken from there."""
        return Writable((self.project,), own_places())

    @property
    def user_workflows_dir(self) -> Path:
        return self.home / "workflows"


def find_project(start: Path) -> Path:
    """The nearest folder upwards with a stretto.yaml, else where we stand."""
    start = start.resolve()
    # isfile of os.path: a folder above that may not be entered has none for us.
    folders = (start, *start.parents)
    return next((f for f in folders if os.path.isfile(f / CONFIG_FILE)), start)


def home_of(environ: Mapping[str, str]) -> Path:
    """The user's own folder, which no project can move. Raises InvalidUsage."""
    try:
        # Absolute: it stays where it is, even if the program goes to another folder.
        return Path(environ.get("STRETTO_HOME") or "~/.stretto").expanduser().absolute()
    except RuntimeError as error:  # a user without a home
        raise InvalidUsage(f"no home for Stretto is known: {error}", hint=_NAME_HOME) from None


def _check_folders(home: Path, project: Path) -> None:
    """Raises InvalidUsage for folders that cannot be looked into: their settings must be known."""
    another_folder = "name another one: Stretto(folder) in Python, or start Stretto there"
    for what, folder, hint in (("home", home, _NAME_HOME), ("folder", project, another_folder)):
        try:
            (folder / CONFIG_FILE).stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", "") or error
            place = shorten(str(folder), 200)
            raise InvalidUsage(f"{what} {place} cannot be used: {said}", hint=hint) from None


def load_settings(start: Path, environ: Mapping[str, str]) -> Settings:
    """Of an untrusted folder only what it would bring is said, and what only narrows is used."""
    home, project = home_of(environ), find_project(start)
    _check_folders(home, project)
    problems: list[Problem] = []
    users_own = Settings(project, home, project / "workflows", (home / "agents",))
    if (home / CONFIG_FILE).is_file():
        users_own = _with_file(users_own, home / CONFIG_FILE, True, problems)
    settings = _with_project(users_own, environ, problems)
    settings = _with_environment(settings, environ, problems)
    if problems:
        raise InvalidConfig(f"stretto.yaml has {count(problems)}", problems)
    return _with_own_places(settings)


def _with_own_places(settings: Settings) -> Settings:
    """What we run and what steers us is no step's to change, wherever it lies."""
    hidden = tuple(_inside(settings.project, (settings.home, *_default_home())))
    named = (find_command(word, Path.cwd(), "", NOWHERE) for word in settings.cli_commands)
    fixed = _inside(settings.project, (*own_places(), *(Path(it) for it in named if it)))
    protected = dict.fromkeys((*settings.protected, *hidden, *fixed))
    return structs.replace(settings, protected=tuple(protected), hidden=hidden)


def _default_home() -> Iterator[Path]:
    """Also where STRETTO_HOME names another: the next run may go without it."""
    with suppress(InvalidUsage):  # a user without a home
        yield home_of({})


def _inside(project: Path, places: Iterable[Path]) -> Iterator[str]:
    """The places in the project, relative to it: by the paths as given and as resolved."""
    for place in places:
        for path in (Path(os.path.abspath(place)), place.resolve()):
            if path != project and path.is_relative_to(project):
                yield path.relative_to(project).as_posix()


def _with_project(
    users_own: Settings, environ: Mapping[str, str], problems: list[Problem]
) -> Settings:
    project, home, config = users_own.project, users_own.home, users_own.project / CONFIG_FILE
    if project == home:
        return users_own
    found: list[Problem] = []
    folders = (project / ".claude" / "agents", project / "agents")
    playbooks = structs.replace(users_own.playbooks, project_dir=project / "playbooks")
    agents_dirs = (*users_own.agents_dirs, *folders)
    settings = structs.replace(users_own, agents_dirs=agents_dirs, playbooks=playbooks)
    if config.is_file():
        settings = _with_file(settings, config, False, found)
    # Also folders elsewhere, if this project is what names them.
    named = [folder for folder in settings.agents_dirs if folder not in users_own.agents_dirs]
    own, known = settings.playbooks.folders, users_own.playbooks.folders
    methods = [folder for folder in own if folder not in known]
    steering = [*files_that_steer(config, named), *files_of_playbooks(methods)]
    programs = programs_of(settings.mcp_servers, project)
    store, is_trusting = TrustStore(home), is_true(environ.get("STRETTO_TRUST"))
    if not steering and not programs.places:
        may_shadow = is_trusting or store.was_trusted(project)
        # Trust does not cover a playbook that appears there later.
        return structs.replace(settings, may_shadow=may_shadow, playbooks=users_own.playbooks)
    digests = [digest_of(steering, project), *map(programs.digest, sorted(programs.places))]
    digest = ":".join(digests)
    is_trusted = is_trusting or store.is_trusted(project, digest)
    steering = [*steering, *(file for file in programs.files if file not in steering)]
    if not is_trusted:
        servers = _without(users_own.mcp_servers, programs)
        used = structs.replace(_narrow(users_own, settings), mcp_servers=servers)
        used = structs.replace(used, steering=tuple(steering), digest=digest, offered=settings)
        return structs.replace(used, is_trusted=False, may_shadow=False)
    problems.extend(found)
    # A folder `playbooks` without any is a folder like others: Ansible's, for one.
    fixed = (*named, *(folder for folder in methods if files_of_playbooks([folder])))
    protected = (CONFIG_FILE, *_paths_inside(fixed, project), *programs.protected)
    return structs.replace(
        settings, steering=tuple(steering), digest=digest, programs=programs, protected=protected
    )


def _paths_inside(folders: Iterable[Path], project: Path) -> Iterator[str]:
    for folder in folders:
        if folder.is_relative_to(project):
            yield relative_path(folder, project)


def _narrow(users_own: Settings, project: Settings) -> Settings:
    """The user's own settings, and what a folder's file only narrows: that needs no trust."""
    ours, theirs = users_own.workspace, project.workspace
    return structs.replace(
        users_own,
        permission=max(users_own.permission, project.permission, key=_PERMISSIONS.index),
        max_concurrency=min(users_own.max_concurrency, project.max_concurrency),
        are_workflows_served=users_own.are_workflows_served and project.are_workflows_served,
        budget=_lower(users_own.budget, project.budget),
        workspace=structs.replace(
            ours,
            max_files=min(ours.max_files, theirs.max_files),
            max_mib=min(ours.max_mib, theirs.max_mib),
            max_file_mib=min(ours.max_file_mib, theirs.max_file_mib),
        ),
        playbooks=structs.replace(
            users_own.playbooks,
            is_enabled=users_own.playbooks.is_enabled and project.playbooks.is_enabled,
        ),
    )


def _lower(ours: Budget, theirs: Budget) -> Budget:
    def lower(name: str) -> Any:
        known = [value for each in (ours, theirs) if (value := getattr(each, name)) is not None]
        return min(known, default=None)

    return Budget(**{field.name: lower(field.name) for field in structs.fields(Budget)})


def _without(servers: Mapping[str, Json], programs: Programs) -> dict[str, Json]:
    """The user's own servers, but for those that would run files of a folder that is not trusted."""
    return {name: entry for name, entry in servers.items() if name not in programs.places}


def is_true(written: str | None) -> bool:
    return (written or "").strip().lower() in ("1", "true", "yes", "on")


def _with_file(
    settings: Settings, file: Path, is_users_own: bool, problems: list[Problem]
) -> Settings:
    document = read_file(file)
    reading = Reading(document.source, list(document.problems))
    is_blank = [problem.code for problem in document.problems] == ["RCP016"]
    if is_blank:
        return settings
    written = CONFIG.read(document.root, (), reading) if document.root else None
    if written is not None and not is_users_own:
        _refuse_users_own(written, settings.home / CONFIG_FILE, reading)
    problems.extend(reading.problems)
    return settings if written is None else _apply_file(settings, written, file.parent)


def _refuse_users_own(written: Fields, own_file: Path, reading: Reading) -> None:
    server = written.get("server", Fields)
    found: list[tuple[tuple[str, ...], Node]]
    found = [((key,), written.key(key)) for key in written.written(*_USERS_OWN)]
    if server is not None:
        names = server.written(*_USERS_SERVER)
        found += [(("server", name), server.key(name)) for name in names]
    for path, key in found:
        said = f"a project cannot set {'.'.join(path)}"
        reading.problem_at("CFG001", key, path, said, f"move it to your own {own_file}")


def _apply_file(settings: Settings, written: Fields, folder: Path) -> Settings:
    workflows = written.get("workflows", Fields)
    subagents = written.get("subagents", Fields)
    agents = written.get("agents", Fields)
    limits = written.get("limits", Fields)
    workflows_dir = workflows.get("dir", str) if workflows else None
    more_agents = (agents.many("dirs") if agents else None) or ()
    return structs.replace(
        settings,
        workflows_dir=folder / path_named(workflows_dir)
        if workflows_dir
        else settings.workflows_dir,
        agents_dirs=(*settings.agents_dirs, *(folder / path_named(d) for d in more_agents)),
        are_workflows_served=_is_enabled(workflows, settings.are_workflows_served),
        max_concurrency=(subagents.get("max_concurrency", int) if subagents else None)
        or settings.max_concurrency,
        model_retries=_model_retries(subagents, settings),
        model=written.get("model", str) or settings.model,
        permission=written.get("permission", str) or settings.permission,
        judge=written.get("judge", str) or settings.judge,
        budget=written.get("budget", Budget) or settings.budget,
        search=_search(written.get("search", Fields)) or settings.search,
        mcp_servers={**settings.mcp_servers, **(written.get("mcp_servers", dict) or {})},
        sandbox=written.get("sandbox", str) or settings.sandbox,
        bash=_bash(written.get("bash", Fields)) or settings.bash,
        workspace=_workspace(settings.workspace, written.get("workspace", Fields)),
        playbooks=_playbooks(settings.playbooks, written.get("playbooks", Fields), folder),
        cli_commands=(*settings.cli_commands, *(written.many("cli_commands") or ())),
        web_allow_private=_read_allowed(written.get("web", Fields)) or settings.web_allow_private,
        limits=_raise_limits(settings.limits, limits) if limits else settings.limits,
        retention=_retention(written.get("retention", Fields)) or settings.retention,
        notify=_notify(written.get("notify", Fields)) or settings.notify,
        store=written.get("store", str) or settings.store,
        server=_server(settings.server, written.get("server", Fields)),
    )


def _is_enabled(written: Fields | None, before: bool) -> bool:
    is_enabled = written.get("enabled", bool) if written else None
    return before if is_enabled is None else is_enabled


def _model_retries(written: Fields | None, settings: Settings) -> int:
    retries = written.get("model_retries", int) if written else None
    return settings.model_retries if retries is None else retries


def _search(written: Fields | None) -> Search | None:
    url = written.get("url", str) if written else None
    if written is None or url is None:
        return None
    kind, key_variable = written.get("kind", str), written.get("key_variable", str)
    return Search(url, kind or "searxng", key_variable or "")


def _bash(written: Fields | None) -> BashSettings | None:
    if written is None:
        return None
    environment = written.many("environment") or ()
    return BashSettings(tuple(map(str, environment)), bool(written.get("network", bool)))


def _workspace(settings: WorkspaceSettings, written: Fields | None) -> WorkspaceSettings:
    if written is None:
        return settings
    sizes = ("max_files", "max_mib", "max_file_mib")
    carry = (*settings.carry, *map(str, written.many("carry") or ()))
    given = {name: size for name in sizes if (size := written.get(name, int)) is not None}
    return structs.replace(settings, carry=tuple(dict.fromkeys(carry)), **given)


def _playbooks(
    settings: PlaybookSettings, written: Fields | None, folder: Path
) -> PlaybookSettings:
    if written is None:
        return settings
    more = (folder / path_named(str(each)) for each in written.many("dirs") or ())
    numbers = ("top", "named", "max_characters", "half_life_days")
    given: dict[str, Any] = {
        name: value for name in numbers if (value := written.get(name, int)) is not None
    }
    return structs.replace(
        settings,
        dirs=(*settings.dirs, *more),
        is_enabled=_is_enabled(written, settings.is_enabled),
        **given,
    )


def _read_allowed(written: Fields | None) -> tuple[str, ...]:
    return tuple(map(str, (written.many("allow_private") if written else None) or ()))


def _raise_limits(limits: Limits, written: Fields) -> Limits:
    names = [field.name for field in structs.fields(Limits)]
    return structs.replace(
        limits, **{n: v for n in names if (v := written.get(n, int)) is not None}
    )


def _retention(written: Fields | None) -> Retention | None:
    if written is None:
        return None
    return Retention(written.get("runs", int), written.get("age", float))


def _notify(written: Fields | None) -> NotifySettings | None:
    if written is None:
        return None
    return NotifySettings(
        written.get("url", str) or "",
        written.get("secret_variable", str) or "",
        tuple(written.many("command") or ()),
        written.get("remind", float) or NOBODY.remind_seconds,
    )


def _server(settings: ServerSettings, written: Fields | None) -> ServerSettings:
    if written is None:
        return settings
    host, is_public = written.get("host", str), written.get("public", bool)
    port, workers = written.get("port", int), written.get("workers", int)
    return ServerSettings(
        settings.host if host is None else host,
        settings.port if port is None else port,
        settings.is_public if is_public is None else is_public,
        (*settings.hosts, *map(str, written.many("allow_hosts") or ())),
        settings.workers if workers is None else workers,
    )


def _with_environment(
    settings: Settings, environ: Mapping[str, str], problems: list[Problem]
) -> Settings:
    if model := environ.get("STRETTO_MODEL"):
        settings = structs.replace(settings, model=model)
    if judge := environ.get("STRETTO_JUDGE"):
        settings = structs.replace(settings, judge=judge)
    if url := environ.get("STRETTO_SEARCH_URL"):
        settings = structs.replace(settings, search=Search(url))
    if permission := environ.get("STRETTO_PERMISSION"):
        if permission in ("read_only", "ask", "auto"):
            settings = structs.replace(settings, permission=permission)
        else:
            said = f"STRETTO_PERMISSION is '{permission}'; it must be read_only, ask or auto"
            problems.append(Problem("CFG002", said))
    if folder := environ.get("STRETTO_WORKFLOWS_DIR"):
        try:
            workflows_dir = settings.project / path_named(folder)
            settings = structs.replace(settings, workflows_dir=workflows_dir)
        except ValueError as error:
            message = f"STRETTO_WORKFLOWS_DIR is '{shorten(folder, 60)}': {error}"
            problems.append(Problem("CFG002", message))
    if width := environ.get("STRETTO_MAX_CONCURRENCY"):
        if width.isdecimal() and len(width) <= 4 and 1 <= int(width) <= 1000:
            settings = structs.replace(settings, max_concurrency=int(width))
        else:
            message = f"STRETTO_MAX_CONCURRENCY is '{width}'; it must be a number from 1 to 1,000"
            problems.append(Problem("CFG002", message))
    if retries := environ.get("STRETTO_MODEL_RETRIES"):
        if retries.isdecimal() and len(retries) <= 2 and int(retries) <= 10:
            settings = structs.replace(settings, model_retries=int(retries))
        else:
            message = f"STRETTO_MODEL_RETRIES is '{retries}'; it must be a number from 0 to 10"
            problems.append(Problem("CFG002", message))
    return settings
