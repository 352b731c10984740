"""Saved recipes: found by name in layered folders, read afresh whenever they change."""
