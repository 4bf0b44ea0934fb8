"""The units of the web page, by their own tools: vitest and eslint."""

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.parametrize("script", ["test", "lint"])
def test_the_units_hold(script):
    done = subprocess.run(
        ["npm", "run", "--silent", script], cwd=WEB, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
