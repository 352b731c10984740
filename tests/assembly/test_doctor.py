"""What `stretto doctor` finds on this machine, beside what it is asked from outside."""

from pathlib import Path

import pytest

from stretto.adapters.models.local.catalog import SMOLLM2
from stretto.assembly import doctor
from stretto.assembly.project import Project
from support.assembled import settings_of


def test_a_package_that_is_not_here_is_optional_and_not_broken() -> None:
    found = doctor._package("no-such-package", "MCP servers", "mcp")
    assert (found.status, found.says) == ("optional", "not installed: no MCP servers")
    assert found.fix == "pip install 'stretto[mcp]'"
    assert doctor._package("click", "the terminal", "cli").status == "ok"


def test_weights_that_the_demo_fetched_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor.sys, "prefix", str(tmp_path / "venv"))
    project = Project(environ={}, settings=settings_of(tmp_path))
    absent = doctor._weights(SMOLLM2, project)
    assert (absent.status, absent.fix) == ("optional", "stretto models pull smollm2")
    fetched = tmp_path / "venv/models" / SMOLLM2.file
    fetched.parent.mkdir(parents=True)
    fetched.write_bytes(b"weights")
    found = doctor._weights(SMOLLM2, project)
    assert (found.status, found.says) == ("optional", f"{fetched} is there, fetched by make demo")
    assert found.fix == f"export STRETTO_MODELS_DIR={fetched.parent}"
