"""A rule as tokens. In: a sentence. Out: its tokens, or None if it holds signs we do not read."""

import re
from dataclasses import dataclass

LONGEST_RULE = 400
MOST_TOKENS = 60

# Tried in this order. A number that letters or a sign follow (3rd, 80%) is none that we read.
_TOKEN = re.compile(
    r"""(?P<blank>[\ \t\r\n]+)
    |`(?P<ticked>[^`]+)`
    |"(?P<double>[^"]+)"
    |“(?P<curly>[^“”]+)”
    |(?<![\w])'(?P<single>[^']+)'(?![\w])
    |(?<![\w])‘(?P<typeset>[^‘’]+)’(?![\w])
    |(?P<number>(?:(?<![\w)\]]) [-−](?=\d))?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?![\w%$€£°])(?!,\d)
    |(?P<word>[^\W\d]\w*(?:['’-][^\W_]\w*)*)
    |(?P<sign>>=|<=|≥|≤|==|[-–—,;:.()&><=])
    """,
    re.VERBOSE,
)
_IDENTIFIER = re.compile(r"\w*(?:_\w|[a-z][A-Z])\w*")
_QUOTED = ("double", "curly", "single", "typeset")


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    kind: str  # 'ticked', 'quoted', 'number', 'word' or 'sign'

    @property
    def low(self) -> str:
        return self.text.lower() if self.kind in ("word", "sign") else ""

    @property
    def is_identifier(self) -> bool:
        """Written as code writes names: overall_score, overallScore."""
        return self.kind == "word" and _IDENTIFIER.fullmatch(self.text) is not None


def tokenize(rule: str) -> list[Token] | None:
    if len(rule) > LONGEST_RULE:
        return None
    tokens, at = list[Token](), 0
    while at < len(rule):
        found = _TOKEN.match(rule, at)
        if found is None or found.lastgroup is None or len(tokens) > MOST_TOKENS:
            return None
        at = found.end()
        if found.lastgroup != "blank":
            tokens.append(_token(found[found.lastgroup], found.lastgroup))
    return tokens


def _token(text: str, group: str) -> Token:
    if group in _QUOTED:
        return Token(text.strip(), "quoted")
    return Token(text.replace("’", "'").replace("−", "-").strip(), group)


def sentences(tokens: list[Token]) -> list[list[Token]]:
    """Split at full stops and semicolons; what is between two of them is not empty."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind == "sign" and token.text in (".", ";"):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]
