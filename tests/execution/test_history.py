"""A run as its journal tells it."""

import pytest

from stretto.events.codec import UnknownEvent
from stretto.execution.history import fold, load
from stretto.ports.journal import StoredEvent
from stretto.problems.errors import StrettoError
from stretto.vocabulary.statuses import RunStatus
from support.driven_runs import RUN, Stage
from support.recipes import flat

RECIPE = flat("{id: a, subagent: researcher, prompt: x}", "{id: b, subagent: writer, prompt: y}")


def test_the_fold_of_a_journal_is_the_state_its_driver_had() -> None:
    stage = Stage(RECIPE, "default: ok\nreplies: {b: {fail: broken}}")
    driven = stage.start()
    history = stage.do(load(stage.store, RUN))
    assert history.state.status is driven.status is RunStatus.PARTIAL
    # By their repr, which shows every field: a record of a run equals none but itself.
    assert repr(history.state.values) == repr(driven.values)
    assert history.last_seq == len(history.events) == len(stage.journal())


def test_rows_that_cannot_be_read_are_passed_over_and_counted() -> None:
    stage = Stage(RECIPE)
    stage.start()
    rows = stage.do(stage.store.read(RUN))
    rows.insert(2, StoredEvent(99, UnknownEvent("{", "is torn")))
    history = fold(rows, RUN)
    assert history.state.status is RunStatus.COMPLETE
    assert any("1 rows of the journal cannot be read" in text for text in history.state.warnings)


def test_a_journal_without_its_start_is_an_error_that_says_so() -> None:
    stage = Stage(RECIPE)
    stage.start()
    rows = stage.do(stage.store.read(RUN))
    with pytest.raises(StrettoError, match="does not begin with its start"):
        fold(rows[1:], RUN)
