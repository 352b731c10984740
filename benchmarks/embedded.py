"""The printed recipes and the templates with commands on the embedded model. In: its weights. Out: how each ended, and how long.

    python benchmarks/embedded.py [--models FOLDER] [--templates]

SmolLM2-135M says little of sense; what is shown is that every kind of step works on it: free text,
`format: json`, rules, parallel branches, a loop with its validator. No key, no network.

The templates work on a small git repository with a defect and with pytest in its environment. The model is too
small to cure it: the run must end `partial` and say why, or `complete` with tests that pass. Exit 1 if it claims more.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
INPUTS = {
    "research-and-brief": {"topic": "looms"},
    "multi-criteria-lead-scoring": {"lead_data": {"name": "Ann"}, "icp_criteria": {}},
    "threat-brief": {"topic": "looms"},
    "research-to-proposal": {
        "company_name": "Acme", "contact_name": "Ann", "our_services": "looms",
    },
}  # fmt: skip


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=Path, default=ROOT / ".venv" / "models")
    options.add_argument("--templates", action="store_true", help="only these")
    given = options.parse_args()
    print("recipe                        status     steps  calls  seconds")
    statuses = [] if given.templates else [run(name, given.models) for name in INPUTS]
    print(f"\n{statuses.count('complete')} of {len(statuses)} complete")
    lies = [why for name in TEMPLATES if (why := try_template(name, given.models))]
    print(
        "\n".join(
            (*lies, f"{len(TEMPLATES) - len(lies)} of {len(TEMPLATES)} templates ended as they say")
        )
    )
    return 0 if set(statuses) <= {"complete"} and not lies else 1


TEMPLATES = {"fix-until-green": "approve", "review-this-repository": "write"}  # and their gates
CODE = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\n\n\ndef test_sum():\n    assert add(2, 3) == 5\n",
}


def add_pytest(work: Path, *, is_whole: bool = True) -> None:
    """A virtual environment of the repository with pytest in it, made without a network."""
    words = ["/usr/bin/python3", "-m", "venv", "--without-pip", ".venv"]
    subprocess.run(words, cwd=work, check=True)
    (there,) = (work / ".venv/lib").glob("python3*/site-packages")
    parts = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
    for part in parts if is_whole else ():
        here = find_spec(part)
        assert here is not None
        assert here.origin is not None
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(here.origin).parent, there / part, ignore=ignored)
    (there / "py.py").write_text("import _pytest._py.path as path\n")
    (work / ".gitignore").write_text(".venv\n")
    (work / "stretto.yaml").write_text("workspace: {carry: [.venv]}\n")


def try_template(name: str, models: Path) -> str:
    """How it ended is printed. Out: what it claims that is not so; empty if all of it is."""
    with tempfile.TemporaryDirectory() as folder:
        work, home = Path(folder) / "work", Path(folder) / "home"
        work.mkdir()
        for path, text in CODE.items():
            (work / path).write_text(text)
        add_pytest(work)
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
            subprocess.run(["git", *identity, *words], cwd=work, check=True)

        def call(*words: str) -> Any:
            env = {
                "STRETTO_HOME": f"{home}",
                "STRETTO_TRUST": "1",
                "STRETTO_MODELS_DIR": f"{models}",
            }
            done = subprocess.run(
                [sys.executable, "-m", "stretto", *words, "--json"],
                cwd=work, env={**os.environ, **env}, capture_output=True, text=True,
            )  # fmt: skip
            return json.loads(done.stdout.splitlines()[-1])

        began = time.monotonic()
        call("new", "mine", "--template", name)
        file = work / "workflows/mine.yaml"
        file.write_text(file.read_text().replace("python3 -", ".venv/bin/python -"))
        report = call("run", "mine", "--model", "embedded")
        if report["status"] == "waiting":
            report = call("approve", report["run_id"], TEMPLATES[name])
        words = [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        is_green = not subprocess.run(words, cwd=work, capture_output=True).returncode
        is_written = (work / "REVIEW.md").exists()
        print_row(name, report, time.monotonic() - began)
    is_done = is_green if name == "fix-until-green" else is_written
    says_so = report["status"] == "complete"
    if report["status"] not in ("complete", "partial") or says_so != is_done:
        return f"{name}: {report['status']}, but tests pass: {is_green}, REVIEW.md: {is_written}"
    return ""


def print_row(name: str, report: Any, seconds: float) -> None:
    calls, status, steps = report["usage"]["model_calls"], report["status"], len(report["steps"])
    print(f"{name:<29} {status:<10} {steps:>5}  {calls:>5}  {seconds:>7.1f}", flush=True)


def run(name: str, models: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "stretto", "run", str(ROOT / "tests" / "recipes" / f"{name}.yaml"),
             "--input-json", "-", "--json", "--model", "embedded"],
            cwd=folder,
            env={**os.environ, "STRETTO_HOME": f"{folder}/home", "STRETTO_MODELS_DIR": str(models)},
            input=json.dumps(INPUTS[name]),
            capture_output=True,
            text=True,
        )  # fmt: skip
        seconds = time.monotonic() - began
    report = json.loads(done.stdout.splitlines()[-1])
    if report.get("type") != "report":
        print(f"{name:<29} {report}")
        return "failed"
    print_row(name, report, seconds)
    return str(report["status"])


if __name__ == "__main__":
    sys.exit(main())
