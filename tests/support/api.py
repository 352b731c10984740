"""Recipes that the tests of the public API share. Nothing below `stretto` is imported."""

from collections.abc import Callable

import stretto

BRIEF = """
name: brief
inputs:
  topic: {type: string, required: true}
steps:
  - {id: gather, subagent: researcher, prompt: "Find {{inputs.topic}}."}
  - {id: brief, subagent: writer, depends_on: [gather], prompt: "Write about {{steps.gather.output}}."}
"""
GATED = """
name: gated
steps:
  - {id: look, subagent: researcher, prompt: Look.}
  - {id: send, subagent: writer, depends_on: [look], prompt: Send it., gate: human}
"""
Open = Callable[..., stretto.Stretto]
Scripted = Callable[[str], str]
