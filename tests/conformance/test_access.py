"""Tokens, whose workers are whose, the audit, and answers to repeated requests."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.conformance.door import new_task
from tidewheel.core.queue.access import (
    AUDIT_BEGIN,
    AuditEntry,
    Grant,
    Identity,
    KeptAnswer,
    NewToken,
    Scope,
    TokenKind,
    audit_digest,
)
from tidewheel.errors import BadSetting, Duplicate, NotFound

DAY = 86_400.0


def token(name="deploy", digest="a" * 64, lasts=None, **grant):
    given = Grant(**({"scopes": frozenset({Scope.READ}), "names": ("*",)} | grant))
    return NewToken(name=name, digest=digest, grant=given, lasts_seconds=lasts)


def test_a_token_is_kept_with_what_it_allows_and_only_the_hash_of_its_secret(store):
    """S4."""
    scopes = frozenset({Scope.SUBMIT, Scope.WORKER})
    made = store.create_token(token(scopes=scopes, names=("a*", "queue:b", "nightly")))
    found, _ = store.token(made.number)
    assert found == made
    assert (found.name, found.digest) == ("deploy", "a" * 64)
    assert found.grant.scopes == scopes
    assert found.grant.names == ("a*", "queue:b", "nightly")
    assert (found.expires_at, found.used_at, found.revoked_at) == (None, None, None)


def test_a_token_that_lasts_is_valid_until_its_time(store, clock):
    made = store.create_token(token(lasts=60.0))
    clock.advance(59)
    found, now = store.token(made.number)
    assert found.is_valid(now)
    clock.advance(1)
    found, now = store.token(made.number)
    assert not found.is_valid(now)


def test_a_revoked_token_is_never_valid_again(store, clock):
    made = store.create_token(token())
    first = store.revoke_token(made.number)
    clock.advance(5)
    assert store.revoke_token(made.number) == first
    found, now = store.token(made.number)
    assert not found.is_valid(now)


def test_tokens_are_listed_newest_first_with_their_last_use(store, clock):
    first = store.create_token(token("one", "1" * 64))
    store.create_token(token("two", "2" * 64))
    clock.advance(3)
    store.touch_token(first.number)
    assert [(view.name, view.used_at) for view in store.tokens()] == [
        ("two", None),
        ("one", clock.now),
    ]


def test_a_login_or_session_that_is_over_is_forgotten_when_another_is_made(store, clock):
    made = {
        kind: store.create_token(replace(token(digest=kind[0] * 64, lasts=300.0), kind=kind))
        for kind in TokenKind
    }
    clock.advance(3_000)
    store.create_token(replace(token(digest="d" * 64, lasts=300.0), kind=TokenKind.LOGIN))
    assert store.token(made[TokenKind.LOGIN].number)  # people may still ask what it was
    clock.advance(1_000)
    store.create_token(replace(token(digest="e" * 64, lasts=300.0), kind=TokenKind.LOGIN))
    with pytest.raises(NotFound):
        store.token(made[TokenKind.LOGIN].number)
    left = sorted(view.digest[0] for view in store.tokens())
    assert left == ["b", "d", "e"]


def test_a_person_who_signed_in_is_kept_with_the_token(store):
    ada = Identity(person="ada@example.org", source="oidc", groups=("team-a", "all"))
    made = store.create_token(replace(token("ada@example.org", lasts=60.0), identity=ada))
    assert store.token(made.number)[0].identity == ada
    assert store.tokens()[0].identity == store.sessions()[0].identity == ada


def test_sessions_are_those_of_browsers_and_of_people_that_are_not_over(store, clock):
    def made(digest, kind=TokenKind.SESSION, identity=None, lasts=300.0):
        new = replace(token(digest=digest * 64, lasts=lasts), kind=kind, identity=identity)
        return store.create_token(new).number

    ada = Identity(person="ada", source="oidc")
    bearer = made("b", TokenKind.BEARER)
    browser, signed_in = made("c"), made("d", TokenKind.BEARER, ada)
    made("e", lasts=10.0)
    made("f", TokenKind.LOGIN, ada)
    clock.advance(11)
    assert [one.number for one in store.sessions()] == [signed_in, browser]
    assert store.end_session(browser).revoked_at is not None
    assert [one.number for one in store.sessions()] == [signed_in]
    for number in (bearer, 999):
        with pytest.raises(NotFound):
            store.end_session(number)


def test_a_token_ends_with_the_one_it_was_made_from(store):
    """S4, S8: a session is over when its maker's token is."""
    parent = store.create_token(token(lasts=60.0))
    child = store.create_token(
        replace(
            token(digest="b" * 64, lasts=3600.0), kind=TokenKind.SESSION, parent=parent.number
        )
    )
    endless = store.create_token(replace(token(digest="c" * 64), parent=parent.number))
    assert child.expires_at == endless.expires_at == parent.expires_at
    store.revoke_token(parent.number)
    for one in (child, endless):
        found, now = store.token(one.number)
        assert not found.is_valid(now)
    assert all(view.revoked_at is not None for view in store.tokens())


