"""What went wrong with a chat completion: an HTTP status, an error among the chunks, the network.

unavailable   it cannot answer now, and the same request may be answered soon: limits, outages,
              no connection, a connection that broke off, an answer that was garbled on its way
permanent     no request to it will be answered until somebody does something: a key, a credit, the
              model's name, its address
timeout       it did not answer in time
refused       it will not answer this, however often it is asked
error         what came back is wrong
"""

import json
import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import isnan

import httpcore2

from stretto.adapters.models.endpoint import Endpoint
from stretto.events.model import FailureKind
from stretto.ports.model import ModelFailed, ModelFault
from stretto.vocabulary.json_value import Json

LONGEST_FAULT = 1_000
_EXCERPT_LETTERS = 600
# What a provider's code means, whatever the status beside it: the status that says the same.
_MEANT = {
    **dict.fromkeys(("insufficient_quota", "billing_hard_limit_reached", "billing_not_active",
                     "exceeded_current_quota_error", "insufficient_balance", "insufficient_credits"), 402),
    "invalid_api_key": 401,
    "model_not_found": 404,
    **dict.fromkeys(("context_length_exceeded", "exceed_context_size_error", "string_above_max_length"), 413),
}  # fmt: skip
# Some say the same in words alone.
_KEY_WORDS = re.compile(r"\b(?:incorrect|invalid|expired) api key|api key (?:not valid|expired|is invalid)", re.I)  # fmt: skip
_CREDIT_WORDS = re.compile(
    r"\bcredit balance is too low|\binsufficient (?:credits?|balance|funds)\b"
    r"|\breached your (?:specified )?(?:API )?usage limits?\b|\benable billing\b",
    re.I,
)
_ACCESS_WORDS = re.compile(
    r"\borgani[sz]ation has been disabled\b|\b(?:location|country|region|territory) (?:is )?not supported\b",
    re.I,
)
_MODEL_WORDS = re.compile(
    r"\bmodel ['\"`]?[\w./:@-]{1,100}['\"`]? (?:was )?(?:not found|does not exist)"
    r"|\b(?:unknown|invalid|no such) model\b|\bmodel not found|\bno models? loaded\b",
    re.I,
)
_FLAGGED_WORDS = re.compile(r"\bflagged\b|\brequires moderation\b", re.I)
# A limit of tokens a minute that this one request exceeds: it does not fit into the next minute either.
_TOO_LARGE_WORDS = re.compile(r"\brequest too large\b", re.I)
_MEANT_BY_WORDS = {
    400: ((401, _KEY_WORDS), (402, _CREDIT_WORDS), (403, _ACCESS_WORDS), (404, _MODEL_WORDS)),
    403: ((400, _FLAGGED_WORDS),),
    429: ((413, _TOO_LARGE_WORDS),),
}
_LENGTH_WORDS = re.compile(
    r"maximum context length|context (?:length|window|size).{0,40}exceed|exceed.{0,40}context"
    r"|(?:prompt|input|request) is too long|too many (?:input )?tokens"
    r"|input token count.{0,40}exceed",
    re.I,
)
_LONGEST_WAIT_SECONDS = 1e9  # thirty years; more than that is no number that can be used
_PERMANENT_STATUSES = frozenset({401, 402, 403, 404, 405, 410, 501})
_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_REJECTED_STATUSES = frozenset({400, 413, 422})
_MEANINGS = {
    401: "the key was refused",
    402: "the account's quota is used up",
    403: "access was refused",
    404: "no such model",
    413: "the prompt is too long for this model",
    429: "too many requests",
    501: "the server cannot do this",
}
_WHAT_TO_DO = {
    401: "set a valid key, or name another model with --model",
    402: "add credit to the account, or name another model with --model",
    403: "use a key that may use this model, or name another model with --model",
    404: "check the model's name and the base URL, or name another model with --model",
    413: "shorten what the step is told, or name a model that takes more",
    501: "check the base URL, or name another model with --model",
}


def kind_of_status(status: int) -> FailureKind:
    if status < 400 or status in _PERMANENT_STATUSES:
        return "permanent"
    if status >= 500 or status in _TRANSIENT_STATUSES:
        return "unavailable"
    return "refused" if status in _REJECTED_STATUSES else "error"


def status_message(status: int, meant: int, said: str, hint: str = "") -> str:
    """`meant`: the effective status, which says what it means and what to do about it."""
    meaning = _MEANINGS.get(meant) or ("the provider failed" if meant >= 500 else "")
    head = f"HTTP {status}" + (f", {meaning}" if meaning else "")
    is_told = kind_of_status(meant) == "permanent" or meant == 413
    todo = _WHAT_TO_DO.get(meant) if is_told else None
    return ": ".join(filter(None, (head, said, hint))) + (f" ({todo})" if todo else "")


