"""Retry, fallback, policy, and how runs end."""

import pytest

from stretto.events.attempts import AttemptId, RetryTimer
from stretto.events.model import AttemptCancelled, FailureKind
from stretto.schedule.attempts import chance_of, retry_delay, wait_asked_for
from stretto.schedule.commands import CancelAttempt, EndRun, SetTimer, StartAttempt
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.names import StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Driven, Fail, Give, Hang, drive, plan_of

TWO = """
name: t
steps:
  - {{id: a, subagent: worker, prompt: go, on_failure: {policy}}}
  - {{id: b, subagent: worker, prompt: "see {{{{steps.a.output}}}}", depends_on: [a]}}
  - {{id: c, subagent: worker, prompt: go, depends_on: [b]}}
  - {{id: side, subagent: worker, prompt: go}}
"""


def one(extra: str, top: str = "") -> str:
    return f"name: t\n{top}\nsteps: [{{id: a, subagent: worker, prompt: go, {extra}}}]"


def two(policy: str) -> Driven:
    return drive(TWO.format(policy=policy), {"a": Fail("no luck"), "side": Give("s", after=7)})


def test_inline_gives_the_error_text_to_dependents_and_the_run_is_partial() -> None:
    run = two("inline")
    assert run.prompt("b") == "see Error: step 'a' failed: no luck"
    expected = {"a": "failed", "b": "succeeded", "c": "succeeded", "side": "succeeded"}
    assert run.statuses() == expected
    assert run.ended == [RunStatus.PARTIAL]


def test_skip_gives_null_and_dependents_run() -> None:
    run = two("skip")
    assert run.prompt("b") == "see "
    assert run.statuses()["c"] == "succeeded"
    assert run.ended == [RunStatus.PARTIAL]
    assert run.warnings() == ""


def test_block_holds_dependents_and_theirs_and_others_go_on() -> None:
    run = two("block")
    assert run.statuses() == {"a": "failed", "b": "held", "c": "held", "side": "succeeded"}
    assert run.ended == [RunStatus.PARTIAL]


def test_abort_cancels_what_runs_and_starts_nothing() -> None:
    run = two("abort")
    expected = {"a": "failed", "b": "cancelled", "c": "cancelled", "side": "cancelled"}
    assert run.statuses() == expected
    assert run.ended == [RunStatus.FAILED]
    assert "step 'a' failed: no luck" in run.warnings()


def test_a_run_ends_only_after_cancelled_attempts_have_stopped() -> None:
    run = Driven(plan_of(TWO.format(policy="abort")), {"a": Fail(), "side": Hang()}).start()
    while run.state.steps[StepId("a")].ended_at is None:
        run.step()
    assert CancelAttempt(AttemptId(StepId("side"), 1)) in run.commands
    assert run.ended == []
    run.run()
    assert run.ended == [RunStatus.FAILED]


def test_an_attempt_is_repeated_up_to_max_attempts() -> None:
    run = drive(one("retry: {max_attempts: 3}"), {"a": Fail()})
    assert [start.attempt.number for start in run.starts] == [1, 2, 3]
    assert run.statuses()["a"] == "failed"


def test_a_retry_that_succeeds_makes_the_step_succeed() -> None:
    run = drive(one("retry: {max_attempts: 3}"), {"a": [Fail(), "fine"]})
    assert (run.output, run.status) == ("fine", RunStatus.COMPLETE)
    outcomes = [attempt.outcome for attempt in run.state.steps[StepId("a")].attempts]
    assert outcomes == ["failed", "succeeded"]


def test_without_a_word_about_retries_there_are_none() -> None:
    assert len(drive(one(""), {"a": Fail()}).starts) == 1


def test_a_retry_waits_for_its_timer() -> None:
    recipe = one("retry: {max_attempts: 2, backoff: linear}")
    run = drive(recipe, {"a": [Fail(), "fine"]})
    (timer,) = [command for command in run.commands if isinstance(command, SetTimer)]
    assert timer.timer == RetryTimer(AttemptId(StepId("a"), 1))
    assert 1 < timer.due_at <= 1 + 5
    assert run.starts[1].attempt.number == 2


