"""Read and write sets: globs of the workspace, and not too many of them."""

import pytest

from support.recipes import flat, problem_of, problems_of, under_caret


def step(key: str, *globs: str) -> str:
    return flat(f"{{id: a, subagent: worker, prompt: x, {key}: [{', '.join(globs)}]}}")


def files(count: int) -> list[str]:
    return [f"f{n}" for n in range(count)]


@pytest.mark.parametrize("key", ["read_set", "write_set"])
def test_a_set_may_have_256_globs(key: str) -> None:
    assert problems_of(step(key, *files(256))) == ()
    problem = problem_of(step(key, *files(257)))
    assert problem.code == "RCP118"
    assert problem.message == "this set stands for 257 globs; at most 256 are allowed"
    assert problem.hint == "name folders instead of files"
    assert under_caret(problem).startswith("[f0, f1")


def test_braces_count_for_all_that_they_stand_for() -> None:
    sixty_four = "/".join(["{a,b}"] * 6)
    sets = [f"'{n}/{sixty_four}'" for n in range(4)]
    assert problems_of(step("write_set", *sets)) == ()
    assert problem_of(step("write_set", *sets, "more")).code == "RCP118"


def test_each_faulty_glob_is_told_apart() -> None:
    problems = problems_of(step("write_set", "ok", "/etc", "'[a'"))
    assert [(problem.code, under_caret(problem)) for problem in problems] == [
        ("RCP121", "/etc"),
        ("RCP122", "'[a'"),
    ]


@pytest.mark.parametrize("key", ["read_set", "write_set"])
@pytest.mark.parametrize(
    "text", ["!secret", "!/src/**", " !a", "!", "{!a,b}", "{a, !b}", "!(a|b)", "src/!(a).py"]
)
def test_a_set_excludes_nothing(key: str, text: str) -> None:
    problem = problem_of(step(key, f"'{text}'"))
    assert problem.code == "RCP122"
    assert "list what the step touches" in problem.hint


@pytest.mark.parametrize("text", ["./!name", "a!b", "[!a]b", "src/a!"])
def test_an_exclamation_mark_may_be_part_of_a_name(text: str) -> None:
    assert problems_of(step("write_set", f"'{text}'")) == ()


WRITE = "{id: a, subagent: worker, prompt: x%s}"


@pytest.mark.parametrize(
    ("keys", "later", "code"),
    [
        (", merge_back: after b", "{id: b, subagent: writer, prompt: '{{steps.a.diff}}'}", ""),
        (", merge_back: after b", "{id: b, subagent: writer, prompt: '{{steps.a.files[0]}}'}", ""),
        (", merge_back: after b", "{id: b, subagent: writer, prompt: x, depends_on: [a]}", ""),
        (", merge_back: after b", "{id: b, subagent: writer, prompt: x}", "RCP127"),
        (", merge_back: after c", "{id: b, subagent: writer, prompt: x}", "RCP127"),
        (", merge_back: after a", "{id: b, subagent: writer, prompt: x}", "RCP127"),
        (", merge_when: 'true'", "{id: b, subagent: writer, prompt: x}", "RCP127"),
        (
            ", merge_back: after b, merge_when: steps.c.output == 1",
            "{id: b, subagent: writer, prompt: x, depends_on: [a]}",
            "RCP203",
        ),
        *(
            (
                f", merge_back: after c, merge_when: {name} == 1",
                "{id: b, subagent: writer, prompt: x} | {id: c, subagent: writer, prompt: x, depends_on: [a, b]} | "
                "{id: d, subagent: writer, prompt: x, output: {store_as: kept}}",
                code,
            )
            for name, code in [
                ("steps.a.output", ""),
                ("steps.b.output", ""),
                ("steps.c.output", ""),
                ("steps.d.output", "RCP127"),
                ("steps.d.status", "RCP127"),
                ("kept", "RCP127"),
            ]
        ),
        ("", "{id: b, subagent: writer, prompt: '{{steps.a.diff.x}}'}", "RCP208"),
        ("", "{id: b, subagent: writer, prompt: '{{steps.a.files.x}}'}", "RCP208"),
        (
            ", workspace_mode: shared",
            "{id: b, subagent: writer, prompt: '{{steps.a.diff}}'}",
            "RCP208",
        ),
        (
            ", posture: read_only",
            "{id: b, subagent: writer, prompt: '{{steps.a.files}}'}",
            "RCP208",
        ),
    ],
)
def test_a_change_is_given_and_merged_only_where_there_is_one(
    keys: str, later: str, code: str
) -> None:
    codes = [problem.code for problem in problems_of(flat(WRITE % keys, *later.split(" | ")))]
    assert codes == ([code] if code else [])
