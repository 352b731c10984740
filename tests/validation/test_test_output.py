"""What test programs print when they had nothing to do, and what they print when they had."""

import time

import pytest

from stretto.validation.test_output import why_failed, why_untested

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
    "line", ["x" * 100, "=", "1 tests", "0 " * 50, " \n", "summary ", "1,", "ok ", "no test "]
)
def test_megabytes_are_read_in_no_time(line: str) -> None:
    began = time.process_time()
    why_untested(line * (4_000_000 // len(line)))
    assert time.process_time() - began < 2.0


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
    "make, deeper": "make[2]: *** No rule to make target 'tset'.  Stop.",
}
NOT_FAILED = {
    **{name: said for name, said in TESTED.items() if name != "pytest"},
    **UNTESTED,
    "TAP, to do": "1..1\nnot ok 1 - a # TODO later",
    "make -k": "make: [Makefile:3: clean] Error 1 (ignored)",
    "a text about it": "In the last build 3 tests failed.",
}


@pytest.mark.parametrize("said", FAILED.values(), ids=FAILED)
def test_a_summary_that_tells_of_failures_is_noticed(said: str) -> None:
    assert why_failed(said)
    assert why_failed(said) in " ".join(said.split())


@pytest.mark.parametrize("said", NOT_FAILED.values(), ids=NOT_FAILED)
def test_nothing_else_is_taken_for_a_failure(said: str) -> None:
    assert why_failed(said) == ""
