"""Workers that know nothing but a server: what they do for their jobs, what outlives them."""

import signal
from pathlib import Path

import pytest

from tests.kit.tcp_proxy import Fault, Harm
from tests.support.fleet import is_gone
from tests.support.http_server import in_path
from tests.support.patience import eventually, pace
from tests.support.run_crew import ended

LONG_LEASE_SECONDS = 600.0
SHORT_LEASE_SECONDS = 4.0  # a worker on a busy machine keeps it all the same
WORKING = ("--slots", "4")
# Where nothing depends on the database.
on_a_file = pytest.mark.parametrize("far", ["sqlite"], indirect=True)


def status(client, task_id):
    return client.get(task_id).status.value


def until(client, task_id, *wanted):
    eventually(lambda: status(client, task_id) in wanted, f"{task_id} is {wanted}")


def story(client, task_id):
    return [entry.signal.value for entry in client.history(task_id) if entry.signal]


def log(far, task_id, stream="out", attempt=1):
    reply = far.caller("read").get(f"/tasks/{in_path(task_id)}/logs/{stream}?attempt={attempt}")
    return reply.body.decode() if reply.status == 200 else None


def waits_for(path):
    """A line of bash that goes on when somebody makes a file."""
    return f"until [ -e {path} ]; do sleep 0.05; done"


@pytest.fixture
def gate(tmp_path):
    return tmp_path / "gate"


@on_a_file
def test_what_jobs_write_is_read_at_the_server_while_they_run_and_after(far, client, gate):
    far.worker_afar("w", *WORKING)
    command = f"echo one; echo oh >&2; {waits_for(gate)}; echo two"
    client.submit(command=command, id="a")
    eventually(lambda: log(far, "a") == "one\n", "the first line")
    gate.touch()
    until(client, "a", "succeeded")
    eventually(lambda: log(far, "a") == "one\ntwo\n", "all of it")
    assert log(far, "a", "err") == "oh\n"
    [copy] = far.home.glob("tasks/*/*/1/job.out")
    assert copy.read_text() == "one\ntwo\n"
    [own] = far.home_of("w").glob("tasks/*/*/1/job.out")
    assert own.read_text() == "one\ntwo\n"


@on_a_file
def test_a_worker_in_the_servers_own_folder_sends_it_nothing(far, client):
    """Else a file would be written twice, by the job and by the server."""
    far.worker_afar("w", *WORKING, TIDEWHEEL_HOME=str(far.home))
    client.submit(command="for n in 1 2 3; do echo $n; sleep 0.5; done", id="a")
    until(client, "a", "succeeded")
    assert log(far, "a") == "1\n2\n3\n"
    figures = far.caller("admin").get("//metrics").body.decode()
    assert "/heartbeats" in figures or "/reports" in figures
    assert "PUT /api/v1/tasks" not in figures


def test_a_job_goes_on_while_the_server_is_away_and_all_is_told_afterwards(far, client, gate):
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    worker = far.worker_afar("w", *WORKING)
    command = f"{far.noting('begin')}; echo before; {waits_for(gate)}; echo after"
    client.submit(command=command, id="a")
    eventually(lambda: log(far, "a") == "before\n", "it runs")
    far.server.kill()
    gate.touch()
    worker.says("store.unavailable")
    pace(1.0)
    far.restart_server()
    until(client, "a", "succeeded")
    eventually(lambda: log(far, "a") == "before\nafter\n", "all of it")
    assert story(client, "a") == ["claim", "succeed"]
    assert len(far.executions()) == 1


def test_a_worker_that_was_killed_is_succeeded_by_one_of_its_host(far, client, gate):
    """Its job goes on, as does its log; no lease is lost."""
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    first = far.worker_afar("w", *WORKING)
    command = f"{far.noting('begin')}; echo one; {waits_for(gate)}; echo two"
    client.submit(command=command, id="a")
    eventually(lambda: log(far, "a") == "one\n", "it runs")
    first.kill()
    far.worker_afar("w", *WORKING)
    eventually(lambda: "adopt" in story(client, "a"), "it is adopted")
    gate.touch()
    until(client, "a", "succeeded")
    eventually(lambda: log(far, "a") == "one\ntwo\n", "all of it")
    assert story(client, "a") == ["claim", "adopt", "succeed"]
    assert len(far.executions()) == 1


