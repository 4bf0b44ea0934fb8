"""Tokens and the audit on their way in and out."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidewheel.core.queue.access import AuditEntry, Scope, TokenView
from tidewheel.server.wire.audit_words import deed_words
from tidewheel.server.wire.forms import Duration, In, Out
from tidewheel.vocabulary import time_text


class TokenIn(In):
    """A token to be made; for everything unless it says for which queues or workflows.

    Who names queues alone makes it for no workflow but those of the runs' queues among them;
    who names workflows alone, for the queues of their runs."""

    name: str
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1)]
    queues: tuple[str, ...] | None = None
    workflows: tuple[str, ...] | None = None
    lasts: Duration | None = None  # null: until it is revoked
    # SHA-256 of a secret that the caller made and keeps; null: the server makes one.
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None


class TokenOut(Out):
    """A stored token; the secret is known to nobody here."""

    number: int
    kind: str
    parent: int | None  # the token that it was made from, and that it ends with
    name: str
    scopes: list[str]
    queues: list[str]
    workflows: list[str]
    created_at: str | None
    expires_at: str | None
    used_at: str | None
    revoked_at: str | None


class NewTokenOut(Out):
    """A new token; ``token`` is shown this once, and null if the caller knows it already."""

    token: str | None
    stored: TokenOut


class TokensOut(Out):
    tokens: list[TokenOut]


class AuditOut(Out):
    """A call that changed something."""

    number: int
    at: str | None
    token: int | None
    who: str
    client: str
    words: str  # what was done, for people
    verb: str
    target: str
    status: int
    correlation: str


class AuditPage(Out):
    """Newest first; ``next`` is what ``before`` is for the page after."""

    entries: list[AuditOut]
    next: int | None


def token_out(view: TokenView) -> TokenOut:
    return TokenOut(
        number=view.number,
        kind=view.kind.value,
        parent=view.parent,
        name=view.name,
        scopes=sorted(view.grant.scopes),
        queues=list(view.grant.queues),
        workflows=list(view.grant.workflows),
        created_at=time_text(view.created_at),
        expires_at=time_text(view.expires_at),
        used_at=time_text(view.used_at),
        revoked_at=time_text(view.revoked_at),
    )


def audit_out(entry: AuditEntry) -> AuditOut:
    return AuditOut(
        number=entry.number,
        at=time_text(entry.at),
        token=entry.token,
        who=entry.who,
        client=entry.client,
        words=deed_words(entry),
        verb=entry.verb,
        target=entry.target,
        status=entry.status,
        correlation=entry.correlation,
    )
