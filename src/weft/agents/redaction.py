"""Keep secrets out of prompts, journals and reports. In: the environment. Out: text without them."""

import re
from collections.abc import Mapping

from weft.vocabulary.values import Json

_NAMES = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|DSN|PRIVATE|CANARY", re.IGNORECASE
)
# Shorter ones are words: replacing "true" or "test" everywhere would spoil honest text.
_SHORTEST = 8
_MASK = "[redacted]"


class Redactor:
    def __init__(self, environ: Mapping[str, str]) -> None:
        secrets = {
            value
            for name, value in environ.items()
            if _NAMES.search(name) and len(value) >= _SHORTEST and not _is_path(value)
        }
        longest_first = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if secrets else None
        self._longest = len(longest_first[0]) if secrets else 0

    def text(self, text: str) -> str:
        return self._pattern.sub(_MASK, text) if self._pattern else text

    def safe_length(self, text: str) -> int:
        """How much of a text that still grows can be told: no secret may begin in it and end later."""
        if self._pattern is None:
            return len(text)
        safe = max(0, len(text) - self._longest + 1)
        for secret in self._pattern.finditer(text):
            if secret.start() < safe < secret.end():
                return secret.start()
        return safe

    def json(self, value: Json) -> Json:
        if self._pattern is None:
            return value
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.json(each) for each in value]
            case dict():
                return {self.text(key): self.json(each) for key, each in value.items()}
            case _:
                return value


def _is_path(value: str) -> bool:
    """SSH_AUTH_SOCK and the like say where something is, not what it is."""
    return value.startswith(("/", "~"))


NOTHING_SECRET = Redactor({})
