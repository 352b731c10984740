"""How a goal is verified. In: `KIND:SPEC`, as a user writes it. Out: a Verifier, or what is wrong.

command:make check            exit code 0
test:tests/unit               the project's tests; the failing ones are the evidence
ci:#12, ci:branch main        the checks of a pull request or a branch, by gh; or a command
data:report.json#done >= 3    a value of a file, a database or an address, and an expression
llm:the text has a summary    a strict judge
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from stretto.goals.evidence import read_expression
from stretto.problems.errors import InvalidUsage, StrettoError
from stretto.text.short import did_you_mean

VerifierKind: TypeAlias = Literal["command", "test", "ci", "data", "llm"]
KINDS: tuple[VerifierKind, ...] = get_args(VerifierKind)
_HINT = "write KIND:SPEC: command:CMD, test:PATHS, ci:CMD or ref, data:FILE#EXPRESSION, llm:words"
_MOST_CHARACTERS = 20_000
_PULL_REQUEST = re.compile(
    r"(?:pr[: ]?\s*|#)?(\d{1,9})\Z|https://[^\s/]+/[^\s/]+/[^\s/]+/pull/\d+/?\Z"
)
_BRANCH = re.compile(r"branch[: ]\s*([\w./+@#-]{1,200})\Z")
SQL = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verifier:
    kind: VerifierKind
    spec: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.spec}"

    @property
    def runs_command(self) -> bool:
        """Whether a program is started that the text names or chooses."""
        return self.kind in ("command", "test", "ci")

    @property
    def asks_model(self) -> bool:
        return self.kind == "llm"


@dataclass(frozen=True, slots=True)
class DataQuestion:
    source: str  # a path or a URL
    sql: str
    expression: str  # empty: the first value of the query must be true

    @property
    def is_address(self) -> bool:
        return self.source.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class CiTarget:
    """A pull request or a branch; neither: the spec is a command."""

    pull_request: str = ""
    branch: str = ""


def read_verifier(written: str) -> Verifier:
    """Raises InvalidUsage."""
    kind, colon, spec = written.partition(":")
    kind, spec = kind.strip().lower(), spec.strip()
    if not colon or kind not in KINDS:
        hint = did_you_mean(kind, KINDS) if colon else None
        raise InvalidUsage(f"'{written[:100]}' is no verifier", hint=hint or _HINT)
    if not spec and kind != "test":
        raise InvalidUsage(f"the verifier '{kind}:' has nothing after the colon", hint=_HINT)
    if len(spec) > _MOST_CHARACTERS or "\0" in spec:
        raise InvalidUsage(f"a verifier has at most {_MOST_CHARACTERS:,} characters, and no NUL")
    verifier = Verifier(next(each for each in KINDS if each == kind), spec)
    if kind == "data":
        read_data(spec)
    return verifier


def read_data(spec: str) -> DataQuestion:
    """Raises InvalidUsage."""
    source, mark, rest = spec.partition("#")
    if not mark or not source.strip() or not rest.strip():
        hint = "data:report.json#done >= 3, data:https://…#status == 200, data:app.db#SELECT …"
        raise InvalidUsage("a data verifier is FILE-or-URL#EXPRESSION", hint=hint)
    sql = ""
    if SQL.match(rest):
        sql, _, rest = rest.partition("#")
    try:
        if rest.strip():
            read_expression(rest)
    except StrettoError as error:
        raise InvalidUsage(error.message, hint="docs/recipes.md#expressions") from error
    return DataQuestion(source.strip(), sql.strip(), rest.strip())


def read_ci(spec: str, branches: frozenset[str], is_program: bool) -> CiTarget:
    """`branches`: those of the repository. A bare word is a branch if it names one, a command if
    it is a program of this machine, and else a branch that is not here yet."""
    spec = spec.strip()
    if (found := _PULL_REQUEST.match(spec)) is not None:
        return CiTarget(pull_request=found[1] or spec)
    if (named := _BRANCH.match(spec)) is not None:
        return CiTarget(branch=named[1])
    is_word = re.fullmatch(r"[\w./+@-]{1,200}", spec) is not None and not spec.startswith(
        (".", "/", "-")
    )
    if is_word and (spec in branches or not is_program):
        return CiTarget(branch=spec)
    return CiTarget()
