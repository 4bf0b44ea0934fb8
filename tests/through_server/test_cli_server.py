"""`tidewheel server` and `tidewheel token` as real processes (S1, S4, S31)."""

import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support.http_server import Caller
from tests.support.patience import eventually
from tests.support.site import make_certificate
from tidewheel.errors import BadSetting
from tidewheel.wiring.machine import require_private_file


def caller_of(line, token):
    return Caller(re.search(r"http://([\d.:]+)", line)[1], token)


def test_a_server_makes_its_first_token_and_answers_until_it_is_told_to_stop(tidewheel):
    """S1: a fresh start listens on loopback only; S31: the token is its user's alone."""
    with tidewheel.started("server", "--port", "0") as server:
        line = server.read_until("answering at")
        assert "http://127.0.0.1:" in line
        server.read_until("admin token was created")
        path = tidewheel.state / "token"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        caller = caller_of(line, path.read_text().strip())
        assert caller.post("/tasks", {"id": "t", "command": "true"}).status == 201
        assert tidewheel("task", "t", "--json").json["task"]["id"] == "t"
        server.send(signal.SIGTERM)
        assert server.wait().status == 0
    with tidewheel.started("server", "--port", "0", "--json") as server:
        said = json.loads(server.read_until("url"))
        assert said["token_file"] is None


def test_a_server_for_other_machines_leaves_the_token_of_another_server_as_it_is(tidewheel):
    own = tidewheel.state / "token"
    own.parent.mkdir(parents=True)
    own.write_text("tw_7_of-another-server\n")
    proxy = ("--behind-proxy", "127.0.0.1", "--port", "0")
    with tidewheel.started("server", *proxy, "--json") as server:
        made = Path(json.loads(server.read_until("url"))["token_file"])
        assert stat.S_IMODE(made.stat().st_mode) == 0o600
        assert made != own and own.read_text() == "tw_7_of-another-server\n"


def test_tokens_are_made_listed_and_revoked(tidewheel):
    """S4: printed once; the store keeps a hash."""
    made = tidewheel("token", "create", "ci", "--scope", "submit", "--queue", "ci-*")
    assert (made.status, made.word[:3]) == (0, "tw_")
    secret = made.word.split("_", 2)[2]
    assert secret not in tidewheel("token", "list").out
    [stored] = tidewheel("token", "list", "--json").json["tokens"]
    assert (stored["scopes"], stored["names"]) == (["submit"], ["queue:ci-*"])
    for file in tidewheel.state.iterdir():
        assert secret.encode() not in file.read_bytes()
    with tidewheel.started("server", "--port", "0") as server:
        caller = caller_of(server.read_until("answering at"), made.word)
        assert caller.post("/tasks", {"queue": "ci-1"}).status == 201
        assert caller.post("/tasks", {"queue": "other"}).status == 403
        assert tidewheel("token", "revoke", str(stored["number"])).status == 0
        eventually(lambda: caller.get("/queues").status == 401, "revoked")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create",), "NAME"),
        (("create", "x"), "--scope"),
        (("create", "x", "--scope", "root"), "root"),
        (("create", "x", "--scope", "admin", "--queue", "a"), "admin is for everything"),
        (("revoke", "x"), "is not the number of a token"),
        (("revoke", "99"), "no token '99'"),
    ],
)
def test_a_wrong_request_about_tokens_says_what_to_do(tidewheel, arguments, said):
    answer = tidewheel("token", *arguments)
    assert answer.status == 2 and said in answer.err


def test_a_server_is_not_reached_from_elsewhere_without_token_and_tls(tidewheel, tmp_path):
    """S1."""
    answer = tidewheel("server", "--host", "0.0.0.0", "--port", "0")
    assert answer.status == 2 and "--certificate" in answer.err
    answer = tidewheel(
        "server", "--host", "0.0.0.0", "--port", "0", "--behind-proxy", "10.0.0.1"
    )
    assert answer.status == 2 and "no valid token" in answer.err
    assert not (tidewheel.state / "token").exists()
    certificate = tmp_path / "cert.pem"
    certificate.write_text("")
    answer = tidewheel("server", "--certificate", str(certificate))
    assert answer.status == 2 and "key" in answer.err
    tidewheel("token", "create", "x", "--scope", "read", "--for", "*")
    with tidewheel.started(
        "server", "--host", "0.0.0.0", "--port", "0", "--behind-proxy", "10.0.0.1"
    ) as server:
        assert "0.0.0.0" in server.read_until("answering at")


def test_a_port_that_is_taken_is_named(tidewheel):
    with tidewheel.started("server", "--port", "0") as server:
        port = re.search(r":(\d+);", server.read_until("answering at"))[1]
        answer = tidewheel("server", "--port", port)
        assert answer.status == 2 and port in answer.err


def test_a_proxy_says_who_called_and_nobody_else_can(tidewheel):
    """S34: X-Forwarded-For counts only from the proxies that were named."""
    token = tidewheel("token", "create", "x", "--scope", "admin").word
    for proxy, seen in (("127.0.0.1", "10.9.8.7"), ("10.0.0.1", "127.0.0.1")):
        with tidewheel.started("server", "--port", "0", "--behind-proxy", proxy) as server:
            caller = caller_of(server.read_until("answering at"), token)
            caller.post("/tasks", {"queue": "q"}, X_Forwarded_For="10.9.8.7")
            assert caller.get("/audit?limit=1").json["entries"][0]["client"] == seen


