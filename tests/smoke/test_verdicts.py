"""Every check can fail: rows of a journal that tell of a broken promise are seen as such."""

from collections.abc import Sequence

from stretto.events.attempts import AttemptId
from stretto.events.codec import UnknownEvent
from stretto.events.model import (
    AttemptFailed,
    AttemptStarted,
    AttemptSucceeded,
    ChangesCollected,
    Event,
    MergeFailed,
    RunEnded,
    RunStarted,
)
from stretto.ports.journal import StoredEvent
from stretto.smoke import verdicts
from stretto.smoke.journal import spans_of
from stretto.vocabulary.names import AgentId, StepId

STEPS = ("a", "b")


def start(step: str, at: float) -> AttemptStarted:
    return AttemptStarted(at, AttemptId(StepId(step), 1), AgentId("x"), "key")


def end(step: str, at: float, output: str = "done") -> AttemptSucceeded:
    return AttemptSucceeded(at, AttemptId(StepId(step), 1), output)


def merge(step: str, at: float, is_merged: bool = True, files: int = 1) -> ChangesCollected:
    return ChangesCollected(at, StepId(step), "", files, 1, 0, is_merged)


def rows(*events: Event) -> list[StoredEvent]:
    return [StoredEvent(seq, event) for seq, event in enumerate(events, 1)]


def side_by_side(*events: Event) -> bool:
    return verdicts.check_overlap("x", rows(*events), STEPS).is_proven


def in_turn(*events: Event, is_strict: bool = False) -> bool:
    return verdicts.check_order("x", rows(*events), STEPS, is_strict).is_proven


def test_steps_that_overlap_are_side_by_side_and_the_overlap_is_measured() -> None:
    journal = rows(start("a", 1.0), start("b", 1.1), end("a", 1.3), end("b", 1.5))
    check = verdicts.check_overlap("x", journal, STEPS)
    assert check.is_proven
    assert check.evidence["overlap_ms"] == 200.0


def test_steps_one_after_the_other_are_not_side_by_side() -> None:
    assert not side_by_side(start("a", 1), end("a", 2), start("b", 2), end("b", 3))


def test_steps_of_which_only_a_merge_overlaps_are_not_side_by_side() -> None:
    assert not side_by_side(
        start("a", 1), end("a", 2), start("b", 2.1), merge("a", 2.5), end("b", 3), merge("b", 4)
    )


def test_rows_that_say_overlap_while_the_times_do_not_prove_nothing() -> None:
    assert not side_by_side(start("a", 1), start("b", 5), end("a", 2), end("b", 6))


def test_a_step_without_an_end_proves_nothing() -> None:
    assert not side_by_side(start("a", 1), start("b", 1), end("a", 2))


def test_an_end_that_stands_before_its_start_is_no_end() -> None:
    journal = rows(end("a", 2), start("a", 1), start("b", 1), end("b", 2))
    assert not spans_of(journal)["a"].has_ended
    assert not verdicts.check_overlap("x", journal, STEPS).is_proven


def test_a_failed_step_is_told_with_its_error() -> None:
    failed = AttemptFailed(2, AttemptId(StepId("a"), 1), "error", "no key")
    check = verdicts.check_overlap(
        "x", rows(start("a", 1), start("b", 1), failed, end("b", 2)), STEPS
    )
    assert not check.is_proven
    assert "no key" in check.says


def test_an_empty_answer_proves_nothing() -> None:
    assert not side_by_side(start("a", 1), start("b", 1), end("a", 2, " "), end("b", 2))


def test_writers_take_turns_when_each_begins_after_the_merge_of_the_other() -> None:
    assert in_turn(
        start("a", 1), end("a", 2), merge("a", 3), start("b", 3), end("b", 4), merge("b", 5)
    )


def test_a_writer_that_begins_before_the_merge_does_not_take_turns() -> None:
    assert not in_turn(
        start("a", 1), end("a", 2), start("b", 2), merge("a", 3), end("b", 4), merge("b", 5)
    )


def test_overlapping_writers_are_seen() -> None:
    assert not in_turn(
        start("a", 1), start("b", 1), end("a", 2), merge("a", 2), end("b", 3), merge("b", 3)
    )


def test_overlapping_times_are_seen_though_the_rows_are_in_order() -> None:
    assert not in_turn(
        start("a", 1), end("a", 2), merge("a", 9), start("b", 3), end("b", 4), merge("b", 10)
    )


