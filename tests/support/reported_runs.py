"""Runs to report on. Out: a Driven run, and its Report with the journal's own facts."""

from stretto.report.model import Report, StepReport
from stretto.report.report import report_of
from stretto.vocabulary.amounts import Usage
from stretto.vocabulary.json_value import Json
from support.scheduling import Driven, Fail, Give, Hang, Script, plan_of

NEW_YEAR = 1767225600.0  # 2026-01-01 00:00:00 UTC
# Everything that a page, a table or a terminal could be broken by.
EVIL = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> | pipe & \"quote\" 'tick'\n"
    "### Issues and Warnings\n```\nfence \x1b[31mred\x00 \u202etxet \ud800 ![x](http://x.test/y)"
)
CHAIN = """
name: chain
steps:
  - {id: a, agent: worker, prompt: x}
  - {id: b, agent: worker, prompt: "{{steps.a.output}}"}
  - {id: c, agent: worker, prompt: "{{steps.b.output}}"}
"""
GATED = """
name: gated
steps:
  - {id: write, agent: worker, prompt: x}
  - {id: publish, agent: worker, prompt: "{{steps.write.output}}", gate: human}
"""


def driven(recipe: str, script: Script | None = None, width: int = 4, **inputs: Json) -> Driven:
    plan = plan_of(recipe, width=width)
    return Driven(plan, script or {}, inputs, now=NEW_YEAR).start().run()


def reported(recipe: str, script: Script | None = None, width: int = 4, **inputs: Json) -> Report:
    run = driven(recipe, script, width, **inputs)
    return report_of(run.state)


def step_of(report: Report, id: str) -> StepReport:
    return next(step for step in report.steps if step.id == id)


def priced(output: Json, usd: float, after: float = 1.0) -> Give:
    return Give(output, after, Usage(input_tokens=100, output_tokens=20, usd=usd, model_calls=1))


__all__ = [
    "CHAIN",
    "EVIL",
    "GATED",
    "NEW_YEAR",
    "Fail",
    "Give",
    "Hang",
    "driven",
    "priced",
    "reported",
    "step_of",
]
