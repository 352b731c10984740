"""Limits of one model call: what it may take, and when it is sent again after a failure.

Text is counted at three bytes a token: English has four, code and other scripts fewer. Where a
provider has counted itself, its count is used, and only what was said since is estimated.

Only the request to the model is repeated: what tools have done before it stands, and is not done
again (docs/decisions/0017).
"""

import random
from collections.abc import Iterable, Sequence
from json import dumps

from stretto.ports.model import ChatMessage, ModelFault, ModelReply, Models, TokenCounts
from stretto.ports.runner import CallEstimate
from stretto.ports.tool import Tool

# The answer that a budget reserves for. A longer one is not cut, unless the budget has less left.
LONG_ANSWER_TOKENS = 4_096
_BYTES_A_TOKEN = 3
_TOKENS_A_MESSAGE = 8  # roles and separators


def tokens_in(*texts: str) -> int:
    return tokens_of(sum(len(text.encode("utf-8", "replace")) for text in texts))


def tokens_of(size: int) -> int:
    """`size`: in bytes."""
    return -(-size // _BYTES_A_TOKEN)


def estimate_call(
    models: Models,
    name: str,
    messages: Sequence[ChatMessage],
    instructions: str,
    tools: Iterable[Tool],
) -> CallEstimate:
    counted, new = _split_counted(messages)
    texts = [_text(message) for message in new]
    if not counted:
        texts += [instructions, *(_description_of(tool) for tool in tools)]
    tokens = counted + tokens_in(*texts) + _TOKENS_A_MESSAGE * len(new)
    return estimate_of(models, name, tokens)


def estimate_of(models: Models, name: str, input_tokens: int) -> CallEstimate:
    def usd(input_tokens: int, output_tokens: int) -> float:
        return models.usd(name, TokenCounts(input_tokens, output_tokens))

    return CallEstimate(input_tokens, LONG_ANSWER_TOKENS, usd)


def _split_counted(messages: Sequence[ChatMessage]) -> tuple[int, Sequence[ChatMessage]]:
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        tokens = message.tokens if isinstance(message, ModelReply) else None
        if tokens is not None and tokens.input_tokens:
            return tokens.input_tokens + tokens.output_tokens, messages[place + 1 :]
    return 0, messages


def _text(message: ChatMessage) -> str:
    if not isinstance(message, ModelReply):
        return message.text
    return message.text + "".join(call.text for call in message.calls)


def _description_of(tool: Tool) -> str:
    spec = tool.spec
    return f"{spec.name} {spec.description} {dumps(dict(spec.parameters))}"


DEFAULT_RETRIES = 3
# A longer wait is left to the `retry` of the step.
_LONGEST_SECONDS = 60.0
# Where another model can take over, it answers sooner than this one comes back.
_LONGEST_BEFORE_ANOTHER_SECONDS = 10.0
_FIRST_SECONDS = 1.0


def delay_before_retry(
    fault: ModelFault,
    retried: int,
    most: int,
    seconds_left: float | None,
    has_another: bool = False,
) -> float | None:
    """Seconds to wait; None: the request is not sent again. The delay doubles each time, with jitter,
    and is never shorter than the provider asked for."""
    if fault.kind != "unavailable" or retried >= most:
        return None
    own = _FIRST_SECONDS * 2.0**retried * random.uniform(0.5, 1.0)
    delay = max(own, fault.retry_after_seconds or 0.0)
    if delay > (_LONGEST_BEFORE_ANOTHER_SECONDS if has_another else _LONGEST_SECONDS):
        return None
    # An attempt that would time out while it waits fails now, with the real reason.
    return delay if seconds_left is None or delay < seconds_left else None
