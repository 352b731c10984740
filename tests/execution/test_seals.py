"""A stored plan counts for exactly what was checked when its run started."""

import pytest
from msgspec import Raw, structs

from stretto.events.codec import decode, encode
from stretto.events.model import ApprovalRequested, Approved, Rejected, RunStarted
from stretto.execution.runs import Runs
from stretto.execution.seals import Seals
from stretto.plan.model import encode_plan
from stretto.problems.errors import PlanNotAccepted
from stretto.vocabulary.names import StepId
from support.driven_runs import RUN, Stage, statuses
from support.recipes import plan_of

GATED = """\
name: gated
steps:
  - {id: a, subagent: researcher, prompt: look}
  - {id: g, subagent: writer, gate: human, depends_on: [a], prompt: go}
"""
SEALS = Seals(lambda: b"s" * 32)


def edited(plan: Raw) -> Raw:
    text = bytes(plan).replace(b'"is_gated":true', b'"is_gated":false')
    assert text != bytes(plan)
    return Raw(text)


def started(**changed: object) -> RunStarted:
    plan = plan_of(GATED)
    event = RunStarted(
        3, "run-1", plan.name, plan.digest, encode_plan(plan), {"n": 1.5, "t": "ü"}, 7,
        model="openai:x", workspace="/w", project="/p", trusted="d",
    )  # fmt: skip
    return structs.replace(event, **changed)  # type: ignore[arg-type]


def test_a_seal_holds_after_the_journal() -> None:
    read = decode(encode(SEALS.seal(started())))
    assert isinstance(read, RunStarted)
    SEALS.check(read)


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "run-2"},
        {"workflow": "other"},
        {"digest": "0"},
        {"plan": edited(encode_plan(plan_of(GATED)))},
        {"inputs": {"n": 2}},
        {"seed": 8},
        {"parent": "run-0"},
        {"model": "cli:sh"},
        {"workspace": "/etc"},
        {"project": "/elsewhere"},
        {"trusted": ""},
        {"at": 4.0},
        {"seal": ""},
        {"seal": "1:00"},
        {"seal": "é"},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_any_change_of_what_a_run_began_with_breaks_its_seal(change: dict[str, object]) -> None:
    changed = structs.replace(SEALS.seal(started()), **change)  # type: ignore[arg-type]
    assert changed != SEALS.seal(started())
    with pytest.raises(PlanNotAccepted) as refused:
        SEALS.check(changed)
    assert SEALS.fingerprint(changed) in refused.value.hint


def test_another_users_seal_does_not_count() -> None:
    with pytest.raises(PlanNotAccepted):
        SEALS.check(Seals(lambda: b"o" * 32).seal(started()))


def test_what_a_person_accepts_is_exactly_what_was_shown() -> None:
    before = structs.replace(started(), seal="")
    mark = SEALS.fingerprint(before)
    Seals(lambda: b"s" * 32, frozenset([mark])).check(before)
    with pytest.raises(PlanNotAccepted):
        Seals(lambda: b"s" * 32, frozenset([mark])).check(structs.replace(before, model="cli:sh"))


def test_a_plan_is_stored_as_the_codec_writes_it_again() -> None:
    """The seal is over the text, so reading a row and writing it again must not change the text."""
    plan = encode_plan(plan_of(GATED))
    read = decode(encode(started()))
    assert isinstance(read, RunStarted)
    assert bytes(read.plan) == bytes(plan)


def test_a_tampered_plan_is_not_resumed_and_nothing_runs() -> None:
    stage = Stage(GATED)

    def runs() -> Runs:
        return Runs(stage.store, stage.clock, seals=SEALS)

    stage.do(stage.starting(runs()))
    first = stage.journal()[0]
    assert isinstance(first, RunStarted)
    rows = [structs.replace(first, plan=edited(first.plan)), *stage.journal()[1:]]
    other = Stage(GATED)

    async def left() -> None:
        fence = await other.store.lease(RUN, "somebody", 60)
        await other.store.append(RUN, rows, fence=fence)
        await other.store.release(RUN, fence=fence)

    other.do(left())
    again = Runs(other.store, other.clock, seals=SEALS)
    with pytest.raises(PlanNotAccepted):
        other.do(again.resume(RUN, other.runner))
    assert other.runner.begun == []
    history = other.do(again.history(RUN))  # it can still be read
    assert statuses(history.state)["a"] == "succeeded"
    assert other.do(again.is_driven(RUN)) is False  # and its lease is free