def test_nothing_of_the_web_is_loaded_unless_a_server_runs():
    """Start-up matters: the command line and clients do not pay for the server."""
    look = (
        "import sys, tidewheel.cli.main, tidewheel.cli.roles, tidewheel.client.async_client\n"
        "print([n for n in ('starlette', 'uvicorn', 'uvloop') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize("point", ["submit_before_commit", "submit_after_commit"])
def test_a_server_that_dies_in_a_request_makes_no_second_task(tidewheel, point):
    """Scenario 12, T12, D1: repeated with the same key, nothing is lost or doubled."""
    token = tidewheel("token", "create", "x", "--scope", "submit", "--for", "*").word
    body, key = [{"queue": "once"}, {"queue": "once"}], {"Idempotency_Key": "k"}
    arguments = ("server", "--port", "0")
    with tidewheel.started(*arguments, TIDEWHEEL_FAILPOINT=point) as server:
        caller = caller_of(server.read_until("answering at"), token)
        with pytest.raises((OSError, http.client.HTTPException)):
            caller.post("/tasks", body, **key)
    with tidewheel.started(*arguments) as server:
        caller = caller_of(server.read_until("answering at"), token)
        replies = [caller.post("/tasks", body, **key) for _ in range(2)]
        assert {reply.status for reply in replies} <= {200, 201}
        assert len(caller.get("/tasks?queue=once").json["tasks"]) == 2


def test_two_servers_share_everything_but_their_memory(tidewheel):
    """Tokens, workers, kept answers: whichever server is asked, the answer is the same."""
    token = tidewheel(
        "token", "create", "x", "--scope", "submit", "--scope", "worker", "--for", "*"
    ).word
    with (
        tidewheel.started("server", "--port", "0") as first,
        tidewheel.started("server", "--port", "0") as second,
    ):
        one = caller_of(first.read_until("answering at"), token)
        two = caller_of(second.read_until("answering at"), token)
        made = one.post("/tasks", {"queue": "q", "spec": 1}, Idempotency_Key="k")
        assert (
            two.post("/tasks", {"queue": "q", "spec": 1}, Idempotency_Key="k").body == made.body
        )
        worker = one.post("/workers", {"name": "w", "queues": ["q"]}).json["id"]
        [task] = two.post("/queues/q/claim", {"worker": worker}).json["tasks"]
        end = {"worker": worker, "attempt": task["attempt"], "ending": "succeeded"}
        assert one.post(f"/tasks/{task['id']}/finish", end).json["status"] == "succeeded"
        late = two.post(f"/tasks/{task['id']}/finish", end)
        assert (late.status, late.code) == (409, "wrong_status")


def test_a_key_that_others_can_read_is_refused(tidewheel, tmp_path):
    """S31."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key, "127.0.0.1")
    key.chmod(0o644)
    given = ("--certificate", str(certificate), "--key", str(key))
    refused = tidewheel("server", "--port", "0", *given)
    assert refused.status == 2 and f"chmod 600 {key}" in refused.err


@pytest.mark.skipif(os.getuid() != 0, reason="gives files to other users")
@pytest.mark.parametrize(
    ("owner", "mode", "accepted"),
    [
        *((0, 0o600, True), (0, 0o640, True), (0, 0o400, True)),
        *((0, 0o644, False), (0, 0o660, False), (0, 0o604, False)),
        (4001, 0o600, False),  # that user could read it, who is not the server's
    ],
)
def test_a_key_may_be_for_a_group_only_if_it_is_root_s(tmp_path, owner, mode, accepted):
    """Security audit, LOW, S31: as PostgreSQL has it; the rule for other users is below."""
    key = tmp_path / "key.pem"
    key.write_text("secret")
    os.chown(key, owner, 4002)
    key.chmod(mode)
    with nullcontext() if accepted else pytest.raises(BadSetting, match="key"):
        require_private_file("key", key)


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
@pytest.mark.parametrize(("mode", "accepted"), [(0o600, True), (0o640, False), (0o400, True)])
def test_a_key_of_another_user_than_root_is_for_that_user_alone(mode, accepted):
    with tempfile.NamedTemporaryFile() as key:
        os.chown(key.name, 4001, 4001)
        os.chmod(key.name, mode)
        os.seteuid(4001)
        try:
            with nullcontext() if accepted else pytest.raises(BadSetting, match="chmod 600"):
                require_private_file("key", Path(key.name))
        finally:
            os.seteuid(0)


def test_a_server_tells_its_log_the_last_entry_of_the_audit(tidewheel):
    """Who cuts off the end of the audit cannot change what a log elsewhere has."""
    token = tidewheel("token", "create", "x", "--scope", "admin").word
    with tidewheel.started("server", "--port", "0") as server:
        caller = caller_of(server.read_until("answering at"), token)
        assert caller.post("/queues/q/pause").status == 200
        server.send(signal.SIGTERM)
        first = re.search(r"audit.head +(1:[0-9a-f]{64})", server.read_until("audit.head"))[1]
        assert server.wait().status == 0
    with tidewheel.started("server", "--port", "0") as server:
        assert first in server.read_until("audit.head")
    assert tidewheel("verify", "--audit-head", first).status == 0
