"""The files of the agents that Stretto brings along, as its entry points name them: `bundled:writer`."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "agents"


def __getattr__(name: str) -> Path:
    for file in (_FOLDER / f"{name}.md", _FOLDER / f"{name.replace('_', '-')}.md"):
        if file.is_file():
            return file
    raise AttributeError(f"there is no bundled agent '{name}'")
