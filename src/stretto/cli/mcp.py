"""`stretto mcp`: an MCP server on stdin and stdout, for other agents."""

import asyncio
import logging
import os
import sys
from typing import TYPE_CHECKING

import click

from stretto.cli.foreground import OpenStretto, hear_stop_signals, wait_until_stopped
from stretto.cli.options import model_option, permission_option
from stretto.problems.errors import NotReady

if TYPE_CHECKING:
    from stretto.server.mcp_calls import McpOptions


@click.command("mcp")
@model_option
@permission_option
@click.option(
    "--no-approvals",
    is_flag=True,
    help="Offer no tools that approve or reject: only you do, with stretto approve.",
)
def command(model: str | None, permission: str | None, no_approvals: bool) -> int:
    """Serve MCP on stdin and stdout, so that other agents can use the workflows of this project.

    stdout carries the protocol and nothing else. When the client closes stdin, runs that are under
    way are stopped; stretto resume goes on with them.
    """
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise NotReady(
            "the package mcp is not installed", hint="pip install 'stretto[mcp]'"
        ) from None
    from stretto.server.mcp_calls import McpOptions

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    return asyncio.run(_serve(McpOptions(permission, model, has_approvals=not no_approvals)))


async def _serve(options: "McpOptions") -> int:
    from stretto.server.mcp_server import McpEndpoint, serve_stdio

    stopped = hear_stop_signals()
    async with OpenStretto() as stretto:
        endpoint = McpEndpoint(stretto, options)
        await wait_until_stopped(asyncio.create_task(serve_stdio(endpoint)), stopped)
    if stopped.is_set():
        # A thread may be writing to a client that does not read, and Python would wait for it.
        sys.stderr.flush()
        os._exit(130)
    return 0
