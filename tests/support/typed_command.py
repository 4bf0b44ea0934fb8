"""Types a command into the warm program; as a script, it is that command in a shell.

Only what is built in or loads at once is imported: a shell starts it for every command.
"""

from __future__ import annotations

import array
import json
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket

REPLY_BYTES = 100


class TypedCommand:
    """A command under way in a fork of the warm program."""

    def __init__(self, address: str, words: list[str], **surroundings: object) -> None:
        self._caller = socket(AF_UNIX, SOCK_SEQPACKET)
        self._caller.connect(address)
        request = {"words": words, **surroundings}
        files = request.pop("files")
        rights = [(SOL_SOCKET, SCM_RIGHTS, array.array("i", files))]
        self._caller.sendmsg([json.dumps(request).encode()], rights)
        self.pid = int(self._caller.recv(REPLY_BYTES))

    def fileno(self) -> int:
        """Readable when the command has ended."""
        return self._caller.fileno()

    def wait(self) -> int:
        """Its exit status; the negative number of a signal that ended it."""
        told = self._caller.recv(REPLY_BYTES)
        self._caller.close()
        return int(told)

    def hang_up(self) -> None:
        """It is killed if it has not ended."""
        self._caller.close()


def main(address: str, words: list[str]) -> int:
    umask = os.umask(0)
    os.umask(umask)
    command = TypedCommand(
        address,
        words,
        folder=os.getcwd(),
        environment=dict(os.environ),
        umask=umask,
        files=[0, 1, 2],
    )
    status = command.wait()
    if status < 0:
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
