"""What differed between two runs. In: two Reports or RunStates. Out: Difference, and its text.

Only what their journals hold is compared. An attempt's key says that the work differed; the plans
and the outputs before it say how, as far as they can.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import zip_longest
from typing import Literal, TypeAlias

from stretto.report.model import Delegated, Report, StepReport
from stretto.report.report import report_of
from stretto.report.text import cost, length, show, tokens
from stretto.schedule.state import RunState
from stretto.text.short import listed
from stretto.text.visible import one_line, visible
from stretto.vocabulary.json_value import Json

ComparedRun: TypeAlias = Report | RunState

# Shorter or smaller than this, and a duration differs by chance.
_LEAST_SECONDS = 1.0
_LEAST_SHARE = 0.2
_MOST_DIFF_LINES = 40
_MOST_COMPARED_LINES = 4000  # finding a difference takes the square of the lines
_MOST_CHARACTERS = 240


@dataclass(frozen=True, slots=True)
class ChangedValue:
    what: str  # "status", "agent", "prompt", "output", …
    before: str | None  # None: there is nothing to compare, only something to say
    after: str
    lines: tuple[str, ...] = ()  # a unified diff, where both are texts


@dataclass(frozen=True, slots=True)
class StepDifference:
    id: str
    only_in: Literal["a", "b", ""]  # the run that alone has this step; empty: both have it
    changes: tuple[ChangedValue, ...]
    status: str = ""  # of a step that only one run has


@dataclass(frozen=True, slots=True)
class Difference:
    a: str  # run ids
    b: str
    changes: tuple[ChangedValue, ...]  # of the runs as wholes
    steps: tuple[StepDifference, ...]  # only those that differ, in b's order, then what a had
    same: int  # how many steps do not differ

    @property
    def is_empty(self) -> bool:
        return not self.changes and not self.steps


@dataclass(frozen=True, slots=True)
class _Sources:
    """What templates may be filled with, where it is not the same in both runs."""

    inputs: frozenset[str]
    outputs: frozenset[str]


def difference(a: ComparedRun, b: ComparedRun) -> Difference:
    first, second = _report(a), _report(b)
    in_a, in_b = _by_id(first), _by_id(second)
    sources = _Sources(
        frozenset(_differing(first.inputs, second.inputs)),
        frozenset(_differing(_outputs(first), _outputs(second))),
    )
    ids = dict.fromkeys([*in_b, *in_a])
    steps = [_step(id, in_a.get(id), in_b.get(id), sources) for id in ids]
    differing = tuple(step for step in steps if step.changes or step.only_in)
    changes = tuple(_run_changes(first, second))
    return Difference(first.run_id, second.run_id, changes, differing, len(steps) - len(differing))


def _outputs(report: Report) -> dict[str, object]:
    return {step.id: (step.output, step.outputs) for step in report.steps}


def _differing(a: Mapping[str, object], b: Mapping[str, object]) -> Iterator[str]:
    for name in dict.fromkeys([*a, *b]):
        if name not in a or name not in b or a[name] != b[name]:
            yield name


def _report(run: ComparedRun) -> Report:
    return run if isinstance(run, Report) else report_of(run)


def _by_id(report: Report) -> dict[str, StepReport]:
    return {step.id: step for step in report.steps}


def _run_changes(a: Report, b: Report) -> Iterator[ChangedValue]:
    yield from _compare_texts("workflow", a.workflow, b.workflow)
    yield from _compare_texts("status", a.status, b.status)
    for name in dict.fromkeys([*a.inputs, *b.inputs]):
        if name not in a.inputs or name not in b.inputs:
            was, now = _show_input(a, name), _show_input(b, name)
            yield ChangedValue(f"input {name}", was, now)
        else:
            yield from _compare_values(f"input {name}", a.inputs[name], b.inputs[name])
    yield from _compare_values("output", a.output, b.output)
    yield from _compare_durations(a.duration_seconds, b.duration_seconds)
    yield from _compare_texts("tokens", tokens(a.usage), tokens(b.usage))
    yield from _compare_texts("cost", cost(a.usage), cost(b.usage))
    yield from _compare_texts("retries", str(a.retries), str(b.retries))


def _show_input(report: Report, name: str) -> str:
    return _brief(report.inputs[name]) if name in report.inputs else "not given"


def _step(
    id: str, was: StepReport | None, now: StepReport | None, sources: _Sources
) -> StepDifference:
    if was is not None and now is not None:
        return StepDifference(id, "", tuple(_step_changes(was, now, sources)))
    only = was or now
    return StepDifference(id, "a" if was else "b", (), only.status if only else "")


def _step_changes(a: StepReport, b: StepReport, sources: _Sources) -> Iterator[ChangedValue]:
    yield from _compare_texts("type", a.type, b.type)
    yield from _compare_texts("status", a.status, b.status)
    yield from _compare_texts("reason", a.reason, b.reason)
    yield from _compare_texts("error", a.error or "", b.error or "")
    yield from _compare_texts("agent", ", ".join(a.agents), ", ".join(b.agents))
    if not _is_reused(a) and not _is_reused(b):  # a reused output had no model that could differ
        yield from _compare_texts("model", *(_models(step) for step in (a, b)))
    told = tuple(_instruction_changes(a, b))
    yield from told
    if _has_other_work(a, b):
        causes = _causes(a, b, sources)
        if causes or not told:
            said = listed(causes) if causes else "something that the journal does not name"
            yield ChangedValue("gets other input from", None, said)
    yield from _compare_values("output", a.output, b.output)
    yield from _compare_values("verdict", a.validation, b.validation)
    yield from _compare_texts("attempts", str(len(a.attempts)), str(len(b.attempts)))
    if a.duration_seconds is not None and b.duration_seconds is not None:
        yield from _compare_durations(a.duration_seconds, b.duration_seconds)
    yield from _compare_texts("tokens", tokens(a.usage), tokens(b.usage))
    yield from _compare_texts("cost", cost(a.usage), cost(b.usage))


def _is_reused(step: StepReport) -> bool:
    return bool(step.attempts) and all(each.status == "reused" for each in step.attempts)


def _models(step: StepReport) -> str:
    """The models that answered."""
    return ", ".join(dict.fromkeys(each.model for each in step.attempts if each.model))


_Part: TypeAlias = Callable[[Delegated], str]
_PARTS: tuple[tuple[str, _Part], ...] = (
    ("prompt", lambda told: told.prompt),
    ("instructions", lambda told: told.instructions),
    ("tools", lambda told: ", ".join(told.tools)),
    ("model asked for", lambda told: told.model),
    ("format, schema or rules", lambda told: told.held_to),
)


def _instruction_changes(a: StepReport, b: StepReport) -> Iterator[ChangedValue]:
    """How the plans differ in what the step's agents are told."""
    nobody = Delegated("", "", "", (), (), "", "")
    seen: set[tuple[str, str, str]] = set()
    for was, now in zip_longest(a.delegations, b.delegations, fillvalue=nobody):
        if was.agent != now.agent and (was is nobody or now is nobody):
            yield ChangedValue("asks", was.agent or "nobody", now.agent or "nobody")
            continue
        for what, part in _PARTS:
            change = (what, part(was), part(now))
            # Branches often share an agent: what changed in it is said once.
            if change[1] != change[2] and change not in seen:
                seen.add(change)
                yield from _compare_values(*change)


