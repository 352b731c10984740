"""Verify a goal. In: a verifier and a project. Out: a CheckResult; whatever goes wrong is "not met".

Commands run in the sandbox of Bash and of command steps, in the project's folder. `gh` alone runs on
the host, found before it is started and never in a folder that steps write to: it needs the user's
login. What a model is asked is no part of this module: a judge's check is a run.
"""

import asyncio
import csv
import io
import math
import os
import re
import shlex
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING
from urllib.parse import quote

from stretto.assembly.models import SANDBOX_OFF, place_problems
from stretto.assembly.subagents import tool_settings
from stretto.documents.document import read_bytes
from stretto.documents.node import plain
from stretto.documents.regular_file import read_regular, read_start
from stretto.events.attempts import AttemptId
from stretto.goals.evidence import (
    CheckResult,
    TestCounts,
    check_result,
    decide_data,
    is_pending,
    read_checks,
    read_expression,
    read_junit,
    say_exit,
)
from stretto.goals.verifier import CiTarget, DataQuestion, Verifier, read_ci, read_data
from stretto.ports.runner import AttemptRequest
from stretto.problems.errors import StrettoError
from stretto.processes.programs import ProgramStart, find_program, with_safe_path
from stretto.processes.watchdog import ResourceLimits
from stretto.text.short import listed, shorten, show_json
from stretto.validation.program_output import why_gave_up, why_idle
from stretto.validation.test_output import tells_of_tests, why_failed, why_not_run, why_untested
from stretto.vocabulary.json_value import Json, read_json
from stretto.vocabulary.names import COMMAND_AGENT, StepId
from stretto.workspaces.protected import is_secret

if TYPE_CHECKING:
    from stretto.adapters.tools.web_client import Page
    from stretto.assembly.project import Project
    from stretto.processes.limited import ProgramEnd
    from stretto.workspaces.sandbox.confinement import Ran

_MOST_OUTPUT_BYTES = 6 * 1024 * 1024
_MOST_DATA_BYTES = 8 * 1024 * 1024
_MOST_ROWS = 10_000
_NOT_RUNNABLE = (126, 127)  # what a shell says of a program that is not there
_MISSING = re.compile(r"^.*: line \d+: (\S+): command not found$", re.MULTILINE)
_MOST_REPORTS = 500  # that one pattern stands for
_POLL_SECONDS = (1.0, 15.0)  # while CI is at work: the first pause, and the longest
_SQLITE = b"SQLite format 3\0"
_READING = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
_PYTHONS = (".venv/bin/python", "venv/bin/python")
_PYTEST_MARKS = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", "conftest.py")


class CannotVerify(StrettoError):
    """The verifier itself cannot run here: no iteration would help."""

    kind = "not_ready"


@dataclass(frozen=True, slots=True)
class TestProgram:
    """How the tests of a project are run, and how their output names those that failed."""

    __test__ = False  # for pytest: this is no test

    command: str
    failed: re.Pattern[str] | None = None  # None: by a JUnit report
    mark: str = ""  # stands before the report


