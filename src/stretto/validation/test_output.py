"""Does a program that ran tests say that there were none, or that one failed? In: what it printed.
Out: the line that says so.

Many of them end with exit code 0 though there was no test, and every program does behind `| tee log`, so
the exit code alone proves nothing. One report may cover many packages, of which some have no tests:
whatever says that a test ran counts more.
"""

import re

_MOST_CHARACTERS = 100_000  # of the beginning and of the end: summaries stand there
_NONE = re.compile(
    r"""^[^\S\n]*(?:
      [=-]*[^\S\n]*no\ tests\ ran\b .*                                  # pytest, unittest
    | collected\ 0\ items\b .*
    | [=]*[^\S\n]*(?:\d+/)?\d+\ tests?\ collected\b .*                  # pytest --collect-only
    | [=]*[^\S\n]*\d+\ (?:skipped|deselected)(?:,\ \d+\ (?:skipped|deselected|warnings?))*\ in\ .*
    | no\ tests?\ (?:collected|(?:files?\ )?found|(?:were\ )?executed|to\ run)\b .*
    | no\ tests\ were\ found\b .*                                       # ctest
    | error:\ no\ tests\ to\ run .* | there\ are\ no\ tests\ to\ run .*
    | no\ test\ (?:files?\ found|is\ available\ in|matches)\b .*        # vitest, dotnet
    | ran\ 0\ tests?\b .* | ran\ 0\ of\ \d+\ specs?\b .*
    | executed\ 0\ tests?\b .* | running\ 0\ tests?\b .*
    | (?:summary\ )?.{0,40}\b0\ tests\ run\b .* | tests?\ run:\ 0\b .*  # nextest, Maven
    | .{0,200}\[no\ tests?\ (?:files|to\ run)\] | testing:\ warning:\ no\ tests\ to\ run
    | (?:go:\ )?.{0,200}\bmatched\ no\ packages | no\ packages\ to\ test
    | [#ℹ]\ tests\ 0 | 1\.\.0\b .* | 0\ passing\b .* | result:\ notests
    | 0\ (?:examples|runs|tests|assertions|scenarios|specs),\ 0\ .*
    | .{0,40}\bmissing\ script:\ .* | (?:error:\ )?no\ test\ (?:script|specified)\b .*  # npm
    | (?:error\ )?command\ "[^"\n]{1,100}"\ not\ found\.? .*            # yarn
    | >\ task\ \S{1,200}\ no-source                                     # Gradle
    | make(?:\[\d+\])?:\ nothing\ to\ be\ done\ for\ .(?:tests?|check|verify).\.?
    | make(?:\[\d+\])?:\ .(?:tests?|check|verify).\ is\ up\ to\ date\.
    | ok\ \|\ 0\ passed\b .* | starting\ 0\ tests\b .* | executed\ 0\ of\ \d+\b .*  # Deno, nextest, Karma
    | (?:error:\ )?no\ test\ (?:targets\ were|suite)\ found\b .* | (?:✖\ )?couldn.t\ find\ any\ files\ to\ test .*
    )[^\S\n]*\r?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_SOME = re.compile(
    r"""(?:(?<![\d.,])[1-9][\d,]{0,9}\ (?:(?:tests?|specs?|examples?|scenarios?|checks?)\ )?
            (?:passed|passing|pass|failed|failing|failures?|errors?|ok|xfailed|xpassed)\b
    | (?:\bran|\bexecuted|\brunning)\ [1-9][\d,]{0,9}\ tests?\b | \btests?\ run:\ [1-9]
    | (?<![\d.,])[1-9][\d,]{0,9}\ (?:examples?|runs|tests|assertions|scenarios|specs?)(?:\ run\b|,\ \d)
    | %\ tests\ passed | [#ℹ]\ (?:tests|pass)\ [1-9]
    | ^ok\ \d+\b(?![^\n]*\#\ skip) | ^not\ ok\ \d+\b | ^[^\S\n]*---\ (?:PASS|FAIL):
    | ^ok[^\S\n]+\S+[^\S\n]+(?:[\d.]+s|\(cached\))(?![^\n]*\[no\ tests)
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


# All that ran was skipped. These lines would otherwise say that tests ran, so they are taken out.
_ALL_SKIPPED = re.compile(
    r"""^[^\S\n]*(?:
      ran\ (\d+)\ tests?\ in\ [^\n]*\n+ok\ \(skipped=\1\)                       # unittest
    | running\ \d+\ tests?\n(?:test\ [^\n]*\ \.\.\.\ ignored[^\n]*\n)+\n?test\ result:\ ok\.\ 0\ passed[^\n]*
    | tests:?[^\S\n]+(\d+)\ (?:skipped|todo)(?:,\ \2\ total|\ \(\2\))              # Jest, Vitest
    | (\d+)\ (?:examples?|tests?),\ 0\ failures,\ \3\ (?:pending|skipped|excluded)
    | (?:\[[a-z]+\]\ )?tests\ run:\ (\d+),\ failures:\ 0,\ errors:\ 0,\ skipped:\ \4\b[^\n]*
    | (?:skipped!\ +-\ )?failed:\ +0,\ passed:\ +0,\ skipped:\ +[1-9][^\n]*          # dotnet
    | [#ℹ]\ tests\ \d+\n(?:[#ℹ]\ suites\ \d+\n)?[#ℹ]\ pass\ 0\n[#ℹ]\ fail\ 0\n[^\n]*
    | ok\ \d+[^\n]*\#\ skip[^\n]*                                                # TAP
    )[^\S\n]*\r?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# `go test -v` says `ok` of a package all of whose tests were skipped.
_GO_SKIPPED, _GO_RAN = re.compile(r"^--- SKIP: .*$", re.MULTILINE), re.compile(r"^--- (?:PASS|FAIL): ", re.MULTILINE)  # fmt: skip
_FAILED = re.compile(
    r"""^[^\S\n]*(?:
      [=]*[^\S\n]*(?:\d+\ [a-z]+,\ )*[1-9]\d*\ (?:failed|errors?)\b(?:,\ \d+\ [a-z]+)*\ in\ [\d.]+m?s .*   # pytest
    | FAILED\ \([a-z=\d,\ ]+\) | tests:?[^\S\n]+[1-9]\d*\ failed\b .* | [1-9]\d*\ failing\b .*
    | test\ result:\ FAILED\b .* | ---\ FAIL:\ .* | FAIL\t\S+[^\S\n].*
    | \d+\ (?:examples?|tests?|runs)(?:,\ \d+\ assertions)?,\ (?:0\ failures,\ )?[1-9]\d*\ (?:failures?|errors?)\b .*
    | (?:\[[a-z]+\]\ )?tests\ run:\ \d+,\ failures:\ (?:[1-9]|\d+,\ errors:\ [1-9]) .*   # Maven
    | failed!\ +-\ failed:\ .* | FAILURES! | FAILED\ \|\ .* | [#ℹ]\ fail\ [1-9] .*
    | not\ ok\ \d+\b(?![^\n]*\#\ (?:todo|skip)) .* | \d+%\ tests\ passed,\ [1-9]\d*\ tests?\ failed\ .*
    | g?make(?:\[\d+\])?:\ \*\*\*\ .*
    )[^\S\n]*\r?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def why_untested(output: str) -> str:
    """Empty unless the output says that no test ran, and nothing in it says that one did."""
    output = _ends_of(output)
    found = _ALL_SKIPPED.search(output) or _NONE.search(output)
    if found is None and not _GO_RAN.search(output):
        found = _GO_SKIPPED.search(output)
    elif _SOME.search(_ALL_SKIPPED.sub("", output)):
        found = None
    return _line(found)


def why_failed(output: str) -> str:
    """Empty unless a summary in the output tells of a test that failed, or make of a target."""
    return _line(_FAILED.search(_ends_of(output)))


def _ends_of(output: str) -> str:
    if len(output) <= 2 * _MOST_CHARACTERS:
        return output
    return f"{output[:_MOST_CHARACTERS]}\n{output[-_MOST_CHARACTERS:]}"


def _line(found: re.Match[str] | None) -> str:
    return "" if found is None else " ".join(found[0].strip(" =-\t\r\n").split())