def _has_other_work(a: StepReport, b: StepReport) -> bool:
    """Equal keys, equal work: what an agent was really told differs when its key does."""
    was, now = _keys(a), _keys(b)
    return any(was[place] != now[place] for place in was.keys() & now.keys())


def _keys(step: StepReport) -> dict[tuple[str, int], tuple[str, str]]:
    return {(each.part, each.number): (each.agent, each.key) for each in step.attempts}


def _causes(a: StepReport, b: StepReport, sources: _Sources) -> list[str]:
    reads = {name for told in (*a.delegations, *b.delegations) for name in told.reads}
    from_inputs = sorted(name for name in sources.inputs if _reads_input(reads, name))
    # What a step of a workflow reads of the steps around it is among its inputs, and no dependency.
    named = [name.split(".")[1] for name in sorted(reads) if name.startswith("steps.")]
    before = dict.fromkeys([*a.depends_on, *b.depends_on, *named])
    return [
        *(f"input {name}" for name in from_inputs),
        *(f"the output of {id}" for id in before if id in sources.outputs),
    ]


def _reads_input(reads: Iterable[str], name: str) -> bool:
    """As `inputs.topic`, `inputs.topic.field`, `inputs.topic[0]`, or by the bare name."""
    spelled = re.compile(rf"(inputs\s*\.\s*)?{re.escape(name)}(?![\w-])")
    return any(spelled.match(read) for read in reads)


