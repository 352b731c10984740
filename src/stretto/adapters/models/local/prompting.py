"""Write a conversation down for llama.cpp. In: pydantic-ai's messages. Out: chat messages."""

from collections.abc import Iterable, Sequence

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from stretto.adapters.models.local.actions import Called, as_text, next_words
from stretto.vocabulary.values import Json


def chat(
    messages: Sequence[ModelMessage], instructions: Sequence[InstructionPart], words: str = ""
) -> list[Json]:
    """One system message at the head, then users and assistants by turns: templates want that."""
    system = [part.content for part in instructions]
    turns: list[tuple[str, str]] = []
    task = ""
    for message in messages:
        if isinstance(message, ModelResponse):
            turns.append(("assistant", _joined(_answered(part) for part in message.parts)))
            continue
        system += [p.content for p in message.parts if isinstance(p, SystemPromptPart)]
        text = _joined(_asked(part) for part in message.parts)
        if not any(isinstance(part, ToolReturnPart) for part in message.parts):
            task = text
        elif words:
            text = _joined([text, next_words(task)])
        turns.append(("user", text))
    head = _joined([*system, words])
    return [*([_message("system", head)] if head else []), *_merged(turns)]


def _asked(part: object) -> str:
    match part:
        case SystemPromptPart():
            return ""
        case UserPromptPart(content=str(text)):
            return text
        case UserPromptPart(content=pieces):
            return "\n".join(_piece(piece) for piece in pieces)
        case ToolReturnPart():
            return f"{part.tool_name} returned:\n{part.model_response_str()}"
        case _:
            return _retry(part)


def _retry(part: object) -> str:
    """pydantic-ai's agent asks again with parts that can say themselves."""
    says = getattr(part, "model_response", None)
    return str(says()) if callable(says) else ""


def _piece(piece: UserContent) -> str:
    match piece:
        case str():
            return piece
        case TextContent(content=text):
            return text
        case _:
            raise UserError(f"a local model reads text, not a {type(piece).__name__}")


def _answered(part: object) -> str:
    match part:
        case TextPart(content=text):
            return text
        case ToolCallPart():
            return as_text(Called(part.tool_name, part.args_as_dict()))
        case _:
            return ""  # thoughts, and what other models put beside an answer


def _merged(turns: Iterable[tuple[str, str]]) -> list[Json]:
    merged: list[tuple[str, str]] = []
    for role, text in turns:
        if not text:
            continue
        if merged and merged[-1][0] == role:
            merged[-1] = (role, f"{merged[-1][1]}\n\n{text}")
        else:
            merged.append((role, text))
    return [_message(role, text) for role, text in merged]


def _message(role: str, text: str) -> Json:
    return {"role": role, "content": text}


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())
