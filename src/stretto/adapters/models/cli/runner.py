"""CLI agents as subagents. In: AttemptRequest whose model begins with `cli:`. Out: AttemptResult.

    the name ─→ a known CLI ─→ may it be held to what the step may do? ─┬→ its JSON lines ─┐
             ─→ an ACP agent ───────────────────────────────────────────┼→ ACP ────────────┼→ result
             ─→ a command ─→ has the user allowed it? ──────────────────┴→ what it prints ─┘

The agent keeps its own loop and tools; what it does is journaled as it says so itself.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from stretto.adapters.models.cli.acp import AcpAgent
from stretto.adapters.models.cli.command import ask_command
from stretto.adapters.models.cli.described import Order, Refused
from stretto.adapters.models.cli.environment import for_cli, for_command
from stretto.adapters.models.cli.headless import ask_headless
from stretto.adapters.models.cli.hearing import Hearing
from stretto.adapters.models.cli.names import (
    AskedCli,
    AskedCommand,
    not_found,
    not_installed,
    read_name,
)
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Witness
from stretto.processes.programs import NOWHERE, ProgramStart, Writable, find_command, with_safe_path
from stretto.text.redaction import NOTHING_SECRET, Redactor

_UNHELD = "it offers no mode that only reads: nothing but its own manners kept it from writing"


class CliRunner:
    def __init__(
        self,
        may_run: Callable[[tuple[str, ...]], bool],
        environ: Mapping[str, str] = os.environ,
        passes: tuple[str, ...] = (),
        max_usd: float | None = None,
        trusts_project: bool = False,
        redactor: Redactor = NOTHING_SECRET,
        writable: Writable = NOWHERE,
    ) -> None:
        """`may_run`: whether the user allows this command. Recipes come from strangers and models,
        so nobody but the user's own settings may say yes. The CLIs with a name need no such yes.

        `writable`: where steps write, and no program is taken from. `passes`: further variables for the programs. `max_usd`: for CLIs that can stop at a sum.
        """
        self._may_run = may_run
        self._environ = with_safe_path(environ, writable)
        self._writable = writable
        self._passes = passes
        self._max_usd = max_usd
        self._trusts_project = trusts_project
        self._redactor = redactor

    async def run(self, request: AttemptRequest, witness: Witness) -> AttemptResult:
        name = request.model or ""
        asked = read_name(name)
        if isinstance(asked, str):
            return Failure("permanent", asked, model=name)
        try:
            # Not in the workspace, where the agent could change it.
            with tempfile.TemporaryDirectory(
                prefix="stretto-cli-", ignore_cleanup_errors=True
            ) as private:
                if isinstance(asked, AskedCli):
                    return await self._ask_cli(asked, request, witness, Path(private))
                return await self._ask_command(asked, request, witness, Path(private))
        except OSError as error:
            said = f"{name} cannot be started: {error.strerror or error}"
            return Failure("error", said, model=name)

    async def _ask_cli(
        self, asked: AskedCli, request: AttemptRequest, witness: Witness, private: Path
    ) -> AttemptResult:
        cli, name = asked.cli, request.model or ""
        program = self._found(cli.name)
        if program is None:
            return Failure("permanent", not_installed(cli), model=name)
        own = private / "own"
        own.mkdir()
        order = Order(
            request,
            asked.model,
            own,
            self._max_usd,
            self._trusts_project,
            asked.speaks_acp,
            self._environ,
        )
        launch = cli.launch(order)
        if isinstance(launch, Refused):
            return Failure("refused", launch.reason, model=name)
        for file, text in launch.files.items():
            (own / file).write_text(text, errors="replace")
        environment = {**for_cli(cli, self._environ, self._passes), **launch.sets}
        start = ProgramStart(
            (program, *launch.words),
            _folder(request, private),
            environment,
            None if asked.speaks_acp else launch.said,
        )
        counts_itself = cli.caps_turns and not asked.speaks_acp
        hearing = self._hearing(request, witness, None if counts_itself else request.max_turns)
        if asked.speaks_acp:
            agent = AcpAgent(cli.name, cli.login, order.tools, request.may_write, cli.hears)
            await agent.ask(start, launch.said, hearing, sets_mode=False)
        else:
            await ask_headless(cli, start, hearing)
        return hearing.result(name, launch.warnings)

    async def _ask_command(
        self, asked: AskedCommand, request: AttemptRequest, witness: Witness, private: Path
    ) -> AttemptResult:
        name = request.model or ""
        if not self._may_run(asked.words):
            said = f"the command '{asked.words[0]}' is not among those that the user has allowed"
            return Failure("refused", said, model=name)
        program = self._found(asked.words[0])
        if program is None:
            return Failure("permanent", not_found(asked.words[0]), model=name)
        order = Order(request, "", private)
        start = ProgramStart(
            (program, *asked.words[1:]),
            _folder(request, private),
            for_command(self._environ, self._passes),
            None if asked.speaks_acp else order.told,
        )
        if not asked.speaks_acp:
            return await ask_command(name, start)
        hearing = self._hearing(request, witness, request.max_turns)
        agent = AcpAgent(asked.words[0], "log in with it first", order.tools, request.may_write)
        await agent.ask(start, order.told, hearing, sets_mode=True)
        return hearing.result(name, () if agent.is_held else (_UNHELD,))

    def _hearing(self, request: AttemptRequest, witness: Witness, max_turns: int | None) -> Hearing:
        return Hearing(request, witness, self._redactor, max_turns)

    def _found(self, program: str) -> str | None:
        return find_command(program, Path.cwd(), self._environ.get("PATH"), self._writable)


def _folder(request: AttemptRequest, private: Path) -> Path:
    """An agent without a workspace works in an empty folder, not in ours."""
    if request.workspace:
        return Path(request.workspace).absolute()
    empty = private / "work"
    empty.mkdir()
    return empty