def test_a_login_is_used_up_once_and_in_time(store, clock):
    """S8."""
    login = store.create_token(replace(token(lasts=60.0), kind=TokenKind.LOGIN))
    late = store.create_token(replace(token(digest="b" * 64, lasts=60.0), kind=TokenKind.LOGIN))
    bearer = store.create_token(token(digest="c" * 64))
    assert [store.spend_token(login.number) for _ in range(2)] == [True, False]
    assert store.spend_token(bearer.number) is False
    assert store.spend_token(99) is False
    clock.advance(60)
    assert store.spend_token(late.number) is False
    found, now = store.token(login.number)
    assert not found.is_valid(now)


@pytest.mark.parametrize("number", [0, -1, 7, 2**63, 10**30])
def test_a_token_that_is_not_there_is_not_found(store, number):
    with pytest.raises(NotFound):
        store.token(number)
    with pytest.raises(NotFound):
        store.revoke_token(number)


@pytest.mark.parametrize(
    "bad",
    [
        token(name=""),
        token(name="a\nb"),
        token(scopes=frozenset()),
        token(lasts=0.0),
        token(lasts=float("nan")),
        token(names=()),
        token(names=("a\x1b",)),
        token(names=("x",) * 101),
    ],
)
def test_a_token_that_breaks_a_rule_is_not_stored(store, bad):
    with pytest.raises(BadSetting):
        store.create_token(bad)
    assert store.tokens() == []


def test_a_worker_belongs_to_the_token_that_brought_it(store):
    """S6."""
    one = store.create_token(token("one", "1" * 64))
    two = store.create_token(token("two", "2" * 64))
    worker, other = store.hire("w"), store.hire("v")
    store.assign_worker(worker, one.number)
    store.assign_worker(worker, two.number)
    assert store.worker_token(worker) == one.number
    assert store.worker_token(other) is None


def entry(status=200, target="", **fields):
    given = {"token": 1, "who": "me", "client": "127.0.0.1", "verb": "POST /x"}
    return AuditEntry(status=status, target=target, correlation="c", **(given | fields))


def test_the_audit_is_read_newest_first_page_by_page(store, clock):
    """S30."""
    for status in (201, 200, 409):
        clock.advance(1)
        store.add_audit([entry(status, "a\0b", token=None)])
    page = store.audit(count=2)
    assert [(entry.status, entry.at) for entry in page] == [
        (409, clock.now),
        (200, clock.now - 1),
    ]
    assert [entry.status for entry in store.audit(before=page[-1].number)] == [201]


def test_each_entry_of_the_audit_is_sealed_with_the_one_before_it(store, clock):
    """Security audit, LOW: no chain of hashes."""
    store.add_audit([entry(target="one")])
    clock.advance(0.123_456_789)
    last = store.add_audit([entry(target="two"), entry(403, "dr\xe4i\ud800", who="\u2603")])
    newest, second, first = store.audit()
    assert newest == last
    assert [one.number for one in (first, second, newest)] == [1, 2, 3]
    assert first.sha256 == audit_digest(AUDIT_BEGIN, first)
    assert second.sha256 == audit_digest(first.sha256, second)
    assert newest.sha256 == audit_digest(second.sha256, newest)
    assert store.verify() == []


