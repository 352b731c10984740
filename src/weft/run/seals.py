"""Seals on what a run began with. In: RunStarted and the user's secret. Out: a MAC, or a refusal.

A plan is checked when its run starts; whoever drives the run later takes it from the journal. The
seal says that it is still the same, and the inputs, the folder and the model with it (DESIGN, rule
12). It covers RunStarted and nothing else: what steps answered can be edited unnoticed
(docs/decisions/0013).
"""

import hmac
import json
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from hashlib import sha256

from weft.events.model import RunStarted
from weft.problems.errors import PlanNotAccepted

_VERSION = "1"
_FINGERPRINT_LETTERS = 16


class Seals:
    """`accepted`: fingerprints of what a person has read and takes as it is."""

    def __init__(self, secret: Callable[[], bytes], accepted: frozenset[str] = frozenset()) -> None:
        self._secret = secret
        self._accepted = accepted

    def seal(self, started: RunStarted) -> RunStarted:
        return replace(started, seal=self._mac(started))

    def check(self, started: RunStarted) -> None:
        """Raises PlanNotAccepted."""
        if hmac.compare_digest(started.seal.encode(), self._mac(started).encode()):
            return
        if fingerprint(started) in self._accepted:
            return
        raise _refusal(started)

    def _mac(self, started: RunStarted) -> str:
        return f"{_VERSION}:{hmac.new(self._secret(), _covered(started), sha256).hexdigest()}"


def fingerprint(started: RunStarted) -> str:
    """Names exactly this beginning of a run, for a person who accepts it."""
    return sha256(_covered(started)).hexdigest()[:_FINGERPRINT_LETTERS]


def _covered(started: RunStarted) -> bytes:
    # A field at its default is left out: seals hold when a later Weft adds another field.
    head = {
        field.name: getattr(started, field.name)
        for field in fields(started)
        if field.name not in ("at", "plan", "seal")
        and (field.default is MISSING or getattr(started, field.name) != field.default)
    }
    # JSON without line breaks, so nothing can move between the two halves.
    text = json.dumps({**head, "at": float(started.at)}, sort_keys=True)
    return f"{text}\n{started.plan}".encode()


def _refusal(started: RunStarted) -> PlanNotAccepted:
    run = started.run_id
    if started.seal:
        said = f"what run {run} began with was changed since: its plan, its inputs or its folder"
    else:
        said = f"the stored plan of run {run} has no seal: an older Weft wrote it, or somebody else"
    hint = (
        f"read it with: weft plan --run {run}; go on with exactly that: "
        f"weft resume {run} --accept-plan {fingerprint(started)}; "
        f"or start from a recipe that you know: weft retry {run} --recipe FILE"
    )
    return PlanNotAccepted(said, hint=hint)
