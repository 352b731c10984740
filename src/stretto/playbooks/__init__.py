"""Playbooks: methods that subagents are given. Found, chosen, captured and curated; they never run."""
