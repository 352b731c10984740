"""Which model a run would use for agents that name none. In: Weft. Out: Resolved, and why."""

import asyncio

from weft.adapters.models.http_client import close_clients
from weft.adapters.models.local.catalog import QWEN_CODER
from weft.adapters.models.local.shelf import Shelf, models_folder
from weft.adapters.models.resolve import Resolved, resolve
from weft.assembly import Weft


def default_model(weft: Weft) -> Resolved:
    """Raises InvalidConfig when OPENAI_BASE_URL is set and does not say what it serves."""
    if (named := weft.settings.model) is not None:
        return Resolved(named, f"using {named}: the settings or WEFT_MODEL name it")
    return asyncio.run(_resolve(weft))


async def _resolve(weft: Weft) -> Resolved:
    shelf = Shelf(models_folder(weft.settings.home, weft.environ))

    def pulled() -> str | None:
        return None if shelf.state(QWEN_CODER) == "absent" else QWEN_CODER.model

    try:
        return await resolve(weft.environ, pulled=pulled)
    finally:
        await close_clients()
