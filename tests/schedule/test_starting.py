"""Which steps start, and when."""

from stretto.events.attempts import AttemptId, AttemptTimer
from stretto.events.model import (
    Approved,
    AttemptCancelled,
    AttemptStarted,
    AttemptSucceeded,
    Rejected,
    RunResumed,
    TimerFired,
)
from stretto.schedule.commands import AskApproval, StartAttempt
from stretto.schedule.status import why_waiting
from stretto.vocabulary.names import AgentId, StepId
from stretto.vocabulary.statuses import RunStatus
from support.scheduling import Driven, Fail, Give, Hang, drive, plan_of

DIAMOND = """
name: diamond
steps:
  - {id: top, subagent: worker, prompt: go}
  - {id: left, subagent: worker, prompt: go, depends_on: [top]}
  - {id: right, subagent: worker, prompt: go, depends_on: [top]}
  - {id: bottom, subagent: worker, prompt: go, depends_on: [left, right]}
"""


def steps(*written: str) -> str:
    return "name: t\nsteps:\n" + "".join(
        f"  - {{subagent: worker, prompt: go, {step}}}\n" for step in written
    )


def test_a_run_begins_with_the_steps_that_depend_on_nothing() -> None:
    run = Driven(plan_of(DIAMOND)).start()
    assert run.started == ["top"]


def test_a_step_starts_once_its_dependencies_have_ended() -> None:
    run = drive(DIAMOND, {"left": Give("l", after=5)})
    assert run.started == ["top", "left", "right", "bottom"]
    assert run.state.steps[StepId("bottom")].started_at == 6


def test_nothing_starts_before_the_run_is_started() -> None:
    run = Driven(plan_of(DIAMOND))
    assert run.see(Approved(0, StepId("top"))) == ()
    assert run.started == []


def test_listing_order_breaks_ties() -> None:
    run = drive(steps("id: z", "id: a", "id: m"), width=1)
    assert run.started == ["z", "a", "m"]


def test_no_more_steps_run_than_the_width_allows() -> None:
    run = Driven(plan_of(steps(*(f"id: s{n}" for n in range(6))), width=4)).start()
    assert run.started == ["s0", "s1", "s2", "s3"]
    run.run()
    assert run.status is RunStatus.COMPLETE


def most_at_once(run: Driven) -> int:
    """Drive the run to its end, and count the delegations in flight."""
    most = run.state.open_attempts
    while run.step():
        most = max(most, run.state.open_attempts)
    return most


def test_branches_count_against_the_width_and_a_step_that_has_none_goes_first() -> None:
    recipe = """
name: t
steps:
  - id: fan
    parallel: [{agent: worker, prompt: a}, {agent: worker, prompt: b}, {agent: other, prompt: c}]
  - {id: next, subagent: worker, prompt: go}
"""
    run = Driven(plan_of(recipe, width=2)).start()
    assert [start.step for start in run.starts] == ["fan", "fan"]
    assert most_at_once(run) == 2
    assert [start.step for start in run.starts] == ["fan", "fan", "next", "fan"]
    assert run.status is RunStatus.COMPLETE


def maps(count: int, elements: int) -> str:
    over = list(range(elements))
    return "name: t\nsteps:\n" + "".join(
        f"  - {{id: m{n}, map: {{over: '{over}', agent: worker, reduce: other}}}}\n"
        for n in range(count)
    )


def test_four_maps_of_twenty_never_make_more_calls_at_once_than_the_width() -> None:
    run = Driven(plan_of(maps(4, 20), width=4)).start()
    assert most_at_once(run) == 4
    assert len(run.starts) == 4 * 21
    assert run.status is RunStatus.COMPLETE


def test_maps_share_the_slots() -> None:
    run = Driven(plan_of(maps(4, 20), width=4)).start()
    assert run.started == ["m0"] * 4  # nobody else is ready when the first one starts
    for _ in range(16):
        run.step()
    assert [step.open_attempts for step in run.state.order] == [1, 1, 1, 1]
    ends = []
    while run.step():
        ends.append([step.items.ended for step in run.state.order if step.items])
    # Elements of one map never run far ahead of those of another.
    assert all(max(row) - min(row) <= 5 for row in ends if len(row) == 4)


