"""Every reused answer is the one that a fresh run would have been asked for, at that place.

Random recipes with many equal steps, commands and other recipes as steps, run after run on one store: fresh, retried, forked, edited,
with other models, with failures and cached steps. Every answer is unique, so each reused one can
be traced to the request that made it.

    python tests/properties/test_reuse.py 2000     # more of them, and the figures
"""

import json
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeAlias, cast

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from msgspec import structs

from stretto.adapters.stores.memory import MemoryJournal
from stretto.events.attempts import AttemptId, CheckPart, ItemPart
from stretto.events.codec import UnknownEvent
from stretto.events.model import AttemptSucceeded, Event
from stretto.execution.reuse import NOTHING, downstream, reusable
from stretto.execution.runs import Runs, Start
from stretto.plan.model import Plan, PlannedMap, PlannedParallel, briefs
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.ports.workspace import FilesDigest, FilesToRead, Workspaces
from stretto.recipe.model import NO_OUTPUT
from stretto.schedule.advance import advance
from stretto.schedule.commands import StartAttempt
from stretto.schedule.state import RunState, begin
from stretto.testing.clock import VirtualClock
from stretto.validation.combined_schema import combine_schemas
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.models import Setup
from stretto.vocabulary.names import RunId, StepId
from support.recipes import CATALOG, Shelf, plan_of

WORLDS = 100
RUNS_A_WORLD = 5
KINDS = ("plain", "plain", "plain", "fan", "map", "loop", "command", "command", "workflow")
TOPICS = ("tea", "{{inputs.topic}}", "all of {{inputs.topic}}")
PROMPTS = ("Vote.", "Vote.", "On {{inputs.topic}}.")
MODELS = (None, None, None, "fast", "deep")
SCHEMAS = ({"type": "object"}, {"type": "object", "required": ["number"]}, {"minProperties": 1})
Place: TypeAlias = tuple[str, str]
Recipe: TypeAlias = dict[str, Any]


# Recipes and their edits.


def any_recipe(luck: Random) -> Recipe:
    agents = {name: any_agent(luck) for name in ("one", "two")}
    steps = [any_step(luck, f"s{n}") for n in range(luck.randint(2, 6))]
    inputs = [{"name": "topic", "default": "looms"}]
    return {"name": "any", "inputs": inputs, "agents": agents, "steps": steps}


def without_writers(recipe: Recipe) -> Recipe:
    recipe = json.loads(json.dumps(recipe))
    for agent in recipe["agents"].values():
        agent["tools"] = [each for each in agent.get("tools", []) if each != "Write"]
    for step in recipe["steps"]:
        step |= {"posture": "read_only"} if "run" in step else {}
    return recipe


def flat_recipe(luck: Random) -> Recipe:
    """For a step of another: without recipes in it."""
    recipe = any_recipe(luck)
    for step in recipe["steps"]:
        if "workflow" in step:
            del step["workflow"], step["inputs"]
            step.update(agent="one", prompt=luck.choice(PROMPTS))
    return {**recipe, "name": "inner", "output": "all of it"}


def any_agent(luck: Random) -> dict[str, Any]:
    agent: dict[str, Any] = {"prompt": luck.choice(("Help.", "Be brief."))}
    if luck.random() < 0.3:
        agent["fallback_models"] = [luck.choice(("fast", "deep"))]
    if luck.random() < 0.3:
        agent["tools"] = luck.choice((["Read"], ["Read", "Grep"], ["Read", "Write"]))
    if luck.random() < 0.2:
        agent["max_turns"] = luck.randint(1, 2)
    if luck.random() < 0.2:
        agent["validation"] = {"rules": [luck.choice(("Be short.", "Be kind."))]}
    if luck.random() < 0.2:
        agent.setdefault("validation", {})["schema"] = luck.choice(SCHEMAS)
    if luck.random() < 0.2:
        agent["max_output_tokens"] = luck.choice((100, 200))
    return agent


