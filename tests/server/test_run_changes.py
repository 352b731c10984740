"""What clients of one server are told of a run, each since its own last answer."""

from typing import Any

from stretto.server.run_changes import RunAnswers


def whole(status: str, cursor: int = 41) -> dict[str, Any]:
    return {
        "ok": True,
        "run_id": "r",
        "cursor": cursor,
        "status": status,
        "inputs": {"topic": "tea"},
        "steps": {"a": {"status": status}, "b": {"status": "pending"}},
        "standing": {"says": status, "steps": {}},
    }


def test_a_change_without_an_event_is_told_to_every_client_that_asks() -> None:
    answers = RunAnswers()
    answers.note(whole("running"))
    interrupted = whole("interrupted")
    for _ in range(3):
        told = answers.changes(interrupted, 41, [])
        assert (told["status"], told["steps"]) == ("interrupted", {"a": {"status": "interrupted"}})
        assert "inputs" not in told


def test_a_client_that_has_loaded_the_run_hides_no_change_from_another() -> None:
    answers = RunAnswers()
    answers.note(whole("running"))
    answers.note(whole("interrupted"))
    assert answers.changes(whole("interrupted"), 41, [])["status"] == "interrupted"


def test_what_is_the_same_in_all_answers_is_told_once() -> None:
    answers = RunAnswers()
    answers.note(whole("running"))
    answers.note(whole("running"))
    told = answers.changes(whole("running", cursor=42), 41, [])
    assert (told["since"], told["steps"]) == (41, {})
    assert not {"status", "inputs"} & told.keys()