class Checks:
    """The verifiers that ask no model."""

    def __init__(self, project: "Project", *, may_write: bool, is_asked_by_person: bool) -> None:
        """`may_write`: a command may build and cache in the workspace. `is_asked_by_person`: then a
        file outside the workspace and an address that is not public may be named too."""
        self._project = project
        self._may_write = may_write
        self._is_asked_by_person = is_asked_by_person

    async def run(self, verifier: Verifier, seconds: float) -> CheckResult:
        """Never raises for what a verifier meets; cancelling it ends what it started."""
        try:
            async with asyncio.timeout(seconds + 5):
                return await self._run(verifier, seconds)
        except TimeoutError:
            return self._not_met(f"it did not end within {seconds:g} seconds and was stopped")
        except CannotVerify as error:
            return check_result(False, error.with_hint, self._hide, cannot_run=True)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return self._not_met(f"it could not be checked: {where}{error.strerror or error}")
        except (StrettoError, ValueError, sqlite3.Error, sqlite3.Warning) as error:
            return self._not_met(f"it could not be checked: {error}")
        except RuntimeError as error:  # of a path: a link to itself, `~nobody`; or too deep nesting
            return self._not_met(f"it could not be checked: {error}")

    async def _run(self, verifier: Verifier, seconds: float) -> CheckResult:
        match verifier.kind:
            case "command":
                return await self._command(verifier.spec, seconds)
            case "test":
                return await self._tests(verifier.spec, seconds)
            case "ci":
                return await self._ci(verifier.spec, seconds)
            case "data":
                return await self._data(read_data(verifier.spec), seconds)
            case "llm":
                raise AssertionError("a judge's check is a run")

    def _hide(self, text: str) -> str:
        return self._project.redactor.text(text)

    def _not_met(self, said: str) -> CheckResult:
        return check_result(False, said, self._hide)

    async def _command(self, command: str, seconds: float) -> CheckResult:
        ran = await self._shell(command, seconds)
        is_met = ran.exit_code == 0 and ran.limit_hit is None
        # A script that is named by its path may be what the goal is about; a program is not.
        is_missing = ran.exit_code in _NOT_RUNNABLE and ran.limit_hit is None and "/" not in command
        if is_met and (unproven := _unproven(ran.output)):
            return self._not_met(f"{unproven}\n{_describe_exit(ran)}")
        return check_result(is_met, _describe_exit(ran), self._hide, cannot_run=is_missing)

    async def _tests(self, paths: str, seconds: float) -> CheckResult:
        if (words := shlex.split(paths)) and all(word.endswith(".xml") for word in words):
            return await asyncio.to_thread(self._reports, words)
        program = await asyncio.to_thread(find_tests, self._project.settings.project, paths)
        ran = await self._shell(program.command, seconds)
        _check_there(program, ran)
        output, _, report = (
            ran.output.partition(program.mark) if program.mark else (ran.output, "", "")
        )
        if "No module named pytest" in output:
            hint = "install it into .venv of the workspace, or: command:python3 -m unittest"
            raise CannotVerify("pytest is not installed for the workspace's Python", hint=hint)
        passed = ran.exit_code == 0 and ran.limit_hit is None
        if program.failed is not None:
            names = list(dict.fromkeys(program.failed.findall(output)))
            named = "".join(f"FAILED {name}\n" for name in names[:30])
            if passed and not names and (unproven := _unproven(output)):
                return self._not_met(f"{unproven}\n{_describe_exit(ran)}")
            return check_result(passed and not names, f"{named}{_describe_exit(ran)}", self._hide)
        counts = await asyncio.to_thread(read_junit, report.strip())
        if counts is None:
            said = say_exit(ran.exit_code, ran.limit_hit or "", output)
            return check_result(False, said, self._hide)
        is_met = passed and counts.is_good
        said = counts.evidence
        if not is_met and not counts.failed:
            said = f"{said}\n{say_exit(ran.exit_code, ran.limit_hit or '', output)}"
        return check_result(is_met, said, self._hide)

    def _reports(self, words: list[str]) -> CheckResult:
        """JUnit reports that somebody else has written: a build, an earlier step."""
        root = self._project.settings.project
        counts, said = TestCounts(0, (), 0), list[str]()
        for word in words:
            is_pattern = any(mark in word for mark in "*?[")
            if is_pattern and word.startswith("/"):
                raise ValueError(f"a pattern is relative to the workspace, and {word} is not")
            found = sorted(root.glob(word)) if is_pattern else [root / word]
            if len(found) > _MOST_REPORTS:  # the failure may be in one that is not read
                said.append(f"{word} stands for more than {_MOST_REPORTS} reports: name fewer")
                continue
            if not any(each.is_file() for each in found):
                said.append(f"there is no report {word}")
            for file in filter(Path.is_file, found):
                name = os.path.relpath(file, root)
                text = read_regular(self._place(name), _MOST_DATA_BYTES).decode("utf-8", "replace")
                if (read := read_junit(text)) is None:
                    said.append(f"{name} is no JUnit report")
                else:
                    counts += read
        evidence = "\n".join([*said, counts.evidence])
        return check_result(not said and counts.is_good, evidence, self._hide)

    async def _shell(self, command: str, seconds: float) -> "Ran":
        """Raises CannotVerify where no command may run here."""
        from stretto.adapters.tools.bash import confine, open_shell
        from stretto.adapters.tools.outcomes import CallRefused
        from stretto.adapters.tools.toolbox import StandardToolbox
        from stretto.workspaces.sandbox.confinement import CommandRefused

        settings = self._project.settings
        for problem in place_problems(self._project, "the verifier"):
            raise CannotVerify(problem.message, hint=problem.hint)
        toolbox = StandardToolbox(tool_settings(settings), self._project.environ)
        request = _request(str(settings.project), self._may_write)
        shell_settings = toolbox.shell_settings(request)
        try:
            shell = await open_shell(shell_settings)
        except CallRefused as refused:
            raise CannotVerify(str(refused)) from None
        confinement = confine(toolbox.reach(request), shell_settings, seconds)
        ran = await shell.run(
            command,
            replace(
                confinement,
                environment={**confinement.environment, "PYTHONDONTWRITEBYTECODE": "1"},
                limits=replace(confinement.limits, output_bytes=_MOST_OUTPUT_BYTES),
            ),
        )
        if isinstance(ran, CommandRefused):
            raise CannotVerify(ran.says, hint=ran.fix)
        return ran

    async def _ci(self, spec: str, seconds: float) -> CheckResult:
        target = await asyncio.to_thread(self._ci_target, spec)
        if not (target.pull_request or target.branch):
            return await self._command(spec, seconds)
        loop = asyncio.get_running_loop()
        give_up_at, pause = loop.time() + seconds, _POLL_SECONDS[0]
        while True:
            ended = await self._gh(target, max(1.0, give_up_at - loop.time()))
            what = f"PR {target.pull_request}" if target.pull_request else f"branch {target.branch}"
            if not ended.output.strip():
                said = say_exit(ended.exit_code, ended.limit_hit or "", ended.errors)
                return self._not_met(f"gh says nothing of {what}: {said}")
            is_met, said = read_checks(ended.output, what)
            # Whoever works on while checks are under way would work on old evidence.
            if not is_pending(ended.output) or loop.time() + pause >= give_up_at:
                return check_result(is_met, said, self._hide)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _POLL_SECONDS[1])

    def _ci_target(self, spec: str) -> CiTarget:
        settings = self._project.settings
        word = spec.split()[0]
        path = self._project.environ.get("PATH", os.defpath)
        is_program = os.sep not in word and find_program(word, path) is not None
        return read_ci(spec, _branches(settings.project), is_program)

    async def _gh(self, target: CiTarget, seconds: float) -> "ProgramEnd":
        from stretto.processes.limited import run_limited

        settings, environ = self._project.settings, self._project.environ
        gh = find_program("gh", environ.get("PATH", os.defpath), settings.steps_write)
        if gh is None:
            hint = "install GitHub's gh and log in: gh auth login; or use ci:COMMAND"
            raise CannotVerify(
                "gh is not on PATH, so the checks of CI cannot be asked for", hint=hint
            )
        words: tuple[str, ...]
        if target.pull_request:
            words = ("pr", "checks", target.pull_request, "--json", "name,state,bucket")
        else:
            fields = "name,workflowName,status,conclusion,headSha"
            words = ("run", "list", f"--branch={target.branch}", "--limit=50", "--json", fields)
        quiet = {
            "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1", "GH_NO_UPDATE_NOTIFIER": "1",
            # gh asks git for the remotes: a repository's own config may start no program.
            "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false",
            "GIT_CONFIG_KEY_1": "core.hooksPath", "GIT_CONFIG_VALUE_1": "/dev/null",
        }  # fmt: skip
        start = ProgramStart(
            (gh, *words),
            settings.project,
            {**with_safe_path(environ, settings.steps_write), **quiet},
        )
        limits = ResourceLimits(wall_seconds=min(seconds, 120.0))
        return await run_limited(start, limits, (), is_namespace=False, keeps_errors=True)

    async def _data(self, asked: DataQuestion, seconds: float) -> CheckResult:
        if asked.is_address:
            values = _page_values(await self._fetch(asked.source, seconds))
        else:
            place = self._place(asked.source)
            if asked.sql:
                # Without an expression only the first value counts.
                is_whole = bool(asked.expression)
                values = await asyncio.to_thread(_query, place, asked.sql, seconds, is_whole)
            else:
                values = await asyncio.to_thread(_file_values, place)
        if not asked.expression:
            return self._of_value(values["value"])
        expression = read_expression(asked.expression)
        return await asyncio.to_thread(decide_data, expression, values, self._hide)

    def _of_value(self, value: Json) -> CheckResult:
        """Of a query without an expression. A number is the answer; a text has no agreed meaning."""
        said = f"the query gives {show_json(value, 300)}"
        if isinstance(value, int | float):
            return check_result(bool(value) and not math.isnan(value), said, self._hide)
        if value is not None:
            said = f"{said}, which is no number: say what it should be, …#value == 'done'"
        return self._not_met(said)

    def _place(self, written: str) -> Path:
        """The file that is read. A person may name one anywhere, but a link in the workspace may be a
        step's: it is followed only to where a model may point as well."""
        root = self._project.settings.project.resolve()
        named = Path(os.path.normpath(root / Path(written).expanduser()))
        place = named.resolve()
        is_named = place == named or not named.is_relative_to(root)
        if self._is_asked_by_person and is_named:
            return place
        by = "" if is_named else " by a link"
        if not place.is_relative_to(root):
            raise CannotVerify(f"{written} leads out of the workspace{by}, and no person named it")
        if is_secret(place.relative_to(root).parts):
            raise CannotVerify(f"{written} leads to a file of keys{by}, and no person named it")
        return place

    async def _fetch(self, address: str, seconds: float) -> "Page":
        from stretto.adapters.tools.outcomes import CallFailed, CallRefused
        from stretto.adapters.tools.web_client import WebClient, read_url
        from stretto.adapters.tools.web_fetch import follow

        allowed = frozenset(self._project.settings.web_allow_private)
        try:
            if self._is_asked_by_person:
                # Loopback and private addresses are for the person to name: this one, no other.
                allowed |= {read_url(address, _AnyPlace()).place}
            async with asyncio.timeout(seconds):
                _, page = await follow(WebClient(allow_private=allowed), (), address)
        except CallRefused as refused:
            raise CannotVerify(str(refused)) from None
        except CallFailed as failed:
            raise StrettoError(str(failed)) from None
        return page


