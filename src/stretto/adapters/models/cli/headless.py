"""Ask a CLI that prints its events as lines of JSON. In: what to start, how to read it. Out: result."""

from stretto.adapters.models.cli.described import Cli
from stretto.adapters.models.cli.failing import failure
from stretto.adapters.models.cli.hearing import Hearing
from stretto.adapters.models.cli.picking import json_line
from stretto.ports.runner import Failure
from stretto.processes.guarded import GuardedProgram, TooMuchOutput, run_guarded
from stretto.processes.programs import ProgramStart

_KILLED = 128 + 9


async def ask_headless(cli: Cli, start: ProgramStart, hearing: Hearing) -> None:
    """How it ended is what the hearing says then."""
    try:
        async with run_guarded(start) as child:
            await _follow(child, cli, hearing)
            if not hearing.is_over:
                await _explain_end(child, cli, hearing)
    except TooMuchOutput as flood:
        hearing.failure = Failure("error", f"{cli.name}: {flood}")
    finally:
        hearing.close()


async def _follow(child: GuardedProgram, cli: Cli, hearing: Hearing) -> None:
    async for line in child.lines():
        event = json_line(line)
        for said in cli.read(event) if event is not None else ():
            hearing.hear(said)
        if hearing.is_over:
            return


async def _explain_end(child: GuardedProgram, cli: Cli, hearing: Hearing) -> None:
    code, errors = await child.exit_code(), await child.last_errors()
    if code == 0 or hearing.cap is not None:
        return
    if hearing.failure is None:
        ended = "was killed" if code == _KILLED else f"ended with exit code {code}"
        words = f"{ended}: {errors}" if errors else ended
        hearing.failure = cli.exit_codes.get(code) or failure(cli.name, words, cli.login)
