"""What the routes of one server share: the Stretto, who may use it, and what it remembers."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from stretto.problems.errors import PermissionDenied
from stretto.server.tokens import AccessRole, Identity

if TYPE_CHECKING:
    from stretto.assembly.surface import Surface
    from stretto.server.access import AccessControl
    from stretto.server.ledger import ServerLedger

DEFAULT_PORT = 7317
MOST_BODY_BYTES = 8 * 2**20


@dataclass(slots=True)
class Service:
    """Made in the event loop that serves, since a Stretto belongs to one loop."""

    stretto: "Surface"
    access: "AccessControl"
    ledger: "ServerLedger"
    closing: asyncio.Event = field(default_factory=asyncio.Event)  # set when the server is to end


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def _identity(request: Request) -> Identity:
    found: Identity = request.state.identity
    return found


# What a route asks for by the type of an argument.
TheService = Annotated[Service, Depends(_service)]
Asker = Annotated[Identity, Depends(_identity)]


class _Needs:
    def __init__(self, role: AccessRole) -> None:
        self.role = role

    def __call__(self, asker: Asker) -> None:
        if asker.role < self.role:
            raise PermissionDenied(
                f"this needs the role {self.role.word}, and {asker.name} is {asker.role.word}",
                hint="use a token with that role: stretto serve token add NAME --role ROLE",
            )


def role_of(call: object) -> AccessRole | None:
    """The role that a dependency asks for, if it asks for one."""
    return call.role if isinstance(call, _Needs) else None


# Every route has one of these among its dependencies: routers are not taken without.
VIEWER = Depends(_Needs(AccessRole.VIEWER))
OPERATOR = Depends(_Needs(AccessRole.OPERATOR))
AUTHOR = Depends(_Needs(AccessRole.AUTHOR))
ADMIN = Depends(_Needs(AccessRole.ADMIN))
