"""`/api/runs/RUN/journal`: the events so far. `/api/events`: which runs have changed, as
server-sent events, for those who watch many at once.

    id: 4711                                  a cursor of the store
    event: change
    data: {"run_id": "20261118-…"}            this run has new events, whoever drives it
    data: {"run_id": "*"}                     any run may have changed: load what you show again

    event: words                              with ?follow=41:RUN:STEP, after event 41 of that run
    data: {"run_id": "20261118-…", "seq": 43, "spoken": [{"seq": 42, "type": "model_spoke", …}, …]}

A browser needs one such stream, however many tabs it has. The stream says that a run has changed,
and the routes of the run say what has. `alive` comes when nothing has changed for a while. One task
looks for all readers; a reader that is slow is told `*`, and so misses no change. `closing` is the
last message, when the server ends.

A run that is followed is told of at once, and so are the words of that one step: ten times a second
at the most. Words are no change: whoever shows them adds them to what was said before. `seq` is the
last event of the run that is told of, also in a `change` of a run that is followed: there one goes on.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Header, Query, Request
from starlette.responses import Response

from stretto.events.codec import UnknownEvent, encode
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.server.answers import JsonAnswer
from stretto.server.bodies import ListAnswer, new_router
from stretto.server.service import VIEWER, Service, TheService
from stretto.server.streams import EventStream, Row, RunFeed, closing, message
from stretto.vocabulary.names import RunId

if TYPE_CHECKING:
    from stretto.ports.journal import StoredEvent

router = new_router("events")
_POLL_SECONDS = 0.25
_AGAIN_SECONDS = 5.0  # after a fault of ours, which would fill the log
_ALIVE_SECONDS = 10.0
_BATCH_SECONDS = 0.1  # between two messages about one step that is followed
_MOST_FOLLOWED = 16  # steps, of one reader
_MOST_UNREAD = 1_000  # messages of words that one reader has not taken; then it loads them again
_log = logging.getLogger("stretto.server")
_ALL = "*"
_SPOKE = b"\nevent: model_spoke\ndata: "
_MOST_WAITING = 500  # runs that a reader was not told of yet; past it, all count as changed


@router.get("/api/runs/{run_id}/journal", dependencies=[VIEWER], response_model=ListAnswer)
async def show_journal(
    run_id: str,
    service: TheService,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> JsonAnswer:
    """The events of a run as they are now, each with its number: `events`."""
    run = service.stretto.open(run_id)
    rows = await run.page(after=after, limit=limit)
    if not rows:
        await run.history()  # raises NotFound, and names runs that were meant perhaps
    return JsonAnswer({"ok": True, "events": [_as_json(row) for row in rows]})


def _as_json(row: "StoredEvent") -> dict[str, Any]:
    if isinstance(row.event, UnknownEvent):
        return {"seq": row.seq, "type": "unknown", "reason": row.event.reason}
    return {"seq": row.seq, **json.loads(encode(row.event))}


class NewsReader:
    """The runs that one reader has yet to be told of."""

    def __init__(self) -> None:
        # Each with the last event of it that the reader is told of; 0: that is not known.
        self.run_ids: dict[str, int] = {}
        self.cursor = 0
        self.words: list[str] = []
        self.followed: set[str] = set()  # the desk need not tell of these: their followers do
        self.news = asyncio.Event()

    def tell(self, run_ids: tuple[str, ...], cursor: int) -> None:
        """From the desk. `cursor`: up to where it has looked."""
        self.cursor = cursor
        self._add(dict.fromkeys((each for each in run_ids if each not in self.followed), 0))

    def tell_followed(self, run_id: str, seq: int = 0) -> None:
        """Something has happened in it, up to that event."""
        self._add({run_id: seq})

    def tell_words(self, words: str) -> None:
        """As JSON."""
        self.words.append(words)
        if len(self.words) > _MOST_UNREAD:
            self.words.clear()
            self._add({_ALL: 0})
        self.news.set()

    def _add(self, runs: dict[str, int]) -> None:
        self.run_ids.update(runs)
        if len(self.run_ids) > _MOST_WAITING or _ALL in self.run_ids:
            self.run_ids = {_ALL: 0}
        if self.run_ids:
            self.news.set()

    def take(self) -> list[bytes]:
        """What is new, as messages: the words first, since a change may be that they have ended."""
        words, runs = self.words, self.run_ids
        self.words, self.run_ids = [], {}
        self.news.clear()
        told = [message("words", each) for each in words]
        changes = [
            json.dumps({"run_id": run_id, **({"seq": seq} if seq else {})})
            for run_id, seq in runs.items()
        ]
        return told + [message("change", each, self.cursor) for each in changes]


class NewsDesk:
    """Looks into the store while anybody reads, and tells all readers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._readers: set[NewsReader] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_looking = asyncio.Event()  # what changes from now on is told

    async def join(self, reader: NewsReader, after: int | None) -> None:
        """Once it is back, no change is missed any more. `after`: up to where the reader knows them."""
        self._readers.add(reader)
        if self._task is None or self._task.done():
            self._is_looking = asyncio.Event()
            self._task = asyncio.create_task(self._look())
        await self._is_looking.wait()
        if after is not None:
            await self._catch_up(reader, after)

    async def _catch_up(self, reader: NewsReader, after: int) -> None:
        """With 0 the reader does not say where it was: any run may have changed since."""
        try:
            found = await (await self._service.stretto.engine.runs_of()).news(after)
        except StrettoError:
            reader.tell((_ALL,), after)
            return
        reader.tell(found.run_ids if found.is_whole and after else (_ALL,), found.cursor)

    def leave(self, reader: NewsReader) -> None:
        self._readers.discard(reader)
        if not self._readers and self._task is not None:
            self._task.cancel()
            self._task = None  # who joins before it has ended needs another one

    async def _look(self) -> None:
        cursor: int | None = None
        while True:
            pause = _POLL_SECONDS
            try:
                runs = await self._service.stretto.engine.runs_of()
                found = await runs.news(cursor)
            except StrettoError:  # the store is busy or damaged: the routes of the runs say so
                found = None
            except Exception:  # a fault of ours must not leave the readers without news for ever
                _log.exception("stretto: changes of runs could not be looked for")
                found = None
                pause = _AGAIN_SECONDS
            if found is not None:
                is_first = cursor is None and not self._is_looking.is_set()
                changed = found.run_ids if found.is_whole and cursor is not None else (_ALL,)
                for reader in self._readers:
                    reader.tell(() if is_first else changed, found.cursor)
                cursor = found.cursor
            self._is_looking.set()  # where the store cannot be read, no request waits for it
            await asyncio.sleep(pause)


