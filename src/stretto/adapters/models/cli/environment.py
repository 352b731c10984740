"""What a program of others gets to know of ours. In: our environment. Out: the program's.

A CLI with a name gets what programs need to run, find their settings and reach the network, and the
variables that its own documentation names, for it must be logged in. A command gets PATH, HOME and
LANG. Both get what the user lists. Nothing else: other keys are none of their business.
"""

from collections.abc import Iterable, Mapping

from stretto.adapters.models.cli.described import Cli

_FOR_COMMANDS = ("PATH", "HOME", "LANG")
_FOR_CLIS = (
    *_FOR_COMMANDS,
    "LC_*",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TZ",
    "XDG_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)


def for_command(ours: Mapping[str, str], listed: Iterable[str]) -> dict[str, str]:
    return _passed(ours, (*_FOR_COMMANDS, *listed))


def for_cli(cli: Cli, ours: Mapping[str, str], listed: Iterable[str]) -> dict[str, str]:
    passed = _passed(ours, (*_FOR_CLIS, *cli.passes, *listed))
    return {**passed, "TERM": "dumb", "NO_COLOR": "1"}


def _passed(ours: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    starts = tuple(name[:-1] for name in names if name.endswith("_*"))
    return {k: v for k, v in ours.items() if k in names or (starts and k.startswith(starts))}
