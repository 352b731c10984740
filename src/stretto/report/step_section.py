"""One step on the page. In: StepReport and its transcript. Out: Html: its error first, then all else."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stretto.report.markup import Content, Html, join, tag
from stretto.report.model import AttemptReport, Report, StepReport
from stretto.report.page_parts import (
    Column,
    Room,
    beginning,
    command,
    facts,
    folded,
    labelled,
    muted,
    quote,
    quoted,
    show_value,
    status_class,
    table,
    word,
)
from stretto.report.text import (
    calls_of,
    cost,
    cost_of,
    length,
    raw,
    since,
    tokens,
    uses_of,
)
from stretto.report.transcript import Excerpt
from stretto.text.short import listed
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.statuses import StepStatus

# A step with more parts than this is a map: one row an element would be too many.
_MOST_PARTS = 16


@dataclass(frozen=True, slots=True)
class AlikeAttempts:
    attempts: tuple[AttemptReport, ...]  # of one agent and model, with one outcome

    @property
    def name(self) -> str:
        """`2`, `1 to 3`, `pro 1`, or `1,000 of 250 parts`."""
        first, last, count = self.attempts[0], self.attempts[-1], len(self.attempts)
        parts = len({attempt.part for attempt in self.attempts})
        if parts > 1:
            return f"{count:,} of {parts:,} parts"
        numbers = f"{first.number} to {last.number}" if count > 1 else str(first.number)
        if count > 1 and last.number - first.number != count - 1:
            numbers = ", ".join(str(attempt.number) for attempt in self.attempts)
        return f"{first.part} {numbers}".strip()

    @property
    def seconds(self) -> float | None:
        """Of all together; None: none of them has ended."""
        ended = [
            each.ended_at - each.started_at
            for each in self.attempts
            if each.started_at is not None and each.ended_at is not None
        ]
        return max(0.0, sum(ended)) if ended else None

    @property
    def usage(self) -> Usage:
        total = Usage()
        for attempt in self.attempts:
            total = total + attempt.usage
        return total


def group_alike(attempts: Sequence[AttemptReport]) -> list[AlikeAttempts]:
    """By the first of each group. A map's parts are told together, other parts one by one."""
    is_map = len({attempt.part for attempt in attempts}) > _MOST_PARTS
    groups: dict[tuple[str | None, ...], list[AttemptReport]] = {}
    for each in attempts:
        outcome = (each.agent, each.model, each.status, each.failure, each.error, each.reused_from)
        groups.setdefault(("" if is_map else each.part, *outcome), []).append(each)
    return [AlikeAttempts(tuple(group)) for group in groups.values()]


Transcripts: TypeAlias = Mapping[tuple[str, str, int], Sequence[Excerpt]]
# A page must open in any browser; `stretto logs` has the rest.
_MOST_ATTEMPTS = 20
_MOST_ENTRIES = 100
_MOST_CALLS = 40
_MOST_ROWS = 60
_MOST_LOG_CHARACTERS = 1_000_000
_MOST_ENTRY_CHARACTERS = 4_000
_LEAST_ENTRY_CHARACTERS = 300
_MOST_NAMES = 6
_VERDICTS = {"error": "failed"}
_ATTEMPT_COLUMNS = (
    Column("Attempts"),
    Column("Outcome", "words"),
    Column("Agent"),
    Column("Started", "figure"),
    Column("Took", "figure"),
    Column("Tokens", "figure"),
    Column("Cost", "figure"),
)
_CALL_COLUMNS = (
    Column("Call", "words"),
    Column("Verdict"),
    Column("What came back", "words"),
    Column("Attempts"),
)