@dataclass(frozen=True, slots=True)
class Followed:
    """A step that a reader watches. `after`: the last event of its run that the reader knows."""

    after: int
    run_id: str
    step: str  # empty: the run alone


class _Follower:
    """Tells one reader at once what happens in one run, until the run has ended."""

    def __init__(self, service: Service, reader: NewsReader, followed: Followed) -> None:
        self._service, self._reader, self._followed = service, reader, followed

    async def follow(self) -> None:
        try:
            await self._follow()
        except StrettoError:  # the store is busy or damaged: the routes of the run say so
            self._reader.tell_followed(self._followed.run_id)

    async def _follow(self) -> None:
        run_id, after = self._followed.run_id, self._followed.after
        if not await _is_going_on(self._service, run_id, after):
            self._reader.tell_followed(run_id)  # it may have ended since the reader looked
            return
        with self._feed(after) as feed:
            while not (feed.has_ended or feed.fault):
                await feed.wait(after, _BATCH_SECONDS * 10)
                if rows := await feed.after(after):
                    self._tell(rows)
                    after = rows[-1][0]
                    await asyncio.sleep(_BATCH_SECONDS)

    @contextmanager
    def _feed(self, after: int) -> "Iterator[RunFeed]":
        run_id, reader = self._followed.run_id, self._reader
        feed = self._service.feeds.setdefault(run_id, RunFeed(self._service, run_id))
        feed.join(after, was_over=False)
        reader.followed.add(run_id)
        try:
            yield feed
        finally:
            reader.followed.discard(run_id)
            reader.tell_followed(run_id)  # its end, or what the desk now tells
            feed.leave()

    def _tell(self, rows: list[Row]) -> None:
        spoken, others = [], 0
        for seq, piece in rows:
            _, is_speech, event = piece.partition(_SPOKE)
            others += not is_speech
            if is_speech and json.loads(event)["attempt"]["step"] == self._followed.step:
                spoken.append(f'{{"seq": {seq}, {event.decode().strip()[1:]}')
        run_id, last = self._followed.run_id, rows[-1][0]
        if spoken:
            place = f'"run_id": {json.dumps(run_id)}, "seq": {last}'
            self._reader.tell_words(f'{{{place}, "spoken": [{", ".join(spoken)}]}}')
        if others:
            self._reader.tell_followed(run_id, last)


async def _is_going_on(service: Service, run_id: str, after: int) -> bool:
    """Whether it is a run that has not ended, and has that event."""
    runs = await service.stretto.engine.runs_of()
    row = await runs.row(RunId(run_id))
    if row is None or row.ended_at is not None:
        return False
    return bool(await service.stretto.open(run_id).page(after=max(0, after - 1), limit=1))


async def tell_changes(
    service: Service, desk: NewsDesk, after: int | None, followed: list[Followed]
) -> AsyncIterator[bytes]:
    """The messages of one stream. `after`: where the reader was before; None: it begins here."""
    reader = NewsReader()
    service.open_streams += 1
    followers: list[asyncio.Task[None]] = []
    try:
        await desk.join(reader, after)
        yield message("alive", "{}", reader.cursor)
        followers += [
            asyncio.create_task(_Follower(service, reader, each).follow()) for each in followed
        ]
        while True:
            try:
                async with asyncio.timeout(_ALIVE_SECONDS):
                    is_serving = await service.until(reader.news.wait())
            except TimeoutError:
                yield message("alive", "{}", reader.cursor)
                continue
            if not is_serving:
                yield closing()
                return
            yield b"".join(reader.take())
    finally:
        service.open_streams -= 1
        for each in followers:
            each.cancel()
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
    follow: Annotated[
        list[str], Query(description="SEQ:RUN:STEP, to be told of it at once, with its words")
    ] = [],  # noqa: B006
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """Which runs change, as it happens. A reader that comes again (Last-Event-ID or `after`) is told
    first what has changed since; any run may have, where that is not known any more."""
    if service.desk is None:
        service.desk = NewsDesk(service)
    if len(follow) > _MOST_FOLLOWED:
        raise InvalidUsage(f"one stream follows {_MOST_FOLLOWED} steps at the most")
    followed = [_parse_followed(each) for each in follow]
    written = last_event_id or after
    place = None if not written else int(written) if _is_place(written) else 0
    return EventStream(request, tell_changes(service, service.desk, place, followed))


def _parse_followed(written: str) -> Followed:
    seq, _, rest = written.partition(":")
    run_id, colon, step = rest.partition(":")
    if not (_is_place(seq) and run_id and colon):
        hint = "such as follow=41:RUN:STEP, where 41 is the `cursor` of the run"
        raise InvalidUsage(f"follow={written[:60]} is no step of a run", hint=hint)
    return Followed(int(seq), run_id, step)


def _is_place(written: str) -> bool:
    return written.isascii() and written.isdecimal() and len(written) <= 15
