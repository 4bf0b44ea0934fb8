"""What a server refuses is raised again at the client: the same class, words and parts."""

import json

import msgspec
import pytest

from tidewheel import errors
from tidewheel.errors import Refused, TidewheelError, Unavailable
from tidewheel.server import errors as server_errors
from tidewheel.server.errors import problem
from tidewheel.store.remote.transport import error_of

# One of each, with parts that are easily lost on the way.
EXAMPLES = {
    errors.InvalidTask: errors.InvalidTask("a/b", ["queue is empty", "é"]),
    errors.PayloadTooLarge: errors.PayloadTooLarge("spec", 11, 10),
    errors.NotFound: errors.NotFound("task", "nobody's \u202e"),
    errors.Duplicate: errors.Duplicate("id", "a", "b"),
    errors.WrongStatus: errors.WrongStatus("a", "arm", "ready", ["waiting"]),
    errors.NotDue: errors.NotDue("a", 1.5),
    errors.LeaseLost: errors.LeaseLost("a", asked=("worker-1", 2), held=(None, 3)),
    errors.UnknownDependency: errors.UnknownDependency("a", ["b", "c"]),
    errors.DependencyCycle: errors.DependencyCycle(["a", "b", "a"]),
    errors.MessagesMissing: errors.MessagesMissing("a", 1, 3),
    errors.BadSetting: errors.BadSetting("slots", 0, "1 or more"),
    errors.AmbiguousRun: errors.AmbiguousRun("a", ["a/run1", "a/run2"]),
    errors.AlreadyRegistered: errors.AlreadyRegistered(["a/1", "b/2"]),
    errors.UnknownWorkflow: errors.UnknownWorkflow("a", "did you mean 'b'?"),
    errors.RunWaits: errors.RunWaits("pb-2", ["pb-1 (complete)"]),
    errors.RunNeeded: errors.RunNeeded("pb-1", ["pb-2"]),
    errors.RunHeld: errors.RunHeld("a/run1", "host", 3.0),
    errors.RunLost: errors.RunLost("a/run1", 1, 2),
    errors.Aborted: errors.Aborted("pb-1", "aborted by ann: wrong field"),
    errors.NotRunning: errors.NotRunning("a/run1", "stopped"),
    errors.RunStopping: errors.RunStopping("a/run1"),
    errors.NoStore: errors.NoStore("sqlite:///x.db", "x.db"),
    errors.RunUnderWay: errors.RunUnderWay("a/run1", "running", "process 7", "look"),
}


def classes(module):
    return [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, TidewheelError)
    ]


def example(kind):
    """Of a class without parts, one with a sentence of its own."""
    return EXAMPLES[kind] if kind in EXAMPLES else kind("in words")


def over_http(error):
    """The error as a client raises it."""
    told = problem(error, "id")
    return error_of(told.status, msgspec.json.encode(told), "http://server")


@pytest.mark.parametrize(
    "kind",
    dict.fromkeys(one for one in classes(errors) if issubclass(one, Refused)),
)
def test_every_refusal_is_the_same_on_the_other_side(kind):
    """A new class that takes arguments fails here until it has an example."""
    error = example(kind)
    raised = over_http(error)
    assert (type(raised), str(raised), raised.code) == (kind, str(error), error.code)
    assert vars(raised) == vars(error)


@pytest.mark.parametrize(
    "kind", [one for one in classes(errors) if issubclass(one, Unavailable)]
)
def test_what_is_unavailable_there_is_unavailable_here(kind):
    raised = over_http(kind("driver: password=secret"))
    assert type(raised) is kind
    assert "secret" not in str(raised) or kind is not errors.StoreUnreachable


@pytest.mark.parametrize(
    "error",
    [
        errors.NewerSchema(9, 3),
        errors.CorruptStore("/var/secret.db", "disk image"),
        errors.UnsafeStore("/var/secret.db"),
    ],
)
def test_a_store_that_is_unusable_there_may_be_usable_later_and_its_path_stays_there(error):
    raised = over_http(error)
    assert isinstance(raised, Unavailable) and raised.code == error.code
    assert "secret" not in str(raised)


SERVERS = {
    server_errors.BadRequest: server_errors.BadRequest(["a is missing", "b is no number"]),
    server_errors.BodyTooLarge: server_errors.BodyTooLarge(8),
    server_errors.NotAuthenticated: server_errors.NotAuthenticated(),
    server_errors.TooManyFailures: server_errors.TooManyFailures(3.0),
    server_errors.KeyReused: server_errors.KeyReused("k"),
    server_errors.QuotaSpent: server_errors.QuotaSpent("q", 3.0, 1.0),
    server_errors.StreamsHeld: server_errors.StreamsHeld("t", 2),
    server_errors.AttemptOver: server_errors.AttemptOver(),
}


@pytest.mark.parametrize(
    "kind", [one for one in classes(server_errors) if one.__module__ == server_errors.__name__]
)
def test_what_only_servers_refuse_keeps_its_code_and_its_words(kind):
    error = SERVERS[kind] if kind in SERVERS else kind("in words")
    raised = over_http(error)
    told = problem(error, "id")
    assert (raised.code, str(raised)) == (told.code, told.message)
    later = told.status in (408, 429, 503)
    assert isinstance(raised, Unavailable if later else Refused)
    assert getattr(raised, "findings", ()) == told.findings


def test_a_cancelled_task_is_told_by_its_own_code_and_is_a_wrong_status():
    error = errors.WrongStatus("a", "finish", "cancelled", [])
    assert problem(error, "id").code == "cancelled"
    raised = over_http(error)
    assert (type(raised), raised.status, raised.allowed) == (
        errors.WrongStatus,
        "cancelled",
        (),
    )


def test_a_refusal_with_endless_parts_is_told_without_them():
    """The words are cut, too; a client still knows that it was refused, and by which code."""
    raised = over_http(errors.DependencyCycle(["x" * 1000] * 1000))
    assert type(raised) is Refused
    assert (raised.code, len(str(raised))) == ("cycle", 2000)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"code": 1}', b"\xff", b'{"a":1}'])
@pytest.mark.parametrize(
    ("status", "kind"), [(404, Refused), (301, Refused), (502, Unavailable), (500, Unavailable)]
)
def test_an_answer_that_no_tidewheel_server_gave_is_an_error_with_a_hint(body, status, kind):
    error = error_of(status, body, "http://server")
    assert isinstance(error, kind)
    assert "http://server" in str(error) and str(status) in str(error)


def test_parts_that_nobody_here_knows_do_not_matter():
    """A newer server may say more, or less."""
    told = {"code": "not_found", "message": "no", "status": 404}
    for details in ({"kind": "task", "name": "a", "since": 1}, {"kind": "task"}, {}):
        body = json.dumps(told | {"details": details, "more": [1]}).encode()
        error = error_of(404, body, "http://server")
        assert isinstance(error, Refused) and str(error) == "no"
        assert isinstance(error, errors.NotFound) == ("name" in details)


def test_a_bug_of_the_server_says_where_more_is_known_and_may_be_mended_later():
    told = {
        "code": "internal",
        "message": "a mistake of the server",
        "status": 500,
        "id": "f00",
    }
    error = error_of(500, json.dumps(told).encode(), "http://server")
    assert isinstance(error, Unavailable)
    assert (
        str(error)
        == "a mistake of the server; the log of http://server has the details under f00"
    )
