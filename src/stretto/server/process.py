"""One process that serves: a socket, the application, an orderly end. In: ServeOptions. Out: served.

At SIGINT or SIGTERM no connection is taken any more, open streams end with a notice, requests that
wait are answered, and the runs that are driven here are stopped so that the next server resumes them.
"""

import asyncio
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import uvicorn

from stretto.assembly.surface import Surface
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.server.access import AccessControl, Hosts
from stretto.server.app import make_app
from stretto.server.ledger import ServerLedger, open_ledger
from stretto.server.service import Service
from stretto.server.tokens import own_token

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_GRACE_SECONDS = 1  # for requests under way, once the server ends
_BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class ServeOptions:
    host: str
    port: int  # 0: any free one
    is_public: bool = False  # it may be reached from other machines
    hosts: tuple[str, ...] = ()  # more names by which it may be called


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
    with bound_socket(options) as bound, open_ledger(home) as ledger:
        host, port = bound.getsockname()[:2]
        access = AccessControl(token, ledger, Hosts((*_LOOPBACK, options.host, *options.hosts)))
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        at = ServedAt(url, f"{url}/login?code={access.make_link()}")
        asyncio.run(_serve(bound, open_stretto, access, ledger, partial(tell, at)))


async def _serve(
    bound: socket.socket,
    open_stretto: Callable[[], Surface],
    access: AccessControl,
    ledger: ServerLedger,
    tell: Callable[[Callable[[], None]], None],
) -> None:
    service = Service(open_stretto(), access, ledger)

    @asynccontextmanager
    async def open_service() -> AsyncIterator[Service]:
        async with service.stretto:
            yield service

    config = uvicorn.Config(
        make_app(open_service, access),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=_BACKLOG,
    )
    server = _Server(config, service.closing, tell)
    await server.serve(sockets=[bound])
    if server.lifespan.should_exit and not server.started:
        raise StrettoError("the server could not start; its log says why")


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        closing: asyncio.Event,
        tell: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(config)
        self._closing = closing
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            loop = asyncio.get_running_loop()

            def end() -> None:
                loop.call_soon_threadsafe(self.end)

            self._tell(end)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """By the loop, so that the streams are told in it; and without raising them again at the end."""
        if threading.current_thread() is not threading.main_thread():  # which alone is told of them
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.end)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def end(self) -> None:
        self.force_exit = self.should_exit  # the second signal waits for nothing
        self.should_exit = True
        self._closing.set()


@contextmanager
def bound_socket(options: ServeOptions) -> Iterator[socket.socket]:
    """Raises InvalidUsage for an address that may not or cannot be used."""
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
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(address)
        except OSError as error:
            hint = "another server may be there: --port 0 picks a free port"
            said = f"{options.host} port {options.port} cannot be used: {error.strerror}"
            raise InvalidUsage(said, hint=hint) from error
        bound.listen(_BACKLOG)
        yield bound
    finally:
        bound.close()
