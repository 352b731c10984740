"""One server for all tests of a module, with a few small recipes and a scripted model."""

from collections.abc import Iterator

import pytest

from support.served import Served, served

RECIPES = {
    "greet": """\
name: greet
description: Say hello.
inputs:
  - {name: whom, required: true}
steps:
  - id: hello
    subagent: writer
    prompt: Say hello to {{inputs.whom}}.
""",
    "gated": """\
name: gated
steps:
  - id: look
    subagent: researcher
    prompt: Look around.
  - id: act
    subagent: writer
    gate: human
    depends_on: [look]
    prompt: Act on {{steps.look.output}}.
""",
    "bounded": """\
name: bounded
steps:
  - {id: inner, workflow: gated, timeout: 10m}
""",
    "third-level": """\
name: third-level
steps:
  - {id: outer, workflow: bounded}
""",
    "brief-gate": """\
name: brief-gate
steps:
  - id: ask
    subagent: writer
    gate: human
    timeout: 1s
    prompt: May I?
""",
}
SCRIPTS = {"script": "default: Hello!\n", "slow": "default: {reply: Zzz., delay: 60s}\n"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    for name, text in SCRIPTS.items():
        (folder / f"{name}.yaml").write_text(text)
    model = f"scripted:{folder / 'script.yaml'}"
    with served(folder, RECIPES, {"STRETTO_MODEL": model}) as found:
        yield found
