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
        FunctionTool as FunctionTool,
        tool as tool,
    )
    from stretto.agents.functions import AgentContext as AgentContext
    from stretto.assembly.captures import CapturedWorkflow as CapturedWorkflow
    from stretto.assembly.changes import (
        AppliedChange as AppliedChange,
        MergeConflict as MergeConflict,
        PathNote as PathNote,
        StepChange as StepChange,
    )
    from stretto.assembly.chat import Chat as Chat, ChatEvent as ChatEvent
    from stretto.assembly.drafts import DraftedRecipe as DraftedRecipe
    from stretto.assembly.goals import Goal as Goal, Goals as Goals
    from stretto.assembly.playbooks import Playbooks as Playbooks
    from stretto.assembly.project import RecipeSource as RecipeSource
    from stretto.assembly.recipe_files import ListedWorkflow as ListedWorkflow
    from stretto.assembly.run import Run as Run
    from stretto.assembly.saved_workflows import SavedWorkflows as SavedWorkflows
    from stretto.assembly.stretto import RunSummary as RunSummary, Stretto as Stretto, run as run
    from stretto.assembly.triggers import AddedWebhook as AddedWebhook, Triggers as Triggers
    from stretto.assembly.views import DryRun as DryRun, RunReport as RunReport
    from stretto.events.attempts import AttemptId as AttemptId
    from stretto.events.model import (
        ApprovalRequested as ApprovalRequested,
        Approved as Approved,
        AttemptCancelled as AttemptCancelled,
        AttemptFailed as AttemptFailed,
        AttemptStarted as AttemptStarted,
        AttemptSucceeded as AttemptSucceeded,
        CancelRequested as CancelRequested,
        ChangesApplied as ChangesApplied,
        ChangesCollected as ChangesCollected,
        CommandEnded as CommandEnded,
        Event as Event,
        MergeFailed as MergeFailed,
        MergeHeld as MergeHeld,
        MergeUndone as MergeUndone,
        MessageDropped as MessageDropped,
        ModelFailedOver as ModelFailedOver,
        ModelRetried as ModelRetried,
        ModelSpoke as ModelSpoke,
        PhaseLasted as PhaseLasted,
        Rejected as Rejected,
        RunEnded as RunEnded,
        RunResumed as RunResumed,
        RunStarted as RunStarted,
        TimerFired as TimerFired,
        ToolEnded as ToolEnded,
        ToolStarted as ToolStarted,
        UsageNoted as UsageNoted,
    )
    from stretto.goals.goal import (
        GoalIteration as GoalIteration,
        GoalLimits as GoalLimits,
        GoalReport as GoalReport,
        GoalState as GoalState,
    )
    from stretto.lead.turn import (
        AwaitedDecision as AwaitedDecision,
        ChatCall as ChatCall,
        ChatSummary as ChatSummary,
        ChatTurn as ChatTurn,
    )
    from stretto.playbooks.curation import CurationStep as CurationStep
    from stretto.playbooks.library import FoundPlaybook as FoundPlaybook
    from stretto.playbooks.playbook import Playbook as Playbook
    from stretto.playbooks.store import AuditEntry as AuditEntry, PlaybookUse as PlaybookUse
    from stretto.ports.journal import Fenced as Fenced, JournalFull as JournalFull, Leased as Leased
    from stretto.problems.errors import (
        AlreadyDecided as AlreadyDecided,
        ChangedMeanwhile as ChangedMeanwhile,
        InvalidConfig as InvalidConfig,
        InvalidInputs as InvalidInputs,
        InvalidRecipe as InvalidRecipe,
        InvalidUsage as InvalidUsage,
        NotFound as NotFound,
        NotReady as NotReady,
        NotTrusted as NotTrusted,
        PermissionDenied as PermissionDenied,
        PlanNotAccepted as PlanNotAccepted,
        RefusedToOverwrite as RefusedToOverwrite,
        StrettoError as StrettoError,
    )
    from stretto.problems.problem import Place as Place, Problem as Problem
    from stretto.registry.saved_recipe import SavedRecipe as SavedRecipe
    from stretto.registry.versions import RecipeVersion as RecipeVersion
    from stretto.report.model import (
        AttemptReport as AttemptReport,
        CallsReport as CallsReport,
        ChangesReport as ChangesReport,
        Delegated as Delegated,
        Issue as Issue,
        PathStep as PathStep,
        StepReport as StepReport,
        StepReports as StepReports,
    )
    from stretto.triggers.trigger import Trigger as Trigger, TriggerFire as TriggerFire
    from stretto.vocabulary.amounts import Usage as Usage
    from stretto.vocabulary.json_value import Json as Json