class _AnyPlace(frozenset[str]):
    def __contains__(self, place: object) -> bool:
        return True


def _check_there(program: TestProgram, ran: "Ran") -> None:
    """Raises CannotVerify. What a script of the project lacks is another matter: it may come to be."""
    lacks = _MISSING.search(ran.output) if ran.exit_code in _NOT_RUNNABLE else None
    if lacks is not None and lacks[1] == program.command.split()[0]:
        hint = "commands find programs in /usr and, by their paths, in the workspace"
        raise CannotVerify(f"the sandbox of commands has no program {lacks[1]}", hint=hint)


def _describe_exit(ran: "Ran") -> str:
    note = "" if ran.is_confined else f"\n[{SANDBOX_OFF}]"
    return f"{say_exit(ran.exit_code, ran.limit_hit or '', ran.output)}{note}"


def _unproven(output: str) -> str:
    """Why exit code 0 proves nothing, if it does not: who works on until tests pass is not done
    where there are none, nor where a pipe hides the exit code of those that failed or never began."""
    if failed := why_failed(output):
        return f"exit code 0, but a test failed: {shorten(failed, 200)}"
    if why := why_untested(output):
        return f"no test ran, so nothing is verified: {shorten(why, 200)}"
    if tells_of_tests(output):
        return ""
    if lost := why_not_run(output):
        return f"exit code 0, but a part of it did not run: {shorten(lost, 200)}"
    if why := why_gave_up(output):
        return f"exit code 0, but a part of it failed: {shorten(why, 200)}"
    idle = why_idle(output)
    return (
        f"it had no file to work on, so nothing is verified: {shorten(idle, 200)}" if idle else ""
    )


