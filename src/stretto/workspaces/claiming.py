"""Let a plan claim files, not only names. In: a Plan, the workspace of its run. Out: the Plan.

Done once, when a run starts: what was found is part of the plan, so a resumed run claims the same.
Links that a step makes later are not seen; our own tools write through no link in any case.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from stretto.globs.glob import Glob, parse_glob
from stretto.plan.claims import Claims
from stretto.plan.model import Plan, PlannedStep
from stretto.workspaces.aliases import aliases_by
from stretto.workspaces.folding import ignores_case
from stretto.workspaces.links import Links


def with_aliases(plan: Plan, workspace: Path, *, is_case_ignored: bool | None = None) -> Plan:
    """`is_case_ignored`: None is as the file system has it. A plan of readers is left as it is."""
    writers = [step for step in plan.steps if step.claims.is_writer]
    if not writers:
        return plan
    if is_case_ignored is None:
        is_case_ignored = ignores_case(workspace)
    # Only a writer in the shared workspace minds what readers read.
    minds_readers = any(not step.claims.is_isolated for step in writers)
    links = Links(workspace, is_case_ignored=is_case_ignored)
    found: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}

    def of(globs: tuple[str, ...]) -> tuple[str, ...]:
        if globs not in found:
            found[globs] = aliases_by(links, globs, is_case_ignored=is_case_ignored)
        return found[globs]

    def claimed(step: PlannedStep) -> PlannedStep:
        is_writer = step.claims.is_writer
        reads = of(step.read_set) if minds_readers and not is_writer else ()
        return _claiming(step, reads, of(step.write_set) if is_writer else ())

    return replace(plan, steps=tuple(map(claimed, plan.steps)))


def _claiming(
    step: PlannedStep, read_aliases: tuple[str, ...], write_aliases: tuple[str, ...]
) -> PlannedStep:
    if (step.read_aliases, step.write_aliases) == (read_aliases, write_aliases):
        return step
    claims = Claims(
        reads=_globs((*step.read_set, *read_aliases)),
        writes=_globs((*step.write_set, *write_aliases)),
        is_writer=step.claims.is_writer,
        is_isolated=step.claims.is_isolated,
    )
    return replace(step, read_aliases=read_aliases, write_aliases=write_aliases, claims=claims)


def _globs(texts: Iterable[str]) -> tuple[Glob, ...]:
    # All of them were parsed before: the sets when the plan was made, the aliases as they were.
    return tuple(glob for glob in map(parse_glob, texts) if isinstance(glob, Glob))