class StepSections:
    """Every step of a report, in the room that the page has for it."""

    def __init__(self, report: Report, logs: Transcripts, room: Room) -> None:
        self._report = report
        self._logs = logs
        self._room = room
        shown = sum(min(len(entries), _MOST_ENTRIES) for entries in logs.values())
        share = min(_MOST_ENTRY_CHARACTERS, _MOST_LOG_CHARACTERS // max(1, shown))
        self._most_of_entry = max(_LEAST_ENTRY_CHARACTERS, share)

    def of(self, number: int, step: StepReport) -> Html:
        agents = ", ".join(step.agents) or step.type
        summary = tag(
            "summary",
            tag("h3", step.id),
            word(step.status),
            tag("span", agents, class_="by"),
            tag("span", length(step.duration_seconds), class_="figure"),
            tag("span", _tokens_spent(step), class_="figure"),
        )
        # The id is inside: a link to it opens what is folded around it.
        body = tag("div", self._body(step), id=f"step-{number}", class_="body")
        is_open = step.status in (StepStatus.FAILED, StepStatus.AWAITING_APPROVAL)
        return tag("details", summary, body, class_=status_class(step.status), open=is_open)

    def _body(self, step: StepReport) -> Iterator[Html]:
        if step.error is not None:
            error = quote(step.error, f"Error of {step.id}")
            yield tag("div", tag("h4", "Error"), error, class_="error")
        if step.reason:
            yield tag("p", f"{step.status.upper()}: {step.reason}")
        if step.status == StepStatus.AWAITING_APPROVAL:
            shows = command(f"stretto approve {self._report.run_id} {step.id} --show")
            yield tag("p", "A person must approve or reject it: ", shows, " shows what would run.")
        yield facts(self._facts(step), "facts-of-step")
        if step.warnings:
            yield labelled("Warnings", tag("ul", (tag("li", text) for text in step.warnings)))
        yield from self._prompt(step)
        yield from self._output(step)
        yield from _checks(step)
        yield from self._attempts(step)
        yield from self._calls(step)
        yield from _changes(step, self._report.run_id)
        yield from self._transcript(step)

    def _facts(self, step: StepReport) -> Iterator[tuple[str, Content]]:
        models = dict.fromkeys(attempt.model for attempt in step.attempts if attempt.model)
        yield "Type", step.type
        if step.depends_on:
            yield "After", ", ".join(step.depends_on)
        yield "Agent", ", ".join(step.agents) or "nobody is asked"
        if models:
            yield "Model", ", ".join(models)
        if step.attempts:
            retries = f", {step.retries:,} retries" if step.retries else ""
            yield "Attempts", f"{len(step.attempts):,}{retries}"
        if step.started_at is not None:
            started = since(self._report.started_at, step.started_at)
            yield "Time", f"{length(step.duration_seconds)}, from {started}"
        if step.usage.tokens:
            yield "Tokens", f"{tokens(step.usage)} ({step.usage.input_tokens:,} in)"
            yield "Cost", cost_of(step.usage, uses_of((step,)))
        if step.playbooks:
            yield "Playbooks", ", ".join(step.playbooks)
        if step.calls.made:
            yield "Tool calls", calls_of(step.calls)

    def _prompt(self, step: StepReport) -> Iterator[Html]:
        """As it was sent the last time; the transcripts have those before."""
        for attempt in reversed(step.attempts):
            entries = self._logs.get((step.id, attempt.part, attempt.number), ())
            told = [entry for entry in entries if entry.kind == "prompt"]
            if told:
                part = f" of {attempt.part}" if attempt.part else ""
                shown = quoted(self._text_of(told[0]), f"Prompt{part}")
                yield labelled(f"Prompt{part}, as it was sent", shown, self._more(step, told[0]))
                return

    def _output(self, step: StepReport) -> Iterator[Html]:
        if step.kept_output is None:
            if step.status == StepStatus.SUCCEEDED:
                yield muted("It has no output.")
            return
        name = (
            "Its output" if step.status == StepStatus.SUCCEEDED else "What stands in for its output"
        )
        rest = f"stretto output {self._report.run_id} {step.id}"
        shown = show_value(step.output, f"Output of {step.id}", self._room, rest)
        yield labelled(name, shown)

    def _attempts(self, step: StepReport) -> Iterator[Html]:
        if step.validation is not None:
            verdict = quoted(raw(step.validation), f"Last verdict on {step.id}")
            yield labelled("Last verdict", verdict)
        if len(step.attempts) < 2 and not any(each.failure for each in step.attempts):
            return
        groups = group_alike(step.attempts)
        rows = (self._attempt_row(group) for group in groups[:_MOST_ROWS])
        yield table(f"Attempts of {step.id}", _ATTEMPT_COLUMNS, rows)
        if len(groups) > _MOST_ROWS:
            yield self._say_left_out(step, f"{len(groups) - _MOST_ROWS:,} more rows")

    def _attempt_row(self, group: AlikeAttempts) -> list[Content]:
        first = group.attempts[0]
        return [
            group.name,
            [word(first.status), " ", _why(group)],
            f"{first.agent} on {first.model}" if first.model else first.agent,
            since(self._report.started_at, first.started_at),
            length(group.seconds),
            tokens(group.usage),
            cost(group.usage),
        ]

    def _calls(self, step: StepReport) -> Iterator[Html]:
        """Equal calls of several attempts with equal results are one row."""
        calls: dict[Excerpt, list[str]] = {}
        for attempt in step.attempts:
            name = f"{attempt.part} {attempt.number}".strip()
            for entry in self._logs.get((step.id, attempt.part, attempt.number), ()):
                if entry.kind == "tool":
                    calls.setdefault(entry, []).append(name)
        if not calls:
            return
        rows = list(calls.items())
        # What did not work is never among those left out.
        ranked = sorted(range(len(rows)), key=lambda place: rows[place][0].verdict == "ok")
        shown = [rows[place] for place in sorted(ranked[:_MOST_CALLS])]
        cells = (self._call_row(entry, names) for entry, names in shown)
        yield table(f"Tool calls of {step.id}", _CALL_COLUMNS, cells)
        if len(rows) > _MOST_CALLS:
            yield self._say_left_out(step, f"{len(rows) - _MOST_CALLS:,} more calls")

    def _call_row(self, entry: Excerpt, names: Sequence[str]) -> list[Content]:
        said, _, result = entry.text.partition("\n")
        tool, _, arguments = said.partition(" ")
        shown = [tool, " ", tag("code", beginning(arguments[: self._most_of_entry], "Arguments"))]
        came_back = beginning(result[: self._most_of_entry], f"What {tool} gave") if result else "-"
        verdict = _VERDICTS.get(entry.verdict, entry.verdict)
        return [shown, word(verdict), came_back, listed(dict.fromkeys(names), _MOST_NAMES)]

    def _transcript(self, step: StepReport) -> Iterator[Html]:
        attempts = [
            each for each in step.attempts if (step.id, each.part, each.number) in self._logs
        ]
        if not attempts:
            return
        shown = [self._transcript_of(step, attempt) for attempt in attempts[:_MOST_ATTEMPTS]]
        if len(attempts) > _MOST_ATTEMPTS:
            shown.append(
                self._say_left_out(step, f"{len(attempts) - _MOST_ATTEMPTS:,} more attempts")
            )
        yield labelled("Transcript", shown)

    def _transcript_of(self, step: StepReport, attempt: AttemptReport) -> Html:
        entries = self._logs[step.id, attempt.part, attempt.number]
        name = f"{attempt.part} attempt {attempt.number} by {attempt.agent}, {attempt.status}"
        shown = [self._entry(step, entry) for entry in entries[:_MOST_ENTRIES]]
        if len(entries) > _MOST_ENTRIES:
            shown.append(self._say_left_out(step, f"{len(entries) - _MOST_ENTRIES:,} more entries"))
        return folded(name.strip(), tag("ol", shown, class_="transcript"))

    def _entry(self, step: StepReport, entry: Excerpt) -> Html:
        verdict = _VERDICTS.get(entry.verdict, entry.verdict)
        mark = word(verdict) if verdict and verdict != "ok" else ""
        said = quote(self._text_of(entry), f"{entry.kind} of {entry.step}")
        kind = tag("p", entry.kind, " ", mark, class_="kind-of-entry")
        return tag("li", kind, said, self._more(step, entry), class_=f"entry-{entry.kind}")

    def _text_of(self, entry: Excerpt) -> str:
        most = self._most_of_entry
        return entry.text if len(entry.text) <= most else f"{entry.text[:most]}…"

    def _more(self, step: StepReport, entry: Excerpt) -> Content:
        left_out = entry.left_out + max(0, len(entry.text) - self._most_of_entry)
        return self._say_left_out(step, f"{left_out:,} characters more") if left_out else ""

    def _say_left_out(self, step: StepReport, says: str) -> Html:
        return muted(f"{says}: ", command(f"stretto logs {self._report.run_id} {step.id}"))


def _tokens_spent(step: StepReport) -> str:
    return f"{tokens(step.usage)} tokens" if step.usage.tokens else ""


def _why(group: AlikeAttempts) -> Content:
    first, count = group.attempts[0], len(group.attempts)
    if first.reused_from:
        return f"from run {first.reused_from}"
    if not first.failure:
        return f"{count:,} alike" if count > 1 else ""
    alike = f"{count:,} attempts failed alike: " if count > 1 else ""
    return [alike, beginning(f"{first.failure}: {first.error}", "Error")]


def _checks(step: StepReport) -> Iterator[Html]:
    """What its answers are held to."""
    told = dict.fromkeys(each.held_to for each in step.delegations)
    for held_to in told:
        format, *schemas, rules = json.loads(held_to)
        items = [tag("li", f"format: {format}")] if format else []
        items += [tag("li", f"rule: {_rule(rule)}") for rule in rules or ()]
        items += [
            tag("li", folded("a JSON schema", quote(raw(schema), "JSON schema")))
            for schema in schemas
            if schema
        ]
        if items:
            yield labelled("Checked for", tag("ul", items))


def _rule(rule: object) -> str:
    return rule if isinstance(rule, str) else json.dumps(rule, ensure_ascii=False)


_KINDS = (("+++", "head"), ("---", "head"), ("@@", "place"), ("+", "added"), ("-", "removed"))
_HEAD = re.compile("diff |index |new file|deleted file|old mode|new mode|rename |similarity ")


def _changes(step: StepReport, run_id: str) -> Iterator[Html]:
    changes = step.changes
    if changes is None:
        return
    count = f"{changes.files:,} file{'' if changes.files == 1 else 's'}"
    lines = f"+{changes.insertions:,} -{changes.deletions:,} lines"
    says = muted(
        f"{count}, {lines}, {changes.standing}: ", command(f"stretto diff {run_id} {step.id}")
    )
    yield labelled("Changes", says, _diff(changes.patch, step.id) if changes.patch else "")


def _diff(patch: str, step: str) -> Html:
    # A sign stands at the beginning of each line: colour is not all that tells them apart.
    content = join(_diff_line(line) for line in patch.split("\n"))
    return quote(content, f"Changes of {step}", "diff")


def _diff_line(line: str) -> Html:
    kind = "head" if _HEAD.match(line) else ""
    kind = kind or next((kind for start, kind in _KINDS if line.startswith(start)), "")
    return tag("span", f"{line}\n", class_=kind or False)
