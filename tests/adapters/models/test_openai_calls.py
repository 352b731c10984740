"""Streamed tool calls, put together however a server takes them apart."""

from typing import Any

from stretto.adapters.models.openai_calls import Calls, Piece


def sent(
    index: int | None = 0, id: str = "", name: str = "", arguments: str = ""
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id, "function": function}


def test_a_call_comes_name_first() -> None:
    calls = Calls()
    assert calls.piece(sent(0, "a", "look"), 0) == Piece("call 1", "look", "", "a")
    assert calls.piece(sent(1, "b", "read"), 1) == Piece("call 2", "read", "", "b")
    assert calls.piece(sent(0, arguments="{}"), 0) == Piece("call 1", None, "{}", None)
    assert calls.piece(sent(1, arguments="[]"), 0) == Piece("call 2", None, "[]", None)


def test_what_comes_before_the_name_is_held() -> None:
    calls = Calls()
    assert calls.piece(sent(0, "a", arguments="{"), 0) is None
    assert calls.piece(sent(0, name="look", arguments="}"), 0) == Piece("call 1", "look", "{}", "a")


def test_a_name_that_is_repeated_is_one_name() -> None:
    calls = Calls()
    calls.piece(sent(0, "a", "look", "{"), 0)
    assert calls.piece(sent(0, "a", "look", "}"), 0) == Piece("call 1", None, "}", None)


def test_calls_that_are_all_numbered_alike_are_told_apart_by_their_ids() -> None:
    calls = Calls()
    assert calls.piece(sent(0, "a", "look", "{}"), 0) == Piece("call 1", "look", "{}", "a")
    assert calls.piece(sent(0, "b", "look", "[]"), 0) == Piece("call 2", "look", "[]", "b")


def test_calls_without_a_number_are_told_apart_by_their_place() -> None:
    calls = Calls()
    assert calls.piece(sent(None, "a", "look", "{}"), 0) == Piece("call 1", "look", "{}", "a")
    assert calls.piece(sent(None, "b", "read", "{}"), 1) == Piece("call 2", "read", "{}", "b")
