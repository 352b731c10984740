"""What an author should fix: problems as values, their codes, exceptions and renderers."""

from stretto.problems.problem import Place, Problem

__all__ = ["Place", "Problem"]
