"""Problems as exceptions, for the edge. This is the one tree of them:

StrettoError               kind                 exit code
├── InvalidRecipe          invalid_recipe       2
├── InvalidInputs          invalid_inputs       2
├── InvalidConfig          invalid_config       2
├── InvalidUsage           usage                2
│   └── AlreadyDecided     already_decided      2
├── NotFound               not_found            2
├── NotReady               not_ready            2
├── RefusedToOverwrite     exists               2
├── ChangedMeanwhile       changed              2
├── StepInUse              in_use               2
├── DiskFull               disk_full            1
├── PermissionDenied       permission_denied    4
├── PlanNotAccepted        plan_not_accepted    4
├── NotTrusted             not_trusted          4
├── MergeConflict          conflict             1   assembly.changes
├── Leased                 leased               5   ports.journal: another process drives the run
├── Fenced                 fenced               1   ports.journal: another process took it over
└── JournalFull            journal_full         1   ports.journal: the store cannot write

The server, chats, goals, `workspaces`, its adapter and the local models define further ones, for
what can go wrong there. Callers need not tell those apart: they are caught as StrettoError, and
their message says all.
"""

from collections.abc import Sequence
from typing import ClassVar

from stretto.problems.problem import Problem

_MOST_NOTES = 20


class StrettoError(Exception):
    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, problems: Sequence[Problem] = (), hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.problems = tuple(sorted(problems, key=lambda problem: problem.sort_key))
        self.hint = hint
        # A traceback shows notes: whoever calls Stretto from Python sees what to fix.
        for problem in self.problems[:_MOST_NOTES]:
            where = f"{problem.file or '<text>'}:{problem.place.line}: " if problem.place else ""
            fix = f" ({problem.hint})" if problem.hint else ""
            self.add_note(f"{where}{problem.code} {problem.message}{fix}")
        if hint:
            self.add_note(hint)

    def __reduce__(self) -> tuple[object, ...]:
        # Some errors of this tree take other arguments than `args` holds: pickle, which calls the
        # class with `args`, would fail to rebuild them.
        return _restore, (type(self), *self.args), self.__dict__

    @property
    def with_hint(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


def _restore(kind: type[StrettoError], *args: object) -> StrettoError:
    return kind.__new__(kind, *args)


class InvalidRecipe(StrettoError):
    kind = "invalid_recipe"
    exit_code = 2


class InvalidInputs(StrettoError):
    kind = "invalid_inputs"
    exit_code = 2


class InvalidConfig(StrettoError):
    kind = "invalid_config"
    exit_code = 2


class InvalidUsage(StrettoError):
    kind = "usage"
    exit_code = 2


class NotFound(StrettoError):
    kind = "not_found"
    exit_code = 2


class NotReady(StrettoError):
    """The recipe is fine, but something that it needs is missing: a key, a package, a search."""

    kind = "not_ready"
    exit_code = 2


class RefusedToOverwrite(StrettoError):
    kind = "exists"
    exit_code = 2


class ChangedMeanwhile(StrettoError):
    """What the caller saw before is not what is there now."""

    kind = "changed"
    exit_code = 2


class DiskFull(StrettoError):
    """Nothing was written, because there is no room."""

    kind = "disk_full"


class StepInUse(StrettoError):
    """Other parts of the recipe name the step: its problems say which."""

    kind = "in_use"
    exit_code = 2


class AlreadyDecided(InvalidUsage):
    """A decision about a step or a call came after another one, which stands."""

    kind = "already_decided"


class PermissionDenied(StrettoError):
    kind = "permission_denied"
    exit_code = 4


class PlanNotAccepted(StrettoError):
    """A stored plan is not known to be the one that was checked, and nobody has accepted it."""

    kind = "plan_not_accepted"
    exit_code = 4


class NotTrusted(StrettoError):
    """A run needs what its folder brings, and the folder is not trusted as it is now."""

    kind = "not_trusted"
    exit_code = 4
