"""What a check has found, as text that models and people can read. In: what programs printed, test
reports, lists of CI checks, values. Out: a CheckResult.

The text is short, holds no secret and no control sequence. Its fingerprint leaves out what differs
from one time to the next without meaning anything: times, durations, addresses, temporary names.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from xml.etree import ElementTree

from stretto.problems.errors import StrettoError
from stretto.templates.evaluate import Undecided, decide
from stretto.templates.expression import Expression, parse_expression
from stretto.templates.scope import Missing, Scope, resolve
from stretto.templates.template import Fault
from stretto.text.short import counted, cut_middle, shorten, show_json
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json

MOST_EVIDENCE = 8_000  # characters
_MOST_COMPARED = 100_000  # characters of it that are looked at
_HEAD = 2_000  # of them from the beginning; the end says more
_MOST_NAMED = 30  # failing tests or checks
_NOTHING_USED = Usage()
_MOST_XML = 4 * 1024 * 1024
_CONTROL_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
)
_FLEETING = (
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<date>"),
    (re.compile(r"(?<![\w:.])\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\w:])"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ns|us|µs|ms|s|secs?|seconds?|m|mins?|minutes?)\b"), "<duration>"),
    (re.compile(r"/tmp/[^/\s'\":]+"), "/tmp/<name>"),
    (re.compile(r"\b(pid|process|port)[ =:]+\d+", re.IGNORECASE), r"\1 <number>"),
    (re.compile(r"\b1\d{9}(?:\d{3})?(?:\.\d+)?\b"), "<date>"),
    (re.compile(r"\s+"), " "),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckResult:
    is_met: bool
    evidence: str
    fingerprint: str
    usage: Usage = Usage()
    cannot_run: bool = False  # the verifier itself is at fault: no iteration would help


def check_result(
    is_met: bool,
    text: str,
    hide: Callable[[str], str] = str,
    *,
    usage: Usage = _NOTHING_USED,
    cannot_run: bool = False,
) -> CheckResult:
    """`hide`: takes the secrets out. It gets all of the text: half a secret is not recognised."""
    safe = _CONTROL_SEQUENCE.sub("", hide(text)).encode("utf-8", "replace").decode()
    safe = "".join(c for c in safe if c in "\n\t" or c.isprintable() or c.isspace()).strip()
    # Again: colours and invisible characters may have stood in the middle of a secret.
    safe = cut(hide(safe), _MOST_COMPARED)  # a program may print without end
    return CheckResult(is_met, cut(safe), fingerprint(safe), usage, cannot_run)


def cut(text: str, most: int = MOST_EVIDENCE) -> str:
    """The beginning and the end, with a note of what is missing between them."""
    return cut_middle(text, most, head=min(_HEAD, most // 4))


def fingerprint(text: str) -> str:
    for pattern, mark in _FLEETING:
        text = pattern.sub(mark, text)
    return sha256(text.strip().encode("utf-8", "replace")).hexdigest()[:16]


def say_exit(exit_code: int, limit: str, output: str) -> str:
    how = f"exit code {exit_code}"
    if limit == "wall_seconds":
        how = "it did not end in time and was stopped"
    elif limit:
        how = f"it was stopped at its limit: {limit}"
    return f"{how}\n{output.strip()}".strip()


@dataclass(frozen=True, slots=True)
class TestCounts:
    """What a JUnit report says."""

    __test__ = False  # for pytest: this is no test

    run: int
    failed: tuple[tuple[str, str], ...]  # name, message
    skipped: int
    unnamed: int = 0  # failures that a suite counts, and that no test of it is named for

    def __add__(self, other: "TestCounts") -> "TestCounts":
        return TestCounts(
            self.run + other.run, self.failed + other.failed,
            self.skipped + other.skipped, self.unnamed + other.unnamed,
        )  # fmt: skip

    @property
    def is_good(self) -> bool:
        """Some ran, and none failed."""
        return not (self.failed or self.unnamed) and self.run > self.skipped

    @property
    def evidence(self) -> str:
        lines = [f"{len(self.failed)} of {counted(self.run, 'test')} failed"]
        for name, message in self.failed[:_MOST_NAMED]:
            lines.append(f"FAILED {name}: {message}" if message else f"FAILED {name}")
        if len(self.failed) > _MOST_NAMED:
            lines.append(f"… and {len(self.failed) - _MOST_NAMED} more")
        if self.unnamed:
            lines.append(f"{counted(self.unnamed, 'failure')} that no test is named for")
        if self.run <= self.skipped:
            lines.append("no test ran, so nothing is verified")
        return "\n".join(lines)


def read_junit(text: str) -> TestCounts | None:
    """None for what is no JUnit report. Entities are not expanded: a report has none."""
    text = text.removeprefix("\ufeff")
    if len(text) > _MOST_XML or "<!DOCTYPE" in text or "<!ENTITY" in text:
        return None
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return None
    if root.tag not in ("testsuites", "testsuite"):
        return None
    cases = list(root.iter("testcase"))
    failed = tuple(
        (_case_name(case.get("classname", ""), case.get("name", "")), _first_line(fault))
        for case in cases
        if (fault := _fault_of(case)) is not None
    )
    skipped = sum(any(e.tag == "skipped" for e in case) for case in cases)
    unnamed = max((_count_unnamed(suite) for suite in root.iter("testsuite")), default=0)
    return TestCounts(len(cases), failed, skipped, unnamed)


def _fault_of(case: "ElementTree.Element") -> "ElementTree.Element | None":
    return next((each for each in case if each.tag in ("failure", "error")), None)


def _count_unnamed(suite: "ElementTree.Element") -> int:
    """A suite that broke before its tests says so in its counts alone."""
    claims = (suite.get(name, "0") for name in ("failures", "errors"))
    claimed = sum(
        int(each) for each in claims if each.isascii() and each.isdigit() and len(each) < 9
    )
    return max(0, claimed - sum(_fault_of(each) is not None for each in suite.iter("testcase")))


def _case_name(group: str, name: str) -> str:
    return shorten(f"{group}::{name}" if group else name, 200)


def _first_line(fault: "ElementTree.Element") -> str:
    said = fault.get("message") or fault.text or ""
    return shorten(" ".join(said.split()), 300)


def read_checks(text: str, what: str) -> tuple[bool, str]:
    """Of `gh pr checks --json` or `gh run list --json`: are all of them green? Anything that is not
    clearly green is not."""
    rows = _check_rows(text)
    if rows is None:
        return False, f"gh printed unexpected output about {what}: {shorten(text, 500)}"
    if not rows:
        return False, f"{what} has no checks yet"
    bad = [(_check_name(row), word) for row in rows if (word := _check_word(row)) not in _GREEN]
    if not bad and not any(_check_word(row) in _PASSED for row in rows):
        each = "its only check was" if len(rows) == 1 else f"all {len(rows)} checks were"
        return False, f"{what}: {each} skipped, so nothing is verified"
    if not bad:
        return True, f"{what}: {counted(len(rows), 'check')} passed"
    lines = [f"{what}: {len(bad)} of {counted(len(rows), 'check')} not passed"]
    lines += [f"{word.upper()} {name}" for name, word in bad[:_MOST_NAMED]]
    return False, "\n".join(lines)


def is_pending(text: str) -> bool:
    """Whether a check is still at work."""
    return any(_check_word(row) in _PENDING for row in _check_rows(text) or ())


def _check_rows(text: str) -> list[dict[str, object]] | None:
    """Of a branch's runs, the newest of each workflow at its newest commit."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    if not rows or "headSha" not in rows[0]:
        return rows
    newest = [row for row in rows if row.get("headSha") == rows[0]["headSha"]]
    return list({_check_name(row): row for row in reversed(newest)}.values())


