"""Who may use the server: tokens, sessions, roles, owners, Host and Origin."""

import json
import re
import secrets
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute

from server.conftest import RECIPES, SCRIPTS
from server.test_runs import HELLO, INLINE, started, until
from stretto.server.answers import login_page, welcome_page
from stretto.server.app import ROUTERS
from stretto.server.guard import is_open
from stretto.server.service import role_of
from stretto.server.tokens import AccessRole, own_token
from support.served import ANY_PORT, Served, served

ROUTES = [
    (method, route.path, max(role_of(each.dependency) or 0 for each in route.dependencies))
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and not is_open(route.path)
    for method in sorted(route.methods)
]
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")


def filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "x", path)


def test_without_a_token_every_route_and_method_is_refused(server: Served) -> None:
    client = server.stranger()
    paths = {filled(path) for _, path, _ in ROUTES} | {"/", "/mcp", "/nothing", "/api/nothing"}
    for path in sorted(paths):
        for method in METHODS:
            answer = client.request(method, path)
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/healthz").status_code == 200
    assert client.get("/login").status_code == 401
    assert client.post("/login").status_code == 401


@pytest.mark.parametrize(
    "credential",
    ["Bearer", "Bearer wrong", "Basic dXNlcjpwYXNz", "bearer", "Token x", "Bearer a b"],
)
def test_a_wrong_credential_is_refused(server: Served, credential: str) -> None:
    answer = server.stranger().get("/api/runs", headers={"Authorization": credential})
    assert answer.status_code in (401, 429)


def test_a_token_in_the_query_does_not_count(server: Served) -> None:
    answer = server.stranger().get("/api/runs", params={"token": server.token})
    assert answer.status_code == 401


PORT = "{port}"
OWN = [
    ("127.0.0.1:{port}", None),
    ("localhost:{port}", None),
    ("LOCALHOST:{port}", None),
    ("[::1]:{port}", None),
    ("localhost", None),
    ("localhost.:{port}", None),
    ("127.0.0.1:{port}", "http://127.0.0.1:{port}"),
    ("localhost:{port}", "http://localhost:{port}"),
    ("[::1]:{port}", "http://[::1]:{port}"),
]
FOREIGN = [
    ("evil.example:{port}", None),
    ("evil.example", None),
    ("127.0.0.1.evil.example:{port}", None),
    ("localhost.evil.example", None),
    ("192.168.0.7:{port}", None),
    ("0.0.0.0:{port}", None),
    ("[::ffff:127.0.0.1]:{port}", None),
    ("[::1", None),
    ("127.0.0.1:port", None),
    ("user@127.0.0.1:{port}", None),
    ("", None),
    ("2130706433:{port}", None),
    ("127.0.0.1:{port}", "http://evil.example"),
    ("127.0.0.1:{port}", "null"),
    ("127.0.0.1:{port}", ""),
    ("127.0.0.1:{port}", "http://127.0.0.1:1"),
    ("127.0.0.1:{port}", "http://localhost:{port}"),
    ("127.0.0.1:{port}", "file://127.0.0.1:{port}"),
    ("127.0.0.1:{port}", "http://127.0.0.1:{port}.evil.example"),
    ("127.0.0.1:{port}", "http://127.0.0.1:{port}/path"),
    ("localhost:{port}", "http://[::1]:{port}"),
    ("evil.example:{port}", "http://evil.example:{port}"),
]


