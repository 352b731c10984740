"""The console that is committed is the one that its source makes."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "stretto" / "server" / "console"
VITE = ROOT / "console" / "node_modules" / ".bin" / "vite"


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.skipif(
    not VITE.exists(), reason="console/node_modules is not installed: npm is missing"
)
def test_the_committed_console_is_what_its_source_makes(tmp_path: Path) -> None:
    built = tmp_path / "console"
    command = ["npx", "vite", "build", "--outDir", str(built), "--emptyOutDir"]
    done = subprocess.run(command, cwd=ROOT / "console", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert contents(built) == contents(BUILT), "run: make console"


@pytest.mark.skipif(
    not VITE.exists(), reason="console/node_modules is not installed: npm is missing"
)
def test_the_types_of_the_console_hold() -> None:
    assert shutil.which("npx")
    command = ["npx", "tsc", "--noEmit"]
    done = subprocess.run(command, cwd=ROOT / "console", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_first_load_is_small() -> None:
    index = (BUILT / "index.html").read_text(encoding="utf-8")
    first = [path for path in (BUILT / "assets").iterdir() if path.name in index]
    assert {path.suffix for path in first} == {".js", ".css"}
    assert sum(len(gzip.compress(path.read_bytes())) for path in first) < 60_000
