"""One process that serves: a socket, the application, an orderly end. In: ServeOptions. Out: served.

At SIGINT or SIGTERM no connection is taken any more, open streams end with a notice, requests that
wait are answered, and the runs that are driven here are stopped so that the next server resumes them.
"""

import asyncio
import gc
import json
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import uvicorn

from stretto.assembly.ports import store_name
from stretto.assembly.surface import Surface
from stretto.problems.errors import InvalidUsage, NotFound, StrettoError
from stretto.server.access import AccessControl, Hosts
from stretto.server.app import make_app
from stretto.server.connections import with_patience
from stretto.server.ledger import ServerLedger, open_ledger
from stretto.server.metrics import Metrics
from stretto.server.service import Service
from stretto.server.tokens import own_token
from stretto.server.traces import Traces, open_traces
from stretto.server.workers import WorkerPipes, WorkerPool
from stretto.text.visible import visible_line

_MOST_FILES = 65_536


def allow_many_files() -> None:
    """As many open files as the system allows this process: each connection is one."""
    with suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_GRACE_SECONDS = 1  # for requests under way, once the server ends
_BACKLOG = 2048
_TRACE_SECONDS = 0.5  # for the last traces


@dataclass(frozen=True, slots=True)
class ServeOptions:
    host: str
    port: int  # 0: any free one
    is_public: bool = False  # it may be reached from other machines
    hosts: tuple[str, ...] = ()  # more names by which it may be called
    workers: int = 1  # processes that serve


@dataclass(frozen=True, slots=True)
class ServedAt:
    """Where a server is, for who started it."""

    url: str
    login_url: str


def serve(
    options: ServeOptions,
    open_stretto: Callable[[], Surface],
    home: Path,
    environ: Mapping[str, str],
    tell: Callable[[ServedAt, Callable[[], None]], None],
) -> None:
    """Until a signal ends it, or whoever calls what `tell` is given. Raises InvalidUsage and
    StrettoError where it cannot begin."""
    token = own_token(home, environ)
    allow_many_files()
    if options.workers > 1:
        asyncio.run(_check_shared(open_stretto()))
        _serve_together(options, open_stretto, home, environ, token, tell)
        return
    with bound_socket(options) as bound, open_ledger(home) as ledger:
        access = _access(options, token, ledger)
        told = partial(tell, _place(bound, access))
        asyncio.run(_serve(bound, open_stretto, access, ledger, environ, told))


async def _check_shared(stretto: Surface) -> None:
    """Raises InvalidUsage, and what opening the store raises. It is closed again before there are
    several processes: each opens it anew."""
    store = await stretto.engine.ports.open_store(stretto.project)
    await store.close()
    if not getattr(store, "is_shared", False):  # one of another package need not say
        raise InvalidUsage(
            f"--workers needs a store that several processes share, and '{store_name(stretto.project)}' "
            "does not say that it is one: without fenced leases two of them would drive one run",
            hint="leave --workers out, or use the store 'sqlite' (STRETTO_STORE)",
        )


def _access(options: ServeOptions, token: str, ledger: ServerLedger) -> AccessControl:
    return AccessControl(token, ledger, Hosts((*_LOOPBACK, options.host, *options.hosts)))


def _place(bound: socket.socket, access: AccessControl) -> ServedAt:
    host, port = bound.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    return ServedAt(url, f"{url}/login?code={access.make_link()}")


def _serve_together(
    options: ServeOptions,
    open_stretto: Callable[[], Surface],
    home: Path,
    environ: Mapping[str, str],
    token: str,
    tell: Callable[[ServedAt, Callable[[], None]], None],
) -> None:
    with (
        bound_socket(options) as held,
        TemporaryDirectory(prefix="stretto-serve-") as shared,
    ):
        same = replace(options, port=held.getsockname()[1])

        def work(pipes: WorkerPipes) -> None:
            with bound_socket(same, is_worker=True) as bound, open_ledger(home) as ledger:
                access = _access(options, token, ledger)
                setup = WorkerSetup(pipes, Path(shared))
                asyncio.run(_serve(bound, open_stretto, access, ledger, environ, _no_one, setup))

        def when_ready() -> None:
            with open_ledger(home) as ledger:
                at = _place(held, _access(options, token, ledger))
            tell(at, lambda: os.kill(os.getpid(), signal.SIGTERM))

        WorkerPool(options.workers, work).serve(when_ready)


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """Of a server that is one of several workers. `shared`: a folder of all of them."""

    pipes: WorkerPipes
    shared: Path


def _no_one(end: Callable[[], None]) -> None:
    """The parent tells where the server is."""


async def _serve(
    bound: socket.socket,
    open_stretto: Callable[[], Surface],
    access: AccessControl,
    ledger: ServerLedger,
    environ: Mapping[str, str],
    tell: Callable[[Callable[[], None]], None],
    setup: WorkerSetup | None = None,
) -> None:
    counts, traces = Metrics(setup.shared if setup else None), open_traces(environ)
    service = Service(open_stretto(), access, ledger, counts, is_one_of_many=setup is not None)

    @asynccontextmanager
    async def open_service() -> AsyncIterator[Service]:
        async with service.stretto, _traced(service, traces):
            service.stretto.engine.listeners.append(counts.hear)
            yield service

    config = uvicorn.Config(
        make_app(open_service, access, counts.count_request),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=_BACKLOG,
    )
    config.load()
    config.http_protocol_class = with_patience(config.http_protocol_class)
    server = _Server(config, service.closing, tell, setup.pipes if setup else None)
    await server.serve(sockets=[bound])
    if server.lifespan.should_exit and not server.started:
        raise StrettoError("the server could not start; its log says why")


