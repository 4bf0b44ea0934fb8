"""Logs of jobs that ran elsewhere: sent in chunks, kept where readers look for them."""

import os
from itertools import count
from urllib.parse import quote

import apsw
import pytest

from tests.server.conftest import register
from tests.support.http_server import running_server
from tidewheel.core.queue.task import WorkerId

_numbers = count(1)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home):
    with running_server(f"sqlite:///{home}/tidewheel.db", home=home) as running:
        yield running


class Sender:
    """A worker that holds one task, and what it sends of its log."""

    def __init__(self, caller, client):
        self.caller, self.task = caller, f"task-{next(_numbers)}"
        self.worker = register(caller)
        body = {"id": self.task, "command": "true", "retries": 3, "retry_delays": [0]}
        assert client.post("/tasks", body).status == 201
        held = caller.post(f"/tasks/{self.task}/claim", {"worker": self.worker})
        self.attempt = held.json["attempt"]

    def send(self, content, offset, stream="out", media="application/octet-stream", **changed):
        given = {"worker": self.worker, "attempt": self.attempt, "offset": offset} | changed
        query = "&".join(f"{name}={quote(str(value))}" for name, value in given.items())
        path = f"/tasks/{self.task}/logs/{stream}?{query}"
        return self.caller.ask("PUT", path, content, Content_Type=media)

    def ends(self, ending="failed"):
        body = {"worker": self.worker, "attempt": self.attempt, "ending": ending}
        if ending == "failed":
            body["error"] = {"code": "x"}
        assert self.caller.post(f"/tasks/{self.task}/finish", body).status == 200


@pytest.fixture
def sender(worker, client):
    return Sender(worker, client)


def log(reader, sender, attempt=1, stream="out"):
    return reader.get(f"/tasks/{sender.task}/logs/{stream}?attempt={attempt}").body


def test_a_log_that_is_sent_in_chunks_can_be_read(reader, sender):
    assert sender.send(b"one\n", 0).json == {"size": 4, "full": False}
    assert sender.send("zw\u00f6lf\xff".encode("latin-1"), 4, media="text/plain").status == 200
    assert log(reader, sender) == b"one\nzw\xf6lf\xff"
    assert sender.send(b"oh", 0, "err").json["size"] == 2
    assert log(reader, sender, stream="err") == b"oh"


def test_a_chunk_that_comes_twice_or_too_early_changes_nothing(reader, sender):
    """RELIABILITY 39."""
    sender.send(b"abc", 0)
    sender.send(b"def", 3)
    assert sender.send(b"abc", 0).json["size"] == 6
    assert sender.send(b"abcdef", 0).json["size"] == 6
    assert sender.send(b"later", 9).json["size"] == 6  # where to go on from
    assert sender.send(b"efgh", 4).json["size"] == 8
    assert sender.send(b"", 0).json["size"] == 8
    assert log(reader, sender) == b"abcdefgh"


def test_a_log_that_comes_late_goes_to_its_own_attempt(reader, worker, sender):
    """D4: whoever lost its lease changes nothing of its successor."""
    sender.send(b"first", 0)
    sender.ends()
    other = register(worker)
    body = {"worker": other}
    assert worker.post(f"/tasks/{sender.task}/claim", body).json["attempt"] == 2
    assert sender.send(b"second", 0, worker=other, attempt=2).status == 200
    assert sender.send(b" late", 5).status == 200
    assert log(reader, sender, 1) == b"first late"
    assert log(reader, sender, 2) == b"second"
    assert sender.send(b"evil", 6, attempt=2).status == 409
    assert sender.send(b"evil", 0, attempt=3).status == 409
    assert sender.send(b"evil", 10, worker=other).status == 409
    assert (log(reader, sender, 1), log(reader, sender, 2)) == (b"first late", b"second")