__version__ = VERSION

# Where each name is. It is imported when it is first used, so that `import stretto` costs nothing.
_PLACES = {
    "adapters.tools.functions": ("CallKey", "FunctionTool", "tool"),
    "agents.functions": ("AgentContext",),
    "assembly.captures": ("CapturedWorkflow",),
    "assembly.changes": ("AppliedChange", "MergeConflict", "PathNote", "StepChange"),
    "assembly.chat": ("Chat", "ChatEvent"),
    "assembly.drafts": ("DraftedRecipe",),
    "assembly.goals": ("Goal", "Goals"),
    "assembly.playbooks": ("Playbooks",),
    "assembly.project": ("RecipeSource",),
    "assembly.recipe_files": ("ListedWorkflow",),
    "assembly.run": ("Run",),
    "assembly.saved_workflows": ("SavedWorkflows",),
    "assembly.stretto": ("RunSummary", "Stretto", "run"),
    "assembly.triggers": ("AddedWebhook", "Triggers"),
    "assembly.views": ("DryRun", "RunReport"),
    "events.attempts": ("AttemptId",),
    "events.model": (
        *("ApprovalRequested", "Approved", "AttemptCancelled", "AttemptFailed", "AttemptStarted"),
        *("AttemptSucceeded", "CancelRequested", "ChangesApplied", "ChangesCollected"),
        *("CommandEnded", "Event"),
        *("MergeFailed", "MergeHeld", "MergeUndone", "MessageDropped", "ModelFailedOver"),
        *("ModelRetried", "ModelSpoke", "PhaseLasted", "Rejected", "RunEnded", "RunResumed"),
        *("RunStarted", "TimerFired", "ToolEnded", "ToolStarted", "UsageNoted"),
    ),
    "lead.turn": ("AwaitedDecision", "ChatCall", "ChatSummary", "ChatTurn"),
    "goals.goal": ("GoalIteration", "GoalLimits", "GoalReport", "GoalState"),
    "playbooks.curation": ("CurationStep",),
    "playbooks.library": ("FoundPlaybook",),
    "playbooks.playbook": ("Playbook",),
    "playbooks.store": ("AuditEntry", "PlaybookUse"),
    "ports.journal": ("Fenced", "JournalFull", "Leased"),
    "problems.errors": (
        *("AlreadyDecided", "ChangedMeanwhile"),
        *("InvalidConfig", "InvalidInputs", "InvalidRecipe", "InvalidUsage", "NotFound"),
        *("NotReady", "NotTrusted", "PermissionDenied", "PlanNotAccepted"),
        *("RefusedToOverwrite", "StrettoError"),
    ),
    "problems.problem": ("Place", "Problem"),
    "registry.saved_recipe": ("SavedRecipe",),
    "registry.versions": ("RecipeVersion",),
    "report.model": (
        *("AttemptReport", "CallsReport", "ChangesReport", "Delegated", "Issue", "PathStep"),
        *("StepReport", "StepReports"),
    ),
    "triggers.trigger": ("Trigger", "TriggerFire"),
    "vocabulary.amounts": ("Usage",),
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
