"""One stream tells which runs change, and a run's journal can be read as it stands."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from server.test_runs import started, until
from server.test_streams import messages
from stretto.events.model import RunEnded
from stretto.ports.journal import RunNews, StoredEvent
from stretto.server import news
from stretto.server.news import NewsDesk, show_journal, tell_changes
from stretto.server.service import Service
from stretto.testing.openai_script import Said
from stretto.testing.openai_server import serving
from stretto.vocabulary.names import RunId
from support.cli import stretto
from support.served import PATIENCE_SECONDS, Served, served


def test_the_stream_names_each_run_that_changes(server: Served) -> None:
    with server.client().stream("GET", "/api/events") as response:
        found = messages(response)
        assert next(found)["event"] == "alive"
        run = started(server.client(), "gated")
        named: set[str] = set()
        while run not in named:
            news = next(found)
            if news["event"] == "change":
                named.add(news["data"]["run_id"])


def test_a_run_that_another_process_drives_is_named_too(server: Served) -> None:
    with server.client().stream("GET", "/api/events") as response:
        found = messages(response)
        next(found)
        env = {"STRETTO_MODEL": f"scripted:{server.folder / 'script.yaml'}"}
        said = stretto(server.folder, "run", "greet", "-i", "whom=Bo", "--json", env=env)
        assert said.code == 0, said.err
        while next(found)["data"].get("run_id", "no run") not in said.out:
            pass


def test_the_stream_says_that_the_server_ends(tmp_path: Path) -> None:
    seen: list[str] = []
    with ExitStack() as opened:
        with served(tmp_path) as server:
            stream = opened.enter_context(server.client().stream("GET", "/api/events"))
            lines = stream.iter_lines()
            assert "event: alive" in [next(lines) for _ in range(3)]
            rest = threading.Thread(target=lambda: seen.extend(lines))
            rest.start()
        rest.join(PATIENCE_SECONDS)
    assert "event: closing" in seen


def first_changes(server: Served, **headers: str) -> tuple[set[str], str]:
    """What a stream says of runs before it is quiet, and where it stands then."""
    with server.client().stream("GET", "/api/events", headers=headers) as response:
        found = messages(response)
        alive = next(found)
        assert alive["event"] == "alive"
        if not headers:
            return set(), alive["id"]
        return {next(found)["data"]["run_id"]}, alive["id"]


def test_who_comes_again_is_told_what_has_changed_since(server: Served) -> None:
    until(server.client(), started(server.client(), "gated"), "waiting")  # a place that is no 0
    _, place = first_changes(server)
    run = started(server.client(), "gated")
    until(server.client(), run, "waiting")
    assert first_changes(server, **{"Last-Event-ID": place})[0] == {run}


def test_who_comes_again_from_a_place_that_is_not_known_is_to_load_everything(
    server: Served,
) -> None:
    for place in ("0", "900000000", "no number"):
        assert first_changes(server, **{"Last-Event-ID": place})[0] == {"*"}


SPEAKING = "name: speaking\nsteps:\n  - {id: a, subagent: writer, prompt: x}\n"


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Its model says thirty words in three seconds."""
    folder = tmp_path_factory.mktemp("speaking")
    words = " ".join(f"word-{number}" for number in range(30))
    with serving([Said(words, chunks=30, chunk_delay_seconds=0.1)] * 9) as model:
        env = {
            "STRETTO_MODEL": "openai:scripted",
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "sk-loopback-0123456789",
        }
        with served(folder, {"speaking": SPEAKING}, env) as found:
            yield found


def test_the_words_of_a_step_that_is_followed_come_as_they_are_said(speaking: Served) -> None:
    run = started(speaking.client(), "speaking")
    spoken, pieces, changes = "", 0, 0
    query = {"follow": f"1:{run}:a"}
    with speaking.client().stream("GET", "/api/events", params=query) as response:
        for told in messages(response):
            if told["event"] == "words":
                assert told["data"]["run_id"] == run
                pieces += 1
                spoken += "".join(each["text"] for each in told["data"]["spoken"])
            changes += told["event"] == "change" and told["data"]["run_id"] == run
            if speaking.client().get(f"/api/runs/{run}").json()["ended_at"]:
                break
    assert spoken.startswith("word-0 word-1")
    assert pieces >= 8, "as they come, and not twice a second"
    assert changes < pieces, "words are no change"


