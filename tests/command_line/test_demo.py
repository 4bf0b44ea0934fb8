"""`make demo` shows a cycling workflow with a failure, a retry and a branch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.patience import allowed

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_shows_a_retry_a_branch_and_a_handled_failure_and_completes():
    shown = subprocess.run(
        [sys.executable, str(DEMO)],
        capture_output=True,
        text=True,
        timeout=allowed(60),
        check=False,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for line in (
        "2/fetch failed: retry 1 of 2: exit status 1; last line of job.err",
        "3/check failed: exit status 1",
        "3/smooth succeeded",
        "1/flood_warning succeeded",
        "2/fire_watch succeeded",
        "completed after",
        "fire_watch  not taken",
        "no observations yet",
    ):
        assert line in shown.stdout
