"""Ask any command. In: what to start; it reads the prompt on stdin. Out: what it prints, or Failure.

No shell is involved: the words of the command are its words.
"""

from stretto.ports.runner import AttemptResult, Failure, Success
from stretto.processes.guarded import TooMuchOutput, run_guarded
from stretto.processes.programs import ProgramStart

MOST_ANSWER_BYTES = 4 * 1024 * 1024
_LONGEST_TAIL = 2_000


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
