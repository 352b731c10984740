"""What `import stretto` offers: exactly this, typed, and only when it is asked for."""

import ast
import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

import stretto
import stretto.testing

EVENTS = """ApprovalRequested Approved AttemptCancelled AttemptFailed AttemptStarted AttemptSucceeded
CancelRequested ChangesApplied ChangesCollected CommandEnded Event MergeFailed MergeHeld MergeUndone
MessageDropped ModelFailedOver ModelRetried ModelSpoke PhaseLasted Rejected RunEnded RunResumed RunStarted
TimerFired ToolEnded ToolStarted UsageNoted"""
ERRORS = """AlreadyDecided ChangedMeanwhile Fenced InvalidConfig InvalidInputs InvalidRecipe InvalidUsage JournalFull Leased
MergeConflict NotFound NotReady NotTrusted PermissionDenied PlanNotAccepted RefusedToOverwrite
StrettoError"""
OTHERS = """AddedWebhook AgentContext AppliedChange AttemptId AttemptReport AuditEntry AwaitedDecision CallKey CallsReport CapturedWorkflow ChangesReport
Chat ChatCall ChatEvent ChatSummary ChatTurn CurationStep Delegated
DraftedRecipe DryRun FoundPlaybook FunctionTool Goal GoalIteration GoalLimits GoalReport GoalState Goals Issue Json ListedWorkflow PathNote PathStep Place Playbook PlaybookUse Playbooks Problem RecipeSource RecipeVersion
Run RunReport RunSummary SavedRecipe SavedWorkflows StepChange StepReport StepReports Stretto Trigger TriggerFire Triggers Usage
__version__ run tool"""


