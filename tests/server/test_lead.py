"""Goals and chats over HTTP."""

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
