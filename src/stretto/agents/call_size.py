"""What a model call may take, before it is made. In: the conversation. Out: an estimate in tokens.

Text is counted by three bytes a token: English has four, code and other scripts fewer. What a
provider has counted itself is believed: only what was said since is guessed.
"""

from collections.abc import Iterable, Sequence
from json import dumps

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.usage import RequestUsage

from stretto.ports.allowance import CallEstimate
from stretto.ports.model import Models
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
    messages: Sequence[ModelMessage],
    instructions: str,
    tools: Iterable[Tool],
) -> CallEstimate:
    counted, new = _counted(messages)
    texts = [_text(part) for message in new for part in message.parts]
    if not counted:
        texts += [instructions, *(_told_of(tool) for tool in tools)]
    tokens = counted + tokens_in(*texts) + _TOKENS_A_MESSAGE * len(new)
    return estimate_of(models, name, tokens)


def estimate_of(models: Models, name: str, input_tokens: int) -> CallEstimate:
    def usd(input_tokens: int, output_tokens: int) -> float:
        usage = RequestUsage(input_tokens=input_tokens, output_tokens=output_tokens)
        return models.usd(name, usage)

    return CallEstimate(input_tokens, LONG_ANSWER_TOKENS, usd)


def _counted(messages: Sequence[ModelMessage]) -> tuple[int, Sequence[ModelMessage]]:
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            return message.usage.input_tokens + message.usage.output_tokens, messages[place + 1 :]
    return 0, messages


def _text(part: object) -> str:
    content = getattr(part, "content", None)
    if isinstance(content, str):
        return content
    return str(getattr(part, "args", None) or content or "")


def _told_of(tool: Tool) -> str:
    spec = tool.spec
    return f"{spec.name} {spec.description} {dumps(dict(spec.parameters))}"
