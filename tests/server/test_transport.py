"""How a client speaks to a server, and to what is none: requests, time-outs, broken answers."""

import asyncio
import json

import pytest

from tests.support.scripted_server import CLOSE, HANG_UP, OK, SILENCE, scripted
from tidewheel.config import StoreSettings
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import ClaimRequest, Report
from tidewheel.core.queue.task import NewTask
from tidewheel.errors import BadSetting, NotFound, Refused, StoreUnreachable, Unavailable
from tidewheel.store.remote import open_remote_store
from tidewheel.store.remote.connection import path_of
from tidewheel.store.remote.transport import Transport


def ask(url, *requests, token=None, **options):
    """Each request in turn over one transport: what came, or what was raised."""

    async def conversation():
        transport = Transport(url, token, seconds_max=options.pop("seconds_max", 5.0))
        answers = []
        for method, path in requests:
            try:
                answers.append(await transport.call(method, path, **options))
            except Exception as error:
                answers.append(error)
        await transport.close()
        return answers

    return asyncio.run(conversation())


GET, POST = ("GET", "/tasks"), ("POST", "/tasks")


def test_one_connection_carries_one_request_after_the_other():
    with scripted(OK, OK, OK) as (url, heard):
        answers = ask(url, GET, POST, GET)
    assert [answer.json for answer in answers] == [{}, {}, {}]
    assert heard == [f"{method} /api/v1/tasks HTTP/1.1" for method in ("GET", "POST", "GET")]


def test_a_connection_that_was_closed_while_nobody_used_it_is_replaced():
    with scripted(OK, CLOSE, OK, CLOSE, OK) as (url, heard):
        assert [answer.status for answer in ask(url, GET, GET, GET)] == [200, 200, 200]
    assert len(heard) == 3


@pytest.mark.parametrize(
    ("request_", "options", "repeated"),
    [
        (GET, {}, True),
        (POST, {}, False),
        (POST, {"key": "k"}, True),
        (POST, {"again": True}, True),
        (GET, {"again": False}, False),
    ],
)
def test_a_request_that_was_heard_but_not_answered_is_repeated_only_if_that_is_safe(
    request_, options, repeated
):
    """The server got it on a connection from before, and broke off without a byte."""
    with scripted(OK, HANG_UP, OK) as (url, heard):
        first, second = ask(url, request_, request_, **options)
    assert first.status == 200
    assert len(heard) == (3 if repeated else 2)
    assert isinstance(second, StoreUnreachable) != repeated


def test_a_new_connection_that_breaks_off_is_trouble_and_no_reason_to_ask_again():
    with scripted(HANG_UP, OK) as (url, heard):
        [error] = ask(url, GET)
    assert isinstance(error, StoreUnreachable) and "closed the connection" in str(error)
    assert len(heard) == 1


def test_the_request_after_one_that_broke_off_goes_to_the_next_server():
    with scripted(HANG_UP, HANG_UP) as (first, heard), scripted(OK) as (second, _):
        error, answer = ask(f"{first},{second}", POST, POST)
    assert isinstance(error, StoreUnreachable)
    assert answer.status == 200
    assert len(heard) == 1


def test_two_requests_that_broke_off_at_once_turn_to_the_next_server_once():
    async def conversation(urls):
        transport = Transport(urls, None, seconds_max=5.0)
        both = [transport.call(*POST) for _ in range(2)]
        errors = await asyncio.gather(*both, return_exceptions=True)
        answer = await transport.call(*POST)
        await transport.close()
        return errors, answer

    with scripted(HANG_UP, HANG_UP, HANG_UP) as (first, heard), scripted(OK) as (second, _):
        errors, answer = asyncio.run(conversation(f"{first},{second}"))
    assert [type(error) for error in errors] == [StoreUnreachable] * 2
    assert answer.status == 200
    assert len(heard) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000,
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    ],
)
def test_half_an_answer_and_no_http_are_no_answer(answer):
    with scripted(answer, CLOSE, OK) as (url, heard):
        [error] = ask(url, GET)
    assert isinstance(error, StoreUnreachable)
    assert "does not answer" in str(error) and url in str(error)
    assert len(heard) == 1, "an answer that had begun was asked for again"


