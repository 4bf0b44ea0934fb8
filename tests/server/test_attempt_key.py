"""The key that signs jobs' tokens: none is made from what is stored; servers share the key."""

import os

import apsw
import pytest

from tests.server.conftest import register
from tests.support.http_server import Caller, running_server
from tidewheel.config import ServerSettings
from tidewheel.core.queue.tokens import attempt_token
from tidewheel.errors import BadSetting
from tidewheel.server.attempt_key import read_key


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/tidewheel.db"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def held_task(server, worker, name="a"):
    """A task in a worker's hands, as the answer to its claim tells it."""
    body = {"id": name, "queue": "q", "command": "true"}
    assert server.caller("submit").post("/tasks", body).status == 201
    owner = register(worker, "q")
    [task] = worker.post("/queues/q/claim", {"worker": owner, "lease_s": 600}).json["tasks"]
    return task


def made_from_the_store(server, worker, task):
    """What the auditor made: a token from the digest that the store has of the worker's own."""
    number = int(worker.token.split("_")[1])
    view, _ = server.do(server.store.token(number))
    stored = server.do(server.store.get(task["id"]))
    place = (stored.id, stored.seq)
    return attempt_token(number, view.digest.encode(), place, stored.attempt)


def test_nobody_makes_the_token_of_a_job_from_what_is_stored(url, home):
    """Security audit, LOW: with a read-only look at the store one was forged (200)."""
    with running_server(url, home=home) as server:
        worker = server.caller("worker")
        task = held_task(server, worker)
        assert Caller(server.address, task["token"]).get("/tasks/a").status == 200
        forged = Caller(server.address, made_from_the_store(server, worker, task))
        assert forged.get("/tasks/a").status == 401
        said = forged.post("/job/messages", {"text": "x"}, Idempotency_Key="k")
        assert said.status == 401


def test_the_key_is_in_no_row_of_the_store_and_for_its_owner_alone(url, home, tmp_path):
    with running_server(url, home=home):
        pass
    key = home / "attempt-key"
    assert key.stat().st_mode & 0o777 == 0o600 and len(key.read_bytes()) == 32
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("tidewheel.db*"))
    assert key.read_bytes() not in stored and key.read_bytes().hex().encode() not in stored


def test_tokens_are_good_after_a_restart_and_at_another_server(url, home, tmp_path):
    with running_server(url, home=home) as server:
        token = held_task(server, server.caller("worker"))["token"]
    elsewhere = {"home": tmp_path / "other", "attempt_key_file": home / "attempt-key"}
    with running_server(url, home=home) as one, running_server(url, **elsewhere) as two:
        for server in (one, two):
            assert Caller(server.address, token).get("/tasks/a").status == 200


def test_a_server_with_another_key_than_one_that_runs_does_not_start(url, home, tmp_path):
    with running_server(url, home=home):
        with pytest.raises(BadSetting) as refused, running_server(url, home=tmp_path / "other"):
            pass
        for part in ("--attempt-key-file", str(tmp_path / "other" / "attempt-key")):
            assert part in str(refused.value)
    with running_server(url, home=tmp_path / "other"):
        pass  # nobody else runs any more


def test_attempts_that_began_before_there_was_a_key_keep_their_tokens(url, home, tmp_path):
    """Jobs that run while the servers are upgraded can speak until they end."""
    with running_server(url, home=home) as server:
        worker = server.caller("worker")
        task = held_task(server, worker)
        old = made_from_the_store(server, worker, task)
    store = apsw.Connection(str(tmp_path / "tidewheel.db"))
    store.execute("DELETE FROM attempt_key")  # as it was before the upgrade
    store.close()
    with running_server(url, home=home) as server:
        assert Caller(server.address, old).get("/tasks/a").status == 200
        later = held_task(server, worker := Caller(server.address, worker.token), "b")
        forged = made_from_the_store(server, worker, later)
        assert Caller(server.address, forged).get("/tasks/b").status == 401


@pytest.mark.parametrize("spoil", ["readable for others", "short", "not there"])
def test_a_key_file_that_is_no_secret_is_refused_with_what_to_do(tmp_path, spoil):
    path = tmp_path / "key"
    path.write_bytes(os.urandom(8 if spoil == "short" else 32))
    path.chmod(0o644 if spoil == "readable for others" else 0o600)
    if spoil == "not there":
        path.unlink()
    with pytest.raises(BadSetting, match=r"chmod 600|urandom|can read"):
        read_key(ServerSettings(attempt_key_file=path))
