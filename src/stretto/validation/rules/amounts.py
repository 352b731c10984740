"""Numbers and bounds. In: "at least 3", "between 0 and 100", "2-3". Out: an Amount, or None."""

from dataclasses import replace

from stretto.validation.rules.checks import Amount
from stretto.validation.rules.lexicon import POWERS, SMALL_NUMBERS, TENS
from stretto.validation.rules.reader import Reader

_EXACTLY = ("exactly", "precisely", "only", "just", "equal to", "=", "==", "exactly equal to")
_LEAST = ("at least", "a minimum of", "minimum", "minimum of", "min", "no fewer than",
          "no less than", "not fewer than", "not less than", ">=", "≥", "no shorter than",
          "greater than or equal to", "more than or equal to")  # fmt: skip
_MOST = ("at most", "a maximum of", "maximum", "maximum of", "max", "no more than",
         "not more than", "up to", "<=", "≤", "no longer than", "no greater than",
         "no higher than", "less than or equal to", "fewer than or equal to")  # fmt: skip
_ABOVE = ("more than", "greater than", "over", "above", "higher than", "longer than", ">")
_BELOW = ("less than", "fewer than", "under", "below", "lower than", "shorter than", "<")
_RANGE = ("in the range of", "in the range", "in range", "within the range", "within",
          "on a scale of", "on a scale from", "from", "between", "in the range from",
          "in the range between", "within the range of")  # fmt: skip
_DASHES = ("-", "–", "—")


def amount(reader: Reader) -> Amount | None:
    """Also two bounds in one: "at least 3 but no more than 5"."""
    found = reader.attempt(_one)
    if found is None or found.most is not None or found.least is None:
        return found
    return reader.attempt(lambda reader: _upper(reader, found)) or found


def _upper(reader: Reader, lower: Amount) -> Amount | None:
    if not reader.take("and", "but"):
        return None
    upper = _one(reader)
    if upper is None or upper.least is not None or upper.most is None:
        return None
    both = replace(upper, least=lower.least, is_open_below=lower.is_open_below)
    return both if lower.least is not None and lower.least <= upper.most else None


def _one(reader: Reader) -> Amount | None:
    return reader.first(_bounded, _range, _plain)


def _bounded(reader: Reader) -> Amount | None:
    if reader.take("a single", "one single"):
        return Amount(1, 1)
    forms = ((_EXACTLY, "="), (_LEAST, ">="), (_MOST, "<="), (_ABOVE, ">"), (_BELOW, "<"))
    # The longest wording wins over all of them: "no more than" is not "more than".
    word = reader.take(*(word for words, _ in forms for word in words))
    sign = next((sign for words, sign in forms if word in words), None)
    bound = number(reader)
    if sign is None or bound is None:
        return None
    match sign:
        case "=":
            return Amount(bound, bound)
        case ">=":
            return Amount(least=bound)
        case "<=":
            return Amount(most=bound)
        case ">":
            return Amount(least=bound, is_open_below=True)
        case _:
            return Amount(most=bound, is_open_above=True)


def _range(reader: Reader) -> Amount | None:
    if not reader.take(*_RANGE):
        return None
    low = number(reader)
    if low is None or not reader.take("and", "to", "through", *_DASHES):
        return None
    return _closed(low, number(reader), reader)


def _plain(reader: Reader) -> Amount | None:
    low = number(reader)
    if low is None:
        return None
    if reader.take("or more", "or greater", "or higher", "or above", "and above"):
        return Amount(least=low)
    if reader.take("or fewer", "or less", "or lower", "or below", "and below"):
        return Amount(most=low)
    if reader.take("to", *_DASHES):
        return _closed(low, number(reader), reader)
    return Amount(low, low, is_bare=True)


def _closed(low: float, high: float | None, reader: Reader) -> Amount | None:
    if high is None or low > high:
        return None
    is_open = bool(reader.take("exclusive", "( exclusive )", ", exclusive"))
    if not is_open:
        reader.take("inclusive", "( inclusive )", ", inclusive", "inclusively")
    return Amount(low, high, is_open_below=is_open, is_open_above=is_open)


def number(reader: Reader) -> float | None:
    token = reader.peek()
    if token.kind == "number":
        reader.next()
        written = token.text.replace(",", "")
        return float(written) if "." in written else int(written)
    return reader.attempt(_spelled)


def _spelled(reader: Reader) -> float | None:
    """Up to nine hundred and ninety-nine thousand, as far as rules go: two hundred, fifty-five."""
    base = 1 if reader.peek().low == "a" and reader.peek(1).low in POWERS else None
    if base is not None:
        reader.next()
    else:
        base = _below_hundred(reader)
    if base is None:
        return None
    while reader.peek().low in POWERS:
        base *= POWERS[reader.next().low]
    return base


def _below_hundred(reader: Reader) -> int | None:
    tens, _, ones = reader.peek().low.partition("-")
    if tens in SMALL_NUMBERS and not ones:
        reader.next()
        return SMALL_NUMBERS[tens]
    if tens not in TENS or (ones and ones not in SMALL_NUMBERS):
        return None
    reader.next()
    if not ones and 0 < SMALL_NUMBERS.get(reader.peek().low, 0) < 10:
        ones = reader.next().low
    return TENS[tens] + (SMALL_NUMBERS[ones] if ones else 0)
