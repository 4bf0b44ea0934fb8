"""A copy of the package and of the test kit, into which a bug can be put."""

import shutil
from pathlib import Path

import pytest

import tests.kit
import tidewheel

PACKAGE = Path(tidewheel.__file__).parent
KIT = Path(tests.kit.__file__).parent


@pytest.fixture
def package(tmp_path):
    """Compiled files included: only what is edited is compiled anew."""
    unfinished = shutil.ignore_patterns("*.pyc.*")  # written by others at this moment
    shutil.copytree(KIT, tmp_path / "copy" / "tests" / "kit", ignore=unfinished)
    return Path(shutil.copytree(PACKAGE, tmp_path / "copy" / "tidewheel", ignore=unfinished))
