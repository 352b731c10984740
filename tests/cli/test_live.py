"""The live view: what its frames say, and what its threads do."""

import io
import re
import subprocess
import sys
import threading

import pytest
from rich.console import Console

from stretto.cli.progress.frame import dollars, elapsed, short_count
from stretto.cli.progress.lines import ChangedSteps
from stretto.cli.progress.rows import row_of
from stretto.cli.progress.view import LiveView
from stretto.events.attempts import AttemptId
from stretto.events.model import (
    Approved,
    CancelRequested,
    ModelSpoke,
    PhaseLasted,
    RunResumed,
    ToolEnded,
    ToolStarted,
)
from stretto.schedule.state import StepState
from stretto.text.short import columns, fit
from stretto.vocabulary.amounts import Limits, Usage
from stretto.vocabulary.names import RunId, StepId
from support.scheduling import Driven, Fail, Give, Hang, plan_of

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Watched:
    """A run whose every event a view sees."""

    def __init__(self, recipe, script=None, width=100, height=30, at_once=4, limits=None, **inputs):
        self.plan = plan_of(recipe, limits or Limits(), at_once)
        self.driven = Driven(self.plan, script or {}, inputs)
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=height, color_system=None
        )
        self.view = LiveView(self.plan, self.console, now=lambda: self.driven.now, takes_keys=False)
        self.driven.start()
        self._tell()

    def until(self, seconds):
        while self.driven._due and self.driven._due[0][0] <= seconds:
            if self.driven.step():
                self._tell()
        self.driven.now = max(self.driven.now, seconds)
        return self

    def run(self):
        return self.until(float("1e9"))

    def see(self, event):
        self.driven.see(event)
        self._tell()

    def lines(self, **how):
        return ["".join(said for said, _ in line) for line in self.view.frame(**how)]

    def line(self, start, **how):
        return next(line for line in self.lines(**how) if line[2:].startswith(start))

    def _tell(self):
        self.view(self.driven.journal[-1], self.driven.state)


def steps(*written, head=""):
    return f"name: test\n{head}steps:\n" + "".join(f"  - {step}\n" for step in written)


def step(id, *depends_on, more=""):
    return f"{{id: {id}, subagent: worker, prompt: go, posture: read_only, depends_on: [{', '.join(depends_on)}]{more}}}"


def many(count, *more):
    return steps(*(step(f"s{i:03}") for i in range(count)), *more)


def test_the_header_says_which_run_it_is_and_how_far():
    script = {"a": Give("x", usage=Usage(900, 334, 0.25)), "b": Hang()}
    frame = Watched(steps(step("a"), step("b"), step("c", "b")), script).until(12).lines()
    assert frame[0] == "test  running  run run-1"
    assert frame[1] == "12s · 1 of 3 steps · 1 of 4 running · 1,234 tokens · $0.2500"


def test_the_header_counts_subagents_as_the_width_does():
    branches = ", ".join(f"{{agent: worker, output_key: k{n}}}" for n in range(3))
    recipe = steps(f"{{id: views, prompt: go, parallel: [{branches}]}}", step("b"), step("c"))
    watched = Watched(recipe, {"views": Hang(), "b": Hang()})
    assert watched.until(2).lines()[1] == "2s · 0 of 3 steps · 4 of 4 running"
    assert watched.line("c").endswith("waits for a free slot (4 of 4 running)")


def test_every_step_has_a_sign_a_word_and_its_figures():
    script = {"a": Give("x", usage=Usage(900, 334, 0.25)), "b": Hang()}
    watched = Watched(steps(step("a"), step("b"), step("c", "b")), script).until(5)
    assert watched.lines()[2:5] == [
        "✓ a succeeded     1s  1,234 $0.2500 ",
        "▶ b running       5s                 worker",
        "· c waiting                          waits for b",
    ]


def test_the_footer_says_how_to_stop():
    watched = Watched(steps(step("a")), {"a": Hang()})
    assert watched.lines()[-1] == "Ctrl-C stops cleanly and prints how to resume"


def test_a_retry_counts_down_and_says_why():
    retry = ", retry: {max_attempts: 3, backoff: linear}"
    script = {"a": [Fail("rate limited", retry_after=9.0), Hang()]}
    watched = Watched(steps(step("a", more=retry)), script).until(3)
    assert "↻ a retrying      3s  retries in 7s, rate limited" in watched.lines()
    assert "retries in 4s" in watched.until(6).line("a")
    assert "▶ a running      30s  1 retry, rate limited" in watched.until(30).lines()