def _request(workspace: str, may_write: bool) -> AttemptRequest:
    """The verifier as an attempt of a step that runs a command."""
    return AttemptRequest(
        run_id="",
        attempt=AttemptId(StepId("verify"), 1),
        agent=COMMAND_AGENT,
        instructions="",
        prompt="",
        model=None,
        tools=(),
        max_turns=None,
        format=None,
        schema=None,
        rules=(),
        workspace=workspace,
        may_write=may_write,
        write_set=("**/*",) if may_write else (),
    )


def find_tests(folder: Path, paths: str) -> TestProgram:
    """Raises CannotVerify where no tests are found, and ValueError for quotes that do not close."""
    words = " ".join(map(shlex.quote, shlex.split(paths)))
    is_python = any(Path(word.partition("::")[0]).suffix == ".py" for word in shlex.split(paths))
    if is_python or any((folder / mark).is_file() for mark in _PYTEST_MARKS):
        return _pytest(folder, words)
    if (folder / "package.json").is_file():
        failed = re.compile(r"^\s*(?:✕|✖|×|not ok \d+ -)\s*(.{1,200}?)(?: \(.*\))?$", re.MULTILINE)
        return TestProgram(f"npm test --silent {'-- ' + words if words else ''}", failed)
    if (folder / "go.mod").is_file():
        failed = re.compile(r"^\s*--- FAIL: (\S{1,200})", re.MULTILINE)
        return TestProgram(f"go test {words or './...'}", failed)
    if (folder / "Cargo.toml").is_file():
        failed = re.compile(r"^test (\S{1,200}) \.\.\. FAILED$", re.MULTILINE)
        return TestProgram(f"cargo test {words}", failed)
    if words or any(folder.glob("test*/")) or any(folder.glob("test_*.py")):
        return _pytest(folder, words)
    looked_for = listed(("package.json", "go.mod", "Cargo.toml", *_PYTEST_MARKS), 20)
    hint = f"looked for {looked_for}; or use command:CMD"
    raise CannotVerify(f"no tests are found in {folder}", hint=hint)


