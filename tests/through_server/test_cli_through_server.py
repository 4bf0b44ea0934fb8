"""The queue's commands through a server: the same words, the same answers, no database here."""

import hashlib
import json
import signal
from datetime import datetime

import pytest

from tests.support import json_page
from tests.support.command_line import CommandLine
from tests.support.http_server import running_server
from tests.support.patience import eventually
from tests.support.site import make_certificate
from tidewheel.config import StoreSettings
from tidewheel.credentials import credentials
from tidewheel.errors import BadSetting
from tidewheel.wiring.machine import this_process

NOBODY = "http://127.0.0.1:9"  # the discard service, which nobody runs


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The store behind the server."""
    return f"sqlite:///{tmp_path_factory.mktemp('there')}/tidewheel.db"


@pytest.fixture(scope="module")
def server(address):
    """One server for all tests, as each has names of its own."""
    with running_server(address, failures_max=1_000) as running:
        yield running


@pytest.fixture
def there(tidewheel, address):
    """Somebody beside the store itself."""
    return lambda *arguments: tidewheel(*arguments, "--store", address)


@pytest.fixture
def here(tmp_path):
    """Somebody with a home of their own, who has only the server's address."""
    folder = tmp_path / "here"
    folder.mkdir()
    return CommandLine(folder)


def reach(here, server, *scopes):
    """From now on the server's, with a token of these scopes."""
    here.environment |= {
        "TIDEWHEEL_SERVER": url_of(server),
        "TIDEWHEEL_TOKEN": server.caller(*scopes).token,
    }


def url_of(server):
    return f"http://{server.address}"


def test_tasks_are_stored_shown_and_cancelled_through_a_server(server, there, here):
    """Letter by letter as beside the store, and nothing is made here."""
    reach(here, server, "admin")
    spec = '{"a":  [1.50, 1e400, "é"]}'
    one = here("submit", "--id", "one", "--spec", spec, "--queue", "q")
    assert (one.status, one.word) == (0, "one")
    here("submit", "--id", "two", "--needs", "one", "--queue", "q", "--", "echo", "two")
    assert here("tasks", "--json").json == there("tasks", "--json").json
    assert here("task", "one", "--json").json == there("task", "one", "--json").json
    assert here("cancel", "one").status == 0
    assert here("task", "two", "--json").json["task"]["status"] == "cancelled"
    assert here("export", "-", "--queue", "q").out.count("\n") == 2
    assert not list(here.home.rglob("*.db"))


def test_queues_are_set_and_the_store_is_verified_through_a_server(server, there, here):
    reach(here, server, "admin")
    assert here("queues", "set", "--pause", "--lease", "7s", "--limit", "2").status == 0
    far, near = (
        next(one for one in user("queues", "--json").json["queues"] if one["queue"] == "set")
        for user in (here, there)
    )
    assert far == near
    assert (far["paused"], far["lease_seconds"]) == (True, 7.0)
    assert here("verify").status == 0


def test_a_worker_does_through_a_server_what_is_to_be_done(server, there, here):
    reach(here, server, "submit", "worker")
    here("submit", "--id", "good", "--queue", "w", "--", "echo", "hello")
    here("submit", "--id", "bad", "--queue", "w", "--", "exit", "3")
    worked = here("worker", "--queue", "w", "--exit-when-idle", "--name", "elsewhere")
    assert worked.status == 0, worked.err
    good, bad = (here("task", name, "--json").json for name in ("good", "bad"))
    assert (good["task"]["status"], bad["task"]["status"]) == ("succeeded", "failed")
    assert bad["attempts"][0]["exit_status"] == 3
    names = [one["name"] for one in there("workers", "--all", "--json").json["workers"]]
    assert "elsewhere" in names


def test_a_task_reads_the_values_of_what_it_needs_through_a_server(server, here):
    reach(here, server, "submit", "worker")
    told = ("--command", 'echo "{\\"n\\": 7}" > "$TIDEWHEEL_OUTPUTS"')
    here("submit", "--id", "told", "--queue", "v", *told)
    asks = ("--command", 'cat "$TIDEWHEEL_INPUTS"')
    here("submit", "--id", "asks", "--queue", "v", "--needs", "told", *asks)
    worked = here("worker", "--queue", "v", "--exit-when-idle")
    assert worked.status == 0, worked.err
    assert here("task", "asks", "--log", "out").out == '{"told": {"n": 7}}\n'


