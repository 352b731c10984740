"""Kill chats, goals and batches with -9 at random moments, and go on with them. Exit 1 if anything is amiss.

    python benchmarks/goal_kills.py [--kills 200 | --quick] [--seed N] [--folder DIR]

A model on loopback answers, and counts what it gave. Each trial is killed up to four times and then goes
on to its end. There are four kinds: a chat whose turn delegates (a task, a batch, a workflow), a goal
over a workflow, a goal over the lead agent, and a batch. Half of them have a budget. At the end:

    lost       trials that did not end as they would have without a kill
    doubled    runs more than there should be, calls that succeeded twice in a run, and work done twice
    twice      trials whose certain usage is more than the model gave: something was counted twice
    uncounted  trials with a budget whose usage is less than the model gave
    untold     trials whose usage is not the sum of that of their runs
"""

import asyncio
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from killed import PATIENCE_SECONDS, SRC, ask, environment, kill, read_options, say_figures, start

sys.path.insert(0, str(SRC))

from stretto import RunReport, Stretto, Usage
from stretto.testing.openai_script import Asked, Said, ServerAnswer, TokenUsage, ToolCall
from stretto.testing.openai_server import serving

QUICK = 6  # kills of the tests
SOME_KILLS = 60  # of --quick
MANY_KILLS = 200
KILLS_A_TRIAL = 4
SLOWEST_SECONDS = 0.9  # of an answer, so that most kills come while somebody waits for one
LATEST_SECONDS = 2.5  # of a kill, after the start of a process
GIVEN = TokenUsage(40, 9)
MODEL = "openai:m"
MARK = """\
name: mark
inputs: {evidence: {default: none}}
steps:
  - {id: think, subagent: writer, prompt: "Think: {{inputs.evidence}}"}
  - id: mark
    run: mkdir -p marks && touch "marks/$RUN"
    env: {RUN: "{{run.id}}"}
    write_set: [marks/**]
    recovery: rerun
    depends_on: think
"""
TASKS = "".join(f'{{"agent": "writer", "prompt": "Task {n}"}}\n' for n in range(6))
THREE = [{"agent": "writer", "prompt": f"Part {n}", "description": f"part {n}"} for n in range(3)]
DELEGATES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("task", {"agent": "writer", "prompt": "Alone", "description": "alone"}),
    ("task_batch", {"tasks": THREE}),
    ("run_workflow", {"name": "mark", "inputs": {}}),
)
VERIFY = "command:test -d marks && test $(ls marks | wc -l) -ge 2"
CHAT, WORKFLOW_GOAL, LEAD_GOAL, BATCH = "chat", "goal over a workflow", "goal", "batch"
KINDS = (CHAT, WORKFLOW_GOAL, LEAD_GOAL, BATCH)
RUNS = {CHAT: 4, WORKFLOW_GOAL: 2, LEAD_GOAL: 4, BATCH: 1}  # those of a trial that nobody kills
MARKS = {CHAT: 1, WORKFLOW_GOAL: 2, LEAD_GOAL: 2, BATCH: 0}


@dataclass
class Figures:
    kills: int = 0
    cut_off: int = 0  # attempts that were under way when a kill came
    trials: Counter[str] = field(default_factory=Counter)
    bad: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("lost", "doubled", "twice", "uncounted", "untold"), 0
        )
    )
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not any(self.bad.values())


class Provider:
    """What the model says, and what it has given so far, to whomever."""

    def __init__(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]], chance: random.Random
    ) -> None:
        self._calls = calls
        self._chance = chance
        self.given = 0

    def answer(self, asked: Asked) -> ServerAnswer:
        self.given += GIVEN.prompt + GIVEN.completion
        delay = self._chance.uniform(0.05, SLOWEST_SECONDS)
        if "task_batch" not in asked.tool_names:
            return Said("Done.", usage=GIVEN, delay_seconds=delay)
        last = max(n for n, each in enumerate(asked.messages) if each.get("role") == "user")
        done = sum(each.get("role") == "assistant" for each in asked.messages[last:])
        calls = tuple(ToolCall(*each) for each in self._calls[done : done + 1])
        return Said("" if calls else "All done.", calls, GIVEN, delay)


@dataclass
class Trial:
    kind: str
    place: Path
    url: str
    is_bounded: bool

    @property
    def more(self) -> dict[str, str]:
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "sk-loopback-0123456789",
                "STRETTO_TRUST": "1", "STRETTO_MODEL": MODEL, "STRETTO_MAX_CRASHES": "100"}  # fmt: skip

    def prepare(self) -> None:
        work = self.place / "work"
        (work / "workflows").mkdir(parents=True)
        (work / "workflows" / "mark.yaml").write_text(MARK)
        (work / "tasks.jsonl").write_text(TASKS)

    def ask(self, *words: str) -> Any:
        return ask(self.place, *words, more=self.more)

    def go_on(self, words: Sequence[str]) -> None:
        start(self.place, words, self.more).wait(PATIENCE_SECONDS)

    def words(self) -> tuple[str, ...] | None:
        """What begins the trial, or goes on with it. None: it has ended."""
        budget = ("--budget", "tokens=500k") if self.is_bounded else ()
        match self.kind:
            case "chat":
                chats = self.ask("chat", "--list", "--json")["chats"]
                if not chats or not chats[0]["turns"]:
                    return ("chat", "-p", "Do all of it", "--permission", "auto", *budget)
                is_open = chats[0]["status"] in ("open", "waiting")
                return ("chat", "--resume", "last", "--json") if is_open else None
            case "batch":
                runs = self.ask("runs", "--json")["runs"]
                if not runs:
                    return ("batch", "tasks.jsonl")
                return ("resume", runs[0]["run_id"]) if runs[0]["status"] != "complete" else None
            case _:
                goals = self.ask("goal", "list", "--json")["goals"]
                if not goals:
                    over = ("--workflow", "mark") if self.kind == WORKFLOW_GOAL else ()
                    return ("goal", "set", "Two marks", "--verify", VERIFY, *over, "--permission",
                            "auto", *budget)  # fmt: skip
                is_active = goals[0]["state"] == "active"
                return ("goal", "resume", goals[0]["id"]) if is_active else None


