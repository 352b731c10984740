"""Whatever a page, a file or a server holds, the event loop goes on, and nothing grows past its bound."""

import asyncio
import json
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from adapters.tools.test_mcp_servers import calling, plain, script, serving as serving_mcp
from stretto.adapters.tools.mcp_servers import McpServers
from stretto.adapters.tools.notebook import notebook_edit
from stretto.adapters.tools.read import read
from stretto.adapters.tools.web_client import WebClient
from stretto.adapters.tools.web_fetch import codec_of, web_fetch
from stretto.adapters.tools.write import edit, multi_edit
from stretto.ports.tool import ToolOutcome
from stretto.vocabulary.json_value import Json
from support.toolbench import longest_pause, opened, reach_of
from support.web_server import page, serving

# Far more than a busy machine needs between two beats; what is tested here blocks for longer.
PAUSE_SECONDS = 10.0


@pytest.mark.parametrize(
    "charset",
    ["punycode", "idna", "unicode_escape", "raw-unicode-escape", "utf-7", "zip", "bz2", "hex",
     "base64", "uu", "quopri", "rot13", "undefined", "mbcs", "hz", "palmos", "utf-32"],
)  # fmt: skip
def test_a_page_chooses_among_the_charsets_of_the_web_alone(charset: str) -> None:
    assert codec_of(charset) == "utf-8"


@pytest.mark.parametrize("head", ["text/plain; charset=punycode", "text/html"])
def test_a_page_in_a_slow_charset_does_not_hold_up_the_loop(head: str) -> None:
    async def run() -> tuple[ToolOutcome, float]:
        # Letters before the last hyphen, and after it as many insertions as there is room for.
        body = b'<meta charset="punycode">' + b"a" * 200_000 + b"-" + b"b" * 200_000
        async with serving(lambda asked: page(body, head)) as site:
            tool = web_fetch(WebClient(allow_private=frozenset({site.place()})))
            return await longest_pause(tool.call({"url": f"http://{site.place()}/"}, "k"))

    told, pause = asyncio.run(run())
    assert told.verdict == "ok"
    assert pause < PAUSE_SECONDS


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("windows-1251", "Привет".encode("cp1251"), "Привет"),
        ("Shift_JIS", "日本語".encode("shift_jis"), "日本語"),
        ("GB2312", "你好".encode("gb2312"), "你好"),
        ("euc-kr", "한국어".encode("euc-kr"), "한국어"),
        ("iso-8859-1", b"\x93quoted\x94", "“quoted”"),
        ("utf-16", "hé".encode("utf-16"), "hé"),
        ("utf-8", "\ufeffhé".encode(), "hé"),
        ("latin1", "\ufeffhé".encode(), "hé"),
    ],
)
def test_pages_in_the_charsets_of_the_web_are_read(charset: str, body: bytes, text: str) -> None:
    async def run() -> ToolOutcome:
        async with serving(lambda asked: page(body, f"text/plain; charset={charset}")) as site:
            tool = web_fetch(WebClient(allow_private=frozenset({site.place()})))
            return await tool.call({"url": f"http://{site.place()}/"}, "k")

    assert asyncio.run(run()).text.endswith(f"\n\n{text}")


