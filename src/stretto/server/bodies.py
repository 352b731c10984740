"""What clients send, and what they are answered, as OpenAPI describes it."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from stretto.vocabulary.json_value import DEEPEST, is_deeper

Permission: TypeAlias = Literal["read_only", "ask", "auto"]
ShortText: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
BodyText: TypeAlias = Annotated[str, Field(max_length=100_000)]
_MOST = 2**53
_DEEPEST = DEEPEST + 10  # an input lies a few levels deep in the body


class StrictRequest(Request):
    """JSON as it is defined: no NaN, no halves of characters, no depth without end."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            try:
                value = msgspec.json.decode(await self.body())
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                # Of this kind, because FastAPI makes 400 of every other.
                raise HTTPException(422, f"the body is not JSON: {error}") from error
            if is_deeper(value, _DEEPEST):
                said = f"the body is nested more than {_DEEPEST} levels deep"
                raise HTTPException(422, said)
            self._json = value
        return self._json


class StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def answer_strictly(request: Request) -> Response:
            return await answer(StrictRequest(request.scope, request.receive))

        return answer_strictly


def new_router(tag: str, prefix: str = "") -> APIRouter:
    """Each of its routes names the role that it needs: `dependencies=[VIEWER]`."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=StrictRoute)


class StrictBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class RunBudget(StrictBody):
    tokens: int | None = Field(None, ge=0, le=_MOST)
    usd: float | None = Field(None, ge=0, le=_MOST)
    agents: int | None = Field(None, ge=0, le=_MOST)

    def limits(self) -> dict[str, float]:
        """Those that are given."""
        return self.model_dump(exclude_none=True)


class RunOptions(StrictBody):
    """How a run goes: as the options of `stretto run`."""

    model: ShortText | None = None
    permission: Permission | None = None
    wait: bool = Field(True, description="Answer with the report, once the run has ended or waits")


class RunBody(RunOptions):
    inputs: dict[str, Any] = Field(default_factory=dict)
    dry_run: bool = False
    budget: RunBudget | None = None


class RecipeBody(StrictBody):
    """A recipe: its text, or its content as an object."""

    recipe: str | dict[str, Any]


class InlineRun(RunBody):
    recipe: str | dict[str, Any]


class SavedText(StrictBody):
    recipe: str | dict[str, Any]
    why: Annotated[str, Field(max_length=500)] = "saved"
    emitted: bool = Field(False, description="A model wrote it: it replaces nothing of a person's")


class Restore(StrictBody):
    version: int | None = Field(None, ge=1, le=_MOST)


class AgainBody(RunOptions):
    """Running again. Where it says nothing, the recorded run's own counts."""

    from_step: ShortText | None = None
    part: ShortText | None = None  # of `from_step`, one branch or element alone
    inputs: dict[str, Any] = Field(default_factory=dict)
    accepted: ShortText | None = None
    wait: bool = False


class ForkBody(AgainBody):
    from_step: ShortText


class ResumeBody(StrictBody):
    model: ShortText | None = None
    permission: Permission | None = None
    accepted: ShortText | None = None


class CancelBody(StrictBody):
    reason: BodyText = ""


class ApplyBody(StrictBody):
    step: ShortText
    dry_run: bool = False
    unfinished: bool = False
    allow_removals: bool = False
    allow_secrets: bool = False
    resolved: list[ShortText] = Field(default_factory=list, max_length=10_000)
    ours: bool = False
    theirs: bool = False


class Approval(StrictBody):
    """`key`: of what was shown; then nothing else is approved."""

    reason: BodyText = ""
    key: ShortText | None = None


class EditedApproval(Approval):
    """`prompt`: what is to run instead. A step with several prompts takes them by part."""

    prompt: BodyText | dict[str, BodyText]


class Rejection(StrictBody):
    """`key`: of what was shown; then nothing else is rejected."""

    reason: BodyText = ""
    key: ShortText | None = None


class TaskBody(RunOptions):
    agent: ShortText
    prompt: BodyText
    budget: RunBudget | None = None


class BatchTask(StrictBody):
    agent: ShortText
    prompt: BodyText
    description: Annotated[str, Field(max_length=500)] = ""


class BatchBody(RunOptions):
    tasks: list[BatchTask] = Field(min_length=1, max_length=100_000)
    budget: RunBudget | None = None


class ApiAnswer(BaseModel):
    """Further keys may come with later versions."""

    model_config = ConfigDict(extra="allow")

    ok: bool


class Started(ApiAnswer):
    run_id: str
    status: str


