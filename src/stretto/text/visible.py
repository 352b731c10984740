"""Text that a terminal and a reader can trust. In: any text. Out: text without characters that control.

Names of files, words of models and errors of servers come from outside. In them a control
character moves the cursor, writes to the clipboard or clears the screen, a bidirectional one turns
words around, and an invisible one makes two names look alike. Each is replaced by something that
can be seen.
"""

import re

# Formatting characters that are not seen, and letters that are blank. Not the joiners between
# letters that are not Latin: Persian, Hindi and families of emoji are written with them.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_JOINERS = "(?<![^\x00-\u05ff])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u05ff])"
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_LINES = "\u2028\u2029"
_HIDDEN = re.compile(f"[{_CONTROLS}{_LINES}\ud800-\udfff{_UNSEEN}]|{_JOINERS}")
_HIDDEN_OR_BROKEN = re.compile(f"[\n{_CONTROLS}{_LINES}\ud800-\udfff{_UNSEEN}]|{_JOINERS}")
# What a terminal obeys, where text is data for another program: all else must stay as it is.
_OBEYED = re.compile("(?!\r\n)[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# In JSON everything can be written as an escape, so nothing is lost.
_HIDDEN_IN_JSON = re.compile(f"[\x7f-\x9f{_LINES}\ud800-\udfff{_UNSEEN}]|{_JOINERS}")


def visible(text: str) -> str:
    """Lines and tabs stay."""
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return _HIDDEN.sub(_stand_in, text)


def harmless(text: str) -> str:
    """The least change that keeps a terminal safe, should the text end up on one."""
    return _OBEYED.sub(_stand_in, text)


def visible_line(text: str) -> str:
    """The same for what is one line of something larger. As many characters as before."""
    return _HIDDEN_OR_BROKEN.sub(_stand_in, text)


def one_line(text: str, most: int = 0) -> str:
    """Any run of blanks and line breaks is one blank. `most`: characters that are kept; 0: all."""
    line = " ".join(visible(text).split())
    if not most or len(line) <= most:
        return line
    # The end stays: that is where a traceback says what happened.
    head, tail = line[: most * 2 // 3].rstrip(), line[len(line) - most // 3 :].lstrip()
    return f"{head} … {tail}"


# What we write ourselves, for a terminal that knows ASCII alone.
_ASCII = str.maketrans(
    {
        "·": "-", "…": "...", "→": "->", "←": "<-", "↑": "^", "↓": "v", "›": ">", "•": "*",
        "│": "|", "┌": "+", "─": "-", "–": "-", "—": "-", "✓": "+", "✗": "x", "▶": ">",
        "├": "+", "┐": "+", "└": "+", "┘": "+", "┼": "+", "┴": "+", "◆": "*", "↻": "~", "⇄": "<->",
        "✖": "x", "✕": "x", "⊘": "o", "“": '"', "”": '"', "‘": "'", "’": "'", "×": "x", "≤": "<=", "≥": ">=",
    }
)  # fmt: skip


def encodable(text: str, encoding: str) -> str:
    """What a terminal of this encoding can show; a question mark for what has no likeness there."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        kept = "".join(each if _has(each, encoding) else each.translate(_ASCII) for each in text)
        return kept.encode(encoding, "replace").decode(encoding)
    return text


def plain_signs(text: str) -> str:
    """The same with ASCII for the signs that we write; the letters of others stay."""
    return text if text.isascii() else text.translate(_ASCII)


def _has(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def escaped(json_text: str) -> str:
    """JSON that says the same, with escapes for what would be hidden."""
    return _HIDDEN_IN_JSON.sub(_escape, json_text)


def _stand_in(hidden: re.Match[str]) -> str:
    code = ord(hidden[0])
    if code in (0x2028, 0x2029):
        return " "
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def _escape(hidden: re.Match[str]) -> str:
    units = hidden[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
