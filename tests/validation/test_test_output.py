"""What test programs print when they had nothing to do, and what they print when they had."""

import time

import pytest

from stretto.validation.test_output import why_failed, why_not_run, why_untested

UNTESTED = {
    "pytest": "============ test session starts ============\ncollected 0 items\n\n=========== no tests ran in 0.01s ===========",
    "pytest -q": "\nno tests ran in 0.00s",
    "pytest -k": "collected 3 items / 3 deselected / 0 selected\n\n===== 3 deselected in 0.01s =====",
    "pytest, all skipped": "ss\n2 skipped in 0.01s",
    "pytest --collect-only": "test_a.py::test_a\n\n1 test collected in 0.00s",
    "unittest": "\n----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nOK",
    "unittest since 3.12": "Ran 0 tests in 0.000s\n\nNO TESTS RAN",
    "go": "?   \texample.com/m\t[no test files]",
    "go test -run": "ok  \texample.com/m\t0.001s [no tests to run]",
    "go -v": "testing: warning: no tests to run\nPASS\nok  \texample.com/m\t0.001s [no tests to run]",
    "go, no package": 'go: warning: "./..." matched no packages\nno packages to test',
    "jest": "No tests found, exiting with code 0",
    "vitest": "No test files found, exiting with code 0",
    "mocha": "\n\n  0 passing (1ms)\n",
    "node": "TAP version 13\n1..0\n# tests 0\n# pass 0\n# fail 0",
    "cargo": "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    "npm": 'npm ERR! Missing script: "test"',
    "npm init": "> m@1.0.0 test\n> echo\n\nError: no test specified",
    "yarn": 'error Command "test" not found.',
    "rspec": "Finished in 0.00026 seconds\n0 examples, 0 failures",
    "phpunit": "No tests executed!",
    "ctest": "No tests were found!!!",
    "dotnet": "No test is available in /src/bin/x.dll. Make sure that test discoverer works.",
    "maven": "[INFO] x\nNo tests to run.",
    "minitest": "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips",
    "gradle": "> Task :test NO-SOURCE",
    "gradle, left out": "> Task :app:integrationTest SKIPPED\n\nBUILD SUCCESSFUL in 1s",
    "maven, left out": "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS",
    "ctest, all disabled": "100% tests passed, 0 tests failed out of 0",
    "ctest, elsewhere": "No test configuration file found!",
    "pnpm, elsewhere": 'No projects found in "/m"',
    "django": "Found 0 test(s).\nSystem check identified no issues (0 silenced).",
    "make": "make: Nothing to be done for 'test'.",
    "make, a folder": "make: 'test' is up to date.",
    "Windows line ends": "collected 0 items\r\n\r\n",
    "deno": "\nok | 0 passed | 0 failed (1ms)\n",
    "nextest": "    Starting 0 tests across 1 binary",
    "bazel": "ERROR: No test targets were found, yet testing was requested",
    "karma": "Executed 0 of 0 SUCCESS (0.001 secs / 0 secs)",
    "ava": "  ✖ Couldn't find any files to test",
    "vitest, an empty file": "Error: No test suite found in file /m/a.test.ts",
    "unittest, all skipped": "sss\n---\nRan 3 tests in 0.000s\n\nOK (skipped=3)",
    "cargo, all ignored": "running 2 tests\ntest a ... ignored\ntest b ... ignored, slow\n\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured",
    "jest, all skipped": "Test Suites: 1 skipped, 0 of 1 total\nTests:       3 skipped, 3 total",
    "vitest, all skipped": " Test Files  1 skipped (1)\n      Tests  3 skipped (3)",
    "rspec, all pending": "3 examples, 0 failures, 3 pending",
    "exunit, all excluded": "3 tests, 0 failures, 3 excluded",
    "maven, all skipped": "[WARNING] Tests run: 3, Failures: 0, Errors: 0, Skipped: 3",
    "dotnet, all skipped": "Skipped!  - Failed:     0, Passed:     0, Skipped:     2, Total:     2, Duration: 1 ms",
    "node, all skipped": "# tests 2\n# suites 0\n# pass 0\n# fail 0\n# cancelled 0\n# skipped 2",
    "TAP, all skipped": "1..2\nok 1 - a # SKIP no network\nok 2 - b # skip",
    "playwright": "Error: No tests found",
    "bun": 'error: 0 test files matching **{.test,.spec}.{js,ts} in --cwd="/m"',
    "cucumber": "0 scenarios\n0 steps\n0m00.000s",
    "googletest": "[==========] Running 0 tests from 0 test suites.\n[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.",
    "catch2": "No test cases matched 'foo'",
    "doctest": "[doctest] test cases: 0 | 0 passed | 0 failed | 0 skipped",
    "sbt": "[info] No tests were executed.",
    "bazel, none chosen": "Executed 0 out of 0 tests: 0 tests pass.",
    "jasmine": "0 specs, 0 failures\nIncomplete: No specs found",
    "nunit": "Test Count: 0, Passed: 0, Failed: 0, Warnings: 0",
    "behave": "0 features passed, 0 failed, 0 skipped\n0 scenarios passed, 0 failed, 0 skipped",
    "testthat": "[ FAIL 0 | WARN 0 | SKIP 0 | PASS 0 ]",
    "busted": "0 successes / 0 failures / 0 errors / 0 pending : 0.0 seconds",
    "cypress": "Can't run because no spec files were found.\nNo specs found.",
    "boost": "Running 0 test cases...\n\n*** No errors detected",
    "unity": "-----------------------\n0 Tests 0 Failures 0 Ignored\nOK",
    "check": "100%: Checks: 0, Failures: 0, Errors: 0",
    "zig": "All 0 tests passed.",
    "nx": " NX   No tasks were run",
    "turbo": " Tasks:    0 successful, 0 total",
    "lerna": "lerna info No packages found with the lifecycle script 'test'",
    "pnpm": 'None of the selected packages has a "test" script',
    "go -v, all skipped": "=== RUN   TestA\n    a_test.go:5: no network\n--- SKIP: TestA (0.00s)\nPASS\nok  \tm/a\t0.002s",
}
TESTED = {
    "pytest": "..F\n1 failed, 2 passed in 0.1s",
    "pytest with a skip": "collected 3 items\n2 passed, 1 skipped in 0.01s",
    "go, some packages": "?   \tm/a\t[no test files]\nok  \tm/b\t0.010s",
    "go, cached": "ok  \tm/a\t(cached)\n?   \tm/b\t[no test files]",
    "cargo with doc tests": "running 3 tests\ntest result: ok. 3 passed; 0 failed\n\n   Doc-tests m\n\nrunning 0 tests\n\ntest result: ok. 0 passed",
    "unittest": "Ran 3 tests in 0.001s\n\nOK",
    "jest": "No tests found related to files changed since last commit.\nTests:       3 passed, 3 total",
    "mocha": "  3 passing (4ms)",
    "two suites": "no tests ran in 0.01s\n12 passed in 1.2s",
    "node": "# tests 3\n# pass 3",
    "bats": "1..2\nok 1 adds\nok 2 takes away",
    "rspec": "3 examples, 0 failures",
    "ctest": "100% tests passed, 0 tests failed out of 5",
    "a build": "make: Nothing to be done for 'all'.",
    "a text about it": "We saw in the log that no tests ran in CI last week.",
    "nothing": "",
    "a linter": "All checks passed!",
    "unittest with a skip": "Ran 3 tests in 0.000s\n\nOK (skipped=1)",
    "cargo with an ignored one": "running 2 tests\ntest a ... ok\ntest b ... ignored\n\ntest result: ok. 1 passed; 0 failed; 1 ignored",
    "maven, by class": "Tests run: 1, Failures: 0, Errors: 0, Skipped: 1\nTests run: 4, Failures: 0, Errors: 0, Skipped: 0",
    "TAP with a skip": "1..2\nok 1 - a\nok 2 - b # SKIP",
    "go -v with a skip": "--- SKIP: TestA (0.00s)\n--- PASS: TestB (0.00s)\nPASS\nok  \tm/a\t0.002s",
    "pytest, expected failures": "2 xfailed in 0.1s",
    "googletest": "[==========] Running 3 tests from 1 test suite.\n[  PASSED  ] 3 tests.",
    "cucumber": "3 scenarios (3 passed)\n9 steps (9 passed)",
    "testthat": "[ FAIL 0 | WARN 0 | SKIP 0 | PASS 2 ]",
    "catch2": "All tests passed (3 assertions in 1 test case)",
    "jasmine": "3 specs, 0 failures",
    "xctest": "Executed 3 tests, with 0 failures (0 unexpected) in 0.1 seconds",
    "nunit": "Test Count: 3, Passed: 3, Failed: 0, Warnings: 0",
}  # fmt: skip