def any_step(luck: Random, id: str) -> dict[str, Any]:
    agent = luck.choice(("one", "one", "two"))
    step: dict[str, Any] = {"id": id, "depends_on": []}
    kind = luck.choice(KINDS)
    if kind == "workflow":
        return step | {"workflow": "inner", "inputs": {"topic": luck.choice(TOPICS)}}
    if kind == "command":
        return step | any_command(luck)
    match kind:
        case "fan":
            step["parallel"] = [{"agent": agent, "output_key": key} for key in ("x", "y", "z")]
            step["wait"] = luck.choice(("all", "any", 2))
        case "map":
            step["map"] = {"over": any_list(luck), "agent": agent, "on_item_failure": "skip"}
        case "loop":
            step["loop"] = {"agent": agent, "validator": "two", "max_iterations": 2}
        case _:
            step["agent"] = agent
    step["prompt"] = luck.choice(PROMPTS)
    step["on_failure"] = luck.choice(("inline", "skip", "block"))
    if luck.random() < 0.3:
        step["cache"] = True
    if (model := luck.choice(MODELS)) is not None:
        step["model"] = model
    if luck.random() < 0.1:
        step["read_set"] = luck.choice((["src"], ["docs"]))
    if luck.random() < 0.3:
        step["retry"] = {"max_attempts": 2}
    return step


def any_command(luck: Random) -> dict[str, Any]:
    step: dict[str, Any] = {"run": luck.choice(("pytest -q", "pytest -q", "make check"))}
    if luck.random() < 0.6:
        step["env"] = {luck.choice("VW"): luck.choice(TOPICS)}
    if luck.random() < 0.4:
        step["stdin"] = luck.choice(TOPICS)
    if luck.random() < 0.3:
        step["cache"] = True
    if luck.random() < 0.5:
        step["posture"] = "read_only"
    return step | {"on_failure": luck.choice(("inline", "skip", "block"))}


def any_list(luck: Random) -> str:
    return json.dumps([luck.choice("ab") for _ in range(luck.randint(1, 4))])


def edited(recipe: Recipe, luck: Random) -> Recipe:
    recipe = json.loads(json.dumps(recipe))
    steps: list[dict[str, Any]] = recipe["steps"]
    for _ in range(luck.randint(1, 3)):
        step = luck.choice(steps)
        if ("run" in step or "workflow" in step) and luck.random() < 0.5:
            edit_given(step, luck)
            continue
        match luck.randint(0, 12 if "agent" in step or "prompt" in step else 4):
            case 0 | 10:
                step["id"] = f"n{luck.randrange(1000)}"
            case 1:
                step.update({"prompt": luck.choice(PROMPTS)} if "prompt" in step else {})
            case 2:
                luck.shuffle(steps)
            case 3:
                steps.append({**step, "id": f"n{luck.randrange(1000)}"})
            case 4 if len(steps) > 1:
                steps.remove(step)
            case 5 if "parallel" in step:
                luck.choice(step["parallel"])["output_key"] = f"k{luck.randrange(1000)}"
            case 6 if "map" in step:
                step["map"]["over"] = any_list(luck)
            case 7:
                new = list(any_agent(luck).items())
                recipe["agents"][luck.choice(("one", "two"))].update([luck.choice(new)])
            case 8:
                step["read_set"] = luck.choice((["src"], ["docs"], ["src", "docs"]))
            case 9:
                step["output"] = luck.choice(
                    ({"format": "json"}, *({"schema": each} for each in SCHEMAS))
                )
            case 12:
                step["max_output_tokens"] = luck.choice((100, 300))
            case _ if "prompt" in step:
                step["model"] = luck.choice(("fast", "deep"))
    ids = [step["id"] for step in steps]
    return recipe if len(set(ids)) == len(ids) else edited(recipe, luck)


