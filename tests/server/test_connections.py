"""What is written to a connection is sent in one piece, in its order, and nothing of it is lost."""

import asyncio
import socket

import pytest

from stretto.server.connections import JoinedWrites


class Written:
    """A transport that remembers."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.pieces.append(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


def test_a_head_and_its_body_are_one_piece() -> None:
    async def connect() -> None:
        under = Written()
        joined = JoinedWrites(under)
        joined.write(b"head ")
        joined.write(b"body")
        assert under.pieces == []
        await asyncio.sleep(0)
        joined.write(b"next")
        await asyncio.sleep(0)
        assert under.pieces == [b"head body", b"next"]

    asyncio.run(connect())


def test_what_was_written_is_sent_before_the_connection_is_closed() -> None:
    async def connect() -> None:
        under = Written()
        joined = JoinedWrites(under)
        joined.write(b"last words")
        joined.close()
        await asyncio.sleep(0)
        assert (under.pieces, under.is_closed) == ([b"last words"], True)

    asyncio.run(connect())


def test_a_connection_that_is_aborted_is_written_to_no_more() -> None:
    async def connect() -> None:
        under = Written()
        joined = JoinedWrites(under)
        joined.write(b"late")
        under.close()
        await asyncio.sleep(0)
        assert under.pieces == []

    asyncio.run(connect())


@pytest.mark.parametrize("size", [1, 1_000, 100_000])
def test_a_slow_reader_holds_back_whoever_writes_and_gets_every_byte(size: int) -> None:
    async def connect() -> None:
        here, there = socket.socketpair()
        paused: list[str] = []

        class Sender(asyncio.Protocol):
            def pause_writing(self) -> None:
                paused.append("paused")

        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(Sender, sock=here)
        joined = JoinedWrites(transport)
        whole = b""
        for number in range(40):
            piece = bytes([number]) * size
            joined.write(piece)
            whole += piece
        if size * 40 > 1_000_000:
            assert paused, "the transport has told that it is full, in the same turn"
        joined.close()
        there.setblocking(False)
        found = b""
        while more := await loop.sock_recv(there, 65_536):
            found += more
        there.close()
        assert found == whole

    asyncio.run(connect())
