"""Each contract is tried on every adapter of its port."""

from pathlib import Path

import pytest

from support.stores import KINDS, Store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(request.param, tmp_path)
