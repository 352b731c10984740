"""The wheel that users install holds what a run needs, and says of itself only what is true."""

import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("stretto-*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_holds_the_package_its_types_and_its_bundled_files(wheel: zipfile.ZipFile):
    held = set(wheel.namelist())
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source))
        for path in (source / "stretto").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - held == set()
    assert "stretto/py.typed" in held
    assert any(name.startswith("stretto/bundled/agents/") for name in held)
    assert not [name for name in held if name.startswith(("tests", "docs", "benchmarks"))]


def test_the_wheel_holds_the_page_of_every_code(wheel: zipfile.ZipFile):
    pages = {path.name for path in (ROOT / "docs" / "problems").glob("*.md")}
    held = {Path(name).name for name in wheel.namelist() if "stretto/problems/pages/" in name}
    assert held == pages


def test_the_wheel_installs_one_command(wheel: zipfile.ZipFile):
    (entries,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    written = wheel.read(entries).decode()
    scripts = written.partition("[console_scripts]")[2].partition("[")[0]
    assert scripts.split() == ["stretto", "=", "stretto.cli.main:main"]


def test_the_metadata_agrees_with_the_project(wheel: zipfile.ZipFile):
    (place,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    said = Parser().parsestr(wheel.read(place).decode())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert said["Name"] == "stretto"
    assert said["Requires-Python"] == ">=3.11"
    assert said["License-Expression"] == "Apache-2.0"
    assert said.get_payload() == (ROOT / "README.md").read_text()
    # A classifier names no Python that `requires-python` leaves out.
    versions = [c.rpartition(" ")[2] for c in project["classifiers"] if ":: 3." in c]
    assert versions == ["3.11", "3.12", "3.13"]