def _check_name(row: Mapping[str, object]) -> str:
    return str(row.get("workflowName") or row.get("name") or "?")


_PASSED = ("success", "pass")
_GREEN = (*_PASSED, "skipping", "skipped", "neutral")
_PENDING = ("pending", "queued", "in_progress", "waiting", "requested", "expected")


def _check_word(row: Mapping[str, object]) -> str:
    for key in ("conclusion", "bucket", "state", "status"):
        if isinstance(word := row.get(key), str) and word:
            return word.lower()
    return "unknown"


def read_expression(text: str) -> Expression:
    """Raises StrettoError. `$.a.b`, as JSON paths are written, is `data.a.b` here."""
    said = re.sub(r"^\$(?=\W|$)", "data", text.strip())
    parsed = parse_expression(said)
    if isinstance(parsed, Fault):
        raise StrettoError(f"'{shorten(text, 100)}' is no expression: {parsed.message}")
    return parsed


def decide_data(
    expression: Expression, values: Mapping[str, Json], hide: Callable[[str], str]
) -> CheckResult:
    """Met only where the expression is clearly true; the evidence shows the values that it names."""
    scope = Scope(inputs=values)
    claim = decide(expression, scope)
    named = [(each.text, resolve(each, scope)) for each in expression.references]
    shown = [
        f"{name} is {'missing' if isinstance(value, Missing) else show_json(value, 300)}"
        for name, value in dict(named).items()
    ]
    if isinstance(claim, Undecided):
        return check_result(False, "\n".join((f"undecided: {claim.reason}", *shown)), hide)
    head = f"{expression.text} is {'true' if claim else 'false'}"
    return check_result(claim, "\n".join((head, *shown)), hide)


def judge_result(
    status: str, output: Json, usage: Usage, issues: Sequence[str], hide: Callable[[str], str]
) -> CheckResult:
    """Any doubt is "not met": an error, another form, a `passed` that is not true, no reason."""
    if status != "complete":
        why = "; ".join(issues) or f"its run is {status}"
        return check_result(False, f"the judge gave no verdict: {why}", hide, usage=usage)
    passed = output.get("passed") if isinstance(output, dict) else None
    reason = output.get("reason") if isinstance(output, dict) else None
    if type(passed) is not bool or not isinstance(reason, str) or not reason.strip():
        said = f"the judge's verdict has not the form that was asked for: {show_json(output, 300)}"
        return check_result(False, said, hide, usage=usage)
    return check_result(passed, reason, hide, usage=usage)