def _pytest(folder: Path, words: str) -> TestProgram:
    python = next((f"./{each}" for each in _PYTHONS if (folder / each).exists()), "python3")
    mark = f"\n--- {token_hex(8)} ---\n"
    report = '"${TMPDIR:-/tmp}/stretto-junit.xml"'
    return TestProgram(
        f"{python} -m pytest -q -p no:cacheprovider --junitxml={report} {words}\n"
        f"code=$?\nprintf '%s' {shlex.quote(mark)}\ncat {report} 2>/dev/null\nexit $code",
        mark=mark,
    )


def _branches(folder: Path) -> frozenset[str]:
    """Of the repository, by the names of its files: git itself is not started."""
    from stretto.workspaces.git import find_repository

    repository = find_repository(folder)
    if repository is None:
        return frozenset()
    found = set[str]()
    for kind in ("refs/heads", "refs/remotes/origin"):
        root = repository.common_dir / kind
        found.update(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())
        packed = _packed_refs(repository.common_dir / "packed-refs")
        found.update(ref.removeprefix(f"{kind}/") for ref in packed if ref.startswith(f"{kind}/"))
    return frozenset(found)


def _packed_refs(file: Path) -> list[str]:
    try:
        lines = read_regular(file, _MOST_DATA_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.partition(" ")[2] for line in lines if not line.startswith(("#", "^"))]


