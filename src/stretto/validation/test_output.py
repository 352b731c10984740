"""Does a program that ran tests say that there were none? In: what it printed. Out: the line that says so.

Many of them end with exit code 0 all the same, so their exit code alone proves nothing. One report
may cover many packages, of which some have no tests: whatever says that a test ran counts more.
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
    )[^\S\n]*\r?$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_SOME = re.compile(
    r"""(?:(?<![\d.,])[1-9][\d,]{0,9}\ (?:(?:tests?|specs?|examples?|scenarios?|checks?)\ )?
            (?:passed|passing|pass|failed|failing|failures?|errors?|ok|xfailed|xpassed)\b
    | (?:\bran|\bexecuted|\brunning)\ [1-9][\d,]{0,9}\ tests?\b | \btests?\ run:\ [1-9]
    | (?<![\d.,])[1-9][\d,]{0,9}\ (?:examples?|runs|tests|assertions|scenarios|specs?)(?:\ run\b|,\ \d)
    | %\ tests\ passed | [#ℹ]\ (?:tests|pass)\ [1-9]
    | ^ok\ \d+\b | ^not\ ok\ \d+\b | ^[^\S\n]*---\ (?:PASS|FAIL):
    | ^ok[^\S\n]+\S+[^\S\n]+(?:[\d.]+s|\(cached\))(?![^\n]*\[no\ tests)
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def why_untested(output: str) -> str:
    """Empty unless the output says that no test ran, and nothing in it says that one did."""
    if len(output) > 2 * _MOST_CHARACTERS:
        output = f"{output[:_MOST_CHARACTERS]}\n{output[-_MOST_CHARACTERS:]}"
    found = _NONE.search(output)
    if found is None or _SOME.search(output):
        return ""
    return " ".join(found[0].strip(" =-\t\r").split())
