"""Which model a run would use for agents that name none. In: Stretto. Out: Resolved, and why."""

import asyncio

from stretto.adapters.models.http_client import close_clients
from stretto.adapters.models.local.catalog import QWEN_CODER
from stretto.adapters.models.local.shelf import Shelf, models_folder
from stretto.adapters.models.resolve import Resolved, resolve
from stretto.assembly.project import Project


def default_model(project: Project) -> Resolved:
    """Raises InvalidConfig when OPENAI_BASE_URL is set and does not say what it serves."""
    if (named := project.settings.model) is not None:
        return Resolved(named, f"using {named}: the settings or STRETTO_MODEL name it")
    return asyncio.run(_resolve(project))


async def _resolve(project: Project) -> Resolved:
    shelf = Shelf(models_folder(project.settings.home, project.environ))

    def pulled() -> str | None:
        return None if shelf.state(QWEN_CODER) == "absent" else QWEN_CODER.model

    try:
        return await resolve(project.environ, pulled=pulled)
    finally:
        await close_clients()
