"""A command in a process of its own. Out: how often it called what must be called once."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from support.cli import ROOT, environment


def count_calls(folder: Path, *words: str) -> Counter[str]:
    """Calls of `advance`, of `begin` (each fold of a journal begins with it) and of new event loops."""
    done = subprocess.run(
        [sys.executable, "-m", "support.call_counts", *words],
        cwd=folder,
        env=environment(folder, {"PYTHONPATH": str(ROOT / "tests")}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return Counter(json.loads(done.stderr.splitlines()[-1]))


def _watched() -> dict[CodeType, str]:
    from asyncio.base_events import BaseEventLoop

    from stretto.schedule.advance import advance
    from stretto.schedule.state import begin

    loop: Any = BaseEventLoop.__init__
    return {advance.__code__: "advance", begin.__code__: "fold", loop.__code__: "loop"}


def _main(words: Sequence[str]) -> None:
    import atexit
    import threading

    from stretto.cli.main import main

    names, counts = _watched(), Counter[str]()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and (name := names.get(frame.f_code)) is not None:
            counts[name] += 1

    atexit.register(lambda: print("\n" + json.dumps(counts), file=sys.stderr))
    sys.argv = ["stretto", *words]
    threading.setprofile(count)  # a loop in another thread is one more
    sys.setprofile(count)
    main()


if __name__ == "__main__":
    _main(sys.argv[1:])
