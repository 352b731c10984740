"""Split a shell command into its simple commands, each a list of words.

Only words, quotes and the operators between commands are read. Anything that expands, redirects or
groups is NotPlain, because it could run or write something that no filter has checked.
"""

import re

_BETWEEN = re.compile(r"&&|\|\||[;|&\n]")
_STDERR_TOO = re.compile(r"2>&1(?=[\s;|&]|\Z)")
# `HEAD@{1}` and `{}` are words. Other braces can expand to several words, also to options.
_PLAIN_BRACES = re.compile(r"\{(?:(?!\.\.)[\w.+:/-])*\}")
_QUOTED_ESCAPES = frozenset('"\\$`\n')
_WHY = {
    "$": "it expands a variable or runs a command inside ($)",
    "`": "it runs a command inside (`)",
    "<": "it redirects (<)",
    ">": "it redirects (>)",
    "(": "it has a subshell or a function",
    ")": "it has a subshell or a function",
}
_MOST_CHARACTERS = 20_000


class NotPlain(Exception):
    """The command cannot be checked. The text says why."""


def split_commands(text: str) -> list[list[str]]:
    """The commands between `;`, `&&`, `||`, `|`, `&` and line ends. Raises NotPlain."""
    if len(text) > _MOST_CHARACTERS:
        raise NotPlain(f"it has {len(text):,} characters; {_MOST_CHARACTERS:,} is the most")
    if any(ord(letter) < 32 and letter not in "\t\n" for letter in text):
        raise NotPlain("it holds a control character")
    reader = _Reader(text)
    reader.read()
    commands = [words for words in reader.commands if words]
    if not commands:
        raise NotPlain("it is empty")
    return commands


class _Reader:
    def __init__(self, text: str) -> None:
        self.commands: list[list[str]] = [[]]
        self._text = text
        self._at = 0
        self._word: str | None = None  # None between words: '' is a word too

    def read(self) -> None:
        while self._at < len(self._text):
            letter = self._text[self._at]
            if match := self._word is None and _STDERR_TOO.match(self._text, self._at):
                self._at = match.end()
            elif match := _BETWEEN.match(self._text, self._at):
                self._end_word()
                self.commands.append([])
                self._at = match.end()
            elif letter in " \t":
                self._end_word()
                self._at += 1
            elif letter == "#" and self._word is None:
                self._at = (self._text + "\n").index("\n", self._at)
            elif self._text.startswith("\\\n", self._at):
                self._at += 2  # a line that goes on: between words it begins none
            else:
                self._add(self._read_piece(letter))
        self._end_word()

    def _read_piece(self, letter: str) -> str:
        if letter in _WHY:
            raise NotPlain(_WHY[letter])
        if letter == "{" and not _PLAIN_BRACES.match(self._text, self._at):
            raise NotPlain("it expands braces ({)")
        if letter == "'":
            end = self._text.find("'", self._at + 1)
            if end < 0:
                raise NotPlain("a quote is not closed")
            piece, self._at = self._text[self._at + 1 : end], end + 1
            return piece
        if letter == '"':
            return self._read_double_quoted()
        if letter == "\\":
            return self._read_escaped()
        self._at += 1
        return letter

    def _read_double_quoted(self) -> str:
        self._at += 1
        piece: list[str] = []
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == '"':
                self._at += 1
                return "".join(piece)
            if letter in "$`":
                raise NotPlain(_WHY[letter])
            follows = self._text[self._at + 1 : self._at + 2]
            if letter == "\\" and follows in _QUOTED_ESCAPES:
                piece.append(self._read_escaped())
            else:
                piece.append(letter)
                self._at += 1
        raise NotPlain("a quote is not closed")

    def _read_escaped(self) -> str:
        follows = self._text[self._at + 1 : self._at + 2]
        if not follows:
            raise NotPlain("it ends with a backslash")
        self._at += 2
        return "" if follows == "\n" else follows

    def _add(self, piece: str) -> None:
        self._word = (self._word or "") + piece

    def _end_word(self) -> None:
        if self._word is not None:
            self.commands[-1].append(self._word)
            self._word = None
