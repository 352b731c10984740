"""The program that runs in the llama.cpp process: JSON lines on stdin, JSON lines on stdout.

It is started by its path and imports nothing of Stretto. One request is answered at a time, in the
order in which they came: side by side they would be faster by half, but what a model says would
then depend on who else is asking.

    → {"weights", "context", "threads", "token_threads"}        ← {"ready"} or {"broken"}
    → {"id", "ask": body}      ← {"id", "busy"}…  {"id", "said"}…  {"id", "ended"} or {"id", "refused"}
    → {"id", "stop"}           ← {"id", "ended"}; nothing for a request that has not begun
"""

import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
from collections import deque
from importlib import import_module
from typing import Any, TextIO

# Between two batches of a prompt it can be stopped: small ones keep that wait short.
_BATCH_TOKENS = 128


class LlamaServer:
    def __init__(self, server: Any, out: TextIO) -> None:
        self._server = server
        self._out = out
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, dict[str, Any]]] = deque()
        self._stopped: set[int] = set()

    def listen(self, lines: TextIO) -> None:
        threading.Thread(target=self._work, daemon=True).start()
        for line in lines:
            told = json.loads(line)
            with self._changed:
                if "ask" in told:
                    self._waiting.append((told["id"], told["ask"]))
                else:
                    self._stopped.add(told["id"])
                self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                id, body = self._waiting.popleft()
            if id not in self._stopped:
                self._answer(id, body)
            self._stopped.discard(id)

    def _answer(self, id: int, body: dict[str, Any]) -> None:
        ended: dict[str, Any] = {"reason": "stop", "input": 0, "output": 0}

        def hear(chunk: dict[str, Any]) -> bool:
            if "error" in chunk:
                ended["error"] = chunk["error"]
                return True
            for choice in chunk.get("choices", ()):
                ended["reason"] = choice.get("finish_reason") or ended["reason"]
                if text := choice.get("delta", {}).get("content"):
                    self.say({"id": id, "said": text})
            if "prompt_progress" in chunk:
                self.say({"id": id, "busy": True})
            if usage := chunk.get("usage"):
                ended["input"] = usage["prompt_tokens"]
                ended["output"] = usage["completion_tokens"]
            return id in self._stopped

        self.say({"id": id, "busy": True})
        try:
            self._server.handle_chat_completions({**body, **_STREAMED}, hear)
        except Exception as error:  # a schema that llama.cpp does not know, a broken template
            ended["error"] = {"type": "refused", "message": str(error)}
        if "error" in ended:
            self.say({"id": id, "refused": ended["error"]})
        else:
            self.say({"id": id, "ended": ended})

    def say(self, message: dict[str, Any]) -> None:
        with self._writing:
            try:
                self._out.write(json.dumps(message) + "\n")
                self._out.flush()
            except OSError:
                os._exit(0)  # the process that started us is gone


_STREAMED = {
    "stream": True,
    "return_progress": True,
    "stream_options": {"include_usage": True},
}


def main() -> None:
    out = _own_stdout()
    setup = json.loads(sys.stdin.readline())
    try:
        server = _load(setup)
    except Exception as error:
        out.write(json.dumps({"broken": f"{type(error).__name__}: {error}"}) + "\n")
        out.flush()
        return
    serving = LlamaServer(server, out)
    serving.say({"ready": True})
    serving.listen(sys.stdin)
    # The process that started us has closed our stdin or is gone. Nothing needs to be tidied up.
    os._exit(0)


def _own_stdout() -> TextIO:
    """Keep what the library prints apart from our lines."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _load(setup: dict[str, Any]) -> Any:
    xllamacpp = import_module("xllamacpp")  # it has no types
    params = xllamacpp.CommonParams()
    params.model.path = setup["weights"]
    params.n_ctx = setup["context"]
    params.n_parallel = 1
    params.n_batch = _BATCH_TOKENS
    params.cpuparams.n_threads = setup["token_threads"]
    params.cpuparams_batch.n_threads = setup["threads"]
    params.ctx_shift = False  # an answer that outgrows the context ends; nothing is forgotten
    params.fit_params = False
    params.cache_ram_mib = 0
    params.warmup = False
    params.verbosity = 1
    params.offline = True
    params.ui = False
    folder = tempfile.mkdtemp(prefix="stretto-")
    try:
        # The library insists on an HTTP server: it gets a socket in a private folder.
        if hasattr(socket, "AF_UNIX"):
            params.hostnames = [os.path.join(folder, "s.sock")]
        else:
            params.hostnames, params.port = ["127.0.0.1"], 0
        params.api_keys = [secrets.token_hex(16)]
        return xllamacpp.Server(params)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
