"""The four recipes that the seeds print load unchanged and mean exactly this (RECIPES, top)."""

from hashlib import sha256

import pytest

from stretto.plan.build import Problems, build
from stretto.plan.model import Plan, PlannedDelegation, PlannedLoop, PlannedParallel
from stretto.plan.waves import waves
from stretto.recipe.read import read_recipe, read_recipe_file
from support.recipes import CATALOG, RECIPES, edges_of, plan_of, problems_of, step_of

NAMES = (
    "multi-criteria-lead-scoring",
    "research-and-brief",
    "research-to-proposal",
    "threat-brief",
)


def printed(name: str) -> Plan:
    return plan_of((RECIPES / f"{name}.yaml").read_bytes(), f"{name}.yaml")


@pytest.mark.parametrize("name", NAMES)
def test_a_printed_recipe_loads_without_a_problem_or_a_warning(name):
    text = (RECIPES / f"{name}.yaml").read_bytes()
    assert problems_of(text) == ()
    plan = plan_of(text)
    assert plan.name == name
    assert plan.warnings == ()
    assert plan.digest == sha256(text).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_a_printed_recipe_means_the_same_from_its_file(name):
    from_file = read_recipe_file(RECIPES / f"{name}.yaml", shown_as=f"{name}.yaml")
    assert build(from_file, CATALOG) == printed(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_printed_recipe_means_the_same_with_windows_line_ends(name):
    text = (RECIPES / f"{name}.yaml").read_text(encoding="utf-8")
    unix, windows = plan_of(text), plan_of("\ufeff" + text.replace("\n", "\r\n"))
    assert edges_of(windows) == edges_of(unix)
    assert [step.work for step in windows.steps] == [step.work for step in unix.steps]


def test_research_and_brief_is_flat_and_runs_in_three_waves():
    plan = printed("research-and-brief")
    assert (plan.dialect, plan.version, plan.width) == ("flat", "1", 4)
    assert plan.description == "Research a topic and write a cited brief"
    assert [(i.name, i.type, i.is_required, i.has_default, i.default) for i in plan.inputs] == [
        ("topic", "string", True, False, None),
        ("depth", "string", False, True, "deep"),
    ]
    assert edges_of(plan) == {
        "gather": [],
        "angles": [("gather", "written")],
        "brief": [("gather", "written"), ("angles", "written")],
    }
    assert [step.on_failure for step in plan.steps] == ["inline"] * 3
    assert [step.posture for step in plan.steps] == ["read_only"] * 3
    assert [step.workspace_mode for step in plan.steps] == ["shared"] * 3
    assert waves(plan) == (("gather",), ("angles",), ("brief",))
    assert plan.output is not None
    assert plan.output.text == "{{steps.brief.output}}"
    assert set(plan.agents) == {"researcher"}


def test_the_escapes_of_a_quoted_prompt_are_line_breaks():
    work = step_of(printed("research-and-brief"), "angles").work
    assert isinstance(work, PlannedDelegation)
    assert work.brief.style == "prompt"
    assert work.brief.instruction is not None
    assert work.brief.instruction.text == (
        "From this research, list the 3 key angles:\n{{steps.gather.output}}"
    )


def test_threat_brief_is_flat_and_runs_in_three_waves():
    plan = printed("threat-brief")
    assert (plan.dialect, plan.version, plan.width) == ("flat", "1", 4)
    assert edges_of(plan) == {
        "scan": [],
        "analyze": [("scan", "written")],
        "brief": [("scan", "written"), ("analyze", "written")],
    }
    assert [step.on_failure for step in plan.steps] == ["inline"] * 3
    assert [step.posture for step in plan.steps] == ["read_only"] * 3
    assert waves(plan) == (("scan",), ("analyze",), ("brief",))
    assert list(plan.agents) == ["threat_scanner", "vuln_analyst", "intel_reporter"]
    work = step_of(plan, "scan").work
    assert isinstance(work, PlannedDelegation)
    assert work.brief.instruction is not None
    assert work.brief.instruction.text == (
        "Scan CVE feeds and GitHub for recent threats related to: {{inputs.topic}}.\n"
        "Return a structured list (CVE IDs, sources, severity, 1-line summary).\n"
    )


def test_lead_scoring_is_wrapped_and_fans_out():
    plan = printed("multi-criteria-lead-scoring")
    assert (plan.dialect, plan.version, plan.width) == ("wrapped", "1.0.0", 4)
    assert plan.timeout_seconds == 300
    assert [(i.name, i.type, i.is_required) for i in plan.inputs] == [
        ("lead_data", "json", True),
        ("icp_criteria", "json", True),
    ]
    # The aggregator's prompt reads the fan's outputs, which is a better reason than the listing.
    assert edges_of(plan) == {
        "parallel_scoring": [],
        "aggregate": [("parallel_scoring", "reference")],
    }
    assert [step.type for step in plan.steps] == ["parallel", "sequential"]
    assert [step.on_failure for step in plan.steps] == ["abort", "abort"]
    # One branch has Bash, so the whole step may write; it then works on its own copy.
    assert [step.posture for step in plan.steps] == ["writer", "read_only"]
    assert [step.workspace_mode for step in plan.steps] == ["isolated", "shared"]
    assert [step.write_set for step in plan.steps] == [("**/*",), ()]
    assert waves(plan) == (("parallel_scoring",), ("aggregate",))
    assert plan.stored == {"parallel_scores": "parallel_scoring", "final_score": "aggregate"}
    assert plan.output is None
    fan = plan.steps[0].work
    assert isinstance(fan, PlannedParallel)
    assert (fan.wait, fan.needed) == ("all", 3)
    assert [(branch.key, branch.brief.agent) for branch in fan.branches] == [
        ("firmographic", "firmographic_scorer"),
        ("technographic", "technographic_scorer"),
        ("intent", "intent_scorer"),
    ]
    assert {branch.brief.style for branch in fan.branches} == {"input"}
    assert [agent.timeout_seconds for agent in plan.agents.values()] == [60] * 4
    assert plan.agents["aggregator"].name == "Score Aggregator"


def test_research_to_proposal_is_wrapped_and_every_step_follows_another():
    plan = printed("research-to-proposal")
    assert (plan.dialect, plan.version, plan.width) == ("wrapped", "1.0.0", 4)
    assert plan.timeout_seconds == 900
    assert [i.name for i in plan.inputs if i.is_required] == [
        "company_name",
        "contact_name",
        "our_services",
    ]
    assert [(i.default, i.has_default) for i in plan.inputs if not i.is_required] == [("", True)]
    assert edges_of(plan) == {
        "research": [],
        "identify_pains": [("research", "reference")],
        "pricing": [("identify_pains", "reference")],
        # `all prior context` waits for all of it.
        "draft": [
            ("research", "context"),
            ("identify_pains", "context"),
            ("pricing", "context"),
        ],
        # The writer's own prompt names three steps.
        "review": [
            ("research", "reference"),
            ("identify_pains", "reference"),
            ("pricing", "reference"),
            ("draft", "reference"),
        ],
    }
    assert waves(plan) == (
        ("research",),
        ("identify_pains",),
        ("pricing",),
        ("draft",),
        ("review",),
    )


def test_research_to_proposal_takes_its_policies_and_postures_from_its_agents():
    plan = printed("research-to-proposal")
    assert [
        (step.id, step.on_failure, step.posture, step.workspace_mode) for step in plan.steps
    ] == [
        ("research", "skip", "writer", "isolated"),
        ("identify_pains", "abort", "read_only", "shared"),
        ("pricing", "abort", "read_only", "shared"),
        ("draft", "abort", "writer", "isolated"),
        ("review", "abort", "writer", "isolated"),
    ]
    research = step_of(plan, "research").work
    assert isinstance(research, PlannedDelegation)
    assert (research.brief.retry.max_attempts, research.brief.retry.backoff) == (2, "none")
    assert plan.agents["researcher"].tools == ("Read", "Bash", "WebSearch")
    assert plan.agents["researcher"].validation.rules == (
        "Output must include company_overview field",
        "Output must include key_challenges array",
    )
    assert {agent.id: agent.timeout_seconds for agent in plan.agents.values()} == {
        "researcher": 180,
        "pain_identifier": 120,
        "pricing_analyst": 120,
        "proposal_writer": 240,
        "reviewer": 120,
    }


def test_the_review_loop_may_name_its_own_output():
    review = step_of(printed("research-to-proposal"), "review")
    assert review.type == "loop"
    assert isinstance(review.work, PlannedLoop)
    assert review.work.producer.agent == "proposal_writer"
    assert review.work.validator is not None
    assert review.work.validator.agent == "reviewer"
    assert review.work.max_iterations == 2
    assert review.work.until is None
    assert review.work.feedback is not None
    assert review.work.feedback.text == "steps.review.output.feedback"
    assert (review.output.store_as, review.output.format) == ("final_proposal", "markdown")


def test_the_draft_gets_all_prior_context():
    draft = step_of(printed("research-to-proposal"), "draft").work
    assert isinstance(draft, PlannedDelegation)
    assert draft.brief.gets_all_prior
    assert draft.brief.instruction is None


def test_a_recipe_s_own_agents_shadow_registered_ones():
    plan = printed("research-to-proposal")
    assert plan.agents["researcher"].name == "Company Researcher"
    assert plan.agents["reviewer"].name == "Quality Reviewer"


@pytest.mark.parametrize("name", ["multi-criteria-lead-scoring", "research-to-proposal"])
def test_a_wrapped_recipe_needs_no_registered_agent(name):
    recipe = read_recipe((RECIPES / f"{name}.yaml").read_bytes())
    assert not isinstance(build(recipe), Problems)