def _compare_texts(what: str, before: str, after: str) -> Iterator[ChangedValue]:
    if before != after:
        yield ChangedValue(what, before, after)


def _compare_durations(before: float, after: float) -> Iterator[ChangedValue]:
    gap = abs(before - after)
    if gap >= _LEAST_SECONDS and gap >= _LEAST_SHARE * max(before, after):
        yield ChangedValue("duration", length(before), length(after))


def _compare_values(what: str, before: Json, after: Json) -> Iterator[ChangedValue]:
    if before == after and type(before) is type(after):
        return
    if before is None or after is None:
        yield ChangedValue(what, _brief(before), _brief(after))
        return
    old, new = show(before).splitlines(), show(after).splitlines()
    if max(len(old), len(new)) <= 1:
        yield ChangedValue(what, _brief(before), _brief(after))
        return
    lines = tuple(_diff(old, new))
    yield ChangedValue(what, f"{len(old)} lines", f"{len(new)} lines", lines)


def _diff(old: list[str], new: list[str]) -> Iterator[str]:
    if max(len(old), len(new)) > _MOST_COMPARED_LINES:
        return
    # The first two lines only name files.
    lines = list(unified_diff(old, new, n=1, lineterm=""))[2:]
    yield from (_shorten_line(line) for line in lines[:_MOST_DIFF_LINES])
    if len(lines) > _MOST_DIFF_LINES:
        yield f"… {len(lines) - _MOST_DIFF_LINES:,} lines more"


def _shorten_line(line: str) -> str:
    """Cut a line, with its blanks as they are: they may be what differs."""
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]} …"


def _brief(value: Json) -> str:
    return "none" if value is None else one_line(show(value), _MOST_CHARACTERS)


def difference_as_text(difference: Difference) -> str:
    """For a terminal or a log: no colours, no control characters."""
    head = [f"a: run {difference.a}", f"b: run {difference.b}"]
    blocks = ["\n".join(visible(line) for line in head)]
    if difference.is_empty:
        blocks.append("The two runs do not differ.")
        return "\n\n".join(blocks)
    if difference.changes:
        blocks.append("\n".join(["run", *_change_lines(difference.changes)]))
    blocks += ["\n".join(_step_lines(step)) for step in difference.steps]
    if difference.same:
        steps = "step does" if difference.same == 1 else "steps do"
        blocks.append(f"{difference.same} {steps} not differ.")
    return "\n\n".join(blocks)


def _step_lines(step: StepDifference) -> Iterator[str]:
    if step.only_in:
        yield f"step {one_line(step.id)}: only in {step.only_in} ({step.status})"
        return
    yield f"step {one_line(step.id)}"
    yield from _change_lines(step.changes)


def _change_lines(changes: Iterable[ChangedValue]) -> Iterator[str]:
    for change in changes:
        said = one_line(change.after, _MOST_CHARACTERS) or "none"
        if change.before is not None:
            said = f"{one_line(change.before, _MOST_CHARACTERS) or 'none'} → {said}"
        yield f"  {change.what}: {said}"
        yield from (f"    {visible(line)}" for line in change.lines)


def difference_as_json(difference: Difference) -> dict[str, object]:
    return {
        "ok": True,
        "runs": [difference.a, difference.b],
        "same": difference.same,
        "changes": [_change_as_json(change) for change in difference.changes],
        "steps": {
            step.id: {
                "only_in": {"a": difference.a, "b": difference.b}.get(step.only_in),
                "changes": [_change_as_json(change) for change in step.changes],
            }
            for step in difference.steps
        },
    }


def _change_as_json(change: ChangedValue) -> dict[str, object]:
    return {
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "diff": list(change.lines),
    }
