"""What a run may cost: the recipe's budget and the user's, whichever is less."""

from stretto.recipe.model import Budget


def stricter(recipe: Budget, settings: Budget) -> Budget:
    return Budget(
        tokens=_less_count(recipe.tokens, settings.tokens),
        usd=_less(recipe.usd, settings.usd),
        agents=_less_count(recipe.agents, settings.agents),
    )


def _less(one: float | None, other: float | None) -> float | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _less_count(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)