def status_failure(
    status: int, headers: Mapping[str, str], body: bytes, endpoint: Endpoint
) -> ModelFailed:
    message, codes = words_and_codes(body.decode("utf-8", "replace"))
    hint = ""
    if 300 <= status < 400:
        hint = f"{endpoint.origin} redirects, which is not followed: name the final address"
    meant = effective_status(status, message, codes)
    whole = status_message(status, meant, excerpt(endpoint.redact(message)), hint)
    return failure(kind_of_status(meant), whole, retry_after_seconds(headers))


def effective_status(status: int, message: str, codes: Iterable[str] = ()) -> int:
    """The status that a provider means: many answer 400 or 429 to what has a status of its own."""
    if (meant := next((_MEANT[code] for code in codes if code in _MEANT), None)) is not None:
        return meant
    for meant, words in _MEANT_BY_WORDS.get(status, ()):
        if words.search(message):
            return meant
    return 413 if status in _REJECTED_STATUSES and _LENGTH_WORDS.search(message) else status


def failure(kind: FailureKind, message: str, retry_after: float | None = None) -> ModelFailed:
    if len(message) > LONGEST_FAULT:
        message = message[:LONGEST_FAULT] + "…"
    return ModelFailed(ModelFault(kind, message, retry_after))


def stream_failure(error: Json, endpoint: Endpoint) -> ModelFailed:
    """An error among the chunks. Routers send the status as its `code`."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    status = int(code) if len(code) == 3 and code.isdecimal() and code[0] in "45" else 500
    return status_failure(status, {}, json.dumps({"error": error}).encode(), endpoint)


def unexpected(what: str, text: bytes, endpoint: Endpoint) -> ModelFailed:
    """Of something that does not speak this protocol, and will not the next time."""
    return failure("error", _told_with(what, text, endpoint))


def garbled(what: str, text: bytes, endpoint: Endpoint) -> ModelFailed:
    """Of a server that speaks the protocol and stumbled over this answer."""
    return failure("unavailable", _told_with(what, text, endpoint))


def _told_with(what: str, text: bytes, endpoint: Endpoint) -> str:
    shown = excerpt(endpoint.redact(text[: 4 * _EXCERPT_LETTERS].decode("utf-8", "replace")))
    return f"{endpoint.origin} {what}" + (f": {shown}" if shown else "")


def cut_off(endpoint: Endpoint) -> ModelFailed:
    return failure("unavailable", f"{endpoint.origin} ended its answer in the middle")


@contextmanager
def transport_failures(endpoint: Endpoint) -> Iterator[None]:
    """Turns what the HTTP client raises inside into ModelFailed."""
    try:
        yield
    except (httpcore2.ConnectTimeout, httpcore2.ConnectError, httpcore2.ProxyError) as error:
        message = f"cannot connect to {endpoint.origin}: {endpoint.redact(str(error))}"
        if is_unreachable_for_good(error):
            message += " (check the address: the base URL, or the proxy)"
            raise failure("permanent", message) from error
        raise failure("unavailable", message) from error
    except httpcore2.TimeoutException as error:
        raise failure("timeout", f"{endpoint.origin} went silent: {error}") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        message = f"the connection to {endpoint.origin} broke: {endpoint.redact(str(error))}"
        raise failure("unavailable", message) from error


def is_unreachable_for_good(error: BaseException) -> bool:
    """A host that does not exist, or whose certificate is not trusted. The exception of a
    library has that of the system as its cause."""
    cause: BaseException | None = error
    for _ in range(8):
        if cause is None:
            return False
        if isinstance(cause, socket.gaierror):
            # EAI_AGAIN is a name server that does not answer just now.
            return cause.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", -5))
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return _as_wait(float(milliseconds) / 1_000)
    except ValueError:
        pass
    later = headers.get("retry-after", "").strip()
    try:
        return _as_wait(float(later)) if later else None
    except ValueError:
        return _seconds_until(later)


def _as_wait(seconds: float) -> float | None:
    """A number that can be used: a server may send anything."""
    return None if isnan(seconds) else min(max(0.0, seconds), _LONGEST_WAIT_SECONDS)


def _seconds_until(date: str) -> float | None:
    # Imported here: few servers send a date.
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def words_and_codes(body: str) -> tuple[str, tuple[str, ...]]:
    """What the body says, and its codes. `{"error": {"message", "code", "type"}}`, or any other text."""
    text = body.strip()
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text, ()
    if isinstance(parsed, list) and len(parsed) == 1:
        parsed = parsed[0]  # as Google does where it speaks OpenAI's protocol
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else text), ()
    message = error.get("message", error.get("detail"))
    codes = (error.get("code"), error.get("type"))
    return (message if isinstance(message, str) else text), tuple(
        str(code) for code in codes if code
    )


def excerpt(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _EXCERPT_LETTERS else plain[:_EXCERPT_LETTERS] + "…"
