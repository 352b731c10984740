"""What an exception of a model means. In: an exception. Out: a ModelFault, for retries and people.

unavailable   this model cannot answer now, another may: limits, outages, keys, no connection
timeout       it did not answer in time
refused       it will not answer this
error         the request, or what came back, is wrong
"""

import asyncio

from pydantic_ai import exceptions as theirs

from weft.agents.redaction import NOTHING_SECRET, Redactor
from weft.events.model import FailureKind
from weft.ports.model import ModelFault
from weft.problems.errors import WeftError

_LONGEST = 1_000
_UNAVAILABLE = (
    theirs.ModelRateLimitError,
    theirs.ModelQuotaExceededError,
    theirs.ModelUnavailableError,
    theirs.ModelServerError,
    theirs.ModelAuthenticationError,
    theirs.ModelNotFoundError,
    theirs.ModelConnectionError,
)


def fault_of(error: BaseException, redactor: Redactor = NOTHING_SECRET) -> ModelFault | None:
    """None: it is no model's, but a bug, or a cancellation."""
    if isinstance(error, theirs.FallbackExceptionGroup):
        return _of_group(error, redactor)
    kind = _kind(error)
    if kind is None:
        return None
    message = redactor.text(_message(error))
    if len(message) > _LONGEST:
        message = message[:_LONGEST] + "…"
    return ModelFault(kind, message, _retry_after(error))


def _kind(error: BaseException) -> FailureKind | None:
    match error:
        case asyncio.CancelledError() | theirs.RunCancelled():
            return None
        case theirs.ModelRequestTimeout() | TimeoutError():
            return "timeout"
        case theirs.ModelTimeoutError():
            # Who could not be reached was never asked.
            return "unavailable" if error.phase in ("connect", "pool") else "timeout"
        case theirs.ContentFilterError():
            return "refused"
        case theirs.ModelHTTPError() if error.status_code == 408:
            return "timeout"
        case theirs.ModelHTTPError() if error.status_code < 400:
            return "unavailable"
        case _ if isinstance(error, _UNAVAILABLE):
            return "unavailable"
        case theirs.AgentRunError() | theirs.UserError() | WeftError():
            return "error"
        case OSError():
            return "unavailable"
        case _:
            return None


def _message(error: BaseException) -> str:
    if isinstance(error, theirs.ModelHTTPError):
        return _http_message(error)
    if isinstance(error, WeftError):
        return error.with_hint
    if isinstance(error, theirs.UnexpectedModelBehavior):
        return f"{error.message}: {error.body}" if error.body else error.message
    said = str(error) or type(error).__name__
    return "no answer in time" if isinstance(error, TimeoutError) and not str(error) else said


def _http_message(error: theirs.ModelHTTPError) -> str:
    words = {401: "the key was refused", 403: "the key was refused", 404: "no such model",
             402: "the account has no credit", 429: "too many requests"}  # fmt: skip
    what = words.get(error.status_code) or (
        "the provider failed" if error.status_code >= 500 else ""
    )
    if isinstance(error, theirs.ModelQuotaExceededError):
        what = "the account's quota is used up"
    said = f"HTTP {error.status_code}" + (f", {what}" if what else "")
    body = error.body if isinstance(error.body, str) else str(error.body or "")
    tail = [text for text in (body, error.hint) if text]
    return ": ".join([said, *tail])


def _retry_after(error: BaseException) -> float | None:
    return error.retry_after if isinstance(error, theirs.ModelAPIError) else None


def _of_group(group: theirs.FallbackExceptionGroup, redactor: Redactor) -> ModelFault | None:
    """All models failed: if one of them may come back, so may the whole."""
    faults = [fault for error in group.exceptions if (fault := fault_of(error, redactor))]
    if not faults:
        return None
    worst = next((fault for fault in faults if fault.kind == "unavailable"), faults[0])
    waits = [f.retry_after_seconds for f in faults if f.retry_after_seconds is not None]
    message = "; ".join(fault.message for fault in faults)
    return ModelFault(worst.kind, message, min(waits, default=None))