APPROVED = Approved(1.0, StepId("g"), "ada", key="k", decision="d")


def test_an_approval_holds_for_its_run_and_its_content_whenever_it_is_written_down() -> None:
    given = SEALS.seal_decision("run-1", APPROVED)
    read = decode(encode(structs.replace(given, at=9.0)))
    assert isinstance(read, Approved)
    assert SEALS.is_given("run-1", read)
    SEALS.check(SEALS.seal(started()), [read])
    for forged in (
        APPROVED,
        structs.replace(given, step=StepId("h")),
        structs.replace(given, key="other"),
        structs.replace(given, by="bob"),
        structs.replace(given, prompts={"": "do harm"}),
    ):
        assert not SEALS.is_given("run-1", forged)
        with pytest.raises(PlanNotAccepted, match="approval"):
            SEALS.check(SEALS.seal(started()), [forged])
    assert not SEALS.is_given("run-2", given)


REJECTED = Rejected(1.0, StepId("g"), "ada", key="k", decision="d")


def test_a_rejection_holds_for_its_run_and_its_content_and_is_no_approval() -> None:
    given = SEALS.seal_decision("run-1", REJECTED)
    read = decode(encode(structs.replace(given, at=9.0)))
    assert isinstance(read, Rejected)
    SEALS.check(SEALS.seal(started()), [read])
    approved = SEALS.seal_decision("run-1", APPROVED)
    for forged in (
        REJECTED,
        structs.replace(given, step=StepId("h")),
        structs.replace(given, reason="because"),
        structs.replace(REJECTED, seal=approved.seal),
    ):
        with pytest.raises(PlanNotAccepted, match="a rejection of"):
            SEALS.check(SEALS.seal(started()), [forged])
    with pytest.raises(PlanNotAccepted, match="an approval of g"):
        SEALS.check(SEALS.seal(started()), [structs.replace(APPROVED, seal=given.seal)])
    assert not SEALS.is_given("run-2", given)


def test_who_accepts_a_start_does_not_accept_approvals_that_come_later() -> None:
    mark = SEALS.fingerprint(started())
    accepting = Seals(lambda: b"s" * 32, frozenset([mark]))
    accepting.check(started())
    accepting.check(started(), [SEALS.seal_decision("run-1", APPROVED)])
    with pytest.raises(PlanNotAccepted):
        accepting.check(started(), [APPROVED])


@pytest.mark.parametrize("kind", [Approved, Rejected])
def test_a_decision_that_somebody_else_posted_does_not_count(
    kind: type[Approved] | type[Rejected], caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(GATED)
    runs = Runs(stage.store, stage.clock, seals=SEALS)
    assert statuses(stage.do(stage.starting(runs)))["g"] == "waiting"
    (asked,) = [each for each in stage.journal() if isinstance(each, ApprovalRequested)]
    stage.do(stage.store.send(RUN, kind(0.0, StepId("g"), "mallory", key=asked.key)))
    again = Runs(stage.store, stage.clock, seals=SEALS)
    assert statuses(stage.do(again.resume(RUN, stage.runner)))["g"] == "waiting"
    assert caplog.text.count("of g that you did not give") == 1
    (warning,) = stage.do(again.history(RUN)).state.warnings  # and it is on record
    assert "of g that you did not give" in warning
    assert stage.do(stage.store.pending()) == []
    stage.do(again.decide(RUN, StepId("g"), True, "ada"))
    assert statuses(stage.do(again.resume(RUN, stage.runner)))["g"] == "succeeded"


def test_a_seal_that_is_no_text_is_only_a_wrong_one() -> None:
    assert not SEALS.is_given("run-1", structs.replace(APPROVED, seal="\ud800"))
    with pytest.raises(PlanNotAccepted):
        SEALS.check(started(seal="\ud800"))


def test_a_rejection_by_the_user_counts_and_can_be_resumed() -> None:
    stage = Stage(GATED)
    runs = Runs(stage.store, stage.clock, seals=SEALS)
    stage.do(stage.starting(runs))
    stage.do(runs.decide(RUN, StepId("g"), False, "ada", "no"))
    runs.check(stage.do(runs.history(RUN)))
    assert statuses(stage.do(runs.resume(RUN, stage.runner)))["g"] == "failed"