def test_the_log_of_a_task_is_read_where_neither_job_nor_server_are(server, here):
    """From a home without a single file of it."""
    reach(here, server, "submit", "worker")
    here("submit", "--id", "wrote", "--queue", "log", "--", "echo", "hé")
    assert here("worker", "--queue", "log", "--exit-when-idle").status == 0
    nowhere = {"TIDEWHEEL_HOME": str(here.folder / "nowhere")}
    for given in ((), ("--follow",), ("--attempt", "1")):
        assert here("task", "wrote", "--log", "out", *given, **nowhere).out == "hé\n"
    assert here("task", "wrote", "--log", "err", **nowhere).out == ""
    later = here("task", "wrote", "--log", "out", "--attempt", "2", **nowhere)
    assert later.status == 2 and "has had 1 attempt\n" in later.err
    assert not (here.folder / "nowhere").exists()


@pytest.mark.req("R007-13")
def test_what_a_handler_prints_is_read_through_the_server(server, here):
    reach(here, server, "submit", "worker")
    (here.folder / "talk.py").write_text(
        "import tidewheel\nhandlers = tidewheel.Handlers()\n"
        "@handlers.register('talk')\n"
        "def talk(spec, job):\n"
        "    print('begun', flush=True)\n    job.wait_for_stop(600)\n    raise KeyError('k')\n"
    )
    here("submit", "--id", "talks", "--queue", "t", "--handler", "talk")
    nowhere = {"TIDEWHEEL_HOME": str(here.folder / "nowhere")}
    with here.started("worker", "--queue", "t", "--handlers", "talk:handlers") as worker:
        worker.read_until("job.started")
        with here.started("log", "talks", "--follow", **nowhere) as following:
            following.read_until("begun")
            here("cancel", "talks")
            said = following.wait()
    assert said.status == 0
    assert said.out.startswith("begun\nTraceback") and said.out.endswith("KeyError: 'k'\n")


def test_a_worker_that_was_killed_is_followed_by_one_that_finds_its_jobs(server, here):
    """On its host, through a server: the job goes on, and it is the same attempt."""
    reach(here, server, "submit", "worker")
    begun, go = here.folder / "begun", here.folder / "go"
    waiting = f"touch {begun}; until [ -e {go} ]; do sleep 0.02; done"
    here("submit", "--id", "long", "--queue", "l", "--command", waiting)
    with here.started("worker", "--queue", "l") as first:
        eventually(begun.exists, "the job runs")
        first.send(signal.SIGKILL)
        first.wait()
    with here.started("worker", "--queue", "l") as second:
        second.read_until("adopted")
        go.touch()
        second.read_until("job.ended")
        second.send(signal.SIGTERM)
        assert second.wait().status == 0
    found = here("task", "long", "--json").json
    assert (found["task"]["status"], found["task"]["attempt"]) == ("succeeded", 1)
    assert [one["signal"] for one in found["history"]].count("adopt") == 1


def test_tokens_are_made_listed_and_revoked_through_a_server(server, there, here):
    """The secret is made here: it crosses no network and no server sees it."""
    reach(here, server, "admin")
    words = ("--scope", "read", "--queue", "ci-*", "--lasts", "1h")
    made = here("token", "create", "ci", *words).word
    number = made.split("_")[1]
    assert here("tasks", TIDEWHEEL_TOKEN=made).status == 0
    assert here("token", "list", TIDEWHEEL_TOKEN=made).status == 2
    assert here("token", "revoke", number).status == 0
    far, near = (user("token", "list", "--json").json["tokens"] for user in (here, there))
    assert [(one["number"], one["name"]) for one in far] == [
        (one["number"], one["name"]) for one in near
    ]
    [stored] = [one for one in near if str(one["number"]) == number]
    assert (stored["names"], stored["revoked_at"] is None) == (["queue:ci-*"], False)


def test_a_server_is_named_by_option_or_environment_and_the_nearer_one_counts(server, here):
    url, secret = url_of(server), server.caller("read").token
    for arguments, environment in (
        (("tasks", "--server", url), {"TIDEWHEEL_STORE": NOBODY}),
        (("--server", url, "tasks"), {"TIDEWHEEL_STORE": NOBODY}),
        (("tasks",), {"TIDEWHEEL_STORE": url, "TIDEWHEEL_SERVER": NOBODY}),
    ):
        asked = here(*arguments, TIDEWHEEL_TOKEN=secret, **environment)
        assert asked.status == 0, (arguments, asked.err)
    here.state.mkdir(parents=True)
    (here.state / "token").write_text(f"{secret}\n")
    assert here("tasks", "--store", url, TIDEWHEEL_SERVER=NOBODY).status == 0