def test_a_step_that_waits_for_a_person_says_so_and_how_to_decide():
    watched = Watched(steps(step("a", more=", gate: human")), {"a": Hang()})
    assert "waiting" in watched.lines()[0]
    assert watched.line("a").rstrip() == "? a awaiting approval"
    assert watched.lines()[-1].startswith("stretto approve run-1 a (or reject)")
    watched.see(Approved(1.0, StepId("a")))
    assert watched.line("a").startswith("▶ a running")


def test_an_allowed_step_without_a_place_waits_again():
    recipe = steps(step("a", more=", gate: human"), step("b"))
    watched = Watched(recipe, {"a": Hang(), "b": Hang()}, at_once=1)
    watched.see(Approved(1.0, StepId("a")))
    assert watched.line("a") == "· a waiting           waits for a free slot (1 of 1 running)"


def test_a_step_waits_for_files_and_says_whose():
    writer = "{{id: {}, subagent: worker, prompt: go, posture: writer, write_set: [src]}}"
    watched = Watched(steps(writer.format("a"), writer.format("b")), {"a": Hang()})
    assert watched.line("b").endswith("waits for the files of a (src)")


def test_a_step_that_waits_for_very_many_says_how_many():
    join = step("join", *(f"s{i:03}" for i in range(9)))
    assert Watched(many(9, join)).line("join").endswith("waits for 9 steps")


def attempt(step):
    return AttemptId(StepId(step), 1)


def test_a_running_step_says_which_tool_it_calls_with_what():
    watched = Watched(steps(step("a")), {"a": Hang()})
    about = {"content": "x" * 900, "file_path": "src/\x1b[2Jbilling.py"}
    watched.see(ToolStarted(1.0, attempt("a"), 1, "Write", about, "keyed"))
    assert watched.line("a").endswith("calls Write src/␛[2Jbilling.py")
    watched.see(ToolEnded(2.0, attempt("a"), 1, "Write", about, "ok", 5, 1.0))
    assert watched.line("a").endswith("called Write src/␛[2Jbilling.py")


def test_a_running_step_says_what_it_waits_for():
    watched = Watched(steps(step("a")), {"a": Hang()})
    watched.see(PhaseLasted(1.0, attempt("a"), "waits for the first word of openai:m"))
    assert watched.line("a").endswith("waits for the first word of openai:m")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_running_step_shows_its_last_words_and_not_the_first(width):
    watched = Watched(steps(step("a")), {"a": Hang()}, width=width)
    for piece in ("In the beginning ", "there was a very long answer, ", "and here is\nits end."):
        watched.see(ModelSpoke(1.0, attempt("a"), piece))
    assert watched.line("a").endswith("and here is its end.")
    assert columns(watched.line("a")) <= width
    watched.run()
    watched.see(CancelRequested(2.0))
    assert "its end" not in watched.run().line("a")


def test_words_of_two_attempts_are_not_mixed():
    branches = "{agent: worker, input: a, output_key: a}, {agent: other, input: b, output_key: b}"
    watched = Watched(steps(f"{{id: p, parallel: [{branches}]}}"), {"p/a": Hang(), "p/b": Hang()})
    one, two = (each.id for each in watched.driven.state.steps[StepId("p")].attempts)
    watched.see(ModelSpoke(1.0, one, "Alpha"))
    watched.see(ModelSpoke(1.0, two, "Beta"))
    assert watched.line("p").endswith("0 of 2 branches: Beta")


def opened(recipe, script, *keys, **how):
    watched = Watched(recipe, script, **how)
    watched.lines()
    for key in keys:
        watched.view.press(key)
        watched.lines()
    return watched


