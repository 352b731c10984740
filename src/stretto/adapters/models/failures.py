"""What an exception of a model means. In: an exception. Out: a ModelFault, for retries and people.

unavailable   it cannot answer now, and the same request may be answered soon: limits, outages,
              no connection, one that broke off
permanent     no request to it will be answered until somebody does something: a key, a credit, the
              model's name, its address
timeout       it did not answer in time
refused       it will not answer this, however often it is asked
error         what came back is wrong
"""

import asyncio
import socket
import ssl

from pydantic_ai import exceptions as theirs

from stretto.events.model import FailureKind
from stretto.ports.model import ModelFault
from stretto.problems.errors import StrettoError
from stretto.text.redaction import NOTHING_SECRET, Redactor

_LONGEST = 1_000
_UNAVAILABLE = (
    theirs.ModelRateLimitError,
    theirs.ModelUnavailableError,
    theirs.ModelServerError,
    theirs.ModelConnectionError,
)
_PERMANENT = (
    theirs.ModelQuotaExceededError,
    theirs.ModelAuthenticationError,
    theirs.ModelNotFoundError,
)
# Adapters that know no categories have the status alone.
_PERMANENT_STATUSES = frozenset({401, 402, 403, 404, 405, 410})
_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_REJECTED_STATUSES = frozenset({400, 413, 422})
_WHAT_TO_DO = {
    401: "set a valid key, or name another model with --model",
    402: "add credit to the account, or name another model with --model",
    403: "use a key that may use this model, or name another model with --model",
    404: "check the model's name and the base URL, or name another model with --model",
}


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
        case _ if isinstance(error, _PERMANENT) or _is_unreachable_for_good(error):
            return "permanent"
        case theirs.ModelHTTPError():
            return _kind_of_status(error)
        case _ if isinstance(error, _UNAVAILABLE):
            return "unavailable"
        case theirs.AgentRunError() | theirs.UserError() | StrettoError():
            return "error"
        case OSError():
            return "unavailable"
        case _:
            return None


def _kind_of_status(error: theirs.ModelHTTPError) -> FailureKind:
    status = error.status_code
    if status < 400 or status in _PERMANENT_STATUSES:
        return "permanent"
    if status >= 500 or status in _TRANSIENT_STATUSES or isinstance(error, _UNAVAILABLE):
        return "unavailable"
    is_rejected = isinstance(error, theirs.ModelRequestRejectedError)
    return "refused" if is_rejected or status in _REJECTED_STATUSES else "error"


def _is_unreachable_for_good(error: BaseException) -> bool:
    """A host that does not exist, or that is not who it says. Another adapter's exception has the
    system's own as its cause."""
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


def _message(error: BaseException) -> str:
    if isinstance(error, theirs.ModelHTTPError):
        return _http_message(error)
    if isinstance(error, StrettoError):
        return error.with_hint
    if isinstance(error, theirs.UnexpectedModelBehavior):
        return f"{error.message}: {error.body}" if error.body else error.message
    said = str(error) or type(error).__name__
    if _is_unreachable_for_good(error):
        said = f"{said} (check the address: the base URL, or the proxy)"
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
    is_permanent = _kind(error) == "permanent"
    todo = _WHAT_TO_DO.get(402 if "quota" in what else error.status_code) if is_permanent else None
    return ": ".join([said, *tail]) + (f" ({todo})" if todo else "")


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
