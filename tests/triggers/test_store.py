"""What triggers have fired, on record."""

from dataclasses import replace
from pathlib import Path

from stretto.triggers.arrivals import WINDOW_SECONDS
from stretto.triggers.store import open_triggers
from stretto.triggers.trigger import Trigger, TriggerFire

NOW = 1_800_000_000.0
MANY = 25_000


def fires(number: int, at: float) -> list[TriggerFire]:
    first = TriggerFire("hook", "webhook", "", "", at, at, "started")
    ids = ((n, f"{at}-{n}") for n in range(number))
    return [replace(first, key=id, run_id=id, due_at=at + n / 1000) for n, id in ids]


def test_a_delivery_is_refused_as_long_as_its_time_counts_however_many_came_since(
    tmp_path: Path,
) -> None:
    burst = fires(MANY, NOW)
    with open_triggers(tmp_path, tmp_path) as store:
        store.add(Trigger("hook", "webhook", "greet", hook="h"))
        store.record("hook", burst)
        last = fires(1, NOW + WINDOW_SECONDS)
        assert store.record("hook", last) == last
        again = replace(burst[0], run_id="another", at=NOW + WINDOW_SECONDS)
        assert store.record("hook", [again]) == []


def test_old_fires_are_forgotten(tmp_path: Path) -> None:
    with open_triggers(tmp_path, tmp_path) as store:
        store.add(Trigger("hook", "webhook", "greet", hook="h"))
        store.record("hook", fires(MANY, NOW))
        store.record("hook", fires(1, NOW + 86_400))
        assert len(store.fires("hook", limit=2 * MANY)) < MANY
