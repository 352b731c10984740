"""Public fakes for tests of recipes: a scripted model, a virtual clock, a recipe test runner."""

from stretto.adapters.models.scripted import Reply, Script, ScriptedRunner, read_script
from stretto.testing.clock import VirtualClock
from stretto.testing.recipes import run_recipe

__all__ = ["Reply", "Script", "ScriptedRunner", "VirtualClock", "read_script", "run_recipe"]