def edit_given(step: dict[str, Any], luck: Random) -> None:
    """What a command or another recipe is given."""
    if "workflow" in step:
        step["inputs"]["topic"] = luck.choice(TOPICS)
        return
    made = any_command(luck)
    key = luck.choice(("run", "env", "stdin", "posture"))
    step.pop(key, None)
    step.update({key: made[key]} if key in made else {})
    step.setdefault("run", made["run"])


# What is asked, and what was asked.


@dataclass(frozen=True)
class Asked:
    """A request without its place, who really answers, and the files that a command reads."""

    request: str
    answerers: tuple[str, ...]
    files: str


def asked_of(request: AttemptRequest, machine: str, files: str) -> Asked:
    told = structs.replace(
        request, run_id="", workspace="", origin="", attempt=AttemptId(StepId(""), 0), model=None, fallback_models=(),
        tools=tuple(sorted(request.tools)),
    )  # fmt: skip
    names = (request.model or "", *request.fallback_models)
    who = tuple(dict.fromkeys(who_answers(machine, name) for name in names))
    return Asked(f"{told}", who, files if request.command is not None else "")


def who_answers(machine: str, name: str) -> str:
    # On one machine `deep` is an alias of the model that is used by default.
    return f"{machine}/" + ("" if machine == "large" and name == "deep" else name)


@dataclass
class Recording:
    """Answers everybody once, or fails; each answer holds its own number."""

    machine: str
    files: str
    luck: Random
    made: dict[int, Asked]
    clock: VirtualClock
    numbers: list[int] = field(default_factory=list)
    at: dict[AttemptId, Asked] = field(default_factory=dict)

    def identify(self, models: Collection[str], tools: Collection[str]) -> Setup:
        return Setup({name: who_answers(self.machine, name) for name in models})

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        await self.clock.sleep_until(self.clock.now() + self.luck.random())
        self.at[request.attempt] = asked_of(request, self.machine, self.files)
        if self.luck.random() < 0.25:
            return Failure("error", "broken")
        number = len(self.made)
        self.made[number] = asked_of(request, self.machine, self.files)
        return Success({"number": number, "passed": self.luck.random() < 0.5})


class SeenFiles:
    """A workspace of one version at a time, and which of them each command has read."""

    def __init__(self) -> None:
        self.version = "0"
        self.read: dict[tuple[str, str, str], str] = {}

    async def recover(self, workspace: Path) -> tuple[()]:
        return ()

    async def release(self, run_id: str) -> None:
        """There are no copies: nobody writes in such a world."""

    async def leftovers(self) -> dict[str, tuple[Path, ...]]:
        return {}

    async def empty_trash(self) -> None:
        """Nor is anything thrown away."""

    async def look(self, files: FilesToRead) -> FilesDigest:
        return FilesDigest(self.version)

    async def note_read(self, files: FilesToRead) -> str:
        self.read[files.run_id, files.step, files.part] = self.version
        return self.version

    async def can_reuse_read(
        self, files: FilesToRead, run_id: str, step: StepId, part: str, later: Sequence[StepId]
    ) -> bool:
        assert not later
        if self.read.get((run_id, step, part)) != self.version:
            return False
        await self.note_read(files)
        return True


def number_in(output: Json) -> int:
    assert isinstance(output, dict)
    number = output["number"]
    assert isinstance(number, int)
    return number


# One store, and run after run on it.


@dataclass
class Told:
    """One run as it was: what each place held, and where each answer came from."""

    run_id: RunId
    recipe: Recipe
    inner: Recipe
    plan: Plan
    events: list[Event]
    held: dict[Place, int]  # place → number of its answer
    asked: dict[Place, Asked]  # of that answer


