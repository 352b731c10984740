"""Saved recipes as files: which there are, whose they are, and how one is saved or restored.

The command line uses this directly, so nothing heavy is imported before it is needed."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.documents.node import MapNode, ScalarNode, plain
from stretto.documents.yaml_form import yaml_form
from stretto.problems.errors import InvalidUsage, NotFound, PermissionDenied, StrettoError
from stretto.recipe.model import Recipe
from stretto.vocabulary.names import is_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto.assembly.project import Project, RecipeSource
    from stretto.lead.drafts import Doubt
    from stretto.plan.model import Plan
    from stretto.recipe.model import Recipe
    from stretto.registry.saved_recipe import KnownRecipe, SavedRecipe
    from stretto.registry.versions import RecipeOrigin, RecipeVersion, Versions
    from stretto.registry.workflows import Entry
    from stretto.vocabulary.json_value import Json
    from stretto.vocabulary.names import StepId


_VERSIONS = "recipes.db"
_TEMPLATES = Path(__file__).parent.parent / "bundled" / "templates"


@dataclass(frozen=True, slots=True)
class ListedWorkflow:
    """One saved recipe, as a list shows it."""

    name: str
    description: str
    layer: str  # bundled | user | project
    origin: "RecipeOrigin"  # written by a person, or emitted by an agent
    file: str
    inputs: tuple[str, ...]  # required ones first
    problems: int  # how many; it runs only where there are none


@dataclass(frozen=True, slots=True)
class SaveOptions:
    """How somebody wants a recipe to be saved."""

    name: str | None  # None: its own
    origin: "RecipeOrigin"
    why: str
    may_replace: bool
    at: float
    replaces: str | None = None  # the digest of what is to be there now
    by: str = ""
    is_trial: bool = False  # only whether it would be saved, and as what
    is_read: bool = False  # a person has read it


def recipe_templates() -> dict[str, Path]:
    """The built-in recipes to start from, by name."""
    return {path.stem: path for path in sorted(_TEMPLATES.glob("*.yaml"))}


def text_of_template(template: Path, name: str) -> str:
    """A template under another name."""
    import re

    text = template.read_text(encoding="utf-8")
    # The first `name:` of every template is the recipe's own. The lines of the comment that show
    # how it is run change as well.
    text = re.sub(
        r"^(\s*name:).*$", rf"\1 {yaml_form(name).strip()}", text, count=1, flags=re.MULTILINE
    )
    shown = rf"^(#   stretto run ){template.stem}\b"
    return re.sub(shown, rf"\g<1>{name}", text, flags=re.MULTILINE)


def list_workflows(project: "Project") -> tuple[ListedWorkflow, ...]:
    origins = origins_of(project)
    return tuple(
        ListedWorkflow(
            name=entry.name,
            description=(entry.recipe.description or entry.recipe.title).strip(),
            layer=entry.layer,
            origin=origins[entry.file],
            file=project.display_path(entry.file),
            inputs=tuple(
                each.name for each in sorted(entry.recipe.inputs, key=lambda i: not i.is_required)
            ),
            problems=len(entry.problems),
        )
        for entry in project.workflows.entries()
        if not entry.is_passed_over
    )


def origins_of(project: "Project") -> "dict[Path, RecipeOrigin]":
    """Whose each saved recipe is."""
    files = [entry.file for entry in project.workflows.entries()]
    database = project.settings.home / _VERSIONS
    if database.exists():  # most users never save over a recipe
        from stretto.registry.versions import open_versions

        with suppress(StrettoError), open_versions(database) as versions:
            return {file: _origin_of(versions, file) for file in files}
    return dict.fromkeys(files, "written")


def _origin_of(versions: "Versions", file: Path) -> "RecipeOrigin":
    try:
        return versions.origin_of(_place(file))
    except StrettoError:  # a file that is too large to be read is none that an agent has saved
        return "written"


def unread_doubts(project: "Project", plan: "Plan") -> "tuple[Doubt, ...]":
    """What a plan would do that a model wrote and no person has read, wherever the plan comes from: a text is
    known by its digest."""
    database = project.settings.home / _VERSIONS
    if not database.exists():
        return ()
    from stretto.lead.drafts import doubts
    from stretto.plan.model import PlannedWorkflow
    from stretto.registry.versions import open_versions

    found = tuple(doubts(plan))
    if not found:
        return ()
    inner = {s.id: s.work.digest for s in plan.steps if isinstance(s.work, PlannedWorkflow)}
    digests = {s.id: inner[s.inside] if s.inside else plan.digest for s in plan.steps}
    unread = set(digests.values())
    with suppress(StrettoError), open_versions(database) as versions:  # else nothing counts as read
        unread = versions.unread(unread)
    left = (replace(each, steps=_among(each.steps, digests, unread)) for each in found)
    return tuple(each for each in left if each.steps)


def _among(
    steps: "tuple[StepId, ...]", digests: "Mapping[StepId, str]", unread: set[str]
) -> "tuple[StepId, ...]":
    return tuple(step for step in steps if digests[step] in unread)


def save_workflow(
    project: "Project", source: "RecipeSource", options: SaveOptions
) -> "SavedRecipe":
    """Raises as `SavedWorkflows.save` does."""
    from stretto.recipe.model import RecipeUse
    from stretto.registry.saved_recipe import RecipeDraft, save
    from stretto.registry.versions import open_versions

    recipe = _read_by_name(project, source, options.name)
    plan = project.plan(recipe)
    with open_versions(project.settings.home / _VERSIONS) as versions:
        entries = project.workflows.entries()
        file = _target(project, recipe.name, entries, versions)
        if any(isinstance(step.work, RecipeUse) for step in recipe.steps):
            # The files that it names are looked for beside the place where it is kept.
            kept = project.recipe_from_text(recipe.source.text, project.display_path(file))
            plan = project.plan(kept)
        # An emitted text is kept without a byte order mark, so that its digest is its plan's.
        content = (
            recipe.source.text.encode() if options.origin == "emitted" else recipe.source.content
        )
        draft = RecipeDraft(
            recipe.name, plan, content, file, options.origin, options.by, options.at, options.why,
            options.may_replace, options.replaces, options.is_trial, options.is_read,
        )  # fmt: skip
        return save(draft, known_recipes(project, entries), versions)


def remove_workflow(project: "Project", name: str, replaces: str | None, by: str, at: float) -> int:
    """The number of the version that was kept. Raises NotFound, PermissionDenied, ChangedMeanwhile."""
    from stretto.registry.saved_recipe import RecipeDraft, remove
    from stretto.registry.versions import open_versions

    entry = project.saved(name)
    if entry is None:
        project.read_named(name)  # which says what names there are
        raise NotFound(f"there is no saved recipe '{name}'")
    if entry.layer == "bundled":
        raise PermissionDenied(f"'{name}' comes with Stretto, and cannot be removed")
    draft = RecipeDraft(
        name, None, b"", _place(entry.file), "written", by, at, "removed", replaces=replaces
    )
    with open_versions(project.settings.home / _VERSIONS) as versions:
        return remove(draft, versions)


def versions_of(project: "Project", name: str) -> "tuple[RecipeVersion, ...]":
    """Oldest first. Raises NotFound."""
    from stretto.registry.versions import open_versions

    with open_versions(project.settings.home / _VERSIONS) as versions:
        return tuple(versions.of(_file_with_versions(project, name, versions)))


def version_of(project: "Project", name: str, number: int) -> "RecipeVersion":
    """Raises NotFound."""
    return _version(name, list(versions_of(project, name)), number)


def restore_workflow(
    project: "Project", name: str, number: int | None, at: float, by: str
) -> "SavedRecipe":
    """Raises NotFound."""
    from stretto.registry.saved_recipe import RecipeDraft, save
    from stretto.registry.versions import open_versions

    with open_versions(project.settings.home / _VERSIONS) as versions:
        file = _file_with_versions(project, name, versions)
        wanted = _version(name, versions.of(file), number)
        # Unchecked: an author may go back to a version that has problems.
        draft = RecipeDraft(
            name, None, wanted.content, file, "written", by, at,
            f"restored from version {wanted.number}", may_replace=True,
        )  # fmt: skip
        return save(draft, (), versions)


def _version(name: str, found: "list[RecipeVersion]", number: int | None) -> "RecipeVersion":
    if number is None:
        current = next((each for each in found if each.is_current), None)
        # A file that is gone, or that somebody edited, has the last version as the one before it.
        before = [each for each in found if current is None or each.number < current.number]
        different = [each for each in before if current is None or each.content != current.content]
        if not different:
            raise NotFound(f"'{name}' has no version before the one it is now")
        return different[-1]
    for each in found:
        if each.number == number:
            return each
    numbers = f"it has 1 to {found[-1].number}"
    raise NotFound(
        f"'{name}' has no version {number}", hint=f"{numbers}: stretto show {name} --versions"
    )


def _file_with_versions(project: "Project", name: str, versions: "Versions") -> Path:
    """By its name alone: whoever asks over HTTP names no file. Raises NotFound."""
    from stretto.assembly.recipe_shelf import is_named_as_file

    entry = project.saved(name)
    if entry is not None and versions.of(_place(entry.file)):
        return _place(entry.file)
    folders = [project.settings.workflows_dir, project.settings.user_workflows_dir]
    gone = versions.files_named(name, [folder.resolve() for folder in folders])
    if gone:
        return gone[0]
    if entry is None and not is_named_as_file(name):
        raise project.unknown_workflow(name)
    raise NotFound(f"'{name}' has no versions", hint="they begin when Stretto saves over a recipe")


def _read_by_name(project: "Project", source: "RecipeSource", name: str | None) -> "Recipe":
    """The recipe under the wanted name. Raises InvalidUsage for one that no file can have."""
    from stretto.assembly.recipe_files import with_name
    from stretto.documents.node import plain
    from stretto.documents.yaml_form import yaml_form

    recipe, _ = project.read(source)
    if recipe.root is None:
        project.plan(recipe)  # which says why it cannot be read
    wanted = name or recipe.name
    if not is_id(wanted) or len(wanted) > 100:
        hint = "use letters, digits, '-' and '_', at most 100"
        raise InvalidUsage(f"'{wanted[:100]}' is not a name for a recipe", hint=hint)
    text = with_name(recipe, wanted)
    there = project.saved(wanted)
    suffix = there.file.suffix if there else ".yaml"
    is_braced = there is not None and there.recipe.source.text.lstrip().startswith("{")
    if text.lstrip().startswith("{") and not is_braced and suffix != ".json":
        root = project.recipe_from_text(text).root
        text = yaml_form(plain(root)) if root is not None else text
    # Always read anew: its problems then point to the text that would be saved.
    return project.recipe_from_text(recipe.source.mark + text, f"{wanted}{suffix}")


def _target(project: "Project", name: str, entries: "list[Entry]", versions: "Versions") -> Path:
    """The file of that name; where there is none, one in the project, else one of the user's own."""
    for entry in entries:
        if entry.name == name and entry.layer != "bundled" and not entry.is_clash:
            return _place(entry.file)
    settings = project.settings
    folder = settings.workflows_dir
    if not folder.is_dir():
        return _place(settings.user_workflows_dir / f"{name}.yaml")
    is_default = folder == settings.project / "workflows"
    if is_default and not folder.resolve().is_relative_to(settings.project.resolve()):
        hint = "name the folder in stretto.yaml (workflows.dir), or remove the link"
        raise InvalidUsage(f"{folder} leads out of the project", hint=hint)
    return _place(folder / f"{name}.yaml")


