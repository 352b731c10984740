"""Give commands hostile values by every way there is, and count how many were executed. Exit 1 if one was.

    python benchmarks/hostile_values.py [--quick]

Ways: an environment variable, standard input, the input of a recipe in a recipe (two deep), what a model said, an
element of a map, the candidate of a loop; each started by the CLI and over HTTP. All commands may write in the
workspace, and each value tries to make the file PWNED there, or to become an option, a pattern or a template.

    executed   ways by which a value left a file in the workspace
    changed    values that a command did not get byte for byte
    refused    values that a variable cannot hold (NUL, 1 MB): the step must fail and say so, and so it must by both ways
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2

from stretto.testing.openai_script import Asked, Said
from stretto.testing.openai_server import serving

SRC = Path(__file__).parents[1] / "src"
PATIENCE_SECONDS = 600.0
VALUES: tuple[str, ...] = (
    "$(touch PWNED)", "`touch PWNED`", "; touch PWNED", "| touch PWNED", "& touch PWNED &", "a\0; touch PWNED",
    "&& touch PWNED", "|| touch PWNED", "\ntouch PWNED\n", "\r\ntouch PWNED", "'; touch PWNED; '", "-n", "-e \\x41",
    '"; touch PWNED; "', "\\'; touch PWNED; \\'", "$((`touch PWNED`))", "${x:-$(touch PWNED)}", "%s%n%d", "%(touch PWNED)s",
    "<(touch PWNED)", ">(touch PWNED)", "> PWNED", ">> PWNED", "() { :; }; touch PWNED", "$'\\x41'", "{0.__class__}",
    "!touch PWNED", "~", "*", "?", "[a-z]", "{a,b}", "$IFS", "$PATH", "\\", "'", '"', "EOF\ntouch PWNED\n", "${jndi:x}",
    "-rf /", "--help", "-- touch PWNED", "\x1b[31mred\x1b]0;title\x07", "\u202eevil", "{{inputs.v0}}", "\\{{x}}",
    "{{steps.e0.output}}", "é🙂\u0301", "a\tb", "x ", " x", "=A", "#touch PWNED", "\x7f\x01", "A" * 1_000_000,
    "null", "[1,2", '{"a": "$(touch PWNED)"}', "<script>touch PWNED</script>", "\u2028touch PWNED",
)  # fmt: skip
ENVIRONMENT = 'printf %s "$V" | sha256sum'
_MOST = 128 * 1024 - 3  # of one variable


@dataclass
class Figures:
    values: int = 0
    ways: int = 0
    bad: dict[str, int] = field(
        default_factory=lambda: {"executed": 0, "changed": 0, "not refused": 0}
    )
    refused: int = 0

    @property
    def is_good(self) -> bool:
        return not any(self.bad.values())


def command(id: str, way: str, value: str, needs: str = "") -> dict[str, Any]:
    given = {"env": {"V": value}, "run": ENVIRONMENT} if way == "env" else {"stdin": value}
    step = {"id": id, "run": "sha256sum", "workspace_mode": "shared", "on_failure": "skip", **given}
    return {**step, **({"depends_on": needs} if needs else {})}


def recipes(many: int) -> dict[str, Any]:
    """Three recipes in one another, for so many values."""
    inputs = {f"v{i}": {"required": True} for i in range(many)}
    given = {name: f"{{{{inputs.{name}}}}}" for name in inputs}
    direct = [
        command(f"{way[0]}{i}", way, f"{{{{inputs.v{i}}}}}")
        for i in range(many)
        for way in ("env", "stdin")
    ]
    inner = {"name": "inner", "inputs": inputs, "steps": direct}
    middle = {
        "name": "middle",
        "inputs": inputs,
        "steps": [{"id": "deeper", "workflow": "inner.json", "inputs": given}],
    }
    outer = {
        "name": "outer",
        "inputs": {**inputs, "all": {"type": "json", "required": True}},
        "agents": {"echo": {"prompt": "Say it."}},
        "steps": [
            *direct,
            {"id": "deep", "workflow": "middle.json", "inputs": given, "on_failure": "skip"},
            {
                "id": "m",
                "map": {"over": "{{inputs.all}}", "agent": "echo", "on_item_failure": "skip"},
                "input": "{{item}}",
                "on_failure": "skip",
            },
            *(command(f"m{i}", "env", f"{{{{steps.m.output[{i}]}}}}") for i in range(many)),
            *(
                {
                    "id": f"l{i}",
                    "prompt": f"{{{{inputs.v{i}}}}}",
                    "workspace_mode": "shared",
                    "posture": "writer",
                    "on_failure": "skip",
                    "loop": {
                        "agent": "echo",
                        "validator": {"run": ENVIRONMENT, "env": {"V": "{{candidate}}"}},
                    },
                }
                for i in range(many)
            ),
        ],
    }
    return {f"workflows/{each['name']}.json": each for each in (inner, middle, outer)}


def echo(asked: Asked) -> Said:
    """What the user said last, as a model that repeats it."""
    told = str(asked.messages[-1]["content"])
    return Said(told.removeprefix("## Input\n\n") or "nothing")


def attack(folder: Path, values: Sequence[str] = VALUES) -> Figures:
    figures = Figures(len(values))
    inputs: dict[str, Any] = {f"v{i}": value for i, value in enumerate(values)}
    inputs["all"] = list(values)
    with serving(echo) as server:
        for surface in (_by_cli, _over_http):
            place = folder / surface.__name__
            for name, recipe in recipes(len(values)).items():
                file = place / "work" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(recipe))
            files = _files(place)
            judge(surface(place, inputs, server.url), values, figures)
            figures.bad["executed"] += len(_files(place) ^ files)
    return figures


def _files(place: Path) -> set[str]:
    return {f"{path.relative_to(place)}" for path in (place / "work").rglob("*")}


def judge(report: dict[str, Any], values: Sequence[str], figures: Figures) -> None:
    steps = report["steps"]
    for i, value in enumerate(values):
        digest = sha256(value.encode()).hexdigest()
        fits = "\0" not in value and len(value.encode()) <= _MOST
        for within in ("", "deep/deeper/"):
            figures.ways += 2
            for way in ("e", "s"):
                step = steps[f"{within}{way}{i}"]
                if fits or way == "s":
                    got = str(step["output"] or "").split(" ")[0]
                    figures.bad["changed"] += got != digest
                else:
                    figures.refused += 1
                    is_said = "NUL" in step["error"] or "give it by stdin" in step["error"]
                    figures.bad["not refused"] += step["status"] == "succeeded" or not is_said
        # What a model says may be trimmed on its way: only that nothing is executed counts there.
        figures.ways += 2
        assert steps[f"m{i}"]["status"] in ("succeeded", "failed"), steps[f"m{i}"]
        assert steps[f"l{i}"]["status"] in ("succeeded", "failed"), steps[f"l{i}"]


def _environment(place: Path, url: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(SRC), "STRETTO_TRUST": "1",
        "HOME": str(place / "user"), "STRETTO_HOME": str(place / "home"), "STRETTO_MODEL": "openai:m",
        "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-loopback-0123456789", "STRETTO_TOKEN": "t" * 24,
    }  # fmt: skip


def _by_cli(place: Path, inputs: dict[str, Any], url: str) -> dict[str, Any]:
    words = [sys.executable, "-m", "stretto", "run", "outer", "--json", "--input-json", "-"]
    done = subprocess.run(
        words, cwd=place / "work", env=_environment(place, url), input=json.dumps(inputs).encode(),
        capture_output=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert "steps" in report, (report, done.returncode, done.stderr.decode()[-2000:])
    return report


def _over_http(place: Path, inputs: dict[str, Any], url: str) -> dict[str, Any]:
    words = [sys.executable, "-m", "stretto", "serve", "--port", "0"]
    environ = _environment(place, url)
    (place / "home").mkdir(exist_ok=True)
    with (
        (place / "log").open("w") as log,
        subprocess.Popen(
            words, cwd=place / "work", env=environ, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        assert server.stdout is not None
        try:
            base = server.stdout.readline().removeprefix("Stretto is at ").strip()
            answer = httpx2.post(
                f"{base}/api/workflows/outer/run", json={"inputs": inputs, "wait": True},
                headers={"Authorization": f"Bearer {environ['STRETTO_TOKEN']}"},
                timeout=PATIENCE_SECONDS, trust_env=False,
            )  # fmt: skip
        finally:
            server.terminate()
    report: dict[str, Any] = answer.json()
    assert "steps" in report, report
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="every fifth value")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stretto-values-") as folder:
        figures = attack(Path(folder), VALUES[::5] if options.quick else VALUES)
    print(
        f"{figures.values} values by {figures.ways} ways, {figures.refused} refused as they must be"
    )
    print(", ".join(f"{count} {name}" for name, count in figures.bad.items()))
    return 0 if figures.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