def test_the_running_server_of_this_user_is_found_unless_it_serves_this_users_own_file(
    server, address, here
):
    """`tidewheel up` leaves its address in the state directory; its process may be dead."""
    client = server.caller("submit")
    client.post("/tasks", {"queue": "found"})
    here.environment["TIDEWHEEL_TOKEN"] = client.token
    here.state.mkdir(parents=True)
    process = this_process()
    found = {
        "url": url_of(server),
        "store": address,
        "pid": process.pid,
        "started": process.started,
        "host": process.host,
        "boot_id": process.boot_id,
    }
    for differing, is_found in (
        ({}, True),
        ({"store": here.store}, False),
        ({"started": 1.0}, False),
    ):
        (here.state / "server.json").write_text(json.dumps(found | differing))
        assert bool(here("tasks", "--json").json["tasks"]) == is_found


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "needs a token and none was given"),
        ({"TIDEWHEEL_TOKEN": f"tw_1_{'x' * 43}"}, "does not accept the token from TIDEWHEEL"),
        ({"TIDEWHEEL_TOKEN": "two words"}, "tidewheel token create"),
    ],
)
def test_a_wrong_token_is_told_with_where_it_came_from_and_how_to_get_one(
    server, here, environment, said
):
    answer = here("tasks", "--server", url_of(server), **environment)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err and "token create" in answer.err
    assert "x" * 43 not in answer.err


def test_a_token_that_does_not_suffice_says_what_would(server, here):
    reach(here, server, "read")
    answer = here("submit", "--", "true")
    assert answer.status == 2
    assert "needs a token with scope submit\n  This token has read" in answer.err


@pytest.mark.parametrize("command", [("tasks",), ("worker", "--wait-for-store", "0s")])
def test_a_server_that_is_not_there_is_unavailable(here, command):
    answer = here(*command, "--server", NOBODY)
    assert answer.status == 3
    assert "127.0.0.1:9 does not answer (Connection refused)" in answer.err
    assert "Start it (tidewheel up, or tidewheel server)" in answer.err
    assert "--server URL" in answer.err


@pytest.mark.parametrize("role", ["monitor", "scheduler", "server", "migrate"])
def test_what_is_done_where_the_database_is_says_so(here, role):
    answer = here(role, "--server", NOBODY)
    assert answer.status == 2
    assert "postgresql://" in answer.err and "needs the database itself" in answer.err
    assert "unset TIDEWHEEL_SERVER" in answer.err


@pytest.mark.parametrize("url", ["https://", "http://user:secret@host", "http://h:p"])
def test_an_address_that_is_none_is_refused_without_its_password(here, url):
    answer = here("tasks", "--server", url)
    assert answer.status == 2
    assert "http://HOST:PORT or https://HOST" in answer.err
    assert "secret" not in answer.err


def test_a_certificate_is_believed_only_if_its_authority_is(address, here, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key, "127.0.0.1")
    with running_server(address, certificate=certificate, key=key) as server:
        reach(here, server, "submit")
        here.environment["TIDEWHEEL_SERVER"] = url = f"https://{server.address}"
        refused = here("tasks")
        assert refused.status == 3
        assert "certificate" in refused.err and "self-signed" in refused.err
        assert "TIDEWHEEL_CA=FILE" in refused.err
        here.environment["TIDEWHEEL_CA"] = str(certificate)
        assert here("submit", "--id", "tls", "--", "true").word == "tls"
        other = here("tasks", "--server", url.replace("127.0.0.1", "localhost"))
        assert other.status == 3 and "certificate" in other.err
        none = here("tasks", TIDEWHEEL_CA=str(tmp_path / "none.pem"))
        assert none.status == 2 and "TIDEWHEEL_CA" in none.err


FAR = (
    "https://far",
    "http://far",
    "http://127.0.0.1.evil.example",
    "https://localhost.evil.example",
    "http://127.0.0.1:1,http://far",
)


def test_a_token_is_not_sent_unasked_to_another_machine(here):
    """The file of the state directory is for this machine."""
    here.state.mkdir(parents=True)
    (here.state / "token").write_text("tw_1_x\n")
    environment = {"HOME": str(here.home), "XDG_STATE_HOME": str(here.state.parent)}
    shown = {
        url: credentials(url, environment).token
        for url in ("http://127.0.0.1:1", "http://[::1]", "https://localhost:2", *FAR)
    }
    assert list(shown.values()) == ["tw_1_x"] * 3 + [None] * len(FAR)
    given = credentials("https://far", {"TIDEWHEEL_TOKEN": "tw_2_y"})
    assert (given.token, given.origin) == ("tw_2_y", "TIDEWHEEL_TOKEN")
    assert "tw_2_y" not in repr(given)


@pytest.mark.parametrize(
    "url",
    [
        "http://far",
        "HTTP://far:8450",
        "http://127.0.0.1.evil.example",
        "http://localhost@far",
        "http://127.0.0.1:1, http://far",
    ],
)
def test_a_token_does_not_go_over_the_network_for_everybody_to_read(url):
    """Security audit, LOW: TIDEWHEEL_TOKEN went in clear to any http host."""
    environment = {"TIDEWHEEL_TOKEN": "tw_2_y"}
    with pytest.raises(BadSetting, match="TIDEWHEEL_ALLOW_PLAIN_HTTP=1"):
        StoreSettings(url=url, credentials=credentials(url, environment))
    allowed = credentials(url, environment | {"TIDEWHEEL_ALLOW_PLAIN_HTTP": "1"})
    assert StoreSettings(url=url, credentials=allowed).credentials.token == "tw_2_y"


