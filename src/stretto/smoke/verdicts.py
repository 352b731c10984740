"""Judge what happened. In: the rows of a journal. Out: Checks. Pure: nothing is run here.

`is_strict`: the answers must also quote what the step was given or found. The Player does that, and
a model need not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from stretto.events.codec import UnknownEvent
from stretto.events.model import RunEnded, RunStarted, ToolEnded
from stretto.ports.journal import StoredEvent
from stretto.smoke.journal import StepSpan, events_of, prompts_of, spans_of
from stretto.vocabulary.json_value import Json

Rows = Sequence[StoredEvent]
_LONGEST_QUOTE = 200


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, and whether the journal proves it."""

    name: str
    is_proven: bool
    says: str  # what was proven, or why it was not
    evidence: Mapping[str, Json] = field(default_factory=dict)


def check_structure(
    name: str, found: Iterable[str], wanted: Sequence[str], good_steps: int
) -> Check:
    """`found`: the codes of the bad recipe's problems. `good_steps`: how many steps the good recipe
    has; 0: it was refused."""
    codes = sorted(set(found))
    evidence: dict[str, Json] = {"problems": list(codes), "good_recipe_steps": good_steps}
    if missed := [code for code in wanted if code not in codes]:
        return Check(name, False, f"a bad recipe was not refused for {_list(missed)}", evidence)
    if not good_steps:
        return Check(name, False, "a good recipe was refused", evidence)
    return Check(
        name, True, f"a bad recipe is refused ({_list(codes)}), a good one loads", evidence
    )


def check_overlap(name: str, rows: Rows, steps: Sequence[str]) -> Check:
    found = spans_of(rows)
    if trouble := _trouble(found, steps):
        return Check(name, False, trouble, {"steps": list(steps)})
    chosen = [found[step] for step in steps]
    # Only the work counts, not the merge after it.
    overlap = min(span.answered_at for span in chosen) - max(span.started_at for span in chosen)
    evidence: dict[str, Json] = {"steps": list(steps), "overlap_ms": _ms(overlap)}
    last_start, first_end = max(s.first_seq for s in chosen), min(s.answered_seq for s in chosen)
    evidence |= {"last_start_row": last_start, "first_end_row": first_end}
    if last_start > first_end or overlap <= 0:
        return Check(name, False, f"{_list(steps)} did not run at the same time", evidence)
    return Check(name, True, f"{len(steps)} steps at work at once for {_ms(overlap)} ms", evidence)


def check_order(name: str, rows: Rows, steps: Sequence[str], is_strict: bool = True) -> Check:
    """The steps ran in listing order, each only once the change of the one before was merged."""
    found = spans_of(rows)
    if trouble := _trouble(found, steps):
        return Check(name, False, trouble, {"steps": list(steps)})
    order = sorted(steps, key=lambda step: found[step].first_seq)
    evidence: dict[str, Json] = {"order": list(order)}
    for before, after in pairwise(order):
        gap = found[after].started_at - found[before].ended_at
        evidence["gap_ms"] = _ms(gap)
        if found[after].first_seq < found[before].last_seq or gap < 0:
            return Check(name, False, f"'{after}' began before '{before}' was done", evidence)
        if not _is_merged(found[before]):
            return Check(name, False, f"the change of '{before}' was not merged", evidence)
        # The Player's answer names the files that were there before.
        if is_strict and f"{before}.txt" not in found[after].text:
            return Check(name, False, f"'{after}' did not see the file of '{before}'", evidence)
    if order != list(steps):
        return Check(name, False, "they did not start in the order of the recipe", evidence)
    return Check(name, True, f"{' → '.join(order)}: never at once", evidence)


