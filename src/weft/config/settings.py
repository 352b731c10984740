"""Find and read the settings. In: a folder and an environment. Out: Settings.

Precedence: flag > environment (WEFT_…) > project > user > default. Flags are the caller's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from weft.config.grammar import CONFIG
from weft.documents.document import read_file
from weft.documents.shapes import Fields, Reading
from weft.problems import Problem
from weft.problems.errors import InvalidConfig
from weft.problems.render import count
from weft.vocabulary.limits import DEFAULT_LIMITS, Limits

CONFIG_FILE = "weft.yaml"


@dataclass(frozen=True, slots=True)
class Settings:
    project: Path  # the folder that relative paths start from: the workspace
    home: Path  # the user's own: ~/.weft
    workflows_dir: Path
    agents_dirs: tuple[Path, ...]
    max_concurrency: int = 4
    model: str | None = None
    permission: str = "auto"
    limits: Limits = DEFAULT_LIMITS

    @property
    def user_workflows_dir(self) -> Path:
        return self.home / "workflows"


def find_project(start: Path) -> Path:
    """The nearest folder upwards with a weft.yaml, else where we stand."""
    start = start.resolve()
    return next((f for f in (start, *start.parents) if (f / CONFIG_FILE).is_file()), start)


def load_settings(start: Path, environ: Mapping[str, str]) -> Settings:
    home = Path(environ.get("WEFT_HOME") or Path.home() / ".weft").expanduser()
    project = find_project(start)
    settings = Settings(
        project=project,
        home=home,
        workflows_dir=project / "workflows",
        agents_dirs=(home / "agents", project / ".claude" / "agents", project / "agents"),
    )
    problems: list[Problem] = []
    for file, is_users_own in ((home / CONFIG_FILE, True), (project / CONFIG_FILE, False)):
        if file.is_file() and (is_users_own or file.parent != home):
            settings = _with_file(settings, file, is_users_own, problems)
    settings = _with_environment(settings, environ, problems)
    if problems:
        raise InvalidConfig(f"weft.yaml has {count(problems)}", problems)
    return settings


def _with_file(
    settings: Settings, file: Path, is_users_own: bool, problems: list[Problem]
) -> Settings:
    document = read_file(file)
    reading = Reading(document.source, list(document.problems))
    is_blank = [problem.code for problem in document.problems] == ["RCP016"]
    if is_blank:
        return settings
    written = CONFIG.read(document.root, (), reading) if document.root else None
    if written is not None and written.written("limits") and not is_users_own:
        reading.say("CFG001", written.key("limits"), ("limits",), "a project cannot set limits",
                    f"move them to your own {settings.home / CONFIG_FILE}")  # fmt: skip
    problems.extend(reading.problems)
    return settings if written is None else _applied(settings, written, file.parent)


def _applied(settings: Settings, written: Fields, folder: Path) -> Settings:
    workflows = written.get("workflows", Fields)
    subagents = written.get("subagents", Fields)
    agents = written.get("agents", Fields)
    limits = written.get("limits", Fields)
    workflows_dir = workflows.get("dir", str) if workflows else None
    more_agents = (agents.many("dirs") if agents else None) or ()
    return replace(
        settings,
        workflows_dir=folder / Path(workflows_dir).expanduser()
        if workflows_dir
        else settings.workflows_dir,
        agents_dirs=(*settings.agents_dirs, *(folder / Path(d).expanduser() for d in more_agents)),
        max_concurrency=(subagents.get("max_concurrency", int) if subagents else None)
        or settings.max_concurrency,
        model=written.get("model", str) or settings.model,
        permission=written.get("permission", str) or settings.permission,
        limits=_raised(settings.limits, limits) if limits else settings.limits,
    )


def _raised(limits: Limits, written: Fields) -> Limits:
    names = [field.name for field in fields(Limits)]
    return replace(limits, **{n: v for n in names if (v := written.get(n, int)) is not None})


def _with_environment(
    settings: Settings, environ: Mapping[str, str], problems: list[Problem]
) -> Settings:
    if model := environ.get("WEFT_MODEL"):
        settings = replace(settings, model=model)
    if folder := environ.get("WEFT_WORKFLOWS_DIR"):
        settings = replace(settings, workflows_dir=settings.project / Path(folder).expanduser())
    if width := environ.get("WEFT_MAX_CONCURRENCY"):
        if width.isdecimal() and len(width) <= 4 and 1 <= int(width) <= 1000:
            settings = replace(settings, max_concurrency=int(width))
        else:
            message = f"WEFT_MAX_CONCURRENCY is '{width}'; it must be a number from 1 to 1,000"
            problems.append(Problem("CFG002", message))
    return settings