@asynccontextmanager
async def _traced(service: Service, traces: Traces | None) -> AsyncIterator[None]:
    if traces is None:
        yield
        return
    service.stretto.engine.listeners.append(traces.hear)
    task = asyncio.create_task(traces.keep(service))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_TRACE_SECONDS):
                await traces.close(service)


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        closing: asyncio.Event,
        tell: Callable[[Callable[[], None]], None],
        pipes: WorkerPipes | None,
    ) -> None:
        super().__init__(config)
        self._pipes = pipes
        self._closing = closing
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # The objects that exist by now live until the end. To search them all for garbage would
            # hold every request up for a fifth of a second, again and again.
            gc.freeze()
            loop = asyncio.get_running_loop()

            def end() -> None:
                loop.call_soon_threadsafe(self.end)

            self._tell(end)
            if self._pipes is not None:
                self._pipes.report_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """In the loop, where the streams can be told of the end; uvicorn's own way would raise the
        signals again afterwards."""
        if threading.current_thread() is not threading.main_thread():  # only that one gets signals
            yield
            return
        loop = asyncio.get_running_loop()
        # Ctrl-C reaches every process of a terminal: a worker waits for the word of its parent.
        at_interrupt = self.end if self._pipes is None else _wait_for_parent
        loop.add_signal_handler(signal.SIGINT, at_interrupt)
        loop.add_signal_handler(signal.SIGTERM, self.end)
        if self._pipes is not None:
            loop.add_reader(self._pipes.alive, self._on_parent_gone, self._pipes.alive)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            if self._pipes is not None:
                loop.remove_reader(self._pipes.alive)

    def _on_parent_gone(self, alive: int) -> None:
        asyncio.get_running_loop().remove_reader(alive)
        self.end()

    def end(self) -> None:
        self.force_exit = self.should_exit  # the second signal waits for nothing
        self.should_exit = True
        self._closing.set()


def _wait_for_parent() -> None:
    pass


def new_link(port: int, home: Path, environ: Mapping[str, str]) -> str:
    """A login link of the server on this machine's port. Raises NotFound, and what the server says."""
    request = Request(
        f"http://127.0.0.1:{port}/api/session/link",
        method="POST",
        headers={"Authorization": f"Bearer {own_token(home, environ)}"},
    )
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=10) as answered:
            path = json.loads(answered.read())["path"]
    except HTTPError as error:
        raise InvalidUsage(f"the server at port {port} refused the token of {home}") from error
    except (OSError, ValueError, KeyError) as error:
        hint = "stretto serve starts one; --port says where it is"
        raise NotFound(f"no Stretto answers at port {port}", hint=hint) from error
    return f"http://127.0.0.1:{port}{path}"


def _check_free(family: int, address: Any) -> None:
    """Raises OSError. A port that is shared can be bound although another server is there."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


@contextmanager
def bound_socket(options: ServeOptions, is_worker: bool = False) -> Iterator[socket.socket]:
    """Raises InvalidUsage for an address that may not or cannot be used. With several workers, the
    parent's socket holds the port, and those of the workers listen."""
    if not 0 <= options.port <= 65535:
        raise InvalidUsage(f"there is no port {options.port}", hint="0 picks a free one")
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InvalidUsage(f"--host {options.host[:100]} is no address of this machine") from error
    family, _, _, _, address = found[0]
    if not ip_address(str(address[0]).partition("%")[0]).is_loopback and not options.is_public:
        raise InvalidUsage(
            f"{options.host} can be reached from other machines",
            hint="add --public if that is wanted, and put a proxy that speaks https before it",
        )
    # Named as TCP: only then asyncio sends small answers at once (TCP_NODELAY).
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            if options.workers > 1 and not is_worker:
                _check_free(family, address)
            if options.workers > 1:  # the system shares connections out among those that listen
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bound.bind(address)
        except OSError as error:
            hint = "another server may be there: --port 0 picks a free port"
            said = f"{options.host} port {options.port} cannot be used: {error.strerror}"
            raise InvalidUsage(said, hint=hint) from error
        if options.workers == 1 or is_worker:
            bound.listen(_BACKLOG)
        yield bound
    finally:
        bound.close()


_LOGGED = ("method", "path", "status", "seconds", "by")


class JsonLogLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        told: dict[str, object] = {
            "at": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told |= {name: getattr(record, name) for name in _LOGGED if hasattr(record, name)}
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told)  # ASCII: no terminal takes it for a control sequence


class PlainLogLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{time.strftime('%H:%M:%S')} {visible_line(record.getMessage())}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def write_log(as_json: bool, is_verbose: bool, stream: TextIO | None = None) -> None:
    """As JSON every request is told; in plain lines only with `is_verbose`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLogLines() if as_json else PlainLogLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("stretto").setLevel(logging.INFO)
    # It would tell users to install WebSockets, which no route here speaks.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    requests = logging.getLogger("stretto.server.access")
    requests.setLevel(logging.INFO if as_json or is_verbose else logging.WARNING)
