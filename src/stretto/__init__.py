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
    from stretto.adapters.tools.functions import (
        CallKey as CallKey,
    )
    from stretto.adapters.tools.functions import (
        FunctionTool as FunctionTool,
    )
    from stretto.adapters.tools.functions import (
        tool as tool,
    )
    from stretto.agents.functions import AgentContext as AgentContext
    from stretto.assembly.changes import (
        AppliedChange as AppliedChange,
    )
    from stretto.assembly.changes import (
        MergeConflict as MergeConflict,
    )
    from stretto.assembly.changes import (
        PathNote as PathNote,
    )
    from stretto.assembly.changes import (
        StepChange as StepChange,
    )
    from stretto.assembly.project import RecipeSource as RecipeSource
    from stretto.assembly.run import Run as Run
    from stretto.assembly.stretto import RunSummary as RunSummary
    from stretto.assembly.stretto import Stretto as Stretto
    from stretto.assembly.stretto import run as run
    from stretto.assembly.views import DryRun as DryRun
    from stretto.assembly.views import RunReport as RunReport
    from stretto.events.model import (
        ApprovalRequested as ApprovalRequested,
    )
    from stretto.events.model import (
        Approved as Approved,
    )
    from stretto.events.model import (
        AttemptCancelled as AttemptCancelled,
    )
    from stretto.events.model import (
        AttemptFailed as AttemptFailed,
    )
    from stretto.events.model import (
        AttemptStarted as AttemptStarted,
    )
    from stretto.events.model import (
        AttemptSucceeded as AttemptSucceeded,
    )
    from stretto.events.model import (
        CancelRequested as CancelRequested,
    )
    from stretto.events.model import (
        ChangesApplied as ChangesApplied,
    )
    from stretto.events.model import (
        ChangesCollected as ChangesCollected,
    )
    from stretto.events.model import (
        Event as Event,
    )
    from stretto.events.model import (
        MergeFailed as MergeFailed,
    )
    from stretto.events.model import (
        MergeHeld as MergeHeld,
    )
    from stretto.events.model import (
        MergeUndone as MergeUndone,
    )
    from stretto.events.model import (
        MessageDropped as MessageDropped,
    )
    from stretto.events.model import (
        ModelFailedOver as ModelFailedOver,
    )
    from stretto.events.model import (
        ModelRetried as ModelRetried,
    )
    from stretto.events.model import (
        ModelSpoke as ModelSpoke,
    )
    from stretto.events.model import (
        Rejected as Rejected,
    )
    from stretto.events.model import (
        RunEnded as RunEnded,
    )
    from stretto.events.model import (
        RunResumed as RunResumed,
    )
    from stretto.events.model import (
        RunStarted as RunStarted,
    )
    from stretto.events.model import (
        TimerFired as TimerFired,
    )
    from stretto.events.model import (
        ToolEnded as ToolEnded,
    )
    from stretto.events.model import (
        ToolStarted as ToolStarted,
    )
    from stretto.ports.journal import Fenced as Fenced
    from stretto.ports.journal import JournalFull as JournalFull
    from stretto.ports.journal import Leased as Leased
    from stretto.problems.errors import (
        InvalidConfig as InvalidConfig,
    )
    from stretto.problems.errors import (
        InvalidInputs as InvalidInputs,
    )
    from stretto.problems.errors import (
        InvalidRecipe as InvalidRecipe,
    )
    from stretto.problems.errors import (
        InvalidUsage as InvalidUsage,
    )
    from stretto.problems.errors import (
        NotFound as NotFound,
    )
    from stretto.problems.errors import (
        NotReady as NotReady,
    )
    from stretto.problems.errors import (
        NotTrusted as NotTrusted,
    )
    from stretto.problems.errors import (
        PermissionDenied as PermissionDenied,
    )
    from stretto.problems.errors import (
        PlanNotAccepted as PlanNotAccepted,
    )
    from stretto.problems.errors import (
        RefusedToOverwrite as RefusedToOverwrite,
    )
    from stretto.problems.errors import (
        StrettoError as StrettoError,
    )
    from stretto.problems.problem import Place as Place
    from stretto.problems.problem import Problem as Problem
    from stretto.report.model import (
        AttemptReport as AttemptReport,
    )
    from stretto.report.model import (
        ChangesReport as ChangesReport,
    )
    from stretto.report.model import (
        Issue as Issue,
    )
    from stretto.report.model import (
        StepReport as StepReport,
    )
    from stretto.vocabulary.json_value import Json as Json
    from stretto.vocabulary.usage import Usage as Usage

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
    "vocabulary.json_value": ("Json",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = sorted(("__version__", *_MODULES))


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'stretto' has no attribute '{name}'")
    found = getattr(import_module(f"stretto.{_MODULES[name]}"), name)
    globals()[name] = found  # asked once
    return found


def __dir__() -> list[str]:
    return __all__
