"""Stores tokens, who registered which worker, the audit, and answers to repeated requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tidewheel.api.tasks import Violation
from tidewheel.core.queue.access import (
    AUDIT_BEGIN,
    AuditEntry,
    Grant,
    KeptAnswer,
    NewToken,
    Scope,
    TokenKind,
    TokenView,
    audit_break,
    digest_of_fields,
    names_for,
    sealed_time,
    token_findings,
)
from tidewheel.core.queue.people import SESSIONS_MAX, is_own, is_session
from tidewheel.core.queue.task import Instant, WorkerId
from tidewheel.errors import BadSetting, NotFound
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.rows import Now, storable, worker_number
from tidewheel.store.transaction import STORED, Stored, Transaction, found_one, row_of

KEEP_SECONDS = 86_400.0  # a client that has not repeated its request by then never will
FORGOTTEN_AT_ONCE_MAX = 100
LOGINS_KEPT_SECONDS = 3_600.0  # used or over: only the list of tokens shows them; sessions, too
NUMBER_MAX = 2**63 - 1
AUDIT_PAGE = 1_000


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
        fault = f"token {new.name!r}: {'; '.join(findings)}"
        raise BadSetting("token", new.name, fault=fault)
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


class _Head(NamedTuple):
    """Holds what is known of the last entry of the audit beside the audit."""

    begins: int  # the last entry that is older than the chain
    number: int
    sha256: str


def add_audit(tx: Transaction, entries: Sequence[AuditEntry]) -> AuditEntry:
    """Adds entries to the audit and returns the last; gives each its number, time and digest.

    Whoever else adds some waits until this transaction ends, so that there is one chain.
    """
    [(head, clock)] = tx.pairs("lock_audit_head", _Head, Now)
    at = Instant(round(clock.now, 6))  # what is hashed is what is stored
    number, digest, sealed_at = head.number, head.sha256, sealed_time(at)
    rows: list[dict[str, Any]] = []
    for one in entries:
        number += 1
        row: dict[str, Any] = {
            "token": one.token,
            "who": storable(one.who),
            "client": storable(one.client),
            "verb": one.verb,
            "target": storable(one.target),
            "status": one.status,
            "correlation": one.correlation,
        }
        digest = digest_of_fields(digest, number, sealed_at, **row)
        row["number"], row["sha256"] = number, digest
        rows.append(row)
    tx.tell("add_audit", entries=rows, at=at)
    tx.tell("move_audit_head", number=number, sha256=digest)
    return AuditEntry(at=at, **rows[-1])


def audit(
    tx: Transaction, before: int | None = None, count: int = 100, after: int | None = None
) -> list[AuditEntry]:
    """Returns entries of the audit, newest first; with ``before`` those of lower numbers.

    With ``after`` they are those of higher numbers, in the order in which they were written.
    """
    if after is not None:
        return tx.records("list_audit_after", AuditEntry, after=after, count=count)
    asked = {"before": NUMBER_MAX if before is None else before, "count": count}
    return tx.records("list_audit", AuditEntry, **asked)


def audit_violations(tx: Transaction) -> list[Violation]:
    """Returns the first place at which the audit is no whole chain; nothing if it is one."""
    [[begins, number, digest, newest]] = tx.rows("get_audit_head")
    before = AuditEntry(  # it stands for what is older than the chain
        number=begins,
        token=None,
        who="",
        client="",
        verb="",
        target="",
        status=0,
        correlation="",
        sha256=AUDIT_BEGIN,
    )
    while before.number < number and (page := audit(tx, after=before.number, count=AUDIT_PAGE)):
        for entry in page:
            if seen := audit_break(before, entry):
                return [_broken(before.number + 1, seen)]
            before = entry
            if entry.number == number:
                break
    if before.number < number:
        seen = f"the last entry is {before.number}, but entry {number} was written, too"
        return [_broken(before.number + 1, f"entries are missing at the end: {seen}")]
    if before.sha256 != digest:
        return [_broken(number, f"the last known entry has another hash: {digest}")]
    if newest > number:
        return [_broken(number + 1, "it was not added by a server")]
    return []


def _broken(number: int, seen: str) -> Violation:
    return Violation(invariant="audit", task_id=f"entry {number}", seen=seen)


class _Key(NamedTuple):
    fingerprint: str
    created_at: Instant
    seen_at: Instant | None
    now: Instant


class HeldKeys(NamedTuple):
    """Holds what a store knows of the keys by which servers sign the tokens of jobs."""

    since: Instant  # when the first of them was used
    others: list[str]  # fingerprints of other keys whose servers run


def hold_attempt_key(tx: Transaction, fingerprint: str, alive_seconds: float) -> HeldKeys:
    """Notes that a server runs with a key; others run that said so within some seconds.

    Where others run with another key, nothing is noted.
    """
    others = _other_keys(tx, fingerprint, alive_seconds)
    if not others:
        tx.rows("hold_attempt_key", fingerprint=fingerprint)
    since = min(key.created_at for key in tx.records("list_attempt_keys", _Key))
    return HeldKeys(since, others)


def _other_keys(tx: Transaction, fingerprint: str, alive_seconds: float) -> list[str]:
    return [
        key.fingerprint
        for key in tx.records("list_attempt_keys", _Key)
        if key.fingerprint != fingerprint
        and key.seen_at is not None
        and key.seen_at > key.now - alive_seconds
    ]


def leave_attempt_key(tx: Transaction, fingerprint: str) -> None:
    """Notes that a server with a key has stopped."""
    tx.rows("leave_attempt_key", fingerprint=fingerprint)


def kept_answer(tx: Transaction, token: int, key: str) -> KeptAnswer | None:
    """Returns the answer that is kept for a key of a token; None if there is none."""
    rows = tx.records("get_answer", KeptAnswer, token=token, key=key)
    return rows[0] if rows else None


def keep_answer(tx: Transaction, answer: KeptAnswer) -> None:
    """Keeps an answer for repeated requests, and deletes some that are old."""
    tx.rows("forget_answers", keep_seconds=KEEP_SECONDS, count=FORGOTTEN_AT_ONCE_MAX)
    tx.rows("keep_answer", **asdict(answer))
