"""Make the README's pictures from real runs in a real terminal.

    python scripts/pictures.py

Needs tmux. Each picture is a screen of a tmux window, drawn as SVG by rich. A server on this machine
plays the model over HTTP, so that the tools, the streams and the failures are real and the pictures
can be made anew anywhere.
"""

import io
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from stretto.testing.openai_script import Asked, Said, ServerAnswer, ToolCall
from stretto.testing.openai_server import serving

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 92, 16
COMMAND = "stretto run examples/code-review.yaml -i path=src/billing --model openai:gpt-5"
ANSWERS = {
    "Lens: correctness": (
        "Two callers round differently. invoice.py rounds each line to cents before it adds them "
        "up, refund.py adds first and rounds once. An invoice of three lines at 0.335 and its "
        "refund differ by one cent, and the ledger never balances again. The half-up rounding in "
        "tax.py hides the difference for all amounts below ten."
    ),
    "Lens: upkeep": (
        "total() mutates the list that it is given, and its name says otherwise. Whoever calls it "
        "twice gets the discount twice; two of five callers do, and only the order of their "
        "imports keeps that from showing."
    ),
}


def answer(asked: Asked) -> ServerAnswer:
    """As a model would: look at a file first, then speak slowly."""
    has_looked = len(asked.messages) > 2
    words = str(asked.messages[1])
    if "Map the code" in words:
        return Said("Three modules; invoice.py takes outside data.")
    if "Lens: security" in words:
        return Said("", finish_reason="content_filter")
    if "Lens: tests" in words and has_looked:
        return Said("Fine.", delay_seconds=60)
    if not has_looked:
        return Said("", tool_calls=(ToolCall("Read", {"file_path": "src/billing/invoice.py"}),))
    text = next((said for lens, said in ANSWERS.items() if lens in words), "Fine.")
    return Said(text, chunks=60, chunk_delay_seconds=0.22)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    for name, keys in {"run": (), "stream": ("Down", "Enter")}.items():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            prepare(Path(folder))
            with serving(answer) as server:
                screen = capture(Path(folder), server.url, keys)
        picture = draw(f"$ {COMMAND}\n{screen}", "stretto run", name)
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")


def prepare(folder: Path) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    code = folder / "src" / "billing"
    code.mkdir(parents=True)
    (code / "invoice.py").write_text("def total(lines):\n    return sum(lines)\n")


def capture(folder: Path, url: str, keys: Sequence[str], until: str = "▶ correctness") -> str:
    """The screen, with its colours, some seconds after `until` stands on it."""
    name = f"pictures-{folder.name}"
    binaries = shlex.quote(str(Path(sys.executable).parent))
    environ = f"STRETTO_HOME={folder}/home OPENAI_BASE_URL={url} OPENAI_API_KEY=sk-loopback-0123"
    shell = f"PATH={binaries}:$PATH {environ} {COMMAND}; sleep 60"
    size = ("-x", str(WIDTH), "-y", str(HEIGHT))
    tmux("new-session", "-d", "-s", name, *size, "-c", str(folder), shell)
    try:
        for _ in range(300):
            time.sleep(0.1)
            if until in tmux("capture-pane", "-p", "-t", name):
                break
        time.sleep(3.0)
        for key in keys:
            tmux("send-keys", "-t", name, key)
            time.sleep(0.3)
        time.sleep(3.0)
        return tmux("capture-pane", "-e", "-p", "-t", name).rstrip()
    finally:
        tmux("kill-session", "-t", name)


def tmux(*arguments: str) -> str:
    done = subprocess.run(["tmux", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def draw(screen: str, title: str, name: str) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen), soft_wrap=True)
    picture = console.export_svg(title=title, theme=MONOKAI, unique_id=name)
    # A page that shows the picture must not ask another server for a font.
    return re.sub(r"@font-face\s*{.*?}", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
