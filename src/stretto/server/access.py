"""Who is asking? In: the headers of a request. Out: an Identity, or why it is refused.

Host, Origin      the server's own, else a page elsewhere is asking by somebody's browser
Authorization     Bearer TOKEN: the user's own token, or a named one
Cookie            a session, opened once by a login link or a token; to change anything it also
                  needs the header X-CSRF-Token, which pages of other sites cannot know
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from stretto.assembly.run import user_name
from stretto.problems.errors import DiskFull, PermissionDenied
from stretto.server.answers import TooMany, Unauthenticated
from stretto.server.ledger import ServerLedger, StoredSession
from stretto.server.tokens import AccessRole, Identity, digest_of, is_same, role_named

COOKIE = "stretto_session"
CSRF_HEADER = "x-csrf-token"
SESSION_SECONDS = 7 * 86_400
LINK_SECONDS = 600
_MOST_FAILURES = 10  # of one address
_FAILURE_SECONDS = 60.0
_LOG_IN = "send 'Authorization: Bearer TOKEN', or open the login link that stretto serve printed"


@dataclass(frozen=True, slots=True)
class Session:
    identity: Identity
    digest: str
    csrf: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class Caller:
    """The headers of a request that say who asks."""

    host: str
    origin: str | None
    site: str  # Sec-Fetch-Site
    token: str | None
    cookie: str | None
    csrf: str
    address: str
    is_change: bool


class Hosts:
    """The names by which the server may be called. In: Host and Origin. Out: whether they are its own."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {_bare(name) for name in names}

    def check(self, asked: Caller) -> None:
        """Raises PermissionDenied. A page of another site can neither set these headers nor leave
        them out, and a name that was rebound to this machine is still the other site's name."""
        name = _host_of(asked.host)
        if name is None or name not in self._names:
            raise PermissionDenied(
                "this server is not known by that name",
                hint="use 127.0.0.1 or localhost; or name it: stretto serve --allow-host NAME",
            )
        if asked.origin is not None and not self._is_own(asked.origin, asked.host):
            raise PermissionDenied("a page of another origin may not use this server")
        if asked.site not in ("", "same-origin", "none") and (
            asked.is_change or asked.origin is not None
        ):
            raise PermissionDenied("a page of another site may not use this server")

    def _is_own(self, origin: str, host: str) -> bool:
        """The same name and port as the Host header; a proxy in front may speak https."""
        try:
            parts = urlsplit(origin)
            is_bare = not (parts.path or parts.query or parts.fragment or parts.username)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not is_bare:
            return False
        return parts.netloc.lower() == host.lower() and _host_of(parts.netloc) in self._names


def _has_expired(identity: Identity, now: float) -> bool:
    return identity.expires_at is not None and identity.expires_at <= now


@lru_cache(maxsize=64)  # the few names that clients know it by, asked with every request
def _host_of(header: str) -> str | None:
    """The name in a Host header, without its port; None where it is no host."""
    written = header.strip().lower()
    if written.startswith("["):
        name, closed, port = written[1:].partition("]")
        if not closed or (port and not (port[0] == ":" and port[1:].isdecimal())):
            return None
        return _bare(name)
    name, colon, port = written.partition(":")
    if not name or (colon and not port.isdecimal()):
        return None
    return _bare(name)


def _bare(name: str) -> str:
    """One form for a name or an address, however it was written."""
    written = name.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")
    try:
        return str(ip_address(written))
    except ValueError:
        return written


