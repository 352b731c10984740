"""Let a server on this machine fail as Anthropic's and Google's do, and count the faults that are taken for another
kind. Exit 1 if one was.

    pip install -e '.[anthropic,google]'
    python benchmarks/provider_faults.py

The clients are those of the providers, so it needs their packages; one that is not installed is left out, and said.

    transient   the same request may be sent again, which the provider's own client must leave to Stretto
    permanent   the run stops at once, and its message says what to do
    refused     this request is never answered: a filter, a parameter, a prompt that is too long
    wrong       faults of another kind, without their words, or without the wait that the provider asked for
"""

import asyncio
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from typing import Any

from stretto.adapters.models.named import make_model
from stretto.ports.model import Model, ModelFailed, ModelFault, ModelQuestion, UserMessage
from stretto.problems.errors import InvalidConfig

PATIENCE_SECONDS = 30.0
KEY, CREDIT, ACCESS = "set a valid key", "add credit", "use a key that may use this model"
NAME, LONG = "check the model's name", "shorten what the step is told"


@dataclass(frozen=True)
class Answer:
    kind: str  # that the fault is to have
    body: bytes = b""
    status: int = 200
    media: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    says: str = ""  # in the message
    wait: float | None = None
    missing: int = 0  # bytes that are announced and do not come


def error(kind: str, status: int, body: object, says: str = "", **more: Any) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    media = "text/html" if isinstance(body, str) else "application/json"
    return Answer(kind, text.encode(), status, media, says=says, **more)


def anthropic(
    kind: str, status: int, type: str, message: str, says: str = "", **more: Any
) -> Answer:
    body = {"type": "error", "error": {"type": type, "message": message}}
    return error(kind, status, body, says or message, **more)


def google(kind: str, code: int, status: str, message: str, says: str = "", **more: Any) -> Answer:
    details = more.pop("details", [])
    body = {"error": {"code": code, "message": message, "status": status, "details": details}}
    return error(kind, code, body, says or message, **more)


def events(*said: Mapping[str, Any]) -> bytes:
    return b"".join(
        f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in said
    )


def chunks(*said: object) -> bytes:
    return b"".join(f"data: {json.dumps(each)}\r\n\r\n".encode() for each in said)


def in_stream(type: str, message: str) -> bytes:
    return events(*BEGUN, {"type": "error", "error": {"type": type, "message": message}})