def test_writers_out_of_the_order_of_the_recipe_are_seen() -> None:
    assert not in_turn(
        start("b", 1), end("b", 2), merge("b", 3), start("a", 3), end("a", 4), merge("a", 5)
    )


def test_a_writer_whose_change_was_not_merged_does_not_count() -> None:
    assert not in_turn(
        start("a", 1), end("a", 2), merge("a", 3, False), start("b", 3), end("b", 4), merge("b", 5)
    )


def test_a_player_that_did_not_find_the_file_before_it_is_seen() -> None:
    journal = (start("a", 1), end("a", 2), merge("a", 3), start("b", 3))
    assert in_turn(*journal, end("b", 4, "before me: a.txt"), merge("b", 5), is_strict=True)
    assert not in_turn(*journal, end("b", 4, "before me: nothing"), merge("b", 5), is_strict=True)


MERGED = (start("a", 1), end("a", 2), merge("a", 3), start("b", 3), end("b", 4, "it says word"))


def merged(events: Sequence[Event], content: str | None, is_strict: bool = True) -> bool:
    return verdicts.check_merge("x", rows(*events), "a", "b", content, is_strict).is_proven


def test_a_merged_change_is_seen_by_its_dependent() -> None:
    assert merged(MERGED, "word\n")


def test_a_change_that_the_dependent_did_not_see_is_no_merge() -> None:
    assert not merged(MERGED, "another word")
    assert not merged(MERGED, None)


def test_a_dependent_that_ran_before_the_merge_is_seen() -> None:
    early = (start("a", 1), end("a", 2), start("b", 2), merge("a", 3), end("b", 4, "it says word"))
    assert not merged(early, "word")


def test_a_merge_that_failed_is_seen() -> None:
    failed = MergeFailed(3, StepId("a"), "", "it conflicts")
    assert not merged((MERGED[0], MERGED[1], failed, *MERGED[3:]), "word")


def test_a_merge_is_not_proven_by_a_model_that_wrote_nothing() -> None:
    wrote_nothing = (*MERGED[:2], merge("a", 3, files=0), *MERGED[3:])
    assert not merged(wrote_nothing, None, is_strict=False)
    assert not merged(wrote_nothing, None)
    assert not merged(MERGED, None, is_strict=False)  # it wrote, and the file is nowhere


RUN = RunStarted(0, "r", "w", "", {}, {}, 0)
WHOLE = (RUN, start("a", 1), end("a", 2), RunEnded(3, "complete"))


def on_record(stored: list[StoredEvent], read_by: int = 2) -> bool:
    return verdicts.check_journal("x", {"r": stored}, 1, read_by).is_proven


def test_a_whole_journal_that_another_process_read_is_evidence() -> None:
    assert on_record(rows(*WHOLE))


def test_a_journal_read_by_its_writer_is_none() -> None:
    assert not on_record(rows(*WHOLE), read_by=1)


def test_an_empty_journal_is_none() -> None:
    assert not on_record([])
    assert not verdicts.check_journal("x", {}, 1, 2).is_proven


def test_gaps_and_reordered_rows_are_seen() -> None:
    whole = rows(*WHOLE)
    assert not on_record([whole[0], whole[2], whole[1], whole[3]])
    assert not on_record([*whole[:2], whole[3]])


def test_rows_that_cannot_be_read_are_seen() -> None:
    torn = StoredEvent(2, UnknownEvent("{", "is not JSON"))
    assert not on_record([rows(*WHOLE)[0], torn, *rows(*WHOLE)[2:]])


def test_a_run_without_its_start_or_its_end_is_seen() -> None:
    assert not on_record(rows(*WHOLE[1:]))
    assert not on_record(rows(*WHOLE[:-1]))
    assert not on_record(rows(*WHOLE[:-1], RunEnded(3, "partial")))


def test_an_attempt_that_never_ended_is_seen() -> None:
    assert not on_record(rows(RUN, start("a", 1), RunEnded(3, "complete")))


def test_a_bad_recipe_that_is_not_refused_for_every_mistake_is_seen() -> None:
    assert verdicts.check_structure("x", ["B", "A", "A"], ("A", "B"), 3).is_proven
    assert not verdicts.check_structure("x", ["A"], ("A", "B"), 3).is_proven
    assert not verdicts.check_structure("x", ["A", "B"], ("A", "B"), 0).is_proven
