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
_MOST_HEADS = 100
_CANONICAL = JSONEncoder(sort_keys=True, separators=(",", ":"))


def key_of(
    state: RunState,
    agent: PlannedAgent,
    instructions: str,
    prompt: str,
    model: str | None,
    output: Output,
) -> str:
    shared = (agent.id, model, output.format)
    end = state.key_ends.get(shared) if output.schema is None else _end(agent, model, output)
    if end is None:
        end = state.key_ends[shared] = _end(agent, model, output)
    digest = _head(state, agent, instructions).copy()
    digest.update(f"{quoted(prompt)},{end}".encode())
    return digest.hexdigest()[:_LENGTH]


def _head(state: RunState, agent: PlannedAgent, instructions: str) -> Digest:
    heads, shared = state.key_heads, (agent.id, instructions)
    found = heads.get(shared)
    if found is None:
        found = sha256(f"[{quoted(agent.id)},{quoted(instructions)},".encode())
        # Instructions that name the item are as many as the items: they are not worth keeping.
        if len(heads) < _MOST_HEADS:
            heads[shared] = found
    return found


def _end(agent: PlannedAgent, model: str | None, output: Output) -> str:
    validation = agent.validation
    held_to = [output.format, output.schema, validation.schema, validation.rules]
    return _CANONICAL.encode([sorted(agent.tools), model, *held_to])[1:]
