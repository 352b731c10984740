"""Weights at first use. In: a model's name. Out: a Loadable, fetched after a yes if need be."""

from collections.abc import Callable

from stretto.adapters.models.local.catalog import (
    Loadable,
    Weights,
    is_own_file,
    own_file,
    weights_named,
)
from stretto.adapters.models.local.pulling import Watch, pull
from stretto.adapters.models.local.shelf import Shelf, missing

Ask = Callable[[str], bool]


def ensure_weights(
    model: str,
    shelf: Shelf,
    *,
    may_ask: bool,
    may_name_a_file: bool,
    ask: Ask | None = None,
    watch: Watch | None = None,
) -> Loadable:
    """Blocks while it hashes or fetches: call it in a thread from an event loop.

    `may_ask`: there is a person at a terminal. `may_name_a_file`: the name comes from the user
    (a flag, the user's own settings) and not from a project or a recipe.
    """
    if is_own_file(model):
        return own_file(model, may_name_a_file)
    weights = weights_named(model)
    if shelf.state(weights) == "absent":
        if not (may_ask and ask is not None and ask(question(weights))):
            raise missing(weights)
        pull(weights, shelf, watch or _Silent())
    return shelf.take(weights)


def question(weights: Weights) -> str:
    return f"fetch {weights.title} ({weights.megabytes:,} MB)?"


class _Silent:
    def begin(self, doing: str, total_bytes: int) -> None: ...
    def done(self, bytes_so_far: int) -> None: ...
    def say(self, line: str) -> None: ...
