"""Agent programs of others as subagents: `cli:claude`, `cli:codex`, …, any ACP agent, any command.

`runner.CliRunner` is the way in. One module for each CLI says how it is started and what its lines
mean; everything else is shared.
"""