class StepAnswer(BaseModel):
    model_config = ConfigDict(extra="allow")

    status: str
    output: Any
    attempts: int
    error: str | None
    started_at: str | None
    ended_at: str | None
    duration_seconds: float | None
    warnings: list[str]


class ReportAnswer(ApiAnswer):
    """The report, as `stretto report --json` prints it. `ok`: the run is complete."""

    type: Literal["report"]
    run_id: str
    workflow: str
    status: str
    output: Any
    steps: dict[str, StepAnswer]
    warnings: list[str]
    usage: dict[str, Any]
    duration_seconds: float
    started_at: str | None
    ended_at: str | None


class PlannedNode(BaseModel):
    id: str
    type: str
    depends_on: list[str]
    agents: list[str]
    posture: str
    gated: bool
    timeout_seconds: float | None


class RunAnswer(ReportAnswer):
    """The report, and what the run began with. `cursor`: the last event that is in it. `standing`: why it
    is where it is, in a sentence, and why each step that has not ended is. `recipe`: its digest, and
    whether the saved file still says the same (`now`: unchanged, edited, not saved)."""

    standing: dict[str, Any]
    recipe: dict[str, str]

    inputs: dict[str, Any]
    owner: str
    trigger: str
    parent: str | None
    cursor: int
    plan: list[PlannedNode]


class RunChanges(ApiAnswer):
    """What of a run is otherwise: of RunAnswer what has changed since `since`, and all of it for 0.
    `touched`: the steps that have new events or another report."""

    model_config = ConfigDict(extra="allow")

    run_id: str
    cursor: int
    since: int
    touched: list[str]
    steps: dict[str, Any]
    standing: dict[str, Any]


class ListedRunAnswer(BaseModel):
    run_id: str
    workflow: str
    status: str
    started_at: str | None
    ended_at: str | None
    cost: str
    project: str
    owner: str | None
    trigger: str | None
    about: str


class RunsAnswer(ApiAnswer):
    runs: list[ListedRunAnswer]
    next: str | None = Field(description="give it as `cursor` for the next page; null on the last")


class WorkflowInput(BaseModel):
    name: str
    type: str
    required: bool
    default: Any
    description: str
    enum: list[Any]


class WorkflowAnswer(BaseModel):
    name: str
    layer: str
    file: str
    title: str
    description: str
    ok: bool
    used: bool
    shadows: str | None
    steps: int
    inputs: list[WorkflowInput]
    problems: list[dict[str, Any]]
    origin: str
    version: Any


class WorkflowsAnswer(ApiAnswer):
    workflows: list[WorkflowAnswer]


class WorkflowText(ApiAnswer):
    """`text`: the file as it is. `etag` is the ETag header: give it back as If-Match."""

    workflow: WorkflowAnswer
    text: str
    recipe: Any
    etag: str


class SavedAnswer(ApiAnswer):
    name: str
    version: int = Field(description="0: it was the same already")
    replaced: int | None
    etag: str


class VersionAnswer(BaseModel):
    version: int
    at: float
    by: str
    origin: str
    why: str
    digest: str
    current: bool


class VersionsAnswer(ApiAnswer):
    workflow: str
    versions: list[VersionAnswer]


class ChecksAnswer(ApiAnswer):
    """A recipe without a problem; one with problems is an error, invalid_recipe."""

    workflow: str
    warnings: list[dict[str, Any]]


class StepDetail(ApiAnswer):
    """`cursor`: the last event of the run that is in it."""

    run_id: str
    step: str
    cursor: int
    report: StepAnswer
    prompt: str
    model: str
    standing: dict[str, Any]
    validation: Any
    parts: list[dict[str, Any]]
    part_output: Any
    attempts: list[dict[str, Any]]
    transcript: list[dict[str, Any]]
    diff: dict[str, Any] | None
    artifacts: list[dict[str, Any]]


class GateAnswer(BaseModel):
    """What awaits approval: what would run, what came before, until when, and what then."""

    model_config = ConfigDict(extra="allow")

    run_id: str
    workflow: str
    step: str
    about: str
    key: str
    owner: str
    asked_at: str | None
    deadline: str | None
    then: str
    overdue: bool
    parts: list[dict[str, Any]]
    later: list[dict[str, Any]]
    grounds: list[dict[str, Any]]


class GatesAnswer(ApiAnswer):
    approvals: list[GateAnswer]


class DecidedAnswer(ApiAnswer):
    run_id: str
    step: str
    decision: Literal["approved", "rejected"]
    status: str


class ListAnswer(ApiAnswer):
    """`ok`, and a list under the noun of the route."""
