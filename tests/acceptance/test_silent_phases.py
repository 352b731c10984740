"""Nothing takes long without a word."""

import socket
from pathlib import Path

from support.background_runs import CHAIN
from support.cli import stretto, talk, write

PREPARING = "preparing the run: looking at its models, tools and servers …"


def test_a_slow_preparation_is_named(tmp_path: Path) -> None:
    write(tmp_path, "recipe.yaml", CHAIN)
    with socket.socket() as deaf:  # it takes connections, and never says a word
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        words = ("run", "recipe.yaml")
        env = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-loopback-0123456789"}
        code, screen, _ = talk(tmp_path, words, [], env)
        assert PREPARING in screen
        assert code == 2
        assert PREPARING not in talk(tmp_path, (*words, "-q"), [], env)[1]
        # Elsewhere what is printed does not depend on how fast the machine is.
        assert PREPARING not in stretto(tmp_path, *words, env=env).err
