"""The console's modules without a page, by Node: what is completed where, merged texts, folded graphs."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from browser.test_assets import ROOT
from stretto.recipe.grammar import recipe_schema

BUNDLER = ROOT / "console" / "node_modules" / ".bin" / "rolldown"
SOURCE = ROOT / "console" / "src"
# Lines of JSON on stdin are calls, each answered by a line.
PROGRAM = f"""
import {{ createInterface }} from 'node:readline'
import {{ offersAt, spotAt }} from '{SOURCE}/completion.ts'
import {{ merged }} from '{SOURCE}/difference.ts'
import {{ folded }} from '{SOURCE}/folding.ts'
import {{ layOut }} from '{SOURCE}/layout.ts'
const calls = {{
  complete: ({{ text, row, column, schema, names }}) => {{
    const spot = spotAt(text.split('\\n'), row, column)
    return spot ? offersAt(spot, schema, names).map((each) => each.text).filter((each) => each.startsWith(spot.word)) : null
  }},
  merge: ({{ base, mine, theirs }}) => merged(base, mine, theirs),
  fold: ({{ steps }}) => folded(steps, (step) => step.kind),
  lay: ({{ nodes, edges, most }}) => {{
    const {{ nodes: placed, paths }} = layOut(nodes, edges, most)
    return {{ boxes: Object.fromEntries(placed), paths }}
  }},
}}
for await (const line of createInterface({{ input: process.stdin }})) {{
  const {{ call, ...given }} = JSON.parse(line)
  console.log(JSON.stringify(calls[call](given)))
}}
"""
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not BUNDLER.exists() or shutil.which("node") is None:
        pytest.skip("console/node_modules is not installed: npm is missing")
    folder = tmp_path_factory.mktemp("modules")
    (folder / "program.ts").write_text(PROGRAM)
    command = [BUNDLER, folder / "program.ts", "--platform", "node", "-o", folder / "program.mjs"]
    done = subprocess.run(command, cwd=ROOT / "console", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with subprocess.Popen(
        ["node", str(folder / "program.mjs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as node:
        assert node.stdin is not None
        assert node.stdout is not None

        def answer(call: str, **given: Any) -> Any:
            assert node.stdin is not None
            assert node.stdout is not None
            node.stdin.write(json.dumps({"call": call, **given}) + "\n")
            return json.loads(node.stdout.readline())

        yield answer
        node.stdin.close()


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "about": ""} for name in names]


NAMES = {
    "agents": named("writer", "mine"),
    "steps": named("one", "two"),
    "tools": named("Read", "Bash", "mcp__files__*"),
    "models": named("embedded", "openai:big"),
    "workflows": named("digest"),
    "folders": named("docs/**"),
}
STEP = "name: x\nsteps:\n  - id: a\n    "
AGENT = "name: x\nagents:\n  mine:\n    "


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        (STEP + "suba|", ["subagent"]),
        (STEP + "subagent: wri|", ["writer"]),
        (STEP + "depends_on: [one, t|", ["two"]),
        (STEP + "depends_on:\n    - o|", ["one"]),
        (STEP + "workflow: d|", ["digest"]),
        (STEP + "model: openai:|", ["openai:big"]),
        (STEP + "write_set: [do|", ["docs/**"]),
        (STEP + "read_set:\n      - do|", ["docs/**"]),
        (STEP + "on_failure: fallback:w|", ["fallback:writer"]),
        (STEP + "condition:\n      eval: '1'\n      true: o|", ["one"]),
        (STEP + "switch:\n      value: '1'\n      cases:\n        yes: t|", ["two"]),
        (STEP + "output: {format: js|", ["json"]),
        (AGENT + "tools: [Re|", ["Read"]),
        (AGENT + "tools: Read, Ba|", ["Bash"]),
        (AGENT + "tools:\n      - Read\n      - mcp__|", ["mcp__files__*"]),
        (AGENT + "fallback_models: [em|", ["embedded"]),
        # Brackets that go over several lines, in each other, with comments and quotes between.
        ("name: x\nsteps:\n  - {id: a,\n     suba|", ["subagent"]),
        ("name: x\nsteps:\n  - {id: a,  # {why\n     subagent: wri|", ["writer"]),
        ("name: x\nsteps: [\n  {id: a, prompt: \"x, ]} '\"},\n  {id: b, output: {\n    form|", ["format"]),
        ("name: x\nsteps:\n  - {\n    id: a, depends_on: [\n      one,\n\n      t|", ["two"]),
        ("name: x\nagents:\n  mine: {prompt: x,\n    tools: [Read,\n      B|", ["Bash"]),
        ('{"name": "x", "steps": [\n {"id": "a", "suba|', ["subagent"]),
        ('{"name": "x", "steps": [\n {"id": "a", "subagent": "wri|', ["writer"]),
        ('{"workflow": {"steps": [{"id": "a", "depends_on": ["o|', ["one"]),
        # What is written already is not offered again, and texts and comments are left alone.
        ("name: x\nsteps:\n  - {id: a, subagent: writer,\n     subag|", []),
        (STEP + "prompt: it's {fun, or\n    suba|", ["subagent"]),
        (STEP + "prompt: |-\n      suba|", None),
        (STEP + "prompt: |-\n      { some\n    suba|", ["subagent"]),
        (STEP + "# suba|", None),
        (STEP + "prompt: some wri|", None),
    ],
)  # fmt: skip
def test_what_can_be_written_at_a_place_is_offered(
    ask: Ask, text: str, offered: list[str] | None
) -> None:
    before, _, after = text.rpartition("|")
    row, column = before.count("\n"), len(before.rpartition("\n")[2])
    found = ask(
        "complete",
        text=before + after,
        row=row,
        column=column,
        schema=recipe_schema(),
        names=NAMES,
    )
    assert found == offered


lines = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(base=lines, data=st.data())
def test_two_changes_of_different_lines_are_both_kept(
    ask: Ask, base: list[str], data: st.DataObject
) -> None:
    numbered = [f"{line}{n}" for n, line in enumerate(base)]
    half = len(numbered) // 2
    first, second = numbered[:half], numbered[half:]
    mine = [each for each in first if data.draw(st.booleans())] + ["mine"]
    theirs = ["theirs"] + [each for each in second if data.draw(st.booleans())]
    fence = ["between them"]
    found = ask(
        "merge",
        base="\n".join(first + fence + second),
        mine="\n".join(mine + fence + second),
        theirs="\n".join(first + fence + theirs),
    )
    assert found == {"text": "\n".join(mine + fence + theirs), "clashes": 0}


def test_two_changes_of_one_line_both_stand_between_marks(ask: Ask) -> None:
    found = ask("merge", base="a\nb\nc", mine="a\nmine\nc", theirs="a\ntheirs\nc\nd")
    assert found["clashes"] == 1
    marks = "a\n# <<<<<<< yours\nmine\n# =======\ntheirs\n# >>>>>>> theirs\nc\nd"
    assert found["text"] == marks
    same = ask("merge", base="a\nb", mine="a\nnew", theirs="a\nnew")
    assert same == {"text": "a\nnew", "clashes": 0}


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), many=st.integers(1, 40))
def test_a_folded_graph_has_every_step_once_and_no_edge_to_nowhere(
    ask: Ask, data: st.DataObject, many: int
) -> None:
    ids = [f"s{n}" for n in range(many)]
    steps = [
        {
            "id": id,
            "kind": data.draw(st.sampled_from("xy")),
            "needs": data.draw(st.lists(st.sampled_from(ids), max_size=2, unique=True)),
        }
        for id in ids
    ]
    boxes = ask("fold", steps=steps)
    assert sum(box["many"] for box in boxes) == many
    shown = {box["id"] for box in boxes}
    assert all(need in shown and need != box["id"] for box in boxes for need in box["needs"])


def test_a_row_and_a_fan_of_a_thousand_steps_are_a_few_boxes(ask: Ask) -> None:
    row = [{"id": f"r{n}", "kind": "x", "needs": [f"r{n - 1}"] if n else []} for n in range(500)]
    fan = [{"id": f"f{n}", "kind": "x", "needs": ["r499"]} for n in range(500)]
    boxes = ask("fold", steps=[*row, *fan])
    assert [box["many"] for box in boxes] == [500, 500]


def along(path: str) -> Iterator[tuple[float, float]]:
    """Points on a path of SVG, close to each other."""
    at = (0.0, 0.0)
    for letter, numbers in re.findall(r"([MLCQ])([^MLCQ]*)", path):
        flat = [float(each) for each in numbers.split()]
        way = [at, *zip(flat[::2], flat[1::2], strict=True)]
        for part in range(0 if letter == "M" else 41):
            yield on_curve(way, part / 40)
        at = way[-1]


def on_curve(way: list[tuple[float, float]], share: float) -> tuple[float, float]:
    """By de Casteljau."""
    while len(way) > 1:
        way = [
            (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))
            for a, b in itertools.pairwise(way)
        ]
    return way[0]


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    widths=st.lists(st.integers(80, 260), min_size=2, max_size=24),
    links=st.lists(st.tuples(st.integers(0, 23), st.integers(0, 23)), max_size=40),
    most=st.integers(240, 900),
)
def test_no_edge_is_drawn_behind_the_box_of_another_step(
    ask: Ask, widths: list[int], links: list[tuple[int, int]], most: int
) -> None:
    nodes = [{"id": str(n), "width": wide, "height": 46} for n, wide in enumerate(widths)]
    edges = [{"from": str(a), "to": str(b)} for a, b in set(links) if a < b < len(widths)]
    drawn = ask("lay", nodes=nodes, edges=edges, most=most)
    for path in drawn["paths"]:
        others = [box for id, box in drawn["boxes"].items() if id not in (path["from"], path["to"])]
        for x, y in along(path["d"]):
            hidden = [
                box
                for box in others
                if box["x"] + 1 < x < box["x"] + box["width"] - 1
                and box["y"] + 1 < y < box["y"] + box["height"] - 1
            ]
            assert not hidden, (path, hidden)
