"""Do two steps ever work on one file when they may not? Exit 1 if they do, or if a run hangs.

    python benchmarks/overlaps.py [--plans 10000] [--seed N] [--a-workspace 10]

Random plans are driven to their end by the real scheduler, over random workspaces with links to
files, folders and links, in circles and out, half of them where case does not count. At every
moment the files of the steps at work are compared, each file as the file system knows it. As a
control each plan is driven again with the names in its sets alone: that must go wrong sometimes,
or the check would see nothing.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from itertools import combinations
from pathlib import Path
from random import Random

from overlaps_drive import Drawn, draw_plan, drive
from overlaps_scene import make_scene

from stretto.plan.model import Plan, decode_plan, encode_plan
from stretto.plan.prepare import RunPolicy, claimed_sets, prepare
from stretto.workspaces.links import aliases_of_sets


def measure(plans: int, seed: int, a_workspace: int) -> Counter[str]:
    luck, counted = Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        # Files are known by their own path, so ours must be one.
        root = Path(folder).resolve()
        while counted["plans"] < plans:
            number = counted["workspaces"]
            # One after the other, so that half of the plans run where case does not count.
            scene = make_scene(luck, root / str(number), is_case_ignored=number % 2 == 1)
            counted["workspaces"] += 1
            counted["links"] += scene.links
            where = "case" if scene.is_case_ignored else "links"
            for _ in range(min(a_workspace, plans - counted["plans"])):
                drawn = draw_plan(luck, scene)
                begun = time.perf_counter()
                sets = claimed_sets(drawn.plan)
                links = aliases_of_sets(scene.root, sets, is_case_ignored=scene.is_case_ignored)
                claimed = prepare(drawn.plan, RunPolicy(), links)
                counted["µs"] += round((time.perf_counter() - begun) * 1e6)
                _count(counted, drawn, claimed, luck.getrandbits(32), where)
    return counted


def _count(counted: Counter[str], drawn: Drawn, claimed: Plan, seed: int, where: str) -> None:
    resumed = decode_plan(encode_plan(claimed))
    counted["claims lost in the journal"] += resumed != claimed
    seen, control = drive(drawn, resumed, Random(seed)), drive(drawn, drawn.plan, Random(seed))
    counted["plans"] += 1
    counted["steps"] += len(drawn.tasks)
    counted["moments"] += seen.moments
    counted["overlaps"] += len(seen.overlaps)
    counted["deadlocks"] += not seen.has_ended
    counted["at once"] += seen.most_at_once
    counted["at once, control"] += control.most_at_once
    counted[f"control, {where}"] += len(control.overlaps)
    pairs = list(combinations(sorted(claimed.steps, key=lambda step: step.id), 2))
    counted["pairs"] += len(pairs)
    counted["pairs by files"] += len(drawn.rivals)
    by_claims = {(a.id, b.id) for a, b in pairs if a.claims.conflicts(b.claims)}
    counted["pairs by claims"] += len(by_claims)
    counted["pairs that claims miss"] += len(drawn.rivals - by_claims)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--plans", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--a-workspace", type=int, default=10, help="plans in each workspace")
    asked = parser.parse_args()
    begun = time.monotonic()
    counted = measure(asked.plans, asked.seed, asked.a_workspace)
    seconds = time.monotonic() - begun
    plans = counted["plans"]
    for what, figure in (
        ("plans", plans),
        ("workspaces", counted["workspaces"]),
        ("links", counted["links"]),
        ("steps", counted["steps"]),
        ("moments checked", counted["moments"]),
        ("overlaps", counted["overlaps"]),
        ("deadlocks", counted["deadlocks"]),
        ("claims lost in the journal", counted["claims lost in the journal"]),
        ("overlaps without aliases, links", counted["control, links"]),
        ("overlaps without aliases, links and case", counted["control, case"]),
        ("pairs of steps", counted["pairs"]),
        ("pairs that conflict, by files", counted["pairs by files"]),
        ("pairs that conflict, by claims", counted["pairs by claims"]),
        ("pairs by files that claims miss", counted["pairs that claims miss"]),
    ):
        print(f"{what:<42}{figure:>10,}")
    print(f"{'most steps at once, mean':<42}{counted['at once'] / plans:>10.2f}")
    print(
        f"{'most steps at once without aliases, mean':<42}{counted['at once, control'] / plans:>10.2f}"
    )
    print(f"{'ms to find the aliases of a plan, mean':<42}{counted['µs'] / plans / 1000:>10.2f}")
    print(f"{'seconds':<42}{seconds:>10.1f}")
    bad = counted["overlaps"] + counted["deadlocks"] + counted["pairs that claims miss"]
    bad += counted["claims lost in the journal"]
    is_blind = not (counted["control, links"] and counted["control, case"])
    return 1 if bad or is_blind else 0


if __name__ == "__main__":
    sys.exit(main())
