"""The programs in benchmarks/ as modules, so that tests look at what they measure as values."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load_benchmark(name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # some import their neighbours
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module
