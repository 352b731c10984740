"""`/api/runs/RUN/journal`, the events so far; and `/api/events`: which runs have changed, as server-sent events, for those who watch many at once.

    id: 4711                                  a cursor of the store
    event: change
    data: {"run_id": "20261118-…"}            this run has new events, whoever drives it
    data: {"run_id": "*"}                     any run may have changed: load what you show again

A browser needs one such stream, however many tabs it has. What has changed is asked for by the routes
of the run, so nothing is said here that those do not say. `alive` comes when nothing has changed for a
while. One task looks for all readers; a reader that is slow is told `*` and misses nothing by it.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Query, Request
from starlette.responses import JSONResponse, Response

from stretto.events.codec import UnknownEvent, encode
from stretto.problems.errors import StrettoError
from stretto.server.bodies import ListAnswer, new_router
from stretto.server.service import VIEWER, Service, TheService
from stretto.server.streams import EventStream, message

if TYPE_CHECKING:
    from stretto.ports.journal import StoredEvent

router = new_router("events")
_POLL_SECONDS = 0.25
_ALIVE_SECONDS = 10.0
_ALL = "*"
_MOST_WAITING = (
    500  # runs that one reader has not been told of; then it is told that all have changed
)


@router.get("/api/runs/{run_id}/journal", dependencies=[VIEWER], response_model=ListAnswer)
async def show_journal(
    run_id: str,
    service: TheService,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> JSONResponse:
    """The events of a run as they are now, each with its number: `events`."""
    run = service.stretto.open(run_id)
    rows = await run.page(after=after, limit=limit)
    if not rows:
        await run.history()  # raises NotFound, and names runs that were meant perhaps
    return JSONResponse({"ok": True, "events": [_as_json(row) for row in rows]})


def _as_json(row: "StoredEvent") -> dict[str, Any]:
    if isinstance(row.event, UnknownEvent):
        return {"seq": row.seq, "type": "unknown", "reason": row.event.reason}
    return {"seq": row.seq, **json.loads(encode(row.event))}


class NewsReader:
    """The runs that one reader has yet to be told of."""

    def __init__(self) -> None:
        self.run_ids: dict[str, None] = {}
        self.cursor = 0
        self.news = asyncio.Event()

    def tell(self, run_ids: tuple[str, ...], cursor: int) -> None:
        self.cursor = cursor
        self.run_ids.update(dict.fromkeys(run_ids))
        if len(self.run_ids) > _MOST_WAITING or _ALL in self.run_ids:
            self.run_ids = {_ALL: None}
        self.news.set()

    def take(self) -> list[str]:
        found, self.run_ids = list(self.run_ids), {}
        self.news.clear()
        return found


class NewsDesk:
    """Looks into the store while anybody reads, and tells all readers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._readers: set[NewsReader] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_looking = asyncio.Event()  # what changes from now on is told

    async def join(self, reader: NewsReader) -> None:
        """Once it is back, no change is missed any more."""
        self._readers.add(reader)
        if self._task is None or self._task.done():
            self._is_looking = asyncio.Event()
            self._task = asyncio.create_task(self._look())
        await self._is_looking.wait()

    def leave(self, reader: NewsReader) -> None:
        self._readers.discard(reader)
        if not self._readers and self._task is not None:
            self._task.cancel()
            self._task = None  # who joins before it has ended needs another one

    async def _look(self) -> None:
        cursor: int | None = None
        while True:
            try:
                runs = await self._service.stretto.engine.runs_of()
                found = await runs.news(cursor)
            except StrettoError:  # the store is busy or damaged: the routes of the runs say so
                found = None
            if found is not None:
                is_first = cursor is None and not self._is_looking.is_set()
                changed = found.run_ids if found.is_whole and cursor is not None else (_ALL,)
                if changed and not is_first:
                    for reader in self._readers:
                        reader.tell(changed, found.cursor)
                cursor = found.cursor
            self._is_looking.set()  # where the store cannot be read, no request waits for it
            await asyncio.sleep(_POLL_SECONDS)


async def tell_changes(service: Service, desk: NewsDesk, is_behind: bool) -> AsyncIterator[bytes]:
    """The messages of one stream. `is_behind`: the reader was here before, and may have missed some."""
    reader = NewsReader()
    service.open_streams += 1
    try:
        await desk.join(reader)
        yield message("alive", "{}")
        if is_behind:
            yield message("change", json.dumps({"run_id": _ALL}))
        while True:
            try:
                async with asyncio.timeout(_ALIVE_SECONDS):
                    is_serving = await service.until(reader.news.wait())
            except TimeoutError:
                yield message("alive", "{}")
                continue
            if not is_serving:
                return
            for run_id in reader.take():
                yield message("change", json.dumps({"run_id": run_id}), reader.cursor)
    finally:
        service.open_streams -= 1
        desk.leave(reader)


@router.get(
    "/api/events",
    dependencies=[VIEWER],
    response_model=None,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def stream_changes(
    request: Request,
    service: TheService,
    after: Annotated[str | None, Query(max_length=40)] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """Which runs change, as it happens. A reader that comes again (Last-Event-ID or `after`) is told
    first that any run may have changed."""
    if service.desk is None:
        service.desk = NewsDesk(service)
    is_behind = bool(after or last_event_id)
    return EventStream(request, tell_changes(service, service.desk, is_behind))
