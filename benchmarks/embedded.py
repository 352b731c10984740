"""The printed recipes on the embedded model. In: its weights. Out: how each ended, and how long.

    python benchmarks/embedded.py [--models FOLDER]

SmolLM2-135M says little of sense; what is shown is that every kind of step works on it: free text,
`format: json`, rules, parallel branches, a loop with its validator. No key, no network.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
    models = options.parse_args().models
    print("recipe                        status     steps  calls  seconds")
    statuses = [run(name, models) for name in INPUTS]
    print(f"\n{statuses.count('complete')} of {len(statuses)} complete")
    return 0 if set(statuses) == {"complete"} else 1


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
    calls = report["usage"]["model_calls"]
    status, steps = report["status"], len(report["steps"])
    print(f"{name:<29} {status:<10} {steps:>5}  {calls:>5}  {seconds:>7.1f}", flush=True)
    return str(status)


if __name__ == "__main__":
    sys.exit(main())