def asked(server: Served, host: str, origin: str | None, path: str = "/api/session") -> int:
    """By a plain socket: an HTTP client would put the headers right."""
    port = urlsplit(server.url).port
    lines = [f"GET {path} HTTP/1.1", f"Host: {host.format(port=port)}", "Connection: close"]
    lines += [f"Origin: {origin.format(port=port)}"] if origin is not None else []
    lines += [f"Authorization: Bearer {server.token}", "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize(("host", "origin"), OWN)
def test_the_server_answers_by_its_own_names(server: Served, host: str, origin: str) -> None:
    assert asked(server, host, origin) == 200


@pytest.mark.parametrize(("host", "origin"), FOREIGN)
def test_other_names_and_origins_are_refused(server: Served, host: str, origin: str) -> None:
    for path in ("/api/session", "/api/runs/x/events", "/healthz"):
        assert asked(server, host, origin, path) in (400, 403)


def test_a_page_of_another_site_changes_nothing(server: Served) -> None:
    answer = server.client().post(
        "/api/workflows/greet/run", json=HELLO, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert answer.status_code == 403


def test_the_login_link_counts_once_and_opens_a_session(server: Served) -> None:
    path = server.client().post("/api/session/link").json()["path"]
    browser = server.stranger()
    page = browser.get(path)
    assert page.status_code == 200
    cookie = page.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert server.stranger().get(path).status_code == 401
    session = browser.get("/api/session").json()
    assert session["role"] == "admin"
    refused = browser.post("/api/workflows/greet/run", json=HELLO)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "permission_denied")
    headers = {"X-CSRF-Token": session["csrf"]}
    assert browser.post("/api/workflows/greet/run", json=HELLO, headers=headers).status_code == 200
    assert browser.delete("/api/session", headers=headers).status_code == 200
    assert browser.get("/api/session").status_code == 401


def test_a_token_opens_a_session_by_the_login_form(server: Served) -> None:
    browser = server.stranger()
    assert browser.post("/login", data={"token": "wrong"}).status_code == 401
    assert browser.post("/login", data={"token": server.token}).status_code == 200
    assert browser.get("/api/runs").status_code == 200
    page = server.stranger().get("/", headers={"Accept": "text/html"})
    assert page.status_code == 401
    assert "<form" in page.text


def test_a_login_form_of_too_many_fields_is_refused(server: Served) -> None:
    fields = {"token": server.token, **{str(n): "1" for n in range(10)}}
    answer = server.stranger().post("/login", data=fields)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "usage")


def test_a_login_by_the_form_leads_to_the_page_that_was_asked_for(server: Served) -> None:
    asked = server.stranger().get("/runs/x?tab=events", headers={"Accept": "text/html"})
    assert 'name="then" value="/runs/x?tab=events"' in asked.text
    sent = {"token": server.token, "then": "/runs/x?tab=events"}
    assert "url=/runs/x?tab=events" in server.stranger().post("/login", data=sent).text


@pytest.mark.parametrize(
    "then",
    [
        *("//elsewhere.example", "/\\elsewhere.example", "https://elsewhere.example", "runs"),
        *("javascript:alert(1)", '/"><script>alert(1)</script>', "/a;url=//b", "/\n/b", "/\t/b"),
    ],
)
def test_a_login_leads_to_no_other_place(then: str) -> None:
    assert "<script" not in login_page("A token is needed.", then)
    page = welcome_page(then)
    assert 'content="0; url=/"' in page
    assert 'href="/"' in page


def test_a_revoked_token_and_its_sessions_count_no_longer(server: Served) -> None:
    from stretto.server.tokens import revoke_token

    guest = server.client_of("leaver", "viewer")
    path = guest.post("/api/session/link").json()["path"]
    browser = server.stranger()
    browser.get(path)
    assert browser.get("/api/runs").status_code == 200
    revoke_token(server.home, "leaver")
    assert guest.get("/api/runs").status_code == 401
    assert browser.get("/api/runs").status_code == 401


def test_a_token_and_its_session_end_when_they_expire(server: Served) -> None:
    from stretto.server.tokens import add_token

    guest = server.client(add_token(server.home, "brief", "viewer", seconds=2.0))
    browser = server.stranger()
    browser.get(guest.post("/api/session/link").json()["path"])
    session = browser.get("/api/session").json()
    assert session["expires_at"] < time.time() + 3
    give_up_at = time.monotonic() + 30
    while guest.get("/api/runs").status_code == 200 and time.monotonic() < give_up_at:
        time.sleep(0.1)
    refused = guest.get("/api/runs")
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        401,
        "the token has expired",
    )
    assert browser.get("/api/runs").status_code == 401


def test_two_tokens_of_one_owner_share_the_runs_that_they_start(server: Served) -> None:
    from stretto.server.tokens import add_token

    laptop = server.client(add_token(server.home, "laptop", "operator", owner="lea"))
    phone = server.client(add_token(server.home, "phone", "operator", owner="lea"))
    run = started(laptop, "gated")
    until(phone, run, "waiting")
    assert phone.get("/api/session").json()["name"] == "lea"
    assert phone.post(f"/api/runs/{run}/cancel").status_code == 200


