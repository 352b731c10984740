"""Nothing takes long without a word."""

import socket
from concurrent.futures import ThreadPoolExecutor
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
        with ThreadPoolExecutor() as pool:  # each waits for the server until it gives up
            loud = pool.submit(talk, tmp_path, words, [], env)
            quiet = pool.submit(talk, tmp_path, (*words, "-q"), [], env)
            piped = pool.submit(stretto, tmp_path, *words, env=env)
        assert PREPARING in loud.result()[1]
        assert loud.result()[0] == 2
        assert PREPARING not in quiet.result()[1]
        # Elsewhere what is printed does not depend on how fast the machine is.
        assert PREPARING not in piped.result().err
