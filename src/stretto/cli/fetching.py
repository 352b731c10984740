"""Fetch a local model's weights when they are first needed, after asking."""

import sys

from stretto.assembly.project import Project
from stretto.cli.printing import confirm
from stretto.problems.errors import NotReady


def fetched(stretto: Project, error: NotReady) -> bool:
    """Whether what was missing, weights and nothing else, is there now."""
    from stretto.assembly.readiness import MISSING_WEIGHTS

    are_weights = all(problem.code == MISSING_WEIGHTS for problem in error.problems)
    if not (are_weights and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    from stretto.cli.models_pull import pull_named

    for problem in error.problems:
        if not confirm(f"{problem.message}. Fetch them now?", default=True, err=True):
            return False
        pull_named(stretto, problem.path)
    return True
