"""The tools of subagents: files, Bash, the web, MCP servers, Python functions."""