def test_a_key_opens_the_stream_of_a_step_and_another_closes_it():
    watched = opened(steps(step("a"), step("b")), {"a": Hang(), "b": Hang()}, "down", "open")
    watched.see(ModelSpoke(1.0, attempt("a"), "Once upon a time\n"))
    about = {"pattern": "TODO"}
    watched.see(
        ToolEnded(2.0, attempt("a"), 1, "Grep", about, "refused", 0, 1.0, "not \x1b[2Jallowed")
    )
    shown = watched.lines()
    assert shown[2].startswith("▶ a running")
    assert shown[3:6] == ["-- attempt 1", "Once upon a time", ""]
    assert shown[6] == "called Grep TODO"
    assert "not ␛[2Jallowed" in shown[7]
    assert shown[-1].startswith("Esc closes it · ↑↓ scroll · Tab next step")
    assert not any("b running" in line for line in shown)
    watched.view.press("next")
    assert watched.lines()[2].startswith("▶ b running")
    watched.view.press("back")
    assert [line[:3] for line in watched.lines()[2:4]] == ["▶ a", "▶›b"]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (40, 10), (60, 6)])
def test_an_open_stream_fits_its_window_and_is_scrolled(width, height):
    watched = opened(steps(step("a")), {"a": Hang()}, "open", width=width, height=height)
    watched.see(ModelSpoke(1.0, attempt("a"), "\n".join(f"漢字 {i} " * 30 for i in range(200))))
    end = watched.lines()
    assert len(end) <= height
    assert all(columns(line) <= width for line in end)
    assert "漢字 199" in end[-2]
    watched.view.press("page up")
    assert watched.lines() != end
    for _ in range(2000):
        watched.view.press("up")
    assert "漢字 199" not in " ".join(watched.lines()[3:])
    for _ in range(3000):
        watched.view.press("page down")
    assert watched.lines() == end


def test_300_steps_fit_a_small_window_with_those_at_work_first():
    script = {f"s{i:03}": Hang() for i in (250, 251, 252)} | {"s010": Fail("broken")}
    watched = Watched(many(300), script, width=80, height=24, at_once=300).until(3)
    shown = watched.lines()
    assert len(shown) <= 24
    rows = [line for line in shown[2:] if line[2:3] == "s"]
    assert [line[:6] for line in rows[:3]] == ["▶ s250", "▶ s251", "▶ s252"]
    assert any("✗ s010" in line for line in rows)
    hidden = sum(int(n.replace(",", "")) for line in shown for n in re.findall(r"(\d+) more", line))
    assert hidden + len(rows) == 300


def test_a_chosen_step_stays_in_sight():
    watched = opened(many(300), {}, "down", width=80, height=24)
    assert any("›s000" in line for line in watched.until(3).lines())


def test_an_opened_step_is_not_what_a_run_ends_with():
    watched = opened(steps(step("a"), step("b")), {"a": Fail("no")}, "open")
    with watched.view:
        watched.run()
    assert "✓ b succeeded" in _CONTROL.sub("", watched.file.getvalue()).split("test  ")[-1]


MAP = """
name: test
inputs: [{name: xs, type: json}]
steps:
  - id: m
    map: {over: "{{inputs.xs}}", agent: worker, input: "{{item}}", batch_size: 2,
          on_item_failure: skip, reduce: other}
"""


def test_a_map_says_how_many_elements_are_through():
    script = {"m/item.1.stage.0": Fail("bad"), "m/reduce": Give("all", after=5)}
    watched = Watched(MAP, script, xs=[1, 2, 3, 4, 5])
    assert watched.line("m").endswith("0 of 5 elements")
    assert watched.until(2).line("m").endswith("4 of 5 elements, 1 failed")
    assert watched.until(3).line("m").endswith("5 of 5 elements, 1 failed, reducing")
    assert watched.run().line("m").endswith("1 failed, 1 warning: item 1 failed: bad")


def test_answers_of_an_earlier_run_are_told_apart():
    watched = Watched(MAP, {"m": Give("x")}, xs=[1, 2, 3]).run()
    state, map_step = watched.driven.state, watched.driven.state.steps[StepId("m")]
    attempts = [part.attempts[-1] for part in map_step.parts.values()]
    attempts[0].reused_from = RunId("run-0")
    assert row_of(state, map_step).says == "3 elements, 1 of 4 reused"
    for attempt in attempts:
        attempt.reused_from = RunId("run-0")
    assert row_of(state, map_step).says == "3 elements, reused"


def test_a_map_sums_the_tokens_of_its_elements():
    script = {"m": Give("x", usage=Usage(0, 100))}
    watched = Watched(MAP, script, xs=[1, 2, 3]).run()
    total = watched.driven.state.steps[StepId("m")].usage.tokens
    assert f" {total} " in watched.line("m")


