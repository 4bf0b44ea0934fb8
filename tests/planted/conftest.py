"""A copy of the package, into which a bug can be put."""

import shutil
from pathlib import Path

import pytest

import tidewheel

PACKAGE = Path(tidewheel.__file__).parent


@pytest.fixture
def package(tmp_path):
    """Compiled files included: only what is edited is compiled anew."""
    unfinished = shutil.ignore_patterns("*.pyc.*")  # written by others at this moment
    return Path(shutil.copytree(PACKAGE, tmp_path / "copy" / "tidewheel", ignore=unfinished))
