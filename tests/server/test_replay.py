"""The same message twice has the effect of one (S7, T12), and looks flat from outside (S28)."""

import asyncio

import pytest

from tests.kit.memory.store import MemoryStore
from tests.server.conftest import register
from tests.server.test_sessions import FORM, code_of
from tests.support.http_server import running_server
from tidewheel.client.tokens import make_token
from tidewheel.config import ServerSettings
from tidewheel.core.queue.access import EVERYTHING, Grant, Scope, TokenKind
from tidewheel.server.auth import Authenticator, ShownCredentials
from tidewheel.server.errors import NotAuthenticated
from tidewheel.server.load_shedding import ReservedConnections


@pytest.fixture
def scene(tmp_path):
    """A server with a worker that holds a task."""
    with running_server(f"sqlite:///{tmp_path}/t.db") as server:
        caller = server.caller("admin")
        caller.server = server
        caller.id = register(caller, "q")
        caller.post("/tasks", {"id": "t", "queue": "q", "spec": 1})
        caller.post("/tasks", {"id": "u", "queue": "q", "spec": 1})
        caller.post("/queues/q/claim", {"worker": caller.id})
        yield caller


def everything(caller):
    """What can be seen of the tasks and their history."""
    ids = [task["id"] for task in caller.get("/tasks").json["tasks"]]
    parts = ("", "/history", "/attempts", "/outputs", "/usage")
    return {
        (name, part): caller.get(f"/tasks/{name}{part}").json for name in ids for part in parts
    }


HELD = {"worker": "worker-1", "attempt": 1}
MESSAGES = [
    ("/tasks", {"id": "new", "queue": "q", "spec": 1}),
    ("/tasks", [{"id": "one", "queue": "q", "spec": 1}, {"id": "two", "spec": 1}]),
    ("/tasks/u/cancel", {}),
    ("/tasks/t/started", HELD),
    (
        "/tasks/t/outputs",
        HELD | {"messages": [{"number": 1, "text": "half", "output": "half"}]},
    ),
    ("/tasks/t/finish", HELD | {"ending": "succeeded"}),
    ("/tasks/t/finish", HELD | {"ending": "succeeded", "values": {"beams": 4}}),
    ("/tasks/t/finish", HELD | {"ending": "failed", "error": {"code": "x"}}),
    ("/tasks/t/yield", HELD),
    ("/tasks/cancel", {"ids": ["t", "u"]}),
    ("/workers/worker-1/stop", {}),
]


@pytest.mark.parametrize(("path", "body"), MESSAGES, ids=[path for path, _ in MESSAGES])
def test_a_message_that_comes_twice_changes_nothing_the_second_time(scene, path, body):
    """S7: without any key; a report counts for one attempt, a task for one id."""
    assert scene.post(path, body).status < 300
    before = everything(scene)
    again = scene.post(path, body)
    assert again.status < 300 or again.status == 409
    assert everything(scene) == before


def test_a_login_that_was_used_is_good_for_nothing(scene):
    code = f"code={code_of(scene)}".encode()
    stranger = scene.server.stranger()
    assert stranger.post("//login", code, Content_Type=FORM).status == 303
    assert stranger.post("//login", code, Content_Type=FORM).status == 401


class Counted:
    """A store, and how often it was asked for a token."""

    def __init__(self, store):
        self._store, self.asked = store, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def token(self, number):
        self.asked += 1
        return await self._store.token(number)


def test_why_a_token_is_not_good_cannot_be_told_by_words_or_by_steps():
    """S28: unknown, wrong, run out and revoked take the same way to the same answer."""

    async def look():
        now = [1_000.0]
        store = Counted(MemoryStore(lambda: now[0]))
        grant = Grant(scopes=frozenset({Scope.READ}), names=EVERYTHING)
        good, _ = await make_token(store, "a", grant)
        late, _ = await make_token(store, "b", grant, 1.0)
        gone, view = await make_token(store, "c", grant)
        await store.revoke_token(view.number)
        now[0] += 2.0
        shown = {
            "unknown": "tw_999_" + good.split("_", 2)[2],
            "wrong": good[:-1] + ("A" if good[-1] != "A" else "B"),
            "run out": late,
            "revoked": gone,
        }
        steps = {}
        for kind, text in shown.items():
            authenticator = Authenticator(
                ReservedConnections(asking=store, reporting=store),
                ServerSettings(failures_max=100),
            )
            before = store.asked
            with pytest.raises(NotAuthenticated) as refused:
                await authenticator.token_of(ShownCredentials(TokenKind.BEARER, text), "here")
            steps[kind] = (store.asked - before, str(refused.value))
        return steps

    steps = asyncio.run(look())
    assert len(set(steps.values())) == 1, steps
    assert next(iter(steps.values()))[0] == 1
