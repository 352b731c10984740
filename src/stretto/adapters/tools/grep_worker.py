"""Search files for a pattern. In: a request and files, on stdin. Out: what was found, on stdout.

A program of its own, for a pattern can keep `re` busy for years and only a process can be stopped.
So it imports nothing of ours. stdin: a line of JSON (the request), then for each file a line of
JSON (path, size) and its bytes. stdout: lines of text, then a line of JSON that says how it ended.
"""

import json
import re
import resource
import sys
from collections.abc import Iterator
from typing import Any

_MOST_LINE = 500
_MEMORY_BYTES = 1 << 30


def found_in(
    path: str, text: str, pattern: "re.Pattern[str]", request: dict[str, Any]
) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    hits = _multiline_hits(text, pattern) if request["multiline"] else _hits(lines, pattern)
    match request["mode"]:
        case "files_with_matches":
            return [path] if any(True for _ in hits) else []
        case "count":
            count = sum(1 for _ in hits)
            return [f"{path}:{count}"] if count else []
        case _:
            return _with_context(path, lines, sorted(set(hits)), request["context"])


def _hits(lines: list[str], pattern: "re.Pattern[str]") -> Iterator[int]:
    return (number for number, line in enumerate(lines) if pattern.search(line.rstrip("\r")))


def _multiline_hits(text: str, pattern: "re.Pattern[str]") -> Iterator[int]:
    at, line = 0, 0
    for match in pattern.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield from range(line, line + match[0].count("\n") + 1)


def _with_context(path: str, lines: list[str], hits: list[int], context: int) -> list[str]:
    hit, told, last = set(hits), list[str](), -1
    for number in hits:
        for near in range(max(number - context, last + 1), min(number + context + 1, len(lines))):
            if context and told and near > last + 1:
                told.append("--")
            mark = ":" if near in hit else "-"
            told.append(f"{path}{mark}{near + 1}{mark}{_cut(lines[near])}")
            last = near
    return told


def _cut(line: str) -> str:
    line = line.rstrip("\r")
    return line if len(line) <= _MOST_LINE else f"{line[:_MOST_LINE]} […]"


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    feed, out = sys.stdin.buffer, sys.stdout.buffer
    request = json.loads(feed.readline())
    flags = re.IGNORECASE if request["ignore_case"] else 0
    flags |= re.MULTILINE | re.DOTALL if request["multiline"] else 0
    try:
        pattern = re.compile(request["pattern"], flags)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        out.write(json.dumps({"fault": str(error) or type(error).__name__}).encode() + b"\n")
        return
    told, is_cut = 0, False
    while not is_cut and (header := feed.readline()):
        path, size = json.loads(header)
        text = feed.read(size).decode("utf-8", "replace")
        lines = found_in(path, text, pattern, request)
        is_cut = told + len(lines) > request["limit"]
        for line in lines[: request["limit"] - told]:
            out.write(line.encode("utf-8", "replace") + b"\n")
        out.flush()
        told += len(lines)
    out.write(json.dumps({"is_cut": is_cut}).encode() + b"\n")


if __name__ == "__main__":
    main()
