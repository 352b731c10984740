"""What programs print of themselves when they failed or had nothing to read, and what others print."""

import time

import pytest

from stretto.validation.program_output import why_gave_up, why_idle
from stretto.validation.test_output import why_failed, why_not_run, why_untested

GAVE_UP = {
    "cargo": "error: could not compile `m` (lib) due to 2 previous errors; 1 warning emitted",
    "cargo, elsewhere": "error: could not find `Cargo.toml` in `/m` or any parent directory",
    "go": "# m\n./a.go:3:2: undefined: x",
    "go, no module": "go: go.mod file not found in current directory or any parent directory; see 'go help modules'",
    "gradle": "BUILD FAILED in 1s",
    "maven": "[INFO] BUILD FAILURE",
    "dotnet": "Build FAILED.",
    "cmake": "-- Configuring incomplete, errors occurred!",
    "gcc": "compilation terminated.",
    "ld": "collect2: error: ld returned 1 exit status",
    "clang": "2 warnings and 1 error generated.",
    "ninja": "ninja: error: loading 'build.ninja': No such file or directory",
    "pnpm": " ELIFECYCLE  Test failed. See above for more details.",
    "yarn": "error Command failed with exit code 1.",
    "npx": "npm error could not determine executable to run",
    "rake": "rake aborted!",
    "latex": "! LaTeX Error: File `x.sty' not found.",
    "docker": "ERROR: failed to solve: failed to read dockerfile: open Dockerfile: no such file or directory",
    "terraform": "│ Error: No configuration files",
    "ansible": "localhost : ok=1 changed=0 unreachable=0 failed=1 skipped=0",
    "pip": "ERROR: No matching distribution found for zzz",
    "patch": "1 out of 1 hunk FAILED -- saving rejects to file a.rej",
    "git push": "error: failed to push some refs to 'x'",
    "rsync": "rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1338) [sender=3.2.7]",
    "tar": "tar: Exiting with failure status due to previous errors",
    "zip": "zip error: Nothing to do! (x.zip)",
    "a full disk": "cp: error writing 'b': No space left on device",
    "java": "Error: Could not find or load main class Main",
    "php": "PHP Fatal error:  Uncaught Error: Call to undefined function x() in /m/a.php:1",
    "perl": 'Can\'t open perl script "x.pl": No such file or directory',
    "R": "Execution halted",
    "deno": "error: Uncaught (in promise) Error: x",
    "a heredoc that never ends": "/bin/bash: line 3: warning: here-document at line 1 delimited by end-of-file (wanted `EOF')",
    "bundler": "bundler: command not found: rspec",
    "uv": "error: Failed to spawn: `pytst`",
    "no daemon": "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "GNU options": "Try 'ls --help' for more information.",
    "clap options": "For more information, try '--help'.",
    "argparse options": "prog: error: unrecognized arguments: --x",
    "BSD options": "sed: illegal option -- x",
}
CRASHED = {
    "node": "Error: Cannot find module '/m/x.js'\n    at Module._resolveFilename\n\nNode.js v20.11.0\n",
    "ruby": "a.rb:1:in `<main>': undefined local variable or method `x' for main:Object (NameError)\n",
}
IDLE = {
    "ruff": "warning: No Python files found under the given path(s)",
    "mypy": "Success: no issues found in 0 source files",
    "mypy, of a folder": "There are no .py[i] files in directory '.'",
    "pyright": "No source files found.",
    "black": "No Python files are present to be formatted. Nothing to do 😴",
    "eslint": 'No files matching the pattern "src" were found.',
    "prettier": '[error] No files matching the pattern were found: "src".',
    "biome": "Checked 0 files in 3ms. No fixes applied.",
    "oxlint": "Finished in 5ms on 0 files with 90 rules using 2 threads.",
    "rubocop": "0 files inspected, no offenses detected",
    "markdownlint": "Linting: 0 file(s)",
    "vale": "✔ 0 errors, 0 warnings and 0 suggestions in 0 files.",
    "bandit": "\tTotal lines of code: 0",
    "semgrep": "Ran 12 rules on 0 files: 0 findings.",
    "golangci-lint": 'level=error msg="Running error: context loading failed: no go files to analyze"',
    "tsc": "error TS18003: No inputs were found in config file '/m/tsconfig.json'.",
    "coverage": "No data to report.",
    "ansible": "skipping: no hosts matched",
    "terraform": "Terraform initialized in an empty directory!",
}
# What honest commands print: they did what they were asked for, or tried something on purpose.
HONEST = {
    "a build that was up to date": "    Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.00s",
    "make": "make: Nothing to be done for 'all'.",
    "ninja": "ninja: no work to do.",
    "gradle": "> Task :compileJava UP-TO-DATE\n> Task :processResources NO-SOURCE\n> Task :compileTestJava UP-TO-DATE\n> Task :processTestResources NO-SOURCE\n> Task :test UP-TO-DATE\n\nBUILD SUCCESSFUL in 1s",
    "warnings": "warning: unused variable: `x`\n2 warnings generated.",
    "git status": "On branch main\nnothing to commit, working tree clean",
    "git log": "commit abc\n\n    error: could not compile `m`\n    BUILD FAILED",
    "git push": "Everything up-to-date",
    "terraform": "No changes. Your infrastructure matches the configuration.",
    "a server that was waited for": "curl: (7) Failed to connect to localhost port 80 after 0 ms: Couldn't connect to server\nok",
    "what was removed if it was there": "Error response from daemon: No such container: x",
    "files that vanished meanwhile": "rsync error: some files vanished before they could be transferred (code 24) at main.c(1338) [sender=3.2.7]",
    "linters": "All checks passed!\nSuccess: no issues found in 3 source files\n0 errors, 0 warnings, 0 informations",
    "findings": "a.py:1: error: Name 'x' is not defined  [name-defined]\nFound 1 error in 1 file (checked 1 source file)",
    "hooks": "ruff.................................................(no files to check)Skipped\nmypy.................................................Passed",
    "ansible": "localhost : ok=3 changed=1 unreachable=0 failed=0 skipped=1 rescued=0 ignored=1",
    "help": "Usage: prog [OPTIONS] COMMAND [ARGS]...\n\nOptions:\n  --help  Show this message and exit.",
    "configure": "checking for fatal error handling... no\nchecking whether tar works... yes",
    "a text about it": "The log said: BUILD FAILED in 3s. Try 'make --help' for more information about it.",
    "a crash that was logged": CRASHED["node"] + "went on\n",
    "node --version": "v20.11.0",
    "hundreds of files": "Checked 100 files in 3ms. No fixes applied.\n10 files inspected, no offenses detected",
    "nothing": "",
}  # fmt: skip
ASKS = (why_failed, why_untested, why_not_run, why_gave_up, why_idle)


