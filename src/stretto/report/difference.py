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

from stretto.report.model import Report, StepReport, Told
from stretto.report.report import report_of
from stretto.report.text import cost, length, shown, tokens
from stretto.schedule.state import RunState
from stretto.text.visible import one_line, visible
from stretto.vocabulary.names import listed
from stretto.vocabulary.values import Json

Run: TypeAlias = Report | RunState

# Shorter or smaller than this, and a duration differs by chance.
_LEAST_SECONDS = 1.0
_LEAST_SHARE = 0.2
_MOST_DIFF_LINES = 40
_MOST_COMPARED_LINES = 4000  # finding a difference takes the square of the lines
_MOST_CHARACTERS = 240


@dataclass(frozen=True, slots=True)
class Change:
    what: str  # "status", "agent", "prompt", "output", …
    before: str | None  # None: there is nothing to compare, only something to say
    after: str
    lines: tuple[str, ...] = ()  # a unified diff, where both are texts


@dataclass(frozen=True, slots=True)
class StepDifference:
    id: str
    only_in: Literal["a", "b", ""]  # the run that alone has this step; empty: both have it
    changes: tuple[Change, ...]
    status: str = ""  # of a step that only one run has


@dataclass(frozen=True, slots=True)
class Difference:
    a: str  # run ids
    b: str
    changes: tuple[Change, ...]  # of the runs as wholes
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


def difference(a: Run, b: Run) -> Difference:
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


def _report(run: Run) -> Report:
    return run if isinstance(run, Report) else report_of(run)


def _by_id(report: Report) -> dict[str, StepReport]:
    return {step.id: step for step in report.steps}


def _run_changes(a: Report, b: Report) -> Iterator[Change]:
    yield from _changed("workflow", a.workflow, b.workflow)
    yield from _changed("status", a.status, b.status)
    for name in dict.fromkeys([*a.inputs, *b.inputs]):
        if name not in a.inputs or name not in b.inputs:
            was, now = _given(a, name), _given(b, name)
            yield Change(f"input {name}", was, now)
        else:
            yield from _value_changed(f"input {name}", a.inputs[name], b.inputs[name])
    yield from _value_changed("output", a.output, b.output)
    yield from _took_longer(a.duration_seconds, b.duration_seconds)
    yield from _changed("tokens", tokens(a.usage), tokens(b.usage))
    yield from _changed("cost", cost(a.usage), cost(b.usage))
    yield from _changed("retries", str(a.retries), str(b.retries))


def _given(report: Report, name: str) -> str:
    return _brief(report.inputs[name]) if name in report.inputs else "not given"


def _step(
    id: str, was: StepReport | None, now: StepReport | None, sources: _Sources
) -> StepDifference:
    if was is not None and now is not None:
        return StepDifference(id, "", tuple(_step_changes(was, now, sources)))
    only = was or now
    return StepDifference(id, "a" if was else "b", (), only.status if only else "")


def _step_changes(a: StepReport, b: StepReport, sources: _Sources) -> Iterator[Change]:
    yield from _changed("type", a.type, b.type)
    yield from _changed("status", a.status, b.status)
    yield from _changed("reason", a.reason, b.reason)
    yield from _changed("error", a.error or "", b.error or "")
    yield from _changed("agent", ", ".join(a.agents), ", ".join(b.agents))
    yield from _changed("model", *(_models(step) for step in (a, b)))
    told = tuple(_told_changes(a, b))
    yield from told
    if _has_other_work(a, b):
        causes = _causes(a, b, sources)
        if causes or not told:
            said = listed(causes) if causes else "something that the journal does not name"
            yield Change("told otherwise by", None, said)
    yield from _value_changed("output", a.output, b.output)
    yield from _value_changed("verdict", a.validation, b.validation)
    yield from _changed("attempts", str(len(a.attempts)), str(len(b.attempts)))
    if a.duration_seconds is not None and b.duration_seconds is not None:
        yield from _took_longer(a.duration_seconds, b.duration_seconds)
    yield from _changed("tokens", tokens(a.usage), tokens(b.usage))
    yield from _changed("cost", cost(a.usage), cost(b.usage))


