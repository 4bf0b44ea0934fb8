"""Giant definitions: read, driven and looked at by processes with limits (M1, S17)."""

import asyncio
import os
import pickle
import struct
import time
from functools import partial
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.http_server import in_path, running_server
from tests.support.patience import eventually
from tidewheel.client.embedded import Scheduler
from tidewheel.config import ProcessLimits, SchedulerSettings
from tidewheel.errors import NotFound
from tidewheel.wiring.limited_process import LimitedProcesses, LimitHit

SMALL = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n"


def giant(count):
    """A short text that stands for so many hundreds of tasks."""
    return (
        f"[task parameters]\ni = 1..{count}\nj = 1..100\n[scheduling]\n[[graph]]\n"
        "R1 = a<i,j>\n[runtime]\n[[a<i,j>]]\n"
    )


def begin(caller, workflow, flow, **options):
    return caller.post("/runs", {"workflow": workflow, "flow": flow, "options": options})


# ---- processes with limits ----


@pytest.fixture
def _importable(monkeypatch):
    """A child imports the functions of this module."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


def burn(seconds):
    ends_at = time.process_time() + seconds
    while time.process_time() < ends_at:
        pass
    return seconds


def fill(size):
    return len(bytearray(size))


def refuse(name):
    raise NotFound("run", name)


def in_processes(limits, *calls):
    """The outcome of each call, by name and work, all at once, and the order of their ends."""
    ended = []

    async def one(processes, place, name, work):
        try:
            return await processes.run(name, work)
        except Exception as error:
            return error
        finally:
            ended.append(place)

    async def everything():
        processes = LimitedProcesses(limits)
        try:
            tasks = [one(processes, place, *call) for place, call in enumerate(calls)]
            return await asyncio.gather(*tasks)
        finally:
            processes.close()

    return asyncio.run(everything()), ended


@pytest.mark.usefixtures("_importable")
def test_m1_a_process_is_ended_at_its_limits_and_says_which():
    limits = ProcessLimits(cpu_seconds=1.0, memory_bytes=512 * 1024**2)
    calls = [
        ("a/burns", partial(burn, 60)),
        ("b/fills", partial(fill, 1024**3)),
        ("c/refuses", partial(refuse, "r")),
        ("d/works", partial(fill, 10)),
        ("d/dies", partial(os._exit, 3)),
    ]
    (burnt, filled, refused, worked, died), _ = in_processes(limits, *calls)
    assert isinstance(burnt, LimitHit) and "1 s of CPU time" in str(burnt)
    assert isinstance(filled, LimitHit) and "512 MiB of memory" in str(filled)
    assert (type(refused), refused.name) == (NotFound, "r")
    assert worked == 10
    assert "status 3" in str(died)


@pytest.mark.usefixtures("_importable")
def test_m1_the_giants_of_one_team_wait_for_each_other_and_for_nobody_else():
    calls = [(f"a/{number}", partial(burn, 0.5)) for number in range(4)]
    calls.append(("b/small", partial(burn, 0.0)))
    _, ended = in_processes(ProcessLimits(), *calls)
    assert ended.index(4) <= 1  # beside the first of the other team, never behind its last
    assert sorted(ended[:-1] + ended[-1:]) == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("_importable")
@pytest.mark.parametrize("size", [0, 300 * 1024**2])  # of the server, which is not the child's
def test_a_process_is_used_again_and_carries_no_secret_of_its_server(monkeypatch, size):
    monkeypatch.setenv("TIDEWHEEL_STORE", "postgresql://u:secret@h/d")
    held = b"x" * size

    async def twice():
        processes = LimitedProcesses(ProcessLimits())
        try:
            return [
                await processes.run("a", partial(_seen, name))
                for name in ("TIDEWHEEL_STORE", "PATH")
            ]
        finally:
            processes.close()

    (first, hidden), (second, shown) = asyncio.run(twice())
    assert first == second != os.getpid()
    assert len(held) == size
    assert (hidden, shown) == (None, os.environ["PATH"])


class Evil:
    """A value that is a call, for whoever reads it carelessly."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return os.mkdir, (self._path,)


def make_evil(path):
    return Evil(path)


@pytest.mark.usefixtures("_importable")
def test_no_answer_of_a_process_is_executed(tmp_path):
    """The process reads what strangers wrote: it is believed no more than they are."""
    path = str(tmp_path / "made")
    [outcome], _ = in_processes(ProcessLimits(), ("a", partial(make_evil, path)))
    assert "is not a value" in str(outcome)
    assert not os.path.exists(path)


