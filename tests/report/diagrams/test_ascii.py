"""What `stretto graph` prints, to the letter."""

from textwrap import dedent

from stretto.plan.model import Plan
from stretto.report.diagrams import draw
from support.diagram_plans import example, flat, graph


def looks(plan: Plan, drawing: str, width: int = 80) -> bool:
    expected = dedent(drawing).strip("\n")
    drawn = draw(plan, "ascii", width).rstrip("\n")
    assert drawn == expected, f"\n{drawn}\n\nis not\n\n{expected}"
    return True


SEVEN_IN_A_ROW = [[], [0], [1], [2], [3], [4], [5]]


def test_a_chain_is_one_line_with_its_agents_where_they_fit():
    assert looks(
        example("research-and-brief"),
        "[1. gather: researcher] --> [2. angles: researcher] --> [3. brief: researcher]",
    )


def test_agents_give_way_before_a_line_is_broken():
    assert looks(example("threat-brief"), "[1. scan] --> [2. analyze] --> [3. brief]")


def test_a_long_chain_goes_on_below():
    assert looks(
        graph(SEVEN_IN_A_ROW),
        """
        [1. s0] --> [2. s1] --> [3. s2]
            --> [4. s3] --> [5. s4]
            --> [6. s5] --> [7. s6]
        """,
        width=32,
    )


def test_the_branches_of_a_parallel_step_fan_out_and_in():
    assert looks(
        example("multi-criteria-lead-scoring"),
        r"""
                                /--> [1a. firmographic] ---\
        [1. parallel_scoring] --+--> [1b. technographic] --+--> [2. aggregate]
                                \--> [1c. intent] ---------/
        """,
    )


def test_steps_that_fan_out_and_join_are_drawn_like_branches():
    plan = flat(
        """
        {id: prepare-data, agent: worker, prompt: x}
        {id: firmographic-scorer, agent: worker, prompt: x, depends_on: prepare-data}
        {id: technographic-scorer, agent: worker, prompt: x, depends_on: prepare-data}
        {id: intent-scorer, agent: worker, prompt: x, depends_on: prepare-data}
        {id: sum, agent: worker, prompt: x, depends_on: [firmographic-scorer,
            technographic-scorer, intent-scorer]}
        """
    )
    assert looks(
        plan,
        r"""
                            /--> [2. firmographic-scorer] ---\
        [1. prepare-data] --+--> [3. technographic-scorer] --+--> [5. sum]
                            \--> [4. intent-scorer] ---------/
        """,
    )


def test_between_two_branches_the_middle_stays_free():
    assert looks(
        graph([[], [0], [0], [1, 2]], ["a", "b", "c", "d"]),
        r"""
                         /--> [2. b: worker] --\
        [1. a: worker] --+                     +--> [4. d: worker]
                         \--> [3. c: worker] --/
        """,
    )


def test_what_starts_together_needs_no_rail_on_its_left():
    assert looks(
        graph([[], [], [], [0, 1, 2]]),
        r"""
        [1. s0: worker] --\
        [2. s1: worker] --+--> [4. s3: worker]
        [3. s2: worker] --/
        """,
    )


def test_everyone_waiting_for_everyone_meets_in_one_knot():
    assert looks(
        graph([[], [], [0, 1], [0, 1]]),
        r"""
        [1. s0: worker] --\  /--> [3. s2: worker]
                          +--+
        [2. s1: worker] --/  \--> [4. s3: worker]
        """,
    )


def test_steps_that_have_nothing_to_do_with_each_other_are_listed():
    assert looks(graph([[], []]), "[1. s0: worker]\n[2. s1: worker]")


def test_a_condition_stands_behind_the_step_that_it_leads_to():
    plan = flat(
        """
        {id: research, agent: researcher, prompt: x}
        {id: score, depends_on: research,
            switch: {value: "{{steps.research.output.tier}}",
            cases: {hot: hot_lead, warm: warm_lead}, default: cold_lead}}
        {id: hot_lead, agent: writer, prompt: x}
        {id: warm_lead, agent: writer, prompt: x}
        {id: cold_lead, agent: writer, prompt: x}
        """
    )
    assert looks(
        plan,
        r"""
                                       /--> [3. hot_lead] (tier = hot)
        [1. research] --> [2. score] --+--> [4. warm_lead] (tier = warm)
                                       \--> [5. cold_lead] (else)
        """,
    )


def test_a_choice_made_in_place_stands_beside_a_routed_step():
    plan = flat(
        """
        {id: check, condition: {eval: "{{inputs.score}} >= 80", true: hot, false: writer}}
        {id: hot, agent: worker, prompt: x}
        {id: send, agent: worker, prompt: x, depends_on: [check, hot]}
        """,
        input="score",
    )
    assert looks(
        plan,
        r"""
                     /--> [1a. writer] (else) -----\
        [1. check] --+                             +--> [3. send]
                     \--> [2. hot] (score >= 80) --/
        """,
        width=70,
    )


def test_a_loop_shows_both_ways_out_of_its_judge():
    plan = flat(
        """
        {id: write, prompt: x, loop: {agent: writer, validator: reviewer, max_iterations: 3}}
        {id: deliver, agent: worker, prompt: x, depends_on: write}
        """
    )
    assert looks(
        plan,
        r"""
        [1. write: writer] --> [reviewer] --PASS--> [2. deliver: worker]
                ^                   |
                |                  FAIL
                \----- feedback ----/ (max 3 iterations)
        """,
    )


