"""Find the files that inputs name. They must lie in the workspace, links followed."""

from pathlib import Path

from stretto.plan.inputs import FindFile, Misfit
from stretto.recipe.model import Input


def finder_in(workspace: Path) -> FindFile:
    """What `plan.inputs` asks for the file that an input of type file_path names."""
    root = workspace.resolve()
    return lambda declared, written: _find(declared, written, root)


def _find(declared: Input, written: str, root: Path) -> str | Misfit:
    try:
        found = (root / written).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return Misfit(
            "RCP305",
            f"input '{declared.name}': there is no file '{written[:200]}'",
            f"paths are relative to the workspace, {root}",
        )
    if not found.is_relative_to(root):
        return Misfit(
            "RCP305",
            f"input '{declared.name}': '{written[:200]}' is outside the workspace",
            f"paths are relative to the workspace, {root}",
        )
    return found.relative_to(root).as_posix()
