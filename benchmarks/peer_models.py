"""How others call a model: bare aiohttp, OpenAI's SDK, pydantic-ai's agents, LangGraph.

Run by models.py with an interpreter that has them; Stretto itself needs none. All of them stream.
"""

import json
import operator
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, TypedDict

from models_worker import CHAIN, FAN, INSTRUCTIONS, MODEL, Way, of_calls, prompt, serve


@asynccontextmanager
async def aiohttp_bare(url: str) -> AsyncIterator[Way]:
    """The least that can be done: one POST, and the text out of its events."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def call(words: str) -> str:
            body = {
                "model": MODEL,
                "stream": True,
                "stream_options": {"include_usage": True},
                "messages": [
                    {"role": "system", "content": INSTRUCTIONS},
                    {"role": "user", "content": words},
                ],
            }
            said = []
            async with session.post(f"{url}/chat/completions", json=body) as answer:
                async for line in answer.content:
                    if line.startswith(b"data: {"):
                        for choice in json.loads(line[6:])["choices"]:
                            said.append(choice["delta"].get("content") or "")
            return "".join(said)

        yield of_calls(call)


@asynccontextmanager
async def openai_sdk(url: str) -> AsyncIterator[Way]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="none") as client:

        async def call(words: str) -> str:
            stream = await client.chat.completions.create(
                model=MODEL,
                stream=True,
                stream_options={"include_usage": True},
                messages=[
                    {"role": "system", "content": INSTRUCTIONS},
                    {"role": "user", "content": words},
                ],
            )
            return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

        yield of_calls(call)


@asynccontextmanager
async def pydantic_ai_agent(url: str) -> AsyncIterator[Way]:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=url, api_key="none"))
    agent = Agent(model, instructions=INSTRUCTIONS)

    async def call(words: str) -> str:
        async with agent.run_stream(words) as result:
            return await result.get_output()

    async with model:
        yield of_calls(call)


class State(TypedDict):
    said: Annotated[list[str], operator.add]


@asynccontextmanager
async def langgraph(url: str) -> AsyncIterator[Way]:
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, StateGraph

    model = ChatOpenAI(model=MODEL, base_url=url, api_key="none", streaming=True, stream_usage=True)

    def node(name: str, goes_on: bool):
        async def speak(state: State) -> State:
            words = prompt(name, state["said"][-1] if goes_on and state["said"] else "")
            answer = await model.ainvoke([("system", INSTRUCTIONS), ("user", words)])
            return {"said": [str(answer.content)]}

        return speak

    chained, fanned = StateGraph(State), StateGraph(State)
    for n in range(CHAIN):
        chained.add_node(f"s{n}", node(f"part {n}", goes_on=True))
        chained.add_edge(f"s{n - 1}" if n else START, f"s{n}")
    chained.add_edge(f"s{CHAIN - 1}", END)
    for n in range(FAN):
        fanned.add_node(f"s{n}", node(f"part {n}", goes_on=False))
        fanned.add_edge(START, f"s{n}")
        fanned.add_edge(f"s{n}", END)
    chain_graph, fan_graph = chained.compile(), fanned.compile()

    async def chain() -> int:
        return sum(map(bool, (await chain_graph.ainvoke({"said": []}))["said"]))

    async def fan() -> int:
        return sum(map(bool, (await fan_graph.ainvoke({"said": []}))["said"]))

    yield Way(chain, fan)


WAYS = {
    "aiohttp": aiohttp_bare,
    "openai": openai_sdk,
    "pydantic-ai": pydantic_ai_agent,
    "langgraph": langgraph,
}

if __name__ == "__main__":
    serve(WAYS)