def test_a_run_without_anybody_who_follows_it_is_journaled_in_few_pieces(speaking: Served) -> None:
    client = speaking.client()
    run = started(client, "speaking")
    until(client, run, "complete")
    rows = client.get(f"/api/runs/{run}/journal").json()["events"]
    spoken = [row["text"] for row in rows if row["type"] == "model_spoke"]
    assert 1 <= len(spoken) <= 8
    assert "".join(spoken).endswith("word-29")


@pytest.mark.parametrize("follow", ["x", "1:", "1:run", "-1:run:a"])
def test_what_cannot_be_followed_is_refused(server: Served, follow: str) -> None:
    assert server.client().get("/api/events", params={"follow": follow}).status_code == 422


def test_a_run_is_told_by_what_has_changed_in_it(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    whole = client.get(f"/api/runs/{run}").json()
    changes = f"/api/runs/{run}/changes"
    nothing = client.get(changes, params={"after": whole["cursor"]}).json()
    assert (nothing["since"], nothing["steps"], nothing["touched"]) == (whole["cursor"], {}, [])
    client.post(f"/api/runs/{run}/steps/act/approve")
    until(client, run, "complete")
    told = client.get(changes, params={"after": whole["cursor"]}).json()
    assert set(told["steps"]) == {"act"} == set(told["touched"])
    assert not {"plan", "inputs"} & told.keys()
    now = client.get(f"/api/runs/{run}").json()
    merged = {
        **whole,
        **told,
        "steps": {**whole["steps"], **told["steps"]},
        "standing": now["standing"],
    }
    assert {key: merged[key] for key in now} == now
    assert len(json.dumps(told)) < len(json.dumps(now))


def test_who_asks_for_changes_since_an_answer_that_is_not_known_is_told_all(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    whole = client.get(f"/api/runs/{run}").json()
    told = client.get(f"/api/runs/{run}/changes", params={"after": 9_999}).json()
    assert told["since"] == 0
    assert {key: told[key] for key in whole} == whole
    assert client.get("/api/runs/nobody/changes", params={"after": 1}).status_code == 404


def test_the_journal_is_read_in_pages(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    until(client, run, "waiting")
    whole = client.get(f"/api/runs/{run}/journal").json()["events"]
    assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
    assert whole[0]["type"] == "run_started"
    rest = client.get(f"/api/runs/{run}/journal", params={"after": 1, "limit": 2}).json()["events"]
    assert rest == whole[1:3]
    assert client.get("/api/runs/nobody/journal").status_code == 404


def test_an_event_that_names_a_file_whose_name_is_no_text_is_told() -> None:
    said = "cannot read caf\udce9.txt"

    async def page(**asked: int) -> list[StoredEvent]:
        return [StoredEvent(3, RunEnded(at=1.0, status="complete", warnings=(said,)))]

    run = SimpleNamespace(page=page)
    service: Any = SimpleNamespace(stretto=SimpleNamespace(open=lambda run_id: run))
    told = json.loads(asyncio.run(show_journal("r", service)).body)
    assert told["events"][0]["warnings"] == [said]


def test_a_fault_of_ours_is_logged_and_the_open_streams_are_told_what_comes_after_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(news, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(news, "_AGAIN_SECONDS", 0.01)
    found = iter((RunNews(1, ()), None, RunNews(2, (RunId("r"),))))

    async def look(cursor: int | None) -> RunNews:
        each = next(found, RunNews(2, ()))
        if each is None:
            raise RuntimeError("no such column")
        return each

    async def runs_of() -> Any:
        return SimpleNamespace(news=look)

    stretto: Any = SimpleNamespace(engine=SimpleNamespace(runs_of=runs_of))

    async def read() -> list[bytes]:
        service = Service(stretto, *[None] * 3)  # type: ignore[arg-type]
        pieces = tell_changes(service, NewsDesk(service), None, [])
        async with asyncio.timeout(5):
            return [await anext(pieces), await anext(pieces)]

    alive, change = asyncio.run(read())
    assert b"event: alive" in alive
    assert b'{"run_id": "r"}' in change
    assert "no such column" in caplog.text
