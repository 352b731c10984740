"""Does a command say that there were no tests, that one failed, or that a program could not be started?
In: what it printed. Out: the line that says so.

Many test programs end with exit code 0 though there was no test, and every program does behind `| tee log`,
even one that is not there, so the exit code alone proves nothing. One report may cover many packages, of which some have no tests:
whatever says that a test ran counts more.
"""

import re

# Blanks and counts are taken once and never given back (`*+`): whoever prints the text chooses how
# many there are, and every way to divide them would be tried.
_MOST_CHARACTERS = 100_000  # of the beginning and of the end: summaries stand there
_NONE = re.compile(
    r"""^[^\S\n]*+(?:\[[a-z]+\]\ )?(?:
      [=-]*+[^\S\n]*+no\ tests\ ran\b .*                                  # pytest, unittest
    | collected\ 0\ items\b .*
    | [=]*+[^\S\n]*+(?:\d+/)?\d+\ tests?\ collected\b .*                  # pytest --collect-only
    | [=]*+[^\S\n]*+\d+\ (?:skipped|deselected)(?:,\ \d+\ (?:skipped|deselected|warnings?))*\ in\ .*
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
    | >\ task\ (?:\S{0,200}:)?\w{0,60}test\ (?:no-source|skipped) | (?:\[info\]\ )?tests\ are\ skipped\.  # Gradle, Maven
    | 100%\ tests\ passed,\ 0\ tests\ failed\ out\ of\ 0\b .* | no\ test\ configuration\ file\ found! .*
    | no\ projects\ found\ in\ ".* | found\ 0\ test\(s\)\.                             # pnpm, Django
    | make(?:\[\d+\])?:\ nothing\ to\ be\ done\ for\ .(?:tests?|check|verify).\.?
    | make(?:\[\d+\])?:\ .(?:tests?|check|verify).\ is\ up\ to\ date\.
    | (?:error:\ )?(?:0\ test\ files\ matching|no\ tests?\ (?:cases?\ matched|found))\b .*  # Bun, Catch2, Playwright
    | (?:\[=*\]\ )?(?:running\ )?0\ (?:tests?\ from|test\ cases)\b .*  # GoogleTest, Boost
    | test\ setup\ error:\ test\ tree\ is\ empty .*
    | (?:\[doctest\]\ )?test\ cases:[^\S\n]+0\ \| .*                   # doctest, Catch2
    | 0\ (?:scenarios|specs|successes|features\ passed) (?:[,/\ ].*)?  # Cucumber, Busted, Behave
    | \[\ fail\ 0\ \|.*\bpass\ 0\ \]                                # testthat
    | executed\ 0\ out\ of\ 0\ tests?\b .* | all\ 0\ tests?\ passed\b .*    # Bazel, Zig
    | (?:test\ count|total\ tests):\ 0\b .* | \d+%:\ checks:\ 0\b .*  # NUnit, MSTest, Check
    | 0\ tests\ 0\ failures\b .* | (?:incomplete:\ )?no\ specs\ found\b .* # Unity, Jasmine, Cypress
    # what starts the scripts of many packages
    | (?:nx[^\S\n]+)?no\ tasks\ were\ run\b .* | tasks:[^\S\n]+0\ successful,\ 0\ total
    | .{0,40}\bno\ packages\ found\ with\ the\ lifecycle\ script\b .*
    | none\ of\ the\ selected\ packages\ has\ an?\ .* | no\ projects\ matched\ the\ filters\b .*
    | ok\ \|\ 0\ passed\b .* | starting\ 0\ tests\b .* | executed\ 0\ of\ \d+\b .*  # Deno, nextest, Karma
    | (?:error:\ )?no\ test\ (?:targets\ were|suite)\ found\b .* | (?:✖\ )?couldn.t\ find\ any\ files\ to\ test .*
    )[^\S\n]*+\r?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_SOME = re.compile(
    r"""(?:(?<![\d.,])[1-9][\d,]{0,9}\ (?:(?:tests?|specs?|examples?|scenarios?|checks?)\ )?
            (?:passed|passing|pass|failed|failing|failures?|errors?|ok|xfailed|xpassed)\b
    | (?:\bran|\bexecuted|\brunning)\ [1-9][\d,]{0,9}\ tests?\b | \btests?\ run:\ [1-9]
    | (?<![\d.,])[1-9][\d,]{0,9}\ (?:examples?|runs|tests|assertions|scenarios|specs?)(?:\ run\b|,\ \d)
    | %\ tests\ passed(?!,\ 0\ tests\ failed\ out\ of\ 0\b) | [#ℹ]\ (?:tests|pass)\ [1-9]
    | ^ok\ \d+\b(?![^\n]*\#\ skip) | ^not\ ok\ \d+\b | ^[^\S\n]*+---\ (?:PASS|FAIL):
    | ^ok[^\S\n]+\S+[^\S\n]+(?:[\d.]+s|\(cached\))(?![^\n]*\[no\ tests)
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


# All that ran was skipped. These lines would otherwise say that tests ran, so they are taken out.
_ALL_SKIPPED = re.compile(
    r"""^[^\S\n]*+(?:
      ran\ (\d+)\ tests?\ in\ [^\n]*\n+ok\ \(skipped=\1\)                       # unittest
    | running\ \d+\ tests?\n(?:test\ [^\n]*\ \.\.\.\ ignored[^\n]*\n)++\n?test\ result:\ ok\.\ 0\ passed[^\n]*
    | tests:?[^\S\n]+(\d+)\ (?:skipped|todo)(?:,\ \2\ total|\ \(\2\))              # Jest, Vitest
    | (\d+)\ (?:examples?|tests?),\ 0\ failures,\ \3\ (?:pending|skipped|excluded)
    | (?:\[[a-z]+\]\ )?tests\ run:\ (\d+),\ failures:\ 0,\ errors:\ 0,\ skipped:\ \4\b[^\n]*
    | (?:skipped!\ +-\ )?failed:\ +0,\ passed:\ +0,\ skipped:\ +[1-9][^\n]*          # dotnet
    | [#ℹ]\ tests\ \d+\n(?:[#ℹ]\ suites\ \d+\n)?[#ℹ]\ pass\ 0\n[#ℹ]\ fail\ 0\n[^\n]*
    | ok\ \d+[^\n]*\#\ skip[^\n]*                                                # TAP
    )[^\S\n]*+\r?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# `go test -v` says `ok` of a package all of whose tests were skipped.
_GO_SKIPPED, _GO_RAN = re.compile(r"^--- SKIP: .*$", re.MULTILINE), re.compile(r"^--- (?:PASS|FAIL): ", re.MULTILINE)  # fmt: skip
_FAILED = re.compile(
    r"""^[^\S\n]*+(?:
      [=]*+[^\S\n]*+(?:\d+\ [a-z]+,\ ){0,12}[1-9]\d*\ (?:failed|errors?)\b(?:,\ \d+\ [a-z]+)*+\ in\ [\d.]+m?s .*   # pytest
    | FAILED\ \([a-z=\d,\ ]+\) | tests:?[^\S\n]+[1-9]\d*\ failed\b .* | [1-9]\d*\ failing\b .*
    | test\ result:\ FAILED\b .* | ---\ FAIL:\ .* | FAIL\t\S+[^\S\n].*
    | \d+\ (?:examples?|tests?|runs)(?:,\ \d+\ assertions)?,\ (?:0\ failures,\ )?[1-9]\d*\ (?:failures?|errors?)\b .*
    | (?:\[[a-z]+\]\ )?tests\ run:\ \d+,\ failures:\ (?:[1-9]|\d+,\ errors:\ [1-9]) .*   # Maven
    | failed!\ +-\ failed:\ .* | FAILURES! | FAILED\ \|\ .* | [#ℹ]\ fail\ +[1-9] .*
    | not\ ok\ \d+\b(?![^\n]*\#\ (?:todo|skip)) .* | \d+%\ tests\ passed,\ [1-9]\d*\ tests?\ failed\ .*
    | g?make(?:\[\d+\])?:\ \*\*\*\ .* | ninja:\ build\ stopped:\ .* | npm\ err(?:!|or)\ (?:test\ failed|code)\b .*
    | FAILED\ \S+::\S.* | FAIL | FAIL!\ --\ .* | ERRORS! | result:\ FAIL  # pytest, go, Ginkgo, PHPUnit, prove
    # counts, of which that of the failures may stand anywhere: "3 tests completed, 1 failed", "2 pass\n 1 fail"
    | (?:summary\ \[[^\]\n]{1,20}\]\ |(?:\[doctest\]\ )?test\ cases:[^\S\n]+(?:\d+\ \|\ )?)?
      (?:\d+(?:\ [a-z]+){1,2}(?:,|:|\ [|/])\ +)* [1-9]\d*\ (?:tests?\ |specs?\ )?fail(?:ed|ing)?\b (?:[^\S\n]*[,|/(].*)?
    | \d+(?:\ [a-z]+){1,2}(?:,|\ [|/])\ +(?:\d+(?:\ [a-z]+){1,2}(?:,|\ [|/])\ +)*[1-9]\d*\ failures?\b .*   # Jasmine, Busted
    | \d+\ (?:scenarios?|steps?)\ \((?:[^)\n]*,\ )?[1-9]\d*\ failed\b .*                    # Cucumber
    | (?:error:\ )?[1-9]\d*\ (?:out\ )?of\ \d+\ tests?\ failed\b .*                       # Tasty, Zig
    | executed\ \d+\ tests?,\ with\ (?:\d+\ tests?\ skipped\ and\ )?[1-9]\d*\ failures?\b .*    # XCTest
    | executed\ \d+\ out\ of\ \d+\ tests?:\ .{0,80}\b[1-9]\d*\ fails?\b .*                  # Bazel
    | .{0,80}\bexecuted\ \d+\ of\ \d+\ \([1-9]\d*\ failed\).*                             # Karma
    | \[error\]\ failed:\ total\ .* | (?:\[[a-z]+\]\ )?\*\*\*\ [1-9]\d*\ tests?\ failed\ \*\*\*      # sbt
    | \*\*\ test\ failed\ \*\* | \*\*\*test\ failed\*\*\*.* | \*\*\*\ [1-9]\d*\ failures?\ (?:is|are)\ detected\b .*
    | (?:[\d:]+\ \+\d+(?:\ ~\d+)?\ -\d+:\ )some\ tests\ failed\..* | error:\ some\ tests\ did\ not\ pass\b .*
    | \[\ fail\ [1-9]\d*\ \|.*\] | \[\ +FAILED\ +\]\ [1-9]\d*\ tests?\b .* | [1-9]\d*\ FAILED\ TESTS?
    | (?:test\ count:|total\ tests:)\ \d+(?:,|\n)\s*(?:passed:\ +\d+(?:,|\n)\s*)?failed:\ +[1-9] .*       # NUnit, MSTest
    | [\w.-]{1,40}:\ FAIL\ code\ \d+\b .* | evaluation\ failed\ :\(.* | failed\ tests\ \([1-9]\d*\):    # tox, lit
    )[^\S\n]*+\r?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# What a shell prints where a part of a script did not run: its program is not there, or was killed.
# And what programs print that gave up: a crash, or a read-only file system. A cache that cannot be
# written does not matter.
_NOT_RUN = re.compile(
    r"""^(?:
      (?:/\S{1,200}/)?(?:ba|da|z)?sh:\ ?(?:-c:\ )?(?:line\ )?\d+:\ (?!\ *warning:) .*
    | \S{1,200}:\ (?:line\ )?\d+:\ .{1,300}:\ (?:(?:command\ )?not\ found|no\ such\ file\ or\ directory|permission\ denied)
    | (?:/\S{1,200}/)?(?:env|nice|nohup|timeout|xargs|stdbuf|time):\ .{1,300}:\ (?:no\ such\ file\ or\ directory|permission\ denied)
    | (?![^\n]*(?:warning|cache)) .{0,300}\bread-only\ file\ system\b .{0,300}+
    | fatal:\ not\ a\ git\ repository\b .* | panic:\ .* | exception\ in\ thread\ "main"\ .*
    | thread\ '.{1,100}'\ (?:\(\d+\)\ )?panicked\ at\ .*
    | \S{0,200}python[\d.]*:\ (?:no\ module\ named|error\ while\ finding\ module|can't\ open\ file)\ .*
    )[^\S\n]*+\r?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# A program of Python ends with its traceback, and behind `| tee log` its exit code is lost.
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n){1,200}(?P<error>[A-Za-z_][^\n]*+)\s*+\Z",
    re.MULTILINE,
)


def why_untested(output: str) -> str:
    """Empty unless the output says that no test ran, and nothing in it says that one did."""
    output = ends_of(output)
    found = _ALL_SKIPPED.search(output) or _NONE.search(output)
    if found is None and not _GO_RAN.search(output):
        found = _GO_SKIPPED.search(output)
    elif _SOME.search(_ALL_SKIPPED.sub("", output)):
        found = None
    return line_of(found)


def why_failed(output: str) -> str:
    """Empty unless a summary in the output tells of a test that failed, or make of a target."""
    return line_of(_FAILED.search(ends_of(output)))


def why_not_run(output: str) -> str:
    """Empty unless a shell says that a part of its script did not run, or a program says that it
    gave up."""
    output = ends_of(output)
    if found := _NOT_RUN.search(output):
        return line_of(found)
    crashed = _TRACEBACK.search(output, max(0, output.rfind("\nTraceback (most")))
    return " ".join(crashed["error"].split()) if crashed else ""


def tells_of_tests(output: str) -> bool:
    """Whether something in the output says that a test ran."""
    return _SOME.search(ends_of(output)) is not None


def ends_of(output: str) -> str:
    if len(output) <= 2 * _MOST_CHARACTERS:
        return output
    return f"{output[:_MOST_CHARACTERS]}\n{output[-_MOST_CHARACTERS:]}"


def line_of(found: re.Match[str] | None) -> str:
    return "" if found is None else " ".join(found[0].strip(" =-\t\r\n").split())
