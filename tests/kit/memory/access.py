"""Queries of the memory store about tokens, audit and kept answers."""

from __future__ import annotations

from typing import Any

from tests.kit.memory.tables import Record, Tables
from tidewheel.store.transaction import Row

__all__ = [
    "add_audit",
    "assign_worker",
    "forget_answers",
    "forget_logins",
    "get_answer",
    "get_audit_head",
    "get_token",
    "get_worker_token",
    "hold_attempt_key",
    "insert_token",
    "keep_answer",
    "leave_attempt_key",
    "list_attempt_keys",
    "list_audit",
    "list_audit_after",
    "list_tokens",
    "lock_audit_head",
    "move_audit_head",
    "revoke_token",
    "spend_token",
    "touch_token",
]

_TOKEN = (
    *("number", "kind", "parent", "name", "digest", "scopes", "names"),
    *("created_at", "expires_at", "used_at", "revoked_at", "person", "source", "groups"),
)
_AUDIT = (
    *("number", "at", "token", "who", "client", "verb", "target", "status", "correlation"),
    "sha256",
)
_ANSWER = ("token", "key", "fingerprint", "status", "body")


def insert_token(t: Tables, *, lasts_seconds: float | None, **row: Any) -> list[Row]:
    number, now = t.next_number("token"), t.clock()
    expires_at = None if lasts_seconds is None else now + lasts_seconds
    times = {"created_at": now, "expires_at": expires_at, "used_at": None, "revoked_at": None}
    t.token[number] = row | times | {"number": number}
    return [(number,)]


def get_token(t: Tables, number: int) -> list[Row]:
    row = t.token.get(number)
    return [] if row is None else [(*_token_row(t, row), t.clock())]


def list_tokens(t: Tables) -> list[Row]:
    return [_token_row(t, row) for _, row in sorted(t.token.items())[::-1]]


def _token_row(t: Tables, row: Record) -> Row:
    """It ends with the one that it was made from."""
    parent = t.token.get(row["parent"], {})
    ends = [row["expires_at"], parent.get("expires_at")]
    effective = {
        "expires_at": min((end for end in ends if end is not None), default=None),
        "revoked_at": row["revoked_at"] or parent.get("revoked_at"),
    }
    return tuple((row | effective)[name] for name in _TOKEN)


def forget_logins(t: Tables, *, keep_seconds: float, count: int) -> list[Row]:
    now = t.clock()
    over = [
        number
        for number, row in sorted(t.token.items())
        if (row["kind"] != "bearer" or row["person"] is not None)
        and row["created_at"] < now - keep_seconds
        and (row["revoked_at"] is not None or (row["expires_at"] or now + 1) <= now)
    ]
    for number in over[:count]:
        del t.token[number]
    return []


def revoke_token(t: Tables, number: int) -> list[Row]:
    if number not in t.token:
        return []
    if t.token[number]["revoked_at"] is None:
        t.update(t.token, number, revoked_at=t.clock())
    return [(number,)]


def spend_token(t: Tables, number: int) -> list[Row]:
    row, now = t.token.get(number), t.clock()
    if row is None or row["kind"] != "login" or row["revoked_at"] is not None:
        return []
    if row["expires_at"] is not None and row["expires_at"] <= now:
        return []
    t.update(t.token, number, revoked_at=now, used_at=now)
    return [(number,)]


def touch_token(t: Tables, number: int) -> list[Row]:
    if number in t.token:
        t.update(t.token, number, used_at=t.clock())
    return []


def assign_worker(t: Tables, *, worker_number: int, token: int) -> list[Row]:
    if worker_number not in t.worker_token:
        t.worker_token[worker_number] = token
    return []


def get_worker_token(t: Tables, worker_number: int) -> list[Row]:
    token = t.worker_token.get(worker_number)
    return [] if token is None else [(token,)]


def lock_audit_head(t: Tables) -> list[Row]:
    return [(*_head(t), t.clock())]


def get_audit_head(t: Tables) -> list[Row]:
    return [(*_head(t), max(t.audit, default=0))]


def _head(t: Tables) -> Row:
    """It is the last entry itself: nobody can cut anything off here."""
    number = max(t.audit, default=0)
    return 0, number, t.audit[number]["sha256"] if number else "0" * 64


def move_audit_head(t: Tables, *, number: int, sha256: str) -> list[Row]:
    assert (0, number, sha256) == _head(t)
    return []


def add_audit(t: Tables, *, entries: list[Any], at: float) -> list[Row]:
    for one in entries:
        t.audit[one["number"]] = one | {"at": at}
    return []


def list_audit(t: Tables, *, before: int, count: int) -> list[Row]:
    found = [row for number, row in sorted(t.audit.items())[::-1] if number < before]
    return [tuple(row[name] for name in _AUDIT) for row in found[:count]]


def list_audit_after(t: Tables, *, after: int, count: int) -> list[Row]:
    found = [row for number, row in sorted(t.audit.items()) if number > after]
    return [tuple(row[name] for name in _AUDIT) for row in found[:count]]


def hold_attempt_key(t: Tables, fingerprint: str) -> list[Row]:
    now = t.clock()
    created_at, _ = t.attempt_key.get(fingerprint, (now, None))
    t.attempt_key[fingerprint] = (created_at, now)
    return []


def leave_attempt_key(t: Tables, fingerprint: str) -> list[Row]:
    if fingerprint in t.attempt_key:
        t.attempt_key[fingerprint] = (t.attempt_key[fingerprint][0], None)
    return []


def list_attempt_keys(t: Tables) -> list[Row]:
    return [(key, *times, t.clock()) for key, times in sorted(t.attempt_key.items())]


def get_answer(t: Tables, *, token: int, key: str) -> list[Row]:
    row = t.answer.get((token, key))
    return [] if row is None else [tuple(row[name] for name in _ANSWER)]


def keep_answer(t: Tables, **row: Any) -> list[Row]:
    place = (row["token"], row["key"])
    if place not in t.answer:
        t.answer[place] = row | {"at": t.clock()}
    return []


def forget_answers(t: Tables, *, keep_seconds: float, count: int) -> list[Row]:
    before = t.clock() - keep_seconds
    old = sorted((row["at"], place) for place, row in t.answer.items() if row["at"] < before)
    for _, place in old[:count]:
        del t.answer[place]
    return []
