"""The audit of a server: refusals and wrong tokens are in it, bounded, as one whole chain."""

import asyncio

import pytest

from tests.support.http_server import running_server
from tidewheel.core.queue.access import AuditEntry
from tidewheel.server.audit_log import REFUSED_MAX, REFUSED_MORE, AuditLog, RefusalTally
from tidewheel.wiring.stores import opened_store


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/tidewheel.db"


def entries_of(admin):
    return admin.get("/audit?limit=1000").json["entries"]


def kept_in(url):
    """What the store has when no server runs, and what `verify` finds."""

    async def look():
        async with opened_store(url) as store:
            return await store.audit(count=1000), await store.verify()

    return asyncio.run(look())


def test_a_refusal_leaves_a_trace_with_who_and_what(url):
    """Security audit, LOW: a submit token that tried to make tokens left nothing; S30."""
    with running_server(url) as server:
        client, admin = server.caller("submit"), server.caller("admin")
        refused = client.post("/tokens", {"name": "mine", "scopes": ["admin"]})
        assert refused.status == 403
        [entry] = entries_of(admin)
        assert entry["correlation"] == refused.headers["x-request-id"]
        assert (entry["token"], entry["who"], entry["client"]) == (1, "a test", "127.0.0.1")
        assert (entry["verb"], entry["status"]) == ("POST /api/v1/tokens", 403)
        assert entry["words"] == "was not allowed to make a token"


def test_looking_where_one_may_not_leaves_a_trace_too(url):
    with running_server(url) as server:
        assert server.caller("read").get("/audit").status == 403
        [entry] = entries_of(server.caller("admin"))
        assert entry["words"] == "was not allowed: GET /api/v1/audit"


def test_a_wrong_token_leaves_a_trace_and_none_at_all_does_not(url):
    """Security audit, LOW: wrong tokens (401) left nothing."""
    with running_server(url) as server:
        admin = server.caller("admin")
        assert server.stranger().get("/tasks").status == 401
        assert entries_of(admin) == []
        wrong = {"Authorization": f"Bearer tw_1_{'x' * 43}"}
        assert server.stranger().get("/tasks", **wrong).status == 401
        [entry] = entries_of(admin)
        assert (entry["token"], entry["who"], entry["status"]) == (None, "(unknown)", 401)
        assert entry["words"] == "showed no valid token: GET /api/v1/tasks"


def test_a_wrong_login_link_leaves_a_trace_and_so_do_sign_ins_and_outs(url):
    with running_server(url) as server:
        admin = server.caller("admin")
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        wrong = server.stranger().ask("POST", "//login", b"code=tw_9_x", **form)
        assert wrong.status == 401
        path = admin.post("/login-links").json["path"]
        code = path.partition("code=")[2].encode()
        entered = server.stranger().ask("POST", "//login", b"code=" + code, **form)
        assert entered.status == 303
        cookie = {"Cookie": entered.headers["set-cookie"].partition(";")[0]}
        session = server.stranger().get("/session", **cookie).json
        token = {"X-CSRF-Token": session["csrf"]}
        assert server.stranger().post("/logout", **cookie, **token).status == 204
        told = [entry["words"] for entry in entries_of(admin)][::-1]
        assert told == [
            "showed no valid token, to log in",
            "made a link to log in with",
            "logged in",
            "logged out",
        ]


def test_what_is_refused_again_and_again_is_counted_and_written_once(url):
    """A stranger cannot fill the disk with entries of the audit."""
    with running_server(url, failures_max=5) as server:
        reader, admin = server.caller("read"), server.caller("admin")
        assert entries_of(admin) == []  # so that it is known before others are slowed down
        for _ in range(20):
            assert reader.get("/tokens").status == 403
        wrong = {"Authorization": f"Bearer tw_1_{'x' * 43}"}
        seen = {server.stranger().get("/tasks", **wrong).status for _ in range(20)}
        assert seen == {401, 429}
        assert len(entries_of(admin)) == 2
    found, violations = kept_in(url)
    counted = {(one.token, one.target) for one in found if one.verb == REFUSED_MORE}
    assert counted == {
        (1, "19 more: GET /api/v1/tokens"),
        (None, "19 more: GET /api/v1/tasks"),
    }
    assert len(found) == 4 and violations == []


def entry(client="127.0.0.1"):
    return AuditEntry(
        token=None,
        who="(unknown)",
        client=client,
        verb="GET /tasks",
        target="",
        status=401,
        correlation="c",
    )


def test_refusals_of_many_addresses_are_counted_together():
    now = [0.0]
    tally = RefusalTally(lambda: now[0])
    written = [tally.note(entry(str(n)), n) for n in range(REFUSED_MAX + 1000)]
    assert [one.client for one in written if one] == [str(n) for n in range(REFUSED_MAX)]
    now[0] = 300.0
    assert tally.note(entry("late"), "late") is None
    [together] = tally.counted(before=0.0)
    assert (together.client, together.target) == ("(others)", "1001 more: GET /tasks")
    assert tally.note(entry("later"), "later") is not None


def test_entries_that_come_together_are_written_in_few_transactions(url):
    """What many servers write in turn must not wait for one commit per change."""
    batches = []

    async def write():
        async with opened_store(url) as store:
            add = store.add_audit

            class Watched:
                async def add_audit(self, entries):
                    batches.append(len(entries))
                    return await add(entries)

            log = AuditLog(Watched())
            await asyncio.gather(*(log.add(entry(str(n))) for n in range(100)))
            return [one.client for one in await store.audit(count=1000)][::-1]

    assert asyncio.run(write()) == [str(n) for n in range(100)]
    assert sum(batches) == 100 and len(batches) <= 2
