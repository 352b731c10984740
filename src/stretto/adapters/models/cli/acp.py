"""Ask an agent over the Agent Client Protocol, version 1. In: what to start. Out: the hearing's.

We offer it neither files nor terminals: it uses its own, in its working folder. It asks before it
does what it finds risky, and is answered by what the step may do. Where it offers a mode that only
reads, a reader is put into it.
"""

from collections.abc import Callable
from pathlib import Path

from stretto import __version__
from stretto.adapters.models.cli.acp_permission import answer
from stretto.adapters.models.cli.acp_updates import Updates, usage_of
from stretto.adapters.models.cli.acp_wire import Gone, RpcFailed, Wire
from stretto.adapters.models.cli.failing import failure
from stretto.adapters.models.cli.hearing import Hearing
from stretto.adapters.models.cli.picking import list_at, object_at, text_at
from stretto.adapters.models.cli.said import Capped, Said, SpentInAll, Spoke
from stretto.ports.runner import Failure
from stretto.processes.guarded import GuardedProgram, TooMuchOutput, run_guarded
from stretto.processes.programs import ProgramStart
from stretto.vocabulary.values import Json

_VERSION = 1
_NOT_LOGGED_IN = -32000
_READING_MODES = ("plan", "read-only", "read_only", "readonly", "ask")
_LIMIT = "the model's limit of tokens reached"


class AcpAgent:
    def __init__(
        self,
        who: str,
        login: str,
        tools: frozenset[str],
        may_write: bool,
        hears: Callable[[str], Said] = Spoke,
    ) -> None:
        self._who = who
        self._login = login
        self._tools = tools
        self._may_write = may_write
        self._hears = hears
        self.is_held = may_write  # whether a mode of its own keeps a reader from writing

    async def ask(
        self, start: ProgramStart, prompt: str, hearing: Hearing, sets_mode: bool
    ) -> None:
        try:
            async with run_guarded(start) as child:
                try:
                    await self._converse(child, start.folder, prompt, hearing, sets_mode)
                except Gone:
                    await self._explain_end(child, hearing)
        except RpcFailed as error:
            status = 401 if error.code == _NOT_LOGGED_IN else None
            hearing.failure = failure(self._who, str(error), self._login, status)
        except TooMuchOutput as flood:
            hearing.failure = Failure("error", f"{self._who}: {flood}")
        except _Enough:
            pass  # the hearing knows why
        finally:
            hearing.close()

    async def _converse(
        self, child: GuardedProgram, folder: Path, prompt: str, hearing: Hearing, sets_mode: bool
    ) -> None:
        updates = Updates(self._hears)

        def serve(method: str, params: dict[str, Json]) -> dict[str, Json] | None:
            if method != "session/request_permission":
                return None
            for said in updates.read_call(object_at(params, "toolCall")):
                hearing.hear(said)
            return answer(params, self._tools, folder)

        def hear(method: str, params: dict[str, Json]) -> None:
            if method == "session/update":
                for said in updates.read(object_at(params, "update")):
                    hearing.hear(said)
            if hearing.is_over:
                raise _Enough

        wire = Wire(child, serve, hear)
        no_files: Json = {"readTextFile": False, "writeTextFile": False}
        us: Json = {"name": "stretto", "version": __version__}
        able: Json = {"fs": no_files, "terminal": False}
        hello = await wire.ask(
            "initialize",
            {"protocolVersion": _VERSION, "clientCapabilities": able, "clientInfo": us},
        )
        if hello.get("protocolVersion") != _VERSION:
            raise RpcFailed(0, f"it speaks another version of ACP than {_VERSION}")
        session = await wire.ask("session/new", {"cwd": str(folder), "mcpServers": []})
        id = text_at(session, "sessionId")
        if sets_mode and not self._may_write:
            await self._set_reading_mode(wire, id, object_at(session, "modes"))
        block: Json = {"type": "text", "text": prompt}
        reply = await wire.ask("session/prompt", {"sessionId": id, "prompt": [block]})
        hearing.hear(SpentInAll(usage_of(reply)))
        self._stop(text_at(reply, "stopReason"), hearing)

    async def _set_reading_mode(self, wire: Wire, id: str, modes: dict[str, Json]) -> None:
        offered = {text_at(mode, "id") for mode in list_at(modes, "availableModes")}
        reading = next((mode for mode in _READING_MODES if mode in offered), None)
        if reading is not None:
            await wire.ask("session/set_mode", {"sessionId": id, "modeId": reading})
            self.is_held = True

    def _stop(self, reason: str, hearing: Hearing) -> None:
        if reason == "max_turn_requests":
            hearing.hear(Capped("max turns reached"))
        elif reason == "max_tokens":
            hearing.hear(Capped(_LIMIT, is_truncated=True))
        elif reason == "refusal":
            hearing.failure = Failure("error", f"{self._who} refused to go on")
        elif reason == "cancelled":
            hearing.failure = Failure("error", f"{self._who} stopped by itself")

    async def _explain_end(self, child: GuardedProgram, hearing: Hearing) -> None:
        code, errors = await child.exit_code(), await child.last_errors()
        words = f"ended with exit code {code} before it answered: {errors}"
        hearing.failure = failure(self._who, words, self._login)


class _Enough(Exception):
    pass