def test_a_map_lets_a_step_in_that_becomes_ready_while_it_works() -> None:
    recipe = maps(1, 50) + (
        "  - {id: a, subagent: worker, prompt: go}\n"
        "  - {id: b, subagent: worker, prompt: go, depends_on: [a]}\n"
    )
    run = Driven(plan_of(recipe, width=3)).start()
    run.run()
    assert run.state.steps[StepId("b")].ended_at == 3


def test_an_element_that_waits_to_retry_holds_no_slot() -> None:
    recipe = """
name: t
steps:
  - id: m
    map: {over: "[0, 1, 2]", agent: worker, input: "{{item}}"}
    retry: {max_attempts: 2, backoff: linear}
"""
    first, second = "m/item.0.stage.0", "m/item.1.stage.0"
    script = {first: [Fail(retry_after=50), "0"], second: Give("1", after=20)}
    run = drive(plan_of(recipe, width=1), script)
    elements = [start.attempt.part.text[:6] for start in run.starts]
    assert elements == ["item.0", "item.1", "item.2", "item.0"]
    assert run.output == ["0", "1", "m/item.2.stage.0"]


def test_a_loop_keeps_its_slot_from_round_to_round() -> None:
    recipe = """
name: t
steps:
  - {id: l, prompt: go, loop: {agent: worker, validator: other, max_iterations: 2}}
  - {id: next, subagent: worker, prompt: go}
"""
    run = drive(plan_of(recipe, width=1), {"other": '{"passed": false}'})
    assert run.started == ["l", "l", "l", "l", "next"]


def test_elements_that_wait_for_a_slot_are_given_up_when_the_budget_is_spent() -> None:
    recipe = maps(1, 9) + "budget: {agents: 4}\n"
    run = drive(plan_of(recipe, width=2))
    assert len(run.starts) == 4
    assert run.ended == [RunStatus.FAILED]
    assert "budget exhausted" in run.warnings()


def test_two_steps_that_write_the_same_files_never_run_together() -> None:
    both = steps(
        "id: a, posture: writer, write_set: [src/**]",
        "id: b, posture: writer, write_set: [src/a.py]",
    )
    run = Driven(plan_of(both)).start()
    assert run.started == ["a"]
    run.run()
    assert run.started == ["a", "b"]
    assert run.status is RunStatus.COMPLETE


def test_a_shared_writer_waits_for_the_readers_of_its_files() -> None:
    both = steps(
        "id: reader, read_set: [docs]",
        "id: writer, posture: writer, workspace_mode: shared, write_set: [docs/a.md]",
    )
    assert Driven(plan_of(both)).start().started == ["reader"]


def test_an_isolated_writer_never_blocks_a_reader() -> None:
    both = steps("id: writer, posture: writer", "id: reader")
    assert Driven(plan_of(both)).start().started == ["writer", "reader"]


def test_later_steps_overtake_one_that_waits_for_files() -> None:
    three = steps(
        "id: a, posture: writer, write_set: [x]",
        "id: b, posture: writer, write_set: [x]",
        "id: c, posture: writer, write_set: [y]",
    )
    assert Driven(plan_of(three)).start().started == ["a", "c"]


def test_a_step_waits_for_every_step_that_blocks_it() -> None:
    three = steps(
        "id: a, posture: writer, write_set: [x]",
        "id: b, posture: writer, write_set: [y]",
        "id: c, posture: writer, write_set: [x, y]",
    )
    run = drive(three, {"b": Give("b", after=9)})
    assert run.state.steps[StepId("c")].started_at == 9