@dataclass
class World:
    luck: Random
    clock: VirtualClock = field(default_factory=VirtualClock)
    made: dict[int, Asked] = field(default_factory=dict)
    first_at: dict[int, Place] = field(default_factory=dict)
    runs: list[Told] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.store = MemoryJournal(self.clock.now)
        self.recipe = any_recipe(self.luck)
        self.inner = flat_recipe(self.luck)
        # Where there are files, nobody writes them: copies and merges have tests of their own.
        self.workspace = SeenFiles() if self.luck.random() < 0.7 else None

    def play(self) -> None:
        for number in range(RUNS_A_WORLD):
            self.clock.run(self._run(RunId(f"run-{number}")))

    async def _run(self, run_id: RunId) -> None:
        luck = self.luck
        parent = luck.choice(self.runs) if self.runs and luck.random() < 0.75 else None
        recipe, inner = (parent.recipe, parent.inner) if parent else (self.recipe, self.inner)
        if luck.random() < 0.5:
            recipe = edited(recipe, luck)
        if luck.random() < 0.3:
            inner = edited(inner, luck)
        if self.workspace is not None:
            recipe, inner = without_writers(recipe), without_writers(inner)
            self.workspace.version = luck.choice(("0", "0", "0", "1"))
        shelf = Shelf(inner=json.dumps(inner))
        plan = plan_of(json.dumps(recipe), catalog=structs.replace(CATALOG, recipes=shelf))
        earlier, anew = NOTHING, frozenset[StepId]()
        if parent is not None:
            if luck.random() < 0.3:
                anew = downstream(plan, luck.choice(plan.steps).id)
            history = await Runs(self.store, self.clock).history(parent.run_id)
            earlier = reusable(history.state, anew)
        # Without a workspace nobody knows which files a command has read.
        files = self.workspace.version if self.workspace else run_id
        machine = luck.choice(("large", "large", "small"))
        runner = Recording(machine, files, luck, self.made, self.clock)
        inputs = {"topic": luck.choice(("looms", "looms", "wool"))}
        start = Start(
            plan, inputs, run_id, reusable=earlier, seed=luck.randrange(99),
            workspace="/work" if self.workspace else "",
        )  # fmt: skip
        runs = Runs(self.store, self.clock, cast("Workspaces | None", self.workspace))
        await runs.start(start, runner)
        told = Told(run_id, recipe, inner, plan, [], {}, {})
        await self._check(told, parent, runner, anew)

    async def _check(
        self, told: Told, parent: Told | None, runner: Recording, anew: Collection[StepId]
    ) -> None:
        rows, plan = await self.store.read(told.run_id), told.plan
        told.events = [row.event for row in rows if not isinstance(row.event, UnknownEvent)]
        for request, place, event in answered(plan, told.events):
            number, asked = number_in(event.output), asked_of(request, runner.machine, runner.files)
            told.held[place], told.asked[place] = number, asked
            if event.reused_from is None:
                self.first_at[number] = place
                self.figures["answers made"] += 1
            else:
                self.figures["answers reused"] += 1
                self.figures["of commands"] += request.command is not None
                self.figures["in workflow steps"] += "/" in place[0]
                assert self.made[number] == asked, (
                    f"a fresh run would have asked {asked}, not {self.made[number]}"
                )
                is_cached = plan.step(StepId(place[0])).is_cached
                is_own = is_cached and self.first_at[number] == place
                assert is_own or may_take(told, place, parent, number, anew), place
        numbers = list(told.held.values())
        assert len(numbers) == len(set(numbers)), "one answer was given twice"
        self._check_nothing_was_asked_in_vain(told, parent, runner, anew)
        self.runs.append(told)
        self.figures["runs"] += 1

    def _check_nothing_was_asked_in_vain(
        self, told: Told, parent: Told | None, runner: Recording, anew: Collection[StepId]
    ) -> None:
        if parent is None:
            return
        state = folded(told.plan, told.events)
        for attempt, asked in runner.at.items():
            place = place_of(state, attempt)
            if attempt.number == 1 and attempt.step not in anew and place in parent.held:
                assert parent.asked[place] != asked, f"{place} had its answer already"


