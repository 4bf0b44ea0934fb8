"""The network of the test kit: what it does to requests, and that it heals."""

import socket
import threading
from contextlib import contextmanager

import pytest

from tests.kit.tcp_proxy import Fault, Harm, TcpProxy
from tests.support.patience import allowed, eventually, pace


class Echo:
    """Answers each line with itself in capital letters, and remembers all that came."""

    def __init__(self):
        self.heard = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection, connection.makefile("rb") as lines:
            try:
                for line in lines:
                    self.heard.append(line.strip())
                    if line.endswith(b"\n"):
                        connection.sendall(line.upper())
            except OSError:
                pass


@pytest.fixture
def echo():
    made = Echo()
    yield made
    made.socket.close()


@pytest.fixture
def proxy(echo):
    with TcpProxy("127.0.0.1", echo.port) as made:
        yield made


@contextmanager
def connected(proxy):
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=allowed(20)) as made:
        yield made


def ask(connection, line):
    connection.sendall(line + b"\n")
    with connection.makefile("rb") as answers:
        return answers.readline().strip()


def asked(proxy, line):
    """The answer on a connection of its own; None if it broke."""
    with connected(proxy) as connection:
        try:
            return ask(connection, line) or None
        except OSError:
            return None


def test_bytes_pass_until_something_happens(proxy):
    with connected(proxy) as connection:
        assert [ask(connection, one) for one in (b"a", b"b")] == [b"A", b"B"]


def test_a_request_is_cut_within(proxy, echo):
    proxy.harm(Fault(Harm.CUT_REQUEST, b"hello", after_bytes=3))
    assert asked(proxy, b"other") == b"OTHER"
    assert asked(proxy, b"hello") is None
    eventually(lambda: echo.heard == [b"other", b"hel"], "three letters")
    assert asked(proxy, b"hello") == b"HELLO"
    assert proxy.happened[Harm.CUT_REQUEST] == 1


def test_an_answer_is_cut_off_after_the_request_arrived(proxy, echo):
    proxy.harm(Fault(Harm.CUT_ANSWER))
    assert asked(proxy, b"hello") is None
    assert echo.heard == [b"hello"]
    assert asked(proxy, b"again") == b"AGAIN"


def test_a_request_comes_twice(proxy, echo):
    proxy.harm(Fault(Harm.REPEAT))
    assert asked(proxy, b"hello") == b"HELLO"
    eventually(lambda: echo.heard == [b"hello", b"hello"], "twice")


@pytest.mark.parametrize("harm", [Harm.HOLD, Harm.HOLD_ANSWER])
def test_a_request_is_overtaken(proxy, echo, harm):
    proxy.harm(Fault(harm, b"first"))
    with connected(proxy) as late:
        late.sendall(b"first\n")
        eventually(lambda: proxy.happened[harm], "it is held")
        assert asked(proxy, b"second") == b"SECOND"
        assert (echo.heard == [b"second"]) == (harm is Harm.HOLD)
        proxy.release()
        assert late.recv(100) == b"FIRST\n"


@pytest.mark.parametrize("silent", ["requests", "answers"])
def test_silence_closes_nothing_and_ends_when_it_is_healed(proxy, echo, silent):
    with connected(proxy) as connection:
        assert ask(connection, b"a") == b"A"
        proxy.silence(**{silent: True})
        connection.sendall(b"b\n")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(100)
        if silent == "answers":
            eventually(lambda: b"b" in echo.heard, "the request went through")
        else:
            assert b"b" not in echo.heard
        proxy.heal()
        connection.settimeout(20)
        assert connection.recv(100) == b"B\n"


def test_connections_are_refused_until_it_is_healed(proxy):
    proxy.refuse()
    assert asked(proxy, b"a") is None
    proxy.heal()
    assert asked(proxy, b"a") == b"A"


def test_all_connections_break_at_once(proxy):
    with connected(proxy) as connection:
        assert ask(connection, b"a") == b"A"
        proxy.cut_all()
        pace(0.05)
        with pytest.raises((OSError, AssertionError)):
            assert ask(connection, b"b")
    assert asked(proxy, b"c") == b"C"
