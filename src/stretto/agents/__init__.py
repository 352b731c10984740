"""Agents: their definitions on disk and the catalog of those a recipe may name."""
