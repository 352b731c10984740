"""One agent as a row, as lines and as JSON. In: Listed. Out: what `stretto agents` shows of it."""

from collections.abc import Sequence

from stretto.cli.agent_layers import Listed
from stretto.plan.postures import tools_of
from stretto.problems.render import as_json as problem_as_json
from stretto.problems.render import count
from stretto.recipe.model import Agent
from stretto.vocabulary.durations import format_duration
from stretto.vocabulary.tools import CHANGING_TOOLS, tool_name

HEAD = ("NAME", "FROM", "POSTURE", "MODEL", "TURNS", "TIMEOUT", "TOOLS", "DESCRIPTION")


def _posture(agent: Agent) -> str:
    """What a step of this agent is if it says nothing itself (RECIPES §9)."""
    can_write = any(tool_name(tool) in CHANGING_TOOLS for tool in tools_of(agent))
    return agent.posture or ("writer" if can_write else "read_only")


def cells(each: Listed) -> tuple[str, ...]:
    agent = each.read.agent
    if agent is None:
        said = f"{count(each.read.problems)} in {each.read.file}"
        return (each.name, each.layer, "broken", "-", "-", "-", "-", said)
    return (
        each.name,
        each.layer,
        _posture(agent),
        agent.model or "-",
        str(agent.max_turns or "-"),
        format_duration(agent.timeout_seconds) if agent.timeout_seconds else "-",
        ",".join(tools_of(agent)) or "-",
        (agent.role.strip().splitlines() or [""])[0],
    )


def lines(each: Listed, agent: Agent) -> list[tuple[str, ...]]:
    seconds = agent.timeout_seconds
    pairs = {
        "name": each.name,
        "from": f"{each.layer}: {each.read.file}",
        "description": agent.role.strip().replace("\n", " "),
        "posture": _posture(agent),
        "tools": ", ".join(tools_of(agent)) or "none",
        "model": agent.model or "the run's own",
        "fallbacks": ", ".join(agent.fallback_models),
        "max_turns": str(agent.max_turns or ""),
        "timeout": format_duration(seconds) if seconds else "",
    }
    return [(key, value) for key, value in pairs.items() if value]


def row(each: Listed, agents: Sequence[Listed]) -> dict[str, object]:
    """`agents`: all of them, for those that it shadows."""
    agent = each.read.agent
    shadows = [
        {"layer": other.layer, "file": other.read.file}
        for other in agents
        if other.name == each.name and other.shadowed_by == each.read.file
    ]
    shown: dict[str, object] = {
        "name": each.name,
        "layer": each.layer,
        "file": each.read.file,
        "ok": agent is not None,
        "shadows": shadows,
        "problems": [problem_as_json(problem) for problem in each.read.problems],
    }
    if agent is None:
        return shown
    return shown | {
        "description": agent.role.strip(),
        "posture": _posture(agent),
        "tools": list(tools_of(agent)),
        "model": agent.model,
        "fallback_models": list(agent.fallback_models),
        "max_turns": agent.max_turns,
        "max_output_tokens": agent.max_output_tokens,
        "timeout_seconds": agent.timeout_seconds,
    }
