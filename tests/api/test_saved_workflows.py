"""Recipes are saved so that nothing is lost, and what agents save is trusted less than what people do."""

import asyncio
import json
from pathlib import Path

import pytest

import stretto


def opened(project: Path) -> stretto.Stretto:
    return stretto.Stretto(project, home=project.parent / "home", model="scripted:none.yaml")


def recipe(
    name: str = "brief", prompt: str = "Write about {{inputs.topic}}.", **more: object
) -> dict[str, object]:
    step = {"id": "write", "subagent": "writer", "prompt": prompt, **more}
    return {"name": name, "inputs": [{"name": "topic", "required": True}], "steps": [step]}


GATED = """name: release  # ours
inputs: [{name: topic, required: true}]
steps:
  - id: check
    subagent: reviewer
    prompt: Check that everything is ready for the release of {{inputs.topic}}.
  - id: publish
    subagent: worker
    depends_on: [check]
    gate: human
    prompt: Publish the packages of the release {{inputs.topic}} to the registry.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "workflows").mkdir(parents=True)
    return folder


def test_a_recipe_is_saved_in_the_project_and_runs_by_its_name(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as w:
            saved = await w.workflows.save(recipe(), emitted=True)
            assert (saved.name, saved.version, saved.origin) == ("brief", 1, "emitted")
            assert saved.file == project / "workflows" / "brief.yaml"
            assert await w.validate("brief") == ()
            (listed,) = [each for each in await w.workflows.list() if each.name == "brief"]
            assert (listed.origin, listed.layer, listed.inputs) == (
                "emitted",
                "project",
                ("topic",),
            )
        assert "prompt: " in saved.file.read_text(encoding="utf-8")
        assert saved.file.read_text(encoding="utf-8")[0] != "{"  # YAML, as a person would write it

    asyncio.run(main())


def test_without_a_folder_of_workflows_it_is_saved_for_the_user(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()

    async def main() -> None:
        async with opened(project) as w:
            saved = await w.workflows.save(recipe(), emitted=True)
            assert saved.file == tmp_path / "home" / "workflows" / "brief.yaml"
            assert await w.validate("brief") == ()

    asyncio.run(main())


def test_an_emitted_recipe_replaces_an_emitted_one_and_every_version_is_kept(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as w:
            await w.workflows.save(recipe(prompt="Write on {{inputs.topic}}."), emitted=True)
            again = await w.workflows.save(
                recipe(prompt="Say it in verse: {{inputs.topic}}."), emitted=True
            )
            assert (again.version, again.replaced) == (2, 1)
            versions = await w.workflows.versions("brief")
            assert [each.is_current for each in versions] == [False, True]
            assert "Write on" in versions[0].text
            back = await w.workflows.restore("brief")
            assert (back.version, back.replaced) == (3, 2)
            assert "Write on" in again.file.read_text(encoding="utf-8")
            # A person chose it: it is theirs from now on.
            with pytest.raises(stretto.RefusedToOverwrite, match="a person wrote"):
                await w.workflows.save(
                    recipe(prompt="No, in verse: {{inputs.topic}}."), emitted=True
                )

    asyncio.run(main())


def test_no_emitted_recipe_replaces_one_that_a_person_wrote_edited_or_broke(project: Path) -> None:
    file = project / "workflows" / "brief.yaml"

    async def main() -> None:
        async with opened(project) as w:
            for text in ("name: brief\nsteps: [", "name: other\nsteps: []\n", GATED):
                file.write_text(text, encoding="utf-8")
                with pytest.raises(stretto.RefusedToOverwrite):
                    await w.workflows.save(recipe(), emitted=True)
                assert file.read_text(encoding="utf-8") == text
            file.unlink()
            await w.workflows.save(recipe(), emitted=True)
            file.write_text(file.read_text(encoding="utf-8") + "# mine now\n", encoding="utf-8")
            with pytest.raises(stretto.RefusedToOverwrite, match="a person wrote"):
                await w.workflows.save(recipe(prompt="Other words: {{inputs.topic}}"), emitted=True)

    asyncio.run(main())


def test_no_emitted_recipe_takes_the_name_of_a_bundled_one_or_of_the_users_own(
    project: Path,
) -> None:
    async def main() -> None:
        async with opened(project) as w:
            with pytest.raises(stretto.RefusedToOverwrite):
                await w.workflows.save(recipe("research-and-brief"), emitted=True)
        assert not list((project / "workflows").iterdir())

    asyncio.run(main())


@pytest.mark.parametrize("name", ["release", "release-quickly"])
def test_no_emitted_recipe_leaves_out_a_gate_under_any_name(project: Path, name: str) -> None:
    ungated = GATED.replace("    gate: human\n", "").replace("name: release ", f"name: {name} ")

    async def main() -> None:
        async with opened(project) as w:
            await w.workflows.save(GATED, emitted=True)
            with pytest.raises(stretto.PermissionDenied, match="gate"):
                await w.workflows.save(ungated, emitted=True)
            renamed = ungated.replace("id: publish", "id: ship").replace("[publish]", "[ship]")
            with pytest.raises(stretto.PermissionDenied, match="gate"):
                await w.workflows.save(renamed, emitted=True)
            assert len(await w.workflows.versions("release")) == 1

    asyncio.run(main())


SAID = "Publish the packages of the release {{inputs.topic}} to the registry."
OTHER_SHAPES = {
    "branch": f"parallel: [{{agent: worker, input: '{SAID}'}}, {{agent: writer, input: Sing.}}]",
    "elements": f"map: {{over: '[1]', agent: worker}}\n    prompt: '{SAID}'",
    "try of a loop": f"loop: {{agent: worker, validator: reviewer}}\n    prompt: '{SAID}'",
    "another agent with its prompt": f"agent: ship\n    prompt: '{SAID}'",
    "workflow": "workflow: ungated\n    inputs: {topic: x}",
}


@pytest.mark.parametrize("shape", OTHER_SHAPES)
def test_no_emitted_recipe_leaves_out_a_gate_in_another_shape(project: Path, shape: str) -> None:
    release = GATED.replace("subagent: worker", "subagent: ship")
    release = release if shape.startswith("another") else GATED
    agent = "agents: {AGENT: {prompt: 'You ship releases, and nothing else.', tools: [Write]}}\n"
    own = "sailor" if shape.startswith("another") else "ship"
    written = OTHER_SHAPES[shape].replace("agent: ship", f"agent: {own}")
    emitted = f"name: quick\n{agent.replace('AGENT', own)}inputs: [{{name: topic, default: x}}]\nsteps:\n  - id: go\n    {written}\n"
    workflows = project.parent / "home" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "release.yaml").write_text(
        release.replace("steps:", agent.replace("AGENT", "ship") + "steps:", 1)
    )
    if shape == "workflow":  # here the gate stands before the whole of a workflow
        (workflows / "ungated.yaml").write_text(
            GATED.replace("    gate: human\n", "").replace("name: release", "name: ungated")
        )
        (workflows / "release.yaml").write_text(
            "name: release\nsteps: [{id: all, workflow: ungated, inputs: {topic: y}, gate: human}]\n"
        )

    async def main() -> None:
        async with opened(project) as w:
            with pytest.raises(stretto.PermissionDenied, match="gate"):
                await w.workflows.save(emitted, emitted=True)
            gated = emitted.replace("  - id: go\n", "  - id: go\n    gate: human\n")
            assert (await w.workflows.save(gated, emitted=True)).origin in ("emitted", "written")

    asyncio.run(main())


def test_a_gate_before_one_workflow_says_nothing_of_another(project: Path) -> None:
    mine = project.parent / "home" / "workflows"
    mine.mkdir(parents=True)
    for name, text in (
        ("one", recipe("one", "Sing.")), ("two", recipe("two", "Count the pages of {{inputs.topic}}.")),
        ("outer", {"name": "outer", "steps": [
            {"id": "a", "workflow": "one", "inputs": {"topic": "x"}, "gate": "human"}]}),
    ):  # fmt: skip
        (mine / f"{name}.yaml").write_text(json.dumps(text))

    async def main() -> None:
        step = {"id": "b", "workflow": "two", "inputs": {"topic": "y"}}
        async with opened(project) as w:
            saved = await w.workflows.save({"name": "free", "steps": [step]}, emitted=True)
            assert saved.origin == "emitted"

    asyncio.run(main())


def test_what_is_saved_already_is_not_saved_under_a_second_name(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as w:
            (project / "workflows" / "release.yaml").write_text(GATED, encoding="utf-8")
            copy = GATED.replace("name: release ", "name: ship ").replace("check", "look")
            copy = copy.replace("Look", "Check").replace("{{inputs.topic}}", "{{inputs.topic}}")
            saved = await w.workflows.save(copy.replace("id: publish", "id: send"), emitted=True)
            assert (saved.same_as, saved.version, saved.origin) == ("release", 0, "written")
            assert not (project / "workflows" / "ship.yaml").exists()

    asyncio.run(main())


def test_a_person_replaces_what_they_name_and_keeps_what_was_there(project: Path) -> None:
    file = project / "workflows" / "release.yaml"

    async def main() -> None:
        async with opened(project) as w:
            file.write_text(GATED, encoding="utf-8")
            with pytest.raises(stretto.RefusedToOverwrite, match="exists already"):
                await w.workflows.save(recipe("release"))
            saved = await w.workflows.save(recipe("release"), overwrite=True)
            assert (saved.replaced, saved.version) == (1, 2)
            versions = await w.workflows.versions("release")
            assert versions[0].text == GATED
            assert versions[0].why == "found in its file"
            file.unlink()  # whatever becomes of the file
            await w.workflows.restore("release", 1)
            assert file.read_text(encoding="utf-8") == GATED

    asyncio.run(main())


def test_another_name_changes_nothing_else_in_the_text(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as w:
            saved = await w.workflows.save(GATED, name="ship-it")
            text = saved.file.read_text(encoding="utf-8")
            assert text == GATED.replace("name: release", "name: ship-it")

    asyncio.run(main())


@pytest.mark.parametrize("name", ["null", "true", "2024", "1e3", "on", "other"])
@pytest.mark.parametrize(
    "written", ["brief", '"brief"', "'brief'", ">-\n  brief", "|\n  brief", "7"]
)
def test_a_recipe_of_any_form_is_saved_under_any_name(
    project: Path, written: str, name: str
) -> None:
    text = f"name: {written}\nsteps:\n  - {{id: a, subagent: writer, prompt: hello}}\n"
    braced = '{name: "brief", steps: [{id: a, subagent: writer, prompt: hello}]}'
    wrapped = "workflow:\n  " + text.replace("\n", "\n  ").rstrip() + "\n"

    async def main() -> None:
        async with opened(project) as w:
            for given in (text, braced, wrapped):
                await w.workflows.save(given, name=name, overwrite=True)
                assert name in {each.name for each in await w.workflows.list()}
                assert "brief" not in {each.name for each in await w.workflows.list()}

    asyncio.run(main())


@pytest.mark.parametrize("given", [recipe("zz"), {"steps": [{"id": "a", "task": "Say hello."}]}])
def test_a_json_recipe_stays_json(project: Path, given: dict[str, object]) -> None:
    file = project / "workflows" / "jj.json"
    file.write_text(json.dumps(recipe("jj")))

    async def main() -> None:
        async with opened(project) as w:
            saved = await w.workflows.save(json.dumps(given), name="jj", overwrite=True)
            assert saved.file == file
            assert json.loads(file.read_text())["name"] == "jj"

    asyncio.run(main())


def test_a_file_that_is_too_large_changes_nobody_else_s_origin(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as w:
            await w.workflows.save(recipe("made"), emitted=True)
            (project / "workflows" / "zz.yaml").write_text("#" * (5 * 2**20))
            found = {each.name: each.origin for each in await w.workflows.list()}
            assert (found["made"], found["zz"]) == ("emitted", "written")

    asyncio.run(main())


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", "x" * 101, "a\nb"])
def test_a_name_that_is_no_name_is_refused(project: Path, name: str) -> None:
    async def main() -> None:
        async with opened(project) as w:
            with pytest.raises((stretto.InvalidUsage, stretto.InvalidRecipe)):
                await w.workflows.save(recipe(name), emitted=True)
            with pytest.raises(stretto.InvalidUsage):
                await w.workflows.save(recipe(), name=name)
        assert not list((project / "workflows").iterdir())

    asyncio.run(main())


def test_a_recipe_with_problems_is_not_saved(project: Path) -> None:
    async def main() -> None:
        async with opened(project) as w:
            with pytest.raises(stretto.InvalidRecipe):
                await w.workflows.save(recipe(prompt="{{inputs.nothing}}"), emitted=True)
            with pytest.raises(stretto.InvalidRecipe):
                await w.workflows.save("name: x\nsteps: [\n")
        assert not list((project / "workflows").iterdir())

    asyncio.run(main())


def test_a_folder_that_leads_out_of_the_project_gets_nothing(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    (project / "workflows").symlink_to(elsewhere)

    async def main() -> None:
        async with opened(project) as w:
            with pytest.raises(stretto.InvalidUsage, match="leads out"):
                await w.workflows.save(recipe(), emitted=True)
        assert not list(elsewhere.iterdir())

    asyncio.run(main())


def test_a_link_in_place_of_a_file_is_not_followed(project: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious.yaml"
    precious.write_text(GATED, encoding="utf-8")
    (project / "workflows" / "brief.yaml").symlink_to(precious)

    async def main() -> None:
        async with opened(project) as w:
            with pytest.raises(stretto.RefusedToOverwrite):
                await w.workflows.save(recipe(), emitted=True)
            await w.workflows.save(recipe(), overwrite=True)
        assert precious.read_text(encoding="utf-8") == GATED

    asyncio.run(main())


def test_of_many_who_save_at_once_none_loses_anything(project: Path) -> None:
    async def main() -> None:
        async def save(number: int) -> object:
            async with opened(project) as w:
                try:
                    words = " ".join(f"word{number}x{n}" for n in range(9))
                    return await w.workflows.save(
                        recipe(prompt=f"{words} {{{{inputs.topic}}}}"), emitted=True
                    )
                except stretto.StrettoError as error:
                    return error

        done = await asyncio.gather(*(save(number) for number in range(6)))
        saved = [each for each in done if isinstance(each, stretto.SavedRecipe)]
        assert saved
        async with opened(project) as w:
            versions = await w.workflows.versions("brief")
            assert {each.version for each in saved} <= {each.number for each in versions}
            assert sum(each.is_current for each in versions) == 1

    asyncio.run(main())
