"""The attempts of a step in full, as HTML. In: Excerpts. Out: folded markup, all of it escaped."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from stretto.report.markup import Html, tag
from stretto.report.model import StepReport
from stretto.report.transcript import Excerpt

Transcripts: TypeAlias = Mapping[tuple[str, str, int], Sequence[Excerpt]]
# A page must open in any browser; `stretto logs` has the rest.
_MOST_ATTEMPTS = 20
_MOST_ENTRIES = 200


def transcript(run_id: str, step: StepReport, logs: Transcripts) -> Iterator[Html]:
    attempts = [each for each in step.attempts if (step.id, each.part, each.number) in logs]
    if not attempts:
        return
    command = f"stretto logs {run_id} {step.id}"
    folded = []
    for attempt in attempts[:_MOST_ATTEMPTS]:
        entries = logs[step.id, attempt.part, attempt.number]
        name = f"{attempt.part} attempt {attempt.number} by {attempt.agent}".strip()
        shown = [_entry(entry, command) for entry in entries[:_MOST_ENTRIES]]
        if len(entries) > _MOST_ENTRIES:
            shown.append(_cut(f"{len(entries) - _MOST_ENTRIES:,} more: {command}"))
        folded.append(tag("details", tag("summary", name), shown))
    if len(attempts) > _MOST_ATTEMPTS:
        folded.append(_cut(f"{len(attempts) - _MOST_ATTEMPTS:,} more attempts: {command}"))
    yield tag("div", tag("h4", "Transcript"), folded)


def _entry(entry: Excerpt, command: str) -> Html:
    label = f"{entry.kind} of {entry.step}"
    said = tag("pre", entry.text, tabindex="0", role="group", aria_label=label)
    more = [_cut(f"{entry.left_out:,} characters more: {command}")] if entry.left_out else []
    return tag("div", tag("p", entry.kind, class_="muted"), said, more)


def _cut(says: str) -> Html:
    return tag("p", says, class_="muted")
