"""A worker that asks the launcher of `--run-as`: no job is ever taken for another one."""

import errno
import json
import socket

import pytest

from tidewheel.errors import LauncherLost, Refused
from tidewheel.runners.job_users import LauncherClient


@pytest.fixture
def ends():
    """The worker's end, whose patience is short, and that of the launcher."""
    asking, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked.settimeout(10)
    with asking, asked:
        yield LauncherClient(asking, answer_seconds_max=0.01), asked


def said(pid):
    return json.dumps({"pid": pid, "started": 1}).encode()


def test_an_answer_that_comes_late_is_never_that_to_the_next_request(ends):
    launcher, asked = ends
    with pytest.raises(LauncherLost, match="does not answer"):
        launcher.ask({"name": "first"})
    assert asked.recv(1) == b"?" and asked.recv(1) == b""  # it is told that it was the last
    with pytest.raises(BrokenPipeError):
        asked.send(said(1))
    with pytest.raises(LauncherLost, match="does not answer"):
        launcher.ask({"name": "second"})


def test_what_is_no_answer_is_the_last_one_too(ends):
    launcher, asked = ends
    asked.send(b"{")
    with pytest.raises(LauncherLost):
        launcher.ask({"name": "first"})
    assert asked.recv(1) == b"?" and asked.recv(1) == b""


def test_answers_in_time_are_processes_and_refusals(ends):
    launcher, asked = ends
    asked.send(said(7))
    asked.send(b'{"refused": "no user"}')
    asked.send(said(8))
    assert launcher.ask({"name": "first"}).pid == 7
    with pytest.raises(Refused, match="no user"):
        launcher.ask({"name": "second"})
    assert launcher.ask({"name": "third"}).pid == 8


def test_a_machine_that_can_start_nothing_is_the_worker_s_trouble_and_not_the_job_s(ends):
    launcher, asked = ends
    asked.send(json.dumps({"refused": "no fork", "errno": errno.EAGAIN}).encode())
    asked.send(b'{"refused": "words are a list", "errno": null}')
    with pytest.raises(BlockingIOError, match="fork"):
        launcher.ask({"name": "first"})
    with pytest.raises(Refused, match="words are a list"):
        launcher.ask({"name": "second"})