def test_an_answer_may_come_in_pieces_without_a_length_or_after_another():
    chunked = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n[\r\n1\r\n]\r\n0\r\n\r\n"
    )
    endless = b"HTTP/1.1 200 OK\r\n\r\n[1]"
    continued = b"HTTP/1.1 100 Continue\r\n\r\n" + OK
    with scripted(chunked, continued, endless, CLOSE) as (url, _):
        answers = ask(url, GET, GET, GET)
    assert [answer.json for answer in answers] == [[], {}, [1]]


def test_bytes_that_nobody_asked_for_are_no_answer_to_the_next_request():
    with scripted(OK + OK.replace(b"{}", b"[]"), OK) as (url, _):
        assert [answer.json for answer in ask(url, GET, GET)] == [{}, {}]


def test_a_server_that_says_nothing_is_given_up():
    with scripted(SILENCE) as (url, _):
        [error] = ask(url, GET, seconds_max=0.5)
    assert isinstance(error, StoreUnreachable) and "no answer within 0.5 s" in str(error)


def test_whoever_is_turned_away_comes_again_when_told():
    away = b"HTTP/1.1 %s\r\nretry-after: 0\r\ncontent-length: %d\r\n\r\n%s"
    body = b'{"code": "%s", "message": "not now", "status": %d}'
    overloaded = body % (b"overloaded", 503)
    many = body % (b"quota", 429)
    with scripted(
        away % (b"503 Busy", len(overloaded), overloaded),
        away % (b"429 Many", len(many), many),
        OK,
    ) as (url, heard):
        [answer] = ask(url, POST)
    assert answer.status == 200 and len(heard) == 3


def test_whoever_is_turned_away_for_long_or_again_and_again_hears_so():
    body = b'{"code": "overloaded", "message": "not now", "status": 503}'
    start = b"HTTP/1.1 503 Busy\r\ncontent-length: %d\r\nretry-after: " % len(body)
    again, long = start + b"0\r\n\r\n" + body, start + b"3600\r\n\r\n" + body
    with scripted(again, again, again, long) as (url, heard):
        answers = ask(url, GET, GET)
    assert [type(error) for error in answers] == [Unavailable, Unavailable]
    assert [error.code for error in answers] == ["overloaded", "overloaded"]
    assert len(heard) == 4


def test_a_request_that_may_have_been_done_is_not_repeated():
    body = b'{"code": "timed_out", "message": "who knows", "status": 503}'
    start = b"HTTP/1.1 503 Late\r\nretry-after: 0\r\ncontent-length: %d\r\n\r\n" % len(body)
    with scripted(start + body, OK) as (url, heard):
        [error] = ask(url, POST)
    assert isinstance(error, Unavailable) and len(heard) == 1


@pytest.mark.parametrize("text", ["a/b", "..", ".", "a b?c#d%2F", "é", "x" * 256])
def test_any_name_can_stand_in_a_path(server, client, text):
    client.post("/tasks", {"id": text, "queue": "q"})
    path = path_of("tasks", text)
    [answer] = ask(f"http://{server.address}", ("GET", path), token=client.token)
    assert answer.json["id"] == text


def test_a_problem_is_raised_as_what_it_is_and_a_good_answer_is_read(server, reader):
    url = f"http://{server.address}"
    found, missing = ask(url, ("GET", "/store"), ("GET", "/tasks/nobody"), token=reader.token)
    assert found.json["id"]
    assert isinstance(missing, NotFound) and missing.name == "nobody"
    [stranger] = ask(url, ("GET", "/store"))
    assert isinstance(stranger, Refused) and "none was given" in str(stranger)
    [elsewhere] = ask(url + "/prefix", ("GET", "/store"), token=reader.token)
    assert isinstance(elsewhere, Refused)


