"""What makes two attempts the same work: a digest of all that a runner obeys.

The digest is that of one canonical JSON list. Its head and its end say nothing about a single
attempt, so each is written (and the head digested) once for all that share it.
"""

from hashlib import sha256
from json import JSONEncoder
from json.encoder import encode_basestring_ascii as quoted

from stretto.ports.runner import AttemptRequest, FunctionArguments
from stretto.schedule.state import Digest, RunState
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.setup import Setup
from stretto.vocabulary.tools import tool_name

_LENGTH = 32
_MOST_FRAMES = 100
_CANONICAL = JSONEncoder(sort_keys=True, separators=(",", ":"))
_GIVEN = FunctionArguments.__struct_fields__
# Fields of a request that are no part of the digest's last half: who asks, what stands in its first
# half, who really answers (which the setup says), and what changes no answer that came.
_ELSEWHERE = {"run_id", "attempt", "workspace", "origin", "seconds_left", "allowance", "repeats"} | {
    "agent", "instructions", "prompt", "arguments", "model", "fallback_models",
}  # fmt: skip
OBEYED = tuple(name for name in AttemptRequest.__struct_fields__ if name not in _ELSEWHERE)
# An agent of another tool reads and writes files whatever tools its definition lists.
_CLI = "cli:"
_NOT_RECORDED = Setup()


def key_of(state: RunState, request: AttemptRequest) -> str:
    head, end = _frame(state, request)
    digest = head.copy()
    digest.update(f"{quoted(request.prompt)},{end}".encode())
    if request.arguments is not None:
        # A function sees more than its prompt, so equal prompts are not yet equal work.
        given = [getattr(request.arguments, name) for name in _GIVEN]
        digest.update(_CANONICAL.encode(given).encode())
    return digest.hexdigest()[:_LENGTH]


def _frame(state: RunState, request: AttemptRequest) -> tuple[Digest, str]:
    """What stands before the prompt, digested, and what stands after it."""
    frames, is_shared = state.key_frames, request.schema is None
    # What else a request holds is the same wherever the agent is.
    shared = (
        request.agent, request.instructions, request.model, request.format, request.is_verdict,
        request.may_write, request.read_set, request.write_set, request.max_output_tokens,
    )  # fmt: skip
    found = frames.get(shared) if is_shared else None
    if found is None:
        head = sha256(f"[{quoted(request.agent)},{quoted(request.instructions)},".encode())
        found = head, _end(state, request)
        # Instructions that name the item are as many as the items: they are not worth keeping.
        if is_shared and len(frames) < _MOST_FRAMES:
            frames[shared] = found
    return found


def _end(state: RunState, request: AttemptRequest) -> str:
    obeyed = {name: getattr(request, name) for name in OBEYED}
    obeyed["tools"] = sorted(request.tools)
    return _CANONICAL.encode([obeyed, _setup(state, request)])[1:]


def _setup(state: RunState, request: AttemptRequest) -> Json:
    setup = state.setup or _NOT_RECORDED
    answers = answerers(state, request.model, request.fallback_models)
    names = sorted({tool_name(written) for written in request.tools})
    touches_files = bool(request.tools) or any(each.startswith(_CLI) for each in answers)
    return [
        list(answers),
        [setup.tools.get(name, "") for name in names],
        setup.judge if request.rules else "",
        state.workspace if touches_files else "",
    ]


def answerers(state: RunState, model: str | None, fallbacks: tuple[str, ...]) -> tuple[str, ...]:
    """Who is asked, and who is asked next if that fails."""
    models = (state.setup or _NOT_RECORDED).models
    asked = (model or "", *fallbacks)
    # Where nobody knows who answers, the answer is equal to no answer of another run.
    who = (models.get(name) or f"unknown in {state.run_id}: {name}" for name in asked)
    return tuple(dict.fromkeys(who))
