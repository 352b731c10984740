"""Requests made up from the OpenAPI description, sound and unsound ones: no server error."""

import os
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from support.served import Served

EXAMPLES = int(os.environ.get("STRETTO_SCHEMA_EXAMPLES", "1"))  # of each operation and mode
# A stream of a run that goes on does not end; whether it begins is tested beside.
# The doctor looks at the whole machine, which takes seconds.
SKIPPED = ("/api/events", "/api/runs/{run_id}/events", "/api/doctor")


def operations(server: Served) -> list[Any]:
    content = server.client().get("/api/openapi.json").json()
    schema = schemathesis.openapi.from_dict(content)
    found = [each.ok() for each in schema.get_all_operations()]
    return [each for each in found if each.path not in SKIPPED]


def check(server: Served, cases: Any) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}

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
        answer = case.call(base_url=server.url, headers=headers, timeout=30)
        assert answer.status_code < 500, (case.as_curl_command(), answer.text[:500])
        if answer.status_code >= 400:
            told = answer.json()
            assert told["ok"] is False
            assert set(told["error"]) == {"kind", "message", "details"}

    ask()


@pytest.mark.filterwarnings("ignore")  # of libraries, about requests that are odd on purpose
def test_no_made_up_request_makes_the_server_fail(server: Served) -> None:
    found = operations(server)
    assert len(found) > 35
    both = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    for place, operation in enumerate(found):
        # Making them up takes longer than asking: with one example, every second is an unsound one.
        for mode in both if EXAMPLES > 1 else (both[place % 2],):
            with suppress(Unsatisfiable):  # an operation to which nothing unsound can be sent
                check(server, operation.as_strategy(generation_mode=mode))


def test_the_description_has_every_route_with_its_role(server: Served) -> None:
    content = server.client().get("/api/openapi.json").json()
    for path, methods in content["paths"].items():
        for method, described in methods.items():
            # A delivery shows a signature, not a token.
            is_open = path in ("/healthz", "/hooks/{hook}")
            assert is_open or described["x-role"], (method, path)
            good = [code for code in described["responses"] if code.startswith("2")]
            assert good, (method, path)
