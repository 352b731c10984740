"""Goals and chats over HTTP."""

from concurrent.futures import ThreadPoolExecutor

from stretto.lead.chats import ChatFile, KeptChat
from stretto.recipe.model import Budget
from support.served import Served


def test_a_chat_is_begun_gone_on_with_and_listed(server: Served) -> None:
    client = server.client()
    first = client.post("/api/chats", json={"text": "Hi there."}).json()
    assert first["turn"]["number"] == 1
    again = client.post(f"/api/chats/{first['chat']}", json={"text": "And now?"}).json()
    assert (again["chat"], again["turn"]["number"]) == (first["chat"], 2)
    assert [each["id"] for each in client.get("/api/chats").json()["chats"]] == [first["chat"]]
    assert len(client.get(f"/api/chats/{first['chat']}").json()["turns"]) == 2
    assert client.get("/api/chats/nope").status_code == 404


def test_who_began_a_chat_may_speak_and_decide_in_it_and_others_may_only_read(
    server: Served,
) -> None:
    mine, other = server.client_of("carla", "author"), server.client_of("conny", "author")
    begun = mine.post("/api/chats", json={"text": "Hi.", "permission": "ask"}).json()
    place = f"/api/chats/{begun['chat']}"
    asked: tuple[tuple[str, dict[str, str]], ...] = (
        ("/resume", {}),
        ("/cancel", {}),
        ("", {"text": "Go on.", "permission": "auto"}),
        ("/approve", {"key": "x"}),
        ("/reject", {"key": "x"}),
    )
    for verb, body in asked:
        refused = other.post(place + verb, json=body)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "permission_denied")
        # By another name of the same chat too; `last` is whichever was spoken to last.
        assert other.post("/api/chats/last" + verb, json=body).status_code == 403
    assert other.get(place).status_code == 200
    assert mine.post(place + "/approve", json={"key": "x"}).json()["error"]["kind"] == "usage"
    assert server.client().post(place, json={"text": "I may."}).json()["turn"]["number"] == 2
    (listed, *_) = other.get("/api/chats").json()["chats"]
    assert (listed["id"], listed["owner"]) == (begun["chat"], "carla")
    # The runs of the chat are theirs as well, also where an admin has spoken.
    for turn in mine.get(place).json()["turns"]:
        run = mine.get(f"/api/runs/{turn['id']}").json()
        assert run["owner"] == "carla"


def test_a_chat_that_nobody_began_over_http_is_an_admins_alone(server: Served) -> None:
    kept = KeptChat("at-a-terminal", 1.0, str(server.folder), None, "ask", Budget())
    ChatFile(server.home).use_now(lambda store: store.add_chat(kept))
    body = {"text": "Hi.", "permission": "auto"}
    author = server.client_of("cleo", "author")
    assert author.post("/api/chats/at-a-terminal", json=body).status_code == 403
    (found,) = ChatFile(server.home).use_now(
        lambda store: [each for each in store.chats() if each.id == kept.id]
    )
    assert found == kept
    assert server.client().post("/api/chats/at-a-terminal", json=body).status_code == 200


DELEGATING = """\
default: Looked.
replies:
  turn-1: {calls: [{tool: run_workflow, arguments: {name: gated}}], reply: It is done.}
"""


def test_a_turn_goes_on_once_a_step_of_its_run_was_decided_about(server: Served) -> None:
    (server.folder / "delegating.yaml").write_text(DELEGATING)
    client = server.client_of("dora", "author")
    body = {"text": "Go", "permission": "auto", "model": "scripted:delegating.yaml"}
    begun = client.post("/api/chats", json=body).json()
    (awaited,) = begun["turn"]["awaits"]
    run, place = awaited["run_id"], f"/api/chats/{begun['chat']}"
    assert client.post(f"/api/runs/{run}/steps/act/approve").status_code == 200
    assert client.post(place, json={"text": "And?"}).status_code == 422
    turn = client.post(f"{place}/resume").json()["turn"]
    assert (turn["status"], turn["text"], turn["run_ids"]) == ("complete", "It is done.", [run])


def test_who_goes_on_with_a_turn_while_somebody_decides_takes_nothing_from_them(
    server: Served,
) -> None:
    (server.folder / "delegating.yaml").write_text(DELEGATING)
    client = server.client_of("dana", "author")
    body = {"text": "Go", "permission": "ask", "model": "scripted:delegating.yaml"}
    begun = client.post("/api/chats", json=body).json()
    place, key = f"/api/chats/{begun['chat']}", begun["turn"]["awaits"][0]["key"]
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(client.post, f"{place}/resume") for _ in range(2)]
        decided = pool.submit(client.post, f"{place}/approve", json={"key": key})
        assert [each.result().status_code for each in (*others, decided)] == [200] * 3
    # It was allowed, so the turn is at the gate of the run that it has started.
    (awaited,) = client.get(place).json()["turns"][0]["awaits"]
    assert awaited["step"] == "act"
    client.post(f"{place}/cancel")


def test_a_turn_that_waits_can_be_ended_with_what_it_has_started(server: Served) -> None:
    (server.folder / "delegating.yaml").write_text(DELEGATING)
    client = server.client_of("dirk", "author")
    body = {"text": "Go", "permission": "auto", "model": "scripted:delegating.yaml"}
    begun = client.post("/api/chats", json=body).json()
    place = f"/api/chats/{begun['chat']}"
    assert client.post(f"{place}/cancel").json()["turn"]["status"] == "cancelled"
    (run,) = begun["turn"]["run_ids"]
    assert client.get(f"/api/runs/{run}").json()["status"] == "cancelled"
    assert client.post(f"{place}/cancel").json()["error"]["kind"] == "usage"


def test_a_goal_is_set_reached_and_listed(server: Served) -> None:
    client = server.client()
    refused = client.post("/api/goals", json={"text": "x", "verify": "nonsense"})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "usage")
    body = {
        "text": "Say hello",
        "verify": "data:done.json#value.ok == true",
        "workflow": "greet",
        "inputs": {"whom": "Ada"},
        "max_iterations": 1,
        "wait": True,
    }
    (server.folder / "done.json").write_text('{"ok": true}')
    answer = client.post("/api/goals", json=body)
    assert answer.status_code in (200, 202), answer.text
    goal = answer.json()["goal"]
    assert [each["id"] for each in client.get("/api/goals").json()["goals"]] == [goal["id"]]
    assert client.get(f"/api/goals/{goal['id']}").json()["goal"]["status"] == goal["status"]
    assert client.get("/api/goals/nope").status_code == 404
    author = server.client_of("gina", "author")
    assert author.post("/api/goals", json=body).status_code == 403
