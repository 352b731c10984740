"""`stretto trust`: let a folder's own settings and agents count."""

from pathlib import Path

import click

from stretto.assembly.project import Project
from stretto.cli.options import json_option
from stretto.cli.project import trust
from stretto.cli.terminal import print_json, say
from stretto.config.trust import TrustStore
from stretto.text.short import relative_path


@click.command("trust")
@click.argument(
    "folder", default=".", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option("--forget", is_flag=True, help="Withdraw the trust.")
@click.option("--list", "is_list", is_flag=True, help="Only show what it would bring.")
@json_option
def command(folder: Path, forget: bool, is_list: bool, as_json: bool) -> None:
    """Trust a folder's own stretto.yaml, agents, playbooks and MCP servers, as they are now.

    They are not used before you trust them, and you are asked again when one of them changes.
    """
    project = Project(folder)
    settings, offers = project.settings, project.offers()
    if forget:
        TrustStore(settings.home).forget(settings.project)
    elif not is_list:
        settings = trust(folder).settings
    is_trusted = settings.is_trusted and not forget
    files = [relative_path(file, settings.project) for file in settings.steering]
    if as_json:
        print_json(
            {
                "ok": True,
                "folder": str(settings.project),
                "trusted": is_trusted,
                "files": files,
                "offers": list(offers),
            }
        )
        return
    if not files:
        say(f"{settings.project} brings no settings and no agents: nothing to trust")
        return
    say(f"{settings.project} is {'trusted' if is_trusted else 'not trusted'}:")
    for file in files:
        say(f"  {file}")
    if not is_trusted and offers:
        say("What would count then:")
        for offer in offers:
            say(f"  {offer}")
