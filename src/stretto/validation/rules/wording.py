"""How an amount is said in a reason."""

from stretto.validation.rules.checks import Amount


def bounds(amount: Amount) -> str:
    """For a value: "between 0 and 100", "of at least 3"."""
    if amount.least is not None and amount.least == amount.most:
        return f"equal to {_number(amount.least)}"
    if amount.least is not None and amount.most is not None:
        ends = " (exclusive)" if amount.is_open_below or amount.is_open_above else ""
        return f"between {_number(amount.least)} and {_number(amount.most)}{ends}"
    if amount.least is not None:
        return f"{'above' if amount.is_open_below else 'of at least'} {_number(amount.least)}"
    assert amount.most is not None
    return f"{'below' if amount.is_open_above else 'of at most'} {_number(amount.most)}"


def quantity(amount: Amount) -> str:
    """For things: "exactly 3", "between 3 and 5"."""
    if amount.least is not None and amount.least == amount.most:
        return f"{'' if amount.is_bare else 'exactly '}{_number(amount.least)}"
    if amount.least is not None and amount.most is not None:
        return f"between {_number(amount.least)} and {_number(amount.most)}"
    if amount.least is not None:
        return f"{'more than' if amount.is_open_below else 'at least'} {_number(amount.least)}"
    assert amount.most is not None
    return f"{'fewer than' if amount.is_open_above else 'at most'} {_number(amount.most)}"


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)
