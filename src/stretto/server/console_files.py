"""The console's built files, and its page for every path that is not the API's.

Files of `assets/` have a digest in their name, so a browser may keep them for good. The page itself is
asked for each time. Without a console there is one plain page that says where the API is.
"""

import mimetypes
import os
import re
from pathlib import Path

from fastapi import Request
from starlette.responses import FileResponse, HTMLResponse, Response

from stretto.problems.errors import NotFound
from stretto.server.bodies import new_router
from stretto.server.service import VIEWER

router = new_router("console")
FOLDER = Path(__file__).parent / "console"
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_EACH_TIME = {"Cache-Control": "no-cache"}
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_API = ("api/", "mcp", "hooks/", "healthz", "metrics", "login")
_NO_CONSOLE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stretto</title></head><body>
<h1>Stretto</h1><p>The console is not part of this installation. The API is here:
<a href="/api/workflows">/api/workflows</a>, <a href="/api/runs">/api/runs</a>,
<a href="/api/openapi.json">/api/openapi.json</a>.</p></body></html>
"""


@router.get("/{path:path}", dependencies=[VIEWER], include_in_schema=False)
async def show_console(path: str, request: Request) -> Response:
    if path.startswith(_API) or path == "api":
        raise NotFound(f"there is nothing at /{path[:100]}")
    file = find_file(path)
    if file is not None:
        kept = _FOREVER if path.startswith("assets/") else _EACH_TIME
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return FileResponse(file, headers=kept, media_type=kind)
    if path.startswith("assets/"):
        raise NotFound(f"there is nothing at /{path[:100]}")
    index = find_file("index.html")
    if index is None:
        return HTMLResponse(_NO_CONSOLE, headers=_EACH_TIME)
    return FileResponse(index, headers=_EACH_TIME, media_type="text/html")


def find_file(path: str) -> Path | None:
    """A plain file below the console's folder; names that lead anywhere else are no files."""
    names = path.split("/")
    if not path or not all(_NAME.fullmatch(name) for name in names):
        return None
    found = FOLDER.joinpath(*names)
    return found if os.path.isfile(found) and not os.path.islink(found) else None
