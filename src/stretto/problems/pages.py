"""The page of each problem's code: what the code means, an example, and how to fix it.

The pages are those of docs/problems. A wheel holds them beside this module; in a checkout they are read
from the docs.
"""

import re
from functools import cache
from pathlib import Path

_CODE = re.compile(r"[A-Za-z]{3}[0-9]{3}", re.ASCII)
_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)


def is_code(word: str) -> bool:
    """Whether a word has the form of a code, known or not."""
    return _CODE.fullmatch(word) is not None


def page_of(code: str) -> str | None:
    """The page as Markdown; None: there is no such code."""
    if code.upper() not in all_codes():
        return None
    text = (_folder() / f"{code.upper()}.md").read_text(encoding="utf-8")
    return _COMMENT.sub("", text).rstrip("\n")


def title_of(page: str) -> str:
    """`unknown dependency`, of a page whose heading is `# RCP104 · unknown dependency`."""
    return page.partition("\n")[0].partition(" · ")[2]


@cache
def all_codes() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in _folder().glob("*.md") if is_code(file.stem)))


@cache
def _folder() -> Path:
    here = Path(__file__).resolve().parent
    installed = here / "pages"
    return installed if installed.is_dir() else here.parents[2] / "docs" / "problems"
