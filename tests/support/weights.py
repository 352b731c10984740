"""The real weights, for tests that run them. Out: a LocalModel, or a skip that says why."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from stretto.adapters.models.local.catalog import SMOLLM2, Loadable, Shelf
from stretto.adapters.models.local.model import LocalModel

FOLDER = Path(os.environ.get("STRETTO_TEST_MODELS") or Path(__file__).parents[2] / ".venv/models")


@cache
def smollm2() -> Loadable:
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    shelf = Shelf(FOLDER)
    if shelf.state(SMOLLM2) == "absent":
        pytest.skip(
            f"no weights in {FOLDER}: STRETTO_MODELS_DIR={FOLDER} stretto models pull smollm2"
        )
    return shelf.take(SMOLLM2)


def model() -> LocalModel:
    return LocalModel(smollm2())