@pytest.mark.parametrize(
    "url", ["https://far", "http://127.0.0.1:1", "http://localhost", "http://[::1]:8450"]
)
def test_a_token_goes_by_tls_or_to_this_machine(url):
    shown = credentials(url, {"TIDEWHEEL_TOKEN": "tw_2_y"})
    assert StoreSettings(url=url, credentials=shown).credentials.token == "tw_2_y"


def test_a_command_says_what_to_do_about_a_token_that_would_go_in_clear(here):
    refused = here("tasks", "--server", "http://far.example", TIDEWHEEL_TOKEN="tw_2_y")
    assert refused.status == 2
    assert "https://HOST" in refused.err and "TIDEWHEEL_ALLOW_PLAIN_HTTP=1" in refused.err


def test_the_audit_is_listed_exported_and_checked_offline(server, there, here, tmp_path):
    """Security audit, LOW: there was no chain of hashes, and no export to check."""
    reach(here, server, "admin")
    admin = server.caller("admin")
    for name in ("first", "sec\u00f6nd", "third"):
        assert admin.post(f"/queues/{name.encode().hex()}/pause").status == 200
    listed = here("audit", "--limit", "3")
    assert listed.out.count("paused the queue") == 3
    promised = json_page.promised()["tidewheel audit"]["entries"][0]
    assert set(here("--json", "audit").json["entries"][0]) == set(promised)
    path = tmp_path / "audit.jsonl"
    assert here("audit", "--export", str(path)).status == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert here("audit", "--export", str(path)).status == 2, "it is there already"
    lines = path.read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert digests_as_the_manual_says(lines) == [json.loads(one)["sha256"] for one in lines]
    (tmp_path / "alone").mkdir()
    alone = CommandLine(tmp_path / "alone")  # who knows no store and no server
    whole = alone("--json", "audit", "--check", str(path))
    assert (whole.status, whole.json["broken"]) == (0, None)
    forged = {
        "changed": [lines[0], lines[1].replace('"a test"', '"b test"'), *lines[2:]],
        "missing": [lines[0], *lines[2:]],
        "is not an audit entry": [*lines, "{}"],
    }
    for how, some in forged.items():
        path.write_text("\n".join(some) + "\n")
        found = alone("audit", "--check", str(path))
        assert found.status == 1 and how in found.out, found

    verified = there("--json", "verify").json
    assert verified == {"audit": whole.json["head"], "violations": []}
    assert there("verify", "--audit-head", verified["audit"]).status == 0
    number, _, digest = verified["audit"].partition(":")
    for told in (f"{int(number) + 1}:{digest}", f"{number}:{'0' * 64}"):
        cut_off = there("verify", "--audit-head", told)
        assert cut_off.status == 1 and f"entry {told.partition(':')[0]}" in cut_off.out
    assert there("verify", "--audit-head", "what").status == 2


def digests_as_the_manual_says(lines):
    """docs/server.md, "Audit", word by word."""
    digests = ["0" * 64]
    for entry in map(json.loads, lines):
        at = f"{datetime.fromisoformat(entry['at']).timestamp():.6f}"
        place = [digests[-1], entry["number"], at, entry["token"], entry["who"]]
        said = [entry[name] for name in ("client", "verb", "target", "status", "correlation")]
        text = json.dumps(place + said, ensure_ascii=False, separators=(",", ":"))
        digests.append(hashlib.sha256(text.encode()).hexdigest())
    return digests[1:]


def test_the_log_of_a_task_of_the_queue_is_searched_through_a_server(server, here):
    reach(here, server, "admin", "worker")
    script = "echo start; echo 'ERROR: CFL violated' >&2; echo CFL is fine"
    here("submit", "--id", "sought", "--queue", "found", "--", "bash", "-c", script)
    assert here("worker", "--queue", "found", "--exit-when-idle").status == 0
    found = here("log", "sought", "--search", "cfl")
    assert found.out == "sought out:2: CFL is fine\nsought err:1: ERROR: CFL violated\n"
    assert "2 lines in 2 logs" in found.err
    only = here("log", "sought", "--search", "CFL*lat", "--glob", "--err", "--json").json
    assert [(one["id"], one["file"], one["line"]) for one in only["hits"]] == [
        ("sought", "err", 1)
    ]
    assert (only["run"], only["files"], only["missing"], only["done"]) == (None, 1, 0, True)
    none = here("log", "sought", "--search", "x", "--attempt", "7")
    assert "1 attempt had no log here" in none.err
    assert here("log", "never", "--search", "x").status == 2
