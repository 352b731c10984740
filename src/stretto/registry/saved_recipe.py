"""Save a recipe so that nothing is lost. In: a checked recipe and what is saved. Out: SavedRecipe, or a refusal.

A person may replace what they name. What an agent saves is *emitted*, and trusted less:

- it replaces emitted recipes only, never one that a person wrote or edited, in any layer;
- it does not leave out a gate: neither one of the recipe that it replaces, nor one that another saved
  recipe has before the same work;
- what is saved already under another name is not saved twice;
- what it may do to the machine is asked for in each run, until a person has read it.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.config.home import make_private
from stretto.plan.graph_match import match_steps, step_that_does
from stretto.problems.errors import (
    ChangedMeanwhile,
    NotFound,
    PermissionDenied,
    RefusedToOverwrite,
    StrettoError,
)
from stretto.registry.versions import RecipeOrigin, Versions, content_of

if TYPE_CHECKING:
    from stretto.plan.model import Plan, PlannedStep


@dataclass(frozen=True, slots=True)
class SavedRecipe:
    name: str
    file: Path
    version: int  # 0: nothing was written
    origin: RecipeOrigin
    replaced: int | None = None  # the version that it replaced
    same_as: str = ""  # a saved recipe that is the same already, and stays alone


@dataclass(frozen=True, slots=True)
class KnownRecipe:
    """A recipe that is saved already."""

    name: str
    file: Path
    plan: "Plan | None"  # None: it has problems, so it is no graph


@dataclass(frozen=True, slots=True)
class DroppedGate:
    step: str  # that would need one
    says: str  # where the gate is


@dataclass(frozen=True, slots=True)
class RecipeDraft:
    """A recipe that somebody wants to save."""

    name: str
    plan: "Plan | None"  # needed for an emitted one only
    content: bytes
    file: Path  # where it is to be
    origin: RecipeOrigin
    by: str
    at: float
    why: str = "saved"
    may_replace: bool = False  # a person said so
    replaces: str | None = None  # the digest of what is to be there now; "" for nothing; None: any
    is_trial: bool = False  # it is checked, and nothing is written
    is_read: bool = False  # by a person, before it is saved


def save(draft: RecipeDraft, known: Sequence[KnownRecipe], versions: Versions) -> SavedRecipe:
    """Raises RefusedToOverwrite, PermissionDenied, and StrettoError where it cannot be written."""
    with versions.change():
        there = content_of(draft.file)
        check_unchanged(draft.name, there, draft.replaces)
        if draft.origin == "emitted":
            _refuse_replacing_a_persons(draft, known, versions)
            _refuse_dropping_gates(draft, known)
            if twin := _twin(draft, known):
                return SavedRecipe(twin.name, twin.file, 0, versions.origin_of(twin.file),
                                   same_as=twin.name)  # fmt: skip
        elif there is not None and not draft.may_replace:
            hint = "save it under another name, or replace that one; its versions are kept"
            raise RefusedToOverwrite(f"{draft.file} exists already", hint=hint)
        if draft.is_trial:
            return SavedRecipe(draft.name, draft.file, 0, draft.origin)
        if there == draft.content:
            return _keep_unchanged(draft, versions)
        replaced = None if there is None else _keep(draft, there, versions)
        number = _add(draft, versions)
    # The versions are on record: whatever happens from here on, nothing is lost.
    _write(draft.file, draft.content, there)
    return SavedRecipe(draft.name, draft.file, number, draft.origin, replaced)


def check_unchanged(name: str, there: bytes | None, digest: str | None) -> None:
    """Raises ChangedMeanwhile unless the caller has seen what is saved now. None: the caller saw nothing."""
    if digest is not None and digest != (sha256(there).hexdigest() if there is not None else ""):
        hint = "look at it again, and change that"
        raise ChangedMeanwhile(f"'{name}' is not what it was when you saw it", hint=hint)


def remove(
    draft: RecipeDraft,
    versions: Versions,
) -> int:
    """Take a recipe away; its versions stay, and `restore` brings it back. Gives the last one's number.

    Raises ChangedMeanwhile, and StrettoError where it cannot be removed. Of `draft` only the name,
    the file and `replaces` count.
    """
    with versions.change():
        there = content_of(draft.file)
        check_unchanged(draft.name, there, draft.replaces)
        if there is None:
            raise NotFound(f"there is no file {draft.file}")
        number = _keep(draft, there, versions)
    try:
        if content_of(draft.file) != there:
            raise RefusedToOverwrite(
                f"{draft.file} was changed at the same moment", hint="try again"
            )
        draft.file.unlink()
    except OSError as error:
        raise StrettoError(f"{draft.file} cannot be removed: {error.strerror}") from error
    return number


def _keep_unchanged(draft: RecipeDraft, versions: Versions) -> SavedRecipe:
    name, origin = draft.name, versions.origin_of(draft.file)
    is_read_now = draft.is_read and versions.unread([sha256(draft.content).hexdigest()])
    if draft.origin == origin and not is_read_now:
        return SavedRecipe(name, draft.file, 0, origin, same_as=name)
    # A person vouches for what an agent had written, or has read it by now.
    number = _add(draft, versions)
    return SavedRecipe(name, draft.file, number, draft.origin)


def _add(draft: RecipeDraft, versions: Versions) -> int:
    return versions.add(
        draft.file, draft.content, draft.origin, draft.at, draft.by, draft.why, draft.is_read
    )


def _keep(draft: RecipeDraft, there: bytes, versions: Versions) -> int:
    """The number of what is replaced; a file that somebody edited becomes a version now."""
    current = next((each for each in versions.of(draft.file) if each.is_current), None)
    if current is not None:
        return current.number
    at = draft.file.stat().st_mtime
    return versions.add(draft.file, there, "written", at, "", "found in its file")


def _refuse_replacing_a_persons(
    draft: RecipeDraft, known: Sequence[KnownRecipe], versions: Versions
) -> None:
    files = [each.file for each in known if each.name == draft.name]
    for file in dict.fromkeys((*files, draft.file)):
        if os.path.lexists(file) and versions.origin_of(file) != "emitted":
            raise RefusedToOverwrite(
                f"'{draft.name}' is a recipe that a person wrote ({file}), and what an agent "
                "saves never replaces that",
                hint="save it under another name",
            )


def _refuse_dropping_gates(draft: RecipeDraft, known: Sequence[KnownRecipe]) -> None:
    assert draft.plan is not None
    for dropped in dropped_gates(draft.plan, known):
        raise PermissionDenied(
            f"{dropped.says}; what an agent saves may not do the same work without that gate",
            hint=f"add gate: human to step '{dropped.step}'",
        )


def dropped_gates(plan: "Plan", known: Sequence[KnownRecipe]) -> Iterator[DroppedGate]:
    """Work of this plan that waits for a person in a saved recipe, and does not wait here."""
    for each in known:
        for gated in each.plan.steps if each.plan else ():
            step = _find_ungated(plan, each, gated) if gated.is_gated else None
            if step is not None:
                says = f"step '{gated.id}' of '{each.name}' waits for a person"
                yield DroppedGate(step, says)


def _find_ungated(plan: "Plan", known: KnownRecipe, gated: "PlannedStep") -> str | None:
    """The step that does the work of a gated one, and has no gate."""
    assert known.plan is not None
    own = next((step for step in plan.steps if step.id == gated.id), None)
    if known.name == plan.name and (own is None or not own.is_gated):
        return gated.id
    behind = f"{gated.id}/"  # a gate before a workflow is one before all of its steps
    wanted = [e for e in known.plan.steps if e.id == gated.id or e.id.startswith(behind)]
    return step_that_does(plan, _open_steps(plan), known.plan, wanted)


def _open_steps(plan: "Plan") -> "list[PlannedStep]":
    """The steps that start without a person."""
    gates = [f"{step.id}/" for step in plan.steps if step.is_gated]
    return [
        step
        for step in plan.steps
        if not step.is_gated and not any(step.id.startswith(each) for each in gates)
    ]


def _twin(draft: RecipeDraft, known: Sequence[KnownRecipe]) -> KnownRecipe | None:
    assert draft.plan is not None
    return twin_of(draft.plan, known, draft.name)


def twin_of(plan: "Plan", known: Sequence[KnownRecipe], name: str) -> KnownRecipe | None:
    """A saved recipe that is the same graph with the same prompts, under another name than this."""
    others = (each for each in known if each.name != name)
    return next((each for each in others if each.plan and match_steps(plan, each.plan)), None)


def _write(file: Path, content: bytes, there: bytes | None) -> None:
    """All of it or nothing, and only over what was looked at before."""
    own = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
    try:
        make_private(file.parent)
        with open(own, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if there is None:
            os.link(own, file)  # fails where another process was quicker
        elif content_of(file) != there:
            raise FileExistsError(17, "another process changed it at the same moment")
        else:
            os.replace(own, file)
    except FileExistsError as error:
        raise RefusedToOverwrite(
            f"{file} was changed while it was saved", hint="try again"
        ) from error
    except OSError as error:
        raise StrettoError(f"{file} cannot be written: {error.strerror}") from error
    finally:
        own.unlink(missing_ok=True)
