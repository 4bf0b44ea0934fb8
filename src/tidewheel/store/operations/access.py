"""Stores tokens, who registered which worker, the audit, and answers to repeated requests."""

from __future__ import annotations

import json
from dataclasses import asdict

from tidewheel.core.queue.access import (
    AuditEntry,
    Grant,
    KeptAnswer,
    NewToken,
    Scope,
    TokenKind,
    TokenView,
    names_for,
    token_findings,
)
from tidewheel.core.queue.people import SESSIONS_MAX, is_own, is_session
from tidewheel.core.queue.task import Instant, WorkerId
from tidewheel.errors import BadSetting, NotFound
from tidewheel.store.rows import Now, storable, worker_number
from tidewheel.store.transaction import STORED, Stored, Transaction, found_one, row_of

KEEP_SECONDS = 86_400.0  # a client that has not repeated its request by then never will
FORGOTTEN_AT_ONCE_MAX = 100
LOGINS_KEPT_SECONDS = 3_600.0  # used or over: only the list of tokens shows them; sessions, too
NUMBER_MAX = 2**63 - 1


def _names(text: str) -> tuple[str, ...]:
    """Returns the patterns of a token; earlier versions kept two lists in place of one."""
    kept = json.loads(text)
    if isinstance(kept, list):
        return tuple(kept)
    return names_for(tuple(kept["queues"]), tuple(kept["workflows"]))


STORED[frozenset[Scope]] = Stored(
    lambda text: frozenset(map(Scope, json.loads(text))),
    lambda scopes: json.dumps(sorted(scopes)),
)
STORED[Grant, "names"] = Stored(_names, json.dumps)


def create_token(tx: Transaction, new: NewToken) -> TokenView:
    """Stores a new token and returns it; raises BadSetting if it breaks a rule."""
    if findings := token_findings(new):
        raise BadSetting("token", new.name, "; ".join(findings))
    if new.kind is not TokenKind.BEARER or new.identity is not None:
        keep, count = LOGINS_KEPT_SECONDS, FORGOTTEN_AT_ONCE_MAX
        tx.rows("forget_logins", keep_seconds=keep, count=count)
    [[number]] = tx.rows("insert_token", **row_of(new))
    found, _ = token(tx, number)
    if is_session(found):
        own = [one for one in sessions(tx) if is_own(one, found)]
        for oldest in own[SESSIONS_MAX:]:
            tx.rows("revoke_token", number=oldest.number)
    return found


def token(tx: Transaction, number: int) -> tuple[TokenView, Instant]:
    """Returns a token, and the database's time; raises NotFound if there is no such token."""
    is_number = 0 < number <= NUMBER_MAX
    rows = tx.pairs("get_token", TokenView, Now, number=number) if is_number else []
    found, clock = found_one(rows, "token", str(number))
    return found, clock.now


def tokens(tx: Transaction) -> list[TokenView]:
    """Returns every token, newest first."""
    return tx.records("list_tokens", TokenView)


def sessions(tx: Transaction) -> list[TokenView]:
    """Returns the tokens of all who are signed in now, newest first."""
    now = Instant(tx.rows("get_now")[0][0])
    return [one for one in tokens(tx) if is_session(one) and one.is_valid(now)]


def end_session(tx: Transaction, number: int) -> TokenView:
    """Ends a session and returns its token; raises NotFound for one that is no session."""
    if not is_session(token(tx, number)[0]):
        raise NotFound("session", str(number))
    return revoke_token(tx, number)


def revoke_token(tx: Transaction, number: int) -> TokenView:
    """Revokes a token and returns it; asking again changes nothing."""
    if not 0 < number <= NUMBER_MAX or not tx.rows("revoke_token", number=number):
        raise NotFound("token", str(number))
    return token(tx, number)[0]


def spend_token(tx: Transaction, number: int) -> bool:
    """Uses up a login; returns False if it was used before, is over, or is no login."""
    return bool(tx.rows("spend_token", number=number))


def touch_token(tx: Transaction, number: int) -> None:
    """Notes that a token was used now."""
    tx.rows("touch_token", number=number)


def assign_worker(tx: Transaction, worker: WorkerId, token: int) -> None:
    """Notes which token registered a worker; one that was noted before stays."""
    tx.rows("assign_worker", worker_number=worker_number(worker), token=token)


def worker_token(tx: Transaction, worker: WorkerId) -> int | None:
    """Returns the number of the token that registered a worker; None if none did."""
    rows = tx.rows("get_worker_token", worker_number=worker_number(worker))
    return rows[0][0] if rows else None


def add_audit(tx: Transaction, entry: AuditEntry) -> None:
    """Adds an entry to the audit; the store gives it its number and time."""
    given = asdict(entry)
    del given["number"], given["at"]
    given["target"] = storable(entry.target)
    tx.rows("add_audit", **given)


def audit(tx: Transaction, before: int | None = None, count: int = 100) -> list[AuditEntry]:
    """Returns entries of the audit, newest first; with ``before`` those of lower numbers."""
    asked = {"before": NUMBER_MAX if before is None else before, "count": count}
    return tx.records("list_audit", AuditEntry, **asked)


def kept_answer(tx: Transaction, token: int, key: str) -> KeptAnswer | None:
    """Returns the answer that is kept for a key of a token; None if there is none."""
    rows = tx.records("get_answer", KeptAnswer, token=token, key=key)
    return rows[0] if rows else None


def keep_answer(tx: Transaction, answer: KeptAnswer) -> None:
    """Keeps an answer for repeated requests, and deletes some that are old."""
    tx.rows("forget_answers", keep_seconds=KEEP_SECONDS, count=FORGOTTEN_AT_ONCE_MAX)
    tx.rows("keep_answer", **asdict(answer))
