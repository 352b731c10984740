"""What makes two attempts the same work. In: all that an agent is told and held to. Out: a digest.

The digest is that of one canonical JSON list. Its end says nothing about a single attempt, so it
is written once for all that share it.
"""

from hashlib import sha256
from json import JSONEncoder
from json.encoder import encode_basestring_ascii as quoted

from weft.plan.model import PlannedAgent
from weft.recipe.model import Output
from weft.schedule.state import RunState

_LENGTH = 32
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
    told = f"[{quoted(agent.id)},{quoted(instructions)},{quoted(prompt)},{end}"
    return sha256(told.encode()).hexdigest()[:_LENGTH]


def _end(agent: PlannedAgent, model: str | None, output: Output) -> str:
    validation = agent.validation
    held_to = [output.format, output.schema, validation.schema, validation.rules]
    return _CANONICAL.encode([sorted(agent.tools), model, *held_to])[1:]