@pytest.mark.parametrize(
    ("backoff", "attempt", "seconds"),
    [("none", 3, 0), ("linear", 3, 15), ("exponential", 3, 8), ("exponential", 50, 60)],
)
def test_delays_grow_with_the_attempt_up_to_a_minute(
    backoff: str, attempt: int, seconds: float
) -> None:
    assert retry_delay(backoff, attempt, 1.0, None) == seconds  # type: ignore[arg-type]
    assert retry_delay(backoff, attempt, 0.5, None) == seconds / 2  # type: ignore[arg-type]


def test_a_provider_that_asks_for_time_gets_it() -> None:
    recipe = one("retry: {max_attempts: 2}")
    run = drive(recipe, {"a": [Fail(retry_after=90), "fine"]})
    assert run.now == 92


def test_jitter_follows_from_the_seed_and_nothing_else() -> None:
    chances = [chance_of(7, AttemptId(StepId("a"), attempt)) for attempt in range(1, 100)]
    assert chances == [chance_of(7, AttemptId(StepId("a"), attempt)) for attempt in range(1, 100)]
    assert all(0 <= chance < 1 for chance in chances)
    assert 0.4 < sum(chances) / len(chances) < 0.6
    assert chance_of(8, AttemptId(StepId("a"), 1)) != chances[0]


def test_the_fallback_gets_the_same_input_after_the_last_retry() -> None:
    recipe = one('on_failure: "fallback:other", retry: {max_attempts: 2}')
    run = drive(recipe, {"worker": Fail("bad", kind="validation"), "other": "saved"})
    assert [(start.request.agent, start.attempt.number) for start in run.starts] == [
        ("worker", 1),
        ("worker", 2),
        ("other", 3),
    ]
    assert run.prompt("a", attempt=3) == run.prompt("a")
    assert (run.output, run.status) == ("saved", RunStatus.COMPLETE)
    assert "other took over" in run.warnings()


def test_a_fallback_that_fails_aborts_and_is_not_repeated() -> None:
    recipe = one('on_failure: "fallback:other", retry: {max_attempts: 2}')
    run = drive(recipe, {"worker": Fail(), "other": Fail("me too")})
    assert len(run.starts) == 3
    assert run.ended == [RunStatus.FAILED]


def test_an_attempt_that_takes_too_long_is_cancelled_and_tried_again() -> None:
    recipe = """
name: t
agents: {slow: {prompt: p, timeout: 10s}}
steps: [{id: a, subagent: slow, prompt: go, retry: {max_attempts: 2}}]
"""
    run = drive(recipe, {"a": [Hang(), Give("fine", usage=Usage(1))]})
    assert CancelAttempt(AttemptId(StepId("a"), 1)) in run.commands
    assert run.status is RunStatus.COMPLETE
    first = next(run.state.steps[StepId("a")].attempts)
    assert first.failure is not None
    assert (first.failure.kind, first.failure.error) == ("timeout", "timed out after 10s")


def test_an_attempt_that_ends_in_time_clears_its_timer() -> None:
    recipe = """
name: t
agents: {slow: {prompt: p, timeout: 10s}}
steps: [{id: a, subagent: slow, prompt: go}]
"""
    run = drive(recipe)
    assert run.now == 1
    assert run.state.timers == {}


def test_a_step_timeout_covers_retries_and_waits_and_tries_no_fallback() -> None:
    recipe = one('timeout: 30s, on_failure: "fallback:other", retry: {max_attempts: 50}')
    run = drive(recipe, {"worker": Fail(after=20)})
    assert [start.request.agent for start in run.starts] == ["worker", "worker"]
    assert run.state.steps[StepId("a")].error == "the step timed out after 30s, after: it broke"
    assert run.ended == [RunStatus.FAILED]


def test_a_step_timeout_follows_the_steps_policy() -> None:
    run = drive(one("timeout: 3s, on_failure: skip"), {"a": Hang()})
    assert run.state.steps[StepId("a")].failure_kind == "timeout"
    assert run.ended == [RunStatus.FAILED]


