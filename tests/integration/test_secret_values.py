"""Where a worker finds secrets, and what it refuses to take for one."""

import asyncio
import json
import os
import sys

import pytest

from tests.kit.runner_conformance import claimed
from tests.support.fleet import is_gone
from tests.support.patience import allowed, eventually
from tidewheel.runners.secret_values import (
    LINES_MAX,
    VALUE_BYTES_MAX,
    SecretRefused,
    SecretSources,
)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "secrets"
    made.mkdir()
    return made


def put(folder, name, content=b"value", mode=0o600):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def value(sources, secret, queue="team-a"):
    task = claimed(queue=queue, environment=json.dumps({"S": f"secret:{secret}", "P": "x"}))

    async def ask():
        async with asyncio.timeout(allowed(30)):
            return await sources.values_for(task)

    return asyncio.run(ask())["S"]


def refused(sources, secret, queue="team-a"):
    with pytest.raises(SecretRefused) as why:
        value(sources, secret, queue)
    return str(why.value)


def test_a_file_holds_a_secret_without_the_newline_at_its_end(folder):
    sources = SecretSources(directory=folder)
    put(folder, "team-a/db", b"pass word\n")
    put(folder, "team-a/nightly/key", b"one\ntwo\n\n")
    put(folder, "shared", "Köln".encode())
    assert value(sources, "team-a/db") == "pass word"
    assert value(sources, "team-a/nightly/key", "team-a/nightly") == "one\ntwo\n"
    assert value(sources, "shared", "anybody") == "Köln"


def test_a_value_is_read_anew_each_time(folder):
    sources = SecretSources(directory=folder)
    put(folder, "db", b"old")
    assert value(sources, "db") == "old"
    put(folder, "db", b"new")
    assert value(sources, "db") == "new"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"a\0b", "has a NUL"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * (VALUE_BYTES_MAX + 1), "has more than 65536 bytes"),
        (b"line\n" * (LINES_MAX + 1), "has more than 1000 lines"),
    ],
)
def test_what_no_variable_can_hold_is_refused_and_not_told(folder, content, words):
    put(folder, "s", content)
    said = refused(SecretSources(directory=folder), "s")
    assert said.startswith(f"secret:s {words}")
    assert "\ufffd" not in said and "xxx" not in said
    telling = (sys.executable, "-c", f"import os; os.write(1, {content[:70_000]!r})")
    assert f"secret:s {words}" in refused(SecretSources(command=(*telling,)), "s")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602])
def test_a_file_that_others_can_reach_is_refused(folder, mode):
    path = put(folder, "s", mode=mode)
    if mode == 0o640 and os.geteuid() == 0:
        assert value(SecretSources(directory=folder), "s") == "value"  # as for other keys
        return
    said = refused(SecretSources(directory=folder), "s")
    assert "can be read by others" in said and f"chmod 600 {path}" in said


def test_no_link_leads_out_of_the_folder(folder, tmp_path):
    put(tmp_path, "outside/db")
    (folder / "direct").symlink_to(tmp_path / "outside/db")
    (folder / "team-a").symlink_to(tmp_path / "outside")
    put(folder, "..data/real")
    (folder / "inside").symlink_to("..data/real")  # as Kubernetes mounts secrets
    sources = SecretSources(directory=folder)
    assert f"leads out of {folder}" in refused(sources, "direct")
    assert f"leads out of {folder}" in refused(sources, "team-a/db")
    assert value(sources, "inside") == "value"


def test_what_is_no_file_is_refused_at_once(folder):
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe", 0o600)
    sources = SecretSources(directory=folder)
    # A folder holds secrets of others: it is as if it were not there.
    assert refused(sources, "sub") == refused(sources, "ghost").replace("ghost", "sub")
    assert "is not a plain file" in refused(sources, "pipe")
    assert "there is no secret secret:sub/x/y" in refused(sources, "sub/x/y", "sub/x")


def test_a_credential_of_systemd_is_found_by_a_name_without_slashes(folder):
    sources = SecretSources(credentials=folder)
    put(folder, "secret.team-a~db", mode=0o400)
    put(folder, "secret.acl", mode=0o440)  # how systemd grants it to a user
    put(folder, "secret.open", mode=0o444)
    put(folder, "tidewheel.token", b"the worker's own")
    assert value(sources, "team-a/db") == "value"
    assert value(sources, "acl") == "value"
    assert "can be read by others" in refused(sources, "open")
    said = refused(sources, "tidewheel.token")
    assert "can put it there: the systemd credential secret.tidewheel.token" in said
    assert "only for names under team-a" in refused(sources, "team-a/db", "team-b")


def test_a_command_prints_what_its_last_argument_names():
    words = (sys.executable, "-c", "import sys; print(sys.argv[1:])", "show")
    assert value(SecretSources(command=words), "team-a/db") == "['show', 'team-a/db']"


@pytest.mark.parametrize(
    ("code", "words"),
    [("import sys; sys.exit(3)", "ended with status 3"), ("print()", "is empty")],
)
def test_a_command_that_gives_nothing_says_so(code, words):
    command = (sys.executable, "-c", code)
    assert words in refused(SecretSources(command=command), "s")
    assert "cannot be started" in refused(SecretSources(command=("/no/such",)), "s")


def test_a_command_that_takes_long_is_killed_with_what_it_started(tmp_path):
    told = tmp_path / "pid"
    code = f"sleep 600 & echo $! > {told}; wait"
    sources = SecretSources(command=("bash", "-c", code), command_seconds_max=1.0)
    assert "took more than 1 s and was killed" in refused(sources, "s")
    eventually(lambda: is_gone(int(told.read_text())), "what it started is gone")


def test_the_first_place_that_has_a_secret_counts(folder, tmp_path):
    credentials = tmp_path / "credentials"
    command = (sys.executable, "-c", "print('printed')")
    both = SecretSources(directory=folder, credentials=credentials, command=command)
    assert value(both, "s") == "printed"
    put(credentials, "secret.s", b"credential")
    assert value(both, "s") == "credential"
    put(folder, "s", b"file")
    assert value(both, "s") == "file"


def test_a_worker_without_secrets_says_what_it_was_started_without():
    assert "started without secrets (--secrets DIR" in refused(SecretSources(), "s")


def test_who_may_not_use_a_secret_learns_nothing_of_it(folder):
    sources = SecretSources(directory=folder)
    put(folder, "team-a/there")
    there = refused(sources, "team-a/there", "team-b")
    assert there == refused(sources, "team-a/gone", "team-b").replace("gone", "there")


@pytest.mark.parametrize(
    ("run", "queue", "good"),
    [("team-a/x/run1", "q", True), ("team-b/x", "run:team-a/x", False), (None, "team-a", True)],
)
def test_the_name_of_the_run_counts_and_that_of_a_queue_for_others(folder, run, queue, good):
    put(folder, "team-a/db")
    ids = {} if run is None else {"id": f"{run}/1/foo/1", "run": 7}
    task = claimed(queue=queue, environment='{"S": "secret:team-a/db"}', **ids)
    asked = SecretSources(directory=folder).values_for(task)
    if good:
        assert asyncio.run(asked) == {"S": "value"}
    else:
        with pytest.raises(SecretRefused, match=f"this run is {run}"):
            asyncio.run(asked)
