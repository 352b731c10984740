"""Every request in docs/http.md is answered as the page says. In: its `http` blocks, in order."""

import json
import re
from pathlib import Path
from typing import Any

from support.served import served

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
BLOCK = re.compile(r"```http\n(\w+) (\S+)\n(.*?)\n?(\d{3})\n(.*?)\n```", re.S)
NAMED = ("RUN", "GATED")


def holds(found: Any, told: Any, names: dict[str, str]) -> None:
    """`found` has all that is told, and perhaps more; a name stands for what is found first."""
    if isinstance(told, dict):
        for key, value in told.items():
            holds(found[key], value, names)
    elif isinstance(told, list):
        for one, other in zip(found, told, strict=False):
            holds(one, other, names)
        assert len(found) >= len(told)
    elif told in NAMED:
        assert found == names.setdefault(told, found)
    else:
        assert found == told


def test_the_page_tells_what_the_server_does(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("default: Hello!\n")
    names: dict[str, str] = {}
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) >= 12
    with served(tmp_path, env={"STRETTO_MODEL": f"scripted:{tmp_path / 'script.yaml'}"}) as server:
        client = server.client()
        for method, path, body, status, answer in blocks:
            for name, value in names.items():
                path = path.replace(name, value)
            sent = {"json": json.loads(body)} if body.strip() else {}
            found = client.request(method, path, **sent)
            assert found.status_code == int(status), (method, path, found.text)
            holds(found.json(), json.loads(answer), names)
