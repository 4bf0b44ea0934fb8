"""Following events from Python: the same iterator on a store and on a server that restarts."""

import asyncio
from contextlib import aclosing

import pytest

from tests.support.http_server import RunningServer, running_server
from tidewheel import AsyncClient, Client
from tidewheel.config import Credentials, ServerSettings, StoreSettings
from tidewheel.errors import BadSetting, NotFound, Refused, StoreUnreachable


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/t.db"


def through(server, token=None):
    """A client of a server."""
    shown = Credentials(token=token or server.caller("submit").token)
    return AsyncClient(StoreSettings(url=f"http://{server.address}", credentials=shown))


async def some(client, count, **which):
    """So many events, those that only say where they are included."""
    found = []
    async with asyncio.timeout(20), aclosing(client.events(**which)) as events:
        async for event in events:
            found.append(event)
            if len(found) == count:
                return found
    raise AssertionError("a stream never ends by itself")


async def told_while_submitting(client, *names, **which):
    """What is heard of tasks that are submitted while somebody follows."""
    found = []
    async with asyncio.timeout(20), aclosing(client.events(**which)) as events:
        async for event in events:
            if event.kind == "start":
                for name in names:
                    await client.submit(id=name, queue="q", spec={})
            else:
                found.append(event)
            if len(found) == len(names):
                return found


@pytest.mark.parametrize("where", ["store", "server"])
def test_a_client_hears_the_same_from_a_store_and_from_a_server(url, where):
    async def ask(client):
        async with client:
            told = await told_while_submitting(client, "a", "b", queue="q")
            again = await some(client, 2, since=told[0].id)
            return told, again

    with running_server(url) as server:
        client = AsyncClient(url) if where == "store" else through(server)
        told, again = asyncio.run(ask(client))
    assert [event.document["id"] for event in told] == ["a", "b"]
    assert [event.kind for event in told] == ["task", "task"]
    assert [event.kind for event in again] == ["start", "task"]
    assert again[1] == told[1]


def test_code_without_asyncio_hears_the_same(url):
    with Client(url) as client:
        events = client.events(queue="q")
        assert next(events).kind == "start"
        client.submit(id="a", queue="q", spec={})
        assert next(events).document["id"] == "a"
        events.close()


@pytest.mark.parametrize("where", ["store", "server"])
def test_what_cannot_be_followed_is_refused(url, where):
    async def ask(client):
        async with client:
            with pytest.raises(BadSetting, match="id of an event"):
                await some(client, 1, since="yesterday")
            with pytest.raises(BadSetting, match="task or run"):
                await some(client, 1, kind="worker")
            with pytest.raises(NotFound):
                await some(client, 1, run="nobody")

    with running_server(url) as server:
        asyncio.run(ask(AsyncClient(url) if where == "store" else through(server)))


def test_a_server_that_comes_back_is_followed_as_if_it_had_been_there(url, own_port):
    """RELIABILITY 42: nothing missed, nothing twice, through a client of ours."""

    async def follow(client, heard):
        async with client, aclosing(client.events(queue="q")) as events:
            async for event in events:
                await heard.put(event)

    async def session(first):
        heard = asyncio.Queue()
        following = asyncio.create_task(follow(through(first, token), heard))

        async def ids(count):
            async with asyncio.timeout(20):
                found = [await heard.get() for _ in range(count)]
            return [event.document.get("id", event.kind) for event in found]

        assert await ids(1) == ["start"]
        async with AsyncClient(url) as local:
            await local.submit(id="a", queue="q", spec={})
            assert await ids(1) == ["a"]
            await asyncio.to_thread(first.stop)
            # Nobody tells this one yet.
            await local.submit(id="b", queue="q", spec={})
            second = await asyncio.to_thread(RunningServer, url, there)
            try:
                assert await ids(1) == ["b"]
                await local.submit(id="c", queue="q", spec={})
                assert await ids(1) == ["c"]
            finally:
                await asyncio.to_thread(second.stop)
        following.cancel()

    there = ServerSettings(port=own_port)
    first = RunningServer(url, there)
    token = first.caller("read").token
    asyncio.run(session(first))


def test_a_server_that_was_never_there_is_no_reason_to_wait():
    async def ask():
        client = AsyncClient(StoreSettings(url="http://127.0.0.1:1"))
        async with client:
            await some(client, 1)

    with pytest.raises(StoreUnreachable):
        asyncio.run(ask())


def test_a_token_that_is_not_good_is_refused(url):
    async def ask(server):
        async with through(server, "tw_1_nonsense") as client:
            await some(client, 1)

    with running_server(url) as server, pytest.raises(Refused, match="token"):
        asyncio.run(ask(server))
