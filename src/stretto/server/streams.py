"""`/api/runs/RUN/events`: what happens in a run, as server-sent events.

    id: 41                     the number of the event in the run's journal
    event: snapshot            first, unless Last-Event-ID or `after` says where to go on
    data: {"cursor": 41, …}    the run as it stood at that event, as GET /api/runs/RUN shows it

    id: 42
    event: attempt_succeeded   the event's type
    data: {"type": "attempt_succeeded", "at": …}

Last comes one without an id: `end` (the run has ended), `dropped` (the reader was too slow), `closing`
(the server ends) or `fault`. After `dropped` and `closing` a client goes on with Last-Event-ID, and
nothing is missing and nothing comes twice: the numbers are the journal's own, which outlives a server.

Memory is bounded: for a reader that does not read, nothing is read from the journal either. Readers at
the end of one run's journal share what was read of it last.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from stretto.events.codec import UnknownEvent, encode
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.server.bodies import new_router
from stretto.server.runs import whole_run
from stretto.server.service import VIEWER, Service, TheService
from stretto.vocabulary.names import RunId

if TYPE_CHECKING:
    from stretto.ports.journal import StoredEvent

router = new_router("events")
_PING_SECONDS = 15.0
_POLL_SECONDS = 0.25  # of a run that another process drives, or nobody
_READ_ALONG_SECONDS = 2.0  # that the driver takes the run as watched after one look
_SLOW_SECONDS = 20.0  # that a reader may leave a full buffer unread
_ABORT_SECONDS = 10.0  # that a dropped reader has to read the notice
_MOST_ROWS = 200  # that are read for one reader at once
_KEPT_ROWS = 400  # that all readers of a run share
_KEPT_BYTES = 2**20
_CHUNK_BYTES = 32_768
_RETRY_MILLISECONDS = 1000
_ENDED = "run_ended"
_PING = b": ping\n\n"
_log = logging.getLogger("stretto.server")
Row = tuple[int, bytes]


def message(event: str, data: str, id: int | None = None) -> bytes:
    """JSON has no line breaks, so one line of data is enough."""
    lines = [f"id: {id}"] if id is not None else []
    return "\n".join([*lines, f"event: {event}", f"data: {data}", "", ""]).encode()


def closing() -> bytes:
    return message("closing", json.dumps({"reason": "the server ends"}))


class RunFeed:
    """The newest events of one run, for all who stream it. One task looks for more."""

    def __init__(self, service: Service, run_id: str) -> None:
        self._service = service
        self._run_id = run_id
        self._rows: deque[Row] = deque()
        self._bytes = 0
        self._last = 0
        self._readers = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._was_over = False  # when the first reader joined
        self.has_ended = False
        self.fault = ""  # why nothing more will come

    def join(self, after: int, was_over: bool) -> None:
        """`after`: the number of an event that is in the journal, or 0."""
        self._readers += 1
        if self._task is None:
            self._last, self._was_over = after, was_over
            self._task = asyncio.create_task(self._watch())

    def leave(self) -> None:
        self._readers -= 1
        if self._readers == 0:
            if self._task is not None:
                self._task.cancel()
            self._service.feeds.pop(self._run_id, None)

    async def after(self, seq: int) -> list[Row]:
        """The next events; none where there are none yet."""
        if self._last <= seq:
            return []
        if self._rows and self._rows[0][0] <= seq + 1:
            return [row for row in self._rows if row[0] > seq]
        return [_encode(row) for row in await self._page(seq)]

    async def wait(self, seq: int, seconds: float) -> bool:
        """Whether there may be something after that number, or will be nothing more."""
        news = self._news
        if self._last <= seq and not self.has_ended and not self.fault:
            try:
                async with asyncio.timeout(seconds):
                    await news.wait()
            except TimeoutError:
                return False
        return True

    def wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _page(self, after: int) -> "list[StoredEvent]":
        run = self._service.stretto.open(self._run_id)
        return await run.page(after=after, limit=_MOST_ROWS)

    async def _watch(self) -> None:
        try:
            while not self.has_ended:
                rows = await self._page(self._last)
                for row in rows:
                    self._keep(_encode(row))
                self.has_ended = any(getattr(row.event, "type", "") == _ENDED for row in rows)
                self.has_ended |= self._was_over and not rows
                if rows:
                    self.wake()
                elif not self.has_ended:
                    run = self._service.stretto.open(self._run_id)
                    run.follow(_READ_ALONG_SECONDS)
                    await run.news(_POLL_SECONDS)
        except StrettoError as error:
            self.fault = error.with_hint
        except Exception:  # a fault of ours ends the streams too: nothing more would come on them
            _log.exception("stretto: the events of run %s could not be read", self._run_id)
            self.fault = "the events could not be read; the log of the server says why"
        finally:
            self.wake()

    def _keep(self, row: Row) -> None:
        self._rows.append(row)
        self._last = row[0]
        self._bytes += len(row[1])
        while len(self._rows) > 1 and (len(self._rows) > _KEPT_ROWS or self._bytes > _KEPT_BYTES):
            self._bytes -= len(self._rows.popleft()[1])


def _encode(row: "StoredEvent") -> Row:
    event = row.event
    if isinstance(event, UnknownEvent):
        told = json.dumps({"type": "unknown", "reason": event.reason})
        return row.seq, message("unknown", told, row.seq)
    return row.seq, message(event.type, encode(event), row.seq)


async def stream(
    service: Service, run_id: str, after: int, snapshot: dict[str, Any] | None, was_over: bool
) -> AsyncIterator[bytes]:
    """The messages of one stream, in pieces that are sent at once."""
    feed = service.feeds.setdefault(run_id, RunFeed(service, run_id))
    feed.join(after, was_over)
    service.open_streams += 1
    try:
        yield f"retry: {_RETRY_MILLISECONDS}\n\n".encode()
        if snapshot is not None:
            yield message("snapshot", json.dumps(snapshot), after)
            snapshot = None
        while True:
            rows = await feed.after(after)
            for seq, piece in _pieces(rows):
                after = seq
                yield piece
            if service.closing.is_set():
                yield closing()
                return
            if rows:
                continue
            if feed.has_ended or feed.fault:
                yield await _last_words(service, run_id, feed)
                return
            if not await feed.wait(after, _PING_SECONDS):
                yield _PING
    finally:
        service.open_streams -= 1
        feed.leave()


def _pieces(rows: list[Row]) -> list[Row]:
    """Small messages together, each piece with the number of its last event."""
    pieces: list[Row] = []
    taken, size = [], 0
    for place, (seq, piece) in enumerate(rows):
        taken.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES or place == len(rows) - 1:
            pieces.append((seq, b"".join(taken)))
            taken, size = [], 0
    return pieces


async def _last_words(service: Service, run_id: str, feed: RunFeed) -> bytes:
    if feed.fault:
        return message("fault", json.dumps({"message": feed.fault}))
    status = await service.stretto.open(run_id).status()
    return message("end", json.dumps({"status": status}))


@router.get(
    "/api/runs/{run_id}/events",
    dependencies=[VIEWER],
    response_model=None,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        204: {"description": "The run has ended, and all of its events were sent before"},
    },
)
async def stream_events(
    request: Request,
    run_id: str,
    service: TheService,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """What happens in the run: a snapshot, then its events as they come. Last-Event-ID (or `after`)
    goes on after an event, without a snapshot; `after=0` begins at the first."""
    seq = _place(last_event_id, after)
    run = service.stretto.open(run_id)
    runs = await service.stretto.engine.runs_of()
    if seq is None:
        whole = await whole_run(service, run_id)
        return EventStream(
            request, stream(service, run_id, whole["cursor"], whole, _is_over(whole))
        )
    if not await runs.is_known(RunId(run_id)):
        await run.history()  # raises NotFound, and names runs that were meant perhaps
    if seq and not await run.page(after=seq - 1, limit=1):
        raise InvalidUsage(f"the run has no event {seq} yet", hint="leave Last-Event-ID out")
    was_over = await runs.has_ended(RunId(run_id))
    if was_over and not await run.page(after=seq, limit=1):
        return Response(status_code=204)  # which keeps an EventSource from asking again
    return EventStream(request, stream(service, run_id, seq, None, was_over))


def _is_over(whole: dict[str, Any]) -> bool:
    return whole["ended_at"] is not None


def _place(last_event_id: str | None, after: int | None) -> int | None:
    """None: from now on, with a snapshot."""
    if last_event_id is None or not last_event_id.strip():
        return after
    written = last_event_id.strip()
    if not (written.isascii() and written.isdecimal() and len(written) <= 15):
        raise InvalidUsage(f"Last-Event-ID '{written[:40]}' is no number of an event")
    return int(written)


class EventStream(Response):
    """Sends pieces until there are no more, the reader leaves, or it is too slow."""

    media_type = "text/event-stream"

    def __init__(self, request: Request, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._flow = request.scope["state"].get("flow")
        self._transport = request.scope["state"].get("transport")
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=_CHUNK_BYTES)
        sender = asyncio.ensure_future(self._send_all(send))
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait((sender, gone), return_when=asyncio.FIRST_COMPLETED)
            if sender.done():
                sender.result()
        finally:
            for task in (sender, gone):
                task.cancel()
            for task in (sender, gone):
                with suppress(asyncio.CancelledError, Exception):
                    await task

    async def _send_all(self, send: Send) -> None:
        try:
            async for piece in self._pieces:
                try:
                    async with asyncio.timeout(_SLOW_SECONDS):
                        await _send_piece(send, piece)
                except TimeoutError:
                    await self._drop(send)
                    return
            await send({"type": "http.response.body", "body": b""})
        finally:
            await self._pieces.aclose()  # type: ignore[attr-defined]

    async def _drop(self, send: Send) -> None:
        """The notice is the last that such a reader gets, whenever it reads on."""
        if self._flow is None:
            return
        self._flow.resume_writing()  # the notice is short: it may stand beyond the limit
        said = f"nothing was read for {_SLOW_SECONDS:.0f} seconds; go on with Last-Event-ID"
        await _send_piece(send, message("dropped", json.dumps({"reason": said})))
        await send({"type": "http.response.body", "body": b""})
        asyncio.get_running_loop().call_later(_ABORT_SECONDS, self._transport.abort)


async def _send_piece(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
