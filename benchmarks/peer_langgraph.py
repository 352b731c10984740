"""LangGraph on the same graphs. In: one JSON object a line. Out: one a line, what it took.

Run by engine.py with an interpreter that has `langgraph` and `langgraph-checkpoint-sqlite`; Stretto
itself needs neither. The nodes do what those of the others do: nothing, and say so. The state is
one text, the cheapest there is, and checkpoints are written as LangGraph does by default.
"""

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph


def latest(_: str, said: str) -> str:
    return said


class State(TypedDict):
    said: Annotated[str, latest]


def graph_of(befores: dict[str, list[str]]) -> StateGraph:
    graph = StateGraph(State)
    for step in befores:

        async def node(state: State, step: str = step) -> State:
            return {"said": f"{step} is done."}

        graph.add_node(step, node)
    waited_for = {before for some in befores.values() for before in some}
    for step, some in befores.items():
        if not some:
            graph.add_edge(START, step)
        elif len(some) == 1:
            graph.add_edge(some[0], step)
        else:
            graph.add_edge(list(some), step)
        if step not in waited_for:
            graph.add_edge(step, END)
    return graph


async def measure(befores: dict[str, list[str]], file: str) -> dict[str, float]:
    config: Any = {"recursion_limit": len(befores) + 10, "configurable": {"thread_id": "1"}}
    graph = graph_of(befores)
    if not file:
        return await timed(graph.compile(), config)
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        taken = await timed(graph.compile(checkpointer=saver), config)
    for suffix in ("", "-wal", "-shm"):
        Path(file + suffix).unlink(missing_ok=True)
    return taken


async def timed(compiled: Any, config: Any) -> dict[str, float]:
    gc.collect()
    began, spent = time.perf_counter(), time.process_time()
    await compiled.ainvoke({"said": ""}, config)
    return {"wall": time.perf_counter() - began, "cpu": time.process_time() - spent}


def main() -> None:
    for line in sys.stdin:
        wanted = json.loads(line)
        taken = asyncio.run(measure(wanted["befores"], wanted["file"]))
        print(json.dumps(taken), flush=True)


if __name__ == "__main__":
    main()
