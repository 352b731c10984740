"""Test a recipe. In: a recipe, inputs and a script. Out: the RunState at its end, in milliseconds.

    state = run_recipe(Path("news.yaml"), {"topic": "looms"}, "replies: {gather: Three sources.}")
    assert state.status is RunStatus.COMPLETE

Nothing touches the disk, the network or the real time: the journal is in memory, the model
scripted and the clock virtual. A recipe that waits for a person comes back as it waits.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from stretto.adapters.models.scripted import Script, ScriptedRunner, check_names, read_script
from stretto.adapters.stores.memory import MemoryJournal
from stretto.agents.catalog import load_catalog
from stretto.events.model import RunStarted
from stretto.plan.build import Problems, build
from stretto.plan.codec import plan_to_text
from stretto.plan.inputs import bind
from stretto.plan.model import Plan
from stretto.problems.errors import InvalidInputs, InvalidRecipe
from stretto.problems.render import count
from stretto.recipe.read import read_recipe, read_recipe_file
from stretto.run.driver import Driver
from stretto.run.journaling import RunJournal
from stretto.run.leases import Lease
from stretto.schedule.state import RunState, begin
from stretto.testing.clock import VirtualClock
from stretto.vocabulary.ids import RunId
from stretto.vocabulary.values import Json

_RUN = RunId("test")


def run_recipe(
    recipe: str | Path,
    inputs: Mapping[str, Json] | None = None,
    script: Script | str | Path = "default: An answer from the script.",
    *,
    agents: Iterable[Path] = (),
    seed: int = 0,
) -> RunState:
    """A Path names a file, a str is the text itself; `agents` are folders beside the bundled ones.

    Raises InvalidRecipe, InvalidInputs, or InvalidUsage for a script that cannot be read.
    """
    plan = _plan(recipe, agents)
    values, problems = bind(plan.inputs, inputs or {}, Path.cwd())
    if problems:
        raise InvalidInputs("; ".join(problem.message for problem in problems), problems)
    replies = script if isinstance(script, Script) else read_script(script)
    check_names(replies, plan)
    clock = VirtualClock()
    started = RunStarted(
        clock.now(), _RUN, plan.name, plan.digest, plan_to_text(plan), values, seed
    )
    return clock.run(_drive(plan, started, replies, clock))


def _plan(recipe: str | Path, agents: Iterable[Path]) -> Plan:
    read = read_recipe_file(recipe) if isinstance(recipe, Path) else read_recipe(recipe)
    built = build(read, load_catalog(agents, Path.cwd()))
    if isinstance(built, Problems):
        raise InvalidRecipe(f"the recipe has {count(built.problems)}", built.problems)
    return built


async def _drive(plan: Plan, started: RunStarted, script: Script, clock: VirtualClock) -> RunState:
    store = MemoryJournal(clock.now)
    journal = RunJournal(store, await Lease.take(store, clock, _RUN, "the test"))
    # The driver alone: with nobody else about, there is no lease to renew and no post to fetch.
    return await Driver(begin(plan), journal, ScriptedRunner(script, clock), clock).drive(started)