@pytest.mark.parametrize("rows", [1, 3])
def test_an_edit_that_would_make_a_huge_file_does_not_make_it_first(
    tmp_path: Path, rows: int
) -> None:
    (tmp_path / "a.txt").write_text("a" * 1_000_000)
    change: dict[str, Json] = {"old_string": "a", "new_string": "b" * 100, "replace_all": True}
    make, arguments = edit, change
    if rows > 1:
        # Each of the first is allowed; the last one is too much.
        doubling: list[Json] = [
            {"old_string": old, "new_string": new, "replace_all": True}
            for old, new in (("a", "bb"), ("b", "cc"), ("c", "d" * 100))
        ]
        make, arguments = multi_edit, {"edits": doubling}
    tracemalloc.start()
    with opened(make, reach_of(tmp_path)) as tool:
        told = asyncio.run(tool.call({"file_path": "a.txt", **arguments}, "k"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert told.verdict == "error"
    assert "nothing was changed" in told.text
    assert "more than 10,000,000" in told.text
    assert peak < 40_000_000
    assert (tmp_path / "a.txt").read_text() == "a" * 1_000_000


def _endless_line(file: Path) -> None:
    """A line of 300 GB that takes no room on the disk."""
    file.write_bytes(b"a" * 10_000)
    os.truncate(file, 300_000_000_000)


@pytest.mark.parametrize("offset", [1, 2])
def test_an_endless_line_is_given_up_and_the_loop_goes_on(tmp_path: Path, offset: int) -> None:
    _endless_line(tmp_path / "a.txt")

    async def run() -> tuple[ToolOutcome, float]:
        with opened(read, reach_of(tmp_path)) as tool:
            return await longest_pause(tool.call({"file_path": "a.txt", "offset": offset}, "k"))

    told, pause = asyncio.run(run())
    assert "more than 200,000,000 bytes" in told.text
    assert told.text.startswith("     1\taaaa") == (offset == 1)
    assert pause < PAUSE_SECONDS


def test_lines_after_a_long_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"b" * 3_000_000 + b"\nlast")
    with opened(read, reach_of(tmp_path)) as tool:
        told = asyncio.run(tool.call({"file_path": "a.txt"}, "k"))
    assert told.text.endswith("[the rest of this line is left out]\n     2\tlast")


def test_a_file_tool_that_is_cancelled_ends_before_its_files_are_closed(tmp_path: Path) -> None:
    _endless_line(tmp_path / "a.txt")

    async def run() -> None:
        with opened(read, reach_of(tmp_path)) as tool:
            reading = asyncio.create_task(tool.call({"file_path": "a.txt", "offset": 5}, "k"))
            await asyncio.sleep(0.01)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading

    asyncio.run(asyncio.wait_for(run(), 30))


def test_what_is_near_is_looked_for_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("near by\n" + "x\n" * 4_000_000)

    async def run() -> tuple[ToolOutcome, float]:
        with opened(edit, reach_of(tmp_path)) as tool:
            change: dict[str, Json] = {"old_string": "near it", "new_string": "b"}
            return await longest_pause(tool.call({"file_path": "a.txt", **change}, "k"))

    told, pause = asyncio.run(run())
    assert "The nearest is at line 1" in told.text
    assert pause < PAUSE_SECONDS


def test_a_notebook_of_many_values_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "id": str(n), "source": ""} for n in range(100_000)]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))

    async def run() -> tuple[ToolOutcome, float]:
        with opened(notebook_edit, reach_of(tmp_path)) as tool:
            given: dict[str, Json] = {"notebook_path": "a.ipynb", "cell_id": "7"}
            return await longest_pause(tool.call({**given, "new_source": "x"}, "k"))

    told, pause = asyncio.run(run())
    assert told.text == "Replaced cell 7 of a.ipynb; it has 100000 cells now."
    assert pause < PAUSE_SECONDS


def test_a_pattern_that_an_mcp_server_chose_is_never_matched() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    tool = {"name": "x", "inputSchema": {"type": "object"}, "outputSchema": schema,
            "annotations": {"readOnlyHint": True}}  # fmt: skip
    result = {"content": [], "structuredContent": {"a": "a" * 27 + "!"}}

    async def work(servers: McpServers) -> tuple[ToolOutcome, float]:
        return await longest_pause(calling("mcp__plain__x")(servers))

    told, pause = serving_mcp(work, plain(tools={"tools": [tool]}, result=result))  # type: ignore[dict-item]
    assert told == ToolOutcome(json.dumps(result["structuredContent"]))
    assert pause < PAUSE_SECONDS


def test_an_mcp_server_that_sends_millions_of_values_is_refused_before_they_are_made() -> None:
    code = f"""
import sys
sys.argv = ["x"]
sys.path.insert(0, {str(Path(__file__).parents[2] / "support")!r})
import plain_mcp
real = plain_mcp.answer
def answer(asked, told):
    if asked["method"] != "tools/call":
        return real(asked, told)
    lists = ",".join(["[]"] * 2_500_000)
    said = '{{"jsonrpc":"2.0","id":%d,"result":{{"content":[],"structuredContent":{{"a":[%s]}}}}}}'
    print(said % (asked["id"], lists), flush=True)
    return None
plain_mcp.answer = answer
plain_mcp.main()
"""

    async def work(servers: McpServers) -> tuple[ToolOutcome, float]:
        await servers.offer(["mcp__plain__x"], False)  # starting it is another matter
        return await longest_pause(calling("mcp__plain__x")(servers))

    told, pause = serving_mcp(work, script(code))
    assert "it sent a message of more than 50,000 parts" in told.text, sys.version
    assert pause < PAUSE_SECONDS
