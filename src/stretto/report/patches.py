"""Put the diffs of writers into a report. In: a Report, and who reads a change. Out: a Report.

The journal says that a step changed files; what it changed lies in its artifact.
"""

from collections.abc import Callable
from dataclasses import replace

from stretto.report.model import Report, StepReport, StepReports
from stretto.text.visible import visible

_MOST_LINES = 200


def with_patches(report: Report, read: Callable[[str], bytes | None]) -> Report:
    """`read`: the patch of a step, None where it is gone."""
    return replace(report, steps=StepReports(_with_patch(step, read) for step in report.steps))


def _with_patch(step: StepReport, read: Callable[[str], bytes | None]) -> StepReport:
    if step.changes is None or not step.changes.files:
        return step
    patch = read(step.id)
    if patch is None:
        return step
    return replace(step, changes=replace(step.changes, patch=_shown(patch)))


def _shown(patch: bytes) -> str:
    # A patch is a writer's bytes: nothing in it may move the cursor of whoever reads the report.
    lines = visible(patch.decode("utf-8", "replace")).split("\n")
    if len(lines) <= _MOST_LINES:
        return "\n".join(lines).rstrip("\n")
    left = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], f"… {left} lines more: stretto diff shows them"])
