"""Many commands one after the other in one process, where starting it would take longest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from tests.support.command_line import SECONDS_MAX, Answer, CommandLine
from tests.support.patience import allowed

PROGRAM = """
import contextlib, io, json, sys
from tidewheel.cli.main import run
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(words)
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""


def answers(tidewheel: CommandLine, commands: Sequence[Sequence[str]]) -> list[Answer]:
    """What each of them said, as if it had been called alone."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=tidewheel.folder,
        env=tidewheel.environment,
        timeout=allowed(SECONDS_MAX),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Answer(*json.loads(line)) for line in done.stdout.splitlines()]