@on_a_file
def test_a_worker_of_another_home_leaves_the_jobs_of_a_dead_one_alone(far, client, gate):
    """It knows nothing of them: to give them back would be to run them twice."""
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    first = far.worker_afar("w", *WORKING)
    client.submit(command=f"{far.noting('begin')}; {waits_for(gate)}", id="a")
    eventually(far.executions, "it runs")
    first.kill()
    often = {"TIDEWHEEL_ADOPT_INTERVAL_SECONDS": "0.1"}
    others = far.worker_afar("another", *WORKING, **often), far.worker(*WORKING, **often)
    for other in others:  # by then the server has answered what the dead one had asked for
        other.says("worker.registered")
    client.submit(command=far.noting("begin"), id="b")
    until(client, "b", "succeeded")
    pace(0.5)
    assert story(client, "a") == ["claim"]
    far.worker_afar("w", *WORKING)
    gate.touch()
    until(client, "a", "succeeded")
    assert story(client, "a") == ["claim", "adopt", "succeed"]


def test_a_worker_that_slept_through_its_lease_changes_nothing(far, client):
    """RELIABILITY 13: its job is ended, its log goes to its own attempt."""
    client.configure_queue("default", lease_seconds=SHORT_LEASE_SECONDS)
    stale = far.worker_afar("stale", "--slots", "1")
    command = f"{far.noting('begin')}; echo attempt $TIDEWHEEL_ATTEMPT; exec sleep 600"
    client.submit(command=command, id="a", max_lapses=10)
    [first] = eventually(far.executions, "it runs")
    stale.send(signal.SIGSTOP)
    fresh = far.worker_afar("fresh", "--slots", "1")
    eventually(lambda: len(far.executions()) == 2, "it runs elsewhere")
    eventually(lambda: log(far, "a", attempt=2) == "attempt 2\n", "its log")
    stale.send(signal.SIGCONT)
    eventually(lambda: is_gone(first.pid), "the stale job is ended")
    assert status(client, "a") == "running" and client.get("a").attempt == 2
    eventually(lambda: log(far, "a", attempt=1) == "attempt 1\n", "the late log")
    assert log(far, "a", attempt=2) == "attempt 2\n"
    client.cancel("a")
    until(client, "a", "cancelled")
    assert client.verify() == []
    assert fresh.runs and stale.runs


def test_a_job_is_cancelled_at_once_by_the_channel(far, client):
    """No heartbeat of a long lease would have said it in time."""
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    far.worker_afar("w", *WORKING)
    client.submit(command=f"{far.noting('begin')}; exec sleep 600", id="a")
    [one] = eventually(far.executions, "it runs")
    client.cancel("a")
    until(client, "a", "cancelled")
    assert is_gone(one.pid)


@on_a_file
def test_a_channel_that_breaks_is_opened_again(far, client):
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    far.worker_afar("w", *WORKING)
    client.submit(command=f"{far.noting('begin')}; exec sleep 600", id="a")
    eventually(far.executions, "it runs")
    far.proxy.refuse()
    client.cancel("a")
    pace(0.5)
    far.proxy.heal()
    until(client, "a", "cancelled")


@on_a_file
@pytest.mark.parametrize(
    ("how", "status_after"), [("--yield", "ready"), ("--drain", "succeeded")]
)
def test_a_worker_that_is_told_to_stop_gives_back_or_finishes(far, client, how, status_after):
    client.configure_queue("default", lease_seconds=LONG_LEASE_SECONDS)
    worker = far.worker_afar("w", *WORKING, how, "--grace", "20s")
    client.submit(command=f"echo here; {far.noting('begin')}; sleep 2", id="a")
    eventually(far.executions, "it runs")
    assert worker.end() == 0
    assert status(client, "a") == status_after
    assert log(far, "a") == "here\n"
    [view] = client.workers(live_only=False)
    assert view.stopped_at is not None


def test_a_worker_that_is_to_stop_when_it_is_idle_does(far, client):
    for number in range(5):
        client.submit(command=far.noting("begin"), id=f"t{number}", queue=f"q{number}")
    worker = far.worker_afar("w", "--queue", "q*", "--exit-when-idle")
    assert ended(worker) == 0, worker.log
    assert {status(client, f"t{number}") for number in range(5)} == {"succeeded"}


@on_a_file
def test_jobs_that_are_tied_die_with_their_worker(far, client):
    client.configure_queue("default", lease_seconds=SHORT_LEASE_SECONDS)
    worker = far.worker_afar("w", "--tie-jobs")
    client.submit(command="echo here; exec sleep 611", id="a", max_lapses=0)
    eventually(lambda: log(far, "a") == "here\n", "it runs")
    assert far.jobs()
    worker.kill()
    eventually(lambda: not far.jobs(), "its job is gone")
    until(client, "a", "failed")