def known_recipes(project: "Project", entries: "list[Entry] | None" = None) -> "list[KnownRecipe]":
    from stretto.registry.saved_recipe import KnownRecipe

    def plan_of(entry: "Entry") -> "Plan | None":
        with suppress(StrettoError):
            return None if entry.problems else project.plan(entry.recipe)
        return None

    found = project.workflows.entries() if entries is None else entries
    return [KnownRecipe(entry.name, _place(entry.file), plan_of(entry)) for entry in found]


def _place(file: Path) -> Path:
    """One name for a file, however its folder was named. A link stays a link: it is what is replaced."""
    return file.parent.resolve() / file.name


def with_name(recipe: Recipe, name: str) -> str:
    """The text of the recipe, under this name."""
    if recipe.name == name:
        return recipe.source.text
    text, place = recipe.source.text, _name_node(recipe)
    if place is not None:
        is_quoted = text[place.start] in "\"'"
        written = json.dumps(name) if is_quoted else yaml_form(name).strip()
        return text[: place.start] + written + text[place.end :]
    content = _content_with_name(recipe, name)
    if text.lstrip().startswith("{"):
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return yaml_form(content)


def _content_with_name(recipe: Recipe, name: str) -> "dict[str, Json]":
    content = plain(recipe.root) if recipe.root is not None else {}
    root = content if isinstance(content, dict) else {}
    for key in ("id", "name"):
        for body in (root, root.get("workflow")):
            if isinstance(body, dict) and str(body.get(key, "")).strip() == recipe.name:
                body[key] = name
                return root
    return {"name": name, **{key: value for key, value in root.items() if key != "name"}}


def _name_node(recipe: Recipe) -> ScalarNode | None:
    """What says the name, where it is a word that another can take the place of: no block, for one."""
    root, text = recipe.root, recipe.source.text
    bodies = [root]
    if isinstance(root, MapNode) and "workflow" in root.entries:
        bodies.append(root.entries["workflow"])
    for key in ("id", "name"):
        for body in bodies:
            node = body.entries.get(key) if isinstance(body, MapNode) else None
            if isinstance(node, ScalarNode) and node.written.strip() == recipe.name:
                is_plain = text[node.start : node.end] == node.written
                return node if is_plain or text[node.start] in "\"'" else None
    return None
