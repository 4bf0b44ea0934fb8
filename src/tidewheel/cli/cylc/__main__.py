"""Runs `python -m tidewheel.cli.cylc VERB …`, quickly: a job may call it every second."""

from __future__ import annotations

import os
import sys

from tidewheel.cli.cylc.message import message


def main(arguments: list[str]) -> int:
    """Does one call, and returns its exit status."""
    if arguments[:1] == ["message"]:
        return message(arguments[1:])
    from tidewheel.cli.cylc.program import main as program

    return program(arguments)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # the reader of the output has seen enough
        status = status or 1
    # Nothing is left to be done, and to tidy up first would be a fifth of the time: a script
    # goes on while what it has asked for begins.
    os._exit(status)
