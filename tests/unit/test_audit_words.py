"""What a call did, in words for people: every route that the audit keeps has them."""

import pytest

from tidewheel.core.queue.access import AuditEntry
from tidewheel.server.resources.tokens import DEEDS, deed_words
from tidewheel.server.route_table import ROUTES

RUN = "/api/v1/runs/{run}"


def words(verb, target, status=200):
    entry = AuditEntry(
        token=1,
        who="alice",
        client="127.0.0.1",
        verb=verb,
        target=target,
        status=status,
        correlation="",
    )
    return deed_words(entry)


def test_the_routes_that_the_audit_keeps_are_those_that_have_words():
    kept = {route.verb for route in ROUTES if route.changes and route.audited}
    assert set(DEEDS) == kept


@pytest.mark.parametrize("verb", sorted(DEEDS))
def test_words_are_found_whatever_was_kept(verb):
    for target in ("", "a", "a, b", "{what}, {0.x}, }{", "a, b, c, d"):
        for status in (200, 403, 409, 503):
            said = words(verb, target, status)
            assert said and "  " not in said and said == said.strip()


@pytest.mark.parametrize(
    ("verb", "target", "said"),
    [
        (f"POST {RUN}/trigger", "forecast/run1, 3/model", "triggered 3/model in forecast/run1"),
        (f"POST {RUN}/hold", "forecast/run1, 3/a, 3/b", "held 3/a, 3/b in forecast/run1"),
        (f"POST {RUN}/hold", "forecast/run1", "held tasks in forecast/run1"),
        (f"POST {RUN}/stop", "forecast/run1", "stopped forecast/run1"),
        ("POST /api/v1/runs", "forecast/run1", "began forecast/run1"),
        ("POST /api/v1/tasks", "1 tasks, t1", "submitted task t1"),
        ("POST /api/v1/tasks", "2 tasks, t1, t2", "submitted 2 tasks: t1, t2"),
        ("POST /api/v1/tasks/cancel", "9 tasks, a, b", "cancelled 9 tasks: a, b, …"),
        (
            "DELETE /api/v1/workflows/{name}/{version}",
            "vis, 1.0.0",
            "removed the workflow vis/1.0.0",
        ),
        ("POST /login", "", "logged in"),
        ("POST /api/v1/tokens", "token 7", "made token 7"),
        ("POST /of/another/version", "x", "POST /of/another/version: x"),
    ],
)
def test_a_call_is_told_as_people_tell_it(verb, target, said):
    assert words(verb, target) == said


def test_what_was_refused_is_not_told_as_done():
    asked = (f"POST {RUN}/trigger", "forecast/run1, 3/model")
    what = "trigger 3/model in forecast/run1"
    assert words(*asked, 403) == f"was not allowed to {what}"
    assert words(*asked, 409) == f"wanted to {what}, which was refused"
    assert words(*asked, 503) == f"could not {what}"
