"""Secrets by reference: a job has the value, and nobody finds it anywhere else.

Real servers, workers and jobs; what is looked through is everything that they have written.
"""

import asyncio
import json
import os
from pathlib import Path

import psycopg
import pytest

from tests.support.http_server import Caller, in_path
from tests.support.patience import eventually
from tidewheel.client.tokens import make_token
from tidewheel.core.queue.access import Grant, Scope
from tidewheel.wiring.stores import opened_store

VALUE = "hunter2-is-not-a-password"
KEY = "-----BEGIN KEY-----\nfirst-line-of-the-key\n-----END KEY-----"
LONG_LEASE_SECONDS = 600.0
OVER = ("succeeded", "failed")


@pytest.fixture
def secrets(tmp_path):
    """Beside everything that is looked through."""
    folder = tmp_path.parent / f"{tmp_path.name}-secrets"
    put(folder, "team-a/db", VALUE)
    put(folder, "team-a/key", KEY)
    return folder


def put(folder, name, value):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(f"{value}\n")
    return path


def found_in(far, *values):
    """Every file and table of a fleet in which one of the values can be read."""
    seen = []
    for folder, _, names in os.walk(far.folder):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and any(one.encode() in path.read_bytes() for one in values):
                seen.append(str(path))
    if far.store.startswith("postgres"):
        with psycopg.connect(far.store) as connection:
            tables = connection.execute(
                "SELECT table_name FROM information_schema.tables "
                "WHERE table_schema = 'tidewheel' AND table_type = 'BASE TABLE'"
            )
            for (table,) in tables.fetchall():
                rows = connection.execute(f"SELECT t::text FROM tidewheel.{table} t").fetchall()
                seen += [table for (row,) in rows if any(one in row for one in values)]
    return seen


def ended(client, task_id):
    eventually(lambda: client.get(task_id).status.value in OVER, f"{task_id} has ended")
    return client.get(task_id)


def log(caller, task_id, stream="out", attempt=1):
    reply = caller.get(f"/tasks/{in_path(task_id)}/logs/{stream}?attempt={attempt}")
    return reply.body.decode() if reply.status == 200 else None


LEAKY = """\
say() { tidewheel message "it is $DB"; }
echo "printed $DB"; printf %s "${DB:0:10}"; printf '%s\\n' "${DB:10}"
echo "$KEY" | sed -n 2p
set -x; : "$DB"; set +x
printf '{"password": "%s"}' "$DB" > "$TIDEWHEEL_OUTPUTS"
[ -z "$(find . -name job -exec grep -l "$DB" {} +)" ] || exit 9
"""


def test_a_secret_is_in_no_file_table_or_answer_after_a_retry_and_a_killed_worker(
    far, client, secrets, tmp_path
):
    client.configure_queue("team-a", lease_seconds=LONG_LEASE_SECONDS)
    gate = tmp_path / "gate"
    waits = f"until [ -e {gate} ]; do sleep 0.05; done"
    command = f"""{LEAKY}
if [ $TIDEWHEEL_ATTEMPT = 1 ]; then say; echo "failed with $DB" >&2; exit 3; fi
say; {waits}; say; echo "after $DB"
"""
    first = far.worker_afar("w", "--queue", "team-a", "--secrets", str(secrets))
    variables = {"DB": "secret:team-a/db", "KEY": "secret:team-a/key", "PLAIN": "x"}
    client.submit(command=command, queue="team-a", id="a", retries=1, environment=variables)
    reader = far.caller("read")
    eventually(lambda: "***" in (log(reader, "a", attempt=2) or ""), "the second one runs")
    eventually(lambda: len(client.outputs("a")) == 2, "it has spoken")
    first.kill()
    far.worker_afar("w", "--queue", "team-a", "--secrets", str(secrets)).says("adopted")
    gate.touch()
    task = ended(client, "a")
    assert task.status.value == "succeeded", client.attempts("a")
    assert task.environment == variables
    assert [one.text for one in client.outputs("a")] == ["it is ***"] * 3
    assert client.attempts("a")[0].error.description.endswith("failed with ***")
    eventually(lambda: "after" in log(reader, "a", attempt=2), "all of it was sent")
    assert log(reader, "a", attempt=2).splitlines()[:3] == ["printed ***", "***", "***"]
    assert ": '***'" in log(reader, "a", "err", 2) or ": ***" in log(reader, "a", "err", 2)
    told = reader.get("/tasks/a").json
    assert told["environment"] == variables
    assert found_in(far, VALUE, "first-line-of-the-key") == []


def test_a_team_is_not_given_what_is_anothers(far, client, secrets):
    put(secrets, "team-a/nightly/key", "of-the-nightly-alone")
    put(secrets, "shared", "for-all-of-this-worker")
    far.worker_afar("w", "--queue", "*", "--secrets", str(secrets))

    async def token(name):
        async with opened_store(far.store) as store:
            grant = Grant(scopes=frozenset({Scope.SUBMIT}), names=(name,))
            return (await make_token(store, name, grant))[0]

    def asked_by(name, queue, secret, number):
        caller = Caller(far.url.removeprefix("http://"), asyncio.run(token(name)))
        body = {"id": f"{number}", "queue": queue, "command": 'test -n "$S"'}
        return caller.post("/tasks", body | {"environment": {"S": f"secret:{secret}"}})

    assert asked_by("team-b", "team-a", "team-a/db", "no").status == 403
    rows = [
        ("team-a", "team-a", "team-a/db", "succeeded"),
        ("team-a", "team-a/nightly", "team-a/db", "succeeded"),
        ("team-a", "team-a/nightly", "team-a/nightly/key", "succeeded"),
        ("team-a", "team-a", "team-a/nightly/key", "failed"),
        ("team-b", "team-b", "team-a/db", "failed"),
        ("team-ab", "team-ab", "team-a/db", "failed"),
        ("team-b", "team-b", "team-b/db", "failed"),
        ("team-b", "team-b", "shared", "succeeded"),
    ]
    for number, (name, queue, secret, _) in enumerate(rows):
        assert asked_by(name, queue, secret, number).status == 201
    got = [ended(client, str(number)).status.value for number in range(len(rows))]
    assert got == [row[-1] for row in rows]
    said = client.get("4").errors[0].description
    assert said.startswith("secret:team-a/db is only for names under team-a")
    assert "this queue is team-b" in said
    assert "there is no secret secret:team-b/db" in client.get("6").errors[0].description
    assert found_in(far, VALUE) == []


def test_a_bad_reference_is_refused_when_it_is_submitted(far):
    submit = far.caller("submit")
    for bad in ("secret:", "secret:../x", "secret:/etc/shadow", "secret:a b"):
        reply = submit.post("/tasks", {"command": "true", "environment": {"S": bad}})
        assert reply.status == 422, reply.body
        assert "is not a reference to a secret" in json.dumps(reply.json)
