"""The units of the web page, by their own tool."""

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"


@pytest.mark.timeout(110)  # one test is all units
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_units_hold():
    done = subprocess.run(
        ["npm", "run", "--silent", "test"], cwd=WEB, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