def test_files_stay_claimed_until_a_cancelled_branch_has_stopped() -> None:
    recipe = """
name: t
steps:
  - id: race
    parallel: [{agent: worker, prompt: a}, {agent: other, prompt: b}]
    wait: any
    posture: writer
  - {id: next, subagent: worker, prompt: go, depends_on: [race], posture: writer}
"""
    run = Driven(plan_of(recipe), {"race/other": Hang()}, workspace="").start()
    while run.state.steps[StepId("race")].ended_at is None:
        run.step()
    assert "next" not in run.started
    run.run()
    assert run.started[-1] == "next"
    assert run.status is RunStatus.COMPLETE


def test_a_step_whose_when_is_false_is_skipped() -> None:
    run = drive(steps("id: a", "id: b, depends_on: [a], when: \"steps.a.output == 'no'\""))
    assert run.statuses() == {"a": "succeeded", "b": "skipped"}
    assert run.status is RunStatus.COMPLETE


def test_a_when_that_cannot_be_decided_skips_with_a_warning() -> None:
    run = drive(steps("id: a", 'id: b, depends_on: [a], when: "steps.a.output.score > 3"'))
    assert run.statuses()["b"] == "skipped"
    assert "'when' is undecided" in run.warnings()


def test_a_gated_step_waits_for_a_person_and_others_go_on() -> None:
    run = drive(steps("id: a, gate: human", "id: b", "id: c"), width=1)
    assert run.asked == ["a"]
    assert run.started == ["b", "c"]
    assert run.status is RunStatus.WAITING
    assert run.ended == []
    run.see(Approved(run.now, StepId("a"), by="ann"))
    run.run()
    assert run.started == ["b", "c", "a"]
    assert run.ended == [RunStatus.COMPLETE]


def test_a_gate_holds_no_files() -> None:
    run = drive(steps("id: a, gate: human, posture: writer", "id: b, posture: writer"))
    assert run.started == ["b"]


def test_a_gate_is_asked_only_after_dependencies_and_when() -> None:
    recipe = steps("id: a", "id: b, gate: human, depends_on: [a], when: 'false'")
    run = drive(recipe)
    assert run.asked == []
    assert run.statuses()["b"] == "skipped"


def test_a_gate_that_is_rejected_fails_its_step_under_its_policy() -> None:
    run = drive(steps("id: a, gate: human", "id: b, depends_on: [a]"))
    run.see(Rejected(run.now, StepId("a"), by="ann", reason="too dear"))
    run.run()
    assert run.state.steps[StepId("a")].error == "rejected by ann: too dear"
    assert run.statuses() == {"a": "failed", "b": "succeeded"}
    assert run.ended == [RunStatus.PARTIAL]


def test_a_second_decision_changes_nothing() -> None:
    run = drive(steps("id: a, gate: human"))
    run.see(Approved(run.now, StepId("a")))
    assert run.see(Rejected(run.now, StepId("a"))) == ()
    run.run()
    assert run.ended == [RunStatus.COMPLETE]


def test_the_commands_of_one_event_come_in_listing_order_and_questions_last() -> None:
    run = Driven(plan_of(steps("id: a", "id: b, gate: human", "id: c"))).start()
    kinds = [(type(command), command.step) for command in run.commands]  # type: ignore[union-attr]
    assert kinds == [(StartAttempt, "a"), (StartAttempt, "c"), (AskApproval, "b")]


def test_a_step_that_fails_at_once_frees_its_place() -> None:
    run = drive(steps("id: a", "id: b", "id: c"), {"a": Fail()}, width=1)
    assert run.started == ["a", "b", "c"]


RETRIES = "retry: {max_attempts: 3, backoff: linear}"