def try_kills(folder: Path, kills: int, chance: random.Random) -> Figures:
    figures, number = Figures(), 0
    while figures.kills < kills:
        kind, is_bounded = KINDS[number % 4], number // 4 % 2 == 0
        if kind == BATCH:
            is_bounded = False  # a batch takes no budget
        calls = DELEGATES[2:] if kind == LEAD_GOAL else DELEGATES
        provider = Provider(calls, chance)
        with serving(provider.answer) as server:
            trial = Trial(kind, folder / str(number), server.url, is_bounded)
            trial.prepare()
            _kill_and_go_on(trial, min(KILLS_A_TRIAL, kills - figures.kills), chance, figures)
            asyncio.run(judge(trial, provider.given, figures))
        figures.trials[kind] += 1
        number += 1
    return figures


def _kill_and_go_on(trial: Trial, kills: int, chance: random.Random, figures: Figures) -> None:
    for _ in range(kills):
        words = trial.words()
        if words is None:
            return
        child = start(trial.place, words, trial.more)
        try:
            child.wait(chance.uniform(0.5, LATEST_SECONDS))
        except subprocess.TimeoutExpired:
            figures.kills += kill(child)
    for _ in range(3):  # a process that was killed a moment ago may still hold a lease
        words = trial.words()
        if words is None:
            return
        trial.go_on(words)


async def judge(trial: Trial, given: int, figures: Figures) -> None:
    """Look at all that there is now, and at what the model has given."""
    environ = environment(trial.place, trial.more)
    async with Stretto(trial.place / "work", environ=environ) as stretto:
        ids = [each.id for each in await stretto.runs()]
        reports = [await stretto.open(id).report() for id in ids]
        usage, is_right = await _outcome(stretto, trial.kind, reports)
    said = f"{trial.kind} in {trial.place}"
    figures.cut_off += sum(
        each.status == "in doubt"
        for report in reports
        for step in report.steps
        for each in step.attempts
    )
    certain, all_of_it = _usage_of(reports)
    found = {
        "lost": int(not is_right or any(each.status != "complete" for each in reports)),
        "doubled": abs(len(ids) - RUNS[trial.kind])
        + sum(map(_doubled, reports))
        + abs(_marks(trial.place) - MARKS[trial.kind]),
        "twice": int(certain > given),
        "uncounted": int(trial.is_bounded and all_of_it < given),
        "untold": int(usage.tokens != all_of_it),
    }
    for name, count in found.items():
        figures.bad[name] += count
    if any(found.values()):
        sums = f"given {given}, certain {certain}, all {all_of_it}, told {usage.tokens}"
        statuses = [f"{each.workflow}: {each.status}" for each in reports]
        figures.notes.append(f"{said}: {found}; {sums}; {statuses}")


async def _outcome(stretto: Stretto, kind: str, reports: Sequence[RunReport]) -> tuple[Usage, bool]:
    """What it says that it took, and whether it ended as it should."""
    if kind == CHAT:
        [turn] = await stretto.chat(resume="last").turns()
        return turn.usage, turn.ok and turn.text == "All done." and all(e.ok for e in turn.calls)
    if kind == BATCH:
        return reports[0].usage, len(reports[0].steps) == TASKS.count("\n")
    [goal] = await stretto.goals.list()
    return goal.usage, goal.status == "achieved" and goal.iterations == 2


def _usage_of(reports: Sequence[RunReport]) -> tuple[int, int]:
    """Tokens of attempts that ended, and of all: of those that a kill cut off as well."""
    attempts = [e for report in reports for step in report.steps for e in step.attempts]
    certain = sum(each.usage.tokens for each in attempts if each.status != "in doubt")
    return certain, sum(each.usage.tokens for each in attempts)


def _doubled(report: RunReport) -> int:
    counts = Counter(
        (step.id, each.part)
        for step in report.steps
        for each in step.attempts
        if each.status == "succeeded"
    )
    return sum(count - 1 for count in counts.values())


def _marks(place: Path) -> int:
    folder = place / "work" / "marks"
    return len(list(folder.iterdir())) if folder.exists() else 0


def main(say: Callable[[str], None] = print) -> int:
    options = read_options(__doc__, MANY_KILLS, SOME_KILLS)
    with tempfile.TemporaryDirectory(prefix="stretto-kills-", dir=options.folder) as folder:
        figures = try_kills(Path(folder), options.kills, random.Random(options.seed))
    trials = ", ".join(f"{count} of a {kind}" for kind, count in figures.trials.items())
    say(f"{figures.kills} kills in {figures.trials.total()} trials ({trials})")
    say(f"{figures.cut_off} attempts were cut off")
    say_figures(figures.bad, say)
    for note in figures.notes:
        say(note)
    return 0 if figures.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