@pytest.mark.parametrize("said", UNTESTED.values(), ids=UNTESTED)
def test_a_program_that_had_nothing_to_test_says_so(said: str) -> None:
    why = why_untested(said)
    assert why
    assert why in " ".join(said.split())


@pytest.mark.parametrize("said", TESTED.values(), ids=TESTED)
def test_what_ran_a_test_or_none_at_all_is_not_doubted(said: str) -> None:
    assert why_untested(said) == ""


@pytest.mark.parametrize(
    "line",
    [
        "x" * 100,
        "x: ",
        "1 test, ",
        "sh: 1: ",
        "=",
        "1 tests",
        "0 " * 50,
        " \n",
        " ",
        "1 failed, ",
        "summary ",
        "1,",
        "ok ",
        "no test ",
    ],
)
def test_megabytes_are_read_in_no_time(line: str) -> None:
    began = time.process_time()
    for asks in (why_untested, why_failed, why_not_run):
        asks(line * (4_000_000 // len(line)))
    assert time.process_time() - began < 3.0


@pytest.mark.parametrize(
    "said",
    [
        "running 1 test\n" + "test a ... ignored ... ignored\n" * 40,
        "Traceback (most recent call last):\n a\nE" + " " * 90_000 + "\nz",
        "read-only file system " * 13 + " " * 90_000 + "x",
        "=" * 90_000 + " " * 90_000,
    ],
    ids=["ignored twice", "blanks behind an error", "read-only", "a ruler"],
)
def test_what_could_be_read_in_many_ways_is_read_in_one(said: str) -> None:
    began = time.process_time()
    for asks in (why_untested, why_failed, why_not_run):
        assert asks(said) == ""
    assert time.process_time() - began < 3.0


# Exit code 0 all the same, behind `| tee log`, `| tail -3`, `; true` or `make -i`.
FAILED = {
    "pytest": "==== 1 failed, 2 passed in 0.1s ====",
    "pytest, errors": "2 passed, 1 error in 0.10s",
    "unittest": "Ran 3 tests in 0.001s\n\nFAILED (failures=1)",
    "jest": "Tests:       1 failed, 2 passed, 3 total",
    "vitest": "      Tests  1 failed | 3 passed (4)",
    "mocha": "  2 passing (4ms)\n  1 failing",
    "cargo": "test result: FAILED. 1 passed; 1 failed; 0 ignored",
    "go": "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tm/a\t0.002s",
    "go, a build": "FAIL\tm/a [build failed]",
    "rspec": "3 examples, 1 failure",
    "exunit": "3 tests, 2 failures",
    "minitest": "3 runs, 5 assertions, 0 failures, 1 errors, 0 skips",
    "maven": "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0",
    "dotnet": "Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3",
    "phpunit": "FAILURES!\nTests: 3, Assertions: 3, Failures: 1.",
    "deno": "FAILED | 1 passed | 1 failed (3ms)",
    "node": "# tests 3\n# pass 2\n# fail 1",
    "TAP": "1..2\nok 1 - a\nnot ok 2 - b",
    "ctest": "67% tests passed, 1 tests failed out of 3",
    "make": "make: *** [Makefile:3: test] Error 1",
    "playwright": "Running 3 tests using 1 worker\n  1 failed\n    a.spec.ts:3:5 › has title\n  2 passed (3.2s)",
    "gradle": "3 tests completed, 1 failed\n\nFAILURE: Build failed with an exception.",
    "sbt": "[info] *** 1 TEST FAILED ***\n[error] Failed: Total 3, Failed 1, Errors 0, Passed 2",
    "bazel": "Executed 1 out of 1 test: 1 fails locally.",
    "xctest": "Executed 3 tests, with 1 failure (0 unexpected) in 0.1 (0.1) seconds",
    "phpunit, errors": "ERRORS!\nTests: 3, Assertions: 2, Errors: 1.",
    "jasmine": "3 specs, 1 failure",
    "cucumber": "3 scenarios (1 failed, 2 passed)",
    "nextest": "     Summary [   0.1s] 3 tests run: 2 passed, 1 failed, 0 skipped",
    "tox": "  py311: FAIL code 1 (0.50 seconds)\n  evaluation failed :( (0.52 seconds)",
    "ava": "  1 test failed",
    "ginkgo": "FAIL! -- 2 Passed | 1 Failed | 0 Pending | 0 Skipped",
    "karma": "Chrome 1: Executed 3 of 3 (1 FAILED) (0.01 secs)",
    "prove": "t/a.t .. Failed 1/3 subtests\nResult: FAIL",
    "busted": "2 successes / 1 failure / 0 errors / 0 pending : 0.001 seconds",
    "xcodebuild": "** TEST FAILED **",
    "python -m doctest": "***Test Failed*** 1 failures.",
    "dart": "00:01 +2 -1: Some tests failed.",
    "bun": " 2 pass\n 1 fail\nRan 3 tests across 1 files.",
    "pytest -q --no-summary": "FAILED test_a.py::test_b - assert 1 == 2",
    "zig": "error: 1 of 3 tests failed",
    "testthat": "[ FAIL 1 | WARN 0 | SKIP 0 | PASS 2 ]",
    "julia": "ERROR: Some tests did not pass: 2 passed, 1 failed, 0 errored, 0 broken.",
    "nunit": "Test Count: 3, Passed: 2, Failed: 1, Warnings: 0",
    "mstest": "Total tests: 3\n     Passed: 2\n     Failed: 1",
    "catch2": "test cases: 3 | 2 passed | 1 failed",
    "googletest": "[  FAILED  ] 1 test, listed below:",
    "boost": '*** 1 failure is detected in the test module "x"',
    "tape": "# tests 3\n# pass  2\n# fail  1",
    "ninja": "ninja: build stopped: subcommand failed.",
    "npm": "npm ERR! Test failed.  See above for more details.",
    "make, deeper": "make[2]: *** No rule to make target 'tset'.  Stop.",
}
NOT_FAILED = {
    **{name: said for name, said in TESTED.items() if name != "pytest"},
    **UNTESTED,
    "TAP, to do": "1..1\nnot ok 1 - a # TODO later",
    "make -k": "make: [Makefile:3: clean] Error 1 (ignored)",
    "a text about it": "In the last build 3 tests failed.",
    "a count of other things": "2 failed login attempts, 3 failures of the power",
}
# Part of a script did not run, and its exit code is that of another part.
NOT_RUN = {
    "bash": "/bin/bash: line 1: pytst: command not found",
    "dash": "sh: 1: pytst: not found",
    "a script": "./test.sh: line 3: pytst: command not found",
    "no such script": "/bin/bash: line 1: ./test.sh: No such file or directory",
    "not executable": "/bin/bash: line 2: ./test.sh: Permission denied",
    "a program that was killed": "/bin/bash: line 1:    12 Segmentation fault      (core dumped) ./x",
    "a script in a script": "bash: -c: line 2: syntax error near unexpected token `('",
    "env": "/usr/bin/env: ‘node’: No such file or directory",
    "timeout": "timeout: failed to run command ‘pytst’: No such file or directory",
    "a Python module": "/usr/bin/python3: No module named pytst",
    "a Python program": "python3: can't open file '/m/a.py': [Errno 2] No such file or directory",
    "a file that may not be written": "touch: cannot touch 'out/x': Read-only file system",
    "Python, of such a file": "OSError: [Errno 30] Read-only file system: 'out/x'",
    "no repository": "fatal: not a git repository (or any of the parent directories): .git",
    "go, a panic": "panic: runtime error: index out of range [3] with length 0",
    "rust, a panic": "thread 'main' panicked at src/main.rs:3:5:",
    "java": 'Exception in thread "main" java.lang.NullPointerException',
}
CRASHED = """before
Traceback (most recent call last):
  File "/m/check.py", line 3, in <module>
    1 / 0
    ~~^~~
ZeroDivisionError: division by zero
"""
RUN = {
    **TESTED,
    **FAILED,
    "bash warns": "bash: warning: setlocale: LC_ALL: cannot change locale (de_DE)",
    "a compiler": "src/a.c:3:1: error: y.h: No such file or directory",
    "a traceback that was only logged": CRASHED + "went on\n",
    "pytest, of its cache": "PytestCacheWarning: could not create cache path /m/.pytest_cache: [Errno 30] Read-only file system: '/m'",
    "grep": "grep: nofile: No such file or directory",
    "a text about it": "Then it said: command not found.",
}


@pytest.mark.parametrize("said", NOT_RUN.values(), ids=NOT_RUN)
def test_a_shell_that_could_not_run_a_part_of_its_script_is_heard(said: str) -> None:
    assert why_not_run(f"before\n{said}\nafter\n") == " ".join(said.split())


def test_a_program_that_ended_with_its_traceback_is_heard() -> None:
    assert why_not_run(CRASHED) == "ZeroDivisionError: division by zero"
    assert why_not_run(f"{CRASHED}{CRASHED}") == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("said", RUN.values(), ids=RUN)
def test_what_others_say_of_files_is_no_word_of_a_shell(said: str) -> None:
    assert why_not_run(said) == ""


@pytest.mark.parametrize("said", FAILED.values(), ids=FAILED)
def test_a_summary_that_tells_of_failures_is_noticed(said: str) -> None:
    assert why_failed(said)
    assert why_failed(said) in " ".join(said.split())


@pytest.mark.parametrize("said", NOT_FAILED.values(), ids=NOT_FAILED)
def test_nothing_else_is_taken_for_a_failure(said: str) -> None:
    assert why_failed(said) == ""
