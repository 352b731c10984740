"""What is kept of chats: decisions count for one content, and only if this user gave them."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from stretto.lead.chats import CallQuestion, ChatBusy, ChatFile, KeptCall, KeptChat, KeptTurn
from stretto.ports.model import ModelReply, RequestedCall, TokenCounts
from stretto.recipe.model import Budget
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import RunId

ASKED = CallQuestion("run/turn-1/1/1", "run", "a digest", "Run it?")
CHAT = KeptChat("chat", 1.0, "/project", None, "ask", Budget(tokens=5))
TURN = KeptTurn(
    "chat", 1, RunId("run"), "lead", "Hi", {}, "open", "", "", Usage(), 0, 1.0, None
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> ChatFile:
    return ChatFile(tmp_path)


def test_a_decision_counts_for_its_content_alone(file: ChatFile) -> None:
    file.use_now(lambda store: store.ask(ASKED))
    assert file.use_now(lambda store: store.decision(ASKED.key, ASKED.digest)) is None
    file.use_now(lambda store: store.decide(replace(ASKED, verdict="approved", by="Ann")))
    found = file.use_now(lambda store: store.decision(ASKED.key, ASKED.digest))
    assert found is not None
    assert found.verdict == "approved"
    assert file.use_now(lambda store: store.decision(ASKED.key, "another")) is None
    assert file.use_now(lambda store: store.questions("run")) == []


def test_a_decision_that_this_user_did_not_give_does_not_count(
    file: ChatFile, tmp_path: Path
) -> None:
    file.use_now(lambda store: store.ask(ASKED))
    file.use_now(lambda store: store.decide(replace(ASKED, verdict="rejected", by="Ann")))
    with sqlite3.connect(tmp_path / "chats.db") as db:
        db.execute("UPDATE questions SET verdict = 'approved'")
    db.close()
    assert file.use_now(lambda store: store.decision(ASKED.key, ASKED.digest)) is None


def test_a_call_keeps_the_run_that_it_began_with(file: ChatFile) -> None:
    call = KeptCall("k", "run", 1, "task", {"a": [1]}, RunId("first"), None, False, Usage(), 0)
    file.use_now(lambda store: store.begin_call(call))
    file.use_now(lambda store: store.begin_call(replace(call, run_id=RunId("second"))))
    assert file.use_now(lambda store: store.call("k")) == call
    file.use_now(lambda store: store.end_call("k", "{}", True, Usage(3, 4), 1))
    [kept] = file.use_now(lambda store: store.calls("run"))
    assert (kept.run_id, kept.result, kept.is_ok, kept.usage.tokens) == ("first", "{}", True, 7)


def test_a_reply_is_given_back_as_it_came(file: ChatFile) -> None:
    reply = ModelReply(
        "Hm.", (RequestedCall("1", "task", '{"a": "ü"}'),), TokenCounts(1, 2, 1), "stop"
    )
    file.use_now(lambda store: store.keep_reply("run", 0, reply))
    assert file.use_now(lambda store: store.reply("run", 0)) == reply
    assert file.use_now(lambda store: store.reply("run", 1)) is None


def test_of_two_processes_one_has_the_turn(file: ChatFile) -> None:
    file.use_now(lambda store: store.add_chat(CHAT))
    file.use_now(lambda store: store.add_turn(TURN))
    for same in (replace(TURN, run_id=RunId("other")), replace(TURN, number=2)):
        with pytest.raises(
            ChatBusy, match="another process is at work on a message in chat chat"
        ) as busy:
            file.use_now(lambda store, same=same: store.add_turn(same))  # type: ignore[misc]
        assert (busy.value.kind, busy.value.exit_code) == ("conflict", 5)
    with pytest.raises(ChatBusy):
        file.use_now(lambda store: store.add_chat(CHAT))
    assert file.use_now(lambda store: store.turns("chat")) == [TURN]
    assert file.use_now(lambda store: store.chats()) == [CHAT]


def test_a_decision_that_comes_while_the_same_is_asked_again_is_not_lost(file: ChatFile) -> None:
    file.use_now(lambda store: store.ask(ASKED))
    file.use_now(lambda store: store.decide(replace(ASKED, verdict="approved", by="Ann")))
    file.use_now(lambda store: store.ask(ASKED))
    assert file.use_now(lambda store: store.decision(ASKED.key, ASKED.digest)) is not None
    file.use_now(lambda store: store.ask(replace(ASKED, digest="another")))
    assert file.use_now(lambda store: store.decision(ASKED.key, "another")) is None
    assert len(file.use_now(lambda store: store.questions(ASKED.turn))) == 1


def test_of_two_people_who_decide_at_once_the_first_counts(file: ChatFile) -> None:
    file.use_now(lambda store: store.ask(ASKED))
    first = replace(ASKED, verdict="rejected", by="Ann")
    second = replace(ASKED, verdict="approved", by="Bob")
    assert [
        file.use_now(lambda store, each=each: store.decide(each)) for each in (first, second)
    ] == [True, False]
    found = file.use_now(lambda store: store.decision(ASKED.key, ASKED.digest))
    assert found is not None
    assert (found.verdict, found.by) == ("rejected", "Ann")
    assert file.use_now(lambda store: store.questions(ASKED.turn)) == []
