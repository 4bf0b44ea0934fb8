"""The program, loaded once and forked for each command: as typed, without its start-up.

`python -P warm_program.py SOCKET` imports everything and waits. Whoever connects sends the
words, the folder, the environment and the three files of a command; a fork of the process
takes them over, and is then what the real program is after its imports: it ends by itself,
with its own exit status or signal. Who hangs up before that has it killed. The end of standard
input is the end of the server. It has one thread, and no open file that a command could share.

Start-up itself is tested with new processes.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

REQUEST_BYTES_MAX = 150_000  # fits into one packet
STDIN, STDOUT, STDERR = range(3)
NOT_LOADED = ("tests.kit",)  # no command needs it


@dataclass(slots=True, kw_only=True)
class Command:
    """What the fork turns into."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    umask: int
    own_session: bool = False
    files: list[int] = field(default_factory=list)


def load() -> None:
    """Import whatever a command may need; nothing of it looks at the environment."""
    package = importlib.import_module("tidewheel")
    for found in pkgutil.walk_packages(package.__path__, "tidewheel."):
        if not found.name.endswith("__main__") and not found.name.startswith(NOT_LOADED):
            importlib.import_module(found.name)
    assert len(os.listdir("/proc/self/task")) == 1, "a fork would lose the other threads"


class Server:
    """Forks for each command, and tells its caller when it has ended and how."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(listener, selectors.EVENT_READ)
        self.waiting.register(STDIN, selectors.EVENT_READ)
        # By the file that tells of the end of a process: its number, and who asked for it.
        self.running: dict[int, tuple[int, socket.socket]] = {}

    def serve(self) -> Command | None:
        """Comes back in every fork with its command, and in the server at its end."""
        while True:
            for key, _ in self.waiting.select():
                if key.fileobj == STDIN:
                    return None
                if key.fileobj is self.listener:
                    caller, _ = self.listener.accept()
                    command = received(caller)
                    pid = os.fork()
                    if pid == 0:
                        self.leave(caller)
                        return command
                    self.watch(pid, caller, command)
                elif key.fd in self.running:
                    self.bury(key.fd)
                elif key.data in self.running:  # nobody waits any more
                    self.waiting.unregister(key.fileobj)
                    os.kill(self.running[key.data][0], signal.SIGKILL)

    def watch(self, pid: int, caller: socket.socket, command: Command) -> None:
        for file in command.files:
            os.close(file)
        ended = os.pidfd_open(pid)
        self.running[ended] = pid, caller
        self.waiting.register(ended, selectors.EVENT_READ)
        self.waiting.register(caller, selectors.EVENT_READ, ended)
        tell(caller, pid)

    def bury(self, ended: int) -> None:
        pid, caller = self.running.pop(ended)
        _, status = os.waitpid(pid, 0)
        self.waiting.unregister(ended)
        os.close(ended)
        if caller in self.waiting.get_map():
            self.waiting.unregister(caller)
        tell(caller, os.waitstatus_to_exitcode(status))
        caller.close()

    def leave(self, caller: socket.socket) -> None:
        """Close what a fork has of it: as garbage it would close what others open later."""
        self.waiting.close()
        for one in (caller, self.listener, *(other for _, other in self.running.values())):
            one.close()


def received(caller: socket.socket) -> Command:
    size = array.array("i").itemsize
    text, ancillary, _, _ = caller.recvmsg(REQUEST_BYTES_MAX, socket.CMSG_SPACE(3 * size))
    command = Command(**json.loads(text))
    for _, _, content in ancillary:
        command.files += array.array("i", content)
    return command


def tell(caller: socket.socket, number: int) -> None:
    try:
        caller.send(str(number).encode())
    except OSError:  # has hung up
        return


def become(command: Command) -> None:
    """Be as the interpreter is that was started for this command."""
    if command.own_session:
        os.setsid()
    for number, file in enumerate(command.files):
        os.dup2(file, number)
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    os.chdir(command.folder)
    os.umask(command.umask)
    os.environ.clear()
    os.environ.update(command.environment)
    time.tzset()
    sys.argv = command.words
    sys.path.insert(0, str(Path(command.words[0]).parent))
    # Their encoding is that of the locale, which is the same for all that come here.
    sys.stdin = sys.__stdin__ = fresh(sys.stdin, STDIN, "r")
    sys.stdout = sys.__stdout__ = fresh(sys.stdout, STDOUT, "w")
    sys.stderr = sys.__stderr__ = fresh(sys.stderr, STDERR, "w")


def fresh(like: object, number: int, mode: str) -> io.TextIOWrapper:
    """A standard file as the interpreter makes it; errors are told line by line."""
    assert isinstance(like, io.TextIOWrapper)
    file = open(  # noqa: SIM115 - it stays open
        number, mode, encoding=like.encoding, errors=like.errors, closefd=False
    )
    assert isinstance(file, io.TextIOWrapper)
    if number == STDERR:
        file.reconfigure(line_buffering=True)
    return file


def main(address: str) -> None:
    load()
    gc.collect()
    gc.freeze()  # pages that nobody writes to stay shared
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{address}.new")
        listener.listen()
        Path(f"{address}.new").rename(address)  # it is there when it answers
        try:
            command = Server(listener).serve()
        except KeyboardInterrupt:  # of whoever runs the tests
            return
    if command is not None:
        become(command)
        try:
            importlib.import_module("tidewheel.__main__").main()
        except SystemExit as end:
            if isinstance(end.code, int):
                end_now(end.code)
            raise
        end_now(0)


def end_now(status: int) -> None:
    """Do what the interpreter does at its end, except to clear its memory.

    That would copy every page that forks share, which costs more than most commands. Comes
    back, for the interpreter to tell it, if somebody cannot be told the last words.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1])
