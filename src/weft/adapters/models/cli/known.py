"""The CLIs that have a name of their own."""

from weft.adapters.models.cli.claude import CLAUDE
from weft.adapters.models.cli.codex import CODEX
from weft.adapters.models.cli.described import Cli
from weft.adapters.models.cli.gemini import GEMINI
from weft.adapters.models.cli.goose import GOOSE
from weft.adapters.models.cli.opencode import OPENCODE

KNOWN: dict[str, Cli] = {cli.name: cli for cli in (CLAUDE, CODEX, GEMINI, OPENCODE, GOOSE)}
