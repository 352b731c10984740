"""The model APIs that real CLIs talk to, on a loopback port: one call of a tool, then an answer."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

ANSWER = ("It is ", "42.")


@dataclass
class FakeApi:
    """`tool` and `arguments`: what it calls for before it answers."""

    tool: str
    arguments: Mapping[str, Any]
    status: int = 200
    bodies: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def offered(self) -> set[str]:
        """The names of all tools that the CLI has offered to the model."""
        text = [each for body in self.bodies for each in body.get("tools", [])]
        declared = [one for each in text for one in each.get("functionDeclarations", [each])]
        return {str(one["name"]) for one in declared if "name" in one}


@contextmanager
def serving(api: FakeApi) -> Iterator[FakeApi]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            read = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = dict(json.loads(read or b"{}"))
            api.bodies.append(body)
            self._answer(*_answered(api, self.path, body))

        def do_GET(self) -> None:
            self._answer(404, "application/json", "{}")

        def do_HEAD(self) -> None:
            self._answer(200, "application/json", "")

        def _answer(self, status: int, kind: str, text: str) -> None:
            sent = text.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(sent)))
            self.send_header("x-should-retry", "false")
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    api.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answered(api: FakeApi, path: str, body: dict[str, Any]) -> tuple[int, str, str]:
    if api.status != 200:
        error = {"type": "rate_limit_error", "message": "slow down", "code": api.status}
        return api.status, "application/json", json.dumps({"type": "error", "error": error})
    if "/v1/messages" in path and "count_tokens" not in path:
        return 200, "text/event-stream", "".join(_anthropic(api, body))
    if "streamGenerateContent" in path:
        return 200, "text/event-stream", "".join(_gemini(api, body))
    return 404, "application/json", "{}"


def _wants_tool(body: dict[str, Any], result: str) -> bool:
    return bool(body.get("tools")) and result not in json.dumps(body)


def _anthropic(api: FakeApi, body: dict[str, Any]) -> Iterator[str]:
    def event(kind: str, **more: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n"

    calls = _wants_tool(body, '"tool_result"')
    usage = {"input_tokens": 11, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": body["model"]}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield event("message_start", message=message)
    block: dict[str, Any] = {"type": "text", "text": ""}
    deltas = [{"type": "text_delta", "text": text} for text in ANSWER]
    if calls:
        block = {"type": "tool_use", "id": "t1", "name": api.tool, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(dict(api.arguments))}]
    yield event("content_block_start", index=0, content_block=block)
    for delta in deltas:
        yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    stopped = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=stopped, usage={"output_tokens": 7})
    yield event("message_stop")


def _gemini(api: FakeApi, body: dict[str, Any]) -> Iterator[str]:
    counts = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    parts: list[dict[str, Any]] = [{"text": text} for text in ANSWER]
    if _wants_tool(body, '"functionResponse"'):
        parts = [{"functionCall": {"name": api.tool, "args": dict(api.arguments)}}]
    for part in parts:
        one: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if part is parts[-1]:
            one["finishReason"] = "STOP"
        yield f"data: {json.dumps({'candidates': [one], 'usageMetadata': counts})}\n\n"
