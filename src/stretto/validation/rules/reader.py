"""A place in a sentence. Every `take` moves on when it succeeds and stays when it does not."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from stretto.validation.rules.tokens import Token

_T = TypeVar("_T")


class Reader:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.at = 0

    @property
    def is_done(self) -> bool:
        return self.at >= len(self._tokens)

    def peek(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self._tokens[at] if at < len(self._tokens) else Token("", "sign")

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def stands(self, *phrases: str) -> bool:
        """Whether one of these stands here."""
        at = self.at
        is_there = bool(self.take(*phrases))
        self.at = at
        return is_there

    def take(self, *phrases: str) -> str:
        """The longest of these phrases that stands here, or ''."""
        for phrase in sorted(phrases, key=lambda phrase: -phrase.count(" ")):
            words = phrase.split(" ")
            if all(self.peek(n).low == word for n, word in enumerate(words)):
                self.at += len(words)
                return phrase
        return ""

    def attempt(self, read: Callable[["Reader"], _T | None]) -> _T | None:
        """What `read` makes of it; a None leaves the place as it was."""
        at = self.at
        found = read(self)
        if found is None:
            self.at = at
        return found

    def first(self, *reads: Callable[["Reader"], _T | None]) -> _T | None:
        for read in reads:
            found = self.attempt(read)
            if found is not None:
                return found
        return None

    def listed(self, read: Callable[["Reader"], _T | None]) -> list[_T]:
        """One or more, between commas and "and"."""
        found = list[_T]()
        while True:
            at = self.at
            if found and not take_separator(self):
                return found
            one = self.attempt(read)
            if one is None:
                self.at = at
                return found
            found.append(one)


def take_separator(reader: Reader) -> bool:
    return bool(reader.take(", and", ",", "and", "&", "as well as", ", as well as", "plus"))
