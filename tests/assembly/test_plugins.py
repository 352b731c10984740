"""What installed packages bring: a small distribution, put on sys.path."""

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from stretto import InvalidConfig, InvalidUsage, NotReady, Stretto
from stretto.adapters.models.provider_table import ALIASES, BY_NAME
from stretto.assembly.project import Project
from stretto.registry.entry_points import own_points
from stretto.vocabulary.names import KNOWN_TOOLS

MODULE = '''
import json
from stretto import tool

@tool(effect="idempotent", read_only=True)
def dictionary(word: str) -> str:
    """Look a word up."""
    return f"{word} is a word"

def plain(word: str) -> str:
    """A function that nobody decorated."""
    return word

def shout(prompt: str) -> str:
    """Say it loudly."""
    return prompt.upper()

def parrot(name, environ):
    from pydantic_ai.models.test import TestModel
    return TestModel(custom_output_text=f"{name} in {environ['CAGE']}")

async def ram(home):
    from stretto.adapters.stores.memory import MemoryJournal
    import time
    return MemoryJournal(time.time)

async def sieve(home):
    raise ValueError("it leaks")

from pathlib import Path
SINGER = Path(__file__).with_name("singer.md")
MUTE = Path(__file__).with_name("mute.md")
'''
POINTS = """[stretto.tools]
dictionary = birds:dictionary
plain = birds:plain
broken = birds:nothing
[stretto.agents]
shout = birds:shout
leaver = leavers:leave
[stretto.models]
parrot = birds:parrot
[stretto.stores]
ram = birds:ram
sieve = birds:sieve
"""
SHOUTING = "name: s\nsteps: [{id: a, subagent: shout, prompt: hello}]\n"
ASKING = (
    "name: a\nagents: {x: {prompt: Go., tools: [%s]}}\nsteps: [{id: a, subagent: x, prompt: go}]\n"
)


def install(folder: Path, package: str = "birds") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "birds.py").write_text(MODULE)
    (folder / "leavers.py").write_text("raise SystemExit(3)")
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(POINTS)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path
    sys.modules.pop("birds", None)


def open_in(folder: Path, **options: object) -> Stretto:
    (folder / "project").mkdir(exist_ok=True)
    home = folder / "home"
    return Stretto(folder / "project", home=home, **options)  # type: ignore[arg-type]


def test_an_agent_and_a_tool_of_a_package_are_known_and_used(installed: Path) -> None:
    async def main() -> None:
        async with open_in(installed) as w:
            assert await w.validate(ASKING % "dictionary") == ()
            assert await w.validate(ASKING % "plain") == ()
            (problem,) = await w.validate(ASKING % "dictionery")
            assert problem.hint == "did you mean 'dictionary'?"
            report = await (await w.start(SHOUTING)).report()
            assert report.output == "HELLO"

    asyncio.run(main())


def test_a_model_of_a_package_answers(installed: Path) -> None:
    async def main() -> None:
        environ = {"CAGE": "the kitchen"}
        recipe = "name: m\nsteps: [{id: a, subagent: writer, prompt: hello}]\n"
        async with open_in(installed, environ=environ, model="parrot:grey") as w:
            report = await (await w.start(recipe)).report()
            assert report.output == "parrot:grey in the kitchen"
        async with open_in(installed, environ=environ, model="budgie:blue") as w:
            with pytest.raises(NotReady):
                await w.start(recipe)

    asyncio.run(main())


def test_a_store_of_a_package_keeps_the_journal(installed: Path) -> None:
    async def main() -> None:
        async with open_in(installed, store="ram") as w:
            run = await w.start(SHOUTING)
            assert await run.wait() == "complete"
        assert not (installed / "home" / "runs.db").exists()
        async with open_in(installed, store="rma") as w:
            with pytest.raises(InvalidUsage, match="no store 'rma'") as caught:
                await w.start(SHOUTING)
            assert caught.value.hint == "did you mean 'ram'?"

    asyncio.run(main())


def test_a_broken_entry_point_says_which_package_to_mend(installed: Path) -> None:
    async def main() -> None:
        async with open_in(installed) as w:
            with pytest.raises(InvalidConfig, match="broken of stretto") as caught:
                await w.validate(ASKING % "broken")
            assert caught.value.hint.endswith("that has it: birds")
            with pytest.raises(InvalidConfig, match=r"leaver of stretto.*SystemExit: 3"):
                await w.validate(SHOUTING.replace("shout", "leaver"))
        async with open_in(installed, store="sieve") as w:
            with pytest.raises(InvalidConfig, match="store 'sieve' cannot be opened: ValueError"):
                await w.start(SHOUTING)

    asyncio.run(main())


