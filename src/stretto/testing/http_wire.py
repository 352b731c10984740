"""Just enough HTTP/1.1 for a loopback server. In: a stream of bytes. Out: requests; back: answers.

Bodies come by Content-Length or in chunks; connections are kept alive. Everything has a limit.
"""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 32 * 1024 * 1024


class HttpRequest(NamedTuple):
    method: str
    path: str  # without the query
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    keeps_alive: bool


class BadRequest(Exception):
    """What came is not HTTP/1.1, or too long. The connection is of no more use."""

    def __init__(self, status: int, says: str) -> None:
        super().__init__(says)
        self.status = status


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> HttpRequest | None:
    """The next request, or None when the client has closed the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadRequest(400, "the head of the request is cut") from None
        return None
    except asyncio.LimitOverrunError:
        raise BadRequest(431, "the head of the request is too long") from None
    method, target, version, headers = _parse_head(head)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        body = await _body(reader, headers)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise BadRequest(400, "the body of the request is cut") from None
    asked = headers.get("connection", "").lower()
    keeps_alive = asked != "close" if version == "HTTP/1.1" else asked == "keep-alive"
    return HttpRequest(method, target.partition("?")[0], headers, body, keeps_alive)


def _parse_head(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").lstrip("\r\n").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(400, "the first line is not that of an HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, text = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(400, "a header is malformed")
        name, text = name.lower(), text.strip()
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return words[0], words[1], words[2], headers


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    encoding = headers.get("transfer-encoding", "").lower()
    if encoding == "chunked":
        return await _chunked_body(reader)
    if encoding:
        raise BadRequest(501, f"the transfer encoding {encoding!r} is not known")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise BadRequest(400, "Content-Length is not a number")
    # Without the zeros before it, a number of more than 20 digits is too long in any case.
    size = int(length.lstrip("0")[:20] or "0")
    _check_length(size)
    return await reader.readexactly(size)


async def _chunked_body(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        line = (await reader.readuntil(b"\r\n")).split(b";")[0].strip()
        try:
            length = int(line, 16)
        except ValueError:
            raise BadRequest(400, "the length of a chunk is not a number") from None
        if length < 0:
            raise BadRequest(400, "the length of a chunk is negative")
        _check_length(len(body) + length)
        if length == 0:
            break
        body += (await reader.readexactly(length + 2))[:-2]
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers say nothing to us
    return bytes(body)


def _check_length(length: int) -> None:
    if length > MOST_BODY_BYTES:
        raise BadRequest(413, f"the body has more than {MOST_BODY_BYTES} bytes")


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    return f"HTTP/1.1 {status} {_phrase(status)}\r\n{lines}\r\n".encode("latin-1")


def whole(status: int, body: bytes, headers: Mapping[str, str]) -> bytes:
    return head(status, {**headers, "Content-Length": str(len(body))}) + body


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)


LAST_CHUNK = b"0\r\n\r\n"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