def _with_fields(document: Json) -> dict[str, Json]:
    """The fields of an object by their names, and the whole as `rows`, `data` and `value`."""
    fields = dict(document) if isinstance(document, dict) else {}
    return {"rows": document, **fields, "data": document, "value": document}


def _file_values(place: Path) -> dict[str, Json]:
    raw = read_regular(place, _MOST_DATA_BYTES)
    return _with_fields(_parse(raw, place.suffix.lower(), place.name))


def _parse(raw: bytes, suffix: str, name: str) -> Json:
    """Raises ValueError."""
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    if suffix == ".csv":
        return _csv_rows(text, name)
    if suffix in (".jsonl", ".ndjson"):
        # Other line breaks, such as U+2028, may stand within a text of JSON.
        lines = [line for line in text.split("\n") if line.strip()]
        _check_count(len(lines), name)
        return [read_json(line) for line in lines]
    if suffix in (".yaml", ".yml"):
        document = read_bytes(raw, name)
        if document.root is None or document.problems:
            said = "; ".join(problem.message for problem in document.problems)
            raise ValueError(f"{name} cannot be read: {said or 'it is empty'}")
        return plain(document.root)
    try:
        # Not NaN: every comparison with it would be a doubt.
        return read_json(text)
    except (ValueError, RecursionError) as error:
        if suffix == ".json":
            raise ValueError(f"{name} is not JSON: {error}") from error
        return text


def _csv_rows(text: str, name: str) -> list[Json]:
    """Raises ValueError. Cells that the header has no name for are a list, `more`."""
    reader = csv.DictReader(io.StringIO(text), restkey="more")
    try:
        rows: list[Json] = [dict(row) for row in islice(reader, _MOST_ROWS + 1)]
    except csv.Error as error:
        raise ValueError(f"{name} is not CSV: {error}") from error
    _check_count(len(rows), name)
    return rows


def _check_count(rows: int, what: str) -> None:
    """Raises ValueError: an expression about a part of the rows may say what is not true of all."""
    if rows > _MOST_ROWS:
        raise ValueError(f"{what} has more than {_MOST_ROWS:,} rows, and no more are read")


def _page_values(page: "Page") -> dict[str, Json]:
    kind = page.headers.get("content-type", "")
    body = _parse(page.body, ".json" if "json" in kind else "", "the answer")
    # `status` is the answer's own field where it has one; `http_status` is always the code.
    return {"status": page.status, **_with_fields(body), "body": body, "http_status": page.status}


def _query(place: Path, sql: str, seconds: float, is_whole: bool) -> dict[str, Json]:
    """The rows of a query, by a connection that can do nothing but read. `is_whole`: raises
    ValueError where there are more than are read."""
    if read_start(place, len(_SQLITE)) != _SQLITE:
        raise ValueError(f"{place.name} is no SQLite database")
    steps = [int(seconds * 1000)]  # the handler is called once in so many instructions

    def is_over() -> bool:
        steps[0] -= 1
        return steps[0] <= 0

    with closing(sqlite3.connect(f"file:{quote(str(place))}?mode=ro", uri=True, timeout=5)) as db:
        db.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
        )
        db.set_progress_handler(is_over, 100_000)
        found = db.execute(sql)
        names = [column[0] for column in found.description or ()]
        rows: list[Json] = [
            dict(zip(names, map(_cell, row), strict=False))
            for row in found.fetchmany(_MOST_ROWS + 1)
        ]
    if is_whole:
        _check_count(len(rows), "the query")
    first = rows[0] if rows else {}
    value = next(iter(first.values()), None) if isinstance(first, dict) else None
    fields = first if isinstance(first, dict) else {}
    return {**fields, "rows": rows, "data": rows, "value": value}


def _cell(value: object) -> Json:
    return value if isinstance(value, str | int | float | None) else shorten(repr(value), 200)
