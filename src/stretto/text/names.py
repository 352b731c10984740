"""Guess which name was meant, and list names for a hint."""

from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str | None:
    # difflib is imported only once something is wrong: a good file should not pay for it.
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in known if candidate != name}
    lowered = name.lower()
    squeezed = {key.replace("-", "").replace("_", ""): key for key in by_lower}
    same_letters = squeezed.get(lowered.replace("-", "").replace("_", ""))
    if same_letters is not None:
        return by_lower[same_letters]
    # Very long names are nobody's slip, and comparing them is quadratic.
    if len(name) > 64:
        return None
    found = get_close_matches(lowered, [key for key in by_lower if len(key) <= 64], 1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint for a misspelt name, or None when nothing is near."""
    guess = closest(name, known)
    return f"did you mean '{guess}'?" if guess else None


def listed(names: Iterable[str], most: int = 8) -> str:
    """`a, b, c and 4 more`, for hints that say what there is."""
    all_names = list(names)
    shown = ", ".join(all_names[:most])
    return f"{shown} and {len(all_names) - most} more" if len(all_names) > most else shown
