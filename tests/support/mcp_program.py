"""An MCP server for the tests, as a program: `stdio`, or `http PORT`."""

import os
import sys
import time

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("bench")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def note(text: str) -> str:
    """Says nothing about itself."""
    return f"noted {text}"


@server.tool(annotations=ToolAnnotations(read_only_hint=False, idempotent_hint=True))
def put(text: str) -> str:
    return f"put {text}"


@server.tool(name="with.dot/slash", annotations=ToolAnnotations(read_only_hint=True))
def dotted() -> str:
    return "dotted"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def fail() -> str:
    raise ToolError("the tool's own words")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def flood(size: int) -> str:
    return "x" * size


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def shout(size: int) -> str:
    """Fills the errors."""
    sys.stderr.write("e" * size)
    sys.stderr.flush()
    return "shouted"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def pid() -> str:
    return str(os.getpid())


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
