"""Run an attempt whose model begins with `cli:` by an agent program of others.

    the name ─→ a known CLI ─→ may it be held to what the step may do? ─┬→ its JSON lines ─┐
             ─→ an ACP agent ───────────────────────────────────────────┼→ ACP ────────────┼→ result
             ─→ a command ─→ has the user allowed it? ──────────────────┴→ what it prints ─┘

The agent keeps its own loop and tools; what it does is journaled as it reports it.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from stretto.adapters.models.cli.acp import AcpAgent
from stretto.adapters.models.cli.cli_spec import (
    Cli,
    LaunchRefused,
    LaunchRequest,
    for_cli,
    for_command,
    json_line,
)
from stretto.adapters.models.cli.names import (
    NamedCli,
    NamedCommand,
    not_found,
    not_installed,
    read_name,
)
from stretto.adapters.models.cli.transcript import TranscriptRecorder, failure
from stretto.ports.runner import AttemptRequest, AttemptResult, Failure, Success, Witness
from stretto.processes.guarded import GuardedProgram, TooMuchOutput, run_guarded
from stretto.processes.programs import NOWHERE, ProgramStart, Writable, find_command, with_safe_path
from stretto.text.redaction import NOTHING_SECRET, Redactor

_NOT_ENFORCED = "this agent offers no read-only mode, so read-only was not enforced"
_KILLED = 128 + 9
MOST_ANSWER_BYTES = 4 * 1024 * 1024
_LONGEST_TAIL = 2_000


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
        so only the user's own settings may allow it. CLIs with a name need no permission.

        `writable`: where steps write; no program is started from there. `passes`: further variables
        for the programs. `max_usd`: for CLIs that can stop at a sum.
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
                if isinstance(asked, NamedCli):
                    return await self._ask_cli(asked, request, witness, Path(private))
                return await self._ask_command(asked, request, witness, Path(private))
        except OSError as error:
            said = f"{name} cannot be started: {error.strerror or error}"
            return Failure("error", said, model=name)

    async def _ask_cli(
        self, asked: NamedCli, request: AttemptRequest, witness: Witness, private: Path
    ) -> AttemptResult:
        cli, name = asked.cli, request.model or ""
        program = self._find(cli.name)
        if program is None:
            return Failure("permanent", not_installed(cli), model=name)
        own = private / "own"
        own.mkdir()
        order = LaunchRequest(
            request,
            asked.model,
            own,
            self._max_usd,
            self._trusts_project,
            asked.speaks_acp,
            self._environ,
        )
        launch = cli.launch(order)
        if isinstance(launch, LaunchRefused):
            return Failure("refused", launch.reason, model=name)
        for file, text in launch.files.items():
            (own / file).write_text(text, errors="replace")
        environment = {**for_cli(cli, self._environ, self._passes), **launch.variables}
        start = ProgramStart(
            (program, *launch.words),
            _folder(request, private),
            environment,
            None if asked.speaks_acp else launch.prompt,
        )
        counts_itself = cli.caps_turns and not asked.speaks_acp
        recorder = self._recorder(request, witness, None if counts_itself else request.max_turns)
        if asked.speaks_acp:
            tools = order.tools_over_acp
            agent = AcpAgent(cli.name, cli.login, tools, request.may_write, cli.read_text)
            await agent.ask(start, launch.prompt, recorder, sets_mode=False)
            return recorder.result(name, (*launch.warnings, *_without_bash(order)))
        await ask_headless(cli, start, recorder)
        return recorder.result(name, launch.warnings)

    async def _ask_command(
        self, asked: NamedCommand, request: AttemptRequest, witness: Witness, private: Path
    ) -> AttemptResult:
        name = request.model or ""
        if not self._may_run(asked.words):
            said = f"the command '{asked.words[0]}' is not among those that the user has allowed"
            return Failure("refused", said, model=name)
        program = self._find(asked.words[0])
        if program is None:
            return Failure("permanent", not_found(asked.words[0]), model=name)
        order = LaunchRequest(request, "", private)
        start = ProgramStart(
            (program, *asked.words[1:]),
            _folder(request, private),
            for_command(self._environ, self._passes),
            None if asked.speaks_acp else order.whole_prompt,
        )
        if not asked.speaks_acp:
            return await ask_command(name, start)
        recorder = self._recorder(request, witness, request.max_turns)
        tools = order.tools_over_acp
        agent = AcpAgent(asked.words[0], "log in with it first", tools, request.may_write)
        await agent.ask(start, order.whole_prompt, recorder, sets_mode=True)
        warnings = _without_bash(order)
        if not agent.is_read_only_enforced:
            warnings += (_NOT_ENFORCED,)
        return recorder.result(name, warnings)

    def _recorder(
        self, request: AttemptRequest, witness: Witness, max_turns: int | None
    ) -> TranscriptRecorder:
        return TranscriptRecorder(request, witness, self._redactor, max_turns)

    def _find(self, program: str) -> str | None:
        return find_command(program, Path.cwd(), self._environ.get("PATH"), self._writable)


def _without_bash(order: LaunchRequest) -> tuple[str, ...]:
    return ("it works without Bash",) if order.tools_over_acp != order.tools else ()


def _folder(request: AttemptRequest, private: Path) -> Path:
    """An agent without a workspace works in an empty folder, not in ours."""
    if request.workspace:
        return Path(request.workspace).absolute()
    empty = private / "work"
    empty.mkdir()
    return empty


async def ask_headless(cli: Cli, start: ProgramStart, recorder: TranscriptRecorder) -> None:
    """Afterwards the recorder knows how the agent ended."""
    try:
        async with run_guarded(start) as child:
            await _follow(child, cli, recorder)
            if not recorder.is_over:
                await _explain_end(child, cli, recorder)
    except TooMuchOutput as flood:
        recorder.failure = Failure("error", f"{cli.name}: {flood}")
    finally:
        recorder.close()


async def _follow(child: GuardedProgram, cli: Cli, recorder: TranscriptRecorder) -> None:
    async for line in child.lines():
        event = json_line(line)
        for said in cli.read(event) if event is not None else ():
            recorder.record(said)
        if recorder.is_over:
            return


async def _explain_end(child: GuardedProgram, cli: Cli, recorder: TranscriptRecorder) -> None:
    code, errors = await child.exit_code(), await child.last_errors()
    if code == 0 or recorder.cap is not None:
        return
    if recorder.failure is None:
        ended = "was killed" if code == _KILLED else f"ended with exit code {code}"
        words = f"{ended}: {errors}" if errors else ended
        recorder.failure = cli.exit_codes.get(code) or failure(cli.name, words, cli.login)


async def ask_command(name: str, start: ProgramStart) -> AttemptResult:
    try:
        async with run_guarded(start) as child:
            answer = await child.read_all(MOST_ANSWER_BYTES)
            code, errors = await child.exit_code(), await child.last_errors()
    except TooMuchOutput as flood:
        return Failure("error", f"{start.words[0]}: {flood}", model=name)
    if code != 0:
        tail = errors[-_LONGEST_TAIL:] or "it printed nothing on stderr"
        error = f"{start.words[0]} ended with exit code {code}: {tail}"
        return Failure("error", error, model=name)
    text = answer.decode(errors="replace").strip()
    if not text:
        return Failure("empty", "the answer is empty", model=name)
    return Success(text, model=name)
