"""Cut what a tool says. In: text of any length. Out: a ToolOutcome that a model can be given."""

from stretto.ports.tool import ToolOutcome, Verdict

MOST_CHARACTERS = 30_000


def outcome(text: str, verdict: Verdict = "ok", most: int = MOST_CHARACTERS) -> ToolOutcome:
    text = encodable(text)
    if len(text) <= most:
        return ToolOutcome(text, verdict)
    return ToolOutcome(cut(text, most), verdict, result_bytes=len(text.encode()))


def cut(text: str, most: int) -> str:
    """Head and tail: the head says what it is, the tail how it ended."""
    if len(text) <= most:
        return text
    head, tail = most - most // 3, most // 3
    said = f"\n[… {len(text) - head - tail:,} characters left out …]\n"
    return text[:head] + said + text[len(text) - tail :]


def encodable(text: str) -> str:
    """A lone surrogate can be written nowhere; `?` stands for it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