class AccessControl:
    """Knows the tokens and the sessions. For the event loop's thread."""

    def __init__(
        self,
        token: str,
        ledger: ServerLedger,
        hosts: Hosts,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.hosts = hosts
        self._own = Identity(user_name() or "owner", AccessRole.ADMIN, digest_of(token))
        self._ledger = ledger
        self._now = now
        self._seen = -1  # the version of the ledger that the two below are from
        self._is_fresh = False  # it was looked at in this turn of the loop
        self._identities: dict[str, Identity] = {}
        self._sessions: dict[str, Session] = {}
        self._welcome: set[str] = set()  # credentials that have been right before

    @property
    def own(self) -> Identity:
        """The user's own identity."""
        return self._own

    def identify(self, asked: Caller) -> tuple[Identity, Session | None]:
        """Raises PermissionDenied, Unauthenticated and TooMany."""
        self._reload_once_a_turn()
        if asked.token is not None:
            return self._by_token(asked.token, asked.address), None
        session = self._sessions.get(digest_of(asked.cookie)) if asked.cookie else None
        if session is None or session.expires_at <= self._now():
            ended = "the session has ended" if asked.cookie else "a token is needed"
            raise Unauthenticated(ended, hint=_LOG_IN)
        if asked.is_change and not is_same(asked.csrf, session.csrf):
            hint = "GET /api/session gives it; a client without a browser sends its token instead"
            raise PermissionDenied("the header X-CSRF-Token of the session is missing", hint=hint)
        return session.identity, session

    def _by_token(self, token: str, address: str) -> Identity:
        digest = digest_of(token)
        if digest not in self._welcome:
            # Not looked at while the limit holds, so that guesses learn nothing.
            self._check_failures(address)
        found = next(
            (each for known, each in self._identities.items() if is_same(known, digest)), None
        )
        if found is None:
            self._note_failure(address)
            raise Unauthenticated("the token is not valid", hint=_LOG_IN)
        if _has_expired(found, self._now()):
            hint = "stretto serve token revoke and add make a new one"
            raise Unauthenticated("the token has expired", hint=hint)
        self._welcome.add(digest)
        return found

    def is_admitted(self, identity: Identity, session: Session | None) -> bool:
        """Whether who was let in would be let in now: neither revoked nor expired nor logged out."""
        self._reload()
        if session is not None:
            kept = self._sessions.get(session.digest)
            return kept is not None and kept.expires_at > self._now()
        known = self._identities.get(identity.credential)
        return known is not None and not _has_expired(known, self._now())

    def make_link(self, identity: Identity | None = None) -> str:
        """A code that opens one session, once and soon."""
        code, now = secrets.token_urlsafe(24), self._now()
        credential = (identity or self._own).credential
        self._ledger.add_link(digest_of(code), credential, now + LINK_SECONDS, now)
        return code

    def open_by_link(self, code: str, address: str) -> tuple[str, Session]:
        """Raises Unauthenticated and TooMany."""
        self._reload()
        self._check_failures(address)
        credential = self._ledger.take_link(digest_of(code), self._now())
        identity = self._identities.get(credential) if credential else None
        if identity is None or _has_expired(identity, self._now()):
            self._note_failure(address)
            hint = "stretto serve link prints a new one; or log in with your token"
            raise Unauthenticated("this login link was used already, or is too old", hint=hint)
        return self._open(identity)

    def open_by_token(self, token: str, address: str) -> tuple[str, Session]:
        """Raises Unauthenticated and TooMany."""
        self._reload()
        return self._open(self._by_token(token, address))

    def _open(self, identity: Identity) -> tuple[str, Session]:
        """The secret of a new session, for its cookie, and the session."""
        secret, now = secrets.token_urlsafe(32), self._now()
        until = min(now + SESSION_SECONDS, identity.expires_at or float("inf"))
        session = Session(identity, digest_of(secret), secrets.token_urlsafe(24), until)
        kept = StoredSession(session.digest, identity.credential, session.csrf, session.expires_at)
        self._ledger.add_session(kept, now)
        self._sessions[session.digest] = session
        return secret, session

    def close_session(self, session: Session) -> None:
        self._ledger.remove_session(session.digest)
        self._sessions.pop(session.digest, None)

    def close_sessions(self, identity: Identity) -> int:
        """All of whoever asks, with whichever of their tokens each was opened; login links too."""
        self._reload()
        mine = [key for key, each in self._identities.items() if each.name == identity.name]
        self._ledger.remove_links(mine)
        count = self._ledger.remove_sessions(mine)
        self._sessions = {
            digest: each
            for digest, each in self._sessions.items()
            if each.identity.name != identity.name
        }
        return count

    def _reload_once_a_turn(self) -> None:
        """All requests of one turn of the loop had come before it: one look is enough for them."""
        if not self._is_fresh:
            self._reload()
            self._is_fresh = True
            asyncio.get_running_loop().call_soon(self._expect_changes)

    def _expect_changes(self) -> None:
        self._is_fresh = False

    def _reload(self) -> None:
        """Take over what another process has changed: a token that was removed counts no longer."""
        version = self._ledger.version()
        if version == self._seen:
            return
        self._seen = version
        self._identities = {
            each.digest: Identity(each.owner, role_named(each.role), each.digest, each.expires_at)
            for each in self._ledger.tokens()
        }
        self._identities[self._own.credential] = self._own
        self._sessions = {
            each.digest: Session(
                self._identities[each.credential], each.digest, each.csrf, each.expires_at
            )
            for each in self._ledger.sessions(self._now())
            if each.credential in self._identities
        }

    def _check_failures(self, address: str) -> None:
        now = self._now()
        if self._ledger.failures(address, now - _FAILURE_SECONDS, now) >= _MOST_FAILURES:
            hint = f"wait {round(_FAILURE_SECONDS)} seconds"
            raise TooMany("too many wrong tokens from this address", hint=hint)

    def _note_failure(self, address: str) -> None:
        now = self._now()
        with suppress(DiskFull):  # then the answer is still that the token is wrong
            self._ledger.note_failure(address, now, now - _FAILURE_SECONDS)
