"""NotebookEdit: replace, insert or delete one cell of a Jupyter notebook."""

import json
import secrets
from threading import Event
from typing import Annotated, Literal

from pydantic import Field

from stretto.adapters.tools.arguments import Arguments, LongText, PathText, WholeNumber
from stretto.adapters.tools.files import Files, has_surrogates
from stretto.adapters.tools.outcomes import CallFailed
from stretto.adapters.tools.standard_tool import StandardTool, standard_tool
from stretto.vocabulary.json_value import Json

MOST_BYTES = 10_000_000

_NOTEBOOK_EDIT = "Replace, insert or delete one cell of a Jupyter notebook of the workspace."


class NotebookArguments(Arguments):
    notebook_path: PathText = Field(description="the .ipynb file")
    cell_id: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="the cell's id; with insert, the cell to insert after"
    )
    cell_number: WholeNumber = Field(0, ge=0, le=100_000, description="or its number, from 0")
    new_source: LongText | None = Field(None, description="the cell's new source")
    cell_type: Literal["code", "markdown"] | None = Field(
        None, description="of a new cell; needed to insert"
    )
    edit_mode: Literal["replace", "insert", "delete"] = Field(
        "replace", description="'replace' by default"
    )


def notebook_edit(files: Files) -> StandardTool[NotebookArguments]:
    async def work(given: NotebookArguments) -> str:
        return await files.in_thread(lambda: _edit(files, given), Event())

    return standard_tool(
        "NotebookEdit", _NOTEBOOK_EDIT, NotebookArguments, work,
        changes_files=True, recovery="in_doubt",
    )  # fmt: skip


def _edit(files: Files, given: NotebookArguments) -> str:
    path = given.notebook_path
    files.writable_path(path)
    notebook, cells = _read(files, path)
    done = _change(cells, given, has_ids=_has_ids(notebook))
    where, _ = files.write(path, _print(notebook))
    return f"{done} of {where}; it has {len(cells)} cells now."


def _read(files: Files, path: str) -> tuple[dict[str, Json], list[Json]]:
    try:
        notebook: Json = json.loads(files.read(path, MOST_BYTES))
    except (ValueError, RecursionError):
        raise CallFailed("the file is not a notebook: it is not JSON") from None
    if isinstance(notebook, dict) and isinstance(cells := notebook.get("cells"), list):
        return notebook, cells
    raise CallFailed("the file is not a notebook: it has no list of cells")


def _has_ids(notebook: dict[str, Json]) -> bool:
    """Cells have ids since version 4.5 of the format; before, an id is a fault."""
    major, minor = notebook.get("nbformat"), notebook.get("nbformat_minor")
    is_known = isinstance(major, int) and isinstance(minor, int)
    return not is_known or (major, minor) >= (4, 5)


def _change(cells: list[Json], given: NotebookArguments, has_ids: bool) -> str:
    at = _place(cells, given)
    if given.edit_mode == "insert":
        cells.insert(at, _new_cell(given, has_ids))
        return f"Inserted cell {at}"
    cell = cells[at] if at < len(cells) else None
    if not isinstance(cell, dict):
        raise CallFailed(f"there is no cell {at}; the notebook has {len(cells)}")
    if given.edit_mode == "delete":
        del cells[at]
        return f"Deleted cell {at}"
    if given.new_source is None:
        raise CallFailed("new_source is missing")
    cell["source"] = given.new_source
    if given.cell_type:
        cell["cell_type"] = given.cell_type
    if cell.get("cell_type") == "code":
        # What the cell printed belongs to its old source.
        cell["outputs"], cell["execution_count"] = [], None
    else:
        for name in ("outputs", "execution_count"):  # no other kind of cell may have them
            cell.pop(name, None)
    return f"Replaced cell {at}"


def _place(cells: list[Json], given: NotebookArguments) -> int:
    is_insert = given.edit_mode == "insert"
    if given.cell_id is not None:
        for at, cell in enumerate(cells):
            if isinstance(cell, dict) and cell.get("id") == given.cell_id:
                return at + is_insert
        raise CallFailed(f"there is no cell with the id '{given.cell_id}'")
    if "cell_number" in given.model_fields_set:
        return min(given.cell_number, len(cells))
    if is_insert:
        return 0
    raise CallFailed("which cell? give cell_id or cell_number")


def _new_cell(given: NotebookArguments, has_id: bool) -> dict[str, Json]:
    if given.cell_type is None:
        raise CallFailed("cell_type is missing: a new cell must be 'code' or 'markdown'")
    cell: dict[str, Json] = {
        "cell_type": given.cell_type,
        **({"id": secrets.token_hex(4)} if has_id else {}),
        "metadata": {},
        "source": given.new_source or "",
    }
    is_code = given.cell_type == "code"
    return {**cell, "outputs": [], "execution_count": None} if is_code else cell


def _print(notebook: dict[str, Json]) -> bytes:
    # As Jupyter prints it. A lone surrogate that the file had as an escape stays an escape.
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    if has_surrogates(text):
        text = json.dumps(notebook, indent=1)
    return text.encode() + b"\n"
