"""NotebookEdit. In: a notebook and a cell. Out: what was done to the cell."""

import json
import secrets
from threading import Event

from stretto.adapters.tools.arguments import Given, OneOf, Parameter, Parameters, Text, Whole
from stretto.adapters.tools.checked import CheckedTool, Failed, checked
from stretto.adapters.tools.decoding import has_surrogates
from stretto.adapters.tools.files import Files
from stretto.vocabulary.values import Json

MOST_BYTES = 10_000_000

_SAYS = "Replace, insert or delete one cell of a Jupyter notebook of the workspace."
_TAKES = Parameters(
    Parameter("notebook_path", Text(1, 4096), "the .ipynb file", is_required=True),
    Parameter("cell_id", Text(1, 200), "the cell's id; with insert, the cell to insert after"),
    Parameter("cell_number", Whole(0, 100_000), "or its number, from 0"),
    Parameter("new_source", Text(), "the cell's new source"),
    Parameter("cell_type", OneOf(("code", "markdown")), "of a new cell; needed to insert"),
    Parameter("edit_mode", OneOf(("replace", "insert", "delete")), "'replace' by default"),
)


def notebook_edit(files: Files) -> CheckedTool:
    async def work(given: Given, key: str) -> str:
        return await files.aside(lambda: _edit(files, given), Event())

    return checked("NotebookEdit", _SAYS, _TAKES, work, changes_files=True, recovery="in_doubt")


def _edit(files: Files, given: Given) -> str:
    path = given.text("notebook_path")
    files.writable_path(path)
    if has_surrogates(given.text("new_source")):
        raise Failed("new_source holds a lone surrogate, which cannot be written as UTF-8")
    notebook, cells = _read(files, path)
    said = _change(cells, given)
    where, _ = files.write(path, _printed(notebook))
    return f"{said} of {where}; it has {len(cells)} cells now."


def _read(files: Files, path: str) -> tuple[dict[str, Json], list[Json]]:
    try:
        notebook: Json = json.loads(files.read(path, MOST_BYTES))
    except (ValueError, RecursionError):
        raise Failed("the file is no notebook: it is not JSON") from None
    if isinstance(notebook, dict) and isinstance(cells := notebook.get("cells"), list):
        return notebook, cells
    raise Failed("the file is no notebook: it has no list of cells")


def _change(cells: list[Json], given: Given) -> str:
    mode = given.text("edit_mode", "replace")
    at = _place(cells, given)
    if mode == "insert":
        cells.insert(at, _new_cell(given))
        return f"Inserted cell {at}"
    cell = cells[at] if at < len(cells) else None
    if not isinstance(cell, dict):
        raise Failed(f"there is no cell {at}; the notebook has {len(cells)}")
    if mode == "delete":
        del cells[at]
        return f"Deleted cell {at}"
    if not given.has("new_source"):
        raise Failed("new_source is missing")
    cell["source"] = given.text("new_source")
    if kind := given.text("cell_type"):
        cell["cell_type"] = kind
    if cell.get("cell_type") == "code":
        # What it printed belongs to the source that was.
        cell["outputs"], cell["execution_count"] = [], None
    return f"Replaced cell {at}"


def _place(cells: list[Json], given: Given) -> int:
    is_insert = given.text("edit_mode") == "insert"
    if wanted := given.text("cell_id"):
        for at, cell in enumerate(cells):
            if isinstance(cell, dict) and cell.get("id") == wanted:
                return at + is_insert
        raise Failed(f"there is no cell with the id '{wanted}'")
    if given.has("cell_number"):
        return min(given.whole("cell_number", 0), len(cells))
    if is_insert:
        return 0
    raise Failed("which cell? give cell_id or cell_number")


def _new_cell(given: Given) -> dict[str, Json]:
    kind = given.text("cell_type")
    if not kind:
        raise Failed("cell_type is missing: a new cell must be 'code' or 'markdown'")
    cell: dict[str, Json] = {
        "cell_type": kind,
        "id": secrets.token_hex(4),
        "metadata": {},
        "source": given.text("new_source"),
    }
    return {**cell, "outputs": [], "execution_count": None} if kind == "code" else cell


def _printed(notebook: dict[str, Json]) -> bytes:
    # As Jupyter itself prints it. A lone surrogate that the file had spelled out stays so.
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    if has_surrogates(text):
        text = json.dumps(notebook, indent=1)
    return text.encode() + b"\n"
