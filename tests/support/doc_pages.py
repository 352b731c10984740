"""Pages of the docs, as the tests read them. In: a Markdown file. Out: its fenced blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    info: str  # `yaml bad`
    text: str
    line: int  # where its text starts

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def mark(self) -> str:
        """What stands behind the language: `bad`, `good`, a file's name or nothing."""
        return self.info.partition(" ")[2].strip()


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(fence[1].strip(), fence[2], text.count("\n", 0, fence.start(2)) + 1)
        for fence in _FENCE.finditer(text)
    ]


def prose_of(page: Path) -> str:
    """The page without its blocks and its code, where `[a](b)` is no link."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`", "", text)


def all_pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def anchors_of(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ +(.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in headings}
