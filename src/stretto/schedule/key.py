"""What makes two attempts the same work. In: all that an agent is told and held to. Out: a digest.

The digest is that of one canonical JSON list. Its head and its end say nothing about a single
attempt, so each is written (and the head digested) once for all that share it.
"""

from hashlib import sha256
from json import JSONEncoder
from json.encoder import encode_basestring_ascii as quoted

from stretto.plan.model import PlannedAgent, PlannedStep
from stretto.ports.runner import FunctionArguments
from stretto.schedule.state import Digest, RunState
from stretto.schedule.terms import Terms, terms_of
from stretto.vocabulary.setup import Setup
from stretto.vocabulary.tools import tool_name
from stretto.vocabulary.values import Json

_LENGTH = 32
_MOST_FRAMES = 100
_CANONICAL = JSONEncoder(sort_keys=True, separators=(",", ":"))
_GIVEN = FunctionArguments.__struct_fields__
_TERMS = Terms.__struct_fields__
# An agent of another tool reads and writes files whatever tools its definition lists.
_CLI = "cli:"
_NOT_RECORDED = Setup()


def key_of(
    state: RunState,
    step: PlannedStep,
    part: str,
    agent: PlannedAgent,
    instructions: str,
    prompt: str,
    model: str | None,
    arguments: FunctionArguments | None = None,
) -> str:
    head, end = _frame(state, step, part, agent, instructions, model)
    digest = head.copy()
    digest.update(f"{quoted(prompt)},{end}".encode())
    if arguments is not None:
        # A function sees more than its prompt, so equal prompts are not yet equal work.
        digest.update(_CANONICAL.encode([getattr(arguments, name) for name in _GIVEN]).encode())
    return digest.hexdigest()[:_LENGTH]


def _frame(
    state: RunState,
    step: PlannedStep,
    part: str,
    agent: PlannedAgent,
    instructions: str,
    model: str | None,
) -> tuple[Digest, str]:
    """What stands before the prompt, digested, and what stands after it."""
    frames, output = state.key_frames, step.output
    # The validator of a loop is asked for a verdict, though its step's output is something else.
    is_verdict = part.startswith("check.")
    shared = (
        agent.id, instructions, model, output.format, is_verdict,
        step.posture, step.read_set, step.write_set,
    )  # fmt: skip
    found = frames.get(shared) if output.schema is None else None
    if found is None:
        head = sha256(f"[{quoted(agent.id)},{quoted(instructions)},".encode())
        found = head, _end(state, terms_of(step, agent), is_verdict, model)
        # Instructions that name the item are as many as the items: they are not worth keeping.
        if output.schema is None and len(frames) < _MOST_FRAMES:
            frames[shared] = found
    return found


def _end(state: RunState, terms: Terms, is_verdict: bool, model: str | None) -> str:
    held_to = {name: getattr(terms, name) for name in _TERMS}
    held_to["tools"] = sorted(terms.tools)
    del held_to["fallback_models"]  # who really answers stands below, for each of them
    return _CANONICAL.encode([held_to, is_verdict, _setup(state, terms, model)])[1:]


def _setup(state: RunState, terms: Terms, model: str | None) -> Json:
    setup = state.setup or _NOT_RECORDED
    answers = answerers(state, model, terms.fallback_models)
    names = sorted({tool_name(written) for written in terms.tools})
    touches_files = bool(terms.tools) or any(each.startswith(_CLI) for each in answers)
    return [
        list(answers),
        [setup.tools.get(name, "") for name in names],
        setup.judge if terms.rules else "",
        state.workspace if touches_files else "",
    ]


def answerers(state: RunState, model: str | None, fallbacks: tuple[str, ...]) -> tuple[str, ...]:
    """Who is asked, and who is asked next if that fails."""
    models = (state.setup or _NOT_RECORDED).models
    asked = (model or "", *fallbacks)
    # Where nobody knows who answers, the answer is equal to no answer of another run.
    who = (models.get(name) or f"unknown in {state.run_id}: {name}" for name in asked)
    return tuple(dict.fromkeys(who))
