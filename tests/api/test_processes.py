"""The API in processes of its own: a script, a crash, a notebook."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import stretto
from support.api import BRIEF, Open, Scripted

SCRIPT = """
import sys, stretto
recipe, home, model = sys.argv[1:]
report = stretto.run(recipe, {"topic": "looms"}, home=home, model=model)
print(report.status, report.output)
"""
DRIVER = """
import asyncio, sys, stretto

recipe, home, model = sys.argv[1:]

async def main():
    async with stretto.Stretto(home=home, model=model) as w:
        run = await w.start(recipe, {"topic": "looms"})
        async for event in run.events():
            if isinstance(event, stretto.AttemptStarted) and event.step == "brief":
                print(run.id, flush=True)

asyncio.run(main())
"""


def test_a_script_prints_nothing_but_what_it_prints_itself(
    tmp_path: Path, project: Path, scripted: Scripted
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, BRIEF, str(tmp_path / "home"), scripted("default: x")],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("complete x\n", "", 0)


def test_a_run_whose_process_was_killed_goes_on_in_another_one(
    tmp_path: Path, project: Path, scripted: Scripted, open_stretto: Open
) -> None:
    script = "replies: {gather: sources, brief: [{reply: x, delay: 1h}, {reply: done}]}"
    words = [BRIEF, str(tmp_path / "home"), scripted(script)]
    child = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *words], cwd=project, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    run_id = child.stdout.readline().strip()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()

    async def main() -> None:
        async with open_stretto("default: unused") as w:
            run = w.open(run_id)
            assert await run.status() == "interrupted"
            assert [row.id for row in await w.runs(status="interrupted")] == [run_id]
            before = time.monotonic()
            report = await (await run.resume()).report()
            assert time.monotonic() - before < 20  # nobody waits for the lease of a dead process
            assert (report.status, report.output) == ("complete", "done")
            started = [e async for e in run.events() if isinstance(e, stretto.AttemptStarted)]
            assert [e.step for e in started] == ["gather", "brief", "brief"]

    asyncio.run(main())


def test_a_notebook_runs_a_recipe_in_its_own_loop_and_draws_the_values(
    tmp_path: Path, project: Path, scripted: Scripted
) -> None:
    model = scripted("replies: {gather: sources, brief: <script>alert(1)</script>}")
    cells = [
        f"import stretto\nw = stretto.Stretto({str(project)!r}, home={str(tmp_path / 'home')!r}, "
        f"model={model!r})\nrecipe = {BRIEF!r}",
        "plan = await w.plan(recipe, {'topic': 'looms'})\nplan",
        "run = await w.start(recipe, {'topic': 'looms'})\nrun",
        "[event.type async for event in run.events()][-1]",
        "report = await run.report()\nreport",
        "await w.close()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(project)}}).execute()
    shown = [cell["outputs"][-1]["data"] if cell["outputs"] else {} for cell in notebook["cells"]]
    assert shown[1]["image/svg+xml"].startswith("<svg")
    assert "&lt;svg" in shown[1]["text/html"]
    assert "stretto.Run" in shown[2]["text/plain"]
    assert shown[3]["text/plain"] == "'run_ended'"
    drawn = shown[4]
    assert drawn["text/html"].startswith("<iframe sandbox")
    for form in ("text/html", "text/markdown"):
        assert "alert(1)" in drawn[form]
        assert "<script" not in drawn[form]
    assert all(
        output["output_type"] != "stream"
        for cell in notebook["cells"]
        for output in cell["outputs"]
    )


def test_a_notebook_is_refused_the_blocking_run_with_a_way_out(project: Path) -> None:
    cell = "import stretto\nstretto.run('brief')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    with pytest.raises(Exception, match="cannot be used inside a running event loop"):
        NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(project)}}
        ).execute()
    assert "w.start" in json.dumps(notebook["cells"][0]["outputs"])
