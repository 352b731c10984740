"""What the branches of a parallel step are called in `outputs` (RECIPES §4)."""

from stretto.recipe.model import Parallel


def branch_keys(work: Parallel) -> list[str]:
    """The written key, else the agent's id, numbered when it is there already."""
    keys: list[str] = []
    written = {branch.output_key for branch in work.branches if branch.output_key}
    for branch in work.branches:
        key = branch.output_key or str(branch.agent or "branch")
        number = 2
        while not branch.output_key and (key in keys or key in written):
            key = f"{branch.agent or 'branch'}_{number}"
            number += 1
        keys.append(key)
    return keys