def test_a_loop_says_which_iteration_it_is_in():
    recipe = steps("{id: l, input: go, loop: {agent: worker, validator: other, max_iterations: 3}}")
    script = {"l/check.1": {"passed": False}, "l/check.2": {"passed": True}}
    watched = Watched(recipe, script)
    assert watched.line("l").endswith("iteration 1 of 3")
    assert watched.until(1).line("l").endswith("iteration 1 of 3, judging")
    assert watched.until(2).line("l").endswith("iteration 2 of 3")
    assert watched.run().line("l").endswith("2 iterations")


def test_a_parallel_step_says_how_many_branches_have_ended():
    branches = "{agent: worker, input: a, output_key: a}, {agent: other, input: b, output_key: b}"
    recipe = steps(f"{{id: p, parallel: [{branches}]}}")
    watched = Watched(recipe, {"p/b": Give("x", after=9)}).until(2)
    assert watched.line("p").endswith("1 of 2 branches")


def test_a_tall_run_fits_its_window_and_keeps_what_runs_in_sight():
    script = {f"s{i:03}": Hang() for i in range(200, 204)}
    watched = Watched(many(500), script, width=80, height=12).until(60)
    frame = watched.lines()
    assert len(frame) == 12
    assert sum("running " in line for line in frame[2:]) == 4
    assert frame[2] == "✓ 199 more succeeded"
    assert frame[-2] == "· 294 more waiting"


def test_a_run_as_tall_as_its_window_is_not_folded():
    watched = Watched(many(9), height=12)
    assert len(watched.lines()) == 12
    assert not any(" more " in line for line in watched.lines())


def test_people_and_retries_are_seen_before_what_just_runs():
    retried = [step("z", more=", retry: {max_attempts: 2, backoff: linear}")]
    gated = step("gate", more=", gate: human")
    script = {f"s{i:03}": Hang() for i in range(40)} | {"z": Fail("no", retry_after=50)}
    watched = Watched(many(40, *retried, gated), script, height=8, at_once=50).until(2)
    shown = [line[:6] for line in watched.lines()[2:-2]]
    assert shown == ["▶ s000", "↻ z   ", "? gate"]
    assert watched.lines()[-2] == "▶ 39 more running"


def test_the_last_frame_of_many_steps_is_short_and_shows_failed_ones_first():
    script = {f"s{i:03}": Fail(f"broken {i}") for i in range(20)}
    watched = Watched(many(40), script, height=30).run()
    failed = [line for line in watched.lines(is_last=True) if line.startswith("✗ s")]
    assert len(failed) == 6
    assert len(watched.lines(is_last=True)) <= 10
    assert "Ctrl-C" not in watched.lines(is_last=True)[-1]


@pytest.mark.parametrize("height", [1, 2, 3, 5, 6, 9])
def test_a_low_window_still_shows_a_step(height):
    assert any("running" in line for line in Watched(many(30), height=height).lines()[2:])


@pytest.mark.parametrize("width", [10, 20, 39, 59, 60, 79, 80, 90, 200])
def test_no_line_is_wider_than_the_window(width):
    long_id = "a-very-long-name-of-a-step-that-nobody-would-want-to-type"
    script = {long_id: Fail("日本語のエラーです " * 30), "b": Hang()}
    watched = Watched(steps(step(long_id), step("b")), script, width=width).until(4)
    rows = watched.lines()[2:] if width < 40 else watched.lines()
    # The step's id, its sign and its word are never given up; the terminal crops them.
    assert all(columns(line) <= max(width, 27) for line in rows)


def test_what_models_and_recipes_say_is_shown_as_text():
    error = "[red]not[/red]\x1b[31m\x07 red\r\nsecond\u202eline\ud800"
    watched = Watched(steps(step("a"), step("b")), {"a": Fail(error), "b": Hang()})
    with watched.view:
        watched.until(2)
    drawn = watched.file.getvalue()
    assert "[red]not[/red]␛[31m␇ red second\ufffdline" in drawn
    assert not set(_CONTROL.sub("", drawn)) & set("\x1b\x07\u202e\ud800")


def test_wide_characters_do_not_move_what_follows():
    watched = Watched(steps(step("a")), {"a": Fail("漢字" * 80)}, width=70).run()
    assert columns(watched.line("a")) in (69, 70)


