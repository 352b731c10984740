"""What ends a conversation, and what does not."""

import click
import pytest

from stretto.cli.chat import _Session
from stretto.cli.streams import Terminated


def asked(interruption: type[BaseException]) -> int:
    """A question of click, which makes an Abort of whatever interrupts it."""
    try:
        raise interruption
    except (KeyboardInterrupt, EOFError):
        raise click.Abort from None


def interrupted(interruption: type[BaseException]) -> int:
    raise interruption


@pytest.mark.parametrize("work", [asked, interrupted])
def test_ctrl_c_lets_the_chat_go_on_and_sigterm_ends_it(work, capsys):
    session = object.__new__(_Session)
    assert session._catch_mistakes(lambda: work(KeyboardInterrupt)) == 1
    assert "the chat goes on" in capsys.readouterr().err
    with pytest.raises((click.Abort, Terminated)):
        session._catch_mistakes(lambda: work(Terminated))


def test_sigterm_at_a_question_of_a_turn_ends_the_chat(monkeypatch, capsys):
    class View:
        def pause(self):
            pass

    class Turn:
        awaits = ("a call",)

    session = object.__new__(_Session)
    session._view = View()
    monkeypatch.setattr(_Session, "_ask_about", lambda session, awaited: asked(KeyboardInterrupt))
    assert session._ask(Turn()) is False
    assert "nothing is decided" in capsys.readouterr().err
    monkeypatch.setattr(_Session, "_ask_about", lambda session, awaited: asked(Terminated))
    with pytest.raises(click.Abort):
        session._ask(Turn())
