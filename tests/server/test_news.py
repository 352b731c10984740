"""One stream tells which runs change, and a run's journal can be read as it stands."""

from server.test_runs import started, until
from server.test_streams import messages
from support.cli import stretto
from support.served import Served


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
        while next(found).get("data", {}).get("run_id") not in said.out:
            pass


def test_who_comes_again_is_told_to_load_everything(server: Served) -> None:
    headers = {"Last-Event-ID": "7"}
    with server.client().stream("GET", "/api/events", headers=headers) as response:
        found = messages(response)
        assert [next(found)["event"], next(found)["data"]] == ["alive", {"run_id": "*"}]


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