@on_a_file
def test_a_job_speaks_to_the_server_itself_where_its_worker_is_out_of_reach(far, client, gate):
    """As on a node of a cluster: no folder, no socket, only a server and a token."""
    far.worker_afar("w", *WORKING)
    nowhere = "env -u TIDEWHEEL_JOB_DIR -u TIDEWHEEL_SECRET"
    elsewhere = "env TIDEWHEEL_JOB_DIR=/proc/nowhere"
    command = f"""
        tidewheel message "through the worker"
        {nowhere} tidewheel message "by token" --output half --progress 0.5
        {elsewhere} tidewheel message "by token again"
        echo $TIDEWHEEL_TOKEN
        {waits_for(gate)}
    """
    client.submit(command=command, id="a")
    said = lambda: sorted(one.text for one in client.outputs("a"))  # noqa: E731
    expected = ["by token", "by token again", "through the worker"]
    eventually(lambda: said() == expected, "all of it is heard")
    token = eventually(lambda: log(far, "a"), "the token is told").strip()
    assert token.startswith("twa.") and far.token not in token
    gate.touch()
    until(client, "a", "succeeded")
    assert said() == expected


@on_a_file
def test_no_job_finds_the_token_of_its_worker(far, client):
    """S24."""
    far.worker_afar("w", *WORKING)
    client.submit(command="env; cat /proc/self/environ | tr '\\0' '\\n'", id="a")
    until(client, "a", "succeeded")
    seen = eventually(lambda: log(far, "a"), "its environment")
    assert far.token not in seen and far.token.split("_", 2)[2] not in seen


FLOW = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = reload[-P1] => say => reload
[runtime]
    [[say]]
        script = '''
            say-it
            env -u TIDEWHEEL_JOB_DIR -u TIDEWHEEL_SECRET tidewheel message "by token"
        '''
    [[reload]]
        script = '''
            if [[ $CYLC_TASK_CYCLE_POINT == 1 ]]; then
                {wait}
                tidewheel reload "$CYLC_WORKFLOW_ID"
            fi
        '''
"""


@on_a_file
def test_files_of_a_run_are_where_its_jobs_are_also_after_a_reload(far, client, tmp_path, gate):
    """And what its jobs ask of the run is done, with a token for workers alone.

    Files that cannot be fetched are trouble of the worker: the task goes back.
    """
    cut = Fault(Harm.CUT_ANSWER, b"/definition")
    far.proxy.harm(cut, cut)  # the first may be asked again at once, on another connection
    flow = tmp_path / "flow"
    (flow / "bin").mkdir(parents=True)
    (flow / "flow.cylc").write_text(FLOW.replace("{wait}", waits_for(gate)))
    tool = flow / "bin" / "say-it"
    tool.write_text("#!/bin/sh\necho old\n")
    tool.chmod(0o700)
    far.start("scheduler")
    far.worker_afar("w", "--slots", "2", "--queue", "run:*")
    started = far.start("run", str(flow), "--detach", TIDEWHEEL_STORE="", **_operator(far))
    assert ended(started) == 0, started.log
    shown = lambda name: run_log(far, name)  # noqa: E731
    at_server = far.home / "runs/flow/run1/bin/say-it"
    eventually(at_server.exists, "the scheduler has it")
    eventually(lambda: shown("1/say"), "the first point")
    at_server.write_text("#!/bin/sh\necho new\n")
    gate.touch()
    eventually(lambda: shown("2/say"), "the second point")
    assert (shown("1/say"), shown("2/say")) == ("old\n", "new\n")
    assert [one.text for one in client.outputs("flow/run1/1/say/1")] == ["by token"]
    assert story(client, "flow/run1/1/say/1")[:2] == ["claim", "yield"]
    assert (far.home_of("w") / "runs/flow/run1/bin/say-it").read_text().endswith("new\n")


def _operator(far):
    token = far.new_token("submit", "operate")
    return {"TIDEWHEEL_SERVER": far.url, "TIDEWHEEL_TOKEN": token}


def run_log(far, name):
    reply = far.caller("read").get(f"/runs/flow%2Frun1/log?id={name}&file=out")
    return reply.body.decode() if reply.status == 200 else ""


@on_a_file
def test_folders_of_others_are_not_touched(far, client):
    """Everything lies below the two homes."""
    far.worker_afar("w", *WORKING)
    client.submit(command="echo x", id="../../../evil")
    until(client, "../../../evil", "succeeded")
    assert not list(Path(far.folder).glob("**/evil*"))
