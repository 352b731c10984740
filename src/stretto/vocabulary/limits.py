"""How much a recipe may ask for, decided before any model is called (RECIPES §8)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The user's own config may raise these; a recipe or an untrusted project may not."""

    text_bytes: int = 1024 * 1024
    depth: int = 64
    nodes: int = 50_000
    steps: int = 500
    map_items: int = 1_000
    map_items_ceiling: int = 10_000
    branches: int = 16


DEFAULT_LIMITS = Limits()
