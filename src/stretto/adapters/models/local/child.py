"""Start and end one llama.cpp process. In: a Loadable. Out: a Child that has loaded it.

It is a process of its own, for a native crash must not end a run, loading holds Python's lock,
and what is ended gives its memory back. It talks through pipes: there is no port to guard, and
it ends when we do, however we end.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from stretto.adapters.models.local.catalog import Loadable
from stretto.problems.errors import StrettoError
from stretto.processes import python

_PROGRAM = Path(__file__).with_name("serving.py")
# What native code needs to start. Keys and tokens are none of its business.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT",
                "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # fmt: skip


class Child:
    """Made by `load`."""

    def __init__(self, process: "subprocess.Popen[str]", errors: IO[bytes], life: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._errors = errors
        self._life = life
        self._heard_at = time.monotonic()
        self._is_working = False

    @classmethod
    def load(cls, loadable: Loadable) -> "Child":
        """Blocks until the weights are loaded. Raises StrettoError."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
        life, ours = os.pipe()
        command = python.with_packages(_PROGRAM, life=life)
        process = subprocess.Popen(
            command.words,
            cwd=command.folder,
            pass_fds=(life,),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for us: we tell it when to stop
        )
        os.close(life)
        child = cls(process, errors, ours)
        child.send(_setup(loadable))
        first = next(child.messages(), {})
        if "ready" not in first:
            raise _not_loaded(loadable, str(first.get("broken", "")), child.end())
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def silent_seconds(self) -> float:
        """For how long it has owed somebody a word."""
        return time.monotonic() - self._heard_at if self._is_working else 0.0

    def send(self, message: dict[str, Any]) -> None:
        # One that has died is noticed where its messages are read.
        with suppress(OSError, ValueError):
            self._stdin.write(json.dumps(message) + "\n")
            self._stdin.flush()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Until it ends."""
        while True:
            try:
                message = json.loads(self._stdout.readline())
            except (OSError, ValueError):  # the end, or half a line before it
                return
            if isinstance(message, dict):
                self._heard_at = time.monotonic()
                self._is_working = "busy" in message or "said" in message
                yield message

    def ask_to_end(self) -> None:
        with suppress(OSError, ValueError):
            self._stdin.close()

    def end(self) -> str:
        """Only for whoever reads the messages. Out: its last words."""
        self.ask_to_end()
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._stdout.close()
        os.close(self._life)
        with self._errors:
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
        said = " ".join(line.strip() for line in lines[-2:])[:300]
        return f"exit code {code}: {said}" if said else f"exit code {code}"

    def kill(self) -> None:
        self._process.kill()


def _setup(loadable: Loadable) -> dict[str, Any]:
    cores = _cores()
    return {
        "weights": str(loadable.path),
        "context": loadable.traits.context_tokens,
        "threads": cores,
        "token_threads": min(cores, loadable.traits.token_threads or max(1, cores - 1)),
    }


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # what a container grants, not what the machine has
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # Threads that wait by spinning starve each other where cores are shared.
    return {**python.environment(kept), "GOMP_SPINCOUNT": "20000"}


def _not_loaded(loadable: Loadable, broken: str, last_words: str) -> StrettoError:
    if "ModuleNotFoundError" in broken:
        hint = "pip install 'stretto[local]'"
        return StrettoError("xllamacpp, which runs local models, is not installed", hint=hint)
    if "ImportError" in broken:
        hint = "on Debian and Ubuntu: apt install libgomp1" if "libgomp" in broken else ""
        return StrettoError(f"xllamacpp cannot be loaded: {broken}", hint=hint)
    return StrettoError(f"{loadable.path} cannot be loaded: {broken} ({last_words})")
