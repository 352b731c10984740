"""Requests made up from the OpenAPI description, sound and unsound ones: no server error."""

import json
import os
from contextlib import suppress
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from server.conftest import RECIPES
from support.served import Served

EXAMPLES = int(os.environ.get("STRETTO_SCHEMA_EXAMPLES", "1"))  # of each operation and mode
SKIPPED = ("/api/doctor",)  # it looks at the whole machine, which takes seconds
STREAMS = ("/api/events", "/api/runs/{run_id}/events")  # of which the beginning is read


def operations(server: Served) -> list[Any]:
    content = server.client().get("/api/openapi.json").json()
    schema = schemathesis.openapi.from_dict(content)
    found = [each.ok() for each in schema.get_all_operations()]
    return [each for each in found if each.path not in SKIPPED]


def there_is(client: httpx2.Client) -> dict[str, list[str]]:
    """What the parameters of a path may name; made anew, since requests remove and end it."""
    for name, text in RECIPES.items():
        client.put(f"/api/workflows/{name}", json={"recipe": text})
    schedule = {"name": "nightly", "workflow": "greet", "cron": "@daily", "inputs": {"whom": "x"}}
    client.post("/api/schedules", json=schedule)
    client.post("/api/hooks", json={"name": "hook", "workflow": "greet"})
    runs = [
        client.post(f"/api/workflows/{name}/run", json={"inputs": inputs}).json()["run_id"]
        for name, inputs in (("greet", {"whom": "x"}), ("gated", {}))
    ]
    names = ["greet", "writer", "nightly", "hook"]
    return {"run_id": runs, "step": ["hello", "act", "look"], "name": names}


def check(server: Served, client: httpx2.Client, cases: Any) -> None:
    known = there_is(client)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies.data())
    def ask(data: strategies.DataObject) -> None:
        case = data.draw(cases)
        # A made-up id leads no further than to a 404: an example alone has one that is known.
        if EXAMPLES == 1 or data.draw(strategies.booleans()):
            for name in known.keys() & (case.path_parameters or {}).keys():
                case.path_parameters[name] = data.draw(strategies.sampled_from(known[name]))
        status, text = answer_to(server, client, case)
        assert status < 500, (case.as_curl_command(), text[:500])
        if status >= 400:
            told = json.loads(text)
            assert told["ok"] is False
            assert set(told["error"]) == {"kind", "message", "details"}

    ask()


def answer_to(server: Served, client: httpx2.Client, case: Any) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {server.token}"}
    if case.operation.path not in STREAMS:
        answer = case.call(base_url=server.url, headers=headers, timeout=30)
        return answer.status_code, answer.text
    asked = case.as_transport_kwargs(base_url=server.url, headers=headers)
    stream = client.stream(
        "GET", asked["url"], params=asked.get("params"), headers=asked["headers"]
    )
    with stream as begun:
        if begun.status_code != 200:
            return begun.status_code, begun.read().decode()
        return 200, next(begun.iter_text())


@pytest.mark.filterwarnings("ignore")  # of libraries, about requests that are odd on purpose
def test_no_made_up_request_makes_the_server_fail(server: Served) -> None:
    found, client = operations(server), server.client()
    assert {each.path for each in found}.issuperset(STREAMS)
    both = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    for place, operation in enumerate(found):
        # Making them up takes longer than asking: with one example, every second is an unsound one.
        for mode in both if EXAMPLES > 1 else (both[place % 2],):
            with suppress(Unsatisfiable):  # an operation to which nothing unsound can be sent
                check(server, client, operation.as_strategy(generation_mode=mode))


def test_the_description_has_every_route_with_its_role(server: Served) -> None:
    content = server.client().get("/api/openapi.json").json()
    for path, methods in content["paths"].items():
        for method, described in methods.items():
            # A delivery shows a signature, not a token.
            is_open = path in ("/healthz", "/hooks/{hook}")
            assert is_open or described["x-role"], (method, path)
            good = [code for code in described["responses"] if code.startswith("2")]
            assert good, (method, path)