def _models(step: StepReport) -> str:
    """Those that answered."""
    return ", ".join(dict.fromkeys(each.model for each in step.attempts if each.model))


_Part: TypeAlias = Callable[[Told], str]
_PARTS: tuple[tuple[str, _Part], ...] = (
    ("prompt", lambda told: told.prompt),
    ("instructions", lambda told: told.instructions),
    ("tools", lambda told: ", ".join(told.tools)),
    ("model asked for", lambda told: told.model),
    ("format, schema or rules", lambda told: told.held_to),
)


def _told_changes(a: StepReport, b: StepReport) -> Iterator[Change]:
    """How the plans differ in what the step's agents are told."""
    nobody = Told("", "", "", (), (), "", "")
    seen: set[tuple[str, str, str]] = set()
    for was, now in zip_longest(a.told, b.told, fillvalue=nobody):
        if was.agent != now.agent and (was is nobody or now is nobody):
            yield Change("asks", was.agent or "nobody", now.agent or "nobody")
            continue
        for what, part in _PARTS:
            change = (what, part(was), part(now))
            # Branches often share an agent: what changed in it is said once.
            if change[1] != change[2] and change not in seen:
                seen.add(change)
                yield from _value_changed(*change)


def _has_other_work(a: StepReport, b: StepReport) -> bool:
    """Equal keys, equal work: what an agent was really told differs when its key does."""
    was, now = _keys(a), _keys(b)
    return any(was[place] != now[place] for place in was.keys() & now.keys())


def _keys(step: StepReport) -> dict[tuple[str, int], tuple[str, str]]:
    return {(each.part, each.number): (each.agent, each.key) for each in step.attempts}


def _causes(a: StepReport, b: StepReport, sources: _Sources) -> list[str]:
    reads = {name for told in (*a.told, *b.told) for name in told.reads}
    from_inputs = sorted(name for name in sources.inputs if _reads_input(reads, name))
    before = dict.fromkeys([*a.depends_on, *b.depends_on])
    return [
        *(f"input {name}" for name in from_inputs),
        *(f"the output of {id}" for id in before if id in sources.outputs),
    ]


def _reads_input(reads: Iterable[str], name: str) -> bool:
    """As `inputs.topic`, `inputs.topic.field`, `inputs.topic[0]`, or by the bare name."""
    spelled = re.compile(rf"(inputs\s*\.\s*)?{re.escape(name)}(?![\w-])")
    return any(spelled.match(read) for read in reads)


def _changed(what: str, before: str, after: str) -> Iterator[Change]:
    if before != after:
        yield Change(what, before, after)


def _took_longer(before: float, after: float) -> Iterator[Change]:
    gap = abs(before - after)
    if gap >= _LEAST_SECONDS and gap >= _LEAST_SHARE * max(before, after):
        yield Change("duration", length(before), length(after))


def _value_changed(what: str, before: Json, after: Json) -> Iterator[Change]:
    if before == after and type(before) is type(after):
        return
    if before is None or after is None:
        yield Change(what, _brief(before), _brief(after))
        return
    old, new = shown(before).splitlines(), shown(after).splitlines()
    if max(len(old), len(new)) <= 1:
        yield Change(what, _brief(before), _brief(after))
        return
    lines = tuple(_diff(old, new))
    yield Change(what, f"{len(old)} lines", f"{len(new)} lines", lines)


def _diff(old: list[str], new: list[str]) -> Iterator[str]:
    if max(len(old), len(new)) > _MOST_COMPARED_LINES:
        return
    # The first two lines only name files.
    lines = list(unified_diff(old, new, n=1, lineterm=""))[2:]
    yield from (_cut(line) for line in lines[:_MOST_DIFF_LINES])
    if len(lines) > _MOST_DIFF_LINES:
        yield f"… {len(lines) - _MOST_DIFF_LINES:,} lines more"


def _cut(line: str) -> str:
    """Its blanks stay: they may be what differs."""
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]} …"


def _brief(value: Json) -> str:
    return "none" if value is None else one_line(shown(value), _MOST_CHARACTERS)


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


def _change_lines(changes: Iterable[Change]) -> Iterator[str]:
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


def _change_as_json(change: Change) -> dict[str, object]:
    return {
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "diff": list(change.lines),
    }
