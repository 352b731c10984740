"""What makes two attempts the same work. In: all that an agent is told and held to. Out: a digest.

The digest is that of one canonical JSON list. Its head and its end say nothing about a single
attempt, so each is written (and the head digested) once for all that share it.
"""

from hashlib import sha256
from json import JSONEncoder
from json.encoder import encode_basestring_ascii as quoted

from weft.plan.model import PlannedAgent
from weft.recipe.model import Output
from weft.schedule.state import Digest, RunState

_LENGTH = 32
_MOST_FRAMES = 100
_CANONICAL = JSONEncoder(sort_keys=True, separators=(",", ":"))


def key_of(
    state: RunState,
    agent: PlannedAgent,
    instructions: str,
    prompt: str,
    model: str | None,
    output: Output,
) -> str:
    head, end = _frame(state, agent, instructions, model, output)
    digest = head.copy()
    digest.update(f"{quoted(prompt)},{end}".encode())
    return digest.hexdigest()[:_LENGTH]


def _frame(
    state: RunState, agent: PlannedAgent, instructions: str, model: str | None, output: Output
) -> tuple[Digest, str]:
    """What stands before the prompt, digested, and what stands after it."""
    frames, shared = state.key_frames, (agent.id, instructions, model, output.format)
    found = frames.get(shared) if output.schema is None else None
    if found is None:
        head = sha256(f"[{quoted(agent.id)},{quoted(instructions)},".encode())
        found = head, _end(agent, model, output)
        # Instructions that name the item are as many as the items: they are not worth keeping.
        if output.schema is None and len(frames) < _MOST_FRAMES:
            frames[shared] = found
    return found


def _end(agent: PlannedAgent, model: str | None, output: Output) -> str:
    validation = agent.validation
    held_to = [output.format, output.schema, validation.schema, validation.rules]
    return _CANONICAL.encode([sorted(agent.tools), model, *held_to])[1:]
