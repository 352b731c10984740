"""How much a recipe may ask for, decided before any model is called."""

from msgspec import Struct


class Limits(Struct, frozen=True):
    """The user's own config may raise these; a recipe or an untrusted project may not."""

    text_bytes: int = 1024 * 1024
    depth: int = 64
    nodes: int = 50_000
    steps: int = 500
    map_items: int = 1_000
    map_items_ceiling: int = 10_000
    branches: int = 16


DEFAULT_LIMITS = Limits()
MOST_LEVELS = 8  # recipes that stand in one another, the outermost one included


class Retention(Struct, frozen=True):
    """What is kept of the runs that have ended. None: all of them."""

    runs: int | None = None  # the newest ones
    age_seconds: float | None = None  # since their end

    @property
    def is_limited(self) -> bool:
        return self.runs is not None or self.age_seconds is not None


KEEP_ALL = Retention()
