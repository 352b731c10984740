"""Weft weaves LLM subagents into workflows."""

__version__ = "0.1.0"
