"""Names the type of a store, and of the part of it that has a second implementation.

``Store`` is the class that does everything with a database; its methods are listed there and
nowhere else. It has this name here because loading it would load the whole store into every
client. The Protocols are those parts that a store behind a server has as well: ``TaskStore`` in
``ports.tasks``, and ``TokenStore``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tidewheel.core.queue.task import Instant

if TYPE_CHECKING:
    from tidewheel.core.queue.access import AuditEntry, NewToken, TokenView
    from tidewheel.store.store import DatabaseStore as Store
else:
    Store = object

__all__ = ["Store", "TokenStore"]


class TokenStore(Protocol):
    """Knows who may use a store, and what was done."""

    async def create_token(self, new: NewToken) -> TokenView: ...
    async def token(self, number: int) -> tuple[TokenView, Instant]:
        """Returns a token, and the time at the database; NotFound if there is none."""

    async def tokens(self) -> list[TokenView]:
        """Returns all tokens, newest first."""

    async def revoke_token(self, number: int) -> TokenView: ...
    async def audit(self, before: int | None = None, count: int = 100) -> list[AuditEntry]:
        """Returns entries, newest first, those with smaller numbers than ``before``."""
