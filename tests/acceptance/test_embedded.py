"""Recipes on the embedded model: a real model, no key, no network. All four: `make soak`."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.background_runs import lines, statuses
from support.cli import stretto, write
from support.recipes import RECIPES

MODELS = Path(__file__).parents[2] / ".venv" / "models"
pytestmark = pytest.mark.skipif(
    not list(MODELS.glob("SmolLM2*.gguf")),
    reason="the embedded model's weights are not in .venv/models (make test fetches them)",
)


def on_embedded(folder: Path, recipe: Path | str, inputs: dict[str, Any]) -> Any:
    words = ("run", str(recipe), "--json", "--input-json", "-", "--model", "embedded")
    environ = {"STRETTO_MODELS_DIR": str(MODELS)}
    return stretto(folder, *words, stdin=json.dumps(inputs), env=environ)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("research-and-brief", {"topic": "looms"}),
        ("multi-criteria-lead-scoring", {"lead_data": {"name": "Ann"}, "icp_criteria": {}}),
    ],
)
def test_printed_recipes_run_on_it(tmp_path: Path, name: str, inputs: dict[str, Any]) -> None:
    said = on_embedded(tmp_path, RECIPES / f"{name}.yaml", inputs)
    assert said.code == 0, said
    report = lines(said)[-1]
    assert set(statuses(report).values()) == {"succeeded"}
    assert report["usage"]["output_tokens"] > 0


def test_conditions_maps_and_rules_work_on_it(tmp_path: Path) -> None:
    recipe = """
name: held
agents:
  lister: {prompt: "List two colours."}
  scorer:
    prompt: "Score this colour."
    validation: {rules: ["score must be between 0 and 100", "must include passed boolean"]}
steps:
  - id: list
    agent: lister
    prompt: Go.
    output:
      format: json
      schema: {type: array, items: {type: string}, minItems: 2, maxItems: 2}
  - {id: each, map: {over: "{{steps.list.output}}", agent: scorer, input: "{{item}}"}}
  - {id: one, agent: scorer, prompt: "Red."}
  - id: choose
    depends_on: [each]
    condition: {eval: "{{steps.one.output.score}} >= 0", true: yes_step}
  - {id: yes_step, agent: lister, prompt: "Name a colour in one word."}
"""
    write(tmp_path, "held.yaml", recipe)
    said = on_embedded(tmp_path, "held.yaml", {})
    assert said.code == 0, said
    report = lines(said)[-1]
    assert statuses(report)["yes_step"] == "succeeded"
    assert len(report["steps"]["each"]["output"]) == 2