def lie(path):
    """Answers with what a process would that somebody has taken over: a name that leads on."""
    module, name = b"tidewheel.wiring.limited_process", b"subprocess.Popen"
    words = b"".join(b"\x8c" + bytes([len(one)]) + one for one in (module, name))
    told = pickle.dumps((["mkdir", path],), 2)[2:-1]
    answer = b"\x80\x04" + words + b"\x93" + told + b"R."
    os.write(3, struct.pack("!Q", len(answer)) + answer)
    os._exit(0)


@pytest.mark.usefixtures("_importable")
def test_no_name_in_an_answer_leads_through_the_imports_of_a_module(tmp_path):
    """A process that was taken over must not get further than itself."""
    path = str(tmp_path / "made")
    [outcome], _ = in_processes(ProcessLimits(), ("a", partial(lie, path)))
    assert "subprocess.Popen is not a value" in str(outcome)
    assert not os.path.exists(path)


def _seen(name):
    return os.getpid(), os.environ.get(name)


# ---- a server ----


def test_m1_a_giant_costs_its_own_limit_and_a_small_run_is_begun_meanwhile(tmp_path):
    limits = {"definition_cpu_seconds_max": 2.0, "home": tmp_path}
    with running_server(f"sqlite:///{tmp_path}/t.db", **limits) as server:
        submitter = server.caller("submit")
        reply = begin(submitter, "team-a/giant", giant(1_000))
        assert (reply.status, reply.code) == (422, "too_large"), reply.body
        assert "2 s of CPU time" in reply.json["message"]
        assert begin(submitter, "team-b/small", SMALL).status == 201


def test_m1_a_giant_is_begun_and_looked_at_as_any_other_run(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db", home=tmp_path) as server:
        submitter = server.caller("submit", "read")
        reply = begin(submitter, "team-a/giant", giant(40), paused=True)
        assert reply.status == 201, reply.body
        shown = submitter.get(f"/runs/{in_path('team-a/giant/run1')}/summary")
        assert shown.status == 200, shown.body
        wrong = begin(submitter, "team-a/wrong", giant(40) + "[[b]]\nnonsense = 1\n")
        assert (wrong.status, wrong.code) == (422, "invalid_definition")
        assert any("nonsense" in one["message"] for one in wrong.json["findings"])


# ---- a scheduler ----


@pytest.mark.parametrize(("count", "is_apart"), [(1, False), (40, True)])
def test_m1_a_giant_run_is_driven_by_a_process_of_its_own(tmp_path, count, is_apart):
    tidewheel = CommandLine(tmp_path)
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        submitter = server.caller("submit", "operate", "read")
        reply = begin(submitter, "w", giant(count), mode="skip", paused=True)
        assert reply.status == 201, reply.body
        settings = SchedulerSettings(interval_seconds=0.1)
        with Scheduler(tidewheel.store, settings=settings, home=tidewheel.state):
            path = "/runs/w%2Frun1"
            eventually(lambda: status_of(submitter, path) == "paused", "it is driven")
            driver = server.do(server.store.find_run("w/run1")).owner
            assert (driver.pid != os.getpid()) is is_apart
            assert submitter.post(f"{path}/resume?wait_s=10").status == 200
            eventually(lambda: status_of(submitter, path) == "completed", "it ends", 60)
        if is_apart:
            eventually(lambda: not is_there(driver.pid), "its process has ended")


def status_of(caller, path):
    return caller.get(f"{path}/facts").json["run"]["status"]


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_giant_run_is_given_back_when_its_scheduler_stops(tmp_path):
    tidewheel = CommandLine(tmp_path)
    with running_server(tidewheel.store, home=tidewheel.state) as server:
        submitter = server.caller("submit", "read")
        begin(submitter, "w", giant(40), mode="skip", paused=True)
        settings = SchedulerSettings(interval_seconds=0.1)
        with Scheduler(tidewheel.store, settings=settings, home=tidewheel.state):
            eventually(lambda: status_of(submitter, "/runs/w%2Frun1") == "paused", "driven")
            pid = server.do(server.store.find_run("w/run1")).owner.pid
        assert not is_there(pid)
        left = submitter.get("/runs/w%2Frun1/facts").json["run"]
        assert (left["status"], left["driven"]) == ("paused", False)
