"""Open the project here. What its folder brings along is used once the user trusts it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.assembly.project import Project
from stretto.cli.terminal import confirm, say
from stretto.config.trust import TrustStore
from stretto.recipe.model import Recipe

if TYPE_CHECKING:
    from stretto.plan.model import Plan


def open_project(folder: Path | None = None) -> Project:
    """Asks on a terminal whether the folder is trusted; elsewhere says how to trust it."""
    project = Project(folder)
    settings, notice = project.settings, project.trust_notice
    if not notice:
        return project
    if sys.stdin.isatty() and sys.stderr.isatty():
        say(f"{notice}. What would count then:", err=True)
        for offer in project.offers():
            say(f"  {offer}", err=True)
        if confirm("Trust this folder as it is now?", default=False, err=True):
            TrustStore(settings.home).trust(settings.project, settings.digest)
            return Project(folder)
    else:
        how = "(stretto trust, --trust or STRETTO_TRUST=1)"
        say(f"{notice} {how}", err=True)
    return project


def trust(folder: Path) -> Project:
    """Trust a folder as it is now."""
    project = Project(folder)
    if project.settings.steering or project.settings.workflows_dir.is_dir():
        TrustStore(project.settings.home).trust(project.settings.project, project.settings.digest)
    return Project(folder)


def open_recipe(project: Project, name_or_file: str) -> Recipe:
    """A saved recipe, a file, or '-' for stdin."""
    if name_or_file == "-":
        return project.recipe_from_text(sys.stdin.buffer.read(), "<stdin>")
    # Not `read`, which takes text with a line break or a brace for the recipe itself.
    recipe, notices = project.read_named(name_or_file)
    for notice in notices:
        say(notice, err=True)
    return recipe


def open_plan(project: Project, name_or_file: str) -> "Plan":
    return project.plan(open_recipe(project, name_or_file))
