"""What a model call may take, before it is made. In: the conversation. Out: an estimate in tokens.

Text is counted by three bytes a token: English has four, code and other scripts fewer. What a
provider has counted itself is believed: only what was said since is guessed.
"""

from collections.abc import Iterable, Sequence
from json import dumps

from stretto.ports.allowance import CallEstimate
from stretto.ports.model import Message, ModelReply, Models, TokenCounts
from stretto.ports.tool import Tool

# A long answer. One that is longer is not cut, unless the budget has less left than this.
LONG_ANSWER_TOKENS = 4_096
_BYTES_A_TOKEN = 3
_TOKENS_A_MESSAGE = 8  # roles and separators


def tokens_in(*texts: str) -> int:
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return -(-size // _BYTES_A_TOKEN)


def estimate_call(
    models: Models,
    name: str,
    messages: Sequence[Message],
    instructions: str,
    tools: Iterable[Tool],
) -> CallEstimate:
    counted, new = _counted(messages)
    texts = [_text(message) for message in new]
    if not counted:
        texts += [instructions, *(_told_of(tool) for tool in tools)]
    tokens = counted + tokens_in(*texts) + _TOKENS_A_MESSAGE * len(new)
    return estimate_of(models, name, tokens)


def estimate_of(models: Models, name: str, input_tokens: int) -> CallEstimate:
    def usd(input_tokens: int, output_tokens: int) -> float:
        return models.usd(name, TokenCounts(input_tokens, output_tokens))

    return CallEstimate(input_tokens, LONG_ANSWER_TOKENS, usd)


def _counted(messages: Sequence[Message]) -> tuple[int, Sequence[Message]]:
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        tokens = message.tokens if isinstance(message, ModelReply) else None
        if tokens is not None and tokens.input_tokens:
            return tokens.input_tokens + tokens.output_tokens, messages[place + 1 :]
    return 0, messages


def _text(message: Message) -> str:
    if not isinstance(message, ModelReply):
        return message.text
    return message.text + "".join(call.text for call in message.calls)


def _told_of(tool: Tool) -> str:
    spec = tool.spec
    return f"{spec.name} {spec.description} {dumps(dict(spec.parameters))}"