def test_one_transport_serves_one_event_loop_after_the_other(server, reader):
    transport = Transport(f"http://{server.address}", reader.token)

    async def once():
        answer = await transport.call("GET", "/store")
        await transport.close()
        return answer.status

    assert [asyncio.run(once()), asyncio.run(once())] == [200, 200]


def test_many_requests_at_once_are_each_answered(server, reader):
    async def all_at_once():
        transport = Transport(f"http://{server.address}", reader.token)
        answers = await asyncio.gather(*(transport.call("GET", "/store") for _ in range(40)))
        await transport.close()
        return {answer.status for answer in answers}

    assert asyncio.run(all_at_once()) == {200}


def test_a_request_that_was_given_up_leaves_nothing_behind_for_the_next(server, reader):
    async def hasty():
        transport = Transport(f"http://{server.address}", reader.token)
        for _ in range(20):
            asking = asyncio.create_task(transport.call("GET", "/tasks"))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert "id" in (await transport.call("GET", "/store")).json
        await transport.close()

    asyncio.run(hasty())


def test_events_are_read_as_they_come_and_remember_where_they_were():
    stream = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n"
        b'event: task\nid: 7\ndata: {"a":\ndata: 1}\n\nid: 8\n\ndata: x\n\nevent: cut\ndata'
    )
    with scripted(stream, CLOSE) as (url, heard):

        async def follow():
            return [e async for e in Transport(url).events("/events", last_event_id="6")]

        events = asyncio.run(follow())
    assert [(one.event, one.data, one.id) for one in events] == [
        ("task", '{"a":\n1}', "7"),
        ("message", "x", "8"),
    ]
    assert events[0].json == {"a": 1}
    assert heard == ["GET /api/v1/events HTTP/1.1"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\n{}", Refused),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n: \r\n", StoreUnreachable),
        (HANG_UP, StoreUnreachable),
    ],
)
def test_a_stream_that_breaks_off_says_so(answer, kind):
    with scripted(answer, CLOSE) as (url, _):

        async def follow():
            return [e async for e in Transport(url).events("/events")]

        with pytest.raises(kind):
            asyncio.run(follow())


@pytest.mark.parametrize("token", ["", "a b", "é", "a\r\nx: y"])
def test_a_token_that_no_header_can_hold_is_refused_and_not_shown(token):
    with pytest.raises(BadSetting) as refused:
        Transport("http://host", token)
    assert token not in str(refused.value) or not token


def answer_with(document):
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


HOLDER = Holder(task_id="a", attempt=1, worker="worker-1")


@pytest.mark.parametrize(
    ("operation", "arguments", "answered"),
    [
        ("claim", [ClaimRequest(queue="q", worker="worker-1")], None),
        ("claim_by_id", ["a", "worker-1"], None),
        ("report", [[Report(holder=HOLDER, started=True)]], None),
        ("adopt", [HOLDER, "worker-2"], None),
        ("arm", ["a"], None),
        ("heartbeat", ["worker-1", []], {"answers": []}),
        ("cancel", [["a"]], {"cancelled": []}),
        ("submit", [[NewTask(id="a", queue="q")]], {"answers": [{"id": "a", "created": True}]}),
        ("queues", [], {"queues": []}),
    ],
)
def test_an_operation_is_done_twice_only_if_that_does_no_harm(operation, arguments, answered):
    """A claim whose answer was lost holds tasks; a task submitted twice is the same task."""
    store_facts = answer_with({"id": "store", "now": "2030-01-01T00:00:00Z"})
    with scripted(store_facts, HANG_UP, answer_with(answered or {})) as (url, heard):

        async def conversation():
            store = open_remote_store(StoreSettings(url=url))
            try:
                assert await store.store_id() == "store"
                return await getattr(store, operation)(*arguments)
            except StoreUnreachable as error:
                return error
            finally:
                await store.close()

        answer = asyncio.run(conversation())
    assert isinstance(answer, StoreUnreachable) == (answered is None)
    assert len(heard) == (2 if answered is None else 3)
