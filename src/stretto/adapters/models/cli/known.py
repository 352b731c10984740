"""The CLIs that have a name of their own."""

from stretto.adapters.models.cli.claude import CLAUDE
from stretto.adapters.models.cli.codex import CODEX
from stretto.adapters.models.cli.described import Cli
from stretto.adapters.models.cli.gemini import GEMINI
from stretto.adapters.models.cli.goose import GOOSE
from stretto.adapters.models.cli.opencode import OPENCODE

KNOWN: dict[str, Cli] = {cli.name: cli for cli in (CLAUDE, CODEX, GEMINI, OPENCODE, GOOSE)}