def test_a_skipped_or_held_step_says_why():
    recipe = steps(
        step("a", more=", on_failure: block"), step("b", "a"), step("c", more=", when: '1 == 2'")
    )
    watched = Watched(recipe, {"a": Fail("it broke")}).run()
    assert watched.line("a").endswith("it broke")
    assert watched.line("b") == "- b held              a failed"
    assert watched.line("c").endswith("its condition is not met: 1 == 2")


def test_a_run_that_is_told_to_stop_says_so():
    watched = Watched(steps(step("a")), {"a": Hang()}).until(2)
    watched.see(CancelRequested(2.0))
    assert watched.lines()[0].startswith("test  stopping")
    assert watched.run().lines()[0].startswith("test  cancelled")


def test_a_run_that_is_taken_up_again_shows_what_had_ended():
    driven = Watched(steps(step("a"), step("b")), {"b": Hang()}).until(5).driven
    driven.see(RunResumed(9.0))
    view = LiveView(driven.plan, Console(file=io.StringIO(), force_terminal=True), lambda: 9.0)
    view(driven.journal[-1], driven.state)
    said = ["".join(text for text, _ in line) for line in view.frame()]
    assert said[2].startswith("✓ a succeeded")
    assert said[3].startswith("▶ b running")
    assert not any("retry" in line for line in said), "what a crash cut short had not failed"


def test_the_final_frame_stays_on_the_screen():
    watched = Watched(steps(step("a")), {"a": Fail("it broke")})
    with watched.view:
        watched.run()
    shown = _CONTROL.sub("", watched.file.getvalue())
    assert shown.rstrip().endswith("✗ a failed        1s  it broke")
    assert watched.file.getvalue().rstrip().endswith("\x1b[?25h")  # the cursor is back


def test_the_final_frame_offers_no_keys_and_marks_no_step():
    gated = steps(step("a"), step("b", "a").replace("prompt", "gate: human, prompt"))
    watched = opened(gated, {}, "down")
    assert any("›a" in line for line in watched.lines())
    with watched.view:
        watched.run()
    last = _CONTROL.sub("", watched.file.getvalue()).rstrip().splitlines()[-2:]
    assert last[0].startswith("✓ a succeeded")
    assert last[1].startswith("? b awaiting approval")


def test_of_a_run_that_ended_before_anything_was_heard_nothing_is_left():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=24, color_system=None)
    with LiveView(plan_of(steps(step("a"))), console, takes_keys=False) as view:
        view._draw()
    assert file.getvalue().count("starting") == 1
    # The line that was drawn is erased, and no other is drawn after it.
    assert "\x1b[2K" in file.getvalue().partition("starting")[2]
    # Nor an empty line, if none was drawn before.
    file.seek(file.truncate(0))
    with LiveView(plan_of(steps(step("a"))), console, takes_keys=False) as view:
        view._done.set()
    assert "\n" not in file.getvalue()


def test_an_interrupted_run_says_that_its_steps_were_stopped():
    watched = Watched(steps(step("a"), step("b", "a")), {"a": Hang()})
    with pytest.raises(KeyboardInterrupt), watched.view:
        raise KeyboardInterrupt
    shown = _CONTROL.sub("", watched.file.getvalue())
    assert "test  interrupted" in shown
    assert "- a stopped" in shown


def test_an_interrupted_run_took_as_long_as_its_events_tell():
    watched = Watched(steps(step("a"), step("b", "a")), {"b": Hang()})
    watched.until(5)
    assert watched.lines()[1].startswith("5s · ")
    assert watched.lines(stopped="interrupted")[1].startswith("1s · 1 of 2 steps")


def test_who_stops_watching_a_run_does_not_see_it_stopped():
    watched = Watched(steps(step("a"), step("b", "a")), {"a": Hang()})
    watched.view._is_watching = True
    with pytest.raises(KeyboardInterrupt), watched.view:
        raise KeyboardInterrupt
    shown = _CONTROL.sub("", watched.file.getvalue())
    assert "▶ a running" in shown
    assert "stopped" not in shown
    assert "interrupted" not in shown


def test_the_last_frame_of_a_run_that_was_let_go_says_interrupted():
    watched = Watched(steps(step("a"), step("b", "a")), {"a": Hang()})
    with watched.view:
        watched.run()
    shown = "\n".join(_CONTROL.sub("", watched.file.getvalue()).splitlines()[-4:])
    assert "interrupted" in shown
    assert "running" not in shown


