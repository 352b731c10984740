"""Stretto runs LLM subagents as workflows.

    import stretto

    report = stretto.run("two-views.yaml", {"question": "…"})      # blocking, for scripts

    async with stretto.Stretto() as w:                              # everything else is async
        run = await w.start("research-and-brief", {"topic": "…"})
        async for event in run.events(): ...
        report = await run.report()

What this module names in `__all__`, and `stretto.testing`, is public; every other module is private.
"""

from importlib import import_module

from stretto.vocabulary.version import VERSION

TYPE_CHECKING = False  # as mypy understands it; typing takes as long to import as all else here
if TYPE_CHECKING:
    from stretto.adapters.tools.functions import CallKey, FunctionTool, tool
    from stretto.agents.functions import AgentContext
    from stretto.assembly.changes import AppliedChange, MergeConflict, PathNote, StepChange
    from stretto.assembly.project import RecipeSource
    from stretto.assembly.run import Run
    from stretto.assembly.stretto import RunSummary, Stretto, run
    from stretto.assembly.views import DryRun, RunReport
    from stretto.events.model import (
        ApprovalRequested,
        Approved,
        AttemptCancelled,
        AttemptFailed,
        AttemptStarted,
        AttemptSucceeded,
        CancelRequested,
        ChangesApplied,
        ChangesCollected,
        Event,
        MergeFailed,
        MergeHeld,
        MergeUndone,
        MessageDropped,
        ModelFailedOver,
        ModelRetried,
        ModelSpoke,
        Rejected,
        RunEnded,
        RunResumed,
        RunStarted,
        TimerFired,
        ToolEnded,
        ToolStarted,
    )
    from stretto.ports.journal import Fenced, JournalFull, Leased
    from stretto.problems.errors import (
        InvalidConfig,
        InvalidInputs,
        InvalidRecipe,
        InvalidUsage,
        NotFound,
        NotReady,
        NotTrusted,
        PermissionDenied,
        PlanNotAccepted,
        RefusedToOverwrite,
        StrettoError,
    )
    from stretto.problems.problem import Place, Problem
    from stretto.report.model import AttemptReport, ChangesReport, Issue, StepReport
    from stretto.vocabulary.json_value import Json
    from stretto.vocabulary.usage import Usage

__version__ = VERSION

# Where each name is. It is imported when it is first used, so that `import stretto` costs nothing.
_PLACES = {
    "adapters.tools.functions": ("CallKey", "FunctionTool", "tool"),
    "agents.functions": ("AgentContext",),
    "assembly.changes": ("AppliedChange", "MergeConflict", "PathNote", "StepChange"),
    "assembly.project": ("RecipeSource",),
    "assembly.run": ("Run",),
    "assembly.stretto": ("RunSummary", "Stretto", "run"),
    "assembly.views": ("DryRun", "RunReport"),
    "events.model": (
        *("ApprovalRequested", "Approved", "AttemptCancelled", "AttemptFailed", "AttemptStarted"),
        *("AttemptSucceeded", "CancelRequested", "ChangesApplied", "ChangesCollected", "Event"),
        *("MergeFailed", "MergeHeld", "MergeUndone", "MessageDropped", "ModelFailedOver"),
        *("ModelRetried", "ModelSpoke", "Rejected", "RunEnded", "RunResumed", "RunStarted"),
        *("TimerFired", "ToolEnded", "ToolStarted"),
    ),
    "ports.journal": ("Fenced", "JournalFull", "Leased"),
    "problems.errors": (
        *("InvalidConfig", "InvalidInputs", "InvalidRecipe", "InvalidUsage", "NotFound"),
        *("NotReady", "NotTrusted", "PermissionDenied", "PlanNotAccepted"),
        *("RefusedToOverwrite", "StrettoError"),
    ),
    "problems.problem": ("Place", "Problem"),
    "report.model": ("AttemptReport", "ChangesReport", "Issue", "StepReport"),
    "vocabulary.usage": ("Usage",),
    "vocabulary.values": ("Json",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "AgentContext",
    "AppliedChange",
    "ApprovalRequested",
    "Approved",
    "AttemptCancelled",
    "AttemptFailed",
    "AttemptReport",
    "AttemptStarted",
    "AttemptSucceeded",
    "CallKey",
    "CancelRequested",
    "ChangesApplied",
    "ChangesCollected",
    "ChangesReport",
    "DryRun",
    "Event",
    "Fenced",
    "FunctionTool",
    "InvalidConfig",
    "InvalidInputs",
    "InvalidRecipe",
    "InvalidUsage",
    "Issue",
    "JournalFull",
    "Json",
    "Leased",
    "MergeConflict",
    "MergeFailed",
    "MergeHeld",
    "MergeUndone",
    "MessageDropped",
    "ModelFailedOver",
    "ModelRetried",
    "ModelSpoke",
    "NotFound",
    "NotReady",
    "NotTrusted",
    "PathNote",
    "PermissionDenied",
    "Place",
    "PlanNotAccepted",
    "Problem",
    "RecipeSource",
    "RefusedToOverwrite",
    "Rejected",
    "Run",
    "RunEnded",
    "RunReport",
    "RunResumed",
    "RunStarted",
    "RunSummary",
    "StepChange",
    "StepReport",
    "Stretto",
    "StrettoError",
    "TimerFired",
    "ToolEnded",
    "ToolStarted",
    "Usage",
    "__version__",
    "run",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'stretto' has no attribute '{name}'")
    found = getattr(import_module(f"stretto.{_MODULES[name]}"), name)
    globals()[name] = found  # asked once
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
