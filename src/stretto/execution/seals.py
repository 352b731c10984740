"""Seals on what a run began with and on what a person decided: MACs with the user's secret.

A plan is checked when its run starts; whoever drives the run later takes it from the journal. The
seal says that it is still the same, and the inputs, the folder and the model with it (DESIGN, rule
12). A decision is sealed too. Nothing else is: what steps answered can be edited unnoticed
(docs/decisions/0013).
"""

import hmac
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TypeVar

from msgspec import structs, to_builtins

from stretto.events.model import Approved, RunStarted
from stretto.execution.decisions import DecisionEvent
from stretto.problems.errors import PlanNotAccepted
from stretto.text.names import listed

_VERSION = "1"
_FINGERPRINT_LETTERS = 16
_Decided = TypeVar("_Decided", bound=DecisionEvent)


class Seals:
    """`accepted`: fingerprints of plans without a valid seal that a person has read and accepts."""

    def __init__(self, secret: Callable[[], bytes], accepted: frozenset[str] = frozenset()) -> None:
        self._secret = secret
        self._accepted = accepted

    def seal(self, started: RunStarted) -> RunStarted:
        return structs.replace(started, seal=self._mac(_start(started)))

    def seal_decision(self, run_id: str, decided: _Decided) -> _Decided:
        return structs.replace(decided, seal=self._mac(_decision(run_id, decided)))

    def is_given(self, run_id: str, decided: DecisionEvent) -> bool:
        """Whether this user gave the decision, for this run and as it stands."""
        return self._holds(decided.seal, _decision(run_id, decided))

    def check(self, started: RunStarted, decisions: Iterable[DecisionEvent] = ()) -> None:
        """Raises PlanNotAccepted."""
        is_sealed = self._holds(started.seal, _start(started))
        forged = self._forged(started, decisions)
        if is_sealed and not forged:
            return
        mark = _fingerprint(started, forged)
        if mark not in self._accepted:
            raise _refusal(started, is_sealed, forged, mark)

    def fingerprint(self, started: RunStarted, decisions: Iterable[DecisionEvent] = ()) -> str:
        """Names exactly this beginning of a run, and the decisions that have no seal, for a person
        who accepts them."""
        return _fingerprint(started, self._forged(started, decisions))

    def _forged(
        self, started: RunStarted, decisions: Iterable[DecisionEvent]
    ) -> list[DecisionEvent]:
        return [each for each in decisions if not self.is_given(started.run_id, each)]

    def _holds(self, seal: str, covered: bytes) -> bool:
        return hmac.compare_digest(seal.encode(), self._mac(covered).encode())

    def _mac(self, covered: bytes) -> str:
        return f"{_VERSION}:{hmac.new(self._secret(), covered, sha256).hexdigest()}"


def _fingerprint(started: RunStarted, forged: Iterable[DecisionEvent]) -> str:
    covered = [_start(started), *(_decision(started.run_id, each) for each in forged)]
    return sha256(b"\n".join(covered)).hexdigest()[:_FINGERPRINT_LETTERS]


def _start(started: RunStarted) -> bytes:
    head = {**_written(started, "plan"), "at": float(started.at)}
    # JSON without line breaks, so nothing can move between the two halves.
    return _canonical(head) + b"\n" + bytes(started.plan)


def _decision(run_id: str, decided: DecisionEvent) -> bytes:
    # Without its time, which the driver sets when it journals the decision.
    return _canonical({**_written(decided), "type": decided.type, "of": run_id})


def _canonical(value: Mapping[str, object]) -> bytes:
    return json.dumps(to_builtins(value), sort_keys=True).encode()


def describe_decision(decided: DecisionEvent) -> str:
    verdict = "an approval" if isinstance(decided, Approved) else "a rejection"
    return f"{verdict} of {decided.step}"


def _written(event: RunStarted | DecisionEvent, *besides: str) -> dict[str, object]:
    # A field at its default is left out: seals hold when a later Stretto adds another field.
    return {
        field.name: getattr(event, field.name)
        for field in structs.fields(event)
        if field.name not in ("at", "seal", *besides)
        and getattr(event, field.name) != field.default
    }


def _refusal(
    started: RunStarted, is_sealed: bool, forged: Sequence[DecisionEvent], mark: str
) -> PlanNotAccepted:
    run = started.run_id
    if is_sealed:
        what = listed(dict.fromkeys(describe_decision(each) for each in forged))
        said = f"the journal of run {run} holds {what} that you did not give"
    elif started.seal:
        said = f"what run {run} began with was changed since: its plan, its inputs or its folder"
    else:
        said = f"the stored plan of run {run} has no seal: another version of Stretto or another user wrote it"
    hint = (
        f"read it with: stretto plan --run {run}; go on with exactly that: "
        f"stretto resume {run} --accept-plan {mark}; "
        f"or start from a recipe that you know: stretto retry {run} --recipe FILE"
    )
    return PlanNotAccepted(said, hint=hint)
