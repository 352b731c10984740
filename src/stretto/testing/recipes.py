"""Test a recipe. In: a recipe, inputs and a script. Out: its RunReport, in milliseconds.

    report = run_recipe(Path("news.yaml"), {"topic": "looms"}, "replies: {gather: Three sources.}")
    assert report.status == "complete"

Nothing touches the disk, the network or the real time: the journal is in memory, the model
scripted and the clock virtual. A run that waits for a person is reported as waiting.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from stretto.adapters.models.scripted import Script, ScriptedRunner, check_names, read_script
from stretto.adapters.stores.memory import MemoryJournal
from stretto.assembly.arguments import check_inputs
from stretto.assembly.ports import Ports
from stretto.assembly.project import Project, dump_values
from stretto.assembly.request import RunRequest
from stretto.assembly.surface import Surface
from stretto.assembly.views import RunReport
from stretto.config.settings import Settings
from stretto.problems.errors import InvalidUsage
from stretto.recipe.model import Recipe
from stretto.recipe.read import read_recipe, read_recipe_file
from stretto.testing.clock import VirtualClock
from stretto.text.short import kind_of
from stretto.vocabulary.names import RunId

_NOWHERE = Path("/nonexistent")  # the user's own folder, which a test must not depend on


def run_recipe(
    recipe: str | Path | Mapping[str, object],
    inputs: Mapping[str, object] | None = None,
    script: Script | str | Path | Mapping[str, object] = "default: An answer from the script.",
    *,
    agents: Iterable[Path] = (),
    seed: int = 0,
) -> RunReport:
    """A Path names a file, a str is the text itself, a dict the same as values; `agents` are folders
    beside the bundled ones.

    Raises InvalidRecipe, InvalidInputs, or InvalidUsage for a script that cannot be read.
    """
    folders = _check_folders(agents)
    read, replies = _read_recipe(recipe), _read_script(script)
    clock = VirtualClock()
    request = RunRequest(read, check_inputs(inputs), run_id=RunId("test"), seed=seed)
    return clock.run(_run(request, replies, folders, clock))


def _read_recipe(recipe: str | Path | Mapping[str, object]) -> Recipe:
    if isinstance(recipe, Path):
        return read_recipe_file(recipe)
    if isinstance(recipe, Mapping):
        return read_recipe(dump_values(recipe, "the recipe"))
    if not isinstance(recipe, str):
        raise InvalidUsage(f"a recipe cannot be {kind_of(recipe)}", hint="text, a Path or a dict")
    return read_recipe(recipe)


def _read_script(script: Script | str | Path | Mapping[str, object]) -> Script:
    if isinstance(script, Script):
        return script
    if isinstance(script, Mapping):
        return read_script(dump_values(script, "the script"))
    if not isinstance(script, str | Path):
        raise InvalidUsage(f"a script cannot be {kind_of(script)}", hint="text, a Path or a dict")
    return read_script(script)


def _check_folders(agents: Iterable[Path]) -> tuple[Path, ...]:
    """`Stretto` takes a dict of functions as agents. Here its keys would be taken for folders."""
    if isinstance(agents, str | Path | Mapping):
        hint = "functions: stretto.run(recipe, agents=…, store='memory', model='scripted:FILE')"
        raise InvalidUsage("agents must be a list of folders with agent files", hint=hint)
    return tuple(Path(each) for each in agents)


async def _run(
    request: RunRequest, script: Script, agents: tuple[Path, ...], clock: VirtualClock
) -> RunReport:
    folder = Path.cwd()
    settings = Settings(folder, _NOWHERE, folder / "workflows", agents)
    ports = Ports(MemoryJournal(clock.now), clock, ScriptedRunner(script, clock), False)
    project = Project(environ={}, settings=settings)
    async with Surface(lambda folder: project, ports) as surface:
        prepared = await surface.prepare(request)
        check_names(script, prepared.plan)
        return await (await surface.launch(prepared)).report()