def test_logging_out_everywhere_ends_every_session_of_one_owner_alone(server: Served) -> None:
    from stretto.server.tokens import log_out

    guest, other = server.client_of("gina", "viewer"), server.client_of("olof", "viewer")
    browsers = [server.stranger() for _ in range(3)]
    for browser, client in zip(browsers, (guest, guest, other), strict=True):
        browser.get(client.post("/api/session/link").json()["path"])
    pending = guest.post("/api/session/link").json()["path"]
    csrf = {"X-CSRF-Token": browsers[0].get("/api/session").json()["csrf"]}
    answer = browsers[0].delete("/api/session", params={"everywhere": True}, headers=csrf)
    assert answer.json() == {"ok": True, "sessions": 2}
    assert [each.get("/api/session").status_code for each in browsers] == [401, 401, 200]
    assert server.stranger().get(pending).status_code == 401
    assert guest.get("/api/session").status_code == 200
    assert log_out(server.home, "olof", {}) == 1
    assert browsers[2].get("/api/session").status_code == 401


@pytest.mark.parametrize("path", ["/api/runs/{run}/events", "/api/events"])
def test_a_stream_ends_with_the_token_that_opened_it(
    server: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stretto.server import news, streams
    from stretto.server.tokens import revoke_token

    monkeypatch.setattr(streams, "_PING_SECONDS", 0.2)
    monkeypatch.setattr(news, "_ALIVE_SECONDS", 0.2)
    run = started(server.client(), "gated")
    until(server.client(), run, "waiting")
    name = f"reader{len(path)}"
    guest = server.client_of(name, "viewer")
    with guest.stream("GET", path.format(run=run)) as answer:
        lines = answer.iter_lines()
        next(lines)
        revoke_token(server.home, name)
        assert any("counts no longer" in line for line in lines)
    server.client().post(f"/api/runs/{run}/cancel")


def test_every_route_needs_its_role(server: Served) -> None:
    for role in AccessRole:
        client = server.client_of(f"role-{role.word}", role.word)
        for method, path, needed in ROUTES:
            with client.stream(method, filled(path)) as answer:  # one of them never ends
                is_refused = answer.status_code == 403
            assert is_refused == (role < needed), (role.word, method, path, answer.status_code)


def test_who_started_a_run_may_decide_about_it_and_others_may_only_look(server: Served) -> None:
    owner, other = server.client_of("olga", "operator"), server.client_of("otto", "author")
    viewer, admin = server.client_of("vera", "viewer"), server.client()
    run = started(owner, "gated")
    until(viewer, run, "waiting")
    verbs = ("cancel", "resume", "retry", "fork", "apply", "steps/act/approve", "steps/act/reject")
    bodies = {"fork": {"from_step": "act"}, "apply": {"step": "act"}}
    for verb in (*verbs, "steps/act/edit"):
        body = bodies.get(verb, {"prompt": "x"} if verb.endswith("edit") else {})
        for client in (other, viewer):
            answer = client.post(f"/api/runs/{run}/{verb}", json=body)
            assert answer.status_code == 403, (verb, answer.text)
    assert viewer.get(f"/api/runs/{run}").json()["owner"] == "olga"
    assert owner.post(f"/api/runs/{run}/steps/act/approve").status_code == 200
    until(owner, run, "complete")
    assert admin.post(f"/api/runs/{run}/retry", json={"wait": True}).status_code == 200


def test_an_inline_recipe_needs_an_author(server: Served) -> None:
    recipe = {"recipe": "name: x\nsteps: [{id: a, subagent: writer, prompt: x}]\n"}
    operator, author = server.client_of("ina", "operator"), server.client_of("ivo", "author")
    assert operator.post("/api/runs", json=recipe).status_code == 403
    assert operator.put("/api/workflows/x", json=recipe).status_code == 403
    assert author.post("/api/runs", json=recipe).status_code == 200


def test_a_body_that_is_too_long_is_refused_before_it_is_read(server: Served) -> None:
    client = server.client()
    port = urlsplit(server.url).port
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        head = f"POST /api/validate HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer "
        connection.sendall(f"{head}{server.token}\r\nContent-Length: 99999999999\r\n\r\n".encode())
        assert connection.makefile("rb").readline().split()[1] == b"413"

    def pieces():  # type: ignore[no-untyped-def]
        yield from (b"[" + b" " * 2**20 for _ in range(12))

    headers = {"Content-Type": "application/json"}
    answer = client.post("/api/validate", content=pieces(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "too_large")


@pytest.mark.parametrize(
    "body",
    [b"[" * 200_000, b'{"recipe": NaN}', b'{"recipe": "\\ud800"}', b"\xff", b"", b"[]", b"1e999"],
)
def test_a_body_that_is_no_sound_json_is_refused(server: Served, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = server.client().post("/api/validate", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "usage")


def test_guessing_tokens_is_slowed_down_and_known_ones_go_on(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with served(tmp_path) as found:
        client, guest = found.client(), found.stranger()
        assert client.get("/api/session").status_code == 200
        codes = [
            guest.get("/api/session", headers={"Authorization": f"Bearer guess-{n}"}).status_code
            for n in range(12)
        ]
        assert codes == [401] * 10 + [429] * 2
        assert client.get("/api/session").status_code == 200
        again = guest.get("/api/session", headers={"Authorization": "Bearer guess"})
        assert (again.status_code, again.headers["retry-after"]) == (429, "60")


def test_the_token_is_for_its_user_alone(server: Served) -> None:
    file = server.home / "token"
    assert file.stat().st_mode & 0o777 == 0o600
    assert (server.home / "server.db").stat().st_mode & 0o777 == 0o600
    assert server.token.encode() not in (server.home / "server.db").read_bytes()


def test_a_weak_or_readable_token_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from stretto.problems.errors import InvalidUsage, StrettoError

    with pytest.raises(InvalidUsage, match="letters"):
        own_token(tmp_path, {"STRETTO_TOKEN": "short"})
    own_token(tmp_path, {})
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(StrettoError, match="read by others"):
        own_token(tmp_path, {})


def test_another_address_needs_an_explicit_word() -> None:
    from dataclasses import replace

    from stretto.problems.errors import InvalidUsage
    from stretto.server.process import bound_socket

    with (
        pytest.raises(InvalidUsage, match="other machines"),
        bound_socket(replace(ANY_PORT, host="0.0.0.0")),
    ):
        pass
    with bound_socket(replace(ANY_PORT, host="::1")) as bound:
        assert bound.getsockname()[1] > 0


def test_disabled_workflows_are_not_there(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "script.yaml").write_text(SCRIPTS["script"])
    env = {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"}
    with served(tmp_path, RECIPES, env) as found:
        run = found.client().post("/api/workflows/greet/run", json=HELLO).json()["run_id"]
    (tmp_path / "stretto.yaml").write_text("workflows: {enabled: false}\n")
    with served(tmp_path, RECIPES, env) as found:
        client = found.client()
        goal = {"text": "x", "verify": "command:true", "workflow": "greet", **HELLO}
        again = {"from_step": "hello"}
        for path, body in (
            ("/api/goals", goal),
            (f"/api/runs/{run}/retry", again),
            (f"/api/runs/{run}/fork", again),
        ):
            refused = client.post(path, json=body)
            assert (refused.status_code, refused.json()["error"]["kind"]) == (404, "not_found")
        task = client.post("/api/tasks", json={"agent": "writer", "prompt": "Hi."}).json()
        assert client.post(f"/api/runs/{task['run_id']}/retry", json={}).is_success
        for method, path in (
            ("GET", "/api/workflows"),
            ("GET", "/api/workflows/x"),
            ("PUT", "/api/workflows/x"),
            ("POST", "/api/workflows/x/run"),
            ("POST", "/api/validate"),
            ("POST", "/api/runs"),
        ):
            body = {"recipe": "x"} if path != "/api/workflows/x/run" else {}
            answer = client.request(method, path, json=body)
            assert answer.status_code == 404, (method, path)
            assert answer.json()["error"]["kind"] == "not_found"
        assert client.get("/api/runs").status_code == 200


def heads_asked(server: Served, path: str) -> tuple[int, dict[str, str], bytes]:
    """By a plain socket, which sees a body that should not be there, and whether a second request is
    answered on the same connection."""
    port = urlsplit(server.url).port
    host = f"HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {server.token}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(f"HEAD {path} {host}\r\n".encode())
        connection.sendall(f"HEAD /healthz {host}Connection: close\r\n\r\n".encode())
        head, second, body = connection.makefile("rb").read().split(b"\r\n\r\n")
    assert second.startswith(b"HTTP/1.1 200 OK\r\n")
    status, *fields = head.decode().split("\r\n")
    return int(status.split()[1]), dict(each.lower().split(": ", 1) for each in fields), body


def test_head_answers_as_get_does_without_a_body(server: Served) -> None:
    client = server.client()
    run = started(client, "gated")
    streams = (f"/api/runs/{run}/events", "/api/events")
    paths = {filled(path) for method, path, _ in ROUTES if method == "GET"} - {"/api/doctor"}
    for path in sorted({*paths, *streams, "/healthz", "/login", "/", "/runs/x"}):
        with client.stream("GET", path) as answer:
            expected = answer.status_code, answer.headers["content-type"]
        status, fields, body = heads_asked(
            server, path
        )  # which ends, also where a stream would not
        assert (status, fields["content-type"], body) == (*expected, b""), path
    client.post(f"/api/runs/{run}/cancel")


def test_head_uses_up_no_login_link(server: Served) -> None:
    path = server.client().post("/api/session/link").json()["path"]
    status, fields, _ = heads_asked(server, path)
    assert (status, "set-cookie" in fields) == (200, False)
    assert server.stranger().get(path).status_code == 200


# The bodies of every route that takes the name of a model.
MODEL_BODIES: dict[str, dict[str, Any]] = {
    "/api/workflows/{name}/run": HELLO,
    "/api/runs": {"recipe": INLINE},
    "/api/runs/{run_id}/resume": {},
    "/api/runs/{run_id}/retry": {},
    "/api/runs/{run_id}/fork": {"from_step": "act"},
    "/api/tasks": {"agent": "writer", "prompt": "x"},
    "/api/batches": {"tasks": [{"agent": "writer", "prompt": "x"}]},
    "/api/models/test": {},
    "/api/drafts": {"words": "Say hello."},
    "/api/chats": {"text": "x"},
    "/api/chats/{chat}": {"text": "x"},
}


def test_every_route_that_takes_a_model_is_among_them(server: Served) -> None:
    schema = server.client().get("/api/openapi.json").json()
    taking = set()
    for path, methods in schema["paths"].items():
        written = json.dumps(methods.get("post", {}).get("requestBody", {}))
        for name in re.findall(r"#/components/schemas/(\w+)", written):
            if "model" in schema["components"]["schemas"][name].get("properties", {}):
                taking.add(path)
    assert taking == {*MODEL_BODIES, "/api/goals"}  # that one needs an admin


@pytest.mark.parametrize("path", MODEL_BODIES)
@pytest.mark.parametrize(
    "model",
    ["cli:touch {mark}", "cli:acp:touch {mark}", "local:/etc/passwd", "scripted:/etc/passwd"],
)
def test_a_client_names_no_command_and_no_file_of_the_machine(
    server: Served, tmp_path: Path, path: str, model: str
) -> None:
    author = server.client_of(f"model-{secrets.token_hex(4)}", "author")
    run = started(author, "gated")
    until(author, run, "waiting")
    place = path.format(name="greet", run_id=run, chat="last")
    body = {**MODEL_BODIES[path], "model": model.format(mark=tmp_path / "mark")}
    refused = author.post(place, json=body)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "permission_denied")
    assert not (tmp_path / "mark").exists()
    author.post(f"/api/runs/{run}/cancel")


def test_an_admin_and_the_settings_may_name_a_command(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("default: Hello!\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "stretto.yaml").write_text("cli_commands: [cat]\n")
    recipes = {"greet": "name: greet\nsteps:\n  - {id: hello, subagent: writer, prompt: Hello.}\n"}
    model = {"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"}
    with served(tmp_path, recipes, model) as server:
        operator, path = server.client_of("op", "operator"), "/api/workflows/greet/run"
        assert operator.post(path, json={"model": "cli:cat"}).json()["status"] == "complete"
        assert operator.post(path, json={"model": "cli:head"}).status_code == 403
        assert server.client().post(path, json={"model": "cli:head"}).json()["status"] == "complete"