def test_a_step_timeout_ends_the_wait_for_a_retry() -> None:
    recipe = one("timeout: 2s, retry: {max_attempts: 9}")
    run = drive(recipe, {"a": Fail(retry_after=200)})
    assert run.now == 2
    assert (run.state.retrying, run.state.timers) == (0, {})


def test_the_runs_timeout_cancels_what_runs_and_keeps_what_ended() -> None:
    recipe = """
name: t
timeout: 10s
steps:
  - {id: a, subagent: worker, prompt: go}
  - {id: b, subagent: worker, prompt: go, depends_on: [a]}
  - {id: c, subagent: worker, prompt: go, depends_on: [b]}
"""
    run = drive(recipe, {"b": Hang()})
    assert run.statuses() == {"a": "succeeded", "b": "cancelled", "c": "cancelled"}
    assert run.ended == [RunStatus.PARTIAL]
    assert "the run timed out after 10s" in run.warnings()


def test_the_runs_timeout_fails_a_run_in_which_nothing_succeeded() -> None:
    run = drive(one("", top="timeout: 10s"), {"a": Hang()})
    assert run.ended == [RunStatus.FAILED]


def test_a_late_answer_of_a_stopped_attempt_is_only_cost() -> None:
    recipe = """
name: t
agents: {slow: {prompt: p, timeout: 10s}}
steps: [{id: a, subagent: slow, prompt: go, retry: {max_attempts: 2}}]
"""
    run = Driven(plan_of(recipe), {"a": [Hang(), "fine"]}).start()
    while len(run.starts) < 2:
        run.step()
    run.see(AttemptCancelled(run.now, AttemptId(StepId("a"), 1), Usage(input_tokens=7)))
    run.run()
    assert run.state.usage.tokens == 7
    assert run.ended == [RunStatus.COMPLETE]


def test_a_run_is_complete_when_every_step_succeeded() -> None:
    run = drive(one(""))
    assert [command for command in run.commands if isinstance(command, EndRun)] == [
        EndRun(RunStatus.COMPLETE)
    ]


def test_a_run_whose_output_has_nothing_to_show_is_not_complete() -> None:
    recipe = TWO.format(policy="block") + 'output: "{{steps.c.output}}"\n'
    run = drive(recipe, {"a": Fail()})
    assert run.output is None
    assert run.status is RunStatus.PARTIAL


@pytest.mark.parametrize("kind", ["refused", "permanent"])
def test_what_cannot_get_better_is_not_tried_again(kind: FailureKind) -> None:
    run = drive(one("retry: {max_attempts: 9}"), {"a": Fail("no", kind=kind)})
    assert len(run.starts) == 1
    assert run.ended == [RunStatus.FAILED]


def test_another_agent_may_do_what_was_refused() -> None:
    recipe = one('on_failure: "fallback:other"')
    run = drive(recipe, {"worker": Fail("no", kind="refused"), "other": "done"})
    assert run.output == "done"


ANYWHERE = {
    "step": "{id: a, agent: worker, input: go, on_failure: POLICY}",
    "branch": "{id: a, on_failure: POLICY, parallel: "
    "[{agent: worker, input: x}, {agent: other, input: y}]}",
    "element": "{id: a, map: {over: '{{inputs.list}}', agent: worker, on_item_failure: POLICY}}",
    "loop": "{id: a, on_failure: POLICY, loop: {agent: other, validator: worker}}",
}


def anywhere(where: str, policy: str) -> str:
    return f"""
workflow:
  name: t
  inputs: [{{name: list, type: json}}]
  agents: {{worker: {{prompt: w}}, other: {{prompt: o}}}}
  steps:
    - {ANYWHERE[where].replace("POLICY", policy)}
    - {{id: z, agent: other, input: "see {{{{steps.a.output}}}}", depends_on: [a]}}
    - {{id: side, agent: other, input: long, depends_on: []}}
"""


@pytest.mark.parametrize("policy", ["inline", "skip"])
@pytest.mark.parametrize("where", ANYWHERE)
def test_a_permanent_fault_stops_the_run_under_every_policy(where: str, policy: str) -> None:
    key = Fail("HTTP 401, the key was refused", kind="permanent")
    script = {"worker": key, "side": Give("s", after=9), "other": "fine"}
    run = drive(anywhere(where, policy), script, list=[1, 2, 3])
    assert run.ended == [RunStatus.FAILED]
    assert run.statuses() == {"a": "failed", "z": "cancelled", "side": "cancelled"}
    assert "step 'a' failed: HTTP 401, the key was refused" in run.warnings()