def test_the_exports_are_these_and_no_others() -> None:
    assert stretto.__all__ == sorted((EVENTS + " " + ERRORS + " " + OTHERS).split())
    assert dir(stretto) == stretto.__all__
    for name in stretto.__all__:
        assert getattr(stretto, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Driver'"):
        _ = stretto.Driver


def test_the_types_and_the_table_of_places_name_the_same_modules() -> None:
    tree = ast.parse(Path(stretto.__file__).read_text(encoding="utf-8"))
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    typed_places = {(node.module, name.name) for node in imports for name in node.names}
    places = {
        (f"stretto.{module}", name) for module, names in stretto._PLACES.items() for name in names
    }
    assert typed_places == places


def test_every_error_is_a_stretto_error_with_a_kind_of_its_own() -> None:
    errors = [getattr(stretto, name) for name in ERRORS.split()]
    assert all(issubclass(error, stretto.StrettoError) for error in errors)
    assert len({error.kind for error in errors}) == len(errors)
    drawn = sys.modules[stretto.StrettoError.__module__].__doc__ or ""
    for error in errors:
        assert re.search(rf"\b{error.__name__}\b", drawn)
        assert re.search(rf" {error.kind}\b", drawn) or error is stretto.StrettoError


def test_importing_stretto_loads_nothing_but_its_version() -> None:
    code = "import sys, stretto; print([m for m in sys.modules if m.startswith('stretto.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['stretto.vocabulary', 'stretto.vocabulary.version']"


def test_the_fakes_for_tests_are_public_too() -> None:
    for name in stretto.testing.__all__:
        assert getattr(stretto.testing, name) is not None


USER = '''
import asyncio
from contextlib import aclosing
from typing import Literal

import stretto


@stretto.tool(effect="idempotent", read_only=True)
def lookup(word: str, language: Literal["en", "de"] = "en") -> str:
    """Look a word up."""
    return word


def score(prompt: str, context: stretto.AgentContext) -> dict[str, int]:
    return {"score": len(prompt) + context.attempt}


async def main() -> None:
    async with stretto.Stretto(".", tools=[lookup], agents={"score": score}) as w:
        run: stretto.Run = await w.start("brief", {"topic": "looms"}, budget={"usd": 1})
        async with aclosing(run.events()) as first, aclosing(w.chat().events()) as chat:
            begun: stretto.Event = await anext(first)
            said: stretto.ChatEvent = await anext(chat)
        async for event in run.events():
            match event:
                case stretto.AttemptSucceeded():
                    output: stretto.Json | object = event.output
                case stretto.ApprovalRequested(step=step):
                    await run.approve(step, "fine", edit={"": "other"})
        report: stretto.RunReport = await run.report()
        text: str = report.status
        cost: float | None = report.usage.usd
        names: tuple[str, ...] = tuple(step.id for step in report.steps)
        one: stretto.Json = report.steps["brief"].output
        problems: tuple[stretto.Problem, ...] = await w.validate({"name": "x", "steps": []})
        drawing: str = (await w.plan("brief")).draw("svg")
        again: stretto.Run = await w.open(run.id).retry(from_step="brief")
        change: stretto.StepChange = await again.diff("brief")


try:
    report = stretto.run("brief", {"topic": "looms"}, model="embedded")
except stretto.NotReady as error:
    codes: list[str] = [problem.code for problem in error.problems]
word: str = lookup("loom", language="de")
recipe = {"name": "x", "steps": [{"id": "a", "subagent": "writer", "depends_on": ["b"]}]}
inputs = {"words": ["loom"], "count": 1}
stretto.run(recipe, inputs)
asyncio.run(main())
'''


def test_a_users_script_is_typed_strictly(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(USER, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    done = subprocess.run(
        [
            *command,
            "--cache-dir",
            str(Path(__file__).parents[2] / ".mypy_cache" / "user-script"),
            "--config-file",
            "/dev/null",
            script.name,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stdout, done.returncode) == ("", 0)


def test_these_tests_import_nothing_below_stretto_but_its_fakes() -> None:
    allowed = {"stretto", "stretto.testing", "support.api"}
    own = (Path(__file__).parent, Path(__file__).parent.parent / "support" / "api.py")
    files = [*own[0].glob("*.py"), own[1]]
    assert len(files) > 5
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            ours = {name for name in names if name.split(".")[0] in ("stretto", "support")}
            assert ours <= allowed, file


def test_errors_survive_being_sent_to_another_process() -> None:
    problem = stretto.Problem("RCP001", "it cannot be read", hint="look")
    errors = [
        stretto.Leased("run", "another process", 3.0),  # type: ignore[arg-type]
        stretto.Fenced("run", 2),  # type: ignore[arg-type]
        stretto.InvalidRecipe("x has 1 problem", [problem], hint="fix it"),
    ]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (again.args, vars(again)) == (error.args, vars(error))


PUBLIC = {
    stretto.Stretto: """batch chat chats close draft goals open plan playbooks runs start task triggers validate
        workflows""",
    stretto.Run: """apply approve cancel diff events fork id notices reject report resume retry status stop
        wait warnings""",
    stretto.Chat: """approve cancel events go_on id model notices owner permission reject run_workflow send stop turns""",
    stretto.Goals: "clear list open resume set show",
    stretto.Goal: "clear halt id report resume stop wait",
    stretto.Playbooks: """add audit block_for capture curate delete list pin restore search show unpin uses""",
    stretto.SavedWorkflows: "capture delete list restore save versions",
    stretto.Triggers: """add_folder add_schedule add_webhook change deliver fire fires give_up list next
        note_begun pause remove resume rotate serve show""",
}  # fmt: skip


@pytest.mark.parametrize("kind", PUBLIC)
def test_these_are_the_methods_and_no_others(kind: type) -> None:
    assert {name for name in dir(kind) if name[0] != "_"} == set(PUBLIC[kind].split())


def test_whatever_an_event_or_a_report_is_made_of_can_be_named() -> None:
    def named(kind: object) -> set[str]:
        inside = set().union(*map(named, get_args(kind)))
        return inside | ({kind.__name__} if is_made_by_stretto(kind) else set())

    events = named(stretto.Event)
    assert len(events) > 20
    parts = set[str]()
    for kind in (stretto.RunReport, stretto.StepReport, stretto.AttemptReport):
        module = vars(sys.modules[kind.__module__])
        for field in dataclasses.fields(kind):
            parts |= named(eval(field.type, module) if isinstance(field.type, str) else field.type)
    internal = {"Plan", "Gathered", "Large", "StepId", "AgentId", "RunId"}
    assert (events | parts) - internal <= set(stretto.__all__)


def is_made_by_stretto(kind: object) -> bool:
    return inspect.isclass(kind) and kind.__module__.startswith("stretto.")


def test_the_blocking_run_has_every_option_of_a_stretto_and_of_its_start() -> None:
    def options(function: Callable[..., object]) -> set[str]:
        return {name for name in inspect.signature(function).parameters if name[0] != "_"}

    assert options(stretto.run) == options(stretto.Stretto) | options(stretto.Stretto.start) - {
        "self"
    }


def test_no_value_shows_the_name_of_a_private_module(tmp_path: Path) -> None:
    w = stretto.Stretto(tmp_path, home=tmp_path)
    shown = [repr(each) for each in (w, w.goals, w.playbooks, w.workflows, w.triggers, w.open("x"))]
    assert shown[0] == f"<stretto.Stretto of {tmp_path}>"
    assert [each for each in shown if not re.match(r"<stretto\.[A-Z]\w*[ >]", each)] == []