def test_a_narrowed_terminal_leaves_nothing_of_the_old_frame():
    watched = Watched(steps(step("a"), step("b", "a")), {"a": Hang()}, width=100)
    with watched.view as view:
        view._draw()
        before = watched.file.tell()
        watched.console.size = (25, 30)
        view._draw()
    # Of the five lines, those of 45, 33 and 34 columns now take two rows each.
    ups = watched.file.getvalue()[before:].split("test")[0].count("\x1b[1A")
    assert ups > 4


def test_nothing_is_written_when_nothing_has_changed():
    watched = Watched(steps(step("a")), {"a": Hang()})
    with watched.view as view:
        view._draw()
        size = watched.file.tell()
        view._draw()
        assert watched.file.tell() == size


def test_a_dumb_terminal_gets_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    watched = Watched(steps(step("a")), {"a": "x"})
    with watched.view:
        watched.run()
    assert watched.file.getvalue().splitlines()[1:] == ["▶ a running", "✓ a succeeded in 1s"]
    assert "\x1b" not in watched.file.getvalue()


def test_no_color_leaves_no_colour(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    plan = plan_of(steps(step("a")))
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=80, height=20)
    with LiveView(plan, console):
        pass
    assert not re.search(r"\x1b\[[\d;]*3\dm", file.getvalue())


def test_a_terminal_that_knows_only_ascii_gets_ascii():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    plan = plan_of(steps(step("a")))
    driven = Driven(plan, {"a": Fail("naïve …")}).start()
    with LiveView(plan, Console(file=file, force_terminal=True, width=80, height=9)) as view:
        view(driven.journal[0], driven.state)
        while driven.step():
            view(driven.journal[-1], driven.state)
    assert b"x a failed" in _CONTROL.sub("", file.buffer.getvalue().decode()).encode()


def test_the_view_draws_while_the_driver_changes_the_state():
    watched = Watched(many(300), height=12)
    failures = []
    hook, threading.excepthook = threading.excepthook, lambda told: failures.append(told)
    done = threading.Event()

    def draw():
        while not done.is_set():
            watched.view.frame()

    drawer = threading.Thread(target=draw)
    drawer.start()
    try:
        watched.run()
    finally:
        done.set()
        drawer.join()
        threading.excepthook = hook
    assert failures == []
    assert "300 of 300 steps" in watched.lines()[1]


def test_an_event_of_a_big_run_looks_at_few_steps():
    limits = Limits(steps=5000, nodes=10**6)
    watched = Watched(many(2000), {"worker": Hang()}, limits=limits)
    looked: list[StepState] = []
    changes = ChangedSteps()
    changes.after(watched.driven.journal[0], watched.driven.state)
    while watched.driven.step():
        looked += changes.after(watched.driven.journal[-1], watched.driven.state)
    assert len(looked) <= 8


def test_changes_tell_of_steps_that_no_event_names():
    route = "{id: r, condition: {eval: '1 == 1', true: x, false: y}}"
    recipe = steps(step("a"), route, step("x"), step("y"))
    driven = Driven(plan_of(recipe, width=1), {}).start()
    changes = ChangedSteps()
    told = {each.id for each in changes.after(driven.journal[0], driven.state)}
    while driven.step():
        told |= {each.id for each in changes.after(driven.journal[-1], driven.state)}
    assert told == {"a", "r", "x", "y"}


def test_figures_are_short():
    assert [short_count(n) for n in (0, 9_999, 12_345, 999_949, 1_234_567)] == [
        "0", "9,999", "12.3k", "999.9k", "1.2M",
    ]  # fmt: skip
    assert [dollars(usd) for usd in (0.0042, 0.5, 12.5)] == ["$0.0042", "$0.5000", "$12.50"]
    assert elapsed(0, None, 3725) == "1h02m"
    assert elapsed(0, None, 65.9) == "1m05s"
    assert elapsed(0, 0.25, 99) == "250ms"
    assert elapsed(5, None, 4) == "0s"
    assert fit("abcdef", 4) == "abc…"
    assert fit("漢字漢字", 4) == "漢…"


def test_the_view_is_imported_without_rich():
    code = "import sys, stretto.cli.progress.view, stretto.cli.run; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