def test_nobody_sends_for_a_worker_of_another_token(server, client, sender):
    """S6."""
    stranger = server.caller("worker")
    own = register(stranger)
    path = f"/tasks/{sender.task}/logs/out?attempt=1&offset=0&worker="
    raw = {"Content_Type": "text/plain"}
    assert stranger.ask("PUT", path + sender.worker, b"x", **raw).status == 404
    assert stranger.ask("PUT", path + own, b"x", **raw).status == 409
    assert client.ask("PUT", path + sender.worker, b"x", **raw).status == 403


def test_a_token_for_other_queues_sends_nothing(server, client):
    caller = server.caller("worker", queues=["a"])
    worker = register(caller, "a")
    client.post("/tasks", {"id": "of-b", "queue": "b"})
    path = f"/tasks/of-b/logs/out?attempt=1&offset=0&worker={worker}"
    assert caller.ask("PUT", path, b"x", Content_Type="text/plain").status == 404


@pytest.mark.parametrize("media", ["application/json", "text/html", "", "multipart/form-data"])
def test_only_plain_bytes_are_taken(sender, media):
    assert sender.send(b"x", 0, media=media).status == 415


def test_a_chunk_is_at_most_a_megabyte(sender):
    assert sender.send(b"x" * 1_000_000, 0).json["size"] == 1_000_000
    assert sender.send(b"x" * 1_000_001, 1_000_000).status == 413


@pytest.mark.parametrize(
    ("stream", "query", "status"),
    [
        ("%2E%2E", {}, 404),
        ("..%2F..%2Ftidewheel.db", {}, 404),
        ("activity", {}, 404),
        ("job.out", {}, 404),
        ("out", {"offset": -1}, 422),
        ("out", {"offset": "one"}, 422),
        ("out", {"attempt": 0}, 422),
        ("out", {"attempt": "..%2F.."}, 422),
        ("out", {"worker": "../../x"}, 404),
        ("out", {"colour": "blue"}, 422),
    ],
)
def test_a_place_that_is_none_is_refused(sender, stream, query, status):
    """S11."""
    assert sender.send(b"x", **({"offset": 0} | query), stream=stream).status == status


@pytest.mark.parametrize("kind", ["link", "hard link", "folder link", "fifo", "folder"])
def test_nothing_is_written_through_what_is_no_plain_file(server, home, sender, tmp_path, kind):
    """S11: whatever lies in the way, nothing outside is written."""
    secret = tmp_path / "job.out"
    secret.write_text("secret")
    task = server.do(server.store.get(sender.task))
    store_id = server.do(server.store.store_id())
    folder = home / "tasks" / store_id[:8] / str(task.seq) / "1"
    if kind == "folder link":
        folder.parent.mkdir(parents=True)
        folder.symlink_to(tmp_path)
    else:
        folder.mkdir(parents=True)
    match kind:
        case "link":
            (folder / "job.out").symlink_to(secret)
        case "hard link":
            (folder / "job.out").hardlink_to(secret)
        case "fifo":
            os.mkfifo(folder / "job.out")
        case "folder":
            (folder / "job.out").mkdir()
    reply = sender.send(b"evil", 6)
    assert reply.status == 409 and str(home).encode() not in reply.body
    assert secret.read_text() == "secret"


def test_an_attempt_that_ended_long_ago_sends_nothing_more(home, sender):
    sender.ends("succeeded")
    assert sender.send(b"x", 0).status == 200
    set_back_the_end(home, sender, 2 * 86_400)
    assert sender.send(b"x", 1).status == 409


def set_back_the_end(home, sender, seconds):
    connection = apsw.Connection(str(home / "tidewheel.db"))
    connection.execute(
        "UPDATE attempt SET ended_at = ended_at - ? WHERE worker = ?",
        (seconds, str(WorkerId(sender.worker))),
    )
    connection.close()


def test_workers_can_find_out_whether_they_share_the_folder(home, worker, reader):
    found = worker.get("/home").json["id"]
    assert found == (home / "home.id").read_text() == worker.get("/home").json["id"]
    assert len(found) == 32
    assert reader.get("/home").status == 403