BEGUN: tuple[Mapping[str, Any], ...] = (
    {"type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}},
)  # fmt: skip
HALF = {"candidates": [{"content": {"parts": [{"text": "Half"}], "role": "model"}}]}
LIMITS = "type.googleapis.com/google.rpc.QuotaFailure"
DELAY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
ELSEWHERE = {"location": "http://127.0.0.1:1/"}


def quota(name: str) -> list[object]:
    return [{"@type": LIMITS, "violations": [{"quotaId": name}]}, DELAY]


ANTHROPIC = {
    "a limit": anthropic("unavailable", 429, "rate_limit_error", "slow down", headers={"retry-after": "7"}, wait=7),
    "overload": anthropic("unavailable", 529, "overloaded_error", "Overloaded"),
    "an error of theirs": anthropic("unavailable", 500, "api_error", "Internal server error"),
    "their timeout": anthropic("unavailable", 504, "timeout_error", "Request timed out"),
    "a proxy's page": error("unavailable", 502, "<html>Bad gateway</html>", "HTTP 502"),
    "overload in the stream": Answer("unavailable", in_stream("overloaded_error", "Overloaded"), says="Overloaded"),
    "an error in the stream": Answer("unavailable", in_stream("api_error", "Oops"), says="Oops"),
    "a limit in the stream": Answer("unavailable", in_stream("rate_limit_error", "slow"), says="slow"),
    "an end in the middle": Answer("unavailable", events(*BEGUN), says="in the middle"),
    "a connection that breaks": Answer("unavailable", events(*BEGUN), missing=99),
    "half a chunk": Answer("unavailable", events(*BEGUN)[:-9] + b"\n\n"),
    "no chunk": Answer("unavailable"),
    "an error as 200": error("unavailable", 200, {"type": "error", "error": {"type": "overloaded_error", "message": "O"}}),
    "a key": anthropic("permanent", 401, "authentication_error", "invalid x-api-key", KEY),
    "a key in the stream": Answer("permanent", in_stream("authentication_error", "bad key"), says=KEY),
    "a permission": anthropic("permanent", 403, "permission_error", "Your API key does not have permission", ACCESS),
    "a model": anthropic("permanent", 404, "not_found_error", "model: claude-foo", NAME),
    "billing": anthropic("permanent", 402, "billing_error", "There's an issue with your billing", CREDIT),
    "credit, as 400": anthropic("permanent", 400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", CREDIT),
    "a limit of spending, as 400": anthropic("permanent", 400, "invalid_request_error", "You have reached your specified API usage limits.", CREDIT),
    "an organization, as 400": anthropic("permanent", 400, "invalid_request_error", "This organization has been disabled.", ACCESS),
    "another address": Answer("permanent", status=301, headers=ELSEWHERE, says="name the final address"),
    "a long prompt": anthropic("refused", 400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum", LONG),
    "a large request": anthropic("refused", 413, "request_too_large", "Request exceeds the maximum size", LONG),
    "a filter": anthropic("refused", 400, "invalid_request_error", "Output blocked by content filtering policy"),
    "a parameter": anthropic("refused", 400, "invalid_request_error", "messages.0: all messages must have non-empty content"),
}  # fmt: skip
GOOGLE = {
    "a limit a minute": google("unavailable", 429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", details=quota("GenerateRequestsPerMinutePerProjectPerModel"), wait=17),
    "a limit": google("unavailable", 429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    "overload": google("unavailable", 503, "UNAVAILABLE", "The model is overloaded."),
    "an error of theirs": google("unavailable", 500, "INTERNAL", "An internal error has occurred."),
    "their timeout": google("unavailable", 504, "DEADLINE_EXCEEDED", "Deadline expired"),
    "overload in the stream": Answer("unavailable", chunks(HALF, {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}), says="overloaded"),
    "an end in the middle": Answer("unavailable", chunks(HALF), says="in the middle"),
    "a connection that breaks": Answer("unavailable", chunks(HALF), missing=99),
    "half a chunk": Answer("unavailable", chunks(HALF)[:-9] + b"\r\n\r\n"),
    "no chunk": Answer("unavailable"),
    "a limit a day": google("permanent", 429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", CREDIT, details=quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), wait=17),
    "a key, as 400": google("permanent", 400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", KEY),
    "an old key, as 400": google("permanent", 400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", KEY),
    "a service": google("permanent", 403, "PERMISSION_DENIED", "Generative Language API has not been used in project 1 before", ACCESS),
    "a place, as 400": google("permanent", 400, "FAILED_PRECONDITION", "User location is not supported for the API use.", ACCESS),
    "billing, as 400": google("permanent", 400, "FAILED_PRECONDITION", "Please enable billing on your project in Google AI Studio.", CREDIT),
    "a model": google("permanent", 404, "NOT_FOUND", "models/gemini-foo is not found for API version v1beta", NAME),
    "another address": Answer("permanent", status=301, headers=ELSEWHERE, says="name the final address"),
    "a long prompt": google("refused", 400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", LONG),
    "a parameter": google("refused", 400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
}  # fmt: skip
PROVIDERS = {"anthropic:claude-sonnet-5": ANTHROPIC, "google:gemini-3.8-flash": GOOGLE}


class Server(ThreadingHTTPServer):
    answer: Answer
    asked = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked += 1
        answer = self.server.answer
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-type", answer.media)
        self.send_header("content-length", str(len(answer.body) + answer.missing))
        self.end_headers()
        self.wfile.write(answer.body)
        if answer.missing:
            self.close_connection = True
            self.connection.shutdown(SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the figures are what is printed."""


@contextmanager
def serving() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


async def fault_of(model: Model) -> ModelFault | None:
    try:
        await asyncio.wait_for(model.ask(ModelQuestion([UserMessage("Hi.")])), PATIENCE_SECONDS)
    except ModelFailed as failed:
        return failed.fault
    return None


def what_is_wrong(answer: Answer, fault: ModelFault | None, asked: int) -> str:
    if fault is None:
        return "no fault"
    found = (fault.kind, fault.retry_after_seconds, asked)
    if found != (answer.kind, answer.wait, 1):
        return f"(kind, wait, requests) are {found}, not {(answer.kind, answer.wait, 1)}"
    return "" if answer.says in fault.message else f"it does not say '{answer.says}'"


async def count(server: Server, environ: Mapping[str, str]) -> tuple[Counter[str], int]:
    kinds: Counter[str] = Counter()
    wrong = 0
    for name, answers in PROVIDERS.items():
        try:
            model = make_model(name, environ)
        except InvalidConfig as missing:
            print(f"left out: {missing.with_hint}")
            continue
        for case, answer in answers.items():
            server.answer, server.asked = answer, 0
            fault = await fault_of(model)
            kinds[answer.kind] += 1
            if found := what_is_wrong(answer, fault, server.asked):
                wrong += 1
                print(f"{name}, {case}: {found}\n    {fault and fault.message}")
        await model.close()
    return kinds, wrong


def main() -> int:
    with serving() as server:
        address = f"http://127.0.0.1:{server.server_port}"
        addresses = {"ANTHROPIC_BASE_URL": address, "GOOGLE_GEMINI_BASE_URL": address}
        keys = {"ANTHROPIC_API_KEY": "none", "GEMINI_API_KEY": "none"}
        os.environ.update(addresses | keys)  # the providers' own packages read them there
        kinds, wrong = asyncio.run(count(server, os.environ))
    counts = (
        f"{kinds[kind]} {name}"
        for kind, name in (("unavailable", "transient"), ("permanent",) * 2, ("refused",) * 2)
    )
    print(", ".join(counts) + f": {wrong} wrong")
    return 1 if wrong or not kinds else 0


if __name__ == "__main__":
    sys.exit(main())
