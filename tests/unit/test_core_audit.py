"""The chain of the audit: what an entry seals, and what breaks it."""

import hashlib
from dataclasses import replace

import pytest

from tidewheel.core.queue.access import AUDIT_BEGIN, AuditEntry, audit_break, audit_digest


def sealed(number, before, **fields):
    given = {"token": None, "who": "änn", "client": "::1", "verb": "POST /x", "target": "a, b"}
    entry = AuditEntry(number=number, at=1.25, status=200, correlation="c", **(given | fields))
    return replace(entry, sha256=audit_digest(before, entry))


FIRST = sealed(1, AUDIT_BEGIN)
SECOND = sealed(2, FIRST.sha256, token=7)
OLD = replace(FIRST, number=4, sha256=None)


def test_a_digest_is_the_hash_of_the_one_before_it_and_all_fields():
    said = f'["{AUDIT_BEGIN}",1,"1.250000",null,"änn","::1","POST /x","a, b",200,"c"]'
    assert FIRST.sha256 == hashlib.sha256(said.encode()).hexdigest()


@pytest.mark.parametrize(
    ("before", "entry"),
    [
        (None, FIRST),
        (FIRST, SECOND),
        (None, SECOND),  # only those before it could tell
        (None, OLD),
        (OLD, replace(OLD, number=9)),  # older than the chain, with gaps
        (OLD, sealed(5, AUDIT_BEGIN)),  # the first of the chain
    ],
)
def test_what_continues_the_chain_is_no_break(before, entry):
    assert audit_break(before, entry) is None


@pytest.mark.parametrize(
    ("before", "entry", "seen"),
    [
        (None, replace(FIRST, who="bob"), "entry 1 or its hash was changed"),
        (FIRST, replace(SECOND, status=403), "entry 2 or its hash was changed"),
        (FIRST, sealed(3, FIRST.sha256), "entry 2 is missing"),
        (SECOND, SECOND, "entry 3 is missing"),
        (FIRST, replace(SECOND, sha256=None), "entry 2 has no hash"),
        (OLD, sealed(6, AUDIT_BEGIN), "entry 5 is missing"),
        (OLD, sealed(5, FIRST.sha256), "entry 5 or its hash was changed"),
    ],
)
def test_a_break_of_the_chain_is_told_with_its_entry(before, entry, seen):
    assert seen in audit_break(before, entry)
