"""Say what went wrong with a call. In: a status, a body, a transport's error. Out: an exception.

All are pydantic-ai's own, so an agent and its fallbacks know them:

ModelAPIError
├── ModelHTTPError             a status of 300 or more, or an error among the chunks; each of it
│                              is a ModelRateLimitError, ModelServerError … too, by its status
└── ModelConnectionError       no connection, or one that broke off (`phase` says which)
    └── ModelTimeoutError      nothing came for too long
UnexpectedModelBehavior        an answer that is not what the protocol says
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

import httpcore2
from pydantic_ai import exceptions as errors

from stretto.adapters.models.openai_endpoint import Endpoint
from stretto.vocabulary.values import Json

EXCERPT_LETTERS = 600
_Category: TypeAlias = type[
    errors.ModelRateLimitError
    | errors.ModelQuotaExceededError
    | errors.ModelUnavailableError
    | errors.ModelServerError
    | errors.ModelRequestRejectedError
]
_BY_STATUS: Mapping[int, _Category] = {
    400: errors.ModelRequestRejectedError,
    401: errors.ModelAuthenticationError,
    402: errors.ModelQuotaExceededError,
    403: errors.ModelAuthenticationError,
    404: errors.ModelNotFoundError,
    422: errors.ModelRequestRejectedError,
    429: errors.ModelRateLimitError,
    503: errors.ModelUnavailableError,
    529: errors.ModelOverloadedError,
}
_BY_CODE: Mapping[str, _Category] = {
    "insufficient_quota": errors.ModelQuotaExceededError,
    "billing_hard_limit_reached": errors.ModelQuotaExceededError,
    "context_length_exceeded": errors.ModelContextWindowExceededError,
    "model_not_found": errors.ModelNotFoundError,
    "invalid_api_key": errors.ModelAuthenticationError,
}


def status_error(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    model: str,
    endpoint: Endpoint,
    *,
    is_in_stream: bool = False,
) -> errors.ModelHTTPError:
    message, code = _message(body)
    hint = None
    if 300 <= status < 400:
        hint = f"{endpoint.origin} redirects, which is not followed: name the final address"
    category = _BY_CODE.get(code or "") or _BY_STATUS.get(status)
    if category is None and status >= 500:
        category = errors.ModelServerError
    return errors.ModelHTTPError.for_category(
        category,
        status_code=status,
        model_name=model,
        body=excerpt(endpoint.redacted(message)),
        headers={name: text for name, text in headers.items() if name in _KEPT_HEADERS},
        provider_error_code=code,
        hint=hint,
        in_stream=is_in_stream,
    )


# Of an answer's headers only these say anything about its failure.
_KEPT_HEADERS = ("retry-after", "retry-after-ms", "x-should-retry", "x-request-id")


def stream_error(error: Json, model: str, endpoint: Endpoint) -> errors.ModelAPIError:
    """An error among the chunks. Routers send the status as its `code`."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    status = int(code) if len(code) == 3 and code.isdecimal() and code[0] in "45" else 500
    body = json.dumps({"error": error}).encode()
    return status_error(status, {}, body, model, endpoint, is_in_stream=True)


def _message(body: bytes) -> tuple[str, str | None]:
    """What the body says, and its code. `{"error": {"message", "code"}}`, or any other text."""
    text = body.decode("utf-8", "replace").strip()
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else text), None
    message, code = error.get("message"), error.get("code") or error.get("type")
    return (message if isinstance(message, str) else text), (str(code) if code else None)


def excerpt(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= EXCERPT_LETTERS else plain[:EXCERPT_LETTERS] + "…"


def unexpected(what: str, text: bytes, endpoint: Endpoint) -> errors.UnexpectedModelBehavior:
    shown = excerpt(endpoint.redacted(text[: 4 * EXCERPT_LETTERS].decode("utf-8", "replace")))
    return errors.UnexpectedModelBehavior(f"{endpoint.origin} {what}", shown or None)


def cut(model: str, endpoint: Endpoint) -> errors.ModelConnectionError:
    message = f"{endpoint.origin} ended its answer in the middle"
    return errors.ModelConnectionError(model, message, phase="read", in_stream=True)


@asynccontextmanager
async def transport_errors(model: str, endpoint: Endpoint) -> AsyncGenerator[None]:
    """Rewrites what the HTTP client raises within."""
    try:
        yield
    except (httpcore2.ConnectTimeout, httpcore2.ConnectError, httpcore2.ProxyError) as error:
        kind = errors.ModelConnectionError
        if isinstance(error, httpcore2.ConnectTimeout):
            kind = errors.ModelTimeoutError
        message = f"cannot connect to {endpoint.origin}: {endpoint.redacted(str(error))}"
        raise kind(model, message, phase="connect") from error
    except httpcore2.TimeoutException as error:
        message = f"{endpoint.origin} went silent: {error}"
        raise errors.ModelTimeoutError(model, message, phase="read") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        message = f"the connection to {endpoint.origin} broke: {endpoint.redacted(str(error))}"
        raise errors.ModelConnectionError(model, message, phase="read") from error