def check_handover(name: str, rows: Rows, giver: str, taker: str, is_strict: bool = True) -> Check:
    found, prompts = spans_of(rows), prompts_of(rows)
    if trouble := _trouble(found, (giver, taker)):
        return Check(name, False, trouble)
    gave = found[giver].text.strip()[:_LONGEST_QUOTE]
    evidence: dict[str, Json] = {"gave": gave, "prompt_characters": 0}
    if found[taker].first_seq < found[giver].last_seq:
        return Check(name, False, f"'{taker}' began before '{giver}' had ended", evidence)
    prompt = prompts.get(taker)
    if prompt is None or not prompt.is_on_record:
        return Check(
            name, False, f"the journal does not prove which prompt '{taker}' got", evidence
        )
    evidence["prompt_characters"] = len(prompt.prompt)
    if not gave or gave not in prompt.prompt:
        return Check(name, False, f"the output of '{giver}' did not reach '{taker}'", evidence)
    if is_strict and gave not in found[taker].text:
        return Check(name, False, f"'{taker}' did not see what '{giver}' gave", evidence)
    return Check(name, True, f"the output of '{giver}' is in the prompt of '{taker}'", evidence)


def check_merge(
    name: str, rows: Rows, writer: str, reader: str, content: str | None, is_strict: bool = True
) -> Check:
    """`content`: what the file of `writer` holds in the workspace now; None: it is not there."""
    found = spans_of(rows)
    if trouble := _trouble(found, (writer, reader)):
        return Check(name, False, trouble)
    changes = found[writer].changes
    files = changes.files if changes else 0
    evidence: dict[str, Json] = {
        "files": files,
        "is_merged": bool(changes and changes.is_merged),
        "read_by_dependent": _has_read(rows, reader),
        "in_workspace": content is not None,
    }
    if changes is None or not changes.is_merged:
        return Check(name, False, f"the change of '{writer}' was not merged back", evidence)
    if found[reader].first_seq < found[writer].last_seq:
        return Check(name, False, f"'{reader}' began before the change was merged", evidence)
    if files and content is None:
        return Check(name, False, "the merged file is not in the workspace", evidence)
    if not files:
        said = f"the model of '{writer}' wrote no file, so nothing was merged"
        return Check(name, False, said, evidence)
    if is_strict and (content is None or content.strip() not in found[reader].text):
        return Check(name, False, f"'{reader}' did not see what '{writer}' wrote", evidence)
    return Check(name, True, f"the file of '{writer}' was merged, then '{reader}' ran", evidence)


def check_journal(name: str, journals: Mapping[str, Rows], written_by: int, read_by: int) -> Check:
    """What the other checks rest on: every run is whole, in order, and read by another process."""
    evidence: dict[str, Json] = {
        "runs": len(journals),
        "rows": sum(len(rows) for rows in journals.values()),
        "written_by_pid": written_by,
        "read_by_pid": read_by,
    }
    faults = [f"{run}: {fault}" for run, rows in journals.items() if (fault := _fault(rows))]
    if not journals:
        faults = ["the journal is empty"]
    if written_by == read_by:
        faults.append("it was read by the process that wrote it")
    if faults:
        return Check(name, False, "; ".join(faults), {**evidence, "faults": list(faults)})
    says = f"{evidence['rows']} rows of {len(journals)} runs, read back by another process"
    return Check(name, True, says, evidence)


def _fault(rows: Rows) -> str:
    if [row.seq for row in rows] != list(range(1, len(rows) + 1)):
        return "its rows have gaps, or are out of order"
    if any(isinstance(row.event, UnknownEvent) for row in rows):
        return "it has rows that cannot be read"
    events = [event for _, event in events_of(rows)]
    if not events or not isinstance(events[0], RunStarted):
        return "it does not begin with its start"
    if not isinstance(events[-1], RunEnded):
        return "it does not end with its end"
    if unfinished := [step for step, span in spans_of(rows).items() if not span.has_ended]:
        return f"{_list(unfinished)} started and did not end"
    return "" if events[-1].status == "complete" else f"it ended {events[-1].status}"


def _trouble(found: Mapping[str, StepSpan], steps: Iterable[str]) -> str:
    for step in steps:
        span = found.get(step)
        if span is None or not span.has_ended:
            return f"the journal has no start and end of '{step}'"
        if span.error:
            return f"'{step}' failed: {span.error}"
        if not span.text.strip():
            return f"'{step}' answered nothing"
    return ""


def _is_merged(span: StepSpan) -> bool:
    return span.changes is not None and span.changes.is_merged


def _has_read(rows: Rows, step: str) -> bool:
    return any(
        isinstance(event, ToolEnded)
        and (event.step, event.tool, event.verdict) == (step, "Read", "ok")
        for _, event in events_of(rows)
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
