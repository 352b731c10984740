"""What every runner that can say who answers must do: an answer is reused only by what it says."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stretto.adapters.clock import SystemClock
from stretto.adapters.models.named import NamedModels
from stretto.adapters.models.scripted import Reply, Script, ScriptedRunner
from stretto.adapters.tools.command_runner import CommandRunner
from stretto.adapters.tools.toolbox import StandardToolbox, ToolSettings
from stretto.agents.functions import FunctionAgents, FunctionRunner
from stretto.agents.redacted import RedactedRunner
from stretto.agents.subagent import Subagents
from stretto.assembly.captures import _Recorded
from stretto.assembly.identity import MachineIdentities
from stretto.assembly.models import WithCommands
from stretto.assembly.playbook_choice import CountedRunner
from stretto.assembly.project import Project
from stretto.config.settings import load_settings
from stretto.ports.runner import Identified
from stretto.text.redaction import Redactor
from stretto.vocabulary.models import ModelSelection

PORTS = (Identified,)


@dataclass(frozen=True)
class Kind:
    """`open` makes the runner that answers as a word says, which another process makes again."""

    open: Callable[[str, Path], Identified]
    model: str  # a name that its plans write
    is_always_one: bool = False  # it answers alike, whatever stands behind it


def scripted(answer: str, folder: Path) -> ScriptedRunner:
    return ScriptedRunner(Script((Reply(answer),)), SystemClock())


def subagents(answer: str, folder: Path) -> Subagents:
    environ = {"OPENAI_BASE_URL": f"http://127.0.0.1:1/{answer}", "STRETTO_HOME": str(folder)}
    identities = MachineIdentities(load_settings(folder, environ), environ)
    toolbox = StandardToolbox(ToolSettings(project=folder), environ)
    models = NamedModels(environ)
    return Subagents(ModelSelection("openai:m"), models, toolbox, identities=identities)


def function(answer: str, folder: Path) -> FunctionRunner:
    def first() -> str:
        return "first"

    def second() -> str:
        return "second"

    agents = FunctionAgents({"score": first if answer == "first" else second})
    return FunctionRunner(agents, scripted("", folder))


def command(answer: str, folder: Path) -> CommandRunner:
    toolbox = StandardToolbox(ToolSettings(project=folder), {})
    return CommandRunner(toolbox, scripted("", folder), Redactor({}), lambda: f"shell {answer}")


def with_commands(answer: str, folder: Path) -> WithCommands:
    return WithCommands(Project(folder, {"STRETTO_HOME": str(folder)}), scripted(answer, folder))


def counted(answer: str, folder: Path) -> CountedRunner:
    settings = load_settings(folder, {"STRETTO_HOME": str(folder)})
    return CountedRunner(scripted(answer, folder), settings)


KINDS = {
    "scripted": Kind(scripted, "openai:m"),
    "subagents": Kind(subagents, "openai:m"),
    "function": Kind(function, "python:score"),
    "command": Kind(command, "command:"),
    "with commands": Kind(with_commands, "openai:m"),
    "counting playbooks": Kind(counted, "openai:m"),
    "redacted": Kind(
        lambda answer, folder: RedactedRunner(scripted(answer, folder), Redactor({})), "openai:m"
    ),
    # What it replays is the same journal in every process, and nothing of it is reused.
    "recorded": Kind(lambda answer, folder: _Recorded({}), "openai:m", is_always_one=True),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def test_it_names_whoever_answers_each_model_that_is_asked_for(kind: Kind, tmp_path: Path) -> None:
    runner = kind.open("first", tmp_path)
    assert isinstance(runner, Identified)
    setup = runner.identify(["", kind.model], ["Read", "Bash(ls *)"])
    assert setup.models.keys() == {"", kind.model}
    assert all(setup.models.values())
    assert setup.tools.keys() <= {"Read", "Bash"}


def test_nothing_is_said_of_what_was_not_asked_for(kind: Kind, tmp_path: Path) -> None:
    setup = kind.open("first", tmp_path).identify([], [])
    assert not setup.models
    assert not setup.tools


def test_the_same_setup_is_the_same_in_another_process(kind: Kind, tmp_path: Path) -> None:
    asked = ["", kind.model], ["Bash"]
    first, again = (kind.open("first", tmp_path).identify(*asked) for _ in range(2))
    assert first == again


def test_who_answers_otherwise_is_somebody_else(kind: Kind, tmp_path: Path) -> None:
    asked = [kind.model], ["Bash"]
    first, second = (kind.open(word, tmp_path).identify(*asked) for word in ("first", "second"))
    assert (first == second) is kind.is_always_one