def test_tasks_are_stored_with_what_the_audit_tells_of_them_or_not_at_all(store):
    store.put("old")
    other = new_task("old", handler="another")
    tasks = [new_task("new"), new_task("old"), other]

    def told(answers):
        return [
            entry(201 if one.created else 200, one.id) for one in answers if not one.refused
        ]

    answers, last = store.submit_audited(tasks, told)
    assert [(one.id, one.created) for one in answers if not one.refused] == [
        ("new", True),
        ("old", False),
    ]
    assert isinstance(answers[2].refused, Duplicate)
    assert [(one.target, one.status) for one in store.audit()] == [("old", 200), ("new", 201)]
    assert store.audit()[0] == last
    assert store.submit_audited([other], told)[1] is None  # there is nothing to tell
    with pytest.raises(ZeroDivisionError):
        store.submit_audited([new_task("lost")], lambda answers: 1 // (len(answers) - 1))
    with pytest.raises(NotFound):
        store.get("lost")
    assert store.audit()[0] == last


def test_an_entry_of_another_time_caller_or_place_has_another_digest():
    first = entry(number=1, at=1.5)
    others = [
        *(replace(first, at=1.500_001), replace(first, number=2), replace(first, token=None)),
        *(replace(first, **{name: "x"}) for name in ("who", "client", "verb", "target")),
        *(replace(first, correlation="x"), replace(first, status=201)),
    ]
    digests = {audit_digest(AUDIT_BEGIN, one) for one in (first, *others)}
    digests.add(audit_digest("1" * 64, first))
    assert len(digests) == len(others) + 2


FORGED = {
    "changed": ("UPDATE {t}audit SET who = 'somebody else' WHERE number = 2", "entry 2"),
    "gone": ("DELETE FROM {t}audit WHERE number = 2", "entry 2"),
    "cut off": ("DELETE FROM {t}audit WHERE number > 3", "entry 4"),
    "emptied": ("DELETE FROM {t}audit", "entry 1"),
    "moved": ("UPDATE {t}audit_head SET number = 3", "entry 3"),
    "added": (
        "INSERT INTO {t}audit (number, at, who, client, verb, target, status, correlation, "
        "sha256) SELECT 6, at, who, client, verb, target, status, correlation, sha256 "
        "FROM {t}audit WHERE number = 5",
        "entry 6",
    ),
}


@pytest.mark.parametrize("how", FORGED)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_verify_names_the_first_entry_at_which_the_audit_is_broken(world, how):
    """Security audit, LOW: DELETE was possible, and `verify` saw no gap."""
    store = world.open()
    store.add_audit([entry(target=str(number)) for number in range(5)])
    unguard(world)
    forge, first = FORGED[how]
    world.execute(forge.format(t="" if world.kind == "sqlite" else "tidewheel."))
    [violation] = store.verify()
    assert (violation.invariant, violation.task_id) == ("audit", first)
    assert violation.seen


def unguard(world):
    """As somebody does who may change the schema."""
    if world.kind == "postgres":
        for table in ("audit", "audit_head"):
            world.execute(f"ALTER TABLE tidewheel.{table} DISABLE TRIGGER USER")
        return
    found = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'audit%'"
    for (name,) in world.execute(found):
        world.execute(f"DROP TRIGGER {name}")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t}audit SET who = 'somebody else'",
        "DELETE FROM {t}audit",
        "UPDATE {t}audit_head SET number = 0",
        "UPDATE {t}audit_head SET begins = number",
        "DELETE FROM {t}audit_head",
        "TRUNCATE {t}audit",
        "TRUNCATE {t}audit_head",
    ],
)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nobody_can_change_the_audit(world, statement):
    if world.kind == "sqlite" and "TRUNCATE" in statement:
        return  # it has no such statement
    store = world.open()
    store.add_audit([entry()])
    with pytest.raises(Exception, match="only added to"):
        world.execute(statement.format(t="" if world.kind == "sqlite" else "tidewheel."))
    assert len(store.audit()) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_entry_without_its_hash_is_not_taken(world):
    t = "" if world.kind == "sqlite" else "tidewheel."
    with pytest.raises(Exception, match="needs its hash"):
        world.execute(
            f"INSERT INTO {t}audit (number, at, who, client, verb, target, status, correlation)"
            " VALUES (1, 0, 'a', 'b', 'c', 'd', 200, 'e')"
        )


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_servers_that_write_at_the_same_time_write_one_chain(world):
    doors = [world.open() for _ in range(4)]

    def write(door):
        for number in range(10):
            door.add_audit([entry(target=str(number))] * (1 + number % 3))

    with ThreadPoolExecutor(len(doors)) as pool:
        list(pool.map(write, doors))
    found = doors[0].audit(count=1000)
    assert [one.number for one in found] == list(range(len(found), 0, -1))
    assert len(found) == 4 * sum(1 + number % 3 for number in range(10))
    assert doors[0].verify() == []


def test_a_server_hears_of_others_that_run_with_another_key(store, clock):
    one, two = "1" * 64, "2" * 64
    begun = clock.now
    assert store.hold_attempt_key(one, 60.0) == (begun, [])
    clock.advance(30)
    assert store.hold_attempt_key(one, 60.0) == (begun, [])
    clock.advance(59)
    assert store.hold_attempt_key(two, 60.0) == (begun, [one])
    assert store.hold_attempt_key(one, 60.0) == (begun, []), "the other was not let in"
    clock.advance(60)
    assert store.hold_attempt_key(two, 60.0) == (begun, []), "nobody said anything for long"
    assert store.hold_attempt_key(one, 60.0) == (begun, [two])
    store.leave_attempt_key(two)
    store.leave_attempt_key("3" * 64)
    assert store.hold_attempt_key(one, 60.0) == (begun, [])


def answer(key="k", status=201, token=1):
    return KeptAnswer(token=token, key=key, fingerprint="f", status=status, body="{}")


def test_the_first_answer_to_a_key_is_kept_for_a_day(store, clock):
    """T12."""
    store.keep_answer(answer())
    store.keep_answer(answer(status=500))
    assert store.kept_answer(1, "k") == answer()
    assert store.kept_answer(2, "k") is None
    clock.advance(DAY + 1)
    store.keep_answer(answer(key="another"))
    assert store.kept_answer(1, "k") is None
    assert store.kept_answer(1, "another") == answer(key="another")
