"""A real server on loopback, in a thread of its own. In: a folder. Out: where it is, and clients for it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

import httpx2

from stretto.assembly.project import Project
from stretto.assembly.surface import Surface
from stretto.server.process import ServedAt, ServeOptions, serve
from stretto.server.tokens import add_token, own_token
from support.cli import environment

PATIENCE_SECONDS = 60
ANY_PORT = ServeOptions("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    login_url: str
    folder: Path
    token: str
    _open: ExitStack = field(default_factory=ExitStack)  # every client, closed with the server

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def client(self, token: str | None = None, **more: Any) -> httpx2.Client:
        return self.stranger(headers={"Authorization": f"Bearer {token or self.token}"}, **more)

    def stranger(self, **more: Any) -> httpx2.Client:
        """A client without a token."""
        made = httpx2.Client(base_url=self.url, timeout=PATIENCE_SECONDS, trust_env=False, **more)
        return self._open.enter_context(made)

    def client_of(self, name: str, role: str) -> httpx2.Client:
        """A client with a new token of its own."""
        return self.client(add_token(self.home, name, role))


@contextmanager
def served(
    folder: Path,
    recipes: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    options: ServeOptions = ANY_PORT,
) -> Iterator[Served]:
    """`recipes`: saved ones of the project, by name."""
    (folder / "workflows").mkdir(exist_ok=True)
    for name, text in (recipes or {}).items():
        (folder / "workflows" / f"{name}.yaml").write_text(text)
    environ = environment(folder, env)
    told: Queue[tuple[ServedAt, Callable[[], None]] | BaseException] = Queue()

    def open_stretto() -> Surface:
        return Surface(lambda place: Project(place or folder, environ))

    def work() -> None:
        try:
            serve(
                options, open_stretto, folder / "home", environ, lambda at, end: told.put((at, end))
            )
        except BaseException as error:
            told.put(error)

    thread = threading.Thread(target=work, name="served", daemon=True)
    thread.start()
    begun = told.get(timeout=PATIENCE_SECONDS)
    if isinstance(begun, BaseException):
        raise begun
    at, end = begun
    token = own_token(folder / "home", environ)
    with ExitStack() as clients:  # closed last: a stream ends with the server, not with its client
        try:
            yield Served(at.url, at.login_url, folder, token, clients)
        finally:
            end()
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), "the server did not end"
