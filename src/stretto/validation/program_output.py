"""Does a command say that a program of it failed, or had no file to work on?
In: what it printed. Out: the line that says so.

The exit code of `build | tail -3`, of `check || true` and of a script that goes on is that of something
else, and many linters end with 0 where they have found nothing to read. Only lines are known that a program
prints of itself at its end: what people write about failures, and what a search finds of them, is none.
What scripts try on purpose (a host that is not up yet, a file that may be absent) is left out.
"""

import re

from stretto.validation.test_output import ends_of, line_of

_FAILED = re.compile(
    r"""^(?:
    # builds
      error:\ (?:could\ not\ compile\ `|could\ not\ find\ `Cargo\.toml`|no\ such\ command:\ `) .*
    | BUILD\ FAILED(?:\ in\ .*)? | FAILURE:\ Build\ failed\ .* | \[INFO\]\ BUILD\ FAILURE | \*\*\ BUILD\ FAILED\ \*\*
    | Build\ FAILED\. | (?:ERROR|FAILED):\ Build\ did\ NOT\ complete\ successfully .*
    | --\ Configuring\ incomplete,\ errors\ occurred! .* | CMake\ Error:\ .* | ninja:\ error:\ .*
    | compilation\ terminated\. | collect2:\ error:\ ld\ returned\ \d+\ .* | clang(?:\+\+)?:\ error:\ .*
    | (?:\d+\ warnings?\ and\ )?[1-9]\d*\ errors?\ generated\.
    | \#\ \S+\n(?:vet:\ )?\S{1,300}\.go:\d+:\d+:\ (?!warning) .*
    | go:\ (?:go\.mod\ file\ not\ found|cannot\ find\ main\ module) .* | go\ \S+:\ unknown\ command
    | package\ \S+:\ no\ Go\ files\ in\ .* | pattern\ \S+:\ directory\ prefix\ .*
    | [ ]?(?:ELIFECYCLE[ ]+(?:Test|Command)\ failed|ERR_PNPM_[A-Z_]+\ )\ ?.* | error\ Command\ failed\ with\ exit\ code\ \d+\.
    | npm\ err(?:or|!)\ could\ not\ determine\ executable\ .* | Usage\ Error:\ Couldn't\ find\ a\ script\ named\ .*
    | rake\ aborted! | error:\ No\ justfile\ found | error:\ Recipe\ `\S+`\ failed\ .* | task:\ (?:No\ Taskfile\ found|Failed\ to\ run)\ .*
    | error\ during\ build: | Failed\ to\ compile\. | ==\ Compilation\ error\ in\ file\ .* | Directory\ '.{1,300}'\ does\ not\ contain\ a\ Gradle\ build\.
    | \[error\]\ .{0,200}\ Compilation\ failed | MSBUILD\ :\ error\ MSB\d+:\ .*
    | !\ LaTeX\ Error:\ .* | No\ pages\ of\ output\. | [ ]?!?[ ]*==>\ Fatal\ error\ occurred,\ .*
    | ERROR:\ failed\ to\ solve:\ .* | │\ Error:\ .* | Error:\ (?:INSTALLATION|UPGRADE)\ FAILED:\ .*
    | \S+[ ]+:\ ok=\d+[ ]+changed=\d+[ ]+unreachable=(?:[1-9]\d*|0[ ]+failed=[1-9]) .*               # Ansible
    # what is fetched, copied and put together
    | ERROR:\ (?:Could\ not\ open\ requirements\ file|No\ matching\ distribution\ found|Failed\ to\ build) .* | E:\ Unable\ to\ locate\ package\ .*
    | \d+\ out\ of\ \d+\ hunks?\ FAILED\b .* | patch:\ \*\*\*\*\ .* | error:\ failed\ to\ push\ some\ refs\ to\ .* | \*\*\*\ Please\ tell\ me\ who\ you\ are\.
    | rsync\ error:\ .*\(code\ (?!24\))\d+\) .* | tar:\ (?:Exiting\ with\ failure\ status|Cowardly\ refusing) .* | zip\ error:\ .*
    | unzip:[ ]+cannot\ find\ or\ open\ .* | \S.{0,300}:\ No\ space\ left\ on\ device
    # programs that crashed
    | error:\ Uncaught\ .* | (?:PHP\ )?Fatal\ error:\ .* | Could\ not\ open\ input\ file:\ .* | Can't\ open\ perl\ script\ .*
    | Error:\ (?:Could\ not\ find\ or\ load\ main\ class|Unable\ to\ access\ jarfile)\ .* | Execution\ halted | ERROR:\ LoadError:\ .*
    | \*\*\ \((?:Mix|EXIT\ from|[A-Z]\w{0,60}Error)\b.{0,60}\)\ .* | Unhandled\ exception\.\ .* | Fatal\ Python\ error:\ .*
    | terminate\ called\ after\ throwing\ .* | ==\d+==ERROR:\ \w+Sanitizer:\ .*
    # programs that never began
    | \S{1,200}:\ line\ \d+:\ warning:\ here-document\ at\ line\ \d+\ delimited\ by\ end-of-file .*
    | bundler:\ command\ not\ found:\ .* | error:\ Failed\ to\ spawn:\ .* | sudo:\ .{0,100}(?:command\ not\ found|a\ terminal\ is\ required) .*
    | .{0,20}The\ term\ '.{1,100}'\ is\ not\ recognized\ as\ a\ name\ of\ a\ cmdlet .* | System\ has\ not\ been\ booted\ with\ systemd\b .*
    | Cannot\ connect\ to\ the\ Docker\ daemon\ at\ .* | To\ get\ started\ with\ GitHub\ CLI,\ .* | Unable\ to\ locate\ credentials\b .*
    # programs that did not understand their options
    | Try\ [‘'`"].{1,80}\ -(?:h|-help)[’'`"]\ for\ (?:more\ information|help)\.? | For\ more\ information,?\ try\ [‘'`"]?--help[’'`"]?\.?
    | \S{1,100}:\ (?:invalid|illegal|unrecognized|unknown)\ option\b .* | Error:\ (?:No\ such\ (?:option|command)|unknown\ (?:command|(?:shorthand\ )?flag))\b .*
    | flag\ provided\ but\ not\ defined:\ .*
    | \S{1,100}:\ error:\ (?:unrecognized\ arguments|the\ following\ arguments\ are\ required|argument\ .{1,100}:\ invalid\ choice):\ .*
    )[^\S\n]*+\r?$""",
    re.MULTILINE | re.VERBOSE,
)
# As a traceback of Python does, these tell of a crash only where they end what was printed: a program
# may log them and go on.
_CRASHED = re.compile(
    r"(?:^Node\.js v\d+\.\d+\.\d+\S*|^\S{1,300}:\d+:in .{1,500} \([A-Z]\w*(?:Error|Exception)\))\s*+\Z",
    re.MULTILINE,
)
_LONGEST_END = 2_000
_IDLE = re.compile(
    r"""^[^\S\n]*+(?:
      (?:warning:\ )?No\ Python\ files\ found\ under\ the\ given\ path .* | There\ are\ no\ \.py\[i\]\ files\ in\ .*
    | Success:\ no\ issues\ found\ in\ 0\ source\ files | No\ source\ files\ found\. | No\ Path\ provided\.\ .*
    | No\ Python\ files\ are\ present\ .* | No\ files\ (?:to\ check|to\ lint|were\ checked)\b .* | No\ files\ specified\.
    | (?:\[error\]\ |Error:\ )?No\ files\ matching\ the\ (?:given\ )?patterns?\b .* | (?:\[ERROR\]\ )?No\ files\ found\ to\ analyse .*
    | Checked\ 0\ files\b .* | Finished\ in\ \S+\ on\ 0\ files\b .* | 0\ files\ inspected\b .* | Linting:\ 0\ file .*
    | (?:✔\ )?0\ errors,\ 0\ warnings\ and\ 0\ suggestions\ in\ 0\ files\. | Done\ linting!\ .{0,100}\ in\ 0\ files\.
    | (?:[•└├│]\ *)?Ran\ \d+\ rules?\ on\ 0\ files\b .* | Total\ lines\ of\ code:\ 0 | CSpell:\ Files\ checked:\ 0\b .*
    | Passed:\ 0\ failure\(s\),\ 0\ warning\(s\)\ (?:in|on)\ 0\ files .* | Passed\ checks:\ 0,\ Failed\ checks:\ 0\b .*
    | (?:level=error\ |Error:\ |Running\ error:\ ).{0,100}\bno\ go\ files\ to\ analyze .* | error\ TS18003:\ .* | No\ data\ to\ (?:report|combine)\.?
    | lint-staged\ could\ not\ find\ any\ staged\ files\b .* | skipping:\ no\ hosts\ matched
    | Terraform\ initialized\ in\ an\ empty\ directory!
    )[^\S\n]*+\r?$""",
    re.MULTILINE | re.VERBOSE,
)


def why_gave_up(output: str) -> str:
    """Empty unless a program says of itself that it failed, crashed or never began."""
    output = ends_of(output)
    found = _FAILED.search(output) or _CRASHED.search(output, max(0, len(output) - _LONGEST_END))
    return line_of(found)


def why_idle(output: str) -> str:
    """Empty unless a linter, or a program like one, says that it had no file to work on."""
    return line_of(_IDLE.search(ends_of(output)))
