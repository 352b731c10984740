"""JSON-RPC over a program's stdin and stdout. In: requests of ours. Out: results; theirs are served."""

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

from stretto.adapters.models.cli.picking import at, json_line, object_at, text_at
from stretto.processes.guarded import GuardedProgram
from stretto.vocabulary.values import Json

NO_SUCH_METHOD = -32601
# A request of theirs: its result, or None when there is no such method here.
Serving: TypeAlias = Callable[[str, dict[str, Json]], dict[str, Json] | None]
Hearing: TypeAlias = Callable[[str, dict[str, Json]], None]


class RpcFailed(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Gone(Exception):
    """It ended before it answered."""


class Wire:
    def __init__(self, child: GuardedProgram, serve: Serving, hear: Hearing) -> None:
        self._child = child
        self._serve = serve
        self._hear = hear
        self._lines = child.lines()
        self._asked = 0

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """One at a time: what else comes in meanwhile is served as it comes."""
        self._asked += 1
        await self._send({"id": self._asked, "method": method, "params": dict(params)})
        async for line in self._lines:
            message = json_line(line)
            if message is None:
                continue
            if text_at(message, "method"):
                await self._serve_one(message)
            elif at(message, "id") == self._asked:
                return _result(message)
        raise Gone

    async def _serve_one(self, message: dict[str, Json]) -> None:
        method, params = text_at(message, "method"), object_at(message, "params")
        if "id" not in message:
            self._hear(method, params)
            return
        result = self._serve(method, params)
        if result is not None:
            await self._send({"id": message["id"], "result": result})
        else:
            refused: Json = {"code": NO_SUCH_METHOD, "message": f"no method {method[:100]} here"}
            await self._send({"id": message["id"], "error": refused})

    async def _send(self, message: dict[str, Json]) -> None:
        await self._child.write_line(json.dumps({"jsonrpc": "2.0", **message}).encode())


def _result(message: dict[str, Json]) -> dict[str, Json]:
    if "error" in message:
        error = object_at(message, "error")
        code = at(error, "code")
        says = text_at(error, "data", "details") or text_at(error, "message")
        raise RpcFailed(code if isinstance(code, int) else 0, says or "it did not say why")
    return object_at(message, "result")