def test_a_package_in_the_projects_own_folder_is_used_only_where_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "project" / "vendor")
    monkeypatch.syspath_prepend(str(tmp_path / "project" / "vendor"))

    async def main() -> None:
        async with open_in(tmp_path) as w:
            (problem,) = await w.validate(SHOUTING)
            assert "shout" in problem.message
        async with open_in(tmp_path, trust=True) as w:
            assert await w.validate(SHOUTING) == ()

    asyncio.run(main())
    sys.modules.pop("birds", None)


def test_all_that_stretto_itself_has_is_found_by_entry_points() -> None:
    file = Path(__file__).parents[2] / "pyproject.toml"
    declared = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["entry-points"]
    assert set(declared["stretto.tools"]) == KNOWN_TOOLS
    assert len(declared["stretto.agents"]) == 21
    assert set(declared["stretto.stores"]) == {"sqlite", "memory"}
    assert set(declared["stretto.models"]) == {*BY_NAME, *ALIASES}
    for group, entries in declared.items():
        installed = entry_points(group=group)
        assert {each.name: each.value for each in installed} == entries
        assert {name: each.value for name, each in own_points(group).items()} == entries
        for point in own_points(group).values():
            assert point.load() == installed[point.name].load()


def test_a_package_cannot_take_the_name_of_a_built_in_tool_or_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site")
    install(tmp_path / "second", "fish")
    points = "[stretto.tools]\nRead = nowhere:read\n[stretto.agents]\nwriter = nowhere:write\n"
    for folder, package in (("site", "birds"), ("second", "fish")):
        (tmp_path / folder / f"{package}-1.0.dist-info" / "entry_points.txt").write_text(
            points + "shout = birds:shout\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path / "second"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    script = tmp_path / "script.yaml"
    script.write_text("default: an answer")
    recipe = "name: m\nsteps: [{id: a, subagent: writer, prompt: hello}]\n"

    async def main() -> None:
        async with open_in(tmp_path, model=f"scripted:{script}") as w:
            assert await w.validate(ASKING % "Read") == ()
            run = await w.start(recipe)
            unused = [line for line in run.notices if "is not used" in line]
            assert unused == [
                f"the {what} of the package {package} is not used: "
                "Stretto itself has one of this name"
                for package in ("birds", "fish")
                for what in ("tool 'Read'", "agent 'writer'")
            ]
            run = await w.start(SHOUTING)
            assert run.notices == (
                "the agent 'shout' of the package fish is not used: birds has one of this name",
            )
            await run.wait()

    asyncio.run(main())
    sys.modules.pop("birds", None)


def test_an_agent_file_of_a_package_is_an_agent(installed: Path) -> None:
    file = installed / "site" / "birds-1.0.dist-info" / "entry_points.txt"
    file.write_text("[stretto.agents]\nsinger = birds:SINGER\n")
    (installed / "site" / "singer.md").write_text("---\ntools: [Read]\n---\nSing.\n")
    (installed / "site" / "mute.md").write_text("---\ntools: [Raed]\n---\nSing.\n")

    async def main() -> None:
        async with open_in(installed) as w:
            assert await w.validate(SHOUTING.replace("shout", "singer")) == ()
            listed = {each.name: each for each in Project(installed / "project").agents()}
            assert (listed["singer"].layer, listed["writer"].layer) == ("package", "bundled")
            (problem,) = await w.validate(SHOUTING.replace("shout", "singger"))
            assert problem.hint == "did you mean 'singer'?"
        file.write_text("[stretto.agents]\nmute = birds:MUTE\n")
        async with open_in(installed) as w:
            with pytest.raises(InvalidConfig, match="agent 'mute', which an installed package"):
                await w.validate(SHOUTING.replace("shout", "mute"))

    asyncio.run(main())


def test_metadata_that_is_older_than_the_code_is_told_from_an_unknown_tool(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(ASKING % "Read")
    (tmp_path / "agent.yaml").write_text(SHOUTING.replace("shout", "writer"))
    source = tmp_path / "other"
    (source / "stretto-0.1.0.dist-info").mkdir(parents=True)
    metadata = source / "stretto-0.1.0.dist-info" / "entry_points.txt"
    metadata.write_text("[console_scripts]\nstretto = stretto.cli.main:main\n")
    # The folder of the package comes first, and has no metadata where it is an editable install.
    for recipe in ("good.yaml", "agent.yaml"):
        done = subprocess.run(
            [sys.executable, "-m", "stretto", "validate", recipe],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert "the installed metadata of Stretto is older than the code" in done.stderr
        assert "-m pip install --editable" in done.stderr
        assert "there is no tool" not in done.stderr


def test_what_is_installed_is_not_looked_at_for_names_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(ASKING % "Read")
    code = (
        "import sys, json\nfrom stretto.cli.main import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(json.dumps('importlib.metadata' in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "validate", "good.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stderr.splitlines()[-1]) is False