def test_a_step_that_waits_to_retry_gives_its_place_to_another() -> None:
    plan = plan_of(steps(f"id: a, {RETRIES}", "id: b"), width=1)
    run = Driven(plan, {"a": [Fail(), "fine"], "b": Hang()}).start()
    while run.started == ["a"]:
        assert run.step()
    assert run.started == ["a", "b"]
    assert run.state.ready.running == 1
    run.run()
    assert run.started == ["a", "b"]
    assert why_waiting(run.state, StepId("a")) == "waits for a free slot (1 of 1 running)"
    run.see(AttemptSucceeded(run.now, AttemptId(StepId("b"), 1), "done"))
    run.run()
    assert run.started == ["a", "b", "a"]
    assert run.status is RunStatus.COMPLETE


def test_steps_that_come_back_and_steps_that_are_ready_share_one_listing_order() -> None:
    written = steps("id: a", f"id: b, {RETRIES}", "id: c", "id: d")
    script = {"b": [Fail(retry_after=0.1), "fine"], "c": Give("c", after=300)}
    run = drive(plan_of(written, width=1), script)
    assert run.started == ["a", "b", "c", "b", "d"]


def test_a_step_that_waits_to_retry_keeps_its_files() -> None:
    write = "posture: writer, write_set: [out], workspace_mode: shared"
    run = Driven(plan_of(steps(f"id: a, {write}, {RETRIES}", f"id: b, {write}"), width=4))
    run.script = {"a": [Fail(), "fine"]}
    run.start().run()
    assert run.started == ["a", "a", "b"]


def test_a_branch_that_waits_to_retry_gives_its_slot_to_the_next_branch() -> None:
    recipe = f"""
name: t
steps:
  - id: fan
    parallel: [{{agent: worker, prompt: a}}, {{agent: other, prompt: b}}]
    {RETRIES}
  - {{id: next, subagent: default, prompt: go}}
"""
    script = {"worker": [Fail(retry_after=200), "fine"], "other": Give("b", after=100)}
    run = drive(plan_of(recipe, width=1), script)
    assert run.started == ["fan", "fan", "next", "fan"]
    assert run.state.steps[StepId("next")].started_at == 101


def test_an_attempt_that_was_told_to_stop_holds_its_place_until_it_has() -> None:
    recipe = """
name: t
agents: {slow: {timeout: 1s, prompt: go}}
steps:
  - {id: a, subagent: slow, prompt: go, retry: {max_attempts: 2, backoff: linear}}
  - {id: b, subagent: worker, prompt: go}
"""
    run = Driven(plan_of(recipe, width=1)).start()
    a = StepId("a")
    run.see(AttemptStarted(0, AttemptId(a, 1), AgentId("slow"), ""))
    run.see(TimerFired(1, AttemptTimer(AttemptId(a, 1))))
    assert run.started == ["a"]
    run.see(AttemptCancelled(2, AttemptId(a, 1)))
    assert run.started == ["a", "b"]


def test_a_step_that_ends_while_it_waits_for_a_place_takes_none_along() -> None:
    written = steps(f"id: a, timeout: 40s, on_failure: skip, {RETRIES}", "id: b", "id: c")
    run = drive(plan_of(written, width=1), {"a": Fail(), "b": Give("b", after=90)})
    assert run.started == ["a", "b", "c"]
    assert run.statuses() == {"a": "failed", "b": "succeeded", "c": "succeeded"}
    assert run.state.ready.running == 0


def test_a_resumed_step_that_is_approved_while_it_has_no_place_waits_for_one() -> None:
    write = "posture: writer, write_set: [out], workspace_mode: shared"
    plan = plan_of(steps(f"id: a, {write}, {RETRIES}", "id: b, read_set: [docs]"), width=1)
    run = Driven(plan, {"a": [Fail(retry_after=50), "fine"], "b": Hang()}).start()
    while run.started == ["a"]:
        assert run.step()
    run.see(RunResumed(run.now, permission="ask"))
    assert run.asked == ["a"]
    key = run.state.steps[StepId("a")].asked_key
    run.see(Approved(run.now, StepId("a"), key=key))
    assert [start.step for start in run.starts] == ["a", "b", "b"]
    run.see(AttemptSucceeded(run.now, AttemptId(StepId("b"), 1), "done"))
    assert run.started[-1] == "a"