def test_a_loop_that_ends_the_plan_ends_in_done():
    assert looks(
        example("research-to-proposal"),
        r"""
        [1. research] --> [2. identify_pains] --> [3. pricing] --> [4. draft]
            --> [5. review] --> [reviewer] --PASS--> [done]
                     ^               |
                     |              FAIL
                     \--- feedback --/ (max 2 iterations)
        """,
    )


def test_a_loop_without_a_judge_shows_its_test():
    plan = flat(
        """
        {id: write, prompt: x, loop: {agent: writer, until: "{{steps.write.output.score}} > 7",
            max_iterations: 5}}
        """
    )
    assert looks(
        plan,
        r"""
        [1. write: writer] --> [score > 7?] --PASS--> [done]
                ^                    |
                |                   FAIL
                \----- feedback -----/ (max 5 iterations)
        """,
    )


def test_a_map_says_what_it_goes_through():
    plan = flat(
        """
        {id: split, agent: worker, prompt: x, output: {format: json}}
        {id: process, prompt: "{{item}}",
            map: {over: "{{steps.split.output.chunks}}", agent: worker, reduce: writer}}
        """
    )
    assert looks(
        plan, "[1. split] --> [2. process × each of split.output.chunks] --> [writer]", width=75
    )


def test_the_stages_of_a_map_are_a_chain_inside_it():
    plan = flat(
        """
        {id: split, agent: worker, prompt: x, output: {format: json}}
        {id: process, map: {over: "{{steps.split.output}}",
            stages: [{agent: worker, input: "{{item}}"}, {agent: reviewer, input: x}]}}
        """
    )
    assert looks(
        plan, "[1. split] --> [2. process: worker --> reviewer × each of split.output]", width=75
    )


def test_gates_conditions_and_fallbacks_follow_their_step():
    plan = flat(
        """
        {id: plan, agent: worker, prompt: x, gate: human}
        {id: act, agent: worker, prompt: x, depends_on: plan,
            when: "{{steps.plan.status}} == 'succeeded'", on_failure: "fallback:writer"}
        {id: vote, depends_on: act,
            parallel: [{agent: writer, input: x}, {agent: worker, input: x}], wait: any}
        """
    )
    assert looks(
        plan,
        r"""
        [1. plan: worker] (human gate)
            --> [2. act: worker] (when plan.status == 'succeeded') (fallback: writer)

                                               /--> [3a. writer]
            --> [3. vote] (waits for 1 of 2) --+
                                               \--> [3b. worker]
        """,
    )


def test_fans_nest():
    plan = graph([[], [0], [1], [1], [2, 3], [0], [4, 5]], "abcdefg")
    assert looks(
        plan,
        r"""
                               /--> [3. c] --\
                 /--> [2. b] --+             +--> [5. e] --\
                 |             \--> [4. d] --/             |
        [1. a] --+                                         +--> [7. g]
                 \--> [6. f] ------------------------------/
        """,
        width=70,
    )


def test_what_is_neither_is_listed_by_layers():
    plan = graph([[], [], [0], [0, 1], [2, 3]], ["fetch", "load", "parse", "lint", "merge"])
    assert looks(
        plan,
        """
        [1. fetch: worker]
        [2. load: worker]

        [3. parse: worker] <- fetch
        [4. lint: worker]  <- fetch, load

        [5. merge: worker] <- parse, lint
        """,
    )


def test_a_listing_says_what_happens_inside_a_step():
    plan = flat(
        """
        {id: a, agent: worker, prompt: x, output: {format: json}}
        {id: b, agent: worker, prompt: x, gate: human}
        {id: loop, depends_on: a, prompt: x, loop: {agent: writer, validator: reviewer}}
        {id: fan, depends_on: [a, b],
            parallel: [{agent: writer, input: x}, {agent: worker, input: x}]}
        {id: map, depends_on: loop, prompt: x,
            map: {over: "{{steps.a.output}}", agent: worker, reduce: writer}}
        {id: route, depends_on: fan,
            condition: {eval: "{{steps.a.output.n}} > 1", true: c, false: writer}}
        {id: c, agent: worker, prompt: x}
        """
    )
    assert looks(
        plan,
        """
        [1. a: worker]
        [2. b: worker]
            (human gate)

        [3. loop: writer] <- a
            again until reviewer passes it (max 3 iterations)
        [4. fan]          <- a, b
            side by side: writer, worker

        [5. map: worker]  <- loop
            each of a.output
            worker --> writer
        [6. route]        <- fan
            writer (else)

        [7. c: worker]    <- route (n > 1)
        """,
    )


def test_long_names_lose_their_middle():
    assert looks(
        graph([[], [0]], ["collect-" + "x" * 200 + "-north", "b"]),
        "[1. collect-xxxx…xxxxx-north: worker] --> [2. b: worker]",
    )


def test_wide_characters_take_two_columns():
    assert looks(
        graph([[], [0], [0], [1, 2]], ["a", "翻訳", "b", "c"]),
        r"""
                         /--> [2. 翻訳: worker] --\
        [1. a: worker] --+                        +--> [4. c: worker]
                         \--> [3. b: worker] -----/
        """,
    )
