"""The recipes that a recipe uses as steps. In: a draft. Out: each inner recipe, checked once.

Whatever is wrong with an inner recipe is a problem of the outer one as well: the outer file is told
where it names the inner one, and the problems of the inner file keep their own places.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from stretto.documents.node import Path
from stretto.plan.catalog import Catalog
from stretto.plan.draft import Draft, TemplateSite
from stretto.plan.edges import Edges, referred_step, stored_names
from stretto.plan.inputs import Misfit, convert
from stretto.plan.rules.templates import known_output
from stretto.problems import Problem
from stretto.recipe.model import Budget, Input, Recipe, RecipeUse, Step
from stretto.templates.template import Template
from stretto.text.short import did_you_mean, listed
from stretto.vocabulary.amounts import MOST_LEVELS
from stretto.vocabulary.json_value import Json
from stretto.vocabulary.names import StepId


class Problems(Struct, frozen=True):
    """Why there is no plan: everything at once, in the order of the file."""

    problems: tuple[Problem, ...]


class Checked(Struct, frozen=True):
    """A recipe that can become a plan, with those that it uses."""

    draft: Draft
    edges: Edges
    warnings: tuple[Problem, ...]
    inner: "Mapping[StepId, Checked]"  # by the step that uses it
    early: frozenset[str]  # inputs that a plan needs to know before the run
    size: int  # its steps, with those of the recipes in it
    levels: int  # of recipes that stand in one another; 1: it uses none


def checked_of(draft: Draft, edges: Edges, inner: Mapping[StepId, Checked]) -> Checked:
    warnings = [*draft.warnings, *(each for one in inner.values() for each in one.warnings)]
    return Checked(
        draft,
        edges,
        tuple(dict.fromkeys(warnings)),
        inner,
        early_inputs(draft, inner),
        len(draft.steps) + sum(each.size for each in inner.values()),
        1 + max((each.levels for each in inner.values()), default=0),
    )


class InnerRecipes(Struct):
    """What has been found so far, and the way to the recipe that is being checked."""

    check: "Callable[[Recipe, InnerRecipes], Checked | Problems]"
    catalog: Catalog
    way: list[Recipe] = field(default_factory=list)  # the outermost one first
    known: dict[str, Checked | Problems] = field(default_factory=dict)

    def enter(self, recipe: Recipe) -> None:
        self.way.append(recipe)

    def leave(self) -> None:
        self.way.pop()

    def of(self, draft: Draft) -> dict[StepId, Checked]:
        """Problems go to the draft, those of the inner recipes too."""
        found = dict[StepId, Checked]()
        for drafted in draft.steps:
            step, use = drafted.step, drafted.step.work
            if not isinstance(use, RecipeUse) or use.named is None:
                continue
            _check_step(draft, step)
            at = (*step.at, "workflow")
            inner = None if draft.has_problem_below(at) else self._inner(draft, at, use.named)
            if inner is not None:
                _check_given(draft, step, use, inner)
                _warn_without_effect(draft, step, inner.draft.recipe)
                found.setdefault(step.id, inner)
                draft.inner_outputs.setdefault(step.id, known_output(inner.draft))
        _check_size(draft, found)
        return found

    def _identity(self, recipe: Recipe) -> str:
        recipes = self.catalog.recipes
        return recipes.identity(recipe) if recipes else recipe.source.digest

    def _inner(self, draft: Draft, at: Path, named: str) -> Checked | None:
        if "{{" in named:
            message = "'workflow' has no templates: its steps must be known before the run"
            hint = "write a step for each workflow, and choose one with condition: or switch:"
            draft.problem_at("RCP143", at, message, hint)
            return None
        recipes = self.catalog.recipes
        found = (
            recipes.find(named, draft.recipe, self.way[0])
            if recipes
            else Misfit(
                "RCP143", f"there is no workflow '{named[:60]}'", "no recipes are known here"
            )
        )
        if isinstance(found, Misfit):
            draft.problem_at(found.code, at, found.message, found.hint)
            return None
        identity = self._identity(found)
        if self._is_refused(draft, at, identity, found.name):
            return None
        if identity not in self.known:
            self.known[identity] = self.check(found, self)
        checked = self.known[identity]
        if isinstance(checked, Problems):
            _report_broken(draft, at, named, checked.problems)
            return None
        if len(self.way) == 1 and 1 + checked.levels > MOST_LEVELS:
            _report_depth(draft, at, named)
        return checked

    def _is_refused(self, draft: Draft, at: Path, identity: str, name: str) -> bool:
        ids = [self._identity(each) for each in self.way]
        if identity in ids:
            circle = [each.name for each in self.way[ids.index(identity) :]]
            spelt = " → ".join([*circle, name])
            message = f"a workflow cannot be a step of itself: {spelt}"
            draft.problem_at("RCP144", at, message, "make a recipe of the steps that both need")
            return True
        if len(self.way) >= MOST_LEVELS:
            _report_depth(draft, at, name)
            return True
        return False


def _report_depth(draft: Draft, at: Path, name: str) -> None:
    message = f"with '{name[:60]}', workflows stand in one another more than {MOST_LEVELS} deep"
    draft.problem_at("RCP145", at, message, "use the innermost ones directly")


def _report_broken(draft: Draft, at: Path, named: str, problems: tuple[Problem, ...]) -> None:
    first = problems[0]
    line = f":{first.place.line}" if first.place else ""
    many = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    message = f"workflow '{named[:60]}' has {many}, and so has this recipe"
    draft.problem_at("RCP146", at, message, f"fix {first.file}{line}: {first.message}")
    draft.problems.extend(problems)


def _check_step(draft: Draft, step: Step) -> None:
    """What applies to one agent cannot apply to a whole recipe."""
    if step.on_failure is not None and step.on_failure.fallback is not None:
        draft.problem_at(
            "RCP113",
            (*step.at, "on_failure"),
            "a workflow step has no fallback agent: there is no prompt that the agent could get",
            f"write a step with when: \"steps.{step.id}.status == 'failed'\"",
        )
    for key, value in (("format", step.output.format), ("schema", step.output.schema)):
        if value is not None:
            draft.problem_at(
                "RCP113",
                (*step.at, "output", key),
                f"a workflow step has no '{key}' of its own: its output is that of the recipe",
                "write it in the step of that recipe that gives the output",
            )


def _warn_without_effect(draft: Draft, step: Step, inner: Recipe) -> None:
    """A run has one budget and one width, those of the outermost recipe."""
    for key, is_written in (
        ("budget", inner.budget != Budget()),
        ("max_concurrency", inner.max_concurrency is not None),
    ):
        if is_written:
            draft.warning_at(
                "RCP909",
                (*step.at, "workflow"),
                f"the {key} of workflow '{inner.name}' has no effect here",
                f"that of the outermost recipe counts: write {key}: there",
            )


def _check_size(draft: Draft, inner: Mapping[StepId, Checked]) -> None:
    own, most = len(draft.recipe.steps), draft.limits.steps
    total = own + sum(each.size for each in inner.values())
    if inner and own <= most < total:
        largest = max(inner, key=lambda id: inner[id].size)
        at = (*draft.by_id[largest].step.at, "workflow")
        message = f"with those of its workflow steps, the recipe has {total:,} steps; at most {most:,} are allowed"
        hint = "only your own ~/.stretto/stretto.yaml may raise it, under limits:"
        draft.problem_at("RCP118", at, message, hint)


def _check_given(draft: Draft, step: Step, use: RecipeUse, inner: Checked) -> None:
    declared: dict[str, Input] = {each.name: each for each in inner.draft.recipe.inputs}
    at = (*step.at, "inputs")
    for name, value in use.inputs.items():
        if name not in declared:
            known = f"its inputs: {listed(declared)}" if declared else "it has no inputs"
            hint = did_you_mean(name, list(declared)) or known
            message = f"workflow '{use.named}' has no input '{name[:60]}'"
            draft.problem_at("RCP147", (*at, name), message, hint)
        else:
            _check_value(draft, (*at, name), declared[name], value)
    has_slip = any(name not in declared for name in use.inputs)  # which is told once
    for each in () if has_slip else declared.values():
        is_given = use.inputs.get(each.name) is not None
        if each.is_required and not each.has_default and not is_given:
            message = f"workflow '{use.named}' needs the input '{each.name}'"
            where = at if draft.is_written(at) else (*step.at, "workflow")
            draft.problem_at("RCP147", where, message, f"inputs: {{{each.name}: …}}")
    _check_early(draft, step, inner.early)


def _check_value(draft: Draft, at: Path, declared: Input, value: Json) -> None:
    """What is known as soon as the recipe is read."""
    parsed = draft.parsed.get(at)
    if isinstance(parsed, Template):
        if parsed.references:
            return
        value = "".join(map(str, parsed.parts))
        if not value.strip():
            return  # it means the default
    elif _has_template(value):
        message = (
            f"a template inside a list or a mapping of input '{declared.name}' is not filled in"
        )
        draft.problem_at(
            "RCP147", at, message, "make it one template, in quotes, or let a step build it"
        )
        return
    misfit = convert(declared, value)
    if isinstance(misfit, Misfit):
        draft.problem_at("RCP147", at, misfit.message, misfit.hint)


def _has_template(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_has_template, value.values()))
    if isinstance(value, list):
        return any(map(_has_template, value))
    return isinstance(value, str) and "{{" in value


def _check_early(draft: Draft, step: Step, early: frozenset[str]) -> None:
    """Sets of files and timeouts are filled in before the run, so what they name must be known then."""
    stored = stored_names(draft)
    for name in sorted(early):
        at = (*step.at, "inputs", name)
        parsed = draft.parsed.get(at)
        if not isinstance(parsed, Template):
            continue
        site = TemplateSite(at, parsed)
        late = [
            each.text
            for each in parsed.references
            if referred_step(each, stored, site) is not None or each.path[0] == "run"
        ]
        if late:
            message = (
                f"input '{name}' is used in a set of files or a timeout of that recipe, and "
                f"{{{{{late[0]}}}}} is not known before the run"
            )
            draft.problem_at("RCP148", at, message, "give it a fixed value or one of the inputs")


def early_inputs(draft: Draft, inner: Mapping[StepId, Checked]) -> frozenset[str]:
    """The inputs whose values a plan needs before the run: here, or in a recipe further in."""
    stored = stored_names(draft)
    return frozenset(
        str(each.path[1] if each.path[0] == "inputs" and len(each.path) > 1 else each.path[0])
        for site in _early_sites(draft, inner)
        for each in site.references
        if referred_step(each, stored, site) is None
    )


def _early_sites(draft: Draft, inner: Mapping[StepId, Checked]) -> Iterator[TemplateSite]:
    yield from draft.early
    for drafted in draft.steps:
        yield from drafted.early
        for name in inner[drafted.id].early if drafted.id in inner else ():
            at = (*drafted.step.at, "inputs", name)
            parsed = draft.parsed.get(at)
            if isinstance(parsed, Template):
                yield TemplateSite(at, parsed)