@pytest.mark.parametrize("said", GAVE_UP.values(), ids=GAVE_UP)
def test_a_program_that_failed_is_heard_behind_a_pipe(said: str) -> None:
    assert why_gave_up(f"before\n{said}\nafter\n") == " ".join(said.split()).lstrip("- ")


@pytest.mark.parametrize("said", CRASHED.values(), ids=CRASHED)
def test_a_crash_is_heard_where_nothing_follows_it(said: str) -> None:
    assert why_gave_up(said)


@pytest.mark.parametrize("said", IDLE.values(), ids=IDLE)
def test_a_linter_that_found_no_file_is_heard(said: str) -> None:
    assert why_idle(f"{said}\nAll checks passed!\n") == " ".join(said.split())


@pytest.mark.parametrize("said", HONEST.values(), ids=HONEST)
def test_an_honest_command_is_not_doubted(said: str) -> None:
    assert [ask(said) for ask in ASKS] == [""] * len(ASKS)


@pytest.mark.parametrize(
    "line", ["x" * 100, "# x\n", "x: ", "(", " ", "Try '", "│ Error", "x:1:in ", "1 warning and "]
)
def test_megabytes_are_read_in_no_time(line: str) -> None:
    began = time.process_time()
    for ask in (why_gave_up, why_idle):
        ask(line * (4_000_000 // len(line)))
    assert time.process_time() - began < 3.0
