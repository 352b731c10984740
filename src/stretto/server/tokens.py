"""Who may use the server: the user's own token, named tokens with a role, and what each role may do.

viewer    reads workflows, runs, reports, events
operator  also starts saved workflows, and decides about and stops the runs that it started
author    also writes workflows, and runs recipes that are not saved
admin     all of it, for every run; the user's own token is one
"""

import hmac
import os
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from pathlib import Path

from stretto.assembly.run import user_name
from stretto.config.home import make_private
from stretto.problems.errors import InvalidUsage, NotFound, RefusedToOverwrite, StrettoError
from stretto.server.ledger import NamedToken, open_ledger
from stretto.text.short import did_you_mean

_FILE = "token"
_FEWEST_LETTERS = 16
_MOST_LETTERS = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class AccessRole(IntEnum):
    """Each may do all that those before it may."""

    VIEWER = 1
    OPERATOR = 2
    AUTHOR = 3
    ADMIN = 4

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, and what they may do. `name`: whose the runs are that they start. `credential`: the
    digest of their token."""

    name: str
    role: AccessRole
    credential: str
    expires_at: float | None = None  # None: never


def role_named(word: str) -> AccessRole:
    for role in AccessRole:
        if role.word == word:
            return role
    words = [role.word for role in AccessRole]
    hint = did_you_mean(word, words) or f"one of {', '.join(words)}"
    raise InvalidUsage(f"there is no role '{word[:40]}'", hint=hint)


def digest_of(token: str) -> str:
    """Tokens are random, so a plain digest cannot be guessed from."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def is_same(one: str, other: str) -> bool:
    """In a time that does not depend on how much of them is alike."""
    return hmac.compare_digest(
        one.encode("utf-8", "surrogateescape"), other.encode("utf-8", "surrogateescape")
    )


def own_token(home: Path, environ: Mapping[str, str]) -> str:
    """STRETTO_TOKEN, or what ~/.stretto/token holds; the file is made where there is none.

    Raises InvalidUsage for a token that could be guessed, and StrettoError for a file that others
    may read or that cannot be used.
    """
    if given := environ.get("STRETTO_TOKEN", ""):
        return _check_token(given, "STRETTO_TOKEN")
    file = home / _FILE
    try:
        if not file.exists():
            _make(file)
        if file.stat().st_mode & 0o077:
            hint = f"chmod 600 {file}; if others may have read it, remove it: a new one is made"
            raise StrettoError(f"{file} may be read by others", hint=hint)
        written = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise StrettoError(f"{file} cannot be used: {error.strerror}") from error
    return _check_token(written, str(file))


def _check_token(token: str, where: str) -> str:
    if len(token) < _FEWEST_LETTERS or len(token) > _MOST_LETTERS:
        hint = f"at least {_FEWEST_LETTERS} random letters; without one, a token is made"
        raise InvalidUsage(f"the token in {where} has {len(token)} letters", hint=hint)
    if not token.isascii() or not token.isprintable() or " " in token:
        hint = "use letters, digits, '-' and '_'"
        raise InvalidUsage(f"the token in {where} cannot stand in a header", hint=hint)
    return token


def _make(file: Path) -> None:
    """Whole or not at all; of two processes that try, one wins: a link fails where a file is."""
    make_private(file.parent)
    draft = file.with_name(f".{_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as opened:
            opened.write(f"{secrets.token_urlsafe(32)}\n")
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink()


def add_token(
    home: Path, name: str, role: str, owner: str = "", seconds: float | None = None
) -> str:
    """A new token of this name and role. It is shown once: only its digest is kept.

    `owner`: to whom the runs belong that it starts; its name, unless somebody has several tokens.
    `seconds`: how long it counts; None: until it is revoked.
    """
    for what, written in (("a token", name), ("an owner", owner or name)):
        if not _NAME.fullmatch(written):
            hint = "letters, digits, '.', '_', '@' and '-', at most 64"
            raise InvalidUsage(f"'{written[:64]}' is not a name for {what}", hint=hint)
    if name == user_name():
        hint = "your own token is in ~/.stretto/token; --owner says whose runs another one starts"
        raise InvalidUsage(f"'{name}' is you", hint=hint)
    token, now = secrets.token_urlsafe(32), time.time()
    expires_at = None if seconds is None else now + seconds
    kept = NamedToken(name, role_named(role).word, digest_of(token), now, owner or name, expires_at)
    with open_ledger(home) as ledger:
        if not ledger.add_token(kept):
            hint = f"revoke it first: stretto serve token revoke {name}"
            raise RefusedToOverwrite(f"there is a token '{name}' already", hint=hint)
    return token


def revoke_token(home: Path, name: str) -> None:
    """A running server refuses it, and the sessions opened with it, from now on."""
    with open_ledger(home) as ledger:
        known = [each.name for each in ledger.tokens()]
        if not ledger.remove_token(name):
            hint = did_you_mean(name, known) or "stretto serve token list shows them"
            raise NotFound(f"there is no token '{name[:64]}'", hint=hint)


def log_out(home: Path, name: str | None, environ: Mapping[str, str]) -> int:
    """End the sessions of browsers: those of one owner, or all. Gives how many there were."""
    with open_ledger(home) as ledger:
        if name is None:
            return ledger.remove_sessions()
        found = [each.digest for each in ledger.tokens() if each.owner == name]
        if name == (user_name() or "owner"):
            found.append(digest_of(own_token(home, environ)))
        if not found:
            hint = "stretto serve token list shows the owners; without a name, all owners are meant"
            raise NotFound(f"no token belongs to '{name[:64]}'", hint=hint)
        return ledger.remove_sessions(found)


def list_tokens(home: Path) -> list[NamedToken]:
    with open_ledger(home) as ledger:
        return ledger.tokens()
