"""What has changed in a run since a client last asked. In: the run as it stands. Out: the difference.

A page that shows a run of five hundred steps asks several times a second. Only digests of the last
answers are kept here; a client whose last answer is forgotten, or came from another worker, gets all of it.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

_MOST_ANSWERS = 64
_APART = ("steps", "standing")  # told by their steps
_Digests = dict[str, bytes]


class RunAnswers:
    """The digests of the last answers, by their run and their cursor: of what was the same in all answers
    with that cursor."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, int], _Digests] = OrderedDict()

    def note(self, whole: Mapping[str, Any]) -> None:
        """The run was told as it stands."""
        self._keep(whole, _digests(whole))

    def changes(self, whole: Mapping[str, Any], since: int, touched: Iterable[str]) -> Any:
        """What is otherwise than at the cursor `since`; all, where that is not known. `touched`: steps
        that have new events, whatever their report says."""
        before, now = self._told.get((whole["run_id"], since)), _digests(whole)
        self._keep(whole, now)
        if before is None:
            return {**whole, "since": 0, "touched": list(whole["steps"])}
        changed = {key for key, digest in now.items() if before.get(key) != digest}
        steps = [id for id in whole["steps"] if f"step {id}" in changed]
        standing = whole["standing"]
        return {
            **{key: value for key, value in whole.items() if key in changed},
            "ok": whole["ok"],
            "run_id": whole["run_id"],
            "cursor": whole["cursor"],
            "since": since,
            "touched": sorted({*steps, *touched}),
            "steps": {id: whole["steps"][id] for id in steps},
            "standing": {**standing, "steps": _some(standing["steps"], steps)},
        }

    def _keep(self, whole: Mapping[str, Any], digests: _Digests) -> None:
        key = (whole["run_id"], whole["cursor"])
        told = self._told.pop(key, digests)  # and in again as the last: threads share this
        # Without an event a run still changes when its driver dies. Which of two answers a client has
        # is not known, so where they differ it is told again.
        self._told[key] = {part: it for part, it in digests.items() if told.get(part) == it}
        while len(self._told) > _MOST_ANSWERS:
            self._told.popitem(last=False)


def _some(by_step: Mapping[str, Any], steps: Iterable[str]) -> dict[str, Any]:
    return {id: by_step[id] for id in steps if id in by_step}


def _digests(whole: Mapping[str, Any]) -> _Digests:
    standing = whole["standing"]["steps"]
    found = {key: _digest(value) for key, value in whole.items() if key not in _APART}
    for id, step in whole["steps"].items():
        found[f"step {id}"] = _digest([step, standing.get(id)])
    return found


def _digest(value: object) -> bytes:
    return blake2b(json.dumps(value).encode(), digest_size=12).digest()