@pytest.mark.parametrize("where", ["step", "branch", "element"])
def test_a_run_in_which_nothing_succeeded_has_failed(where: str) -> None:
    run = drive(anywhere(where, "inline"), {"worker": Fail("no"), "other": Fail("no")}, list=[1])
    assert run.ended == [RunStatus.FAILED]


@pytest.mark.parametrize("output", ["", 'output: "{{steps.b.output}}"'])
def test_an_error_that_stands_in_is_never_what_the_run_gives(output: str) -> None:
    recipe = f"""
name: t
{output}
steps:
  - {{id: a, subagent: worker, prompt: go}}
  - {{id: b, subagent: worker, prompt: "see {{{{steps.a.output}}}}", on_failure: inline}}
"""
    run = drive(recipe, {"b": Fail("no luck")})
    assert run.ended == [RunStatus.PARTIAL]
    assert run.output in (None, "a")


def test_whoever_was_cut_off_is_told_so_when_tried_again() -> None:
    recipe = """
name: t
steps:
  - {id: a, subagent: worker, prompt: go, retry: {max_attempts: 2}}
"""
    run = drive(recipe, {"a": [Fail("cut off at 50 tokens", kind="truncated"), "whole"]})
    assert run.output == "whole"
    (_, again) = [each for each in run.commands if isinstance(each, StartAttempt)]
    assert "## Your last answer was not accepted\n\ncut off at 50 tokens" in again.request.prompt


@pytest.mark.parametrize("asked", [86_400.0 * 365, float("inf"), 301.0, 1e300])
def test_a_provider_that_asks_for_too_long_a_wait_is_not_waited_for(asked: float) -> None:
    recipe = "name: t\nsteps: [{id: a, subagent: worker, prompt: go, retry: {max_attempts: 3}}]"
    run = drive(recipe, {"a": Fail("busy", "unavailable", retry_after=asked)})
    assert run.started == ["a"]
    assert "the provider asks to wait" in (run.state.steps[StepId("a")].error or "")


@pytest.mark.parametrize("asked", [-5.0, float("nan"), 0.0, None])
def test_a_wait_that_makes_no_sense_is_none(asked: float | None) -> None:
    assert wait_asked_for(asked) == 0.0


def test_the_retry_of_a_fallback_agent_counts() -> None:
    recipe = """
name: t
agents: {stand-in: {prompt: p, retry: {max_attempts: 3, backoff: linear}}}
steps:
  - {id: a, subagent: worker, prompt: go, retry: {max_attempts: 2}, on_failure: "fallback:stand-in"}
"""
    run = drive(recipe, {"worker": Fail(), "stand-in": [Fail(), Fail(), "saved"]})
    assert [start.request.agent for start in run.starts] == ["worker"] * 2 + ["stand-in"] * 3
    assert run.output == "saved"
    assert sum(isinstance(command, SetTimer) for command in run.commands) == 2
    failed = drive(recipe, {"a": Fail()})
    assert [start.request.agent for start in failed.starts] == ["worker"] * 2 + ["stand-in"] * 3
    assert failed.ended == [RunStatus.FAILED]


def test_a_gated_step_whose_prompt_is_too_long_fails_and_the_run_goes_on() -> None:
    thrice = "{{steps.a.output}}" * 3
    run = Driven(
        plan_of(f"""
name: t
steps:
  - {{id: a, subagent: worker, prompt: go}}
  - {{id: b, subagent: worker, gate: human, prompt: "{thrice}"}}
  - {{id: c, subagent: worker, prompt: go, depends_on: [b]}}
"""),
        {"a": "x" * 4_000_000},
    ).start()
    run.run()
    assert run.statuses() == {"a": "succeeded", "b": "failed", "c": "succeeded"}
    assert "cannot be made" in (run.state.steps[StepId("b")].error or "")
    assert run.status == "partial"
