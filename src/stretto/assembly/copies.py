"""Warn before a run about files that the copies of its isolated writers will not have."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from stretto.config.settings import Settings, WorkspaceSettings
from stretto.globs.glob import Glob, parse_glob
from stretto.plan.model import Plan, PlannedStep, briefs
from stretto.problems import Problem
from stretto.problems.errors import StrettoError
from stretto.text.short import listed
from stretto.workspaces.file_list import MIB, LeftOut, WorkspaceLimits, find_left_out
from stretto.workspaces.isolated_copy import is_real_folder
from stretto.workspaces.paths import quote_path

LEFT_OUT = "RCP905"
_MOST_NAMED = 5


def copy_limits(own: WorkspaceSettings) -> WorkspaceLimits:
    return WorkspaceLimits(own.max_files, own.max_mib * MIB, own.max_file_mib * MIB)


def copy_warnings(plan: Plan, settings: Settings, model: str | None) -> tuple[Problem, ...]:
    """What the copies will not have, though the sets of their steps cover it."""
    writers = [step for step in plan.steps if step.is_writer and step.is_isolated]
    if not writers:
        return ()
    workspace = settings.project
    try:
        found = find_left_out(
            workspace, _excluded_folders(workspace, settings), copy_limits(settings.workspace)
        )
    except (StrettoError, OSError) as error:
        hint = error.hint if isinstance(error, StrettoError) else ""
        said = f"{_name_steps(writers)} will get no copy of the workspace: {error}"
        return (Problem(LEFT_OUT, said, hint=hint),)
    return (
        *_ignored_warnings(writers, found),
        *_repository_warnings(writers, found),
        *_carry_warnings(plan, writers, settings, model),
    )


def _excluded_folders(workspace: Path, settings: Settings) -> Iterator[str]:
    yield from settings.workspace.carry
    home = settings.home.resolve()
    if home.is_relative_to(workspace.resolve()):
        yield home.relative_to(workspace.resolve()).as_posix()


def _ignored_warnings(writers: Iterable[PlannedStep], found: LeftOut) -> Iterator[Problem]:
    for step in writers:
        if paths := found.covered_by(_sets(step)):
            says = (
                f"the copy of step '{step.id}' leaves out {_list_paths(paths)}: ignored, and only "
            )
            yield Problem(
                LEFT_OUT,
                f"{says}covered by its sets, not named",
                hint=f"name what the step needs, such as '{paths[0]}' or '{paths[0]}/**'",
            )


def _repository_warnings(writers: Iterable[PlannedStep], found: LeftOut) -> Iterator[Problem]:
    by_paths: dict[tuple[str, ...], list[PlannedStep]] = {}
    for step in writers:
        by_paths.setdefault(found.repositories_for(_sets(step)), []).append(step)
    for paths, steps in by_paths.items():
        if paths:
            says = f"the copy of {_name_steps(steps)} leaves out {_list_paths(paths)}: "
            yield Problem(
                LEFT_OUT,
                f"{says}a repository of its own, and no submodule",
                hint=f"name it in a set, such as '{paths[0]}/**', to have its files copied",
            )


def _carry_warnings(
    plan: Plan, writers: Iterable[PlannedStep], settings: Settings, model: str | None
) -> Iterator[Problem]:
    carry = settings.workspace.carry
    for path in carry:
        if not is_real_folder(settings.project, path):
            says = f"{quote_path(path)} of workspace.carry is not a folder of this workspace"
            yield Problem(LEFT_OUT, says, hint="make it, or remove it from stretto.yaml")
    if not carry:
        return
    if settings.sandbox == "off":
        yield Problem(
            LEFT_OUT,
            "workspace.carry has no effect: the sandbox is off, and nothing else could keep "
            "commands from changing what is carried",
            hint="remove 'sandbox: off', or use workspace_mode: shared",
        )
    for step in writers:
        names = {
            model or brief.model or plan.agents[brief.agent].model for brief in briefs(step.work)
        }
        if any(name and name.startswith("cli:") for name in names):
            yield Problem(
                LEFT_OUT,
                f"step '{step.id}' is done by another program, which does not see what "
                f"workspace.carry names: {_list_paths(carry)}",
                hint="only Bash in the sandbox does; or use workspace_mode: shared",
            )


def _sets(step: PlannedStep) -> list[Glob]:
    globs = map(parse_glob, (*step.read_set, *step.write_set))
    return [glob for glob in globs if isinstance(glob, Glob)]


def _name_steps(steps: Iterable[PlannedStep]) -> str:
    ids = [f"'{step.id}'" for step in steps]
    return f"step{'s' if len(ids) > 1 else ''} {listed(ids)}"


def _list_paths(paths: Iterable[str]) -> str:
    return listed((quote_path(path) for path in paths), _MOST_NAMED)