def answered(
    plan: Plan, events: list[Event]
) -> list[tuple[AttemptRequest, Place, AttemptSucceeded]]:
    """What every answer is an answer to, as the scheduler says when the journal is folded again."""
    state, commands = begin(plan), dict[AttemptId, StartAttempt]()
    found = []
    for event in events:
        if isinstance(event, AttemptSucceeded):
            command = commands[event.attempt]
            place = place_of(state, event.attempt)
            found.append((request_of(plan, command), place, event))
        for command in advance(state, event)[1]:
            if isinstance(command, StartAttempt):
                commands[command.attempt] = command
    return found


def folded(plan: Plan, events: list[Event]) -> RunState:
    state = begin(plan)
    for event in events:
        advance(state, event)
    return state


def request_of(plan: Plan, command: StartAttempt) -> AttemptRequest:
    """Written out from the plan, and not by the code that is under test."""
    told = command.request
    step = plan.step(command.step)
    # Agents of an inner recipe may have the names of others.
    meant = (plan.agents[brief.agent] for brief in briefs(step.work))
    agent = next(each for each in meant if each.id == told.agent)
    # What a step says of its output is said of the candidates of a loop, and not of the verdicts.
    is_verdict = isinstance(command.attempt.part, CheckPart)
    output = NO_OUTPUT if is_verdict else step.output
    return AttemptRequest(
        run_id="", attempt=command.attempt,
        agent=agent.id, instructions=told.instructions, prompt=told.prompt,
        model=told.model, tools=agent.tools, max_turns=agent.max_turns,
        format=output.format, schema=combine_schemas(agent.validation.schema, output.schema),
        rules=agent.validation.rules, fallback_models=agent.fallback_models,
        may_write=step.posture == "writer", read_set=step.read_set, write_set=step.write_set,
        max_output_tokens=step.max_output_tokens or agent.max_output_tokens, is_verdict=is_verdict,
        command=told.command,
    )  # fmt: skip


def place_of(state: RunState, attempt: AttemptId) -> Place:
    """An element of a map is known by its value, and by how many equal ones stand before it."""
    items, part = state.steps[attempt.step].items, attempt.part
    if items is None or not isinstance(part, ItemPart):
        return (attempt.step, part.text)
    value = items.values[part.index]
    before = items.values[: part.index].count(value)
    return (attempt.step, f"{value} {before} stage.{part.stage}")


def may_take(
    told: Told, place: Place, parent: Told | None, number: int, anew: Collection[StepId]
) -> bool:
    if parent is None or place[0] in anew:
        return False
    source = next((where for where, held in parent.held.items() if held == number), None)
    if source is None or source == place:
        return source is not None
    return not is_planned(parent.plan, place) and not is_planned(told.plan, source)


def is_planned(plan: Plan, place: Place) -> bool:
    step = next((step for step in plan.steps if step.id == place[0]), None)
    if step is None:
        return False
    if isinstance(step.work, PlannedParallel):
        return place[1] in [branch.key for branch in step.work.branches]
    if isinstance(step.work, PlannedMap):
        return place[1] == "reduce" or place[1].endswith("stage.0")
    return not place[1].endswith("stage.0")  # no step of these recipes changes its kind


def play(worlds: int) -> Counter[str]:
    figures: Counter[str] = Counter()
    for seed in range(worlds):
        world = World(Random(seed))
        try:
            world.play()
        except AssertionError as error:
            raise AssertionError(f"world {seed}: {error}") from error
        figures += world.figures
    return figures


def test_every_reused_answer_is_what_a_fresh_run_would_have_asked_for_at_its_place() -> None:
    figures = play(WORLDS)
    assert figures["runs"] == WORLDS * RUNS_A_WORLD
    # Or nothing was shown: most retries find something, and most worlds make something new.
    assert figures["answers reused"] > figures["runs"]
    assert figures["answers made"] > figures["runs"]
    assert min(figures["of commands"], figures["in workflow steps"]) > figures["runs"] / 20


if __name__ == "__main__":
    print(dict(play(int(sys.argv[1]) if len(sys.argv) > 1 else WORLDS)))
