"""Who can answer on this machine. In: Stretto. Out: Findings: models, keys, weights, packages, CLIs."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from stretto.adapters.models.cli.known import KNOWN
from stretto.adapters.models.cli.names import cli_fault
from stretto.adapters.models.local.catalog import QWEN_CODER, SMOLLM2, Weights
from stretto.adapters.models.local.shelf import Shelf, models_folder
from stretto.adapters.models.model_names import Meant, check_name, meaning
from stretto.adapters.models.provider_table import PROVIDERS
from stretto.adapters.tools.search_hosts import search_fault
from stretto.assembly.project import Project
from stretto.assembly.subagents import search_endpoint
from stretto.cli.default_model import default_model
from stretto.cli.finding import Finding
from stretto.problems.errors import StrettoError
from stretto.processes.programs import find_program


def examine_models(project: Project) -> Iterator[Finding]:
    model, found = _model(project)
    yield from (found, _keys(project))
    yield from (_weights(weights, project) for weights in (SMOLLM2, QWEN_CODER))
    yield _package("xllamacpp", "local models", "local")
    yield _package("mcp", "MCP servers", "mcp")
    yield _search(project, model)
    yield from _clis(project)


def _model(project: Project) -> tuple[str | None, Finding]:
    try:
        resolved = default_model(project)
    except StrettoError as error:
        return None, Finding("model", "missing", error.message, error.hint)
    name = resolved.name
    if name.startswith("cli:"):
        said = cli_fault(name, project.environ.get("PATH"), project.settings.steps_write)
        found = Finding("model", "missing" if said else "ok", said or resolved.why)
    elif fault := check_name(name, project.environ):
        found = Finding("model", "missing", f"{name}: {fault.says}", fault.hint)
    elif name.startswith("scripted:"):
        is_there = Path(name.removeprefix("scripted:")).is_file()
        fix = "" if is_there else "name a script that is there"
        found = Finding("model", "ok" if is_there else "missing", resolved.why, fix)
    else:
        found = _local(name, resolved.why, project)
    meant = meaning(name, project.environ)
    return (meant.name if isinstance(meant, Meant) else None) or name, found


def _local(name: str, why: str, project: Project) -> Finding:
    weights = {"embedded": SMOLLM2, **{each.model: each for each in (SMOLLM2, QWEN_CODER)}}
    needed = weights.get(name)
    if needed is None:
        return Finding("model", "ok", why)
    if _shelf(project).state(needed) == "absent":
        fix = f"set a provider's key, or: stretto models pull {needed.name}"
        return Finding("model", "missing", f"{why}; its weights are not here", fix)
    if _version("xllamacpp") is None:
        fix = "pip install 'stretto[local]'"
        return Finding("model", "missing", f"{why}; xllamacpp is not installed", fix)
    return Finding("model", "ok", why)


def _keys(project: Project) -> Finding:
    names = [*dict.fromkeys(key for provider in PROVIDERS for key in provider.keys)]
    names += [name for provider in PROVIDERS for name in provider.url_variables]
    given = [name for name in names if project.environ.get(name, "").strip()]
    if given:
        return Finding("keys", "ok", f"set: {', '.join(given)}")
    return Finding("keys", "warning", "no provider's key is set", f"export {names[0]}=…")


def _weights(weights: Weights, project: Project) -> Finding:
    state, name = _shelf(project).state(weights), f"weights {weights.name}"
    if state == "absent":
        says = f"{weights.title} is not here ({weights.megabytes:,} MB)"
        return Finding(name, "missing", says, f"stretto models pull {weights.name}")
    where = _shelf(project).path(weights)
    if state == "verified":
        return Finding(name, "ok", f"{where} is verified")
    return Finding(name, "ok", f"{where} is there; its first use checks its hash")


def _shelf(project: Project) -> Shelf:
    return Shelf(models_folder(project.settings.home, project.environ))


def _package(name: str, for_what: str, extra: str) -> Finding:
    if (found := _version(name)) is not None:
        return Finding(name, "ok", f"{found}, for {for_what}")
    return Finding(
        name, "missing", f"not installed: no {for_what}", f"pip install 'stretto[{extra}]'"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _search(project: Project, model: str | None) -> Finding:
    said = search_fault(model, search_endpoint(project.settings), project.environ)
    if said is not None:
        fix = "set search: {url: …} in stretto.yaml, or STRETTO_SEARCH_URL"
        return Finding("search", "warning", said, fix)
    search = project.settings.search
    by = f"WebSearch asks {search.kind}" if search else f"the provider of {model} searches"
    return Finding("search", "ok", by)


def _clis(project: Project) -> Iterator[Finding]:
    for cli in KNOWN.values():
        program = find_program(cli.name, project.environ.get("PATH"), project.settings.steps_write)
        if program is None:
            yield Finding(f"cli:{cli.name}", "missing", "not on PATH", cli.install)
        else:
            yield Finding(f"cli:{cli.name}", "ok", program)
