"""Stretto runs LLM subagents as workflows."""

__version__ = "0.1.0"
